"""Two runs scored and compared in a notebook: open this file as one, or paste its two cells.

    python docs/examples/notebook.py BASE NEW    (ids or folders of runs)

The set, its labels and the runs are found as the scripts find them: RAG_EVAL_HOME names another
folder, and each of them can be any path. The numbers and verdicts are those of score_retrieval.py
and compare_runs.py.
"""

# %% The toolkit; name its folder here when this file is elsewhere
import sys
from pathlib import Path

if len(sys.argv) != 3:
    print("Name two runs: python docs/examples/notebook.py BASE NEW", file=sys.stderr)
    sys.exit(2)
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "eval" / "scripts"))

from decisions.compare import CompareOptions, clusters_of, compare
from scorers import SECTIONS
from scorers.contract import ScoringJob
from scorers.loop import score_run
from storage import EVAL_SET, LABELS_DIR, RESULTS_DIR, find_run, iter_results

# %% Score retrieval of both runs, and compare them case by case
base, new = (find_run(RESULTS_DIR, name) for name in sys.argv[1:3])
for run in (base, new):
    retrieval = SECTIONS["retrieval"]
    scorer = retrieval.scorer(ScoringJob(run, EVAL_SET, LABELS_DIR), retrieval.options())
    section = score_run(run, EVAL_SET, scorer, labels_dir=LABELS_DIR)
    answers = sum(1 for _ in iter_results(run / "results.jsonl"))
    print(run.name, answers, "answers, evidence_recall@5", section["mean"]["evidence_recall@5"])
clusters, _ = clusters_of([new, base], EVAL_SET, "auto")
comparison = compare(base, new, CompareOptions(eval_set=EVAL_SET), clusters=clusters)
for row in (row for row in comparison.rows if row.primary):
    print(row.name, row.base, row.new, row.interval, row.p_joint, row.verdict)
print(comparison.headline)

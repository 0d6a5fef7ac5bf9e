"""What was imported is scored by the scripts as it is; the numbers are those of trec_eval."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.score_lines import read_lines

import convert_data
from formats import all_formats

SCRIPTS = Path(convert_data.__file__).parent
PAIRS = {
    "recall@5": "recall_5",
    "recall@10": "recall_10",
    "precision@5": "P_5",
    "ndcg@5": "ndcg_cut_5",
    "ndcg@10": "ndcg_cut_10",
    "map@10": "map_cut_10",
    "mrr": "recip_rank",
}


def script(name: str, *words: str, code: int = 0) -> str:
    """Run a script as a process; returns its stdout."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("RAG_EVAL_")}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / f"{name}.py"), *words],
        env=kept | {"RAG_EVAL_CONFIG": os.devnull},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def scored(name: str, folder: Path, run: str, *more: str) -> dict[str, Any]:
    """The section that a score_* script writes for an imported run."""
    words = ["--eval-set", str(folder / "eval_set.jsonl"), "--results-dir", str(folder / "results")]
    section: dict[str, Any] = json.loads(script(name, *words, "--run", run, "--json", *more))
    return section


def pytrec(qrels: Path, run: Path) -> dict[str, dict[str, float]]:
    """pytrec_eval on the original files."""
    import pytrec_eval

    with open(qrels) as file:
        judged = pytrec_eval.parse_qrel(file)
    with open(run) as file:
        ranked = pytrec_eval.parse_run(file)
    measures = {"recall.5,10", "P.5", "ndcg_cut.5,10", "map_cut.10", "recip_rank"}
    found: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(
        ranked
    )
    return found


def assert_equal_to_pytrec(folder: Path, name: str, qrels: Path, run: Path) -> None:
    """Every query, every measure."""
    scored("score_retrieval", folder, name, "--match", "doc", "--k", "5,10")
    lines = read_lines(folder / "results" / name, "retrieval")
    ours = {line["case_id"]: line["scores"] for line in lines}
    theirs = pytrec(qrels, run)
    assert len(theirs) > 1
    for query, measures in theirs.items():
        for mine, other in PAIRS.items():
            assert ours[query][mine] == pytest.approx(measures[other], abs=1e-9), (query, mine)


def made_up(folder: Path) -> tuple[Path, Path]:
    """Twenty topics with graded judgements, and a run with ties and unjudged documents."""
    chance = random.Random(7)
    qrels, ranked = [], []
    for topic in range(20):
        names = [f"doc-{n}" for n in range(30)]
        grades = {name: chance.choice([0, 0, 1, 2, 3]) for name in chance.sample(names, 12)}
        grades[names[0]] = 2
        qrels += [f"{topic} 0 {name} {grade}" for name, grade in grades.items()]
        for rank, name in enumerate(chance.sample(names, 15), 1):
            ranked.append(
                f"{topic} Q0 {name} {rank} {chance.choice([1, 2.5, 2.5000000001, 7])} own"
            )
    for name, lines in (("qrels.txt", qrels), ("run.txt", ranked)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder / "qrels.txt", folder / "run.txt"


def test_a_converted_run_scores_as_pytrec_eval_scores_the_original(tmp_path: Path) -> None:
    qrels, run = made_up(tmp_path)
    folder = tmp_path / "set"
    script("convert_data", "import", "trec", str(qrels), str(run), "-o", str(folder), "-q")
    assert_equal_to_pytrec(folder, "own", qrels, run)


def test_an_exported_run_scores_as_before(tmp_path: Path) -> None:
    """Our own run of chunks without usable scores: trec_eval sees the order that we saw."""
    qrels, run = made_up(tmp_path)
    folder, back = tmp_path / "set", tmp_path / "back"
    script("convert_data", "import", "trec", str(qrels), str(run), "-o", str(folder), "-q")
    results = folder / "results/own/results.jsonl"
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    for row in rows:
        for chunk in row["retrieved"]:
            chunk["score_final"] = None
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--eval-set", str(folder / "eval_set.jsonl"), "--results-dir", str(folder / "results")]
    script("convert_data", "export", "trec", *words, "--run", "own", "-o", str(back), "-q")
    assert_equal_to_pytrec(folder, "own", back / "qrels.txt", back / "run.txt")
    cases = folder / "eval_set.jsonl"
    cases.write_text(
        cases.read_text().replace('"id"', '"case_id"').replace('"question"', '"query"')
    )
    again = tmp_path / "again"
    script("convert_data", "export", "trec", *words, "--run", "own", "-o", str(again), "-q")
    for name in ("qrels.txt", "run.txt"):
        assert (again / name).read_bytes() == (back / name).read_bytes()


def test_other_scripts_take_an_imported_set(tmp_path: Path) -> None:
    rows = [
        {
            "user_input": "When does the hall open?",
            "response": "The hall opens at nine each day.",
            "retrieved_contexts": ["Opening hours: the hall opens at nine each day."],
            "reference": "At nine.",
            "reference_contexts": ["the hall opens at nine each day"],
        },
        {"user_input": "And when does it close?", "response": "I do not know."},
    ]
    source = tmp_path / "samples.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = tmp_path / "set"
    made = script("convert_data", "import", "ragas", str(source), "-o", str(folder), "-q")
    assert made.split() == [str(folder / "eval_set.jsonl"), str(folder / "results/samples")]
    words = ["--eval-set", str(folder / "eval_set.jsonl")]
    script("label_eval", "--validate", *words)
    grounded = scored("score_groundedness", folder, "samples")
    assert grounded["mean"]["claim_support_rate"] == 1.0
    assert scored("score_retrieval", folder, "samples")["mean"]["recall@1"] == 1.0
    for name in ("score_context", "score_abstention", "score_pipeline"):
        scored(name, folder, "samples")
    metrics = json.loads((folder / "results/samples/metrics.json").read_text())
    assert metrics["cases"] == 2


def test_answers_of_two_systems_are_compared(tmp_path: Path) -> None:
    """Two imports into one folder are two runs of one set."""
    for name, answer in (("one", "A."), ("two", "B.")):
        source = tmp_path / f"{name}.json"
        source.write_text(json.dumps([{"question": "Q?", "answer": answer, "contexts": ["A."]}]))
        script("convert_data", "import", "json", str(source), "-o", str(tmp_path / "set"), "-q")
    configs = [
        json.loads((tmp_path / "set/results" / name / "config.json").read_text())
        for name in ("one", "two")
    ]
    assert configs[0]["dataset"] == configs[1]["dataset"]
    assert configs[0]["config_hash"] != configs[1]["config_hash"]


def open_data(*parts: str) -> Path:
    """A file of the open data sets, or a visible skip."""
    root = os.environ.get("RAG_EVAL_DATA")
    path = Path(root or "/nowhere").joinpath(*parts)
    if not path.exists():
        pytest.skip("RAG_EVAL_DATA names no folder with this set")
    return path


def plain(packed: Path, folder: Path) -> Path:
    target = folder / packed.stem
    with gzip.open(packed) as source, open(target, "wb") as file:
        shutil.copyfileobj(source, file)
    return target


SYSTEMS: Sequence[str] = ("uic0301", "pircRBa1", "aplrob03a", "rutcor03100")


@pytest.mark.thorough
def test_real_trec_runs_score_as_pytrec_eval_scores_them(tmp_path: Path) -> None:
    packed = [open_data("trec_robust03", "qrels.txt.gz")]
    packed += [open_data("trec_robust03", f"run.{name}.txt.gz") for name in SYSTEMS]
    folder = tmp_path / "set"
    script("convert_data", "import", "trec", *map(str, packed), "-o", str(folder), "-q")
    qrels, *runs = [plain(path, tmp_path) for path in packed]
    for name, run in zip(SYSTEMS, runs, strict=True):
        assert_equal_to_pytrec(folder, name, qrels, run)
    back = tmp_path / "back"
    words = ["--eval-set", str(folder / "eval_set.jsonl"), "--results-dir", str(folder / "results")]
    script("convert_data", "export", "trec", *words, "--run", SYSTEMS[0], "-o", str(back), "-q")
    lines = sorted((back / "qrels.txt").read_text().splitlines())
    assert lines == sorted(qrels.read_text().splitlines())
    assert pytrec(back / "qrels.txt", back / "run.txt") == pytrec(qrels, runs[0])


def test_trec_evals_own_test_files(tmp_path: Path) -> None:
    qrels, run = open_data("trec_eval", "qrels.test"), open_data("trec_eval", "results.test")
    folder = tmp_path / "set"
    script("convert_data", "import", "trec", str(qrels), str(run), "-o", str(folder), "-q")
    (name,) = [path.name for path in (folder / "results").iterdir()]
    assert_equal_to_pytrec(folder, name, qrels, run)


@pytest.mark.thorough
def test_real_answers_with_human_spans(tmp_path: Path) -> None:
    source = open_data("ragtruth", "data.jsonl.gz")
    folder = tmp_path / "set"
    words = ("-o", str(folder), "-q", "--json")
    told = json.loads(script("convert_data", "import", "ragtruth", str(source), *words))
    with gzip.open(source) as file:
        rows = [json.loads(line) for line in file]
    assert told["rows"]["answers"] == len(rows)
    assert told["rows"]["spans"] == sum(len(row["spans"]) for row in rows)
    runs = sorted(path.name for path in (folder / "results").iterdir())
    assert len(runs) == len({row["system"] for row in rows}) == 6
    marked = 0
    for run in runs:
        lines = (folder / "results" / run / "human_spans.jsonl").read_text().splitlines()
        marked += sum(bool(json.loads(line)["spans"]) for line in lines)
    assert marked == sum(row["hallucinated"] for row in rows)
    assert scored("score_groundedness", folder, runs[0])["n"]["claim_support_rate"] > 200


@pytest.mark.thorough
def test_real_conversations_as_plain_rows(tmp_path: Path) -> None:
    """MTRAG's rows hold much that a plain row has no name for: all of it is kept and told."""
    with gzip.open(open_data("mtrag_human", "data.jsonl.gz")) as file:
        rows = [json.loads(line) for line in file]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = tmp_path / "set"
    script("convert_data", "import", "json", str(source), "-o", str(folder), "-q")
    lines = (folder / "eval_set.jsonl").read_text().splitlines()
    cases = list(map(json.loads, lines))
    assert [case["id"] for case in cases] == [row["id"] for row in rows]
    assert all(
        case["metadata"]["human"] == row["human"] for case, row in zip(cases, rows, strict=True)
    )
    assert scored("score_context", folder, "rows")["n"]


def test_the_help_names_every_format() -> None:
    """Nothing lists them by hand: the names are those of the registry."""
    (option,) = (param for param in convert_data.main.params if "--list" in param.opts)
    assert set(all_formats()) <= set(re.findall(r"[\w-]+", str(getattr(option, "help", ""))))

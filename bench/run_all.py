"""All benchmarks, one after the other; Markdown tables on stdout, progress on stderr.

python bench/run_all.py            # 20 minutes for the speed, 1.5 GB of made data in a temporary
                                   # folder; then over an hour: what labels and decisions are worth
python bench/run_all.py --quick    # small sizes, about 3 minutes, the speed alone
python bench/run_all.py --tiny     # only to see that all of them run; the figures mean nothing
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VALIDATIONS = ("crash_replay", "validate_claims", "validate_decisions", "validate_turns")
"""Simulations of what labels, verdicts and early looks are worth, and of runs that are killed; no
small size tells anything."""
LEFT_OUT = 77
"""Exit code of a measurement whose library is not installed; it has said so."""
QUICK = {
    "bench_browse": ["--cases", "10000", "--rounds", "3"],
    "bench_compare": ["--cases", "1000", "--rounds", "2"],
    "bench_score_retrieval": ["--cases", "1000,10000", "--rounds", "3"],
    "bench_report": ["--cases", "1000", "--rounds", "2"],
    "bench_run_eval": ["--concurrency", "8,32", "--seconds", "2", "--rounds", "2"],
    "bench_goals": ["--part", "0.01", "--rounds", "2"],
    "bench_judge": ["--concurrency", "32", "--seconds", "2", "--rounds", "2"],
    "bench_limits": ["--tiny"],
    "bench_start": ["--rounds", "3"],
}
TINY = {
    "bench_browse": ["--cases", "50", "--rounds", "1", "--starts", "1", "--presses", "2"],
    "bench_compare": ["--cases", "60", "--rounds", "1"],
    "bench_embedding": ["--limit", "2", "--rounds", "1"],
    "bench_goals": ["--part", "0.0001", "--rounds", "1", "--rows", "small,large,compare"],
    "bench_judge": [
        *("--concurrency", "2", "--latency", "5", "--seconds", "0.2"),
        *("--rounds", "1", "--verdicts", "20"),
    ],
    "bench_labeller": ["--questions", "70", "--starts", "1", "--presses", "2"],
    "bench_limits": ["--tiny", "--ways", "headers"],
    "bench_report": ["--cases", "20", "--chunks", "3", "--rounds", "1"],
    "bench_run_eval": ["--concurrency", "2", "--latency", "5", "--seconds", "0.2", "--rounds", "1"],
    "bench_score_retrieval": ["--cases", "30", "--chunks", "5", "--rounds", "1"],
    "bench_start": ["--scripts", "gate_run,score_retrieval", "--rounds", "1"],
    **{name: ["--tiny"] for name in VALIDATIONS},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument("--tiny", action="store_true", help="smallest sizes")
    parser.add_argument("--only", metavar="NAME", help="one of them, such as bench_report")
    options = parser.parse_args()
    sizes: dict[str, list[str]] = TINY if options.tiny else QUICK if options.quick else {}
    of_extras = {path.stem: path for path in sorted(HERE.parent.glob("eval/extras/*/bench/*.py"))}
    names = [*sorted(path.stem for path in HERE.glob("bench_*.py")), *VALIDATIONS, *of_extras]
    if options.only and options.only not in names:
        parser.error(f"--only {options.only}: there are {', '.join(names)}")
    # measured is the toolkit, not what somebody has set up for it
    env = {name: text for name, text in os.environ.items() if not name.startswith("RAG_EVAL_")}
    env["RAG_EVAL_CONFIG"] = os.devnull
    if "RAG_EVAL_DATA" in os.environ:  # where the open data lie, no setting
        env["RAG_EVAL_DATA"] = os.environ["RAG_EVAL_DATA"]
    failed = []
    if options.quick:
        names = [name for name in names if name.startswith("bench_")]
    for name in [options.only] if options.only else names:
        print(f"\n# {name}", flush=True)
        file = of_extras.get(name, HERE / f"{name}.py")
        size = ["--tiny"] if options.tiny else ["--quick"] if options.quick else []
        words = [sys.executable, str(file), *(size if name in of_extras else sizes.get(name, []))]
        code = subprocess.run(words, env=env).returncode
        if code == LEFT_OUT and options.only:
            sys.exit(LEFT_OUT)
        if code not in (0, LEFT_OUT):
            failed.append(name)
    if failed:
        sys.exit(f"ended with an error: {', '.join(failed)}")


if __name__ == "__main__":
    main()

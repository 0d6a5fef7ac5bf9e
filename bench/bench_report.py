"""report_run.py as a whole process: seconds, peak memory and bytes by the number of cases.

    python bench/bench_report.py --cases 1000,10000 --rounds 3

The run is made up (make_retrieval_data.py: 10 passages of 200 characters an answer) and scored by
the scripts for retrieval, context, groundedness, abstention and pipeline first. The targets: 10,000
cases in less than 10 s of wall time, and an HTML page of less than 5 MB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from make_retrieval_data import write
from measuring import SCRIPTS, Measured, in_turn, measure, median, print_table, say

SECTIONS = ("retrieval", "context", "groundedness", "abstention", "pipeline")
FORMATS = ("html", "md", "md,html")
HEAD = ("cases", "forms", "CPU s", "wall s", "peak MB", "html MB", "md MB")


def scored(folder: Path, cases: int, chunks: int) -> Path:
    """A scored run of that size."""
    write(folder, cases, chunks)
    run = folder / "texts"
    for name in SECTIONS:
        if not (run / "scores" / f"{name}.jsonl").exists():
            say(f"scoring {name} of {cases:,} cases")
            words = [sys.executable, SCRIPTS / f"score_{name}.py", "--quiet", "--json"]
            words += ["--run", run, "--eval-set", folder / "eval_set.jsonl"]
            subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return run


def report(run: Path, forms: str) -> Measured:
    words: list[str | Path] = [sys.executable, SCRIPTS / "report_run.py", "--quiet"]
    words += ["--run", run, "--eval-set", run.parent / "eval_set.jsonl", "--format", forms]
    return measure(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default="1000,10000", help="sizes (%(default)s)")
    parser.add_argument("--chunks", type=int, default=10, help="an answer (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--data", type=Path, help="folder to keep the made data in")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for cases in map(int, options.cases.split(",")):
            folder = (options.data or Path(temporary)) / f"{cases}x{options.chunks}"
            run = scored(folder, cases, options.chunks)
            found = in_turn({one: partial(report, run, one) for one in FORMATS}, options.rounds)
            sizes = [(run / f"report.{one}").stat().st_size / 1e6 for one in ("html", "md")]
            for forms, measured in found.items():
                figures = [f"{median(measured, what):.2f}" for what in ("cpu", "wall")]
                peak = f"{median(measured, 'peak_mb'):.0f}"
                shown = [f"{size:.2f}" for size in sizes]
                rows.append([f"{cases:,}", forms, *figures, peak, *shown])
    print_table(HEAD, rows)


if __name__ == "__main__":
    main()

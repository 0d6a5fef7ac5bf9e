"""What writing batch files for a judge costs: CPU seconds and memory for a number of requests.

    python eval/extras/batch/bench/bench_batch.py --requests 1000000

Made data: a case has a question, an answer of two sentences and five passages of 300 characters,
each judged for use, so that a case gives five requests of context_precision and one of
groundedness. ``--batch-out`` runs as a whole process, as a user runs it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "bench"))

from measuring import SCRIPTS, measure, print_table

REQUESTS_A_CASE = 6
WORDS = ("fee", "desk", "tour", "north", "gate", "guide", "ticket", "noon", "garden", "river")


def passage(case: int, number: int) -> str:
    """A text of about 300 characters that is different for every case and passage."""
    words = [WORDS[(case * 7 + number * 3 + place) % len(WORDS)] for place in range(48)]
    return f"Passage {case}-{number}: " + " ".join(words) + "."


def make(folder: Path, cases: int) -> tuple[Path, Path]:
    """A set and a finished run of so many cases."""
    run = folder / "results" / "made"
    run.mkdir(parents=True)
    with open(folder / "set.jsonl", "w") as lines, open(run / "results.jsonl", "w") as results:
        for case in range(cases):
            name = f"c{case}"
            row = {"id": name, "question": f"What is the fee of desk {case}?"}
            row["reference_answer"] = f"The fee is {case} euros."
            lines.write(json.dumps(row) + "\n")
            chunks = [
                {"chunk_id": f"k{case}-{n}", "text": passage(case, n), "rank": n + 1}
                for n in range(5)
            ]
            answer = f"The fee is {case} euros. It is paid at the north desk."
            result = {"test_case_id": name, "status": "ok", "answer": answer, "retrieved": chunks}
            results.write(json.dumps(result | {"schema": 1, "repeat": 0}) + "\n")
    (run / "config.json").write_text(json.dumps({"schema": 1, "run_id": "made"}))
    return folder / "set.jsonl", run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=60_000)
    parser.add_argument("--quick", action="store_true", help="6,000 requests")
    parser.add_argument("--tiny", action="store_true", help="a few requests, to see that it runs")
    options = parser.parse_args()
    requests = 600 if options.tiny else 6000 if options.quick else options.requests
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        eval_set, run = make(folder, requests // REQUESTS_A_CASE)
        command: list[str | Path]
        command = [sys.executable, SCRIPTS / "judge_answers.py", "--run", run]
        command += ["--eval-set", eval_set, "--cache-dir", folder / "cache", "--json"]
        command += ["--model", "judge-2025-01-01", "--metrics", "groundedness,context_precision"]
        report = measure([*command, "--batch-out", folder / "batches"])
        written = json.loads(report.output)
        row = [
            f"{written['requests']:,}",
            f"{written['bytes'] / 1e6:,.0f}",
            f"{report.cpu:.1f}",
            f"{report.cpu / written['requests'] * 1e6:.0f}",
            f"{report.peak_mb:.0f}",
        ]
        print_table(["requests", "MB written", "CPU s", "CPU us a request", "peak MB"], [row])


if __name__ == "__main__":
    main()

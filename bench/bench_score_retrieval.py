"""score_retrieval.py as a whole process, beside the Python peers and beside parsing alone.

    python bench/bench_score_retrieval.py --cases 1000,10000,100000 --rounds 5

Every contestant is a process of its own, in turn with the others; the peers read the same
judgements and rankings from JSONL with orjson (their fastest way in) and compute what they have of
our metrics; their means must agree with ours. "pytrec_eval, our job" reads our files with ids and
writes the scores of each case, as we do. Files of three kinds: texts (chunks with 200 characters
and all fields), ranks (chunk_id and rank), ids (plain ids). Scores of an earlier round are removed
first: to free a large file takes longer than to write it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from math import fsum
from pathlib import Path

from make_retrieval_data import KINDS, write
from measuring import SCRIPTS, Measured, in_turn, measure, median, print_table, say

PEERS = ("pytrec_eval", "ir_measures", "ranx")
TOLERANCE = {"pytrec_eval": 1e-9, "ir_measures": 1e-9, "ranx": 1e-6}
"""Largest difference of a mean; ranx keeps scores in single precision."""
HEAD = ("contestant", "input", "CPU s", "wall s", "peak MB", "means that agree with ours")


def job(data: Path) -> Measured:
    (data / "pytrec_eval.jsonl").unlink(missing_ok=True)
    return peer("pytrec_eval_job", data)


def ours(data: Path, kind: str, jobs: int | None) -> Measured:
    shutil.rmtree(data / kind / "scores", ignore_errors=True)
    words: list[str | Path] = [sys.executable, SCRIPTS / "score_retrieval.py", "--json", "--quiet"]
    words += ["--run", data / kind, "--eval-set", data / "eval_set.jsonl"]
    return measure(words + (["--jobs", str(jobs)] if jobs else []))


def peer(name: str, path: Path) -> Measured:
    return measure([sys.executable, Path(__file__).with_name("peers.py"), name, path])


def full_means(data: Path, kind: str) -> dict[str, float]:
    """Our means in full precision, from the score lines (metrics.json is rounded)."""
    import orjson

    values: dict[str, list[float]] = {}
    with open(data / kind / "scores" / "retrieval.jsonl", "rb") as file:
        for line in file:
            for name, value in orjson.loads(line)["scores"].items():
                if value is not None:
                    values.setdefault(name, []).append(value)
    return {name: fsum(column) / len(column) for name, column in values.items()}


def agreement(name: str, theirs: dict[str, float], means: dict[str, float]) -> str:
    """How many means are the same, and which are not."""
    wrong = [
        metric
        for metric, value in theirs.items()
        if not abs(value - means[metric]) <= TOLERANCE[name]
    ]
    return f"NO: {', '.join(wrong)}" if wrong else f"{len(theirs)} of {len(theirs)}"


def bench(data: Path, kinds: list[str], peers: list[str], rounds: int) -> bool:
    """Measure one size and print its table; False when any number disagrees."""
    runs: dict[str, Callable[[], Measured]] = {}
    for kind in kinds:
        runs[f"score_retrieval|{kind}"] = partial(ours, data, kind, None)
        runs[f"score_retrieval --jobs 1|{kind}"] = partial(ours, data, kind, 1)
        runs[f"orjson, parse only|{kind}"] = partial(peer, "parse", data / kind / "results.jsonl")
    for name in peers:
        runs[f"{name}|qrels + run"] = partial(peer, name, data)
    if "pytrec_eval" in peers and "ids" in kinds:
        runs["pytrec_eval, our job|ids"] = partial(job, data)
    found = in_turn(runs, rounds)
    sound, rows = True, []
    means = {kind: full_means(data, kind) for kind in kinds}
    for label, measured in found.items():
        name, source = label.split("|")
        verdict = ""
        if name.partition(",")[0] in peers:
            theirs = json.loads(measured[0].output)
            verdicts = {agreement(name.partition(",")[0], theirs, means[kind]) for kind in kinds}
            verdict = "; ".join(sorted(verdicts))
            sound &= "NO" not in verdict
        figures = [median(measured, what) for what in ("cpu", "wall", "peak_mb")]
        rows.append([name, source, *figures, verdict])
    print_table(
        HEAD,
        [
            [row[0], row[1], *(f"{x:.2f}" for x in row[2:4]), f"{row[4]:.0f}", row[5]]
            for row in rows
        ],
    )
    for kind in kinds:
        print_ratios(kind, found)
    return sound


def print_ratios(kind: str, found: dict[str, list[Measured]]) -> None:
    """By how much the peers are slower, and how much parsing alone is quicker."""
    rows = []
    for label, measured in found.items():
        name, source = label.split("|")
        if source not in (kind, "qrels + run") or name.startswith("score_retrieval"):
            continue
        row = [f"{name} / score_retrieval, {kind}"]
        for variant in ("score_retrieval", "score_retrieval --jobs 1"):
            mine = found[f"{variant}|{kind}"]
            for what in ("cpu", "wall"):
                row.append(f"{median(measured, what) / median(mine, what):.2f}")
        rows.append(row)
    print_table(
        ("ratio (above 1: ours is faster)", "CPU", "wall", "CPU, 1 process", "wall, 1 process"),
        rows,
    )


def installed(names: tuple[str, ...]) -> list[str]:
    for name in names:
        if importlib.util.find_spec(name) is None:
            say(f"left out: {name} is not installed (pip install -r bench/requirements.txt)")
    return [name for name in names if importlib.util.find_spec(name)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", default="1000,10000,100000", help="sizes (%(default)s)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="inputs (%(default)s)")
    parser.add_argument("--chunks", type=int, default=20, help="a case (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--data", type=Path, help="folder to keep the made data in")
    options = parser.parse_args()
    peers = installed(PEERS)
    sound = True
    with tempfile.TemporaryDirectory() as temporary:
        for cases in map(int, options.cases.split(",")):
            data = (options.data or Path(temporary)) / f"{cases}x{options.chunks}"
            write(data, cases, options.chunks)
            print(f"## {cases:,} cases x {options.chunks} chunks, median of {options.rounds}")
            sound &= bench(data, options.kinds.split(","), peers, options.rounds)
    if not sound:
        sys.exit("The means of a peer differ from ours: see the last column.")


if __name__ == "__main__":
    main()

"""The same bytes whatever the seed of string hashes, which Python draws anew for each process."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.processes import call_in_one_process
from tests.scripts.conftest import FinishedRun

import storage
from ragmetrics.stats.significance import sign_flip_p
from storage import ErrorInfo, RetrievedChunk, TestResult

SCRIPTS = Path(storage.__file__).parent
SEEDS = ("1", "2")


def _cases() -> list[dict[str, object]]:
    """80 cases on 40 documents: too many to go through all sign flips, so that some are drawn."""
    return [
        {
            "id": f"case {n}",
            "question": f"What does setting {n} of file {n % 20} do?",
            "category": ("factual", "reasoning", "general")[n % 3],
            "answerable": n % 5 > 0,
            "gold_supports": [
                {"rel_path": f"doc{n * 7 % 80 // 2}.md", "heading_path": f"Part {n}"}
            ],
        }
        for n in range(80)
    ]


def _result(n: int, repeat: int, draw: random.Random) -> TestResult:
    case_id, question = f"case {n}", f"What does setting {n} of file {n % 20} do?"
    if draw.random() < 0.1:
        error = ErrorInfo("http_500", "out of order")
        return TestResult(case_id, question, "error", error=error, repeat=repeat)
    right = draw.random() < 0.6
    chunks: list[RetrievedChunk | str] = [
        RetrievedChunk(
            rank=rank,
            chunk_id=f"c{n}-{rank}",
            rel_path=f"doc{n * 7 % 80 // 2}.md" if right and rank == n % 4 + 1 else f"x{rank}.md",
            heading_path=f"Part {n}" if right and rank == n % 4 + 1 else "Other",
            text=f"Setting {n} sets number {rank}.",
        )
        for rank in range(1, 6)
    ]
    return TestResult(
        case_id,
        question,
        "ok",
        answer=f"Setting {n} sets number {draw.randrange(9)}.",
        retrieved=chunks,
        latency_ms={"total": 100 + draw.random() * 900},
        repeat=repeat,
    )


def _write(folder: Path) -> None:
    """Two runs of 60 and 70 of the 80 cases, two answers to each, with errors and missing lines."""
    cases = _cases()
    folder.mkdir()
    for name, count, seed in (("base", 60, 1), ("new", 70, 2)):
        draw = random.Random(seed)
        answered = [n for n in range(count) if draw.random() >= 0.1]  # others have no line
        results = [_result(n, repeat, draw) for n in answered for repeat in range(2)]
        run = FinishedRun(folder, name)
        run.write(cases, results)
        asked = {"selected": count, "repeat": 2, "asked": [case["id"] for case in cases[:count]]}
        run.configure(dataset={"path": "set.jsonl", "cases": 80}, run=asked)


PLACES = ("--results-dir", "results", "--eval-set", "set.jsonl")
SECTIONS = ("pipeline", "retrieval", "abstention")
COMMANDS = (
    ("compare_runs", "base", "new", "--json", *PLACES),
    ("gate_run", "--run", "new", "--baseline", "base", *PLACES),
    ("report_run", "--run", "new", "--baseline", "base", "--output", "page", *PLACES),
)


class Written(NamedTuple):
    """What the scripts of one process wrote: files of scores, decisions, pages."""

    scores: dict[str, bytes]
    decisions: list[tuple[int, str, str]]
    pages: list[bytes]


def _write_with(folder: Path, seed: str, *more: str) -> Written:
    """What the scripts write in a process with this seed; ``more``: options of scoring."""
    scoring = [
        (f"score_{section}", "--run", run, *PLACES, "--labels-dir", "labels", *more)
        for section in SECTIONS
        for run in ("base", "new")
    ]
    own = {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": seed, "NO_COLOR": "1"}
    ended = call_in_one_process(SCRIPTS, [*scoring, *COMMANDS], folder, **own)
    *scored, compared, gated, reported = ended
    assert {code for code, _, _ in (*scored, reported)} == {0}, ended
    paths = (*folder.glob("results/*/scores/*"), *folder.glob("results/*/metrics.json"))
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    pages = [(folder / f"page.{kind}").read_bytes() for kind in ("md", "html")]
    return Written(files, [compared, gated], pages)


def test_scores_decisions_and_reports_are_the_same_bytes(tmp_path: Path) -> None:
    """Of the same runs, under each seed; the last scored by two processes. A p-value of clusters
    is drawn: 1,000s of sign flips of cluster sums in an order."""
    _write(tmp_path / "first")
    ends = []
    for seed in SEEDS:
        folder = Path(shutil.copytree(tmp_path / "first", tmp_path / seed))
        ends.append(_write_with(folder, seed, *(("--jobs", "2") if seed == SEEDS[-1] else ())))
    assert len(ends[0].scores) == 2 * (len(SECTIONS) + 1)
    assert {code for code, _, _ in ends[0].decisions} <= {0, 1}, ends[0].decisions
    assert ends[0].scores == ends[1].scores
    assert ends[0].decisions == ends[1].decisions
    assert ends[0].pages == ends[1].pages


def test_rounding_of_sums_that_cancel_does_not_change_the_draws() -> None:
    """Clusters whose differences cancel sum to 0 or to 1e-17; the first of them is no more than
    the others, whatever the order of the clusters."""
    changed = np.arange(1, 31) / 100 * np.where(np.arange(30) % 3, 1, -1)
    clusters = np.concatenate([changed, np.zeros(10), np.full(10, 1e-17)])
    ps = {sign_flip_p(c, np.random.default_rng(0), 9999) for c in (clusters, clusters[::-1])}
    assert len(ps) == 1

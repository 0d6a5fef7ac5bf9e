"""The same bytes whatever the seed of string hashes, which Python draws anew for each process."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.processes import call_in_one_process

import storage
from ragmetrics.stats.significance import sign_flip_p
from storage import ErrorInfo, ResultsWriter, RetrievedChunk, TestResult

SCRIPTS = Path(storage.__file__).parent
SEEDS = ("1", "2")
MORE_SEEDS = (*SEEDS, "3")
DATES = {"SOURCE_DATE_EPOCH": "1700000000"}


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
    text = "".join(json.dumps(case) + "\n" for case in cases)
    (folder / "set.jsonl").write_text(text, encoding="utf-8")
    (folder / "labels").mkdir()
    for run, count, seed in (("base", 60, 1), ("new", 70, 2)):
        draw = random.Random(seed)
        writer = ResultsWriter(folder / "results", run, store_full_text=True)
        sha = storage.sha256_file(folder / "set.jsonl")
        asked = [str(case["id"]) for case in cases[:count]]
        writer.write_config(
            storage.RunConfig(
                run,
                dataset={"sha256": sha, "path": "set.jsonl", "cases": 80},
                run={"store_full_text": True, "selected": count, "repeat": 2, "asked": asked},
            )
        )
        for n in range(count):
            if draw.random() < 0.1:
                continue  # a case without a line
            for repeat in range(2):
                writer.write_result(_result(n, repeat, draw))
        writer.finish(str(case["id"]) for case in cases)


def _run(folder: Path, seed: str, *calls: Sequence[str]) -> list[tuple[int, str, str]]:
    """How the scripts ended that a process with this seed called."""
    return call_in_one_process(SCRIPTS, calls, folder, **DATES, PYTHONHASHSEED=seed, NO_COLOR="1")


PLACES = ("--results-dir", "results", "--eval-set", "set.jsonl", "--labels-dir", "labels")
SECTIONS = ("pipeline", "retrieval", "abstention")


def _scored(folder: Path, seed: str, *more: str) -> None:
    calls = [
        (f"score_{section}", "--run", run, *PLACES, *more)
        for section in SECTIONS
        for run in ("base", "new")
    ]
    for code, _, err in _run(folder, seed, *calls):
        assert code == 0, err


def _files(folder: Path) -> dict[str, bytes]:
    """What scoring wrote, by path."""
    written = (*folder.glob("results/*/scores/*"), *folder.glob("results/*/metrics.json"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in written}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same runs, scored under each seed; the last by two processes."""
    folders: dict[str, Path] = {}
    first = tmp_path_factory.mktemp("written")
    _write(first)
    for seed in SEEDS:
        folder = tmp_path_factory.mktemp("seed")
        shutil.copytree(first, folder, dirs_exist_ok=True)
        _scored(folder, seed, *(("--jobs", "2") if seed == SEEDS[-1] else ()))
        folders[seed] = folder
    return folders


def test_scores_are_the_same_bytes(scored: dict[str, Path]) -> None:
    files = [_files(folder) for folder in scored.values()]
    assert len(files[0]) == 2 * (len(SECTIONS) + 1)
    assert files[0] == files[1]


COMMANDS = (
    ("compare_runs", "base", "new", "--json", *PLACES[:4]),
    ("gate_run", "--run", "new", "--baseline", "base", *PLACES[:4]),
)


def test_decisions_are_the_same_bytes(scored: dict[str, Path]) -> None:
    """A p-value of clusters is drawn: 1,000s of sign flips of cluster sums in an order."""
    first, *others = (_run(scored[SEEDS[0]], seed, *COMMANDS) for seed in MORE_SEEDS)
    assert [code in (0, 1) for code, _, _ in first] == [True, True], first
    assert others == [first, first]


def test_reports_are_the_same_bytes(scored: dict[str, Path]) -> None:
    folder = scored[SEEDS[0]]
    pages = []
    for seed in SEEDS:
        words = ("--run", "new", "--baseline", "base", "--output", "page", *PLACES[:4])
        ((code, _, err),) = _run(folder, seed, ("report_run", *words))
        assert code == 0, err
        pages.append([(folder / f"page.{kind}").read_bytes() for kind in ("md", "html")])
    assert pages[0] == pages[1]


def test_rounding_of_sums_that_cancel_does_not_change_the_draws() -> None:
    """Clusters whose differences cancel sum to 0 or to 1e-17; the first of them is no more than
    the others, whatever the order of the clusters."""
    changed = np.arange(1, 31) / 100 * np.where(np.arange(30) % 3, 1, -1)
    clusters = np.concatenate([changed, np.zeros(10), np.full(10, 1e-17)])
    ps = {sign_flip_p(c, np.random.default_rng(0), 9999) for c in (clusters, clusters[::-1])}
    assert len(ps) == 1

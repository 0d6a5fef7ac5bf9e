"""A worker process of a pool that is killed, as for want of memory: its ranges are tried once more,
and a second death is one sentence. The process that the user started does not score them."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from tests.scorers.deadly_section import DeadlyScorer

from records.errors import Unreachable
from records.runs import METRICS, scores_file
from scorers.loop import score_run

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of 40 cases, scored in one process."""
    run = tmp_path / "run"
    run.mkdir()
    ids = [f"q{number:02}" for number in range(40)]
    cases = [{"id": name, "question": "?"} for name in ids]
    answers = [
        {"test_case_id": name, "answer": "a" * n, "question": "b" * (40 - n)}
        for n, name in enumerate(ids)
    ]
    for path, rows in ((tmp_path / "set.jsonl", cases), (run / "results.jsonl", answers)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "log").mkdir()
    score(run, 0, jobs=1)
    for path in (tmp_path / "log").iterdir():
        path.unlink()
    return run


def score(run: Path, deaths: int, how: int = signal.SIGKILL, jobs: int = 4) -> None:
    scorer = DeadlyScorer(run.parent / "log", "q17", deaths, how)
    score_run(run, run.parent / "set.jsonl", scorer, jobs=jobs)


def bytes_of(run: Path) -> list[bytes]:
    return [(run / METRICS).read_bytes(), scores_file(run, "deadly").read_bytes()]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, 99, 0])
def test_a_range_whose_worker_was_killed_is_scored_again(run: Path, how: int) -> None:
    serial = bytes_of(run)
    (run / METRICS).unlink()
    score(run, 1, how)
    assert bytes_of(run) == serial
    scored = [path.name.split() for path in (run.parent / "log").glob("q*")]
    assert len([case for case, _ in scored if case == "q17"]) == 2
    assert str(os.getpid()) not in {pid for _, pid in scored}
    assert not [path for path in run.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (signal.SIGKILL, "was ended by SIGKILL"),
        (signal.SIGTERM, "was ended by SIGTERM"),
        (99, "ended with exit code 99"),
        (0, "ran out of memory"),
    ],
)
def test_a_second_death_is_one_sentence(run: Path, how: int, why: str) -> None:
    """Case 17 of 40, whose lines have one size, is in the second of four ranges."""
    before = bytes_of(run)
    with pytest.raises(Unreachable) as caught:
        score(run, 9, how)
    assert caught.value.exit_code == 3
    message = caught.value.message
    assert re.fullmatch(
        r".*results\.jsonl: range 2 of 4 \(bytes \d+ to \d+\) was tried twice in a worker "
        rf"process, which {why}\. Nothing was written: free memory, or score with --jobs 1\.",
        message,
    ), message
    assert len(list((run.parent / "log").glob("death *"))) == 2
    assert str(os.getpid()) not in {p.name.split()[1] for p in (run.parent / "log").glob("q*")}
    assert bytes_of(run) == before
    assert not [path for path in run.iterdir() if path.name.startswith(".")]

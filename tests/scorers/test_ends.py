"""A scorer that is ended from outside: its workers end too, and nothing of it stays on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.processes import gone

import storage
from scorers import loop
from scorers.retrieval import RetrievalScorer

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
BUSY = """
import os, sys
from pathlib import Path
import click, options
from scorers import loop
from scorers.retrieval import RetrievalScorer

class Busy(RetrievalScorer):
    key = lambda *_: None  # all go through score

    def score(self, case, result):
        Path(f"at.{os.getpid()}").touch()
        while True:
            pass

@options.command()
@click.argument("jobs", type=int)
def main(jobs):
    loop.score_run(Path("run"), Path("set.jsonl"), Busy(), jobs=jobs)

main()
"""
"""A script whose scorer never ends and says which processes it runs in."""
Started = tuple["subprocess.Popen[str]", list[int]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run of 50 cases, its set beside it."""
    folder = tmp_path / "run"
    folder.mkdir()
    ids = [f"q{n}" for n in range(50)]
    cases = [{"id": name, "question": "?", "relevant_chunks": ["a"]} for name in ids]
    answers = [{"test_case_id": name, "retrieved": ["a"]} for name in ids]
    for path, rows in ((tmp_path / "set.jsonl", cases), (folder / "results.jsonl", answers)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def busy(run: Path) -> Iterator[Callable[[int], Started]]:
    """Starts the script; gives it and the ids of the processes that score, once all of them do."""
    started: list[subprocess.Popen[str]] = []
    scoring_in: list[int] = []

    def start(jobs: int) -> Started:
        code = f"import sys; sys.path.insert(0, {str(Path(storage.__file__).parent)!r})\n{BUSY}"
        words = [sys.executable, "-c", code, str(jobs)]
        process = subprocess.Popen(words, cwd=run.parent, stderr=subprocess.PIPE, text=True)
        started.append(process)
        while len(found := list(run.parent.glob("at.*"))) < jobs:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
        for path in found:
            path.unlink()
        pids = [int(path.suffix[1:]) for path in found]
        scoring_in.extend(pids)
        return process, pids

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
    for pid in scoring_in:
        if not gone(pid):  # the test has failed: they would be busy for ever
            os.kill(pid, signal.SIGKILL)
    for process in started:
        process.communicate()


def leftovers(run: Path) -> list[str]:
    return sorted(path.name for path in run.iterdir() if path.name.startswith("."))


def wait_until_gone(pids: list[int]) -> None:
    while not all(map(gone, pids)):  # the test's own time limit ends a wait that is in vain
        time.sleep(0.02)


def score(run: Path) -> None:
    loop.score_run(run, run.parent / "set.jsonl", RetrievalScorer(), jobs=1)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_all_of_it_and_leaves_nothing(
    run: Path, busy: Callable[[int], Started], number: int, jobs: int
) -> None:
    process, workers = busy(jobs)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told == "Interrupted. Nothing is half-written: start the same command again.\n"
    wait_until_gone(workers)
    assert sorted(path.name for path in run.iterdir()) == ["results.jsonl"]


def test_workers_end_with_a_killed_scorer_and_the_next_one_clears_up(
    run: Path, busy: Callable[[int], Started]
) -> None:
    process, workers = busy(2)
    assert process.pid not in workers
    process.kill()
    wait_until_gone(workers)
    (run / "scores").mkdir()
    for left in (run / ".metrics.json.ab12cd_x", run / "scores/.retrieval.jsonl.ab12cd_x"):
        left.write_text("{")  # as a kill amid the writing leaves it
    score(run)
    assert leftovers(run) == []
    assert [path.name for path in (run / "scores").iterdir()] == ["retrieval.jsonl"]
    assert (run / "metrics.json").exists()


def test_a_signal_that_is_ignored_from_the_start_stays_so(
    run: Path, busy: Callable[[int], Started]
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what nohup does
    try:
        process, _ = busy(1)
    finally:
        signal.signal(signal.SIGHUP, before)
    os.kill(process.pid, signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)

"""Scoring on a real scheduler with real workers, each a process of its own: the same bytes as here,
whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.scorers.slow_section import SlowScorer

from formats.shared.cutting import CutRequest, cut
from records.errors import StorageError, Unreachable
from records.runs import METRICS, scores_file
from scorers import SECTIONS
from scorers.contract import ScoringJob
from scorers.loop import score_run
from scorers.sections import try_section
from scorers.workers import Cluster, cluster

ROOT = Path(__file__).parents[2]
CASES = 24
SECTION_NAMES = ("retrieval", "groundedness", "context", "abstention", "pipeline")


class Processes:
    """A scheduler and its workers, as docs/scale.md starts them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join([str(ROOT / "eval" / "scripts"), str(ROOT)])
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--no-dashboard"],
            env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.running.append(process)
        return process

    def scheduler(self) -> subprocess.Popen[bytes]:
        file = self._folder / f"scheduler-{len(self.running)}.json"
        process = self.start("scheduler", "--port", "0", "--scheduler-file", str(file))
        while not self.address or not file.exists():
            time.sleep(0.02)
            with suppress(OSError, ValueError):
                self.address = json.loads(file.read_bytes())["address"]
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        words = ("--nthreads", "1", "--no-nanny", "--local-directory", str(self._folder))
        return self.start("worker", self.address, *words)

    def wait_for(self, workers: int) -> None:
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)

    def end(self) -> None:
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    pytest.importorskip("distributed")
    started = Processes(tmp_path_factory.mktemp("cluster"))
    started.scheduler()
    for _ in range(2):
        started.worker()
    started.wait_for(2)
    yield started
    started.end()


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with labels, failed calls and repeats; its set is set.jsonl beside it."""
    run = tmp_path / "run"
    run.mkdir()
    cases, answers = [], []
    for n in range(CASES):
        gold = [{"rel_path": f"doc{n % 7}.md", "heading_path": "A"}]
        case = {"id": f"q{n:02}", "question": f"What does item {n} cost?", "gold_supports": gold}
        cases.append(case | {"answerable": n % 5 > 0, "tags": [f"t{n % 3}"]})
        texts = [f"Item {m} costs {m}.50 euros. It is sold in {m} shops." for m in (n, n + 1)]
        retrieved = [
            {"chunk_id": f"c{n}-{at}", "rel_path": f"doc{(n + at) % 7}.md", "heading_path": "A"}
            | {"text": text, "text_length": len(text), "rank": at + 1}
            for at, text in enumerate(texts)
        ]
        for repeat in range(1 + (n % 4 == 0)):
            answer = f"Item {n} costs {n + repeat}.50 euros [1]. It is sold in {n} shops [2]."
            row: dict[str, Any] = {"test_case_id": case["id"], "repeat": repeat}
            row |= {"latency_ms": {"total": 100.0 + 7 * n}, "retrieved": retrieved}
            error = {"status": "error", "error": {"kind": "timeout"}, "retrieved": []}
            answers.append(row | (error if n % 9 == 3 else {"answer": answer}))
    write(tmp_path / "set.jsonl", cases)
    write(run / "results.jsonl", answers)
    (tmp_path / "labels").mkdir()
    labels = [{"case_id": f"q{n:02}", "min_citations": 1} for n in range(0, CASES, 2)]
    write(tmp_path / "labels" / "pipeline_labels.jsonl", labels)
    return run


def files_of(run: Path, workers: Cluster | None, jobs: int, cut_set: str = "") -> list[bytes]:
    """metrics.json and the score lines of all sections, scored in a copy of the run."""
    copy = run.parent / f"{run.name}-{jobs}-{workers is not None}-{bool(cut_set)}" / run.name
    shutil.copytree(run, copy)
    eval_set = run.parent / "set.jsonl"
    if cut_set:
        cut(CutRequest(copy, eval_set, copy.parent / cut_set, 5))
        eval_set = copy.parent / cut_set
    job = ScoringJob(copy, eval_set, run.parent / "labels", jobs=jobs)
    for name in SECTION_NAMES:
        assert try_section(name, job, {}, workers).status == "scored"
    assert not [path for path in copy.iterdir() if path.name.startswith(".")]
    return [(copy / METRICS).read_bytes()] + [
        scores_file(copy, name).read_bytes() for name in SECTION_NAMES
    ]


@pytest.mark.slow
def test_every_section_gives_the_same_bytes_wherever_it_is_scored(
    run: Path, processes: Processes
) -> None:
    serial = files_of(run, None, 1)
    assert json.loads(serial[0])["labels_sha256"]
    assert files_of(run, None, 2) == serial  # a pool, although there are labels
    with cluster(processes.address) as workers:
        assert workers is not None
        assert workers.threads == 2
        assert files_of(run, workers, 8) == serial
        assert files_of(run, workers, 3, "in-parts") == serial


def test_ids_of_two_ranges_are_compared_although_workers_hash_otherwise(
    run: Path, processes: Processes
) -> None:
    eval_set = run.parent / "set.jsonl"
    eval_set.write_text(eval_set.read_text() + '{"id": "q00", "question": "Again?"}\n')
    job = ScoringJob(run, eval_set, run.parent / "labels", jobs=4)
    with (
        cluster(processes.address) as workers,
        pytest.raises(StorageError, match=r"set\.jsonl:25: id: 'q00' is also the id of line 1"),
    ):
        try_section("retrieval", job, {}, workers)


def logged(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def when(happened: Callable[[], bool], action: Callable[[], None]) -> None:
    """Do something in mid-run, beside the scoring."""

    def wait() -> None:
        while not happened():
            time.sleep(0.01)
        action()

    threading.Thread(target=wait, daemon=True).start()


def score_on(address: str, run: Path, eval_set: Path, scorer: SlowScorer) -> None:
    with cluster(address) as workers:
        assert workers is not None
        score_run(run, eval_set, scorer, jobs=8, executor=workers.executor)


def test_a_killed_worker_loses_and_doubles_nothing(
    run: Path, processes: Processes, tmp_path: Path
) -> None:
    eval_set, log = tmp_path / "set.jsonl", tmp_path / "log"
    score_run(run, eval_set, SlowScorer(tmp_path / "other"), jobs=1)
    serial = [(run / METRICS).read_bytes(), scores_file(run, "slow").read_bytes()]
    victim = processes.running[1]
    when(lambda: sum(line.startswith(f"{victim.pid} ") for line in logged(log)) > 4, victim.kill)
    score_on(processes.address, run, eval_set, SlowScorer(log, 0.01))
    assert victim.wait(60) == -9
    assert [(run / METRICS).read_bytes(), scores_file(run, "slow").read_bytes()] == serial
    assert (
        len(logged(log)) > len(serial[1].splitlines()) - 5
    )  # what the dead one did, was done again


def test_who_cannot_be_reached_is_one_sentence() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(StorageError, match=r"write tcp://HOST:PORT"), cluster("nonsense://x"):
        pass
    assert SECTIONS["judged"].runs_on == "here"


def test_a_killed_scheduler_is_one_sentence_and_what_was_scored_is_kept(
    run: Path, processes: Processes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The last test: the scheduler is the one of all."""
    eval_set, log = tmp_path / "set.jsonl", tmp_path / "log"
    score_run(run, eval_set, SlowScorer(tmp_path / "other"), jobs=1)
    serial = [(run / METRICS).read_bytes(), scores_file(run, "slow").read_bytes()]
    scored = len(logged(tmp_path / "other"))
    when(lambda: len(logged(log)) > scored // 2, processes.running[0].kill)
    with pytest.raises(Unreachable, match=r"was lost. All scores so far are kept") as caught:
        score_on(processes.address, run, eval_set, SlowScorer(log, 0.01))
    assert caught.value.exit_code == 3
    assert capfd.readouterr().err == ""
    assert [(run / METRICS).read_bytes(), scores_file(run, "slow").read_bytes()] == serial
    before = len(logged(log))
    with ThreadPoolExecutor(2) as executor:  # whoever does what is left
        score_run(run, eval_set, SlowScorer(log), jobs=8, executor=executor)
    assert 0 < len(logged(log)) - before < scored  # not all of it again
    assert [(run / METRICS).read_bytes(), scores_file(run, "slow").read_bytes()] == serial
    assert not [path for path in run.iterdir() if path.name.startswith(".")]

"""kill -9 in the middle of judging by batches: nothing is lost, and no request is paid twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scripts.judging.conftest import JudgedRun

from extras.batch.tests.provider import KEY, Provider

EXTRA = Path(__file__).resolve().parents[1]
SCRIPTS = EXTRA.parents[1] / "scripts"
KILLS = int(os.environ.get("BATCH_KILLS", "8"))
ANSWERS = 40
STEPS = 8
"""Out, submit, fetch and import, in each of two rounds."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    running = Provider()
    running.looks, running.delay = 0, 0.05
    yield running
    running.shutdown()
    running.server_close()


class Batches:
    """A folder of batches that is carried on by processes, of which some are killed."""

    def __init__(self, run: JudgedRun, provider: Provider, kills: int) -> None:
        self.folder = run.finished.folder / "batches"
        self.cache = run.finished.folder / "cache"
        self._provider, self._run, self._a_step = provider, run, kills // STEPS
        self.killed: Counter[str] = Counter()
        self._chance = random.Random(7)

    def judge(self, *words: str) -> list[str]:
        finished = self._run.finished
        return [
            *(sys.executable, str(SCRIPTS / "judge_answers.py"), "--run", str(finished.run)),
            *("--eval-set", str(finished.folder / "set.jsonl"), "--cache-dir", str(self.cache)),
            *("--judge", self._provider.url, "--model", "judge-2025-01-01"),
            *("--set", "revision=r1", "--set", "api_key=BATCH_KEY", "--set", "retries=0", *words),
        ]

    def take_in(self) -> list[str]:
        results = map(str, sorted(self.folder.glob("*.results.jsonl")))
        command = [sys.executable, str(EXTRA / "import_results.py"), *results]
        return [*command, "--cache-dir", str(self.cache / "judge_cache.jsonl")]

    def carry_on(self, name: str, command: list[str]) -> str:
        """Run a command until it ends by itself, after some kills of it."""
        for _ in range(self._a_step):
            with self._started(command) as process:
                self._wait_for_the_moment(process)
                process.kill()
                process.communicate()
            self.killed[name] += process.returncode == -signal.SIGKILL
        with self._started(command) as process:
            text, _ = process.communicate()
        assert process.returncode == 0, text
        return text

    def _started(self, command: list[str]) -> subprocess.Popen[str]:
        pipe, own = subprocess.PIPE, {**os.environ, "BATCH_KEY": KEY}
        return subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=own)

    def _wait_for_the_moment(self, process: subprocess.Popen[str]) -> None:
        """Some calls or changes of a file further on, and a little later; or any time."""
        begun, before, seen = time.monotonic(), self._sizes(), self._provider.seen
        calls, late = self._chance.randint(1, 6), self._chance.uniform(0, 0.08)
        limit = self._chance.choice([20, self._chance.uniform(0.2, 2)])
        while process.poll() is None and time.monotonic() < begun + limit:
            if self._provider.seen >= seen + calls or self._sizes() != before:
                time.sleep(late)
                return
            time.sleep(0.001)

    def _sizes(self) -> list[tuple[str, int]]:
        sizes = []
        for path in (*self.folder.glob("*.jsonl"), self.cache / "judge_cache.jsonl"):
            with contextlib.suppress(OSError):
                sizes.append((path.name, path.stat().st_size))
        return sorted(sizes)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_anywhere_nothing_is_lost_or_paid_twice(run: JudgedRun, provider: Provider) -> None:
    """Facts first, then correctness: two rounds of --batch-out, submit, fetch, import."""
    names = [f"case{number}" for number in range(ANSWERS)]
    cases = [{"id": name, "reference_answer": f"The tour begins at {name}."} for name in names]
    run.write(cases, [run.result(name, f"The tour of {name} begins at noon.") for name in names])
    batches = Batches(run, provider, KILLS)
    metrics = ("--metrics", "groundedness,correctness")
    rounds = 0
    while rounds < 4:
        folder = str(batches.folder)
        text = batches.carry_on("out", batches.judge(*metrics, "--batch-out", folder))
        if "Nothing is left to ask" in text:
            break
        rounds += 1
        batches.carry_on("submit", batches.judge("--batch-submit", folder))
        batches.carry_on("fetch", batches.judge("--batch-fetch", folder))
        batches.carry_on("import", batches.take_in())
    assert rounds == 2
    assert provider.refused == []
    # groundedness of every answer, the facts of every reference, then correctness
    assert len(provider.paid) == 3 * ANSWERS
    assert set(provider.paid.values()) == {1}
    entries = (batches.cache / "judge_cache.jsonl").read_text("utf-8").splitlines()
    keys = [json.loads(line)["key"] for line in entries]
    assert sorted(set(keys)) == sorted(provider.paid)
    assert len(keys) == 3 * ANSWERS
    scored: dict[str, Any] = run.judge(
        *("--model", "judge-2025-01-01", "--set", "revision=r1", "--offline", *metrics)
    )
    assert scored["n"]["correctness"] == ANSWERS
    assert batches.killed.total() or not KILLS
    print(f"{batches.killed.total()} kills: {dict(batches.killed)}")  # shown with -s

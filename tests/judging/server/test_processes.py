"""Real processes: two share the cache, one is killed, one is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import options
from clients.http import ask_all
from judging.cache import VerdictCache
from records.runs import JUDGE_CACHE

SCRIPTS = Path(options.__file__).resolve().parents[1]
ASK = """
import json, sys, threading
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from clients.http import ask_all
from judging.cache import CachedJudge, VerdictCache
from judging.cost import JudgingTotals
from judging.server import HttpJudge
from judging.types import JudgeTask, PromptId

url, path, first, last = sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
schema = {"type": "object"}
def task(n):
    messages = ({"role": "system", "content": "s"}, {"role": "user", "content": f"item {n}."})
    prompt = PromptId("p", 1, "00")
    return JudgeTask("m", prompt, messages, messages, schema, lambda reply: (), {})
stop = threading.Event()
judge = HttpJudge(url, "judge-2024-08-06", stop=stop)
judge.identify()
judge.probe()
totals = JudgingTotals()
cached = CachedJudge(judge, VerdictCache(path))
for verdict in ask_all(map(task, range(first, last)), cached.ask, 4, stop):
    totals.add(verdict)
print(json.dumps(totals.to_dict()))
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(fake_judge: Any, tmp_path: Path) -> Start:
    """Starts a process that judges items first to last with the cache of this test."""
    fake_judge.answer = lambda body: {"text": body["messages"][1]["content"]}

    def run(first: int, last: int) -> subprocess.Popen[str]:
        words = [fake_judge.url, str(tmp_path / JUDGE_CACHE), str(first), str(last)]
        return subprocess.Popen(
            [sys.executable, "-c", ASK, str(SCRIPTS), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return run


def totals_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def items(fake_judge: Any) -> Counter[str]:
    return Counter(body["messages"][1]["content"] for body in fake_judge.chats())


def whole_lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not what():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_two_processes_share_the_cache(fake_judge: Any, start: Start, tmp_path: Path) -> None:
    fake_judge.bot.delay = 0.005
    first, second = start(0, 120), start(60, 180)
    found = [totals_of(first), totals_of(second)]
    lines = whole_lines(tmp_path / JUDGE_CACHE)
    assert all(one["failures"] == {} for one in found)
    assert len({line["key"] for line in lines}) == 180
    # what both asked for in the same moment may be there twice, with the same words
    texts = {line["key"]: line["data"] for line in lines}
    assert all(texts[line["key"]] == line["data"] for line in lines)
    assert VerdictCache(tmp_path / JUDGE_CACHE).unreadable == 0
    asked = sum(items(fake_judge).values())
    assert asked == len(lines) == sum(one["verdicts"] - one["cached"] for one in found)
    again = totals_of(start(0, 180))
    assert (again["cached"], again["calls"]) == (180, 0)


def test_after_a_kill_only_what_was_in_flight_is_asked_again(
    fake_judge: Any, start: Start, tmp_path: Path
) -> None:
    fake_judge.bot.delay = 0.02
    path = tmp_path / JUDGE_CACHE
    process = start(0, 60)
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 20, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = {line["data"]["text"] for line in whole_lines(path)}
    with open(path, "ab") as file:  # as if it had been killed while it wrote
        file.write(b'{"format":1,"key":"')
    before = items(fake_judge)
    found = totals_of(start(0, 60))
    again = items(fake_judge) - before
    assert found["verdicts"] == 60
    assert found["cached"] == len(kept) >= 20
    assert not set(again) & kept
    twice = set(again) & set(before)
    assert len(twice) <= 4, "more than the four that were in flight"
    assert len(whole_lines(path)) == 60


def test_an_interrupt_ends_at_once_and_keeps_what_was_paid(
    fake_judge: Any, start: Start, tmp_path: Path
) -> None:
    path = tmp_path / JUDGE_CACHE
    fake_judge.script("item 30.", lambda exchange: exchange.hang())
    process = start(0, 40)
    wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 39, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert len(whole_lines(path)) == 39


def test_tasks_are_taken_when_they_are_needed(fake_judge: Any, judge: Any, task: Any) -> None:
    taken: list[int] = []

    def tasks() -> Any:
        for number in range(10_000):
            taken.append(number)
            yield task(f"subject {number}")

    stop = threading.Event()
    client = judge(stop=stop)
    verdicts = ask_all(tasks(), client.ask, 4, stop)
    assert all(next(verdicts).ok for _ in range(10))
    verdicts.close()
    assert stop.is_set()
    assert len(taken) < 1000

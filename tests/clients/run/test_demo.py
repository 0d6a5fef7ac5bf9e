"""--api-url demo: the embedded API as a child process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import run_eval
import storage

SCRIPT = Path(run_eval.__file__)


@pytest.fixture
def two_cases(tmp_path: Path) -> Path:
    path = tmp_path / "set.jsonl"
    lines = [
        {"id": "a", "question": "What does a lambda expression yield?"},
        {"id": "b", "question": "Which cheese goes on a pizza?"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def demo_command(two_cases: Path, *words: str) -> list[str]:
    folder = two_cases.parent
    return [
        *(sys.executable, str(SCRIPT), "--eval-set", str(two_cases)),
        *("--results-dir", str(folder / "results"), "--run-id", "r", "--api-url", "demo"),
        *("--set", "lexical_only=true", "--set", f"cache_dir={folder / 'cache'}", *words),
    ]


def test_the_embedded_api_is_started_asked_and_stopped(two_cases: Path) -> None:
    done = subprocess.run(demo_command(two_cases, "-v"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    first, second = storage.iter_results(folder / "results.jsonl")
    assert first.status == second.status == "ok"
    assert "lambda" in (first.answer or "").lower()
    assert len(first.chunks()) == 10
    assert {"retrieve", "generate", "total"} <= first.latency_ms.keys()
    config = storage.read_config(folder)
    assert config.api["url"] == "demo"
    assert config.index["corpus_hash"]
    assert config.retriever["vector_weight"] == 0
    assert config.answerer["model"]


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("chunk-size=400", "chunk-size: is unknown; write chunk_size"),
        ("chunk_size=9", "chunk_size: must be a whole number from 100 up to 100000"),
        ("vault=no/such/folder", "refused its settings"),
    ],
)
def test_the_embedded_api_refuses_its_options(two_cases: Path, option: str, says: str) -> None:
    words = demo_command(two_cases, "--set", option)
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (two_cases.parent / "results").exists()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the child in /proc")
def test_the_embedded_api_does_not_outlive_a_killed_run(two_cases: Path, fake_bot: Any) -> None:
    eval_set = two_cases.read_text()
    many = [eval_set.replace('"a"', f'"a{n}"').replace('"b"', f'"b{n}"') for n in range(2000)]
    two_cases.write_text("".join(many))
    process = subprocess.Popen(
        demo_command(two_cases, "-q", "--set", "concurrency=1"), stdout=subprocess.DEVNULL
    )
    partial = two_cases.parent / "results" / "r" / "results.partial.jsonl"
    while process.poll() is None and not partial.exists():
        threading.Event().wait(0.01)
    children = child_ids(process.pid)
    assert len(children) == 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(3000):
        if not Path(f"/proc/{children[0]}/stat").exists() or is_zombie(children[0]):
            break
        threading.Event().wait(0.01)
    else:
        os.kill(children[0], signal.SIGKILL)
        pytest.fail("the server is still there")


def child_ids(parent: int) -> list[int]:
    found: list[int] = []
    for path in Path(f"/proc/{parent}/task").glob("*/children"):
        found += map(int, path.read_text().split())
    return found


def is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True

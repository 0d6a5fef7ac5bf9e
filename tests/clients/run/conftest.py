"""Command lines of run_eval.py against the scripted bot, as a process or inside this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import run_eval

SCRIPT = Path(run_eval.__file__)
SECRET = "tok-5f3a9c/ä+"


def write_set(folder: Path, count: int) -> Path:
    """q0, q1, …: half of them factual, half reasoning; every third with the tag ``t``."""
    path = folder / "set.jsonl"
    cases = [
        {
            "id": f"q{n}",
            "question": f"question {n}",
            "category": ("factual", "reasoning")[n % 2],
            "difficulty": "easy" if n < 2 else "hard",
            "answerable": n != 3,
            "tags": ["t"] if n % 3 == 0 else [],
        }
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


@pytest.fixture
def environment() -> dict[str, str]:
    """Nothing of the developer's own settings, but a secret."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAG_EVAL_")}
    return kept | {"RAG_EVAL_CONFIG": os.devnull, "BOT_TOKEN": SECRET, "NO_COLOR": "1"}


@pytest.fixture
def command(tmp_path: Path, fake_bot: Any) -> Callable[..., list[str]]:
    """The command line of a quick run into ``tmp_path/results``."""

    def build(*words: str | Path, cases: int = 5, url: str | None = None) -> list[str]:
        eval_set = tmp_path / "set.jsonl"
        if not eval_set.exists():
            write_set(tmp_path, cases)
        return [
            *(sys.executable, str(SCRIPT), "--eval-set", str(eval_set)),
            *("--results-dir", str(tmp_path / "results")),
            *(() if "--from-jsonl" in words else ("--api-url", url or fake_bot.url)),
            *("--set", "backoff=0.001", "--set", "timeout=20"),
            *map(str, words),
        ]

    return build


Ended = subprocess.CompletedProcess[str]


def check(done: Ended, ends: int) -> Ended:
    assert done.returncode == ends, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def run(command: Callable[..., list[str]], environment: dict[str, str]) -> Callable[..., Ended]:
    """A process, which must end with the code ``ends``."""

    def call(*words: str | Path, ends: int = 0, before: Any = None, **more: Any) -> Ended:
        line, limit = command(*words, **more), 120
        done = subprocess.run(
            line, capture_output=True, text=True, env=environment, timeout=limit, preexec_fn=before
        )
        return check(done, ends)

    return call


@pytest.fixture
def invoke(command: Callable[..., list[str]], environment: dict[str, str]) -> Callable[..., Ended]:
    """The same inside this process, for what does not depend on a process."""

    def call(*words: str | Path, ends: int = 0, **more: Any) -> Ended:
        line = command(*words, **more)
        own: dict[str, str | None] = dict.fromkeys(
            name for name in os.environ if name.startswith("RAG_EVAL_")
        )
        done = CliRunner().invoke(run_eval.main, line[2:], env=own | environment)
        return check(Ended(line, done.exit_code, done.stdout, done.stderr), ends)

    return call


@pytest.fixture
def read() -> Callable[..., list[dict[str, Any]]]:
    """The lines of a run's results."""

    def lines(folder: Path, name: str = "results.jsonl") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text().splitlines()]

    return lines

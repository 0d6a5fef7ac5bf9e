"""Command lines of run_eval.py against the scripted bot, as a process or inside this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


Ended = subprocess.CompletedProcess[str]


class Desk:
    """A folder with the results of runs, and the scripted bot that is asked."""

    def __init__(self, folder: Path, bot: Any) -> None:
        self.folder, self.bot = folder, bot
        own = {name: value for name, value in os.environ.items() if name[:9] != "RAG_EVAL_"}
        plain = {"RAG_EVAL_CONFIG": os.devnull, "BOT_TOKEN": SECRET, "NO_COLOR": "1"}
        self.environment = own | plain
        """Nothing of the developer's own settings, but a secret."""

    def command(self, *words: str | Path, cases: int = 5, url: str | None = None) -> list[str]:
        """The command line of a quick run into ``results``."""
        eval_set = self.folder / "set.jsonl"
        if not eval_set.exists():
            write_set(self.folder, cases)
        return [
            *(sys.executable, str(SCRIPT), "--eval-set", str(eval_set)),
            *("--results-dir", str(self.folder / "results")),
            *(() if "--from-jsonl" in words else ("--api-url", url or self.bot.url)),
            *("--set", "backoff=0.001", "--set", "timeout=20"),
            *map(str, words),
        ]

    def run(self, *words: str | Path, ends: int = 0, before: Any = None, **more: Any) -> Ended:
        """A process, which must end with the code ``ends``."""
        done = subprocess.run(
            self.command(*words, **more),
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=120,
            preexec_fn=before,
        )
        return self._checked(done, ends)

    def invoke(self, *words: str | Path, ends: int = 0, **more: Any) -> Ended:
        """The same inside this process, for what does not depend on a process."""
        line = self.command(*words, **more)
        own: dict[str, str | None] = dict.fromkeys(n for n in os.environ if n[:9] == "RAG_EVAL_")
        done = CliRunner().invoke(run_eval.main, line[2:], env=own | self.environment)
        return self._checked(Ended(line, done.exit_code, done.stdout, done.stderr), ends)

    @staticmethod
    def _checked(done: Ended, ends: int) -> Ended:
        assert done.returncode == ends, done.stderr
        assert "Traceback" not in done.stderr
        return done

    def read(self, folder: Path, name: str = "results.jsonl") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text().splitlines()]

    def results(self, run_id: str, name: str = "results.jsonl") -> list[dict[str, Any]]:
        """The lines of a run's results."""
        return self.read(self.folder / "results" / run_id, name)

    def config(self, run_id: str) -> dict[str, Any]:
        path = self.folder / "results" / run_id / "config.json"
        whole: dict[str, Any] = json.loads(path.read_text())
        return whole


@pytest.fixture
def desk(tmp_path: Path, fake_bot: Any) -> Desk:
    return Desk(tmp_path, fake_bot)

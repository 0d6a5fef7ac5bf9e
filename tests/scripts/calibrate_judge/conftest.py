"""A judged and labelled run, and calibrate_judge.py as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.validation.judge.judged_run import JudgedRun, mixed

import options

SCRIPT = Path(options.__file__).with_name("calibrate_judge.py")


@pytest.fixture
def labelled(tmp_path: Path) -> JudgedRun:
    """100 answers of two claims; people labelled both claims of the first 80."""
    run = JudgedRun(tmp_path)
    answers, labels = mixed(100)
    run.write(answers)
    chosen = list(labels.items())[:160]
    run.label([run.label_line(case, number, said) for (case, number), said in chosen])
    return run


@pytest.fixture
def calibrate() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The script on a run, or on none, with these words behind; ``typed`` on stdin."""

    def call(
        run: JudgedRun | None, *words: str, typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        kept = {key: text for key, text in os.environ.items() if not key.startswith("RAG_EVAL_")}
        return subprocess.run(
            [sys.executable, str(SCRIPT), *(run.options() if run else []), *words],
            env=kept | {"RAG_EVAL_CONFIG": os.devnull, "COLUMNS": "80"},
            input=typed,
            capture_output=True,
            encoding="utf-8",
        )

    return call

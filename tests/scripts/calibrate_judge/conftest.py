"""A judged and labelled run, and calibrate_judge.py as a user calls it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import call_script
from tests.validation.judge.judged_run import JudgedRun, mixed


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
        arguments = [*(run.options() if run else []), *words]
        return call_script("calibrate_judge", *arguments, typed=typed)

    return call

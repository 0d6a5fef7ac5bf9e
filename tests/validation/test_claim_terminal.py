"""Labelling verdicts in a real terminal: kill -9, signals, no colour."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.validation.judge.judged_run import JudgedRun, mixed

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "eval" / "scripts" / "calibrate_judge.py"


@pytest.fixture
def judged(tmp_path: Path) -> Any:
    """A judged run of six answers on disk."""
    made = JudgedRun(tmp_path)
    made.write(mixed(6)[0])
    return made


@pytest.fixture
def start(judged: Any, pseudo_terminal: Callable[..., Any]) -> Callable[..., Any]:
    def run_it(*options: str, env: Any = None) -> Any:
        argv = [sys.executable, str(SCRIPT), *judged.options(), "--label", *options]
        quiet = {"RAG_EVAL_CONFIG": os.devnull}
        return pseudo_terminal(
            [*argv, "--annotator", "maria"], columns=80, rows=24, env=quiet | (env or {})
        )

    return run_it


def labels_of(judged: Any) -> list[Any]:
    path = judged.folder / "labels" / "verdicts" / "maria.jsonl"
    return [json.loads(line)["label"] for line in path.read_text().splitlines()]


def close_opening(terminal: Any) -> None:
    """Before the first label stands what the run can give."""
    terminal.wait_for(b"Press any key to continue")
    terminal.write(b"\r")


def test_every_key_survives_kill_9(start: Callable[..., Any], judged: Any) -> None:
    keys = (b"1", b"2", b"3", b"u")
    for number, key in enumerate(keys, 1):
        with start() as terminal:
            if number == 1:
                close_opening(terminal)
            terminal.wait_for(b"judge hidden")
            terminal.write(key)
            terminal.wait_for(b"undone" if key == b"u" else b" done, ")
            while len(labels_of(judged)) < number:  # the fixture's time limit ends a lost label
                terminal.read()
            terminal.kill(signal.SIGKILL)
            terminal.wait()
    assert labels_of(judged) == ["supported", "not_supported", "cannot_tell", None]


def test_sigterm_ends_it_cleanly_and_the_report_follows_a_quit(
    start: Callable[..., Any], judged: Any
) -> None:
    with start() as terminal:
        terminal.wait_for(b"judge hidden")
        terminal.kill(signal.SIGTERM)
        assert terminal.wait() == 130
    with start() as terminal:
        close_opening(terminal)
        terminal.wait_for(b"judge hidden")
        terminal.write(b"1")
        while not labels_of(judged):
            terminal.read()
        terminal.write(b"q")
        terminal.wait_for(b"Too few to calibrate")
        assert terminal.wait() == 0
    assert json.loads((judged.run / "calibration.json").read_text())["n"] == 1

"""The examples of docs/examples: their commands are real ones, with options that exist."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from tests.rows import each_row

import gate_run
from decisions.gate_print import MARKER

EXAMPLES = Path(gate_run.__file__).resolve().parents[2] / "docs" / "examples"
FILES = ["nightly.sh", "github-actions.yml"]
COMMAND = re.compile(r"eval/scripts/(\w+)\.py((?:[^\n\\]|\\\n)*)")


@each_row("name", FILES)
def test_the_commands_have_the_options_they_use(name: str) -> None:
    text = (EXAMPLES / name).read_text("utf-8")
    found = COMMAND.findall(text)
    assert {"run_eval", "eval_suite", "track_metrics"} <= {script for script, _ in found}
    for script, words in found:
        command = importlib.import_module(script).main
        assert isinstance(command, click.Command)
        known = {
            option for param in command.params for option in (*param.opts, *param.secondary_opts)
        }
        assert set(re.findall(r"(?<!\S)--[a-z-]+", words)) <= known, (script, words)


def test_the_comment_is_found_by_the_marker_that_the_gate_writes() -> None:
    assert f'startswith("{MARKER}")' in (EXAMPLES / "github-actions.yml").read_text("utf-8")


def test_the_history_job_fetches_the_history() -> None:
    assert "fetch-depth: 0" in (EXAMPLES / "github-actions.yml").read_text("utf-8")


@pytest.mark.skipif(shutil.which("sh") is None, reason="no sh")
def test_the_nightly_script_is_sound_and_says_what_it_needs() -> None:
    path = EXAMPLES / "nightly.sh"
    assert subprocess.run(["sh", "-n", str(path)]).returncode == 0
    done = subprocess.run(["sh", str(path)], env={}, capture_output=True, encoding="utf-8")
    assert done.returncode != 0
    assert "say which bot to ask" in done.stderr

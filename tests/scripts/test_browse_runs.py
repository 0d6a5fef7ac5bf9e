"""The command line of browse_runs.py: what it refuses, before any screen is drawn."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.processes import call_script


def browse(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script with pipes in place of a terminal."""
    words = ("--results-dir", str(folder), *arguments)
    return call_script("browse_runs", *words, cwd=folder, COLUMNS="400")


def make_run(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(json.dumps({"schema": 1, "run_id": name}))
    (folder / name / "results.jsonl").write_text('{"test_case_id":"a"}\n')


def refused(folder: Path, *arguments: str) -> str:
    done = browse(folder, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_without_a_terminal_it_says_what_to_use_instead(tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    said = refused(tmp_path, "one")
    assert "stdin is not a terminal" in said
    assert "report_run.py" in said


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    said = refused(tmp_path, "two")
    assert "run 'two': no such folder" in said
    assert "the newest are: one" in said
    assert "'two'" in refused(tmp_path, "one", "two")


def test_latest_needs_a_complete_run(tmp_path: Path) -> None:
    assert "has no complete run" in refused(tmp_path, "latest")


def test_three_runs_are_too_many(tmp_path: Path) -> None:
    assert "name one run, or two to compare" in refused(tmp_path, "a", "b", "c")


def test_one_name_twice_is_no_comparison(tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    assert "the same run" in refused(tmp_path, "one", "one")


def test_nothing_is_written(tmp_path: Path) -> None:
    make_run(tmp_path, "one")
    before = sorted(tmp_path.rglob("*"))
    browse(tmp_path, "one")
    assert sorted(tmp_path.rglob("*")) == before

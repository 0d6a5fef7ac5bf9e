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


def test_what_it_refuses_in_a_sentence_that_writes_nothing(tmp_path: Path) -> None:
    assert "has no complete run" in refused(tmp_path, "latest")
    make_run(tmp_path, "one")
    before = sorted(tmp_path.rglob("*"))
    for runs, says in (
        (("one",), ("stdin is not a terminal", "report_run.py")),
        (("two",), ("run 'two': no such folder", "the newest are: one")),
        (("one", "two"), ("'two'",)),
        (("a", "b", "c"), ("name one run, or two to compare",)),
        (("one", "one"), ("the same run",)),
    ):
        said = refused(tmp_path, *runs)
        assert all(part in said for part in says), said
    assert sorted(tmp_path.rglob("*")) == before

"""The script as a process: start, readers that leave, a terminal's width, hostile canaries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hostile_runs import (
    READ,
    REFUSED,
    SECRET,
    SETS,
    content_of,
    end_all,
    make_hostile,
    name_commands,
    obeyed,
)
from tests.scripts import on_terminals
from tests.scripts.test_closed_output import end
from tests.scripts.test_hostile_runs import sound as sound

import options
from extras.watch import watch_traces
from extras.watch.tests.conftest import SCRIPT, otlp, trace
from extras.watch.tests.test_canaries import ask

SCRIPT_FILE = Path(watch_traces.__file__)


@pytest.fixture
def words(folder: Path, tmp_path: Path) -> list[str]:
    """A folder with one trace, and canaries of which the second day fails."""
    (folder / "a.jsonl").write_text(otlp(*trace("t")))
    for day, hits in enumerate((40, 0)):
        ask(tmp_path / "canaries", day, hits)
    index = ["--index", str(tmp_path / "index.sqlite"), "--check-share", "0"]
    return [str(folder), *index, "--fail-on", "alarm", "--canaries", str(tmp_path / "canaries")]


def test_a_folder_that_is_missing_ends_a_process_in_order(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT_FILE, "not-there"],
        cwd=tmp_path,
        env=os.environ | {"RAG_EVAL_CONFIG": os.devnull},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: not-there: no such folder of traces.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("both", [False, True], ids=["stdout", "stdout and stderr"])
def test_an_alarm_stands_when_its_reader_has_left(words: list[str], both: bool) -> None:
    code, errors = end(str(SCRIPT_FILE.with_suffix("")), *words, both=both)
    assert "Traceback" not in errors
    assert code == 1, errors


def test_no_line_is_wider_than_the_terminal(words: list[str]) -> None:
    widths = (60, 120)
    scripts = Path(options.__file__).parents[1]
    printed = on_terminals.outputs(
        [(columns, 24, SCRIPT, words) for columns in widths], scripts, scripts.parent
    )
    for columns, (text, code) in zip(widths, printed, strict=True):
        assert code == 1, text
        assert "Canaries: canaries-01 fails the gate" in " ".join(text.split())
        assert on_terminals.too_wide(text, columns) == [], f"at {columns} columns"


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_hands_on_the_folders_as_words(tmp_path: Path) -> None:
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    stub.chmod(0o755)
    root = SCRIPT_FILE.parents[3]
    line = ["make", "-s", "-o", "setup", f"PY={stub}", "watch", "FROM=one", "ARGS=--silent"]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "<eval/extras/watch/watch_traces.py><one><--silent>"


CHANGES = {
    name: (REFUSED | READ | SETS)[name]
    for name in (
        *("results.jsonl is a pipe", "metrics.json is a link to a device"),
        *("config.json has no end", "metrics.json has no end", "scores is a link to a folder"),
        *("the set is a device", "the set is a file", "the set is endless"),
    )
} | {"names": name_commands}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork, pipes and /dev")
def test_canaries_from_somebody_who_means_harm_can_do_nothing(tmp_path: Path, sound: Path) -> None:
    before = {}
    jobs = []
    for place, (name, change) in enumerate(CHANGES.items()):
        own = tmp_path / str(place)
        outside = make_hostile(own, sound, change)
        before[name] = outside, content_of(outside)
        (own / "traces").mkdir()
        words = [str(own / "traces"), "--index", str(own / "i.sqlite"), "--canaries"]
        jobs.append((SCRIPT, [*words, str(own / "results")], str(own)))
    for (name, (outside, content)), ended in zip(before.items(), end_all(jobs), strict=True):
        assert ended.code in (0, 1, 2), (name, ended)
        assert "Traceback" not in ended.err, name
        assert SECRET not in ended.out + ended.err, name
        assert obeyed(ended.out + ended.err) == set(), name
        assert content_of(outside) == content, name

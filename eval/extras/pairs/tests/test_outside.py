"""judge_pairs as a process: a run that is not there, a terminal's width, hostile runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
from tests.processes import call_script
from tests.scripts import on_terminals
from tests.scripts.test_hostile_runs import sound as sound

import options

SCRIPT = "extras.pairs.judge_pairs"
SCRIPTS = Path(options.__file__).parents[1]
CHANGES = {
    name: (REFUSED | READ | SETS)[name]
    for name in (
        *("results.jsonl is a pipe", "metrics.json is a link to a device"),
        *("config.json has no end", "the set is a device", "the set is endless"),
    )
} | {"names": name_commands}


def words_of(folder: Path) -> list[str]:
    own = ["--results-dir", f"{folder}/results", "--eval-set", f"{folder}/set.jsonl"]
    return [*own, "--run", "new", "--base", "base", "--cache-dir", f"{folder}/cache"]


def test_a_run_that_is_missing_is_a_sentence(tmp_path: Path) -> None:
    words = ["--run", "no-such", "--base", "run", "--results-dir", str(tmp_path)]
    done = call_script(SCRIPT, *words)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_no_line_is_wider_than_the_terminal(tmp_path: Path, sound: Path, server: Any) -> None:
    folder = tmp_path / "runs"
    make_hostile(folder, sound, lambda run, outside: None)
    widths = (60, 80)
    words = [*words_of(folder), "--judge", server.url, "--model", server.model]
    calls = [(columns, 24, SCRIPT, [*words, "--dry-run"]) for columns in widths]
    printed = on_terminals.outputs(calls, SCRIPTS, SCRIPTS.parent)
    for columns, (text, code) in zip(widths, printed, strict=True):
        assert code == 0, text
        assert on_terminals.too_wide(text, columns) == [], f"at {columns} columns"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork, pipes and /dev")
def test_a_run_from_somebody_who_means_harm_can_do_nothing(tmp_path: Path, sound: Path) -> None:
    before, jobs = {}, []
    for place, (name, change) in enumerate(CHANGES.items()):
        own = tmp_path / str(place)
        outside = make_hostile(own, sound, change)
        before[name] = outside, content_of(outside)
        jobs.append((SCRIPT, [*words_of(own), "--rescore"], str(own)))
    for (name, (outside, content)), ended in zip(before.items(), end_all(jobs), strict=True):
        assert ended.code in (0, 1, 2), (name, ended)
        assert "Traceback" not in ended.err, name
        assert SECRET not in ended.out + ended.err, name
        assert obeyed(ended.out + ended.err) == set(), name
        assert content_of(outside) == content, name

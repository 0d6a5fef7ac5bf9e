"""What comes out: tables, files of the same bytes every time, pipes and disks that fail."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from storage import TestResult


def test_the_tables_show_targets_slices_and_worst_cases(
    evaluated: Any, chunk: Any, gold: Any
) -> None:
    hostile = "Is [bold]this[/] \x1b]0;owned\x07 safe?"
    cases = [
        {"id": "good", "gold_supports": gold("a.md > A"), "category": "factual"},
        {
            "id": "bad",
            "gold_supports": gold("a.md > A", "b.md > [red]B"),
            "category": "reasoning",
            "question": hostile,
        },
    ]
    results = [
        TestResult("good", retrieved=[chunk("a.md > A")]),
        TestResult("bad", retrieved=[chunk("x.md > X\x1b[2J"), chunk("b.md > [red]B")]),
    ]
    done = evaluated(cases, results).score("--by", "category", "--worst", "1")
    assert done.exit_code == 0
    shown = done.stdout
    assert "recall@5" in shown
    assert "> 0.7" in shown
    assert "factual" in shown
    assert "reasoning" in shown
    assert "gold not retrieved: a.md > A" in shown
    assert "gold found at 2: b.md > [red]B" in shown  # markup is text
    assert "Is [bold]this[/]" in shown
    assert "\x1b]0" not in shown
    assert "\x1b[2J" not in shown


def test_the_note_when_the_set_has_changed(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    with open(run.folder / "set.jsonl", "a") as file:
        file.write('{"id": "new", "question": "Later?"}\n')
    done = run.score()
    assert done.exit_code == 0
    assert "the eval set has changed" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence(evaluated: Any) -> None:
    run = evaluated([{"id": "q", "relevant_chunks": ["a"]}], [TestResult("q")])
    command = run.command("--json")
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert b"the output cannot be written" in done.stderr
    assert b"Traceback" not in done.stderr

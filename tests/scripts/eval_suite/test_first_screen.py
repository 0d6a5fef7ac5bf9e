"""What scripts print without -v: the first screen of a suite, the main metrics of a section."""

from __future__ import annotations

import io
from typing import Any

import pytest
from click.testing import Result
from rich.console import Console

import options
import score_retrieval
from eval_suite import main

TARGETS = '[retrieval]\n"evidence_recall@5" = "> 0.9"\n'


def test_the_first_screen_has_what_a_newcomer_asks(
    write: Any, finished: Any, targets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """9 of 12 cases see their file first, 3 never do; a target on 12 cases is missed."""
    write(9, 3)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(options, "stdout_console", lambda: console)
    words = ("--targets", targets("targets.toml", TARGETS), "--sections", "retrieval")
    assert finished.score(main, *words).exit_code == 0
    lines = screen.getvalue().splitlines()
    assert len(lines) <= 24
    row = next(line for line in lines if line.startswith("evidence_recall@5"))
    assert "0.750" in row
    assert "●" in row
    assert row.rstrip().endswith("> 0.9 ✗")
    assert "3 of 12 cases fail: 3 without a gold passage." in lines
    worst = [line.strip() for line in lines if line.strip().startswith("bad")]
    assert [line.partition(":")[0] for line in worst] == ["bad0", "bad1", "bad2"]
    assert all(": without a gold passage." in line for line in worst)
    assert any(line.startswith("What to do first: ") for line in lines)
    last = " ".join(" ".join(lines[-2:]).split())
    assert last.endswith("Finds all needed evidence in the first 5 passages for 9 of 12 questions.")
    assert "0 of 1 target met, 1 missed" in last


def test_what_is_not_scored_is_one_line(write: Any, finished: Any) -> None:
    """Without labels of prompts and outcomes neither safety nor a pass: one line, reasons in -v.
    A single one has its reason at once."""
    write()
    (finished.folder / "labels/safety_labels.jsonl").unlink()
    both = finished.score(main, "--sections", "safety,pipeline,retrieval")
    assert "Not scored: safety, pass (-v says why)." in both.stdout.splitlines()
    assert "_labels.jsonl" not in both.stdout
    why = "pipeline: pass is not measured: label expected_outcome"
    assert why in finished.score(main, "--sections", "pipeline,retrieval").stdout
    whole = finished.score(main, "--sections", "safety,pipeline,retrieval", "-v").stdout
    assert why in whole
    assert "safety: not scored: " in whole


def test_a_long_table_shrinks_to_the_main_metrics(write: Any, finished: Any) -> None:
    write(3, 1)
    short: Result = finished.score(score_retrieval.main, columns=100)
    whole: Result = finished.score(score_retrieval.main, "-v", columns=100)
    names = set(finished.section(score_retrieval.main)["mean"])

    def shown(done: Result) -> set[str]:
        return {line.partition(" ")[0] for line in done.stdout.splitlines()} & names

    assert shown(whole) == names
    assert "evidence_recall@5" in shown(short)
    assert "recall_any@1" not in shown(short)
    assert f"{len(names - shown(short))} more metrics: -v shows them" in short.stdout
    assert "more metrics" not in whole.stdout

"""Wishes and files that report_run.py refuses: one sentence, and nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.scripts.report_run.answers import CASES, RESULTS

import report_run


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--format", "pdf"], "name some of md, html"),
        (["--worst-by", "nonsense"], "'nonsense': the run has no such metric; choose one of: "),
        (["--set", "confidence_by=nonsense"], "'nonsense': the run has no such metric"),
    ],
)
def test_a_wrong_wish_is_one_sentence_and_writes_nothing(
    run: Any, options: list[str], told: str
) -> None:
    done = run.score(report_run.main, *options)
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.split())
    assert list(run.run.glob("report.*")) == []


def test_an_unscored_run_is_told_what_to_do(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(report_run.main)
    assert done.exit_code == 2
    assert "metrics.json: no such file; score the run first" in done.stderr


def test_a_folder_that_cannot_be_written_keeps_the_old_report(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run.score(report_run.main, "--output", str(tmp_path / "file" / "report"))
    assert done.exit_code == 2
    assert "cannot be made" in done.stderr

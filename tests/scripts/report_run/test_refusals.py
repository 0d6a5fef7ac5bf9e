"""Wishes and files that report_run.py refuses: one sentence, and nothing is written."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"metrics": None}, "sections.retrieval: Expected `object`, and one for each metric"),
        (
            {"metrics": {"recall@5": {"mean": "0.5"}}},
            "sections.retrieval.metrics.recall@5.mean: Expected `float | null`",
        ),
        (
            {"metrics": {"recall@5": {"n": None}}},
            "sections.retrieval.metrics.recall@5.n: Expected `int`, got `null`",
        ),
        (
            {"latency_ms": {"total": {"p50": 1}}},
            "sections.retrieval.latency_ms.total: Object missing",
        ),
    ],
)
def test_a_damaged_metrics_json_is_one_sentence(
    run: Any, section: dict[str, Any], told: str
) -> None:
    path = run.run / "metrics.json"
    found = json.loads(path.read_text())
    found["sections"]["retrieval"] |= section
    path.write_text(json.dumps(found))
    done = run.score(report_run.main)
    assert done.exit_code == 2
    assert f"metrics.json: {told}" in " ".join(done.stderr.split())
    assert list(run.run.glob("report.*")) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"case_id": "x"}',
        '{"case_id": "x", "repeat": 0, "status": "scored", "scores": {"mrr": "high"}}',
        '{"case_id": "x", "repeat": 0, "status": "scored", "scores": {}, "reasons": [1]}',
        '{"case_id": "x", "repeat": {}, "status": "scored", "scores": {}}',
    ],
)
def test_a_damaged_score_line_is_named(run: Any, line: str) -> None:
    path = run.run / "scores" / "retrieval.jsonl"
    path.write_text(path.read_text() + line + "\n")
    done = run.score(report_run.main)
    assert done.exit_code == 2
    assert "retrieval.jsonl:6: is not a score line (" in done.stderr
    assert "; score the run again\n" in done.stderr
    assert list(run.run.glob("report.*")) == []


def test_a_folder_that_cannot_be_written_keeps_the_old_report(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run.score(report_run.main, "--output", str(tmp_path / "file" / "report"))
    assert done.exit_code == 2
    assert "cannot be made" in done.stderr

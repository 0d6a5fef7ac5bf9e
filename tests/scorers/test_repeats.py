"""A run whose cases were asked several times: what metrics.json, the screen and the report say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.score_lines import write_lines

import score_retrieval
from ragmetrics import catalogue
from records.metrics import load_metrics
from records.runs import METRICS
from scorers.loop import score_run
from scorers.retrieval import RetrievalScorer
from scorers.show import repeats_line
from scorers.variation import stability

IDS = ["q0", "q1"]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two cases, asked twice each: q0 finds the gold passage at rank 1, then 2; q1 always at 1."""
    found = {("q0", 0): ["a", "b"], ("q0", 1): ["b", "a"], ("q1", 0): ["a"], ("q1", 1): ["a"]}
    answers = [
        {"test_case_id": case, "repeat": repeat, "retrieved": ids, "answer": f"answer {repeat}"}
        for (case, repeat), ids in found.items()
    ]
    cases = [{"id": name, "question": "?", "relevant_chunks": ["a"]} for name in IDS]
    write(tmp_path / "set.jsonl", cases)
    write(tmp_path / "run" / "results.jsonl", answers)
    return tmp_path / "run"


def test_metrics_json_says_how_much_scores_vary(run: Path) -> None:
    """mrr is 1, 1/2 (squares 2 * .25^2 = .125 on 1 degree) and 1, 1 (0 on 1 degree): .0625."""
    section = score_run(run, run.parent / "set.jsonl", RetrievalScorer(), jobs=1)
    found = section["stability"]
    assert found["repeats"] == 2
    assert found["metrics"]["mrr"] == {"n": 2, "within": pytest.approx(0.0625)}
    stored = load_metrics(run / METRICS)["sections"]["retrieval"]["stability"]
    assert stored["metrics"]["mrr"]["within"] == pytest.approx(0.0625)
    assert "pass_at" not in stored


def test_the_screen_has_one_line_of_it(run: Path) -> None:
    where = ["--run", str(run), "--eval-set", str(run.parent / "set.jsonl")]
    shown = CliRunner().invoke(score_retrieval.main, where, env={"COLUMNS": "120"})
    assert shown.exit_code == 0, shown.output
    assert "2 answers to each case." in shown.output


def test_a_run_that_asked_once_says_nothing_of_it(run: Path) -> None:
    lines = (run / "results.jsonl").read_text().splitlines()
    (run / "results.jsonl").write_text("\n".join(lines[::2]) + "\n")
    section = score_run(run, run.parent / "set.jsonl", RetrievalScorer(), jobs=1)
    assert "stability" not in section


def test_a_call_that_failed_did_not_pass(run: Path) -> None:
    """q0 passes once and fails to answer once; q1 passes twice: pass@2 is 1, pass^2 is 1/2."""
    passed: dict[str, Any] = {"scores": {"pass": 1.0}, "evidence": {}}
    failed = {"scores": {}, "evidence": {}, "status": "failed"}
    lines = [{"case_id": "q0", "repeat": 0} | passed, {"case_id": "q0", "repeat": 1} | failed]
    lines += [{"case_id": "q1", "repeat": repeat} | passed for repeat in (0, 1)]
    write_lines(run, "pipeline", lines)
    rows = [row for row in catalogue.METRICS if row.name == "pass"]
    found = stability(run, "pipeline", rows)
    assert found["pass_at"] == {"1": 0.75, "2": 1.0}
    assert found["pass_all"] == {"1": 0.75, "2": 0.5}
    assert found["metrics"]["pass"]["n"] == 1, "only q1 has two scores"
    assert repeats_line(found) == (
        "2 answers to each case: at least one passes (pass@2) 1.000, all pass (pass^2) 0.500."
    )

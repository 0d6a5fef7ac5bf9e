"""A run whose cases were asked several times: what metrics.json, the screen and the report say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.score_lines import write_lines

import report_run
import score_retrieval
from ragmetrics import catalogue
from records.metrics import load_metrics
from records.runs import METRICS
from scorers.loop import score_run
from scorers.retrieval import RetrievalScorer
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


def test_metrics_json_says_where_scores_vary(run: Path) -> None:
    """mrr is 1, 1/2 and 1, 1: in q0 the passages differ, so it is retrieval, which holds what the
    answers add there. Answers: q1's two from the same passages have equal scores: 0. Retrieval:
    squares in q0 are 2 * .25^2 = .125 on 1 degree; weight 4 - (1/2 + 1/2 + 4/2) = 1: .125. Cases:
    means .75, 1 around .875: 2 * 2 * .015625 = .0625 = retrieval * (3 - 6/4) + cases * (4 - 8/4):
    (.0625 - 1.5 * .125) / 2 < 0, so 0. recall@1 is 1, 0 and 1, 1: one of two flips.
    """
    section = score_run(run, run.parent / "set.jsonl", RetrievalScorer(), jobs=1)
    found = section["stability"]
    assert found["repeats"] == 2
    mrr = found["metrics"]["mrr"]
    assert (mrr["n"], mrr["worst"]) == (2, 0.75)
    assert mrr["variance"] == {
        "cases": 0.0,
        "retrieval": pytest.approx(0.125),
        "answer": 0.0,
        "judge": None,
        "rest": None,
    }
    assert found["metrics"]["recall_any@1"]["flips"] == 0.5
    assert found["metrics"]["recall_any@1"]["worst"] == 0.5
    stored = load_metrics(run / METRICS)["sections"]["retrieval"]["stability"]
    assert stored["metrics"]["mrr"]["variance"]["retrieval"] == pytest.approx(0.125)
    assert "pass_at" not in stored


def test_screen_and_report_show_it(run: Path) -> None:
    where = ["--run", str(run), "--eval-set", str(run.parent / "set.jsonl")]
    shown = CliRunner().invoke(score_retrieval.main, where, env={"COLUMNS": "120"})
    assert shown.exit_code == 0, shown.output
    assert "Repeats (2 of each case)" in shown.output
    reported = CliRunner().invoke(report_run.main, [*where, "--format", "md,html,json"])
    assert reported.exit_code == 0, reported.output
    for form in ("md", "html"):
        text = (run / f"report.{form}").read_text()
        assert "by retrieval" in text
        assert "worst of n" in text
    (part,) = json.loads((run / "report.json").read_text())["stability"]
    row = next(row for row in part["rows"] if row[0] == "mrr")
    assert row[:5] == ["mrr", "2", "0.750", "–", "0 %"]
    assert row[5] == "100 %"


def test_a_run_that_asked_once_says_nothing_of_it(run: Path) -> None:
    lines = (run / "results.jsonl").read_text().splitlines()
    (run / "results.jsonl").write_text("\n".join(lines[::2]) + "\n")
    section = score_run(run, run.parent / "set.jsonl", RetrievalScorer(), jobs=1)
    assert "stability" not in section


def lines_of(run: Path, section: str, rows: Sequence[tuple[str, int, Any, Any]]) -> None:
    """Score lines: case, repeat, scores (None: the call failed) and evidence."""
    lines = [
        {"case_id": case, "repeat": repeat, "scores": scores or {}, "evidence": evidence}
        | ({"status": "failed"} if scores is None else {})
        for case, repeat, scores, evidence in rows
    ]
    write_lines(run, section, lines)


def test_a_call_that_failed_did_not_pass(run: Path) -> None:
    """q0 passes once and fails to answer once; q1 passes twice: pass@2 is 1, pass^2 is 1/2."""
    passed = {"pass": 1.0}
    lines_of(
        run,
        "pipeline",
        [("q0", 0, passed, {}), ("q0", 1, None, {}), ("q1", 0, passed, {}), ("q1", 1, passed, {})],
    )
    rows = [row for row in catalogue.METRICS if row.name == "pass"]
    found = stability(run, "pipeline", rows)
    assert found["pass_at"] == {"1": 0.75, "2": 1.0}
    assert found["pass_all"] == {"1": 0.75, "2": 0.5}
    assert found["metrics"]["pass"]["n"] == 1, "only q1 has two scores"


def test_the_judges_part_is_taken_out_of_the_answers(run: Path) -> None:
    """Answers of q1 (same passages) score .2 and .6: half the squared difference is .08, of which
    the opinions of the judge, .01 and .03 for each mean, explain .02."""
    opinions = [{"opinions": {"variance": {"faithfulness": v}}} for v in (0.01, 0.03, 0.01, 0.03)]
    scores = [1.0, 1.0, 0.2, 0.6]
    keys = [("q0", 0), ("q0", 1), ("q1", 0), ("q1", 1)]
    lines_of(
        run,
        "judged",
        [
            (*key, {"faithfulness": score}, evidence)
            for key, score, evidence in zip(keys, scores, opinions, strict=True)
        ],
    )
    rows = [row for row in catalogue.METRICS if row.name == "faithfulness"]
    variance = stability(run, "judged", rows)["metrics"]["faithfulness"]["variance"]
    assert variance["judge"] == pytest.approx(0.02)
    assert variance["answer"] == pytest.approx(0.06)

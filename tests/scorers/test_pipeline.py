"""Pipeline labels against results by hand, citations counted, and the totals of a run."""

from __future__ import annotations

from typing import Any, get_args

from tests.rows import each_row

from ragmetrics.catalogue.pipeline import ROWS
from ragmetrics.pipeline import METRICS, OUTCOMES
from records.cases import Outcome
from records.scores import ScoreLine
from scorers.common import citation_count
from scorers.pipeline import PipelineScorer
from storage import Reference, RetrievedChunk, TestCase, TestResult

NAMES = [metric.name for metric in ROWS]


def result(answer: str | None = "Yes [1].", **fields: Any) -> TestResult:
    return TestResult("q", answer=answer, **({"retrieved": [RetrievedChunk("c")]} | fields))


def score(case: TestCase, given: TestResult) -> tuple[dict[str, Any], Any]:
    row, evidence = PipelineScorer().score(case, given)
    return dict(zip(NAMES, row.values, strict=True)), evidence


def test_the_catalogue_has_a_row_for_each_metric() -> None:
    assert list(METRICS) == NAMES


@each_row(
    ("answer", "references", "count"),
    [
        ("Yes [1].", [], 1),
        ("Yes [1][2]. Also [2, 3].", [], 3),
        ("Yes [1-3].", [], 3),
        ("Yes.", [], 0),
        ("See a[0] in `x[1]`.", [], 0),
        ("Yes [1].", [Reference(1), Reference(2)], 2),  # what the bot lists counts
        ("Yes.", [Reference(chunk_id="c")], 1),
        ("", [Reference(1)], 0),
        (None, [Reference(1)], 0),
    ],
)
def test_citations_are_counted(answer: str | None, references: list[Any], count: int) -> None:
    assert citation_count(result(answer, references=references)) == count


def test_a_case_with_every_label() -> None:
    labels: dict[str, Any] = {"min_citations": 2, "latency_budget_ms": {"total": 100, "p95": 50}}
    labels |= {"required_flags": ["checked"], "forbidden_flags": ["guardrail_blocked"]}
    case = TestCase("q", "?", expected_outcome="success", **labels)
    given = result(policy_flags=["checked"], latency_ms={"total": 90.0}, usage={"total_tokens": 7})
    found, evidence = score(case, given)
    assert found == dict.fromkeys(NAMES, 1.0) | {"citations_ok": 0.0, "pass": 0.0}
    assert evidence == {
        **{"outcome": "success", "why": "citations: 1", "expected": "success"},
        **{"flags": ["checked"], "citations": {"found": 1, "min": 2}},
        **{"latency_ms": {"total": 90.0}, "usage": {"total_tokens": 7}},
        "run_budgets_ms": {"p95": 50.0},
    }


def test_labels_may_name_each_outcome_and_no_other() -> None:
    assert get_args(Outcome) == OUTCOMES


def test_totals_of_a_run() -> None:
    scorer = PipelineScorer()
    case = TestCase("q", "?", expected_outcome="success", latency_budget_ms={"p50": 15, "max": 15})
    lines: list[ScoreLine] = []
    for time in (10.0, 20.0):
        _, evidence = scorer.score(case, result(latency_ms={"total": time}, cost_usd=0.5))
        lines.append(ScoreLine("q", 0, "scored", {}, evidence=evidence))
    # a budget without a time, a time without a budget, and neither
    bare = TestCase("q", "?")
    for other, times in ((case, {}), (bare, {"total": 15.0}), (bare, {})):
        _, evidence = scorer.score(other, result(latency_ms=times))
        lines.append(ScoreLine("q", 0, "scored", {}, evidence=evidence))
    lines.append(ScoreLine("q", 0, "failed", {}, {"*": "call failed: timeout"}))
    lines.append(ScoreLine("q", 0, "failed", {}, {"*": "asked, but the run has no result"}))
    names = ("definitions", "not_applicable", "failed", "ci95")
    section: dict[str, Any] = {name: {} for name in names}
    section |= {"mean": {"pass": 1.0}, "n": {"pass": 2}}
    found = scorer.aggregate(section, iter(lines), 0)
    # nearest rank of 10 and 20: p50 is 10 (kept), max is 20 (over 15)
    assert found["mean"]["latency_percentiles_ok"] == 0.5
    # seven cases, of which two have both a budget and a time, one failed, one has no result
    assert found["n"]["latency_percentiles_ok"] == 2
    assert found["not_applicable"]["latency_percentiles_ok"] == 3
    assert found["failed"]["latency_percentiles_ok"] == 2
    assert [row["kept"] for row in found["run_budgets"]] == [False, True]
    last = dict.fromkeys(("p95", "p99", "max"), 20.0)
    assert found["latency_ms"]["total"] == {"n": 3, "p50": 15.0} | last
    assert found["errors"] == {"timeout": 1}
    assert found["cost_usd"] == 1.0
    assert found["outcomes"] == {"success": {"success": 3}, "not labelled": {"success": 2}}
    assert found["pass_rate"] == 1.0

"""score_pipeline.py as a user runs it: checks, outcomes, times, budgets, errors, tokens, cost."""

from __future__ import annotations

from typing import Any

from score_pipeline import main
from storage import ErrorInfo, RetrievedChunk, TestResult

CHUNK = RetrievedChunk("c", text="text", rank=1)
CASES = [{"id": name} for name in ("good", "slow", "blocked", "unlabelled", "broken")]
WANTED: dict[str, Any] = {
    "expected_outcome": "success",
    "forbidden_flags": ["guardrail_blocked"],
    "min_citations": 1,
    "latency_budget_ms": {"total": 1000, "p50": 500, "p95": 500},
}
LABELS = [{"case_id": name} | WANTED for name in ("good", "slow", "blocked")]


def result(name: str, time: float, answer: str = "Yes [1].", **fields: Any) -> TestResult:
    times = {"retrieve": time / 2, "total": time}
    return TestResult(name, answer=answer, retrieved=[CHUNK], latency_ms=times, **fields)


RESULTS = [
    result("good", 100.0, usage={"total_tokens": 10}, cost_usd=0.25),
    result("slow", 2000.0, usage={"total_tokens": 5}, cost_usd=0.5),
    result("blocked", 300.0, "No.", policy_flags=["guardrail_blocked", "[red]odd"]),
    result("unlabelled", 400.0),
    TestResult("broken", status="error", error=ErrorInfo("timeout")),
]


def test_numbers_states_and_totals(finished: Any) -> None:
    finished.write(CASES, RESULTS, pipeline_labels=LABELS)
    found = finished.section(main)
    means = {name: round(mean, 3) for name, mean in found["mean"].items() if mean is not None}
    two = ("outcome_match", "forbidden_flags_absent", "latency_ok", "citations_ok")
    others = {"answered": 0.8, "pass": 0.333, "latency_percentiles_ok": 0.5}
    assert means == dict.fromkeys(two, 0.667) | others
    assert found["pass_rate"] == found["mean"]["pass"]
    counts = [found[name]["pass"] for name in ("n", "not_applicable", "failed")]
    assert counts == [3, 1, 1]
    # totals of 100, 300, 400, 2000: ranks 2 and 4; budgets look at the labelled 100, 300, 2000
    tail = dict.fromkeys(("p95", "p99", "max"), 2000.0)
    assert found["latency_ms"]["total"] == {"n": 4, "p50": 300.0} | tail
    kept = {row["percentile"]: (row["ms"], row["kept"]) for row in found["run_budgets"]}
    assert kept == {"p50": (300.0, True), "p95": (2000.0, False)}
    assert found["errors"] == {"timeout": 1}
    assert found["usage"] == {"total_tokens": 15}
    assert found["cost_usd"] == 0.75
    expected = {"not labelled": {"success": 1}, "success": {"blocked": 1, "success": 2}}
    assert found["outcomes"] == expected
    rows = finished.rows("pipeline")
    assert rows["unlabelled"]["reasons"]["pass"] == "no check applies"
    assert rows["blocked"]["evidence"]["why"] == "flag guardrail_blocked"


def test_the_tables_and_the_worst_cases(finished: Any) -> None:
    finished.write(CASES, RESULTS, pipeline_labels=LABELS)
    done = finished.score(main, "--worst", "2")
    assert done.exit_code == 0, done.output
    shown = done.stdout
    assert "Outcomes, expected in rows:" in shown
    assert "✓ p50 of total: 300.0 ms, budget 500 ms (3 responses)" in shown
    assert "✗ p95 of total: 2,000.0 ms, budget 500 ms (3 responses)" in shown
    assert "Errors: timeout 1" in shown
    assert "Cost: 0.7500 USD" in shown
    assert "blocked (flag guardrail_blocked), though an answer was expected" in shown
    assert "forbidden flags of the answer: guardrail_blocked" in shown
    assert "citations: 0, at least 1 wanted" in shown
    assert "total took 2,000 ms of 1,000 ms" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_run_without_labels_still_tells_times_and_outcomes(finished: Any) -> None:
    finished.write(CASES, RESULTS)
    done = finished.score(main, "--worst", "1")
    assert done.exit_code == 0, done.output
    assert "not labelled" in done.stdout
    assert "No case has a score of pass" in done.stdout
    found = finished.section(main)
    assert found["mean"]["pass"] is found["mean"]["latency_percentiles_ok"] is None

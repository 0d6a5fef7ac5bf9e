"""Outcomes in their order, checks with and without labels, budgets, percentiles, totals."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.pipeline import (
    CHECKS,
    METRICS,
    Expected,
    ResponseTotals,
    ScoredResponse,
    is_largest,
    outcome,
    percentile,
    run_budgets,
    score_case,
    stage_budgets,
)


def response(**fields: Any) -> ScoredResponse:
    """A good answer with two citations unless told otherwise."""
    return ScoredResponse(**{"retrieved": 3, "citations": 2} | fields)


@each_row(
    ("fields", "name", "why"),
    [
        ({}, "success", "citations: 2"),
        ({"citations": 0}, "no_citation", "no citation"),
        ({"confidence": 0.5}, "success", "citations: 2"),  # 0.5 is not below 0.5
        ({"confidence": 0.49}, "uncertain", "confidence 0.49 < 0.5"),
        ({"flags": ["uncertain"]}, "uncertain", "flag uncertain"),
        (
            {"flags": ["uncertain"], "confidence": 0.9},
            "uncertain",
            "flag uncertain, confidence 0.90",
        ),
        ({"retrieved": 0, "citations": 0}, "no_results", "nothing retrieved"),
        ({"flags": ["no_context"]}, "no_results", "flag no_context"),
        ({"flags": ["guardrail_blocked"]}, "blocked", "flag guardrail_blocked"),
        ({"flags": ["another"]}, "success", "citations: 2"),
        # no answer was asked for: what was retrieved says nothing of success
        ({"answered": False, "citations": 0}, None, "no answer"),
        ({"answered": False, "retrieved": 0}, "no_results", "nothing retrieved"),
    ],
)
def test_each_outcome(fields: dict[str, Any], name: str | None, why: str) -> None:
    assert outcome(response(**fields)) == (name, why)


def test_the_first_outcome_that_fits_counts() -> None:
    """blocked before no_results before uncertain before success, whatever else fits."""
    everything = response(
        retrieved=0, flags=["uncertain", "no_context", "guardrail_blocked"], confidence=0.1
    )
    assert outcome(everything)[0] == "blocked"
    assert outcome(response(flags=["uncertain", "no_context"], confidence=0.1))[0] == "no_results"
    assert outcome(response(flags=["uncertain"], citations=5))[0] == "uncertain"
    assert outcome(response(confidence=0.3), uncertain_below=0.3)[0] == "success"
    assert outcome(response(confidence=0.6), uncertain_below=0.7)[0] == "uncertain"


def test_without_labels_nothing_applies_and_all_checks_may_be_kept() -> None:
    scores = score_case(response(), Expected())
    assert scores.values == dict.fromkeys(METRICS) | {"answered": 1.0}
    assert scores.reasons["pass"] == "no check applies"
    assert scores.reasons["outcome_match"] == "no expected_outcome"
    assert scores.evidence == {"outcome": "success", "why": "citations: 2"}
    expected = Expected("uncertain", ["uncertain"], ["guardrail_blocked"], 2, 100.0)
    given_ = response(flags=["uncertain"], latency_ms={"total": 100.0})
    assert dict(score_case(given_, expected).values) == dict.fromkeys(METRICS, 1.0)


@each_row(
    ("check", "expected", "fields", "evidence"),
    [
        ("outcome_match", {"outcome": "blocked"}, {}, {"expected": "blocked"}),
        (
            "required_flags_present",
            {"required_flags": ["a", "b"]},
            {"flags": ["b"]},
            {"missing_flags": ["a"]},
        ),
        (
            "forbidden_flags_absent",
            {"forbidden_flags": ["a", "b"]},
            {"flags": ["b"]},
            {"forbidden_flags": ["b"]},
        ),
        ("citations_ok", {"min_citations": 3}, {}, {"citations": {"found": 2, "min": 3}}),
        (
            "latency_ok",
            {"budget_ms": 99.5},
            {"latency_ms": {"total": 100.0}},
            {"over_budget": {"total": {"ms": 100.0, "budget_ms": 99.5}}},
        ),
    ],
)
def test_one_failed_check_fails_the_case_and_says_why(
    check: str, expected: dict[str, Any], fields: dict[str, Any], evidence: dict[str, Any]
) -> None:
    scores = score_case(response(**fields), Expected(**expected))
    applied = {name for name, value in scores.values.items() if value is not None}
    assert applied == {"answered", check, "pass"}
    assert scores.values[check] == scores.values["pass"] == 0.0
    assert evidence.items() <= scores.evidence.items()


def test_citations_of_a_run_without_answers_do_not_apply() -> None:
    scores = score_case(response(answered=False, citations=0), Expected("success", min_citations=1))
    assert scores.values["citations_ok"] is scores.values["outcome_match"] is None
    assert scores.reasons["outcome_match"] == "no answer"
    assert score_case(response(citations=0), Expected(min_citations=0)).values["citations_ok"] == 1


def test_budgets_of_stages_and_of_the_run() -> None:
    budget = {"total": 50, "generate": 40, "p95": 30, "max": 60}
    assert stage_budgets(budget) == {"total": 50.0, "generate": 40.0}
    assert run_budgets(budget) == {"p95": 30.0, "max": 60.0}
    assert (stage_budgets(7), run_budgets(7)) == ({"total": 7.0}, {})
    assert (stage_budgets(None), run_budgets(None)) == ({}, {})


def test_latency_of_a_stage_that_was_not_measured() -> None:
    expected = Expected(budget_ms={"total": 50, "rerank": 5})
    unknown = score_case(response(latency_ms={"total": 40}), expected)
    assert unknown.values["latency_ok"] is None
    assert unknown.reasons["latency_ok"] == "no latency of rerank"
    # what is over its budget fails, whatever else is unknown
    assert score_case(response(latency_ms={"total": 51}), expected).values["latency_ok"] == 0.0
    only_run = score_case(response(latency_ms={"total": 51}), Expected(budget_ms={"p95": 1}))
    assert only_run.reasons["latency_ok"] == "no budget for one response"


@given(
    st.sampled_from(["success", "blocked", None]),
    st.lists(st.sampled_from(["a", "b", "uncertain"])),
    st.lists(st.sampled_from(["a", "b"])),
    st.none() | st.integers(0, 4),
    st.none() | st.floats(0, 100),
)
def test_pass_is_all_that_apply(
    wanted: str | None, flags: list[str], required: list[str], least: int | None, time: float | None
) -> None:
    times = {} if time is None else {"total": time}
    scores = score_case(
        response(flags=flags, latency_ms=times), Expected(wanted, required, [], least, 50.0)
    )
    found = [scores.values[name] for name in CHECKS if scores.values[name] is not None]
    assert set(found) <= {0.0, 1.0}
    assert scores.values["pass"] == (min(found) if found else None)  # type: ignore[type-var]
    assert scores.reasons.keys() == {n for n, value in scores.values.items() if value is None}


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(1, 100))
def test_percentile_equals_numpy(times: list[float], percent: int) -> None:
    expected = np.percentile(times, percent, method="inverted_cdf")
    assert percentile(sorted(times), percent) == expected


def test_percentiles_by_hand() -> None:
    # nearest rank: ceil(10 x 0.95) = 10th, ceil(10 x 0.5) = 5th
    assert [percentile([*range(1, 11)], p) for p in (50, 95, 99, 100)] == [5, 10, 10, 10]
    assert not is_largest("max", 1)
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 50)


def test_totals_of_a_run() -> None:
    totals = ResponseTotals()
    for place in range(20):
        totals.add(
            "success" if place else "blocked",
            "success",
            {"total": 10.0 * (place + 1), "rerank": 1.0},
            {"total_tokens": 5, "model": "m", "cached": True},
            0.25,
            {"p50": 100.0, "p95": 100.0} if place < 10 else {},
        )
    totals.add(None, None, {}, {}, None, {"p95": 100.0})  # no time: no budget is checked
    totals.add_error("timeout")
    totals.add_error("timeout")
    latency = totals.latency()
    assert list(latency) == ["total", "rerank"]  # known stages first
    # 10, 20 … 200: ranks ceil(20 x .5) = 10, ceil(20 x .95) = 19, ceil(20 x .99) = 20
    assert latency["total"] == {"n": 20, "p50": 100.0, "p95": 190.0, "p99": 200.0, "max": 200.0}
    assert totals.tokens == {"total_tokens": 100}  # neither a name nor a flag is a count
    assert totals.cost == 5.0
    assert totals.errors == {"timeout": 2}
    assert totals.outcomes == {("success", "success"): 19, ("success", "blocked"): 1, ("", ""): 1}
    # the ten cases with budgets took 10 … 100 ms: p50 is 50, p95 is 100, just kept
    assert totals.budgets() == [
        {"percentile": "p50", "budget_ms": 100.0, "ms": 50.0, "n": 10, "kept": True},
        {"percentile": "p95", "budget_ms": 100.0, "ms": 100.0, "n": 10, "kept": True},
    ]
    priced, unknown = ResponseTotals(), ResponseTotals()
    priced.add("success", None, {}, {}, 0.0, {})
    unknown.add("success", None, {}, {}, None, {})
    assert (priced.cost, unknown.cost) == (0.0, None)
    assert unknown.latency() == {}
    assert unknown.budgets() == []


def test_the_order_of_responses_does_not_matter() -> None:
    times = [3.0, 1.0, 2.0]
    found = []
    for order in itertools.permutations(times):
        totals = ResponseTotals()
        for time in order:
            totals.add("success", None, {"total": time}, {}, None, {"max": 2.5})
        found.append((totals.latency(), totals.budgets()))
    assert all(one == found[0] for one in found)
    assert found[0][1][0]["kept"] is False


@given(st.sampled_from(["p50", "p95", "p99"]), st.integers(1, 300))
def test_a_percentile_of_few_values_is_their_largest(mark: str, n: int) -> None:
    values = [float(value) for value in range(n)]
    assert is_largest(mark, n) is (percentile(values, int(mark[1:])) == values[-1])

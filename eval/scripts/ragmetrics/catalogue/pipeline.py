"""Catalogue rows of the pipeline metrics: outcome, flags, citations and budgets."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection


def _row(name: str, meaning: str, needs: str, **more: Any) -> Metric:
    row: dict[str, Any] = {"source": "this toolkit", "binary": True} | more
    return Metric(name, "pipeline", meaning, needs, **row)


ROWS: tuple[Metric, ...] = (
    _row(
        "answered",
        "1 when the call gave a response, 0 when it failed or its asked result is missing",
        "a call",
        headline=2,
        primary=True,
        words="Calls that gave a response",
        says="returns an answer to {value} calls",
    ),
    _row(
        "outcome_match",
        "1 when the outcome (blocked, clarify, no_results, uncertain, success, no_citation) is the "
        "expected one",
        "expected_outcome",
        version=2,
        headline=3,
        words="Responses that end as expected",
    ),
    _row(
        "required_flags_present",
        "1 when every required policy flag is there",
        "required_flags",
        compared=True,
        words="Required policy flags that are there",
    ),
    _row(
        "forbidden_flags_absent",
        "1 when no forbidden policy flag is there",
        "forbidden_flags",
        compared=True,
        words="Responses without forbidden flags",
    ),
    _row(
        "latency_ok",
        "1 when the response keeps the case's budgets for its total time or its stages",
        "latency_budget_ms for total or a stage; times in the result",
        headline=4,
        words="Responses within their time budget",
    ),
    _row(
        "citations_ok",
        "1 when at least min_citations sources are cited",
        "min_citations",
        version=2,
        compared=True,
        words="Responses with enough citations",
    ),
    _row(
        "pass",
        "1 when every check that applies passes, 0 when the call failed or its asked result is "
        "missing",
        "any pipeline label",
        version=3,
        headline=1,
        overview=1,
        primary=True,
        target="pass",
        words="Responses that pass every check",
        says="passes every check on {value} questions",
    ),
)

RUN_ROWS: tuple[Metric, ...] = (
    _row(
        "latency_percentiles_ok",
        "budgets for p50, p95, p99 or max of the total time that the run keeps / such budgets",
        "latency_budget_ms with p50, p95, p99 or max; times in the results",
        binary=False,
        words="Time budgets of the run that are met",
    ),
)
"""Numbers of the whole run, not of a case."""

SECTION = MetricSection(
    "pipeline",
    "Pipeline",
    ROWS + RUN_ROWS,
    "score_pipeline.py",
    labels=(
        "expected_outcome",
        "required_flags",
        "forbidden_flags",
        "min_citations",
        "latency_budget_ms",
    ),
    worst_by="pass",
)

"""The pipeline as a whole: outcome, flags, citations and budgets of each response, and the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ragmetrics import pipeline
from ragmetrics.catalogue.metric import Metric
from ragmetrics.catalogue.pipeline import ROWS, RUN_ROWS
from ragmetrics.pipeline import Expected, ResponseTotals, ScoredResponse
from records.cases import TestCase
from records.results import TestResult
from scorers.common import citation_count, row_of
from scorers.contract import Evidence, ScoreRow, add_metric

FAILURE = "call failed: "


@dataclass(frozen=True)
class PipelineScorer:
    """Scores one response against the pipeline labels of its case."""

    uncertain_below: float = pipeline.UNCERTAIN_BELOW

    section = "pipeline"
    metrics: tuple[Metric, ...] = ROWS

    @property
    def options(self) -> dict[str, Any]:
        return {"uncertain_below": self.uncertain_below}

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """Checks of one response."""
        scores = pipeline.score_case(response_of(result), expected_of(case), self.uncertain_below)
        return row_of(scores, self.metrics), dict(scores.evidence) | _measured(case, result)

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[dict[str, Any]], seed: int
    ) -> dict[str, Any]:
        """Percentiles of each stage, errors by kind, tokens, cost, outcomes, budgets of the run."""
        totals = ResponseTotals()
        answered = timed = 0
        for line in lines:
            if line["status"] == "failed":
                totals.add_error(line["reasons"]["*"].removeprefix(FAILURE))
                continue
            found = line["evidence"]
            answered += 1
            timed += "run_budgets_ms" in found and "total" in found.get("latency_ms", {})
            totals.add(
                found["outcome"],
                found.get("expected"),
                found.get("latency_ms", {}),
                found.get("usage", {}),
                found.get("cost_usd"),
                found.get("run_budgets_ms", {}),
            )
        budgets = totals.budgets()
        kept = [row["kept"] for row in budgets]
        share = sum(kept) / len(kept) if kept else None
        add_metric(
            section,
            RUN_ROWS[0],
            share,
            n=timed,
            not_applicable=answered - timed,
            failed=totals.errors.total(),
        )
        table: dict[str, dict[str, int]] = {}
        for (wanted, actual), count in sorted(totals.outcomes.items()):
            table.setdefault(wanted or "not labelled", {})[actual or "none"] = count
        return section | {
            "pass_rate": section["mean"]["pass"],
            "outcomes": table,
            "latency_ms": totals.latency(),
            "run_budgets": budgets,
            "errors": dict(sorted(totals.errors.items())),
            "usage": dict(sorted(totals.tokens.items())),
            "cost_usd": totals.cost,
        }


def response_of(result: TestResult) -> ScoredResponse:
    """The parts of a result that the checks look at."""
    return ScoredResponse(
        retrieved=len(result.retrieved),
        citations=citation_count(result),
        answered=result.answer is not None,
        flags=result.policy_flags,
        confidence=result.confidence,
        latency_ms=result.latency_ms,
    )


def expected_of(case: TestCase) -> Expected:
    """The pipeline labels of a case."""
    return Expected(
        case.expected_outcome,
        case.required_flags,
        case.forbidden_flags,
        case.min_citations,
        case.latency_budget_ms,
    )


def _measured(case: TestCase, result: TestResult) -> dict[str, Any]:
    """What the run's totals add up, kept with the case."""
    parts = {
        "latency_ms": result.latency_ms,
        "usage": result.usage,
        "cost_usd": result.cost_usd,
        "run_budgets_ms": pipeline.run_budgets(case.latency_budget_ms),
    }
    return {name: part for name, part in parts.items() if part or part == 0.0}

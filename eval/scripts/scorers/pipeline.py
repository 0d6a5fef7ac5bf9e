"""Scores the whole pipeline: each response's outcome, flags, citations and budgets, and the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ragmetrics import pipeline
from ragmetrics.case_scores import CaseScores
from ragmetrics.catalogue.metric import Metric
from ragmetrics.catalogue.pipeline import ROWS, RUN_ROWS
from ragmetrics.pipeline import (
    OUTCOMES,
    PERCENTILES,
    Expected,
    ResponseTotals,
    ScoredResponse,
    is_largest,
)
from ragmetrics.stats.tally import FAILED, Value
from records.cases import TestCase
from records.results import UNREADABLE, TestResult
from records.scores import CALL_FAILED, ScoreLine
from scorers.common import citation_count, row_of
from scorers.contract import Evidence, ScoreRow, SectionScorer, add_metric

if TYPE_CHECKING:
    from rich.console import Console


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
        scores = check_response(case, result, self.uncertain_below)
        return row_of(scores, self.metrics), dict(scores.evidence) | _measured(case, result)

    def score_failed(self, case: TestCase, reason: str) -> ScoreRow:
        """Score a failed call as not answered, and as no pass where any check would apply."""
        expected = _expected_of(case)
        values: dict[str, Value] = {metric.name: FAILED for metric in self.metrics}
        values |= {"answered": 0.0, "pass": 0.0 if pipeline.is_checked(expected) else FAILED}
        return ScoreRow(
            tuple(values[metric.name] for metric in self.metrics), (("*", reason),), status="failed"
        )

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """Percentiles of each stage, errors by kind, tokens, cost, outcomes, budgets of the run."""
        totals = ResponseTotals()
        answered = timed = missing = unreadable = 0
        for line in lines:
            if line.status == "failed":
                reason = line.reasons["*"]
                if reason.startswith(CALL_FAILED):  # else the result is missing: no kind of error
                    totals.add_error(reason.removeprefix(CALL_FAILED))
                missing += not reason.startswith(CALL_FAILED)
                continue
            if line.status == UNREADABLE:
                unreadable += 1
                continue
            evidence = line.evidence
            answered += 1
            timed += "run_budgets_ms" in evidence and "total" in evidence.get("latency_ms", {})
            totals.add(
                evidence["outcome"],
                evidence.get("expected"),
                evidence.get("latency_ms", {}),
                evidence.get("usage", {}),
                evidence.get("cost_usd"),
                evidence.get("run_budgets_ms", {}),
            )
        add_metric(
            section,
            RUN_ROWS[0],
            totals.budgets_kept,
            n=timed,
            not_applicable=answered - timed + unreadable,
            failed=totals.errors.total() + missing,
        )
        table: dict[str, dict[str, int]] = {}
        for (expected, actual), count in sorted(totals.outcomes.items()):
            table.setdefault(expected or "not labelled", {})[actual or "none"] = count
        return section | {
            "pass_rate": section["mean"]["pass"],
            "outcomes": table,
            "latency_ms": totals.latency(),
            "run_budgets": totals.budgets(),
            "errors": dict(sorted(totals.errors.items())),
            "usage": dict(sorted(totals.tokens.items())),
            "cost_usd": totals.cost,
        }


def check_response(
    case: TestCase, result: TestResult, uncertain_below: float = pipeline.UNCERTAIN_BELOW
) -> CaseScores:
    """The checks of one response against the labels of its case; no failed call comes here."""
    return pipeline.score_case(_response_of(case, result), _expected_of(case), uncertain_below)


CLARIFY = "clarify"
"""The outcome, and the flag, of a bot that asks for the user's meaning."""


def may_ask_back(case: TestCase) -> bool:
    """Return True where asking back is recognised from an answer: for questions of a conversation,
    and where it is expected. Elsewhere an answer that ends with a question stays what it was."""
    return bool(case.conversation or case.history or case.expected_outcome == CLARIFY)


def asks_back(case: TestCase, result: TestResult) -> bool:
    """True when the bot asks back, by its flag or by the wording of its answer."""
    if not may_ask_back(case):
        return False
    return CLARIFY in result.policy_flags or pipeline.asks_back(result.answer or "")


def _response_of(case: TestCase, result: TestResult) -> ScoredResponse:
    """The parts of a result that the checks look at."""
    return ScoredResponse(
        retrieved=None if result.retrieved is None else len(result.retrieved),
        citations=citation_count(result),
        answered=result.answer is not None,
        flags=result.policy_flags,
        confidence=result.confidence,
        latency_ms=result.latency_ms,
        asks_back=asks_back(case, result),
    )


def _expected_of(case: TestCase) -> Expected:
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


def _show_more(console: Console, section: Mapping[str, Any]) -> None:
    """Outcomes against what was expected, times by stage, budgets, errors, tokens and cost."""
    from terminal.tables import plain, print_rows

    if not section["n"]["pass"]:
        console.print(
            "pass is not measured, because no case says what a right response is: label "
            "expected_outcome in pipeline_labels.jsonl or in the set (success, no_results, …)."
        )
    table = section["outcomes"]
    actual = [name for name in (*OUTCOMES, "none") if any(name in row for row in table.values())]
    if actual:
        console.print("\nOutcomes, expected in rows:")
        rows = [
            (plain(expected, 30), *(str(row.get(name, 0)) for name in actual))
            for expected, row in table.items()
        ]
        print_rows(console, ("expected", *actual), rows)
    if section["latency_ms"]:
        console.print("\nTimes in ms:")
        rows = [
            (plain(stage, 30), str(times["n"]), *map(partial(_percentile, times), PERCENTILES))
            for stage, times in section["latency_ms"].items()
        ]
        print_rows(console, ("stage", "n", *PERCENTILES), rows)
        if any(is_largest("p99", times["n"]) for times in section["latency_ms"].values()):
            console.print("* With so few responses this percentile is the longest time.")
    for line in _totals_lines(section):
        console.print(line)


def _percentile(times: Mapping[str, float], mark: str) -> str:
    """A percentile in ms; a star when it is the longest time."""
    star = "*" if is_largest(mark, int(times["n"])) else ""
    return f"{times[mark]:,.1f}{star}"


def _totals_lines(section: Mapping[str, Any]) -> list[str]:
    """Budgets of the run, errors, tokens and cost, a line each; nothing that is not there."""
    from terminal.tables import plain

    lines = []
    for row in section["run_budgets"]:
        mark = "✓" if row["kept"] else "✗"
        lines.append(
            f"{mark} {row['percentile']} of total: {row['ms']:,.1f} ms, budget "
            f"{row['budget_ms']:,.0f} ms ({row['n']} responses)"
        )
    named = (("Errors", section["errors"]), ("Tokens", section["usage"]))
    for title, counts in named:
        if counts:
            listed = ", ".join(f"{plain(name, 40)} {count:,}" for name, count in counts.items())
            lines.append(f"{title}: {listed}")
    if section["cost_usd"] is not None:
        lines.append(f"Cost: {section['cost_usd']:.4f} USD")
    return lines


SECTION = SectionScorer(
    options=PipelineScorer,
    scorer=lambda job, options: options,
    show_more=_show_more,
)

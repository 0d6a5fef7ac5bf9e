"""What the scorers of answers share: rows from scores by name, the citations of a result."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics import citations
from ragmetrics.casescores import CaseScores
from ragmetrics.catalogue import Metric
from scoring import Row
from storage import TestResult


def row_of(scores: CaseScores, metrics: Sequence[Metric]) -> Row:
    """Scores by name as a row in the order of the metrics; one reason for all is told once."""
    values = tuple(scores.values[metric.name] for metric in metrics)
    reasons = {
        metric.name: scores.reasons[metric.name]
        for metric in metrics
        if metric.name in scores.reasons
    }
    told = set(reasons.values())
    if len(told) == 1 and all(value is None for value in values):
        return Row(values, (("*", told.pop()),))
    return Row(values, tuple(reasons.items()))


def citation_count(result: TestResult) -> int:
    """Sources that an answer cites: those the bot lists, else those its marks name, each once.

    An answer without text cites nothing.
    """
    if not (result.answer or "").strip():
        return 0
    if result.references:
        return len(result.references)
    found = citations.marks(result.answer or "")
    return len({target for mark in found for target in mark.targets})

"""Figures of a whole run that are no mean of cases, over the cases that two runs share.

Where a set changed, those in metrics.json are of all its cases, and these are not the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from decisions.conditions import Conditions
from decisions.pairing import SideBySide
from ragmetrics.pipeline import ResponseTotals
from ragmetrics.stats.arrays import Floats, np
from ragmetrics.stats.means import f1
from records.results import EARLIER_TURN_FAILED, UNREADABLE
from records.scores import CALL_FAILED, NO_RESULT
from records.section_table import SectionTable

_CASES_AT_ONCE = 1_000


class SharedFigure(NamedTuple):
    """A figure of base and of new, over the same ``n`` cases."""

    base: float
    new: float
    n: int


def shared_figure(pairs: SideBySide, metric: str) -> SharedFigure | None:
    """A figure of both runs over the compared cases.

    None where the score lines lack what it needs, or no case has it.
    """
    figure = FIGURES.get(f"{pairs.base.section}.{metric}")
    return figure(pairs) if figure else None


def _abstention_f1(pairs: SideBySide) -> SharedFigure | None:
    """F1 over the cases that are decided in both; a case's repeats count as their mean."""
    declined = _decided_in_both(pairs, "abstention_accuracy")
    refused = _decided_in_both(pairs, "over_refusal")
    if declined is None or refused is None:
        return None
    values = []
    for right, wrong in zip(declined, refused, strict=True):
        hits = float(right.sum())
        values.append(f1(hits, len(right) - hits + float(wrong.sum())))
    a, b = values
    n = len(declined[0]) + len(refused[0])
    return None if a is None or b is None else SharedFigure(a, b, n)


def _decided_in_both(pairs: SideBySide, metric: str) -> tuple[Floats, Floats] | None:
    """The scores of the cases that have one in both runs."""
    a, b = pairs.pair(metric)
    if a is None or b is None:
        return None
    both = ~np.isnan(a) & ~np.isnan(b)
    return a[both], b[both]


def _budgets_kept(pairs: SideBySide) -> SharedFigure | None:
    """The share of the run's time budgets that are kept."""
    ids = shared_ids(pairs)
    a, b = (_totals(run, ids)[0].budgets_kept for run in (pairs.base, pairs.new))
    return None if a is None or b is None else SharedFigure(a, b, len(ids))


FIGURES: Mapping[str, Callable[[SideBySide], SharedFigure | None]] = MappingProxyType(
    {
        "abstention.abstention_f1": _abstention_f1,
        "pipeline.latency_percentiles_ok": _budgets_kept,
    }
)
"""The figures that can be worked out from score lines."""


def on_shared_cases(
    base: Conditions, new: Conditions, pairs: SideBySide
) -> tuple[Conditions, Conditions]:
    """Both runs with the counts, times, cost and tokens of the compared cases alone.

    ``pairs``: of pipeline.
    """
    ids = shared_ids(pairs)
    return _of_cases(base, pairs.base, ids), _of_cases(new, pairs.new, ids)


def _of_cases(run: Conditions, table: SectionTable, ids: Sequence[str]) -> Conditions:
    totals, cases = _totals(table, ids)
    section = {"latency_ms": totals.latency(), "usage": totals.tokens, "cost_usd": totals.cost}
    unread = totals.errors.pop(UNREADABLE, 0)
    head = {"cases": cases, "errors": totals.errors.total(), UNREADABLE: unread}
    return replace(run, metrics=head | {"sections": {"pipeline": section}})


def shared_ids(pairs: SideBySide) -> list[str]:
    """The cases that both runs have lines of, and that did not change."""
    rows = np.flatnonzero(pairs.in_both)
    return list(pairs.case_ids(rows.tolist()).values())


_NO_CALL = (NO_RESULT, f"{CALL_FAILED}{EARLIER_TURN_FAILED}")
"""Why there is no answer where no call failed."""


def _totals(table: SectionTable, ids: Sequence[str]) -> tuple[ResponseTotals, int]:
    """The times, tokens, cost and failures of the responses to some cases, and how many of these
    have a result."""
    totals, fields, cases = ResponseTotals(), ("status", "reasons", "evidence"), 0
    for start in range(0, len(ids), _CASES_AT_ONCE):
        some = table.lines_of(ids[start : start + _CASES_AT_ONCE], fields)
        cases += sum(
            any(line.reasons.get("*") != NO_RESULT for line in own) for own in some.values()
        )
        for line in (line for own in some.values() for line in own):
            if line.status == UNREADABLE:
                totals.add_error(UNREADABLE)
            elif line.status == "failed":
                if (why := line.reasons.get("*", CALL_FAILED)) not in _NO_CALL:
                    totals.add_error(why)
            elif row := line.evidence:
                measured = row.latency_ms, row.usage, row.cost_usd, row.run_budgets_ms
                totals.add(row.outcome, row.expected, *measured)
    return totals, cases

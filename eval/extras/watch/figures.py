"""The figures of production as shares by day, and the reference that they are compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from extras.watch.rise import DayCount, Rise
from extras.watch.summary import (
    ANSWERS,
    CLAIMS,
    EMPTY_RETRIEVALS,
    ERRORS,
    FEEDBACK,
    LATENCY,
    LEAKS,
    REFUSALS,
    UNREADABLE,
)
from extras.watch.trace_index import DayCounts, TraceIndex
from extras.watch.watched import WatchedFigure, watch_figure
from records.errors import StorageError

_EPOCH = date(1970, 1, 1)
_FACT = "reference"
_QUANTILE = 0.95


@dataclass(frozen=True, slots=True)
class Figure:
    """A share that is watched. ``label`` begins its sentence; ``about`` says what is bad."""

    name: str
    label: str
    bit: int
    about: str
    is_checked: bool = False
    """Whether texts are looked at for it, which is done for a share of the traces."""
    has_alarm: bool = True
    """Whether a rise is an alarm; a figure about how well traces can be read has none."""


FIGURES = (
    Figure("refusals", "Refusals", REFUSALS, "the answer refuses, or says that it found nothing"),
    Figure("empty_retrievals", "Empty retrievals", EMPTY_RETRIEVALS, "nothing was retrieved"),
    Figure("errors", "Errors", ERRORS, "the outermost span failed, or one did and no answer came"),
    Figure("slow", "Slow answers", LATENCY, "it took longer than 95 % of the reference"),
    Figure("odd_length", "Empty or very long answers", ANSWERS,
           "no text came, or more characters than in 95 % of the reference"),
    Figure("unsupported", "Answers with an unsupported claim", CLAIMS,
           "the passages do not support a claim of the answer", is_checked=True),
    Figure("leaks", "Answers with a leak", LEAKS,
           "the answer holds personal data, secrets or internals", is_checked=True),
    Figure("unreadable", "Unreadable answers", UNREADABLE,
           "it is uncertain which text is the answer", has_alarm=False),
    # Ratings come late and from few: a day's share changes for weeks, and is of who chose to rate.
    Figure("feedback", "Answers that people rated bad", FEEDBACK,
           "its rating is below 0.5, from 0 (bad) to 1 (good)", has_alarm=False),
)  # fmt: skip


TAIL_DISTORTS = ("errors", "slow")
"""Figures whose share a tail sampler makes: it keeps what failed or was slow more often."""


def shown_figures(sampling: str) -> list[Figure]:
    """The figures whose shares say something, by how the traces were chosen: head or tail."""
    return [f for f in FIGURES if sampling != "tail" or f.name not in TAIL_DISTORTS]


@dataclass(frozen=True, slots=True)
class ReferencePeriod:
    """The period that counts as normal. Frozen: what is read later does not change it.

    ``latency`` in microseconds and ``length`` in characters: what 95 % of its traces do not exceed.
    """

    first: date
    last: date
    traces: int
    units: int
    latency: int | None
    length: int | None
    days: Mapping[str, Sequence[DayCount]]


def date_of(day: int) -> date:
    """The date of a day of the index."""
    return _EPOCH + timedelta(days=day)


def day_of(day: date) -> int:
    """The number of a date in the index."""
    return (day - _EPOCH).days


def parse_range(text: str) -> tuple[date, date]:
    """``2026-03-01..2026-03-14`` as two dates. Raises StorageError for anything else."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)", text.strip())
    try:
        first, last = (date.fromisoformat(part) for part in match.groups()) if match else (1, 0)
    except ValueError:
        first, last = 1, 0
    if not isinstance(first, date) or not isinstance(last, date) or last < first:
        raise StorageError(
            f"--reference {text!r}: write two dates, such as 2026-03-01..2026-03-14."
        )
    return first, last


def reference_of(
    index: TraceIndex, wished: str | None, *, replace: bool, now: int
) -> ReferencePeriod | None:
    """The reference of an index; frozen at its first use. None until one is named.

    Raises StorageError for another one than the frozen, unless it is to be replaced, and for days
    without traces, or that are not over.
    """
    frozen = index.fact(_FACT)
    if wished is None:
        return None if frozen is None else _thawed(frozen)
    first, last = parse_range(wished)
    if frozen is not None and not replace:
        reference = _thawed(frozen)
        if (reference.first, reference.last) == (first, last):
            return reference
        raise StorageError(
            f"--reference {wished}: the reference is frozen as {reference.first}.."
            f"{reference.last}; leave the option out, or add --replace-reference to watch anew."
        )
    today = datetime.fromtimestamp(now / 1e6, UTC).date()
    if last >= today:
        raise StorageError(
            f"--reference {wished}: ends today or later; name days that are over (UTC)."
        )
    span = (day_of(first), day_of(last))
    traces, units = index.totals(*span)
    if not traces:
        days = index.days()
        there = f"{date_of(days[0])} to {date_of(days[1])}" if days else "none"
        raise StorageError(
            f"--reference {wished}: no trace is from these days; days with traces: {there}."
        )
    latency = index.quantile("latency", _QUANTILE, *span)
    length = index.quantile("length", _QUANTILE, *span)
    series = index.daily(_conditions(latency, length), *span)
    facts = {
        "first": first.isoformat(),
        "last": last.isoformat(),
        "traces": traces,
        "units": units,
        "latency": latency,
        "length": length,
        "days": {name: [[d.day, *d.as_counts] for d in days] for name, days in series.items()},
    }
    index.set_fact(_FACT, facts)
    return _thawed(facts)


def _thawed(facts: Mapping[str, Any]) -> ReferencePeriod:
    return ReferencePeriod(
        date.fromisoformat(facts["first"]),
        date.fromisoformat(facts["last"]),
        facts["traces"],
        facts["units"],
        facts["latency"],
        facts["length"],
        {
            name: [DayCount(date_of(day), bad, n) for day, bad, n in days]
            for name, days in facts["days"].items()
        },
    )


def _conditions(latency: int | None, length: int | None) -> dict[str, tuple[int, str]]:
    """For each figure its bit, and when a trace is bad; see ``TraceIndex.daily``."""
    slow = f"latency > {latency:d}" if latency is not None else "0"
    long = f"length > {length:d}" if length is not None else "0"
    own = {LATENCY: slow, ANSWERS: f"bad & {ANSWERS} OR {long}"}
    return {f.name: (f.bit, own.get(f.bit, f"bad & {f.bit} != 0")) for f in FIGURES}


def condition_of(figure: Figure, reference: ReferencePeriod | None) -> str:
    """When a trace is bad by a figure, in SQL."""
    latency = reference.latency if reference else None
    length = reference.length if reference else None
    return _conditions(latency, length)[figure.name][1]


def series_of(
    index: TraceIndex, reference: ReferencePeriod | None, first: int = 0
) -> dict[str, list[DayCounts]]:
    """Every figure by day, from a day on."""
    conditions = _conditions(
        reference.latency if reference else None, reference.length if reference else None
    )
    return index.daily(conditions, first, 1 << 40)


def watched(
    index: TraceIndex,
    reference: ReferencePeriod,
    unit: str,
    sampling: str,
    known: Mapping[str, Sequence[Rise]],
    today: date,
) -> list[WatchedFigure]:
    """Each figure that the reference has units for, against it. ``unit``: a plural. ``known``: the
    alarms that earlier looks found. ``today``: a day that is not over, so neither is any later."""
    series = series_of(index, reference, day_of(reference.last) + 1)
    alarming = [figure for figure in shown_figures(sampling) if figure.has_alarm]
    figures = [figure for figure in alarming if reference.days.get(figure.name)]
    return [
        watch_figure(
            figure.name,
            figure.label,
            reference.days[figure.name],
            [
                DayCount(date_of(day.day), *day.as_counts)
                for day in series[figure.name]
                if date_of(day.day) < today
            ],
            figures=len(alarming),
            unit=unit,
            known=known.get(figure.name, ()),
        )
        for figure in figures
    ]

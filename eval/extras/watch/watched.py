"""Did a figure of production get worse since the reference period? The answer in plain words.

`ragmetrics.stats.rise` decides; this module says it. Pure functions on counts by day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any

import msgspec

from extras.watch import rise
from extras.watch.rise import DayCount, ReferenceShare, Rise
from records.metrics import rounded
from terminal.page import fine_percent
from terminal.tables import counted

CANARIES = "A fixed set asked daily does not have this problem: --canaries."

_SHOWN_DAYS, _RECENT = timedelta(90), timedelta(27)
_BEFORE = timedelta(14)
"""Days that are drawn, counted as recent, and drawn before a rise that began earlier."""


@dataclass(frozen=True, slots=True)
class WatchedFigure:
    """One figure against its reference: all alarms so far, and the words.

    ``label`` begins the sentence and is a plural ("Refusals"); ``unit`` is what is counted: traces
    or sessions. ``days``: those that are over and have any unit.
    """

    name: str
    label: str
    unit: str
    reference: ReferenceShare
    days: tuple[DayCount, ...]
    rises: tuple[Rise, ...]

    @property
    def lasting(self) -> Rise | None:
        """The rise that is not over, seen or not."""
        return self.rises[-1] if self.rises and self.rises[-1].ended is None else None

    @property
    def alarm(self) -> bool:
        """Whether a rise lasts that no person has seen."""
        return self.lasting is not None and self.lasting.alarms

    @property
    def counts(self) -> tuple[int, int]:
        """Bad units and units since the rise that lasts, else of the last four weeks."""
        since = self.days[-1].day - _RECENT if self.days else date.max
        since = self.lasting.since if self.lasting else since
        part = [count for count in self.days if count.day >= since]
        return sum(count.bad for count in part), sum(count.n for count in part)

    @property
    def sentence(self) -> str:
        """The course of the figure, in a sentence."""
        before, last, (bad, n) = fine_percent(self.reference.share), self.lasting, self.counts
        if not n:
            alarm = f"; the alarm since {spoken(last.since)} lasts" if last else ""
            return f"{self.label}: {before} in the reference; no {self.unit} to watch yet{alarm}."
        now = fine_percent(bad / n)
        if last is None:
            return (
                f"{self.label}: {now} of {n:,} {self.unit} in the last four weeks, {before} in the "
                "reference."
            )
        text = f"{self.label} rose from {before} to {now} since {spoken(last.since)}"
        if last.seen is not None:
            return f"{text}; seen on {spoken(last.seen)}, an alarm only if it rises further."
        return f"{text} (alarm of {spoken(last.sounded)}, until two weeks are back, or --seen)."

    @property
    def notes(self) -> list[str]:
        """The limits of the answer, and the last rise that is over, a sentence each."""
        notes, weeks = [], self.reference.weeks
        if self.rises and (over := self.rises[-1]).ended is not None:
            notes.append(f"It rose on {spoken(over.since)} and was back on {spoken(over.ended)}.")
        if weeks < rise.ENOUGH_WEEKS:
            notes.append(
                f"The reference has {self.unit} in {counted(weeks, 'whole week')}; with fewer than "
                f"{rise.ENOUGH_WEEKS}, expect false alarms. {CANARIES}"
            )
        elif not self.reference.promises:
            notes.append(
                f"The weeks of this figure differ too much: expect false alarms. {CANARIES}"
            )
        return notes


def watch_figure(
    name: str,
    label: str,
    reference: Sequence[DayCount],
    days: Sequence[DayCount],
    *,
    figures: int,
    unit: str = "traces",
    known: Sequence[Rise] = (),
) -> WatchedFigure:
    """Watch one of ``figures`` shares that are watched together.

    ``days``: those that are over. ``known``: the alarms that earlier looks found. Counts as
    `rise.watch_share` takes them, and its ValueErrors.
    """
    rises = rise.watch_share(reference, days, figures, known)
    facts = rise.reference_share(reference, figures)
    watched = tuple(count for count in days if count.n)
    return WatchedFigure(name, label, unit, facts, watched, tuple(rises))


def with_seen(rises: Sequence[Rise], today: date) -> list[Rise]:
    """The alarms of a figure after a person has seen the one that lasts, if one does."""
    if not rises or not rises[-1].alarms:
        return list(rises)
    return [*rises[:-1], replace(rises[-1], seen=max(today, rises[-1].sounded))]


def not_found(figures: Sequence[WatchedFigure]) -> str:
    """The rises that these figures can hardly show, in a sentence; "" without figures."""
    limits = ", ".join(f"{f.label.lower()} {fine_percent(f.reference.limit)}" for f in figures)
    if not limits:
        return ""
    return (
        "Weeks differ, so four whole weeks must reach this share for an alarm, and smaller rises "
        f"are not found: {limits}. Use --canaries for those."
    )


def verdict(figures: Sequence[WatchedFigure]) -> str:
    """The joint verdict on all figures, in a sentence."""
    rises = [(f.label, f.lasting) for f in figures if f.alarm]
    alarms = [f"{label} since {spoken(last.since)}" for label, last in rises if last]
    if not alarms:
        return f"No alarm in {counted(len(figures), 'figure')}."
    return f"ALARM in {len(alarms)} of {counted(len(figures), 'figure')}: {'; '.join(alarms)}."


def shown_days(figure: WatchedFigure) -> list[DayCount]:
    """The days to draw: the last 91, or more where a rise that lasts began earlier."""
    if not figure.days:
        return []
    first = figure.days[-1].day - _SHOWN_DAYS
    if figure.lasting is not None:
        first = min(first, figure.lasting.since - _BEFORE)
    return [count for count in figure.days if count.day >= first]


def daily_shares(figure: WatchedFigure) -> list[tuple[date, float | None]]:
    """The share of each day that is drawn; None on days without units."""
    days = shown_days(figure)
    if not days:
        return []
    shares = {count.day: count.bad / count.n for count in days}
    first = days[0].day
    every = [first + timedelta(place) for place in range((days[-1].day - first).days + 1)]
    return [(day, shares.get(day)) for day in every]


def spoken(day: date) -> str:
    """A day without its year: 3 March."""
    return f"{day.day} {_MONTHS.split()[day.month - 1]}"


_MONTHS = "January February March April May June July August September October November December"
"""Not from strftime, whose names follow the locale."""


def as_dict(figure: WatchedFigure) -> dict[str, Any]:
    """The figure as ``--json`` prints it."""
    last = figure.lasting
    rises: list[dict[str, Any]] = [msgspec.to_builtins(rise) for rise in figure.rises]
    current = rises.pop() if last else dict.fromkeys(("since", "sounded", "ended", "seen"))
    bad, n = figure.counts
    return {
        "name": figure.name,
        "label": figure.label,
        "unit": figure.unit,
        "alarm": figure.alarm,
        "sentence": figure.sentence,
        "notes": figure.notes,
        "reference": rounded(asdict(figure.reference)) | {"promises": figure.reference.promises},
        "current": current
        | {"bad": bad, "n": n, "share": rounded(bad / n) if n else None}
        | {"days": msgspec.to_builtins(shown_days(figure))},
        "earlier": rises,
    }

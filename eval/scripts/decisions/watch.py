"""Did a figure of production get worse since the reference period? The answer in plain words.

`ragmetrics.stats.rise` decides; this module says it. Pure functions on counts by day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any

import msgspec

from ragmetrics.stats import rise
from ragmetrics.stats.rise import DayCount, ReferenceShare, Rise
from records.metrics import rounded
from terminal.page import fine_percent
from terminal.tables import counted

CANARIES = "A fixed set asked daily does not depend on that: --canaries."

_SHOWN_DAYS, _RECENT = timedelta(90), timedelta(27)
_BEFORE = timedelta(14)
"""Days that are drawn, counted as recent, and drawn before a rise that began earlier."""


@dataclass(frozen=True, slots=True)
class WatchedFigure:
    """One figure against its reference: all alarms so far, and the words.

    ``days``: those that are over and have any unit. ``bad``, ``n``: since the rise that lasts, else
    of the last four weeks. ``notes``: what limits the answer, a sentence each.
    """

    name: str
    label: str
    unit: str
    reference: ReferenceShare
    days: tuple[DayCount, ...]
    rises: tuple[Rise, ...]
    bad: int
    n: int
    sentence: str
    notes: tuple[str, ...]

    @property
    def lasting(self) -> Rise | None:
        """The rise that is not over, seen or not."""
        return self.rises[-1] if self.rises and self.rises[-1].ended is None else None

    @property
    def alarm(self) -> bool:
        """Whether a rise lasts that no person has seen."""
        return self.lasting is not None and self.lasting.alarms


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

    ``label`` begins the sentence and is a plural ("Refusals"); ``unit`` is what is counted: traces
    or sessions. ``days``: those that are over. ``known``: the alarms that earlier looks found.
    Counts as `rise.watch_share` takes them, and its ValueErrors.
    """
    rises = rise.watch_share(reference, days, figures, known)
    facts = rise.reference_share(reference, figures)
    watched = tuple(count for count in days if count.n)
    last = rises[-1] if rises else None
    since = date.max
    if watched:
        lasts = last is not None and last.ended is None
        since = last.since if last is not None and lasts else watched[-1].day - _RECENT
    part = [count for count in watched if count.day >= since]
    bad, n = sum(count.bad for count in part), sum(count.n for count in part)
    return WatchedFigure(
        name=name,
        label=label,
        unit=unit,
        reference=facts,
        days=watched,
        rises=tuple(rises),
        bad=bad,
        n=n,
        sentence=_sentence(label, unit, facts, last, bad, n),
        notes=tuple(_notes(facts, last)),
    )


def with_seen(rises: Sequence[Rise], today: date) -> list[Rise]:
    """The alarms of a figure after a person has seen the one that lasts, if one does."""
    if not rises or not rises[-1].alarms:
        return list(rises)
    return [*rises[:-1], replace(rises[-1], seen=max(today, rises[-1].sounded))]


def _sentence(
    label: str, unit: str, reference: ReferenceShare, last: Rise | None, bad: int, n: int
) -> str:
    before = fine_percent(reference.share)
    lasts = last is not None and last.ended is None
    if not n:
        alarm = (
            f"; the alarm since {spoken(last.since)} lasts" if last is not None and lasts else ""
        )
        return f"{label}: {before} in the reference; no {unit} to watch yet{alarm}."
    now = fine_percent(bad / n)
    if last is None or not lasts:
        return f"{label}: {now} of {n:,} {unit} in the last four weeks, {before} in the reference."
    text = f"{label} rose from {before} to {now} since {spoken(last.since)}"
    if last.seen is not None:
        return f"{text}; seen on {spoken(last.seen)}, an alarm only if it rises further."
    return f"{text} (alarm of {spoken(last.sounded)}, until two weeks are back, or --seen)."


def _notes(reference: ReferenceShare, last: Rise | None) -> Iterator[str]:
    if last is not None and last.ended is not None:
        yield f"It rose on {spoken(last.since)} and was back on {spoken(last.ended)}."
    if reference.weeks < rise.ENOUGH_WEEKS:
        yield (
            f"The reference has {counted(reference.weeks, 'whole week')}; with fewer than "
            f"{rise.ENOUGH_WEEKS} there is no promise of few false alarms. {CANARIES}"
        )
    elif not reference.promises:
        yield f"The weeks of this figure differ too much for a promise. {CANARIES}"


def not_found(figures: Sequence[WatchedFigure]) -> str:
    """What rises these figures can hardly show, in a sentence; "" without figures."""
    limits = ", ".join(f"{f.label.lower()} {fine_percent(f.reference.limit)}" for f in figures)
    if not limits:
        return ""
    return (
        "Weeks differ, so four whole weeks must reach this share for an alarm, and smaller rises "
        f"are not found: {limits}. For them: --canaries."
    )


def verdict(figures: Sequence[WatchedFigure]) -> str:
    """What all figures together come to, in a sentence."""
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
    return f"{day.day} {_MONTHS[day.month - 1]}"


_MONTHS = (
    "January February March April May June July August September October November December".split()
)
"""Not from strftime, whose names follow the locale."""


def as_dict(figure: WatchedFigure) -> dict[str, Any]:
    """The figure as ``--json`` prints it."""
    last = figure.lasting
    rises: list[dict[str, Any]] = [msgspec.to_builtins(rise) for rise in figure.rises]
    current = rises.pop() if last else dict.fromkeys(("since", "sounded", "ended", "seen"))
    share = figure.bad / figure.n if figure.n else None
    return {
        "name": figure.name,
        "label": figure.label,
        "unit": figure.unit,
        "alarm": figure.alarm,
        "sentence": figure.sentence,
        "notes": list(figure.notes),
        "reference": rounded(asdict(figure.reference)) | {"promises": figure.reference.promises},
        "current": current
        | {"bad": figure.bad, "n": figure.n, "share": rounded(share)}
        | {"days": msgspec.to_builtins(shown_days(figure))},
        "earlier": rises,
    }

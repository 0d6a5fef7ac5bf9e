"""Did a figure of production get worse since the reference period? The answer in plain words.

`ragmetrics.stats.rise` decides; this module says it. Pure functions on counts by day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

import msgspec

from ragmetrics.stats import rise
from ragmetrics.stats.rise import DayCount, QuarterWatch, ReferenceShare
from records.metrics import rounded
from terminal.page import fine_percent
from terminal.tables import counted

ENOUGH_UNITS = 3000
"""Reference units below which a rise is found late, which is said."""

ENOUGH_DAYS = 14
"""Reference days below which little is known of how much days differ, which is said."""


@dataclass(frozen=True, slots=True)
class WatchedFigure:
    """One figure against its reference: the current quarter, those before it, and the words.

    ``current``: the last quarter with any unit, None while there is none. ``notes``: what limits
    the answer, a sentence each.
    """

    name: str
    label: str
    unit: str
    reference: ReferenceShare
    current: QuarterWatch | None
    earlier: tuple[QuarterWatch, ...]
    sentence: str
    notes: tuple[str, ...]

    @property
    def alarm(self) -> bool:
        """Whether the current quarter has an alarm."""
        return self.current is not None and self.current.alarm


def watch_figure(
    name: str,
    label: str,
    reference: Sequence[DayCount],
    days: Sequence[DayCount],
    *,
    figures: int,
    unit: str = "traces",
) -> WatchedFigure:
    """Watch one of ``figures`` shares that are watched together.

    ``label`` begins the sentence and is a plural ("Refusals"); ``unit`` is what is counted: traces
    or sessions. Counts as `rise.watch_share` takes them, and its ValueErrors.
    """
    quarters = rise.watch_share(reference, days, figures)
    facts = rise.reference_share(reference, figures)
    current = quarters[-1] if quarters else None
    return WatchedFigure(
        name=name,
        label=label,
        unit=unit,
        reference=facts,
        current=current,
        earlier=tuple(quarters[:-1]),
        sentence=_sentence(label, unit, facts, current),
        notes=(*_earlier_alarm(facts, quarters[:-1]), *_notes(unit, facts)),
    )


def _sentence(
    label: str, unit: str, reference: ReferenceShare, quarter: QuarterWatch | None
) -> str:
    before = fine_percent(reference.share)
    if quarter is None or quarter.share is None:
        return f"{label}: {before} in the reference; no {unit} to watch yet."
    now = fine_percent(quarter.share)
    if not quarter.alarm:
        return (
            f"{label}: {now} of {quarter.n:,} {unit} since {spoken(quarter.days[0].day)}, "
            f"{before} in the reference: no evidence of a rise."
        )
    after = (
        "" if quarter.share_after is None else f"; {fine_percent(quarter.share_after)} after that"
    )
    return (
        f"{label} rose from {before} to {now} {_when(quarter)} (certain enough at any look){after}."
    )


def _earlier_alarm(reference: ReferenceShare, quarters: Sequence[QuarterWatch]) -> Iterator[str]:
    """The last alarm before the current quarter: what begins anew is not over for that."""
    for quarter in reversed(quarters):
        if quarter.alarm and quarter.share is not None:
            yield (
                f"In the quarter from {spoken(quarter.start)} {quarter.start.year} it rose "
                f"from {fine_percent(reference.share)} to {fine_percent(quarter.share)} "
                f"{_when(quarter)}."
            )
            return


def _notes(unit: str, reference: ReferenceShare) -> Iterator[str]:
    if reference.n < ENOUGH_UNITS:
        yield (
            f"The reference has {reference.n:,} {unit}; with fewer than {ENOUGH_UNITS:,} a rise "
            "is found late or not at all."
        )
    if reference.days < ENOUGH_DAYS:
        yield (
            f"The reference has {counted(reference.days, 'day')}; with fewer than {ENOUGH_DAYS} "
            "little is known of how much days differ, so an alarm may be early."
        )


def verdict(figures: Sequence[WatchedFigure]) -> str:
    """What all figures together come to, in a sentence."""
    alarms = [figure for figure in figures if figure.alarm]
    if not alarms:
        return f"No alarm in {counted(len(figures), 'figure')}."
    names = "; ".join(
        f"{figure.label} {_when(figure.current)}" for figure in alarms if figure.current
    )
    return f"ALARM in {len(alarms)} of {counted(len(figures), 'figure')}: {names}."


def daily_shares(quarter: QuarterWatch) -> list[tuple[date, float | None]]:
    """The share of each day from the first watched one of a quarter on; None without units."""
    shares = {day.day: day.bad / day.n for day in quarter.days}
    first, last = quarter.days[0].day, quarter.days[-1].day
    days = [first + timedelta(days=place) for place in range((last - first).days + 1)]
    return [(day, shares.get(day)) for day in days]


def spoken(day: date) -> str:
    """A day without its year: 3 March."""
    return f"{day.day} {_MONTHS[day.month - 1]}"


def _when(quarter: QuarterWatch) -> str:
    """The days of a rise: since 3 March, or from 3 to 20 March where it ended."""
    first, last = quarter.since, quarter.until
    if first is None or last is None:
        return ""
    if quarter.lasting:
        return f"since {spoken(first)}"
    if first == last:
        return f"on {spoken(first)}"
    begin = str(first.day) if first.month == last.month else spoken(first)
    return f"from {begin} to {spoken(last)}"


_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
"""Not from strftime, whose names follow the locale."""


def as_dict(figure: WatchedFigure) -> dict[str, Any]:
    """The figure as ``--json`` prints it."""
    return {
        "name": figure.name,
        "label": figure.label,
        "unit": figure.unit,
        "alarm": figure.alarm,
        "sentence": figure.sentence,
        "notes": list(figure.notes),
        "reference": rounded(asdict(figure.reference)),
        "current": _quarter(figure.current) if figure.current else None,
        "earlier": [_quarter(quarter) for quarter in figure.earlier],
    }


def _quarter(quarter: QuarterWatch) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(quarter)
    del data["reference"]
    for row in (data, *data["days"]):
        row["e_value"] = float(f"{row['e_value']:.6g}")
    data |= rounded({name: data[name] for name in ("share", "share_after")})
    return data

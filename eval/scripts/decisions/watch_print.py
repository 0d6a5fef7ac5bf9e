"""Watched figures as blocks: a sentence each, daily shares as pictures, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisions.watch import WatchedFigure, daily_shares, spoken, verdict
from terminal.page import Block, Conclusion, LinePlot, Prose, fine_percent


def watch_blocks(figures: Sequence[WatchedFigure], *, pictures: bool = False) -> Iterator[Block]:
    """A sentence a figure, a plot of each that has an alarm, and the verdict.

    ``pictures``: a plot of every figure.
    """
    for figure in figures:
        mark = "!" if figure.alarm else " "
        yield Prose(f"{mark} {figure.sentence}", "bad" if figure.alarm else None)
    yield from (Prose(line, "doubt") for line in limits(figures))
    for figure in figures:
        if (figure.alarm or pictures) and (plot := picture(figure)) is not None:
            yield plot
    yield Conclusion(verdict(figures), "bad" if any(f.alarm for f in figures) else None)


def limits(figures: Sequence[WatchedFigure]) -> list[str]:
    """What limits the answers, each note once; with the figures where not all have it."""
    notes = dict.fromkeys(note for figure in figures for note in figure.notes)
    lines = []
    for note in notes:
        names = [figure.label for figure in figures if note in figure.notes]
        lines.append(note if len(names) == len(figures) else f"{', '.join(names)}: {note}")
    return lines


def picture(figure: WatchedFigure) -> LinePlot | None:
    """The daily shares of the current quarter, with the reference's share and its upper limit as
    dotted lines, and pointers at the day named and at the day of the alarm. None without days.
    """
    if figure.current is None:
        return None
    quarter, reference = figure.current, figure.reference
    shares = daily_shares(quarter)
    places = {day: place for place, (day, _) in enumerate(shares)}
    legend = [
        f"{spoken(shares[0][0])} – {spoken(shares[-1][0])}; dotted: reference "
        f"{fine_percent(reference.share)} and its upper limit {fine_percent(reference.upper)}"
    ]
    if quarter.since and quarter.sounded:
        legend.append(f"▲ rose since {spoken(quarter.since)}, alarm on {spoken(quarter.sounded)}")
    return LinePlot(
        f"{figure.label}: share of {figure.unit} by day",
        [share for _, share in shares],
        [reference.share, reference.upper],
        [places[day] for day in (quarter.since, quarter.sounded) if day is not None],
        label=fine_percent,
        legend=tuple(legend),
    )

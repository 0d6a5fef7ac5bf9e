"""Watched figures on the terminal: daily shares as pictures, a sentence each, the verdict last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decisions.watch import WatchedFigure, daily_shares, percent, spoken, verdict
from terminal.plot import plot_lines
from terminal.tables import draws_unicode, plain

if TYPE_CHECKING:
    from rich.console import Console

HEIGHT = 8

_NARROWEST, _WIDEST = 12, 92
"""Columns of a picture; a quarter has at most 92 days."""

_SCALE = 10


def print_watch(
    console: Console, figures: Sequence[WatchedFigure], *, pictures: bool = False
) -> None:
    """A row a figure, a plot of each that has an alarm, and the verdict last.

    ``pictures``: a plot of every figure. Outside UTF-8 the pictures are ASCII.
    """
    unicode = draws_unicode(console)
    for figure in figures:
        mark = "!" if figure.alarm else " "
        _say(console, f"{mark} {figure.sentence}", "red" if figure.alarm else None)
    for line in limits(figures):
        _say(console, line, "yellow")
    for figure in figures:
        if figure.current is None or not (figure.alarm or pictures):
            continue
        console.print()
        _say(console, f"{figure.label}: share of {figure.unit} by day", "bold")
        for line in picture(figure, console.width, unicode=unicode):
            console.print(line, no_wrap=True, overflow="crop", markup=False, highlight=False)
    console.print()
    _say(console, verdict(figures), "bold red" if any(f.alarm for f in figures) else "bold")


def limits(figures: Sequence[WatchedFigure]) -> list[str]:
    """What limits the answers, each note once; with the figures where not all have it."""
    notes = dict.fromkeys(note for figure in figures for note in figure.notes)
    lines = []
    for note in notes:
        names = [figure.label for figure in figures if note in figure.notes]
        lines.append(note if len(names) == len(figures) else f"{', '.join(names)}: {note}")
    return lines


def picture(figure: WatchedFigure, width: int, *, unicode: bool = True) -> list[str]:
    """The daily shares of the current quarter, with the reference's share and its upper limit as
    dotted lines, and pointers at the day named and at the day of the alarm. [] without days.
    """
    if figure.current is None:
        return []
    quarter, reference = figure.current, figure.reference
    shares = daily_shares(quarter)
    places = {day: place for place, (day, _) in enumerate(shares)}
    marks = [places[day] for day in (quarter.since, quarter.sounded) if day is not None]
    columns = max(_NARROWEST, min(width - _SCALE, len(shares), _WIDEST))
    drawn = plot_lines(
        [share for _, share in shares],
        width=columns,
        height=HEIGHT,
        limits=[reference.share, reference.upper],
        marks=marks,
        unicode=unicode,
        label=percent,
    )
    first, last = spoken(shares[0][0]), spoken(shares[-1][0])
    dash = "–" if unicode else "-"
    legend = [
        f"{first} {dash} {last}; dotted: reference {percent(reference.share)} "
        f"and its upper limit {percent(reference.upper)}"
    ]
    if quarter.since and quarter.sounded:
        point = "▲" if unicode else "^"
        legend.append(
            f"{point} rose since {spoken(quarter.since)}, alarm on {spoken(quarter.sounded)}"
        )
    return drawn + legend


def _say(console: Console, text: str, style: str | None = None) -> None:
    """A line of prose: folded on a terminal, whole in a file."""
    from rich.text import Text

    console.print(Text(plain(text, 2000), style=style or ""), soft_wrap=not console.is_terminal)

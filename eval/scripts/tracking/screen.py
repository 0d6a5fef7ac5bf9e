"""The history on a terminal: a table with sparklines, plots, what changed, alerts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tables import number, plain
from tracking.history import History
from tracking.plot import plot, shrunk, sparkline
from tracking.series import Change, Line
from tracking.words import heading, percent, reason

if TYPE_CHECKING:
    from rich.console import Console

ASCII = str.maketrans({"–": "-", "…": ".", "▼": "v", "▲": "^", "→": ">", "•": "*"})
HEIGHT = 8
NARROWEST = 8
"""Columns that a sparkline or a plot keeps on the narrowest terminal."""


def print_history(
    console: Console,
    history: History,
    lines: Sequence[Line],
    changed: Sequence[Change],
    *,
    plots: bool,
    max_drop: float,
) -> None:
    """Everything, as wide as the terminal. Outside UTF-8 only ASCII is printed."""
    screen = _Screen(console)
    points = history.points
    screen.say(
        f"{len(points)} {'point' if len(points) == 1 else 'points'}: "
        f"{points[0].title}" + (f" to {points[-1].title}" if len(points) > 1 else "")
    )
    if not lines:
        screen.say("No metric of the history fits --metric.")
        return
    _table(screen, lines, len(points))
    for line in lines if plots or len(lines) == 1 else ():
        if len(line.places) < 2:
            continue
        _plot(screen, line, len(points), max_drop)
    if changed:
        screen.say("")
    for change in changed:
        screen.say(f"{points[change.place].label}: {change.what}.", "yellow")
    _alerts(screen, history, lines)
    screen.say("")
    alarmed = sum(bool(line.alerts) for line in lines)
    screen.say(f"{alarmed} of {len(lines)} metrics call for a look." if alarmed else "No alert.")


def _alerts(screen: _Screen, history: History, lines: Sequence[Line]) -> None:
    """The metrics that call for a look, under the commit where they got worse."""
    said: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        name = f"{line.name} {number(line.values[-1].mean)}"
        for alert in line.alerts:
            found = said.setdefault(heading(alert, history.points), {})
            found.setdefault(name, []).append(reason(line, alert, history.points))
    for head, metrics in said.items():
        screen.say("")
        screen.say(f"ALERT {head}:", "bold red")
        for name, reasons in metrics.items():
            screen.say(f"  {name}: {'; '.join(reasons)}.", "red")


class _Screen:
    def __init__(self, console: Console) -> None:
        self.console = console
        self.unicode = console.encoding.lower().replace("-", "").startswith("utf")
        self.width = max(console.width, 40)

    def say(self, text: str, style: str = "") -> None:
        """Foreign text made harmless, wrapped at words."""
        from rich.text import Text

        self.console.print(Text(self.safe(plain(text, 2000)), style=style))

    def raw(self, text: str, style: str = "") -> None:
        """A line that is drawn: never wrapped."""
        from rich.text import Text

        self.console.print(Text(text, style=style), no_wrap=True, overflow="crop")

    def safe(self, text: str) -> str:
        if self.unicode:
            return text
        return text.translate(ASCII).encode("ascii", "replace").decode("ascii")


def _table(screen: _Screen, lines: Sequence[Line], count: int) -> None:
    """A heading a section, a row a metric; the trend takes what the figures leave."""
    head = ("first", "last", "change")
    names = [screen.safe(plain(line.metric, 60)) for line in lines]
    figures = [tuple(screen.safe(cell) for cell in _figures(line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(head, *figures, strict=True)]
    longest = max(map(len, (*names, "metric")))
    room = screen.width - 2 - longest - sum(widths) - len(widths) - 1
    sparks = [_spark(line, count, max(room, NARROWEST), screen.unicode) for line in lines]
    wide = max(5, *map(len, sparks))

    def row(mark: str, name: str, spark: str, cells: Sequence[str], style: str) -> None:
        shown = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        screen.raw(f"{mark} {name:<{longest}} {spark:<{wide}} {shown}", style)

    row(" ", "metric", "trend", head, "dim")
    section = None
    for line, name, spark, cells in zip(lines, names, sparks, figures, strict=True):
        if line.section != section:
            section = line.section
            screen.raw(screen.safe(plain(section, 60)), "bold")
        row("!" if line.alerts else " ", name, spark, cells, "red" if line.alerts else "")


def _figures(line: Line) -> tuple[str, ...]:
    """First and last value of today's definition and eval set, and the change between them."""
    values = [value.mean for value in line.values[line.segment() :]]
    change = values[-1] - values[0]
    arrow = "  " if abs(change) < 5e-4 else " ▲" if change > 0 else " ▼"
    sign = "+" if change > 0 else "-" if change < 0 else ""
    return number(values[0]), number(values[-1]), f"{sign}{number(abs(change))}{arrow}"


def _values(line: Line, count: int) -> list[float | None]:
    """One value a point, None where the metric was not measured."""
    values: list[float | None] = [None] * count
    for place, value in zip(line.places, line.values, strict=True):
        values[place] = value.mean
    return values


def _spark(line: Line, count: int, room: int, unicode: bool) -> str:
    """All points; where there are more than columns, neighbours share one as their mean."""
    columns = max(min(count, room - len(line.breaks)), 1)
    values, breaks = shrunk(_values(line, count), line.breaks, columns)
    return sparkline(values, breaks, unicode=unicode)


def _plot(screen: _Screen, line: Line, count: int, max_drop: float) -> None:
    judged = line.judged[-1]
    limit = None
    if judged.baseline is not None:
        side = -1.0 if line.higher_is_better else 1.0
        limit = judged.baseline + side * max_drop * abs(judged.baseline)
    fell = [alert.at for alert in line.alerts if alert.kind != "gone"]
    better = "higher" if line.higher_is_better else "lower"
    said = f"{line.name} ({better} is better"
    if limit is not None:
        said += f"; dotted: {percent(max_drop)} worse than {number(judged.baseline)}"
    screen.console.print()
    screen.say(said + ")", "bold")
    drawn = plot(
        _values(line, count),
        width=max(min(screen.width - 10, 4 * count), NARROWEST),
        height=HEIGHT,
        breaks=line.breaks,
        limit=limit,
        marks=fell,
        unicode=screen.unicode,
    )
    for row in drawn:
        screen.raw(row)

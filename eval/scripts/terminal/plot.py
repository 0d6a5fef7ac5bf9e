"""Rows of numbers as pictures: of one line, or of several with braille dots or ASCII."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.,-=+*#"

SHADES = " ░▒▓█"
"""Five shades of a cell, from nothing to the loudest."""

_LEAST_SPAN = 0.1

_GAP = "·"

_BREAK, _ASCII_BREAK = "┊", "|"

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character by row and column of its dots (Unicode block U+2800)."""

_Numbers = Sequence[float | None]


def sparkline(values: _Numbers, breaks: Sequence[int] = (), *, unicode: bool = True) -> str:
    """A character a value, low to high between the line's own ends; a gap is a dot.

    The ends are at least 10 % of the values' size apart, so that small changes look small.
    Before each place in ``breaks`` stands a bar: what follows is measured by another definition.
    """
    numbers = [value for value in values if value is not None]
    if not numbers:
        return (_GAP if unicode else " ") * len(values)
    bars = BARS if unicode else ASCII_BARS
    span = max(max(numbers) - min(numbers), _LEAST_SPAN * max(map(abs, numbers)))
    low = (min(numbers) + max(numbers) - span) / 2
    text = []
    for index, value in enumerate(values):
        if index in breaks:
            text.append(_BREAK if unicode else _ASCII_BREAK)
        if value is None:
            text.append(_GAP if unicode else " ")
        else:
            share = (value - low) / span if span else 0.0  # a line of zeros
            text.append(bars[min(int(share * len(bars)), len(bars) - 1)])
    return "".join(text)


def bar(share: float | None, columns: int) -> str:
    """A share in [0, 1] as a bar of at most so many characters, in eighths of one; "" for None."""
    if share is None:
        return ""
    whole, eighths = divmod(round(share * columns * 8), 8)
    return "█" * whole + ("▏▎▍▌▋▊▉"[eighths - 1] if eighths else "")


def shrunk(
    values: _Numbers, breaks: Sequence[int], columns: int
) -> tuple[list[float | None], list[int]]:
    """The values in at most so many columns: neighbours become their mean, gaps are left out.

    Returns also the columns that the breaks come to.
    """
    count = len(values)
    if count <= columns:
        return list(values), list(breaks)
    groups: list[list[float]] = [[] for _ in range(columns)]
    for index, value in enumerate(values):
        if value is not None:
            groups[index * columns // count].append(value)
    means = [sum(group) / len(group) if group else None for group in groups]
    return means, sorted({place * columns // count for place in breaks})


def change_line(
    change: float,
    *,
    reach: float,
    columns: int,
    interval: Sequence[float] | None = None,
    unseen: float | None = None,
    target: float | None = None,
    unicode: bool = True,
) -> str:
    """A change as two dots on a scale of differences: before at 0, in the middle, and after.

    The scale goes from −``reach`` to +``reach``. ``interval``: of the difference, drawn with ends.
    ``unseen``: the smallest difference that can be detected; everything below it is shaded.
    ``target``: its distance from the value before, a tick, or an arrow at the edge that it is
    beyond. "" when the change lies outside of the scale.
    """
    if reach <= 0 or abs(change) > reach:
        return ""

    def at(value: float) -> int:
        share = min(1.0, max(0.0, (value / reach + 1) / 2))
        return round(share * (columns - 1))

    shade, left, line, right, join, before, after, both, tick, below, above = (
        "░├─┤━○●◉│◂▸" if unicode else ".[-]=o*@|<>"
    )
    drawn = [" "] * columns

    def fill(first: float, last: float, char: str) -> None:
        drawn[at(first) : at(last) + 1] = char * (at(last) + 1 - at(first))

    if unseen is not None:
        fill(-unseen, unseen, shade)
    if interval is not None:
        fill(interval[0], interval[1], line)
        drawn[at(interval[0])], drawn[at(interval[1])] = left, right
    fill(min(change, 0.0), max(change, 0.0), join)
    if target is not None:
        drawn[at(target)] = tick if abs(target) <= reach else above if target > 0 else below
    drawn[at(0.0)], drawn[at(change)] = before, after
    if at(0.0) == at(change):
        drawn[at(0.0)] = both
    return "".join(drawn)


def line_plot(
    values: _Numbers, room: int, unicode: bool, *, step: int = 1, **how: Any
) -> list[str]:
    """`plot_lines` in 8 rows and, where there is ``room``, ``step`` columns a value."""
    width = min(room, max(8, step * len(values)))
    return plot_lines(values, width=width, height=8, unicode=unicode, **how)


def plot_lines(
    values: _Numbers,
    *,
    width: int,
    height: int,
    breaks: Sequence[int] = (),
    limits: Sequence[float] = (),
    marks: Sequence[int] = (),
    intervals: Sequence[Sequence[float] | None] = (),
    unicode: bool = True,
    label: Callable[[float], str] = "{:.3f}".format,
) -> list[str]:
    """A plot of ``height`` rows and ``width`` columns, with its scale at the left.

    Neighbours are joined, but not over a gap or a break. ``limits`` are drawn as dotted lines.
    ``intervals``: of each value, drawn upright; the ends alone where values stand too close for
    that. Under the plot stands a pointer at each place of ``marks``. ``label`` words the ends of
    the scale. [] without values.
    """
    numbers = [value for value in values if value is not None]
    if not numbers or width < 1 or height < 1:
        return []
    ends = [*numbers, *limits, *(end for own in intervals if own for end in own)]
    low, high = min(ends), max(ends)
    across, down = (2, 4) if unicode else (1, 1)
    columns, rows = width * across, height * down
    dots: set[tuple[int, int]] = set()

    def column(index: int) -> int:
        return round(index * (columns - 1) / (len(values) - 1)) if len(values) > 1 else 0

    def row(value: float) -> int:
        return round((high - value) * (rows - 1) / (high - low)) if high > low else rows // 2

    for limit in limits:
        dots |= {(x, row(limit)) for x in range(0, columns, 4 if unicode else 3)}
    wide = columns >= 4 * len(values)
    for index, own in enumerate(intervals):
        if own:
            below, above = row(own[0]), row(own[1])
            between = range(above, below + 1) if wide else (above, below)
            dots |= {(column(index), y) for y in between}
    for index, value in enumerate(values):
        if value is None:
            continue
        dots.add((column(index), row(value)))
        before = values[index - 1] if index else None
        if before is not None and index not in breaks:
            dots |= _joined(column(index - 1), row(before), column(index), row(value))
    labels = [label(high), *[""] * (height - 2), label(low)][:height]
    margin = max(map(len, labels))
    lines = [
        f"{text:>{margin}} {_cells(dots, y, width, unicode)}".rstrip()
        for y, text in enumerate(labels)
    ]
    pointers = {column(place) // across for place in marks}
    if pointers:
        point = "▲" if unicode else "^"
        lines.append(
            (
                " " * (margin + 1) + "".join(point if x in pointers else " " for x in range(width))
            ).rstrip()
        )
    return lines


def scatter_lines(
    points: Sequence[tuple[float, float, str]],
    *,
    width: int,
    height: int = 8,
    unicode: bool = True,
    label: Callable[[float], str] = "{:.3f}".format,
    across: Callable[[float], str] = "{:g}".format,
) -> list[str]:
    """Points as (across, up, name), with both scales; each name is at its point if there is room.
    One without a name is a small dot, and gives way to the others. [] for fewer than two.

    ``label``, ``across``: word the ends of the scales.
    """
    if len(points) < 2 or width < 2 or height < 2:
        return []
    left, *_, right = sorted(x for x, _, _ in points)
    low, *_, high = sorted(y for _, y, _ in points)
    named, dot = ("◆", "•") if unicode else ("o", ".")
    if not unicode:
        points = [(x, y, name.encode("ascii", "replace").decode()) for x, y, name in points]
    drawn = [[" "] * width for _ in range(height)]
    cells = []
    for x, y, name in sorted(points, key=lambda point: bool(point[2])):
        column = round((x - left) / (right - left) * (width - 1)) if right > left else width // 2
        row = round((high - y) / (high - low) * (height - 1)) if high > low else height // 2
        drawn[row][column] = named if name else dot
        cells.append((row, column, name))
    for row, column, name in cells:
        for start, text in ((column + 1, f" {name}"), (column - len(name) - 1, f"{name} ")):
            end = start + len(text)
            if name and start >= 0 and end <= width and set(drawn[row][start:end]) == {" "}:
                drawn[row][start:end] = text
                break
    labels = [label(high), *[""] * (height - 2), label(low)]
    margin = max(map(len, labels))
    first, last = across(left), across(right)
    below = f"{first}{last:>{max(width - len(first), 0)}}"
    rows = zip([*labels, ""], [*drawn, below], strict=True)
    return [f"{text:>{margin}} {''.join(row)}".rstrip() for text, row in rows]


def _joined(x0: int, y0: int, x1: int, y1: int) -> set[tuple[int, int]]:
    """The dots of a straight line between two dots."""
    steps = max(abs(x1 - x0), abs(y1 - y0), 1)
    return {
        (x0 + round((x1 - x0) * step / steps), y0 + round((y1 - y0) * step / steps))
        for step in range(steps + 1)
    }


def _cells(dots: set[tuple[int, int]], y: int, width: int, unicode: bool) -> str:
    if not unicode:
        return "".join("*" if (x, y) in dots else " " for x in range(width))
    cells = []
    for x in range(width):
        bits = 0
        for dy, pair in enumerate(_DOTS):
            for dx, bit in enumerate(pair):
                if (x * 2 + dx, y * 4 + dy) in dots:
                    bits |= bit
        cells.append(chr(0x2800 + bits) if bits else " ")
    return "".join(cells)

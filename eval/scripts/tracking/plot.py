"""Small pictures of a line of numbers, as text: sparklines and plots, in Unicode or in ASCII.

Pure: numbers in, strings out. A gap is None.
"""

from __future__ import annotations

from collections.abc import Sequence

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.,-=+*#"
LEAST_SPAN = 0.1
BREAK, ASCII_BREAK = "┊", "|"
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character by row and column of its dots (Unicode block U+2800)."""

Numbers = Sequence[float | None]


def sparkline(values: Numbers, breaks: Sequence[int] = (), *, unicode: bool = True) -> str:
    """A character a value, low to high between the line's own ends; a gap is a space.

    The ends are at least 10 % of the values' size apart, so that small changes look small.
    Before each place in ``breaks`` stands a bar: what follows is measured by another definition.
    """
    known = [value for value in values if value is not None]
    if not known:
        return " " * len(values)
    bars = BARS if unicode else ASCII_BARS
    span = max(max(known) - min(known), LEAST_SPAN * max(map(abs, known)))
    low = (min(known) + max(known) - span) / 2
    text = []
    for place, value in enumerate(values):
        if place in breaks:
            text.append(BREAK if unicode else ASCII_BREAK)
        if value is None:
            text.append(" ")
        else:
            share = (value - low) / span if span else 0.5
            text.append(bars[min(int(share * len(bars)), len(bars) - 1)])
    return "".join(text)


def shrunk(
    values: Numbers, breaks: Sequence[int], columns: int
) -> tuple[list[float | None], list[int]]:
    """The values in at most so many columns: neighbours become their mean, gaps are left out.

    Returns also the columns that the breaks come to.
    """
    count = len(values)
    if count <= columns:
        return list(values), list(breaks)
    groups: list[list[float]] = [[] for _ in range(columns)]
    for place, value in enumerate(values):
        if value is not None:
            groups[place * columns // count].append(value)
    means = [sum(group) / len(group) if group else None for group in groups]
    return means, sorted({place * columns // count for place in breaks})


def plot(
    values: Numbers,
    *,
    width: int,
    height: int,
    breaks: Sequence[int] = (),
    limit: float | None = None,
    marks: Sequence[int] = (),
    unicode: bool = True,
) -> list[str]:
    """A plot of ``height`` rows and ``width`` columns, with its scale at the left.

    Neighbours are joined, but not over a gap or a break. ``limit`` is drawn as a dotted line.
    Under the plot stands a pointer at each place of ``marks``. [] without values.
    """
    known = [value for value in values if value is not None]
    if not known or width < 1 or height < 1:
        return []
    ends = [*known, limit] if limit is not None else known
    low, high = min(ends), max(ends)
    across, down = (2, 4) if unicode else (1, 1)
    columns, rows = width * across, height * down
    dots: set[tuple[int, int]] = set()

    def column(place: int) -> int:
        return round(place * (columns - 1) / (len(values) - 1)) if len(values) > 1 else 0

    def row(value: float) -> int:
        return round((high - value) * (rows - 1) / (high - low)) if high > low else rows // 2

    if limit is not None:
        dots |= {(x, row(limit)) for x in range(0, columns, 4 if unicode else 3)}
    for place, value in enumerate(values):
        if value is None:
            continue
        dots.add((column(place), row(value)))
        before = values[place - 1] if place else None
        if before is not None and place not in breaks:
            dots |= _joined(column(place - 1), row(before), column(place), row(value))
    labels = [f"{high:.3f}", *[""] * (height - 2), f"{low:.3f}"][:height]
    margin = max(map(len, labels))
    lines = [
        f"{label:>{margin}} {_cells(dots, y, width, unicode)}".rstrip()
        for y, label in enumerate(labels)
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
        for dy, pair in enumerate(DOTS):
            for dx, bit in enumerate(pair):
                if (x * 2 + dx, y * 4 + dy) in dots:
                    bits |= bit
        cells.append(chr(0x2800 + bits) if bits else " ")
    return "".join(cells)

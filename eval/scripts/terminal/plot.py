"""Rows of numbers as pictures of one line, in Unicode or ASCII."""

from __future__ import annotations

from collections.abc import Sequence

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.,-=+*#"

SHADES = " ░▒▓█"
"""Five shades of a cell, from nothing to the loudest."""

_LOUDER = (0.0, 0.1, 0.25, 0.5)

_LEAST_SPAN = 0.1

_GAP = "·"

_BREAK, _ASCII_BREAK = "┊", "|"

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


def loudness(share: float) -> int:
    """Which of ``SHADES`` a share has, 0 to 4: none, up to 10 %, up to 25 %, up to 50 %, more."""
    return sum(share > bound for bound in _LOUDER)


def bar(share: float, columns: int) -> str:
    """A share in [0, 1] as a bar of at most so many characters, in eighths of one."""
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

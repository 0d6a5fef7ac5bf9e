"""A row of numbers as a picture of one line."""

from __future__ import annotations

from collections.abc import Sequence

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.,-=+*#"

_LEAST_SPAN = 0.1

_BREAK, _ASCII_BREAK = "┊", "|"


def sparkline(
    values: Sequence[float | None], breaks: Sequence[int] = (), *, unicode: bool = True
) -> str:
    """A character a value, low to high between the line's own ends; a gap is a space.

    The ends are at least 10 % of the values' size apart, so that small changes look small.
    Before each place in ``breaks`` stands a bar: what follows is measured by another definition.
    """
    numbers = [value for value in values if value is not None]
    if not numbers:
        return " " * len(values)
    bars = BARS if unicode else ASCII_BARS
    span = max(max(numbers) - min(numbers), _LEAST_SPAN * max(map(abs, numbers)))
    low = (min(numbers) + max(numbers) - span) / 2
    text = []
    for index, value in enumerate(values):
        if index in breaks:
            text.append(_BREAK if unicode else _ASCII_BREAK)
        if value is None:
            text.append(" ")
        else:
            share = (value - low) / span if span else 0.5
            text.append(bars[min(int(share * len(bars)), len(bars) - 1)])
    return "".join(text)

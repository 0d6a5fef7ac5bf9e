"""Colours of a theme, moved as far as it takes to read them.

A theme's own pairs may fall short: white on the blue of Textual's dark cursor has a contrast of
3.8, the amber of its light theme 3.3 on its ground. Source of the formula and of the limit: WCAG
2.2, success criterion 1.4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.color import BLACK, WHITE, Color

_READABLE: Final = 5
"""The least contrast of text with its ground: over the 4.5 of the guideline, since the same letters
also stand on the ground of windows, and colours are rounded when they are drawn."""

_STEPS: Final = 20

_TEXT: Final = ("accent", "warning", "error", "success", "primary")


def line_colours(variables: Mapping[str, str]) -> dict[str, str]:
    """The CSS variables `line-…` of terminal.tcss, from the variables of any theme."""
    ground = Color.parse(variables["background"])
    colours = {
        f"line-{name}": _readable(Color.parse(variables[f"text-{name}"]), ground) for name in _TEXT
    }
    cursor = Color.parse(variables["primary"])
    text = WHITE if _luminance(cursor) < 0.4 else BLACK
    colours["line-cursor-text"] = text
    colours["line-cursor"] = _readable(cursor, text)
    return {name: colour.hex for name, colour in colours.items()}


def _readable(colour: Color, against: Color) -> Color:
    """`colour`, moved away from `against` until the two can be told apart."""
    end = BLACK if _luminance(against) > 0.18 else WHITE  # which of them lies farther away
    for step in range(_STEPS + 1):
        moved = colour.blend(end, step / _STEPS)
        if _contrast(moved, against) >= _READABLE:
            return moved
    return end


def _contrast(first: Color, second: Color) -> float:
    """The ratio of two colours' luminances, 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Color) -> float:
    """Relative luminance, 0 to 1."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

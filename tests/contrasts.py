"""The contrast of what stands on a terminal screen: the formula of WCAG 2.2, written out here.

The limit is 4.5, what 1.4.3 (AA) asks of text. Terminals of 256 colours round the colours of a
theme, so each pair is measured twice: as the theme says it, and as such a terminal shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment
from textual.geometry import Size
from textual.screen import Screen

READABLE = 4.5


def _luminance(colour: tuple[int, ...]) -> float:
    """Relative luminance of sRGB (WCAG 2.2)."""
    parts = [c / 255 for c in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(segment: Segment, colours: ColorSystem = ColorSystem.TRUECOLOR) -> float:
    """The contrast of a segment's letters with its ground, 1 to 21, on a terminal of `colours`."""
    style = segment.style
    assert style is not None
    assert style.color is not None
    assert style.bgcolor is not None
    shown = [colour.downgrade(colours) for colour in (style.color, style.bgcolor)]
    pair = [_luminance(tuple(c.get_truecolor())) for c in shown]
    if style.reverse:
        pair.reverse()
    return (max(pair) + 0.05) / (min(pair) + 0.05)


def unreadable(segments: Iterable[Segment]) -> set[tuple[str, str, str, float]]:
    """Texts of less contrast than the limit: text, style, colours, contrast."""
    return {
        (segment.text.strip(), str(segment.style), colours.name, round(ratio, 2))
        for segment in segments
        if segment.text.strip()
        for colours in (ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT)
        if (ratio := contrast(segment, colours)) < READABLE
    }


def unreadable_on(app: Any) -> set[tuple[str, str, str, float]]:
    """`unreadable` of all texts that the app shows now, but for a screen that a window dims."""
    shown = []
    for y, strip in enumerate(app.screen._compositor.render_strips(Size(*app.size))):
        x = 0
        for segment in strip:
            letters = segment.text.lstrip()
            begin = x + segment.cell_length - cell_len(letters)
            x += segment.cell_length
            lines = all("\u2500" <= sign <= "\u259f" for sign in letters.strip())
            if not lines and not isinstance(app.screen.get_widget_at(begin, y)[0], Screen):
                shown.append(segment)
    return unreadable(shown)

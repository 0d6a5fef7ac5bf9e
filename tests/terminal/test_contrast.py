"""Each style of a span can be read on its ground, in both themes, also on the cursor."""

from __future__ import annotations

from typing import ClassVar

import pytest
from rich.segment import Segment
from rich.style import Style
from tests.contrasts import contrast, unreadable
from tests.rows import each_row
from textual.app import ComposeResult
from textual.screen import Screen

from terminal.app import STYLE_SHEET, STYLES, THEMES, StyleSheets, TerminalApp
from terminal.lists import Line, LineList
from terminal.safe_text import DisplayText


def test_the_formula_is_the_one_of_the_guideline() -> None:
    """Black on white is 21; #767676 on white is the lightest grey that passes, 4.54."""
    for colour, ratio in (("#000000", 21), ("#767676", 4.54)):
        segment = Segment("a", Style.parse(f"{colour} on #ffffff"))
        assert contrast(segment) == pytest.approx(ratio, abs=0.01)


ROWS = tuple(
    ((style, DisplayText(style)), ("row", DisplayText(" row"))) for style in sorted(STYLES)
)


class _Lines(Screen[None]):
    """A list with a row for each style of a span."""

    def compose(self) -> ComposeResult:
        self.rows = LineList(self.line, id="rows")
        yield self.rows

    def line(self, index: int, width: int) -> Line:
        return ROWS[index]


class _Styles(TerminalApp):
    CSS_PATH: ClassVar[StyleSheets] = [STYLE_SHEET]
    FAILURE = "{file}"


@each_row("theme", THEMES)
async def test_every_style_of_a_span_can_be_read_on_every_row(theme: str) -> None:
    app = _Styles(theme)
    screen = _Lines()
    async with app.run_test(size=(40, 20)) as pilot:
        await app.push_screen(screen)
        await pilot.pause()
        screen.rows.set_count(len(ROWS))
        bad = set()
        for active in (True, False):
            screen.rows.set_active(active)
            for cursor in range(len(ROWS)):
                screen.rows.move_to(cursor)
                for y in range(len(ROWS)):
                    bad |= unreadable(screen.rows.render_line(y))
        assert sorted(bad) == []

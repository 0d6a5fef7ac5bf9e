"""The text of the passage under the cursor, and the line above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labeller import lines
from terminal.action_screen import ActionScreen
from terminal.frame import rule
from terminal.lists import Bar
from terminal.safe_text import SHOWN_LIMIT, display
from terminal.text_pane import TextPane

if TYPE_CHECKING:
    from labeller.row_list import RowList
    from labeller.rows import ChunkRow
    from labeller.session import Session

WHOLE = 1 << 30


class PassageText(TextPane):
    """A text longer than `SHOWN_LIMIT` is cut, unless it is `whole`: zoomed."""

    def __init__(self, owner: ActionScreen[None], session: Session, rows: RowList) -> None:
        super().__init__(id="text", reflow=True)
        self._owner, self._session, self._rows = owner, session, rows
        self.rule = Bar(id="text-rule")
        self.whole = False
        self.shown: object = None
        """What the text was made of, to see whether it has to be made again."""
        self._needed = (0, 0)

    def show_row(self, otherwise: str, *, focused: bool) -> None:
        """Show the row under the cursor, or the words `otherwise`."""
        row, pattern = self._rows.row, self._rows.pattern
        if row is None:
            self.shown = None
            self.show(display(otherwise))
            line = rule(self._owner.look, self.size.width, "no chunk", "", focused=focused)
            self.rule.show([line])
            return
        picked = [s.snippets for s in self._session.supports() if row.label in s.rows]
        shown = (row.chunk, picked, row.auto, self.whole, pattern)
        if shown != self.shown:
            self.shown = shown
            text = display(row.chunk.text, WHOLE if self.whole else SHOWN_LIMIT)
            self.show(text, lines.marks_in(self._session, row, text, pattern))
        self._show_rule(row, focused=focused)

    def _show_rule(self, row: ChunkRow, *, focused: bool) -> None:
        """Draw the line above the text: row, path, and which lines of it are in view."""
        span = f"lines {self.top + 1}-{self.bottom} of {self.line_count}"
        if not self.whole and len(row.chunk.text) > SHOWN_LIMIT:
            span += "; cut, z shows all"
        width = self.size.width
        self.rule.show([lines.text_rule(row, self._owner.look, width, span, focused=focused)])

    def is_read(self) -> bool:
        """Is the last line of an unread row in view now?"""
        row = self._rows.row
        if row is None or row.seen or not self.display or self.size.height <= 0:
            return False
        whole = self.whole or len(row.chunk.text) <= SHOWN_LIMIT
        return whole and self.bottom >= self.line_count

    def lines_needed(self, *, anew: bool) -> int:
        """The lines that the longest text needs at this width, counted `anew` for other rows."""
        if anew or self._needed[1] != self._set_width:
            self._needed = self.lines_of(self._rows.rows), self._set_width
        return self._needed[0]

    def lines_of(self, rows: Sequence[ChunkRow]) -> int:
        """About how many lines the longest text of some rows needs."""
        width = self._set_width
        return max((lines.lines_needed(row.chunk.text, width) for row in rows), default=0)

    @property
    def _set_width(self) -> int:
        return min(self.size.width - 2, 100)

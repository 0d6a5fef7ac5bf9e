"""The parts of the main screen: lists, text pane and bars, and what was drawn last."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from terminal import frame
from terminal.lists import Bar, Line, LineList
from terminal.safe_text import DisplayText
from terminal.text_pane import TextPane

if TYPE_CHECKING:
    from labeller.model import Session
    from labeller.ports import Store
    from labeller.views import Row
    from terminal.actions import Keymap


class LabelLayout(Screen[None], inherit_bindings=False):
    """Widgets and state of the main screen; `LabelView` draws in them."""

    AUTO_FOCUS = ""
    ALLOW_SELECT = False
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - the type is Textual's
        (0, "-tiny-x"),
        (40, "-narrow"),
        (60, "-stack"),
        (100, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-tiny-y"),
        (10, "-low"),
        (16, "-middle"),
        (32, "-tall"),
    ]

    def __init__(
        self, session: Session, store: Store, look: frame.Look, keymap: Keymap, source_name: str
    ) -> None:
        super().__init__()
        self.session = session
        self.store = store
        self.look = look
        self.keymap = keymap
        self.source_name = source_name
        self.rows: list[Row] = []
        self.frozen = False  # a save is at work on the session in another thread
        self.pane = "chunks"
        self.words = ""  # filter of the chunk list
        self.text_words = ""  # looked for in the text
        self.zoomed = False
        self.range_start: int | None = None
        self._shown_case: str | None = None
        self._shown_brief: object = None
        self._shown_text: object = None
        self._progress = session.progress()
        self._visible: list[str] = []
        self._longest = 0
        self._pattern: re.Pattern[str] | None = None
        self._previews: dict[str, DisplayText] = {}
        self._view: object = None
        self.resumed_row = session.resumed_row  # until it is there, or a key was pressed

    def _chunk_row(self, index: int, width: int) -> Line:
        """One line of the chunk list; `LabelView` draws it."""
        raise NotImplementedError

    def _question_row(self, index: int, width: int) -> Line:
        """One line of the question list; `LabelView` draws it."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        self.chunks = LineList(self._chunk_row, id="chunks")
        self.text = TextPane(id="text")
        self.questions = LineList(self._question_row, id="questions")
        self.questions.set_active(False)
        self.bars = {
            name: Bar(id=name) for name in ("side-top", "side-end", "top", "text-rule", "end")
        }
        with Horizontal():
            with Vertical(id="side"):
                yield self.bars["side-top"]
                yield self.questions
                yield self.bars["side-end"]
            with Vertical(id="main"):
                yield self.bars["top"]
                yield self.chunks
                yield self.bars["text-rule"]
                yield self.text
                yield self.bars["end"]
        yield Bar(id="too-small")

    @property
    def row(self) -> Row | None:
        """The row under the cursor; None when there is none."""
        cursor = self.chunks.cursor
        return self.rows[cursor] if cursor < len(self.rows) else None

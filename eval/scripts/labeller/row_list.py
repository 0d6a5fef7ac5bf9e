"""The passages: the list of rows with the keys that mark and grade them, and the text of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from labeller import lines, marks
from labeller.lines import Terms, holds
from labeller.rows import ROW_ORDERS, ChunkRow
from labeller.session import OfRow, P, Session
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.frame import cut, rule, words_pattern
from terminal.lists import Bar, Line, LineList
from terminal.safe_text import SHOWN_LIMIT, DisplayText, cells, display
from terminal.text_pane import TextPane


class RowList(LineList):
    """The rows of the open case that contain the words of the filter."""

    def __init__(self, owner: ActionScreen[None], session: Session) -> None:
        super().__init__(self._line, id="chunks")
        self._owner, self._session = owner, session
        self.rule = Bar(id="chunks-rule")
        self.rows: list[ChunkRow] = []
        self.words = self.last_words = ""  # of the filter; what n and N look for
        self.range_start: int | None = None
        self.rating = False
        self.digits_look = False  # a digit shows its row first
        self.resumed_row = session.resumed_row  # until it is there, or a key was pressed
        self.pattern: Terms = None
        self._longest = 0
        self._previews: dict[str, DisplayText] = {}

    @property
    def row(self) -> ChunkRow | None:
        """The row under the cursor; None when there is none."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def need_row(self) -> ChunkRow:
        """The row under the cursor; refuses when there is none."""
        if self.row is None:
            raise ActionRefused("no passage here; p searches for one, P adds a support by path")
        return self.row

    def new_case(self) -> None:
        """Another case is open: its rows come later."""
        self._previews.clear()
        self.pattern = words_pattern(self._session.terms())
        self.words, self.range_start, self.rows = "", None, []
        self.set_count(0)

    def read(self) -> bool:
        """Read the rows again, repaint the changed ones. Returns whether their number changed."""
        rows, words, before = self._session.rows(), self.words.casefold().split(), self.rows
        self.rows = [row for row in rows if holds(row, words)] if words else rows
        if len(before) == len(self.rows):
            self.refresh_rows([i for i, row in enumerate(self.rows) if row != before[i]])
            return False
        paths = (lines.path_of(row.chunk.rel_path, row.chunk.heading_path) for row in self.rows)
        self._longest = max(map(cells, paths), default=0)
        places = (i for i, row in enumerate(self.rows) if row.chunk.key == self.resumed_row)
        resumed = next(places, None)  # where the last session left the cursor
        if resumed is not None:
            self.resumed_row = ""
        self.set_count(len(self.rows), self.cursor if resumed is None else resumed)
        return True

    def show_rule(self, *, focused: bool) -> None:
        """Draw the line above the rows, and the heads of the scores."""
        look, width = self._owner.look, self.rule.size.width
        if width <= 0 or not self._session.current:
            self.rule.show([])
            return
        rule = lines.chunks_rule(self._session, self.rows, look, width, self.words, focused=focused)
        self.rule.show([rule, *([cut(lines.SCORE_HEADS, width)] if look.info else [])])

    def _line(self, index: int, width: int) -> Line:
        row, key = self.rows[index], self.rows[index].chunk.key
        if key not in self._previews:
            self._previews[key] = lines.preview(row.chunk.text, self.pattern)
        sign = ">" if index == self.cursor else " "
        if sign == " " and self.range_start is not None:
            low, high = sorted((self.range_start, self.cursor))
            sign = ":" if low <= index <= high else " "
        look = self._owner.look
        return lines.chunk_line(row, width, look, self._previews[key], self._longest, sign=sign)

    def acts(self) -> Acts:
        """The functions of the actions on rows."""
        session, owner = self._session, self._owner
        return {
            "mark": self._mark,
            "mark-row": self._mark_row,
            "mark-high-row": lambda key: self._mark_row(str(10 + (int(key) or 10))),
            "range": self._turn_range,
            "need": lambda key: session.open_need(None if key == "'" else int(key)),
            "next-group": lambda: session.open_need(None),
            "next-need": lambda: session.next_need(1),
            "previous-need": lambda: session.next_need(-1),
            "share": lambda key: self._on_row(
                marks.share, session.layout.open if key == "&" else int(key)
            ),
            "group": lambda key: self._on_row(marks.group, int(key)),
            "next-in-group": self._next_in_group,
            "turn-needs": session.turn_needs,
            "grade-up": lambda: self._on_row(marks.grade_step, 1),
            "grade-down": lambda: self._on_row(marks.grade_step, -1),
            "grade": lambda key: self._on_row(marks.grade, int(key)),
            "rate-mode": self._turn_rating,
            "shorten": lambda: self._on_row(marks.shorten),
            "lengthen": lambda: self._on_row(marks.lengthen),
            "reanchor": lambda: self._on_row(marks.reanchor),
            "digits-look": self._turn_digits,
            "next-marked": lambda: self._seek_marked(1),
            "previous-marked": lambda: self._seek_marked(-1),
            "order": self._turn_order,
            "blind": lambda: session.set_blind(not session.blind),
            "info": self._turn_info,
            "copy-anchor": self._copy_anchor,
            "copy-text": lambda: owner.copy_out(self.need_row().chunk.text, "text of the passage"),
        }

    def _on_row(self, change: OfRow[P], *args: P.args, **more: P.kwargs) -> str:
        """Change the row under the cursor."""
        return self._session.on_row(self.need_row().number, change, *args, **more)

    def _mark(self) -> str:
        """Mark or unmark the row under the cursor, or the open range."""
        if self.range_start is None or self.row is None:
            return self._on_row(marks.toggle)
        start, self.range_start = min(self.range_start, len(self.rows) - 1), None
        low, high = sorted((start, self.cursor))
        self.refresh()
        return self._session.toggle_range(self.rows[low].number, self.rows[high].number)

    def _mark_row(self, label: str) -> str | None:
        """Mark or unmark the row of that label; show it first, if digits look."""
        index = self._index_of(label)
        if self.digits_look and index != self.cursor:
            self.move_to(index)
            return None
        return self._session.on_row(self.rows[index].number, marks.toggle)

    def _index_of(self, label: str) -> int:
        labels = [row.label for row in self.rows]
        if label in labels:
            return labels.index(label)
        if not labels:
            raise ActionRefused("no passage here; p searches for one")
        added = next((name for name in labels if name.startswith("+")), "")
        remedy = f"; row {added} has no digit: go there and press Space" if added else ""
        raise ActionRefused(f"no row {label} here{remedy}")

    def _turn_digits(self) -> str:
        self.digits_look = not self.digits_look
        shows = "shows its row, and marks it when pressed again"
        return f"a digit {shows if self.digits_look else 'marks its row'}"

    def _turn_range(self) -> None:
        """Start a range at the cursor, or drop the one that was started."""
        self.need_row()
        self.range_start = None if self.range_start is not None else self.cursor
        self.refresh()

    def _turn_rating(self) -> None:
        """Let bare digits grade, or no longer."""
        self.rating = not self.rating

    def drop_mode(self) -> bool:
        """End a range, else the rating; whether one was on."""
        was_on = self.range_start is not None or self.rating
        self.rating = self.rating and self.range_start is not None
        self.range_start = None
        self.refresh()
        return was_on

    def _turn_order(self) -> str:
        """The rows in their next order."""
        session = self._session
        names = [name for name in ROW_ORDERS if name != "rank" or not session.blind]
        session.set_row_order(names[(names.index(session.row_order) + 1) % len(names)])
        return f"rows in {session.row_order} order"

    def _turn_info(self) -> None:
        """Rank and scores on or off."""
        owner = self._owner
        if self._session.blind:
            raise ActionRefused("rank and scores are hidden in blind mode; B leaves it")
        owner.look = replace(owner.look, info=not owner.look.info)
        self.refresh()
        owner.call_after_refresh(owner.redraw)

    def _copy_anchor(self) -> None:
        chunk = self.need_row().chunk
        anchor = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
        self._owner.copy_out(anchor, "path and heading")

    def move_to(self, index: int) -> bool:
        """Put the cursor on a row, and draw the open range anew."""
        before, moved = self.cursor, super().move_to(index)
        if moved and self.range_start is not None:
            low, high = sorted((before, self.cursor))
            self.refresh_rows(range(low, high + 1))
        return moved

    def go_to_label(self, label: str) -> None:
        """Put the cursor on the row of that label."""
        self.move_to(self._index_of(label))

    def next_hit(self, by: int) -> None:
        """Go to the next row that contains the words of the last search."""
        if not self.last_words:
            raise ActionRefused("nothing to look for yet; / asks for words")
        words = self.last_words.casefold().split()
        self.seek(by, lambda row: holds(row, words), "no passage holds it")

    def _seek_marked(self, by: int) -> None:
        self.seek(by, lambda row: row.marked, "no row is marked; Space marks one")

    def _next_in_group(self, key: str) -> None:
        """To the next passage of a need; 0: of those that are not required."""
        need = int(key)

        def matches(row: ChunkRow) -> bool:
            return need in row.parts if need else row.marked and not row.parts

        self.seek(1, matches, f"no row meets need {need}")

    def seek(self, by: int, matches: Callable[[ChunkRow], bool], otherwise: str) -> None:
        """To the next row that matches, round the end; refuses with `otherwise` when none does."""
        count = len(self.rows)
        around = ((self.cursor + by * step) % count for step in range(1, count + 1))
        index = next((i for i in around if matches(self.rows[i])), None)
        if index is None:
            raise ActionRefused(otherwise)
        self.move_to(index)


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
        if anew or self._needed[1] != self.size.width:
            self._needed = self.lines_of(self._rows.rows), self.size.width
        return self._needed[0]

    def lines_of(self, rows: Sequence[ChunkRow]) -> int:
        """About how many lines the longest text of some rows needs; it is not set for this."""
        width = max(1, min(self.size.width - 2, 100))
        texts = (row.chunk.text.split("\n") for row in rows)
        return max((sum(1 + len(line) // width for line in text) for text in texts), default=0)

"""The look of the main screen: what is drawn when. No keys, no actions.

`sync` is called after every action: it compares what the session says with what is shown, and
repaints the difference only. Nothing here changes a label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from labeller import chunk_lines, lines
from labeller.chunk_text import holds, marks_in, why_no_chunks
from labeller.label_layout import LabelLayout
from terminal import frame
from terminal.lists import Bar, Line
from terminal.safe_text import SHOWN_LIMIT, DisplayText, cells, display, one_line

if TYPE_CHECKING:
    from labeller.views import Row

WHOLE = 1 << 30


class LabelView(LabelLayout, inherit_bindings=False):
    """Draws the session; `LabelScreen` adds the keys."""

    def on_mount(self) -> None:
        small = display("window too small, keys still work")
        self.query_one("#too-small", Bar).show([(("warn", small),)])
        self.list_questions()
        self.sync()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Draw every line again."""
        self._shown_brief = self._shown_text = None
        self.sync()
        self.chunks.refresh()
        self.questions.refresh()

    def sync(self) -> None:
        """Show what the session says now; repaint what differs."""
        if self.frozen:
            return
        session = self.session
        if session.current != self._shown_case:
            self._new_case()
        rows = self._read_rows()
        row = rows[self.chunks.cursor] if self.chunks.cursor < len(rows) else None
        if row is not None and not row.seen and self.text.display:
            session.see(row.number)
            rows = self._read_rows()
        self._show_rows(rows)
        self._show_text()
        brief = session.brief(session.current) if session.current else None
        changed = brief != self._shown_brief
        if changed:
            # Progress counts all questions: too slow for every key, and unchanged by most.
            self._shown_brief = brief
            self._progress = session.progress()
        self._show_top()
        if changed:
            self._show_side()
        self._show_end()
        self._remember()

    def _remember(self) -> None:
        """Have what is looked at kept, if that is another than before."""
        row = self.row
        view = self.session.view(row.chunk.key if row else self.resumed_row)
        if view != self._view:
            self._view = view
            self.store.remember(view)

    def _new_case(self) -> None:
        self._shown_case = self.session.current
        self._shown_brief = None
        self._previews.clear()
        self._pattern = frame.words_pattern(self.session.terms())
        self.words = self.text_words = ""
        self.range_start = None
        self.rows = []
        self.chunks.set_count(0)
        self.case_opened()

    def case_opened(self) -> None:
        """Called when another question is shown; `OpenActions` fetches ahead."""

    def _read_rows(self) -> list[Row]:
        rows = self.session.rows()
        words = self.words.casefold().split()
        return [row for row in rows if holds(row, words)] if words else rows

    def _show_rows(self, rows: list[Row]) -> None:
        before, self.rows = self.rows, rows
        if len(before) != len(rows):
            paths = (
                chunk_lines.path_of(row.chunk.rel_path, row.chunk.heading_path) for row in rows
            )
            self._longest = max(map(cells, paths), default=0)
            self.chunks.set_count(len(rows), self._resumed(rows))
        else:
            changed = [i for i, row in enumerate(rows) if row != before[i]]
            self.chunks.refresh_rows(changed)

    def _resumed(self, rows: list[Row]) -> int:
        """Where the cursor belongs now that rows have come: where the last session left it."""
        for place, row in enumerate(rows):
            if self.resumed_row and row.chunk.key == self.resumed_row:
                self.resumed_row = ""
                return place
        return self.chunks.cursor

    def _show_text(self) -> None:
        row = self.row
        if row is None:
            self._shown_text = None
            why = why_no_chunks(self.session, self.words, self.source_name)
            self.text.show(display(why))
            self.bars["text-rule"].show([self._text_rule("no chunk")])
            return
        picked = [s.snippets for s in self.session.supports() if row.label in s.rows]
        shown = (row.chunk, picked, row.auto, self.text_words, self.zoomed, self._pattern)
        if shown != self._shown_text:
            self._shown_text = shown
            text = display(row.chunk.text, WHOLE if self.zoomed else SHOWN_LIMIT)
            marks = marks_in(self.session, row, text, self._pattern, self.text_words)
            self.text.show(text, marks)
        self._show_text_rule()

    def _show_text_rule(self) -> None:
        row = self.row
        if row is None:
            return
        where = (row.chunk.rel_path, row.chunk.heading_path)
        left = f"row {row.label} {self.look.rule * 2} "
        room = self.text.size.width - len(left) - 32
        if row.chunk.origin:
            found = f' (found by "{one_line(row.chunk.origin, 20)}")'
            left += chunk_lines.short_path(*where, room - len(found)) + found
        else:
            left += chunk_lines.short_path(*where, room)
        place = f"lines {self.text.top + 1}-{self.text.bottom} of {self.text.line_count}"
        if not self.zoomed and len(row.chunk.text) > SHOWN_LIMIT:
            place += "; cut, z shows all"
        self.bars["text-rule"].show([self._text_rule(left, place)])

    def _text_rule(self, left: str, right: str = "") -> Line:
        focused = self.pane == "text"
        return frame.rule(self.look, self.text.size.width, left, right, focused=focused)

    def _show_top(self) -> None:
        bar = self.bars["top"]
        width, height = bar.size.width, bar.size.height
        if width <= 0:
            return
        session = self.session
        saved = lines.saved_span(self.store.problem, self.store.saved_at, session.dirty)
        waiting = not session.has_chunks() and not session.chunks_problem()
        top = [lines.header(session, self._progress, width, saved, waiting=waiting)]
        if session.current:
            top += lines.question_lines(session, width, max(1, height - 3))
            top.append(lines.state_line(session, width))
            focused = self.pane == "chunks"
            top.append(
                chunk_lines.chunks_rule(
                    session, self.rows, self.look, width, self.words, focused=focused
                )
            )
        bar.show(top)

    def _show_side(self) -> None:
        if self._shown_case in self._visible:
            place = self._visible.index(self._shown_case)
            if self.pane != "questions":
                self.questions.move_to(place)
            self.questions.refresh_rows([place])
        session = self.session
        width = self.questions.size.width
        words = f"filter: {one_line(session.filter, 20)}" if session.filter else "/ filter"
        self.bars["side-top"].show(
            [
                frame.rule(
                    self.look,
                    width,
                    f"questions, {session.order} order",
                    words,
                    focused=self.pane == "questions",
                )
            ],
        )
        legend = one_line(lines.LEGEND)
        half = legend.index("s later")
        self.bars["side-end"].show(
            [(("dim", DisplayText(legend[:half])),), (("dim", DisplayText(legend[half:])),)],
        )

    def list_questions(self) -> None:
        """Read the list of questions again, after its order, filter or members changed."""
        self._visible = list(self.session.visible)
        current = self.session.current
        place = self._visible.index(current) if current in self._visible else 0
        self.questions.set_count(len(self._visible), place)
        self._shown_brief = None

    def question_at(self, index: int) -> str | None:
        """The id on row `index` of the question list."""
        return self._visible[index] if index < len(self._visible) else None

    def _show_end(self) -> None:
        """Draw status line and hints; `LabelScreen` does, which knows the started keys."""

    def _chunk_row(self, index: int, width: int) -> Line:
        row = self.rows[index]
        key = row.chunk.key
        shown = self._previews.get(key)
        if shown is None:
            shown = self._previews[key] = chunk_lines.preview(row.chunk.text, self._pattern)
        sign = " "
        if index == self.chunks.cursor:
            sign = ">"
        elif self.range_start is not None:
            low, high = sorted((self.range_start, self.chunks.cursor))
            sign = ":" if low <= index <= high else " "
        return chunk_lines.chunk_line(row, width, self.look, shown, self._longest, sign=sign)

    def _question_row(self, index: int, width: int) -> Line:
        case_id = self._visible[index]
        if self.frozen:
            return (("dim", one_line(case_id)),)
        sign = "*" if case_id == self._shown_case else " "
        if index == self.questions.cursor:
            sign = ">"
        return lines.question_row(self.session.brief(case_id), width, sign=sign)

    def show_pane(self, name: str) -> None:
        """Let keys go to a pane: chunks, text or questions."""
        self.pane = name
        self.chunks.set_active(name == "chunks")
        self.questions.set_active(name == "questions")
        self._show_top()
        self._show_text()
        self._show_side()

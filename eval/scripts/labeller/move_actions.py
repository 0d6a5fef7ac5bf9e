"""Actions of the main screen that change no label: moving, scrolling, filtering, what is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from labeller.chunk_text import holds
from labeller.label_screen import LabelScreen
from labeller.worklist import ORDERS
from terminal.actions import ActionRefused
from terminal.lists import LineList
from terminal.safe_text import SHOWN_LIMIT, display

PANES = ("chunks", "text", "questions")
ROW_ORDERS = ("shuffled", "rank", "path")
THEMES = ("textual-dark", "textual-light")


class MoveActions(LabelScreen):
    """Moving about. Methods `do_<action id>` are called by `perform`."""

    def do_down(self) -> None:
        self._step(1)

    def do_up(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        if self.pane == "text":
            self._scroll(by)
        elif self.pane == "questions":
            self.questions.move_to(self.questions.cursor + by)
        else:
            self._to_row(self.chunks.cursor + by)

    def _to_row(self, index: int) -> None:
        before = self.chunks.cursor
        if self.chunks.move_to(index) and self.range_start is not None:
            low, high = sorted((before, self.chunks.cursor))
            self.chunks.refresh_rows(range(low, high + 1))

    def do_first(self) -> None:
        self._jump(0)

    def do_top(self, key: str) -> None:
        self._jump(0)

    def do_last(self) -> None:
        self._jump(1 << 30)

    def _jump(self, index: int) -> None:
        if self.pane == "text":
            self._scroll(-self.text.line_count if index == 0 else self.text.line_count)
        elif self.pane == "questions":
            self.questions.move_to(index)
        else:
            self._to_row(index)

    def _scroll(self, by: int) -> None:
        if self.text.scroll_by(by):
            self._show_text_rule()

    def do_page_down(self) -> None:
        if self.pane == "questions":
            self.questions.move_to(self.questions.cursor + max(1, self.questions.size.height - 1))
        else:
            self._scroll(max(1, self.text.size.height // 2))

    def do_page_up(self) -> None:
        if self.pane == "questions":
            self.questions.move_to(self.questions.cursor - max(1, self.questions.size.height - 1))
        else:
            self._scroll(-max(1, self.text.size.height // 2))

    def do_line_down(self) -> None:
        self._scroll(1)

    def do_line_up(self) -> None:
        self._scroll(-1)

    def do_next_question(self) -> None:
        self.session.next()

    def do_previous_question(self) -> None:
        self.session.previous()

    def do_back(self) -> None:
        self.session.back()

    def do_next_marked(self) -> None:
        self._seek(1, lambda index: self.rows[index].marked, "no marked chunk; Space marks one")

    def do_previous_marked(self) -> None:
        self._seek(-1, lambda index: self.rows[index].marked, "no marked chunk; Space marks one")

    def do_next_in_group(self, key: str) -> None:
        letter = key.upper()
        self._seek(1, lambda index: letter in self.rows[index].letters, f"group {letter} is empty")

    def _seek(self, by: int, wanted: Callable[[int], bool], otherwise: str) -> None:
        count = len(self.rows)
        for step in range(1, count + 1):
            index = (self.chunks.cursor + by * step) % count
            if wanted(index):
                self._to_row(index)
                return
        raise ActionRefused(otherwise)

    def do_next_pane(self) -> None:
        self._turn_pane(1)

    def do_previous_pane(self) -> None:
        self._turn_pane(-1)

    def _turn_pane(self, by: int) -> None:
        panes = [name for name in PANES if self._is_shown(name)]
        place = panes.index(self.pane) if self.pane in panes else -by
        self.show_pane(panes[(place + by) % len(panes)])

    def _is_shown(self, name: str) -> bool:
        return all(node.display for node in self.query_one(f"#{name}").ancestors_with_self)

    def open_question(self, index: int) -> None:
        """Open the question on row `index` of the question list, and look at its chunks."""
        case_id = self.question_at(index)
        if case_id is not None:
            self.session.goto(case_id)
            self.remove_class("-side-on")
            self.show_pane("chunks")

    def do_next_hit(self) -> None:
        self._hit(1)

    def do_previous_hit(self) -> None:
        self._hit(-1)

    def _hit(self, by: int) -> None:
        if self.pane == "questions":
            self.questions.move_to(self.questions.cursor + by)
        elif self.pane == "text" and self.text_words:
            if not self.text.next_mark("marked", by):
                raise ActionRefused(f"no {self.text_words} in this text")
            self._show_text_rule()
        elif self.last_words:
            words = self.last_words.casefold().split()
            self._seek(by, lambda index: holds(self.rows[index], words), "no chunk holds it")
        else:
            raise ActionRefused("nothing to look for yet; / asks for words")

    def do_clear(self) -> None:
        """Esc: take back the innermost thing that was started."""
        if self.range_start is not None:
            self.range_start = None
            self.chunks.refresh()
        elif self.rating:
            self.rating = False
        elif self.zoomed:
            self.do_zoom()
        elif self.pane == "questions" and self.session.filter:
            self.session.set_filter("")
            self.list_questions()
        elif self.words:
            self.words = ""
        elif self.text_words:
            self.text_words = ""
        elif self.session.filter:
            self.session.set_filter("")
            self.list_questions()
        else:
            self.show_pane("chunks")

    def do_toggle_questions(self) -> None:
        wide = self.has_class("-wide")
        self.toggle_class("-side-off" if wide else "-side-on")
        on = not self.has_class("-side-off") if wide else self.has_class("-side-on")
        self.show_pane("questions" if on else "chunks")
        self.call_after_refresh(self.redraw)

    def do_zoom(self) -> None:
        self.zoomed = not self.zoomed
        self.set_class(self.zoomed, "-zoomed")
        self.show_pane("text" if self.zoomed else "chunks")
        self.call_after_refresh(self.redraw)

    def do_info(self) -> None:
        if self.session.blind:
            raise ActionRefused("rank and scores are hidden in blind mode; B leaves it")
        self.look = replace(self.look, info=not self.look.info)
        self.chunks.refresh()

    def do_order(self) -> None:
        names = [name for name in ROW_ORDERS if name != "rank" or not self.session.blind]
        place = names.index(self.session.row_order) if self.session.row_order in names else -1
        self.session.set_row_order(names[(place + 1) % len(names)])
        self.chunks.refresh()
        self.say(f"rows in {self.session.row_order} order")

    def queue_order(self, name: str) -> None:
        """Put the questions in another order (from the command palette)."""
        if name not in ORDERS:
            raise ActionRefused(f"no order {name}; there are: {', '.join(ORDERS)}")
        self.session.set_order(name)
        self.list_questions()
        self.say(f"questions in {name} order")

    def go_to(self, wanted: str) -> None:
        """Open a question by its number or id (from the command palette)."""
        if wanted.isdecimal():
            self.session.goto_number(int(wanted))
        else:
            found = self.session.find(wanted)
            if found is None:
                raise ActionRefused(f"no question {wanted}")
            self.session.goto(found)

    def do_theme(self) -> None:
        place = THEMES.index(self.app.theme) if self.app.theme in THEMES else -1
        self.app.theme = THEMES[(place + 1) % len(THEMES)]

    def do_redraw(self) -> None:
        self.redraw()
        self.refresh(repaint=True, layout=True)

    def do_copy_anchor(self) -> None:
        chunk = self.need_row().chunk
        self._copy(f"{chunk.rel_path} > {chunk.heading_path}", "path and heading")

    def do_copy_text(self) -> None:
        self._copy(self.need_row().chunk.text, "text of the chunk")

    def _copy(self, text: str, what: str) -> None:
        self.app.copy_to_clipboard(display(text, SHOWN_LIMIT))
        self.say(f"copied the {what} (if your terminal lets programs copy)")

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        if event.list is self.chunks and not self.frozen:
            self.show_pane("chunks")
            self.sync()

    def on_line_list_clicked(self, event: LineList.Clicked) -> None:
        if self.frozen:
            return
        if event.list is self.questions:
            self.open_question(event.index)
            self.sync()
        elif 1 <= event.x <= 4:
            self.perform("mark")

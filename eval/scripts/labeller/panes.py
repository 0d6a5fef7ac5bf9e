"""The panes of the main screen: which one gets the keys, which one has the whole screen, and how
many lines each has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.widget import Widget

from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.tables import counted
from terminal.text_pane import TextPane, found_words

if TYPE_CHECKING:
    from labeller.case_head import CaseHead
    from labeller.passage_text import PassageText
    from labeller.question_list import QuestionList
    from labeller.row_list import RowList
    from labeller.worklist import WorkQueue

NAMES = ("chunks", "text", "questions", "conversation", "question", "state")

END: Final = 1 << 30
"""Past the last row of any list."""

FIXED_LINES = 5
"""Header, two rules, status and hints: the rest is for question, needs, rows and text."""

SHORT = 16
"""Lines below which question and needs get one line each."""

FILTER_LABELS = {
    "chunks": "Passages that hold these words",
    "text": "Words in this text",
    "conversation": "Words in the conversation",
    "question": "Words in the question",
    "state": "Words in the needs",
    "questions": "Questions: words, status:open, flag, tag:x, category:x, anchor:lost",
}


class Panes:
    """Two lists and four texts: the rows, the questions, the passage and the texts above the rows.

    `focus` names the pane that has the keys.
    """

    def __init__(
        self,
        owner: ActionScreen[None],
        queue: WorkQueue,
        head: CaseHead,
        rows: RowList,
        passage: PassageText,
        questions: QuestionList,
    ) -> None:
        self._owner, self._queue, self._head = owner, queue, head
        self._rows, self._passage, self._questions = rows, passage, questions
        texts: tuple[TextPane, ...] = (passage, head.talk, head.question, head.state)
        self._texts = {str(text.id): text for text in texts}
        self.focus = "chunks"
        self.zoomed = ""  # the pane that has the whole screen
        self.reading = False  # reads on from row to row: a long text may take the list's lines
        self._heights: tuple[tuple[Widget, int | str], ...] = ()

    def show(self, name: str) -> None:
        """Let keys go to a pane."""
        self.focus = name
        self._rows.set_active(name == "chunks")
        self._questions.set_active(name == "questions")

    # -- room for each pane

    def fit(self, *, other_rows: bool) -> None:
        """Give question, needs and rows the lines that they need; the text takes the rest."""
        owner, head, list_, passage = self._owner, self._head, self._rows, self._passage
        height = owner.size.height
        if head.question.size.width <= 0 or self.zoomed:
            return
        most = 1 if height < SHORT else max(2, height // 10)
        talk, question, state = head.heights(most, height)
        heads = 1 if owner.look.info else 0
        room = height - FIXED_LINES - heads - talk - question - state
        needed = passage.lines_needed(anew=other_rows)
        count = max(1, len(list_.rows))
        least = min(count, max(3, room // 3))
        if self.reading and list_.row is not None:
            least = max(1, min(least, room - passage.lines_of([list_.row])))
        rows = max(least, min(count, room - needed))
        heights: tuple[tuple[Widget, int | str], ...] = (
            *([(head.talk, talk)] if talk else []),
            (head.question, question),
            (head.state, state),
            (list_.rule, 1 + heads),
            (list_, rows if passage.display else "1fr"),
        )
        if heights != self._heights:
            self._heights = heights
            for widget, lines in heights:
                widget.styles.height = lines
            owner.call_after_refresh(owner.show)

    def fit_anew(self) -> None:
        """Set all heights again at the next `fit`."""
        self._heights = ()

    @property
    def laid_out(self) -> bool:
        """Have the panes the heights that were given to them last?"""
        return bool(self._heights) and all(
            widget.size.height == lines for widget, lines in self._heights if isinstance(lines, int)
        )

    # -- keys

    def acts(self) -> Acts:
        """The functions of the actions that depend on the focus, or move it."""
        return {
            "read-on": self._read_on,
            "down": lambda: self._step(1),
            "up": lambda: self._step(-1),
            "first": lambda: self._jump(0),
            "top": lambda key: self._jump(0),
            "last": lambda: self._jump(END),
            "page-down": lambda: self._page(1),
            "page-up": lambda: self._page(-1),
            "line-down": lambda: self._scroll("text", 1),
            "line-up": lambda: self._scroll("text", -1),
            "next-pane": lambda: self._turn(1),
            "previous-pane": lambda: self._turn(-1),
            "filter": self._ask_filter,
            "next-hit": lambda: self._hit(1),
            "previous-hit": lambda: self._hit(-1),
            "clear": self._clear,
            "toggle-questions": self._toggle_questions,
            "zoom": self.zoom,
            "conversation": self._turn_talk,
        }

    def _scroll(self, name: str, by: int) -> None:
        self._texts[name].scroll_by(by)

    def _step(self, by: int) -> None:
        if self.focus in self._texts:
            self._scroll(self.focus, by)
        elif self.focus == "questions":
            self._questions.move_to(self._questions.cursor + by)
        else:
            self._rows.go_to(self._rows.cursor + by)

    def _jump(self, index: int) -> None:
        """To the first line (0) or the last (`END`) of the pane."""
        if self.focus in self._texts:
            self._scroll(self.focus, END if index else -END)
        elif self.focus == "questions":
            self._questions.move_to(index)
        else:
            self._rows.go_to(index)

    def _page(self, by: int) -> None:
        """A page of the list of questions, or half a page of the text."""
        if self.focus == "questions":
            page = max(1, self._questions.size.height - 1)
            self._questions.move_to(self._questions.cursor + by * page)
        else:
            name = self.focus if self.focus in self._texts else "text"
            self._scroll(name, by * max(1, self._texts[name].size.height // 2))

    def _read_on(self) -> None:
        """A page of the text down; from its end to the next row that was not read.

        Pages share no line, and the list gives its lines to the text where that needs them.
        """
        self._rows.need_row()
        if not self._passage.display:
            self.zoom()
            return
        self.reading = True
        if not self._passage.scroll_by(max(1, self._passage.size.height)):
            self._rows.next_unread()

    def _turn(self, by: int) -> None:
        panes = [name for name in NAMES if self._is_shown(name)]
        index = panes.index(self.focus) if self.focus in panes else -by
        self.show(panes[(index + by) % len(panes)])

    def _is_shown(self, name: str) -> bool:
        if name in ("conversation", "question", "state"):
            pane = self._texts[name]
            if pane.line_count <= pane.size.height and self.zoomed != name:
                return False  # all of it is in view: there is nothing to scroll
        return all(node.display for node in self._owner.query_one(f"#{name}").ancestors_with_self)

    def _toggle_questions(self) -> None:
        """The list of questions on or off."""
        owner = self._owner
        wide = owner.has_class("-wide")
        owner.toggle_class("-side-off" if wide else "-side-on")
        on = not owner.has_class("-side-off") if wide else owner.has_class("-side-on")
        self.show("questions" if on else "chunks")
        owner.call_after_refresh(owner.redraw)

    def zoom(self) -> None:
        """The text, or question or needs if they have the focus, on the whole screen; or back."""
        before = self.zoomed
        self.zoomed = "" if before else self.focus if self.focus in self._texts else "text"
        self._passage.whole = self.zoomed == "text"
        self._owner.set_class(bool(self.zoomed), f"-zoom-{self.zoomed or before}")
        for name in ("conversation", "question", "state"):
            self._texts[name].styles.height = "1fr" if self.zoomed == name else 1
        self.show(self.zoomed or "chunks")
        self._owner.call_after_refresh(self._owner.redraw)

    def _turn_talk(self) -> None:
        """All of the conversation with the keys in it, or its last two lines."""
        self._head.turn_talk()
        self.show("conversation" if self._head.unfolded else "chunks")

    # -- words

    def _hit(self, by: int) -> None:
        if self.focus == "questions":
            self._questions.move_to(self._questions.cursor + by)
        elif self.focus in self._texts and self._texts[self.focus].words:
            self._owner.next_hit(self._texts[self.focus], by)
        else:
            self._rows.next_hit(by)

    def _clear(self) -> None:
        """Take back the innermost thing that was started."""
        if self._rows.drop_mode():
            return
        if self.zoomed:
            self.zoom()
        elif self.focus == "questions" and self._queue.filter:
            self._filter_questions("")
        elif self._rows.words:
            self._rows.words = ""
        elif any(pane.words for pane in self._texts.values()):
            for pane in self._texts.values():
                pane.search("")
        elif self._queue.filter:
            self._filter_questions("")
        else:
            self.show("chunks")

    def _ask_filter(self) -> None:
        """Ask for the words that the rows of the focused pane must contain."""
        from terminal.windows import LinePrompt

        pane = self.focus
        words = {"chunks": self._rows.words, "questions": self._queue.filter}
        before = words[pane] if pane in words else self._texts[pane].words

        def apply(text: str) -> str:
            message = self._filter(pane, text)
            self._owner.show()
            return message if pane != "chunks" else counted(len(self._rows.rows), "passage")

        def live(text: str) -> str:
            try:
                return apply(text)
            except ActionRefused as refusal:
                return str(refusal)

        def closed(text: str | None) -> None:
            self._owner.attempt(lambda: apply(before if text is None else text))

        self._owner.app.push_screen(LinePrompt(FILTER_LABELS[pane], before, live), closed)

    def _filter(self, pane: str, text: str) -> str:
        if pane == "questions":
            return self._filter_questions(text)
        if pane in self._texts:
            count = self._texts[pane].search(text)
            return found_words(count) if text.strip() else ""
        self._rows.words = text
        self._rows.last_words = text or self._rows.last_words
        return ""

    def _filter_questions(self, text: str) -> str:
        message = self._queue.set_filter(text)
        self._questions.load()
        return message

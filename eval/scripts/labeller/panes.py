"""The panes of the main screen: which one has the keys, or the whole screen; the lines of each."""

from __future__ import annotations

from typing import Final

from textual.widget import Widget

from labeller import lines
from labeller.conversation import conversation_text
from labeller.row_list import PassageText, RowList
from labeller.session import Session
from labeller.worklist import WorkQueue
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.frame import rule
from terminal.lists import Bar, Line, LineList
from terminal.safe_text import DisplayText, display, one_line
from terminal.tables import counted
from terminal.text_pane import Mark, TextPane, found_words
from terminal.windows import LinePrompt

END: Final = 1 << 30
"""Past the last row of any list."""

FIXED_LINES = 5
"""Header, two rules, status and hints: the rest is for question, needs, rows and text."""

SHORT = 16
"""Lines below which question and needs get one line each."""

FILTER_LABELS = {
    "chunks": "Passages that hold these words",
    "text": "Words in this text",
    "questions": "Questions: words, status:open, flag, tag:x, category:x, anchor:lost",
    "conversation": "Words in the conversation",
    "question": "Words in the question",
    "state": "Words in the needs",
}
"""The panes in the order of the keys, and what is asked for when their content is filtered."""


FOLDED_LINES = 2
"""Of a conversation above the question, unless it is unfolded."""


class QuestionList(LineList):
    """The visible questions of the queue. While `frozen` nothing of the queue is read."""

    def __init__(self, owner: ActionScreen[None], queue: WorkQueue) -> None:
        super().__init__(self._line, id="questions")
        self._owner, self._queue = owner, queue
        self.title, self.legend = Bar(id="side-top"), Bar(id="side-end")
        self.frozen = False
        self._visible: list[str] = []
        self._id_width = 0
        self._shown: object = None
        self.set_active(False)

    def load(self) -> None:
        """Read the list again, after its order, filter or members changed."""
        self._visible = list(self._queue.visible)
        self._id_width = max(map(len, self._visible), default=0)
        current = self._queue.current
        cursor = self._visible.index(current) if current in self._visible else 0
        self.set_count(len(self._visible), cursor)
        self._shown = None

    def show_current(self, *, focused: bool) -> None:
        """Draw the open question's row, title and legend if they are others than before; the cursor
        follows unless the list has the focus."""
        queue = self._queue
        shown = (queue.summaries.get(queue.current), focused, self.size.width)
        if shown == self._shown:
            return
        self._shown = shown
        if queue.current in self._visible:
            index = self._visible.index(queue.current)
            if not focused:
                self.move_to(index)
            self.refresh_rows([index])
        words = f"filter: {one_line(queue.filter, 20)}" if queue.filter else "/ filter"
        title = f"questions, {queue.order} order"
        self.title.show([rule(self._owner.look, self.size.width, title, words, focused=focused)])
        self.legend.show([(("dim", display(text)),) for text in lines.LEGEND])

    def open(self, index: int) -> bool:
        """Open the question on a row; False when there is no such row."""
        if index < len(self._visible):
            self._queue.goto(self._visible[index])
        return index < len(self._visible)

    def _line(self, index: int, width: int) -> Line:
        case_id = self._visible[index]
        if self.frozen:
            return (("dim", one_line(case_id)),)
        sign = ">" if index == self.cursor else "*" if case_id == self._queue.current else " "
        return lines.question_row(self._queue.summaries[case_id], width, self._id_width, sign=sign)


class Panes:
    """Rows, questions, passage and texts above the rows; `focus` names the one with the keys."""

    def __init__(
        self,
        owner: ActionScreen[None],
        session: Session,
        rows: RowList,
        passage: PassageText,
        questions: QuestionList,
    ) -> None:
        self._owner, self._session, self._queue = owner, session, session.queue
        self._rows, self._passage, self._questions = rows, passage, questions
        self.talk = TextPane(id="conversation", hang=2)
        self.question, self.state = TextPane(id="question"), TextPane(id="state", hang=2)
        self.talk.display = False
        self._unfolded = False  # all of the conversation is shown
        self._talk_ends = False  # its end has to come into view
        texts: tuple[TextPane, ...] = (passage, self.talk, self.question, self.state)
        self._texts = {str(text.id): text for text in texts}
        self.focus = "chunks"
        self.zoomed = ""  # the pane that has the whole screen
        self.reading = False  # reads on from row to row: a long text may take the list's lines
        self.heights: tuple[tuple[Widget, int | str], ...] = ()
        """As set last; emptied, all are set again at the next `fit`."""

    def show(self, name: str) -> None:
        """Let keys go to a pane."""
        self.focus = name
        self._rows.set_active(name == "chunks")
        self._questions.set_active(name == "questions")

    def new_case(self) -> None:
        """Show the messages before the question; no line without messages."""
        self.reading = False
        text, marks = conversation_text(self._session.messages_before())
        self.talk.show(text, marks)
        self._talk_ends = self.talk.display = bool(text)
        if self.focus == "conversation" and not text:
            self.show("chunks")

    def show_texts(self) -> None:
        """Draw question and needs; the one with the focus is highlighted."""
        question, state, marks = DisplayText(""), DisplayText(""), list[Mark]()
        if self._session.current:
            question = one_line(str(self._session.case.get("question", "")))
            state, marks = lines.state_text(self._session)
        style = "focus" if self.focus == "question" else "term"
        self.question.show(question, [(0, len(question), style)])
        if self.focus == "state":
            marks = [(0, len(state), "focus")]
        opened = [mark for mark in marks if mark[2] == "marked"]
        if self.state.show(state, marks) and opened:
            self.state.reveal(*opened[0][:2])

    def show_end_of_talk(self) -> None:
        """Bring the end of the conversation into view, once it has its lines."""
        if self._talk_ends and self.laid_out:
            self._talk_ends = False
            self.talk.scroll_by(END)

    def fit(self, *, other_rows: bool) -> None:
        """Give question, needs and rows the lines that they need; the text takes the rest."""
        owner, list_, passage = self._owner, self._rows, self._passage
        height = owner.size.height
        if self.question.size.width <= 0 or self.zoomed:
            return
        most = 1 if height < SHORT else max(2, height // 10)
        most_talk = height // 2 if self._unfolded else min(most, FOLDED_LINES)
        talk = max(1, min(most_talk, self.talk.line_count)) if self.talk.display else 0
        question, state = (max(1, min(most, x.line_count)) for x in (self.question, self.state))
        heads = 1 if owner.look.info else 0
        room = height - FIXED_LINES - heads - talk - question - state
        needed = passage.lines_needed(anew=other_rows)
        count = max(1, len(list_.rows))
        least = min(count, max(3, room // 3))
        if self.reading and list_.row is not None:
            least = max(1, min(least, room - passage.lines_of([list_.row])))
        rows = max(least, min(count, room - needed))
        heights: tuple[tuple[Widget, int | str], ...] = (
            *([(self.talk, talk)] if talk else []),
            (self.question, question),
            (self.state, state),
            (list_.rule, 1 + heads),
            (list_, rows if passage.display else "1fr"),
        )
        if heights != self.heights:
            self.heights = heights
            for widget, size in heights:
                widget.styles.height = size
            owner.call_after_refresh(owner.show)

    @property
    def laid_out(self) -> bool:
        """Have the panes the heights that were given to them last?"""
        fixed = ((widget, size) for widget, size in self.heights if isinstance(size, int))
        return bool(self.heights) and all(widget.size.height == size for widget, size in fixed)

    def acts(self) -> Acts:
        """The functions of the actions that depend on the focus, or move it."""
        return {
            "read-on": self._read_on,
            "down": lambda: self._step(1),
            "up": lambda: self._step(-1),
            "first": lambda: self._step(-END),
            "top": lambda key: self._step(-END),
            "last": lambda: self._step(END),
            "page-down": lambda: self._page(1),
            "page-up": lambda: self._page(-1),
            "line-down": lambda: self._passage.scroll_by(1),
            "line-up": lambda: self._passage.scroll_by(-1),
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

    def _step(self, by: int) -> None:
        """So many lines or rows on in the pane that has the focus."""
        if self.focus in self._texts:
            self._texts[self.focus].scroll_by(by)
        else:
            list_ = self._questions if self.focus == "questions" else self._rows
            list_.move_to(list_.cursor + by)

    def _page(self, by: int) -> None:
        """A page of the list of questions, or half a page of the text."""
        if self.focus == "questions":
            self._step(by * max(1, self._questions.size.height - 1))
        else:
            text = self._texts.get(self.focus, self._passage)
            text.scroll_by(by * max(1, text.size.height // 2))

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
            self._rows.seek(1, lambda row: not row.seen, "all rows here are read")

    def _turn(self, by: int) -> None:
        panes = [name for name in FILTER_LABELS if self._is_shown(name)]
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
        owner, wide = self._owner, self._owner.has_class("-wide")
        name = "-side-off" if wide else "-side-on"
        owner.toggle_class(name)
        self.show("questions" if owner.has_class(name) != wide else "chunks")
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
        if not self.talk.display:
            raise ActionRefused("nothing was said before this question")
        self._unfolded = not self._unfolded
        self._talk_ends = True
        self.show("conversation" if self._unfolded else "chunks")

    def _hit(self, by: int) -> None:
        if self.focus == "questions":
            self._step(by)
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
        elif searched := [pane for pane in self._texts.values() if pane.words]:
            for pane in searched:
                pane.search("")
        elif self._queue.filter:
            self._filter_questions("")
        else:
            self.show("chunks")

    def _ask_filter(self) -> None:
        """Ask for the words that the rows of the focused pane must contain."""
        pane = self.focus
        words = {"chunks": self._rows.words, "questions": self._queue.filter}
        before = words[pane] if pane in words else self._texts[pane].words

        def apply(text: str) -> str:
            message = ""
            if pane == "questions":
                message = self._filter_questions(text)
            elif pane in self._texts:
                count = self._texts[pane].search(text)
                message = found_words(count) if text.strip() else ""
            else:
                self._rows.words = text
                self._rows.last_words = text or self._rows.last_words
            self._owner.show()
            return counted(len(self._rows.rows), "passage") if pane == "chunks" else message

        def live(text: str) -> str:
            try:
                return apply(text)
            except ActionRefused as refusal:
                return str(refusal)

        def closed(text: str | None) -> None:
            self._owner.attempt(lambda: apply(before if text is None else text))

        self._owner.app.push_screen(LinePrompt(FILTER_LABELS[pane], before, live), closed)

    def _filter_questions(self, text: str) -> str:
        message = self._queue.set_filter(text)
        self._questions.load()
        return message

"""The panes of the main screen: the texts above the rows, the list of questions at the side; which
pane gets the keys, which one has the whole screen, and how many lines each has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.widget import Widget

from labeller import lines
from labeller.conversation import conversation_text
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.frame import rule
from terminal.lists import Bar, Line, LineList
from terminal.safe_text import DisplayText, one_line
from terminal.tables import counted
from terminal.text_pane import Mark, TextPane, found_words

if TYPE_CHECKING:
    from labeller.row_list import PassageText, RowList
    from labeller.session import Session
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


FOLDED_LINES = 2
"""Of a conversation above the question, unless it is unfolded."""


class CaseHead:
    """The three texts of the open case; the focused text is highlighted."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.talk = TextPane(id="conversation", hang=2)
        self.question = TextPane(id="question")
        self.state = TextPane(id="state", hang=2)
        self.unfolded = False  # all of the conversation is shown
        self._talk_ends = False  # its end has to come into view

    def new_case(self) -> None:
        """Show the messages before the question; no line without messages."""
        text, marks = conversation_text(self._session.messages_before())
        self.talk.show(text, marks)
        self._talk_ends = self.talk.display = bool(text)

    def show(self, focus: str) -> None:
        """Draw question and needs."""
        question, state, marks = DisplayText(""), DisplayText(""), list[Mark]()
        if self._session.current:
            question = lines.question_text(self._session)
            state, marks = lines.state_text(self._session)
        style = "focus" if focus == "question" else "term"
        self.question.show(question, [(0, len(question), style)])
        if focus == "state":
            marks = [(0, len(state), "focus")]
        if self.state.show(state, marks):
            opened = [mark for mark in marks if mark[2] == "marked"]
            if opened:
                self.state.reveal(*opened[0][:2])

    def show_end_of_talk(self) -> None:
        """Bring the end of the conversation into view, once it has its lines."""
        if self._talk_ends:
            self._talk_ends = False
            self.talk.scroll_by(END)

    def turn_talk(self) -> None:
        """All that was said before the question, or its last two lines."""
        if not self.talk.display:
            raise ActionRefused("nothing was said before this question")
        self.unfolded = not self.unfolded
        self._talk_ends = True

    def heights(self, most: int, height: int) -> tuple[int, int, int]:
        """The lines for conversation, question and needs on a screen of `height` lines.

        Each gets `most` lines at most; the conversation two, or half of the screen when unfolded.
        """
        talk = 0
        if self.talk.display:
            most_talk = height // 2 if self.unfolded else min(most, FOLDED_LINES)
            talk = max(1, min(most_talk, self.talk.line_count))
        question = max(1, min(most, self.question.line_count))
        return talk, question, max(1, min(most, self.state.line_count))


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
        legend = one_line(lines.LEGEND)
        half = legend.index("s later")
        halves = DisplayText(legend[:half]), DisplayText(legend[half:])
        self.legend.show([(("dim", text),) for text in halves])

    def open(self, index: int) -> bool:
        """Open the question on a row; False when there is no such row."""
        if index < len(self._visible):
            self._queue.goto(self._visible[index])
        return index < len(self._visible)

    def _line(self, index: int, width: int) -> Line:
        case_id = self._visible[index]
        if self.frozen:
            return (("dim", one_line(case_id)),)
        sign = "*" if case_id == self._queue.current else " "
        if index == self.cursor:
            sign = ">"
        summary = self._queue.summaries[case_id]
        return lines.question_row(summary, width, self._id_width, sign=sign)


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
            for widget, size in heights:
                widget.styles.height = size
            owner.call_after_refresh(owner.show)

    def fit_anew(self) -> None:
        """Set all heights again at the next `fit`."""
        self._heights = ()

    @property
    def laid_out(self) -> bool:
        """Have the panes the heights that were given to them last?"""
        return bool(self._heights) and all(
            widget.size.height == count for widget, count in self._heights if isinstance(count, int)
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

    @property
    def _list(self) -> LineList:
        return self._questions if self.focus == "questions" else self._rows

    def _scroll(self, name: str, by: int) -> None:
        self._texts[name].scroll_by(by)

    def _step(self, by: int) -> None:
        if self.focus in self._texts:
            self._scroll(self.focus, by)
        else:
            self._list.move_to(self._list.cursor + by)

    def _jump(self, index: int) -> None:
        """To the first line (0) or the last (`END`) of the pane."""
        if self.focus in self._texts:
            self._scroll(self.focus, END if index else -END)
        else:
            self._list.move_to(index)

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

"""The texts above the rows: the conversation before the question, the question, and its needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeller import lines
from labeller.conversation import conversation_text
from terminal.actions import ActionRefused
from terminal.safe_text import DisplayText
from terminal.text_pane import Mark, TextPane

if TYPE_CHECKING:
    from labeller.session import Session

FOLDED_LINES = 2
"""Of a conversation above the question, unless it is unfolded."""

WHOLE = 1 << 30


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
            self.talk.scroll_by(WHOLE)

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

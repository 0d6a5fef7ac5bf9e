"""The list of questions at the side, with its title and legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeller import lines
from terminal.action_screen import ActionScreen
from terminal.frame import rule
from terminal.lists import Bar, Line, LineList
from terminal.safe_text import DisplayText, one_line

if TYPE_CHECKING:
    from labeller.worklist import WorkQueue


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

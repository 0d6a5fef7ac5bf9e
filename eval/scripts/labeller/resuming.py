"""Going on where a session was left: what was looked at, as a value that outlives the session."""

from __future__ import annotations

from dataclasses import dataclass

from labeller.moving import Moving
from labeller.rows import Rows
from terminal.actions import ActionRefused


@dataclass(frozen=True)
class View:
    """What is looked at: case, key of the chunk under the cursor, filter and order of the queue.

    `row_order` counts for sessions that are as `blind` as the one that it was chosen in.
    """

    case: str = ""
    row: str = ""
    filter: str = ""
    order: str = "file"
    row_order: str = "shuffled"
    blind: bool = True


class Resuming(Moving, Rows):
    """What a session looks at, and looking at it again."""

    resumed_row: str = ""
    """Key of the chunk that was under the cursor when the last session was left."""

    def view(self, row: str = "") -> View:
        """What is looked at now, with the cursor on the chunk of key `row`."""
        return View(self.current, row, self.filter, self.order, self.row_order, self.blind)

    def resume(self, view: View) -> list[str]:
        """Look at what was looked at. Returns what the user should know, a sentence each.

        The order of the queue is an argument of the session: it may need results to go by.
        """
        said = []
        if view.filter:
            try:
                said.append(f"Still filtered by {view.filter}: {self.set_filter(view.filter)}.")
            except ActionRefused as refusal:
                said.append(f"The filter of last time is dropped: {refusal}")
        if view.blind == self.blind and view.row_order != self.row_order:
            try:
                self.set_row_order(view.row_order)
            except ActionRefused as refusal:
                said.append(f"The row order of last time is dropped: {refusal}")
        if self.knows(view.case):
            self.current = ""
            self._go(view.case)
            self._trail.clear()
            self.resumed_row = view.row
        return said

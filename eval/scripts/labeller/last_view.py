"""Where a session was left: the case, row, filter and orders that the next one begins with."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from labeller.session import Session
from terminal.actions import ActionRefused


@dataclass(frozen=True)
class View:
    """The present view: case, key of the chunk under the cursor, filter and order of the queue.

    `row_order` counts for sessions that are as `blind` as the one that it was chosen in.
    """

    case: str = ""
    row: str = ""
    filter: str = ""
    order: str = "file"
    row_order: str = "shuffled"
    blind: bool = True


def present_view(session: Session, row: str = "") -> View:
    """The present view, with the cursor on the chunk of key `row`."""
    queue = session.queue
    return View(queue.current, row, queue.filter, queue.order, session.row_order, session.blind)


def resume(session: Session, view: View) -> list[str]:
    """Restore the stored view. Returns what the user should know, a sentence each.

    The order of the queue is an argument of the session: it may need results to go by.
    """
    notices, queue = [], session.queue
    if view.filter:
        try:
            notices.append(f"Still filtered by {view.filter}: {queue.set_filter(view.filter)}.")
        except ActionRefused as refusal:
            notices.append(f"The filter of last time is dropped: {refusal}")
    if view.blind == session.blind and view.row_order != session.row_order:
        try:
            session.set_row_order(view.row_order)
        except ActionRefused as refusal:
            notices.append(f"The row order of last time is dropped: {refusal}")
    if view.case in queue:
        queue.current = ""
        queue.goto(view.case)
        queue.trail.clear()
        session.resumed_row = view.row
    return notices


class ViewFile:
    """The file of one annotator's last view of one set."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[View | None, str]:
        """The view, or None and, when there is a file that cannot be used, a word about it."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=View), ""
        except FileNotFoundError:
            return None, ""
        except OSError as error:
            why = error.strerror or type(error).__name__
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            why = "damaged"
        return None, f"{self.path.name}: cannot be read ({why}); starting with the default view."

    def write(self, view: View) -> None:
        """Keep a view. A disk that refuses is passed over: no label is in it.

        The file is replaced in one step, for a kill must not halve it; it is not forced onto the
        disk, for this happens at every move of the cursor.
        """
        passing = self.path.with_name(f".{self.path.name}.new")
        with contextlib.suppress(OSError, UnicodeEncodeError):
            passing.write_bytes(msgspec.json.encode(view))
            os.replace(passing, self.path)

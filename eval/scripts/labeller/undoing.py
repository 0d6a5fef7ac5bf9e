"""Undo and redo: without limit, each a step of its own in the journal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from labeller.core import Core
from labeller.entry import entry_from, same, same_on_disk
from labeller.history import Event
from terminal.actions import ActionRefused


class Undoing(Core):
    """Walking the history back and forth."""

    _held: list[Event] | None = None

    @contextlib.contextmanager
    def one_step(self) -> Iterator[None]:
        """Let all that is done to the current case inside be one step, or nothing if refused."""
        case_id, before = self.current, self._need_case()
        held: list[Event] = []
        self._held = held
        try:
            yield
        except Exception:
            self._put(case_id, before, None)
            raise
        finally:
            self._held = None
        if held and not (len(held) > 1 and same(before, self.entry(case_id))):
            self._emit(held[-1] | {"before": held[0]["before"]})

    def _emit(self, event: Event) -> None:
        if self._held is None:
            super()._emit(event)
        else:
            self._held.append(event)

    @property
    def can_undo(self) -> bool:
        """Is there a step to take back?"""
        return bool(self._history.done)

    @property
    def can_redo(self) -> bool:
        """Is there a step to do again?"""
        return bool(self._history.undone)

    def undo(self) -> str:
        """Take back the last step, and go to the case that it touched."""
        return self._turn("undo", self._history.done, "before", "after")

    def redo(self) -> str:
        """Do the step last taken back again, and go to its case."""
        return self._turn("redo", self._history.undone, "after", "before")

    def _turn(self, action: str, steps: list[Event], to: str, since: str) -> str:
        self._writable()
        if not steps:
            raise ActionRefused(f"Nothing to {action}.")
        step = steps[-1]
        case_id = str(step["case"])
        now = self.entry(case_id) if self.knows(case_id) else None
        if not same_on_disk(now, entry_from(step[since])):
            steps.pop()
            raise ActionRefused(
                f"{case_id} was changed elsewhere since: its step is left as it is."
            )
        event = self._event(action, case_id)
        event |= {"of": step["n"], "before": step[since], "after": step[to]}
        if "place" in step:
            event["place"] = step["place"]
        self._emit(event)
        self._put(case_id, entry_from(step[to]), step.get("place"))
        if self.knows(case_id):
            self._go(case_id)
        return f"{action}: {step['action'].replace('_', ' ')} in {case_id}"

"""The state of one case as a value, the events that change it, and the steps that undo walks.

An event is a plain dict that the store writes as one journal line:
``n`` (count from 1), ``at`` (UTC), ``by``, ``action``, ``case``, ``before`` and ``after`` (a state
or null), ``place`` (where an added or deleted case stands), and for an undo or redo ``of``, the
event that it takes back or repeats. A state is ``{"case", "judgement", "needs"}``. Nothing is ever
taken out of the journal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from labeller.needs import Needs, needs_of
from records.editing import written
from terminal.actions import UndoSteps

Record = dict[str, Any]
Event = dict[str, Any]
GOLD: Final = "gold"
"""The annotator whose labels are the set itself."""
LABEL_FIELDS: Final = ("answerable", "gold_supports", "required_support_groups")
"""The fields of a case that marks and decisions write."""
UNRECORDED_STEPS = frozenset({"blind", "saved", "opened", "merged", "probed"})
"""Actions that are journalled but are no step to undo."""


def undecided(case: Record) -> Record:
    """The record with no word on whether it can be answered: who decided nothing wrote none."""
    return {name: value for name, value in case.items() if name != "answerable"}


@dataclass(frozen=True)
class CaseState:
    """All that can be undone of a case: its record, its judgement, the need that marks join.

    The dicts are values: an action replaces them and never changes them. `needs` is None where they
    are as the record says and marks join the first.
    """

    case: Record
    judgement: Record
    needs: Needs | None = None

    @property
    def layout(self) -> Needs:
        """The needs of the case, and the one that marks join."""
        return self.needs or needs_of(self.case)

    def laid_out(self, layout: Needs) -> CaseState:
        """The same case with other needs, which its record says already."""
        return replace(self, needs=None if layout == needs_of(self.case) else layout)

    def judged(self, **fields: Any) -> Record:
        """The judgement with `fields` set; a value of None takes a field away."""
        merged = {**self.judgement, **fields}
        return {k: v for k, v in merged.items() if v is not None or k not in fields}


class EditResult(NamedTuple):
    """The result of an action on a case: its name in the journal, the state after it, the message.

    `row`: the key of the passage that it was done to, to name it when it is undone.
    """

    name: str
    state: CaseState
    message: str
    row: str = ""


def same(first: CaseState | None, second: CaseState | None) -> bool:
    """Would both be written the same, field order and number types included?"""
    if first is None or second is None:
        return first is second
    return first is second or written(asdict(first)) == written(asdict(second))


def same_on_disk(first: CaseState | None, second: CaseState | None) -> bool:
    """Whether the files would be the same for both. They know not which need marks join."""
    if first is None or second is None:
        return first is second
    return same(first, replace(second, needs=first.needs))


def state_from(data: Record | None) -> CaseState | None:
    """The state in an event."""
    if data is None:
        return None
    needs = data["needs"]
    if needs:
        parts = tuple(tuple(part) for part in needs["parts"])
        needs = Needs(parts, needs["ways"], needs["open"])
    return CaseState(data["case"], data["judgement"], needs)


def timestamp(seconds: float) -> str:
    """Epoch seconds as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@dataclass
class UndoHistory(UndoSteps[Event]):
    """The steps of a journal that can be undone and redone, and the number of its last event."""

    count: int = 0
    """The number of the last event."""

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> UndoHistory:
        """The history in a journal. Events of an unknown kind are passed over."""
        history = cls()
        for event in events:
            history.count = max(history.count, int(event.get("n", 0)))
            history.take(event)
        return history

    def event(self, now: float, by: str, action: str, case_id: str) -> Event:
        """A new event with the next number; ``take`` follows it once it is written."""
        self.count += 1
        return {
            "n": self.count,
            "at": timestamp(now),
            "by": by,
            "action": action,
            "case": case_id,
        }

    def take(self, event: Event) -> None:
        """Follow one event: a step, an undo, or a redo."""
        action = event.get("action")
        if action == "undo":
            if self.done and self.done[-1]["n"] == event.get("of"):
                self.undo()
        elif action == "redo":
            if self.undone and self.undone[-1]["n"] == event.get("of"):
                self.redo()
        elif action not in UNRECORDED_STEPS and "n" in event:
            self.add(event)

"""Events, and the linear history that undo and redo walk. Nothing is ever taken out of the journal.

An event is a plain dict that the store writes as one journal line:
``n`` (count from 1), ``at`` (UTC), ``by``, ``action``, ``case``, ``before`` and ``after`` (an entry
or null), ``place`` (where an added or deleted case stands), and for an undo or redo ``of``, the
event that it takes back or repeats. ``probed`` holds ``query`` and ``k``. An entry is ``{"case",
"judgement", "letter"}``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Event = dict[str, Any]
Probe = tuple[str, int | None]
"""A query and how many chunks were asked for; None for the usual number."""
UNRECORDED_STEPS = frozenset({"blind", "saved", "opened", "merged", "probed"})
"""Actions that are journalled but are no step to undo."""


def timestamp(seconds: float) -> str:
    """Epoch seconds as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def probes_in(events: Iterable[Event]) -> dict[str, list[Probe]]:
    """The probes that found rows, by case id, in their order. What is no probe is passed over."""
    found: dict[str, list[Probe]] = {}
    for event in events:
        query, k = event.get("query"), event.get("k")
        if event.get("action") == "probed" and isinstance(query, str) and query:
            known = found.setdefault(str(event.get("case")), [])
            probe = (query, k if isinstance(k, int) else None)
            if probe not in known:
                known.append(probe)
    return found


@dataclass
class History:
    """Steps that can be undone (last one last), and those undone that can be redone."""

    done: list[Event] = field(default_factory=list)
    undone: list[Event] = field(default_factory=list)
    count: int = 0
    """The number of the last event."""

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> History:
        """The history that a journal tells. Events of an unknown kind are passed over."""
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
                self.undone.append(self.done.pop())
        elif action == "redo":
            if self.undone and self.undone[-1]["n"] == event.get("of"):
                self.done.append(self.undone.pop())
        elif action not in UNRECORDED_STEPS and "n" in event:
            self.done.append(event)
            self.undone.clear()

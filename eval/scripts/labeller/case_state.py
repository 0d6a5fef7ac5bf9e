"""The state of one case as a value, the events that change it, and the steps that undo walks.

An event is a plain dict that the store writes as one journal line:
``n`` (count from 1), ``at`` (UTC), ``by``, ``action``, ``case``, ``before`` and ``after`` (a state
or null), ``place`` (where an added or deleted case stands), and for an undo or redo ``of``, the
event that it takes back or repeats. A state is ``{"case", "judgement", "needs"}``. Nothing is ever
taken out of the journal.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from labeller.supports import Needs, needs_of
from records.cases import case_from_dict
from records.editing import Document, read_bytes, written
from records.judged import identify_judgement
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
        needs = Needs(tuple(map(tuple, needs["parts"])), needs["ways"], needs["open"])
    return CaseState(data["case"], data["judgement"], needs)


def timestamp(seconds: float) -> str:
    """Epoch seconds as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@dataclass
class UndoHistory(UndoSteps[Event]):
    """The steps of a journal that can be undone and redone, and the number of its last event."""

    count: int = 0
    """The number of the last event."""

    def event(self, now: float, by: str, action: str, case_id: str) -> Event:
        """A new event with the next number; ``take`` follows it once it is written."""
        self.count += 1
        return {"n": self.count, "at": timestamp(now), "by": by, "action": action, "case": case_id}

    def take(self, event: Event) -> None:
        """Follow one event: a step, an undo, or a redo. One of an unknown kind is passed over."""
        self.count = max(self.count, int(event.get("n", 0)))
        action = event.get("action")
        if action == "undo":
            if self.done and self.done[-1]["n"] == event.get("of"):
                self.undo()
        elif action == "redo":
            if self.undone and self.undone[-1]["n"] == event.get("of"):
                self.redo()
        elif action not in UNRECORDED_STEPS and "n" in event:
            self.add(event)


def validate(case: Record) -> list[str]:
    """The reasons why the toolkit would refuse a record, a sentence each; [] for a good one."""
    try:
        json.dumps(case, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return ["The text holds half of a character (a lone surrogate); the set cannot keep it."]
    return [f"{field}: {message}" for field, message in case_from_dict(case)[1]]


class Judgements(Mapping[str, Record]):
    """An annotator's judgements by case id, without the key itself."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def __getitem__(self, key: str) -> Record:
        return {k: v for k, v in self.document[key].items() if k not in ("case_id", *LABEL_FIELDS)}

    def __contains__(self, key: object) -> bool:
        return key in self.document

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)


@dataclass(frozen=True)
class LabelTarget:
    """Whose labels a session gives and where they go: here those of the set, into the set.

    An extra can hand in labels that are kept apart. Then `fixed` says why the set is not changed,
    and they are in the lines of the judgements. `next_command` is what makes use of them.
    """

    annotator: str = GOLD
    fixed: str = ""
    next_command: str = ""

    def records(self, cases: Document, judged: Document) -> Mapping[str, Record]:
        """The cases as the session sees them."""
        return cases

    def line(self, case_id: str, state: CaseState) -> Record | None:
        """The line of a case in the judgements; None for a case without any."""
        return {"case_id": case_id, **state.judgement} if state.judgement else None


SET_LABELS = LabelTarget()
"""The labels of the set itself."""


def read_judgements(folder: Path) -> dict[str, Document]:
    """The judgements in a folder, labels included, by whose they are (the name of the file)."""
    paths = sorted(folder.glob("*.jsonl"))
    return {path.stem: Document(read_bytes(path), identify_judgement) for path in paths}


def foreign_words(judged: Iterable[str], cases: Container[str]) -> str:
    """The message about judgements that are of no case of the set; ``""`` when there are none."""
    foreign = [case_id for case_id in judged if case_id not in cases]
    if not foreign:
        return ""
    first = ", ".join(map(repr, foreign[:3])) + (", …" if len(foreign) > 3 else "")
    are = "one judgement is" if len(foreign) == 1 else f"{len(foreign)} judgements are"
    return (
        f"{are} about no case of the set ({first}); if they belong to another set, give each set "
        "its own folder with --labels-dir, else delete these lines"
    )

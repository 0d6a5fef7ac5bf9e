"""Merges the changes of two sessions to the same files: field by field, labels together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from labeller.case_state import LABEL_FIELDS, CaseState, Record, state_from
from records.editing import written

JUDGED = "judgement"
_NOTED = ("flag", "note")
"""What a judgement holds beside the decision."""


@dataclass(frozen=True)
class Conflict:
    """Fields of a case that were changed here and, differently, in the file meanwhile.

    `base`, `mine` and `theirs` hold just those fields; None where the case was deleted (or, for
    `base`, did not exist).
    """

    case_id: str
    fields: tuple[str, ...]
    base: dict[str, Any] | None
    mine: dict[str, Any] | None
    theirs: dict[str, Any] | None


class UnsavedEdit(NamedTuple):
    """The states of a case since it was last saved, the present one last, and a new case's place.

    A session killed while saving may have written any of them, so none is another's change.
    """

    path: tuple[CaseState | None, ...]
    position: int | None = None


def changes_of(events: Iterable[Record]) -> dict[str, UnsavedEdit]:
    """The unsaved events as one change for each case."""
    changes: dict[str, UnsavedEdit] = {}
    for event in events:
        if "before" in event:
            earlier, position = changes.get(event["case"], UnsavedEdit(()))
            path = (*earlier, state_from(event["before"]), state_from(event["after"]))
            changes[event["case"]] = UnsavedEdit(path, event.get("place", position))
    return changes


def reconciled(
    case_id: str, path: Sequence[CaseState | None], theirs: CaseState | None
) -> tuple[CaseState | None, Conflict | None]:
    """One entry of the changes made here, along `path`, and of those in the file.

    Fields in conflict stay as they are here. A case deleted on one side and changed on the other
    conflicts in every field that was changed; two new cases with one id in all that differ.
    """
    steps = [_flat(state) for state in path]
    sides = (base, mine, there) = (steps[0], steps[-1], _flat(theirs))
    if any(written(step) == written(there) for step in steps):
        return path[-1], None
    if written(base) == written(mine):
        return theirs, None
    if base is None or mine is None or there is None:
        result, fields = mine, _differing(*(side for side in sides if side is not None))
    else:
        result, fields = _merged([step or {} for step in steps], there)
    parts = [None if side is None else {k: side[k] for k in fields if k in side} for side in sides]
    conflict = Conflict(case_id, fields, *parts) if fields else None
    return _entry_of(result, path[-1]), conflict


def taking_theirs(
    mine: CaseState | None, conflict: Conflict, theirs: CaseState | None
) -> CaseState | None:
    """The entry with the fields in conflict as the file has them; other changes stay.

    Of a judgement of other labels than the file's the flag and the note stay.
    """
    ours = _flat(mine)
    if ours is None or conflict.theirs is None:
        return theirs
    agreed = {k: v for k, v in ours.items() if k not in conflict.fields}
    if theirs is not None and not set(LABEL_FIELDS).isdisjoint(conflict.fields):
        noted = {k: v for k, v in agreed.get(JUDGED, {}).items() if k in _NOTED}
        agreed[JUDGED] = {k: v for k, v in theirs.judgement.items() if k not in _NOTED} | noted
    return _entry_of(agreed | conflict.theirs, None)


def _flat(entry: CaseState | None) -> Record | None:
    """Case and judgement as one record, so that both merge by the same rules."""
    if entry is None:
        return None
    return entry.case | ({JUDGED: entry.judgement} if entry.judgement else {})


def _entry_of(record: Record | None, mine: CaseState | None) -> CaseState | None:
    """The entry that `flat` was made of; with the needs of `mine` while it has the same labels."""
    if record is None:
        return None
    case = {k: v for k, v in record.items() if k != JUDGED}
    labels_stay = mine is not None and all(case.get(f) == mine.case.get(f) for f in LABEL_FIELDS)
    return CaseState(case, record.get(JUDGED, {}), mine.needs if mine and labels_stay else None)


def _merged(steps: Sequence[Record], theirs: Record) -> tuple[Record, tuple[str, ...]]:
    """The merged record and the fields in conflict; those hold what is here in the result."""
    base, mine = steps[0], steps[-1]
    merged: Record = {}
    conflicts: list[str] = []
    others = dict.fromkeys(name for name in (*theirs, *mine) if name not in LABEL_FIELDS)
    for group in (LABEL_FIELDS, *((name,) for name in others)):
        here, there = _part(mine, group), _part(theirs, group)
        ours = any(written(_part(step, group)) == written(there) for step in steps)
        unchanged = written(_part(base, group)) == written(here)
        merged |= there if unchanged and not ours else here
        if not (ours or unchanged):
            conflicts += [k for k in group if written(here.get(k)) != written(there.get(k))]
    order = [*theirs, *(k for k in mine if k not in theirs)]
    return {k: merged[k] for k in order if k in merged}, tuple(conflicts)


def _part(record: Record, group: tuple[str, ...]) -> Record:
    return {name: record[name] for name in group if name in record}


def _differing(first: Record, other: Record) -> tuple[str, ...]:
    names = dict.fromkeys([*first, *other])
    return tuple(name for name in names if written(first.get(name)) != written(other.get(name)))

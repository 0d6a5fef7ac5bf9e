"""Merges the changes of two sessions to the same files: field by field, labels together. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from labeller.case_state import LABEL_FIELDS, CaseState, Record, state_from
from records.editing import written

JUDGED = "judgement"


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


@dataclass(frozen=True)
class UnsavedEdit:
    """A case as last saved and as edited here, and its position when it is new.

    `path` holds what it was in between: a session that was killed while saving may have written any
    of that, and what was written here is no change by others."""

    base: CaseState | None
    mine: CaseState | None
    position: int | None = None
    path: tuple[CaseState | None, ...] = ()


def changes_of(events: Iterable[Record]) -> dict[str, UnsavedEdit]:
    """The unsaved events as one change for each case."""
    changes: dict[str, UnsavedEdit] = {}
    for event in events:
        if "before" not in event:
            continue
        change = changes.get(event["case"])
        before, after = state_from(event["before"]), state_from(event["after"])
        if change is None:
            change = UnsavedEdit(before, after)
        position = event.get("place", change.position)
        changes[event["case"]] = UnsavedEdit(
            change.base, after, position, (*change.path, before, after)
        )
    return changes


def reconciled(
    case_id: str, change: UnsavedEdit, theirs: CaseState | None
) -> tuple[CaseState | None, Conflict | None]:
    """Both changes in one entry. Fields in conflict stay as they are here."""
    on_disk = _flat(theirs)
    base = _own_base(_flat(change.base), on_disk, [_flat(entry) for entry in change.path])
    sides = (base, _flat(change.mine), on_disk)
    result, fields = _merge(*sides)
    conflict = None
    if fields:
        parts = [None if s is None else {k: s[k] for k in fields if k in s} for s in sides]
        conflict = Conflict(case_id, fields, *parts)
    return _entry_of(result, change.mine), conflict


def is_twin(change: UnsavedEdit, theirs: CaseState | None) -> bool:
    """Was the case added here, and another one with the same id elsewhere?"""
    if change.base is not None or change.mine is None or theirs is None:
        return False
    path = [_flat(entry) for entry in (*change.path, change.mine)]
    return _own_base(None, _flat(theirs), path) is None


def taking_theirs(
    mine: CaseState | None, conflict: Conflict, theirs: CaseState | None
) -> CaseState | None:
    """The entry with the fields in conflict as the file has them; other changes stay."""
    ours = _flat(mine)
    if ours is None or conflict.theirs is None:
        return theirs
    agreed = {k: v for k, v in ours.items() if k not in conflict.fields}
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


def _merge(
    base: Record | None, mine: Record | None, theirs: Record | None
) -> tuple[Record | None, tuple[str, ...]]:
    """The merged record and the fields in conflict; those hold `mine` in the result.

    A case deleted on one side and changed on the other conflicts in every field that was changed.
    """
    if written(mine) == written(theirs) or written(base) == written(theirs):
        return mine, ()
    if written(base) == written(mine):
        return theirs, ()
    if mine is None or theirs is None:
        changed = mine if theirs is None else theirs
        return mine, _differing(base or {}, changed or {})
    merged: Record = {}
    conflicts: list[str] = []
    for group in _groups(theirs, mine):
        was, here, there = (_part(side, group) for side in (base or {}, mine, theirs))
        if written(here) == written(there) or written(was) == written(here):
            chosen = there
        else:
            chosen = here
            if written(was) != written(there):
                conflicts += [k for k in group if written(here.get(k)) != written(there.get(k))]
        merged |= chosen
    order = [*theirs, *(k for k in mine if k not in theirs)]
    return {k: merged[k] for k in order if k in merged}, tuple(conflicts)


def _own_base(
    base: Record | None, theirs: Record | None, path: list[Record | None]
) -> Record | None:
    """`base`, brought forward to what this side itself had written: `path` is what it held since.

    A field (or the labels, as one) whose value on disk stood on the path was not changed by others.
    """
    if theirs is None or base is None:
        return theirs if any(written(theirs) == written(step) for step in path) else base
    steps = [step for step in path if step is not None]
    out: Record = {}
    for group in _groups(base, theirs):
        there = _part(theirs, group)
        ours = any(written(_part(step, group)) == written(there) for step in steps)
        out |= there if ours else _part(base, group)
    return out


def _part(record: Record, group: tuple[str, ...]) -> Record:
    return {name: record[name] for name in group if name in record}


def _groups(*records: Record) -> list[tuple[str, ...]]:
    names = dict.fromkeys(name for record in records for name in record)
    return [LABEL_FIELDS, *((name,) for name in names if name not in LABEL_FIELDS)]


def _differing(first: Record, other: Record) -> tuple[str, ...]:
    names = dict.fromkeys([*first, *other])
    return tuple(name for name in names if written(first.get(name)) != written(other.get(name)))

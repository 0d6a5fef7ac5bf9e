"""What a case becomes when it was changed here and in the file: entries, conflicts, replay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from label_store.merge import merge, own_base
from labeller.entry import Entry, entry_from
from labeller.model import Conflict

Record = dict[str, Any]
JUDGED = "judgement"


@dataclass(frozen=True)
class Change:
    """A case as it was last saved, as it is here, and where it stands when it is new.

    `path` holds what it was in between: a session that was killed while saving may have written any
    of that, and what was written here is nobody else's change.
    """

    base: Entry | None
    mine: Entry | None
    place: int | None = None
    path: tuple[Entry | None, ...] = ()


def changes_of(events: Iterable[Record]) -> dict[str, Change]:
    """What unsaved events did, a change a case."""
    changes: dict[str, Change] = {}
    for event in events:
        if "before" not in event:
            continue
        known = changes.get(event["case"])
        before, after = entry_from(event["before"]), entry_from(event["after"])
        if known is None:
            known = Change(before, after)
        place = event.get("place", known.place)
        changes[event["case"]] = Change(known.base, after, place, (*known.path, before, after))
    return changes


def reconciled(
    case_id: str, change: Change, theirs: Entry | None
) -> tuple[Entry | None, Conflict | None]:
    """Both changes in one entry. Fields in conflict stay as they are here."""
    on_disk = flat(theirs)
    base = own_base(flat(change.base), on_disk, [flat(entry) for entry in change.path])
    sides = (base, flat(change.mine), on_disk)
    result, fields = merge(*sides)
    conflict = None
    if fields:
        parts = [None if s is None else {k: s[k] for k in fields if k in s} for s in sides]
        conflict = Conflict(case_id, fields, *parts)
    letter = change.mine.letter if change.mine is not None else "A"
    return entry_of(result, letter), conflict


def is_twin(change: Change, theirs: Entry | None) -> bool:
    """Was the case added here, and another one with the same id elsewhere?"""
    if change.base is not None or change.mine is None or theirs is None:
        return False
    path = [flat(entry) for entry in (*change.path, change.mine)]
    return own_base(None, flat(theirs), path) is None


def taking_theirs(mine: Entry | None, conflict: Conflict, theirs: Entry | None) -> Entry | None:
    """The entry with the fields in conflict as the file has them; other changes stay."""
    known = flat(mine)
    if known is None or conflict.theirs is None:
        return theirs
    kept = {k: v for k, v in known.items() if k not in conflict.fields}
    return entry_of(kept | conflict.theirs, "A")


def flat(entry: Entry | None) -> Record | None:
    """Case and judgement as one record, so that both merge by the same rules."""
    if entry is None:
        return None
    return entry.case | ({JUDGED: entry.judgement} if entry.judgement else {})


def entry_of(record: Record | None, letter: str) -> Entry | None:
    """The entry that `flat` was made of."""
    if record is None:
        return None
    case = {k: v for k, v in record.items() if k != JUDGED}
    return Entry(case, record.get(JUDGED, {}), letter)

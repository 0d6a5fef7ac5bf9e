"""Three-way merge of one case: what it was, what it is here, what it is in the file now.

Fields are merged one by one; the labels (answerable, supports, groups) count as one field, since
half of one person's labels and half of another's would be nobody's judgement.
"""

from __future__ import annotations

from typing import Any

from label_store.document import written
from labeller.entry import LABEL_FIELDS

Record = dict[str, Any]


def merge(
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


def own_base(
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


def _differing(one: Record, other: Record) -> tuple[str, ...]:
    names = dict.fromkeys([*one, *other])
    return tuple(name for name in names if written(one.get(name)) != written(other.get(name)))

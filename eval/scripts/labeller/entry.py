"""What a session knows of one case, as a value."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

Record = dict[str, Any]
GOLD: Final = "gold"
"""The annotator whose labels are the set itself."""
LABEL_FIELDS: Final = ("answerable", "gold_supports", "required_support_groups")
"""The fields of a case that marks and decisions write."""


@dataclass(frozen=True)
class Entry:
    """All that can be undone of a case: its record, its judgement, the letter that marks go to.

    The dicts are values: an action replaces them and never changes them.
    """

    case: Record
    judgement: Record
    letter: str = "A"


def encoded(value: Any) -> str:
    """JSON with the order of fields kept, to tell whether two values are written the same."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def same(one: Entry | None, other: Entry | None) -> bool:
    """Would both be written the same, field order and number types included?"""
    if one is None or other is None:
        return one is other
    return one is other or encoded(asdict(one)) == encoded(asdict(other))


def same_on_disk(one: Entry | None, other: Entry | None) -> bool:
    """Would the files hold the same for both? They know nothing of the letter for new marks."""
    if one is None or other is None:
        return one is other
    return same(one, replace(other, letter=one.letter))


def entry_from(data: Record | None) -> Entry | None:
    """An entry as an event holds it."""
    return None if data is None else Entry(**data)

"""Masks credentials and personal data in the texts of a trace; a text without any stays."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import lru_cache
from typing import Any

import msgspec

from formats.shared.item import ImportedCase, Notes
from formats.traces.ids import is_name_of_id
from guardrails.blot import blot
from records.results import TestResult

_IDS = frozenset({"chunk_id", "doc_id", "rel_path"})
_IDS_OF_CASES = _IDS | {"conversation"}
_PLAIN_ID = re.compile(r"[\w ./:#()+,&'~=-]*")
"""What ids and paths are made of; other signs may be those of a password."""
_OWN = frozenset({"id", "test_case_id", "tags", "drafted_by", "role", "status", "kind"})
"""What this program has written itself."""
_ARGUMENTS = "arguments"
_FOREIGN = frozenset({_ARGUMENTS, "metadata"})
"""Fields whose inner names say nothing: a tool or an application chose them."""

_EXPORTED_ID = re.compile(r"(?:.*[._-])?ids?|\w*[a-z0-9]Ids?|models?")
"""Names of fields, in an exporter's metadata, with ids and names that mix letters and digits."""
_HASH_OF_FRAMEWORK = re.compile(r"(?:crew|task|agent)_(?:key|id|fingerprint)|crew_(?:agents|tasks)")
_MD5 = re.compile(r"[0-9a-f]{32}")
"""Hashes that CrewAI names its parts by; in its lists of parts they are called ``key``."""
_NO_TEXT = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?|[a-z]*")
"""A time, or a word in small letters: nothing in it is private."""
_MACHINE_ID = re.compile(
    r"h-[0-9a-f]{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,64}"
)
"""A hash of ours, a UUID, the number of a span or trace."""

_masked_text = lru_cache(maxsize=4096)(blot)
"""Passages recur from trace to trace."""


def masked(value: Any, name: str, counts: Counter[str], *, foreign: bool = False) -> Any:
    """The value with every text in it masked, keys that are no plain names included. ``foreign``:
    within what a tool or an application named, where no name makes a text ours."""
    if isinstance(value, str):
        if name in _OWN and not foreign:
            return value
        is_id = name in _IDS and not foreign
        text, kinds = _masked_text(value.encode("utf-8", "replace").decode(), is_id=is_id)
        counts.update(kinds)
        if is_id and (kinds or not _PLAIN_ID.fullmatch(value)):  # they stay apart
            return _id_of(value)
        return text
    if isinstance(value, dict):
        foreign = foreign or name in _FOREIGN
        return {
            key if key.isidentifier() else masked(key, "", counts): masked(
                item, key, counts, foreign=foreign
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [masked(item, name, counts, foreign=foreign) for item in value]
    return value


def mask_case(item: ImportedCase, notes: Notes) -> ImportedCase:
    """A case that was made of a trace, and its answers, with credentials and personal data masked.

    What holds none is not touched. Ids of users and sessions are hashed, or kept on demand, before.
    """
    counts: Counter[str] = Counter()
    item.case = _mask_kept(item.case, "", counts)
    for answer in item.answers:
        found: Counter[str] = Counter()
        written = _mask_kept(msgspec.to_builtins(answer.result), "", found)
        if found:
            answer.result = msgspec.convert(written, TestResult)
            counts += found
    for kind, times in counts.items():
        notes.changed[f"{kind}: masked"] += times
    return item


def _mask_kept(value: Any, name: str, counts: Counter[str], *, foreign: str = "") -> Any:
    """As ``masked``, but what has nothing private in it stays unchanged, also ids of any form.

    ``foreign``: the field whose inner names say nothing. What tools were given under the name of an
    id, such as ``email``, was not hashed before.
    """
    if isinstance(value, str):
        if _NO_TEXT.fullmatch(value) or (is_name_of_id(name) and foreign != _ARGUMENTS):
            return value
        is_own_id = not foreign and name in ("id", "test_case_id")
        is_id = (
            is_own_id
            or name in _IDS_OF_CASES
            or (foreign != "" and _EXPORTED_ID.fullmatch(name) is not None)
        )
        if is_id and _MACHINE_ID.fullmatch(value):
            return value
        if foreign == "metadata" and _HASH_OF_FRAMEWORK.fullmatch(name) and _MD5.fullmatch(value):
            return value
        plain = value if value.isascii() else value.encode("utf-8", "replace").decode()
        text, kinds = _masked_text(plain, is_id=is_id)
        if not kinds:
            return value
        counts.update(f"{kind} in {name[:60]}" if name else kind for kind in kinds.elements())
        return _id_of(value) if is_id else text
    if isinstance(value, dict):
        foreign = foreign or (name if name in _FOREIGN else "")
        names = [_mask_kept(key, "", counts) for key in value]
        if len({*names}) < len(names):  # masked alike, they stay apart
            told = Counter[str]()
            for number, key in enumerate(names):
                told[key] += 1
                names[number] = f"{key} {told[key]}" if told[key] > 1 else key
        return {
            masked_name: item
            if item is None  # as most fields of a passage are
            else _mask_kept(
                item,
                name if key == "key" and _HASH_OF_FRAMEWORK.fullmatch(name) else key,
                counts,
                foreign=foreign,
            )
            for masked_name, (key, item) in zip(names, value.items(), strict=True)
        }
    if isinstance(value, list):
        return [_mask_kept(item, name, counts, foreign=foreign) for item in value]
    return value


def _id_of(value: str) -> str:
    return f"id-{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:12]}"

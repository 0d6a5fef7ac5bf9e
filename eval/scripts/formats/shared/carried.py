"""What another tool has no field for travels in its free metadata, and comes back from there.

An export writes one object under ``KEY``; an import gives its fields back to the case and the
result. What the other tool's own fields say wins: they may have been edited there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Set
from typing import Any

import msgspec

from formats.shared.item import ImportedCase, Notes
from formats.shared.stored import StoredCase
from records.results import RetrievedChunk, TestResult

KEY = "rag_eval"

_OF_CHUNK = ("text", "text_length", "rank")
"""Of a passage, what its text and place in the other tool's list say already."""


def carried(
    stored: StoredCase, result: TestResult | None, has_retrieved: bool, held: Set[str]
) -> dict[str, Any]:
    """The metadata for the other tool: the case's own, and under ``KEY`` what it has no field for.

    ``has_retrieved``: whether the result says what was retrieved. ``held``: fields of the case that
    the other tool has a field for.
    """
    case = {
        name: value
        for name, value in msgspec.to_builtins(stored.case).items()
        if name not in held and value not in (None, [], {})
    }
    record: dict[str, Any] = {"case": case}
    if result is not None:
        fields = msgspec.to_builtins(result)
        own = {"test_case_id", "question", "answer", "retrieved", "schema"}
        record["result"] = {
            name: value
            for name, value in fields.items()
            if name not in own
            and value not in (None, [], {}, 0)
            and (name, value) != ("status", "ok")
        }
        record["answer_hash"] = _digest(result.answer)
        if has_retrieved:
            record["retrieved"] = [_place(chunk) for chunk in result.chunks()]
    return stored.metadata | {KEY: record}


def _digest(answer: str | None) -> str | None:
    """Twelve digits of its SHA-256: promptfoo takes a whole one for a secret and blackens it."""
    return None if answer is None else hashlib.sha256(answer.encode()).hexdigest()[:12]


def _place(chunk: RetrievedChunk) -> dict[str, Any]:
    """Where a passage stands; its text only when the run holds it cut."""
    fields = msgspec.to_builtins(chunk)
    left = () if chunk.truncated else _OF_CHUNK
    return {name: value for name, value in fields.items() if name not in left and value is not None}


def taken(metadata: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Another tool's metadata without our object, and that object if there is one."""
    fields = dict(metadata) if isinstance(metadata, dict) else {}
    record = fields.pop(KEY, None)
    return fields, record if isinstance(record, dict) else None


def exported_id(record: dict[str, Any] | None) -> str | None:
    """The id that the case had when it was exported."""
    case = record.get("case") if record else None
    identity = case.get("id") if isinstance(case, dict) else None
    return identity if isinstance(identity, str) else None


def give_back(item: ImportedCase, record: dict[str, Any] | None, notes: Notes) -> None:
    """Fill the case and its answers with what an export had put into the metadata."""
    if record is None:
        return
    case = record.get("case")
    if isinstance(case, dict):
        item.case |= {name: value for name, value in case.items() if name not in item.case}
        item.case["id"] = exported_id(record) or item.case["id"]
    for answer in item.answers:
        answer.result.test_case_id = str(item.case["id"])
        if "answer_hash" not in record:
            continue
        if record["answer_hash"] == _digest(answer.result.answer):
            answer.has_retrieved = "retrieved" in record
            _give_back_result(answer.result, record, item, notes)
        else:
            notes.changed["answers other than the exported one, which lend nothing from it"] += 1


def _give_back_result(
    result: TestResult, record: dict[str, Any], item: ImportedCase, notes: Notes
) -> None:
    extra, places = record.get("result"), record.get("retrieved")
    try:
        told = msgspec.convert({"test_case_id": "x"} | (extra or {}), TestResult)
        chunks = msgspec.convert(places or [], list[RetrievedChunk])
    except (msgspec.ValidationError, TypeError) as error:
        notes.problem(
            item.path, item.line, f"metadata.{KEY}", f"is none of ours any more ({error})"
        )
        return
    for name in extra or {}:
        if name in TestResult.__struct_fields__ and getattr(result, name) in (
            None,
            [],
            {},
            0,
            "ok",
        ):
            setattr(result, name, getattr(told, name))
    passages = result.chunks()
    if len(chunks) != len(passages):
        notes.changed["lists of passages that were edited since the export: places not known"] += 1
        return
    for passage, place in zip(passages, chunks, strict=True):
        for name in RetrievedChunk.__struct_fields__:
            if name not in _OF_CHUNK and (value := getattr(place, name)) not in (None, ""):
                setattr(passage, name, value)
        if place.truncated:
            passage.text_length = place.text_length

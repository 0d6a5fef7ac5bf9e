"""A plain JSON list of {question, reference_answer, answer, contexts}."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from formats.shared.item import (
    Ids,
    ImportedCase,
    ImportOptions,
    Notes,
    SystemAnswer,
    chunk_of,
    passages,
)
from formats.shared.rows import Fields, case_id, finite, iter_rows, parsed, unpacked, with_rest
from formats.shared.stored import Stored, StoredCase
from records.cases import CATEGORIES, TestCase
from records.results import RetrievedChunk, TestResult

NAME = "json"

ABOUT = "rows of {id, question, reference_answer, answer, contexts}: JSON list, JSONL, CSV or YAML"

ONE_FILE = True

OWN = set(TestCase.__struct_fields__) - {"id", "question", "reference_answer"}

TEXTS = {
    "category",
    "difficulty",
    "query_type",
    "expected_outcome",
    "recency_conflict_rule",
    "attack_category",
    "leak_category",
}
"""Fields of a case that are texts; in CSV every other one is a list, an object or a number."""

HELD = {"question", "reference_answer"}


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each row; its answer, if it has one, in a run named like the file.

    A passage is a text, or an object with a text, an id, a score and the like. Other fields of a
    case may stand in the row under their names; a category that is none of ours goes to metadata.
    """
    for source in sources:
        path = unpacked(source, options.scratch)
        ids = Ids()
        for row in iter_rows(path, notes, ("data", "rows", "samples", "examples")):
            notes.rows["rows"] += 1
            fields = Fields(row, notes)
            question = fields.question(options.question_field or "question", "query") or ""
            name = case_id(fields, notes)
            if name is None:
                name = ids.make(question)
                notes.changed["rows without an id, named by a hash of the question"] += 1
            case: dict[str, Any] = {"id": name, "question": question}
            case["reference_answer"] = fields.text("reference_answer", "reference", "ground_truth")
            answer = fields.text("answer", "response")
            contexts = _contexts(fields, options, notes)
            foreign = {"category"} if row.fields.get("category") not in CATEGORIES else set()
            own = [field for field in sorted(OWN - foreign) if field in row.fields]
            case |= {field: _value(fields, field, notes) for field in own}
            item = ImportedCase(with_rest(case, fields.rest()), path, row.line)
            if answer is not None or contexts is not None:
                result = TestResult(name, question, answer=answer, retrieved=[*(contexts or ())])
                item.answers.append(
                    SystemAnswer(path.stem, result, has_retrieved=contexts is not None)
                )
            yield item


def _value(fields: Fields, name: str, notes: Notes) -> Any:
    """A field of a case as our side has it: 0 and 1 are no booleans there, CSV cells are texts."""
    value = fields.take(name)
    if name == "answerable" and value in (0, 1) and not isinstance(value, bool):
        notes.changed["answerable: 0 or 1, written as false or true"] += 1
        return bool(value)
    if isinstance(value, str) and name not in TEXTS:
        parsed_value = parsed(value)
        if parsed_value is None:
            parsed_value = {"true": True, "false": False}.get(value.strip().lower(), finite(value))
        if isinstance(parsed_value, float) and parsed_value == int(parsed_value):
            return int(parsed_value)
        return value if parsed_value is None else parsed_value
    return value


def _contexts(fields: Fields, options: ImportOptions, notes: Notes) -> list[RetrievedChunk] | None:
    names = ("contexts", "retrieved_contexts")
    value = next((present for name in names if (present := fields.row.fields.get(name))), None)
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        fields.take(*names)
        chunks = [chunk_of(entry, rank, notes) for rank, entry in enumerate(value, 1)]
        for index, chunk in enumerate(chunks):
            if chunk.text is None and "id" not in value[index]:
                fields.wrong("has neither a text nor an id; write {id, text}", f"[{index}]")
        return chunks
    texts = fields.texts(*names, delimiter=options.delimiter)
    return None if texts is None else passages(texts)


def write(stored: Stored, target: Path, notes: Notes) -> None:
    """One JSON list with a row for each answer; cases without one have no answer."""
    with open(target, "wb") as file:
        before = b"[\n"
        for stored_case in stored.cases(HELD, {"answer", "retrieved"}, repeats=True):
            for row in _rows(stored_case, notes):
                file.write(before + orjson.dumps(row))
                before = b",\n"
                notes.written[target.name] += 1
        file.write(b"\n]\n" if before != b"[\n" else b"[]\n")


def _rows(stored_case: StoredCase, notes: Notes) -> Iterator[dict[str, Any]]:
    common = {"id": stored_case.case.id, "question": stored_case.case.question}
    if stored_case.case.reference_answer is not None:
        common["reference_answer"] = stored_case.case.reference_answer
    if not stored_case.results:
        yield common
    for index, (result, has_retrieved) in enumerate(
        zip(stored_case.results, stored_case.has_retrieved, strict=True)
    ):
        row: dict[str, Any] = dict(common)
        if index:
            row["id"] = f"{stored_case.case.id}-repeat-{result.repeat}"
            notes.changed["ids of further repeats, with -repeat-N behind"] += 1
        if result.status != "ok":
            notes.left_out["failed calls"] += 1
        elif result.answer is not None:
            row["answer"] = result.answer
        contexts = [chunk.text or "" for chunk in result.chunks()]
        if contexts or (has_retrieved and result.status == "ok"):
            row["contexts"] = contexts
            if any(chunk.truncated or not chunk.text for chunk in result.chunks()):
                notes.changed["passages that the run holds cut or without text"] += 1
            named = [chunk.chunk_id for chunk in result.chunks()]
            if named != [str(rank) for rank in range(1, len(named) + 1)]:
                notes.left_out["ids, places and scores of passages"] += 1
        yield row

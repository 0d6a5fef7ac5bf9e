"""Plain rows of {question, reference_answer, answer, contexts}: of several shapes in, JSON Lines
out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from formats.shared.dialogue import history_of
from formats.shared.field_map import PASSAGE_IDS
from formats.shared.item import (
    Ids,
    ImportedCase,
    ImportOptions,
    Notes,
    SystemAnswer,
    chunk_of,
    joined,
    passages,
)
from formats.shared.rows import (
    Fields,
    SourceRow,
    case_id,
    finite,
    iter_rows,
    mapped_rows,
    unpacked,
    with_rest,
)
from formats.shared.stored import Stored, StoredCase
from formats.shared.texts import parsed
from records.cases import CATEGORIES, TestCase
from records.errors import StorageError
from records.results import ErrorInfo, Reference, RetrievedChunk, TestResult, without_answer

NAME = "json"

ABOUT = (
    "rows of {id, question, reference_answer, answer, contexts}: JSON, JSONL, CSV, YAML, Parquet"
)

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

LISTS = ("data", "rows", "samples", "examples")


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each row; its answer, if it has one, in a run named like the file.

    A passage is a text, or an object with a text, an id, a score and the like. Other fields of a
    case may stand in the row under their names; a category that is none of ours goes to metadata.

    With --map every field is what its expression finds in the row, of whatever shape; what no
    expression reads is kept under metadata. Several rows with one id are answers to one case: of
    other systems (``run``), or repeats.
    """
    if options.fields:
        items = joined(_mapped(sources, options, notes), notes)
        yield from _in_turns(items) if "conversation" in options.fields.getters else items
        return
    for source in sources:
        path = unpacked(source, options.scratch)
        ids = Ids()
        for row in iter_rows(path, notes, LISTS):
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
            case |= _own(fields, own, notes)
            item = ImportedCase(with_rest(case, fields.rest()), path, row.line)
            if answer is not None or contexts is not None:
                result = TestResult(name, question, answer=answer, retrieved=[*(contexts or ())])
                item.answers.append(
                    SystemAnswer(path.stem, result, has_retrieved=contexts is not None)
                )
            yield item


def _own(fields: Fields, names: Sequence[str], notes: Notes) -> dict[str, Any]:
    """Fields of a case that stand in a row; a history of messages in the names of ours."""
    own = {name: _value(fields, name, notes) for name in names}
    if "history" in own and (history := history_of(own["history"])) is not None:
        own["history"] = history
    return own


def _in_turns(items: Iterable[ImportedCase]) -> Iterator[ImportedCase]:
    """The cases of each conversation together, by their turns; without a turn they are numbered as
    they come."""
    conversations: dict[Any, list[ImportedCase]] = {}
    for number, item in enumerate(items):
        name = item.case.get("conversation")
        conversations.setdefault(number if name is None else f"={name}", []).append(item)
    for turns in conversations.values():
        numbers = [item.case.get("turn") for item in turns]
        if all(isinstance(number, int) for number in numbers):
            turns.sort(key=lambda item: item.case["turn"])
        elif not any(numbers) and turns[0].case.get("conversation") is not None:
            for number, item in enumerate(turns, 1):
                item.case["turn"] = number
        yield from turns


def _mapped(
    sources: Sequence[Path], options: ImportOptions, notes: Notes
) -> Iterator[ImportedCase]:
    """The cases of rows that the user's expressions read, in the order of the source."""
    for source in sources:
        path = unpacked(source, options.scratch)
        ids = Ids()
        for row in mapped_rows(path, notes, options.fields, LISTS):
            notes.rows["rows"] += 1
            yield _mapped_item(row, ids, options, notes)


def _mapped_item(row: SourceRow, ids: Ids, options: ImportOptions, notes: Notes) -> ImportedCase:
    cells = row.path.suffix.lower() in (".csv", ".tsv")
    try:
        found = options.fields.fields(row.fields, cells)
    except ValueError as error:
        notes.problem(row.path, row.line, row.where, str(error))
        found = {}
    fields = Fields(row._replace(fields=found), notes)
    question = fields.question("question") or ""
    name = case_id(fields, notes)
    if name is None:
        name = ids.make(question)
        notes.changed["rows without an id, named by a hash of the question"] += 1
    case: dict[str, Any] = {"id": name, "question": question}
    case["reference_answer"] = fields.text("reference_answer")
    case |= _own(fields, [field for field in sorted(OWN) if field in found], notes)
    answer, system = fields.text("answer"), fields.text("run") or row.path.stem
    contexts = _contexts(fields, options, notes)
    rest = options.fields.rest(row.fields, cells)
    notes.carried.update(list(rest))
    item = ImportedCase(with_rest(case, rest), row.path, row.line)
    failure = fields.take("error")
    if answer is None and contexts is None and not failure:
        return item
    result = TestResult(name, question, answer=answer, retrieved=[*(contexts or ())])
    result.usage = _object(fields, "usage", "input_tokens")
    result.latency_ms = _object(fields, "latency_ms", "total")
    result.cost_usd = fields.number("cost_usd")
    result.abstained = _value(fields, "abstained", notes)
    result.references = _references(fields)
    if failure and answer is None:
        result.status, result.error = "error", ErrorInfo("imported", str(failure))
        result.retrieved = []
    item.answers.append(SystemAnswer(system, result, has_retrieved=contexts is not None))
    return item


def _object(fields: Fields, name: str, alone: str) -> dict[str, float]:
    """An object of numbers; a number by itself is that of ``alone``."""
    value = fields.take(name)
    if isinstance(value, str):
        value = finite(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = {alone: value}
    if value is None:
        return {}
    if isinstance(value, dict) and all(type(item) in (int, float) for item in value.values()):
        return {str(key): item for key, item in value.items()}
    fields.wrong(f"is neither a number nor an object of numbers, such as {{{alone}: 12}}")
    return {}


def _references(fields: Fields) -> list[Reference] | None:
    """Cited sources: objects with our names, numbers of passages, or ids; None without a field."""
    value = fields.take("references")
    if value is None:
        return None
    entries = value if isinstance(value, list) else [value]
    try:
        return [
            Reference(index=entry)
            if type(entry) is int
            else Reference(chunk_id=entry)
            if isinstance(entry, str)
            else msgspec.convert(entry, Reference)
            for entry in entries
        ]
    except msgspec.ValidationError as error:
        fields.wrong(f"is not a list of cited sources ({error})")
        return []


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
    names = ("contexts", "retrieved_contexts", "retrieved")
    value = next((present for name in names if (present := fields.row.fields.get(name))), None)
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        fields.take(*names)
        chunks = [chunk_of(entry, rank, notes) for rank, entry in enumerate(value, 1)]
        for index, chunk in enumerate(chunks):
            if chunk.text is None and "id" not in value[index]:
                fields.wrong("has neither a text nor an id; write {id, text}", f"[{index}]")
        return chunks
    texts = fields.texts(*names, delimiter=options.delimiter)
    ids = fields.names(PASSAGE_IDS)
    if texts is not None and ids is not None and len(ids) != len(texts):
        fields.wrong(f"has {len(ids)} ids for {len(texts)} passages")
        ids = None
    return None if texts is None else passages(texts, ids)


def write(stored: Stored, target: Path, notes: Notes) -> None:
    """JSON Lines: a row for each answer; cases without one have no answer."""
    if target.suffix.lower() != ".jsonl":
        raise StorageError(f"{target}: name a file that ends in .jsonl.")
    with open(target, "wb") as file:
        for stored_case in stored.cases(HELD, {"answer", "retrieved"}, repeats=True):
            for row in _rows(stored_case, notes):
                file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
                notes.written[target.name] += 1


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
            notes.changed["ids of further repeats, with -repeat-N at the end"] += 1
        if result.status != "ok":
            notes.left_out[without_answer(result)] += 1
        elif result.answer is not None:
            row["answer"] = result.answer
        contexts = [chunk.text or "" for chunk in result.chunks()]
        if contexts or (has_retrieved and result.status == "ok"):
            row["contexts"] = contexts
            if any(chunk.truncated or not chunk.text for chunk in result.chunks()):
                notes.changed["passages that are cut or without text in the run"] += 1
            names = [chunk.chunk_id for chunk in result.chunks()]
            if names != [str(rank) for rank in range(1, len(names) + 1)]:
                notes.left_out["ids, places and scores of passages"] += 1
        yield row

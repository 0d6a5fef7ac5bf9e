"""ragas data sets: columns of version 0.1 (question, …) and of later ones (user_input, …)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import orjson

from formats.shared.dialogue import cases_of, rest_of, turns_in
from formats.shared.item import Ids, ImportedCase, ImportOptions, Notes, SystemAnswer, passages
from formats.shared.rows import Fields, SourceRow, iter_rows, unpacked, with_rest
from formats.shared.stored import Stored, StoredCase, own_names
from formats.shared.texts import parsed
from records.errors import StorageError
from records.results import TestResult, without_answer

NAME = "ragas"

ABOUT = (
    "rows of an EvaluationDataset: JSONL, JSON, CSV or Parquet, column names of 0.1 and of later "
    "versions"
)

ONE_FILE = True

OTHERS = ("rubrics", "persona_name", "query_style", "query_length", "multi_responses")
"""Columns that no script of ours reads; they go through ``metadata``."""

EXAMPLE = ("expected_answer",)
"""Columns of ragas' own example sets that its samples do not have (hf_doc_qa_eval.csv, 0.4)."""

COLUMNS = (
    "user_input",
    "retrieved_contexts",
    "reference_contexts",
    "retrieved_context_ids",
    "reference_context_ids",
    "response",
    "multi_responses",
    "reference",
    "rubrics",
    "persona_name",
    "query_style",
    "query_length",
)

HELD = {"question", "reference_answer", "gold_contexts", "relevant_chunks", "metadata"}

NO_ID = "ids of cases: ragas has none; an import names them by a hash of the question"


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each sample, and its response in a run named like the file."""
    for source in sources:
        path = unpacked(source, options.scratch)
        ids = Ids()
        for row in iter_rows(path, notes, ("samples", "data", "rows")):
            notes.rows["samples"] += 1
            if isinstance(row.fields.get("user_input"), list):
                yield from _dialogue(row, ids, options, notes)
            else:
                yield _item(row, ids, options, notes)


def _dialogue(
    row: SourceRow, ids: Ids, options: ImportOptions, notes: Notes
) -> Iterator[ImportedCase]:
    """The questions of a sample of several turns; its reference is about the whole conversation."""
    items = row.fields["user_input"]
    turns = turns_in(row, "user_input", items, "message with a type and a content", notes)
    if not turns:
        notes.left_out["samples without a question"] += 1
        return
    rest = rest_of(row, ("user_input",), notes)
    name = ids.make(turns[0].question)
    notes.changed["samples, which have no id, named by a hash of the question"] += 1
    run = options.run_id or row.path.stem
    yield from cases_of(turns, name, row.path, row.line, run, rest)


def _item(row: SourceRow, ids: Ids, options: ImportOptions, notes: Notes) -> ImportedCase:
    fields = Fields(row, notes)
    question = fields.question(options.question_field or "user_input", "question") or ""
    case: dict[str, Any] = {"id": ids.make(question), "question": question}
    notes.changed["samples, which have no id, named by a hash of the question"] += 1
    case["reference_answer"] = fields.text("reference", "ground_truth", *EXAMPLE)
    if fields.name in EXAMPLE and case["reference_answer"] is not None:
        notes.changed[f"{fields.name}, read as the reference answer"] += 1
    if case["reference_answer"] is None and (truths := fields.texts("ground_truths")):
        case["reference_answer"] = truths[0]
        notes.left_out["further ground_truths"] += len(truths) - 1
    case["gold_contexts"] = fields.texts("reference_contexts", delimiter=options.delimiter)
    case["relevant_chunks"] = fields.names("reference_context_ids")
    answer = fields.text("response", "answer")
    contexts = fields.texts("retrieved_contexts", "contexts", delimiter=options.delimiter)
    names = fields.names("retrieved_context_ids")
    if names is not None and contexts is not None and len(names) != len(contexts):
        fields.wrong(f"has {len(names)} ids for {len(contexts)} retrieved_contexts")
        names = None
    for name in ("rubrics", "multi_responses"):
        if isinstance(text := row.fields.get(name), str) and parsed(text) is not None:
            fields.replace(name, parsed(text))
    item = ImportedCase(with_rest(case, fields.rest()), row.path, row.line)
    if answer is not None or contexts is not None or names is not None:
        chunks = passages(contexts if contexts is not None else [""] * len(names or ()), names)
        result = TestResult(case["id"], question, answer=answer, retrieved=[*chunks])
        has_retrieved = contexts is not None or names is not None
        item.answers.append(SystemAnswer(row.path.stem, result, has_retrieved=has_retrieved))
    return item


def write(stored: Stored, target: Path, notes: Notes) -> None:
    """A row for each answer; the ending of the name says JSONL, JSON or CSV."""
    writers: dict[str, Callable[[IO[str], Iterator[dict[str, Any]]], None]] = {
        ".jsonl": _write_jsonl,
        ".json": _write_json,
        ".csv": _write_csv,
    }
    if target.suffix.lower() not in writers:
        raise StorageError(f"{target}: name a file that ends in {', '.join(writers)}.")
    with open(target, "w", encoding="utf-8", newline="") as file:
        writers[target.suffix.lower()](file, _all_rows(stored, target.name, notes))


def _all_rows(stored: Stored, name: str, notes: Notes) -> Iterator[dict[str, Any]]:
    for stored_case in stored.cases(HELD, {"answer", "retrieved"}, repeats=True):
        notes.left_out[NO_ID] += 1
        for unknown in (name for name in stored_case.metadata if name not in OTHERS):
            notes.left_out[f"metadata.{unknown}"] += 1
        for row in _rows(stored_case, notes):
            notes.written[name] += 1
            yield {column: row[column] for column in COLUMNS if row.get(column) is not None}


def _rows(stored_case: StoredCase, notes: Notes) -> Iterator[dict[str, Any]]:
    case = stored_case.case
    columns: dict[str, Any] = {name: stored_case.metadata.get(name) for name in OTHERS}
    columns |= {"user_input": case.question, "reference": case.reference_answer}
    columns["reference_contexts"] = case.gold_contexts or None
    if not case.gold_contexts and any(support.snippets for support in case.gold_supports):
        columns["reference_contexts"] = [s for gold in case.gold_supports for s in gold.snippets]
        notes.changed["snippets of gold_supports, written as reference_contexts"] += 1
    columns["reference_context_ids"] = case.relevant_chunks or None
    if not stored_case.results:
        yield columns
    for result, has_retrieved in zip(stored_case.results, stored_case.has_retrieved, strict=True):
        yield columns | _answer(result, has_retrieved, notes)


def _answer(result: TestResult, has_retrieved: bool, notes: Notes) -> dict[str, Any]:
    if result.status != "ok":
        notes.left_out[without_answer(result)] += 1
        return {}
    chunks = result.chunks()
    row: dict[str, Any] = {"response": result.answer}
    if any(chunk.text for chunk in chunks) or (has_retrieved and not chunks):
        row["retrieved_contexts"] = StoredCase.texts_of(result, notes)
    if (names := own_names(chunks)) is not None:
        row["retrieved_context_ids"] = names
    if any(chunk.rel_path or chunk.doc_id or chunk.score_final is not None for chunk in chunks):
        notes.left_out["documents, places and scores of passages"] += 1
    return row


def _write_jsonl(file: IO[str], rows: Iterator[dict[str, Any]]) -> None:
    file.writelines(orjson.dumps(row).decode() + "\n" for row in rows)


def _write_json(file: IO[str], rows: Iterator[dict[str, Any]]) -> None:
    before = "[\n"
    for row in rows:
        file.write(before + orjson.dumps(row).decode())
        before = ",\n"
    file.write("\n]\n" if before == ",\n" else "[]\n")


def _write_csv(file: IO[str], rows: Iterator[dict[str, Any]]) -> None:
    """Lists as JSON, which is a list of texts in Python's spelling, too (as ragas writes them)."""
    table = csv.DictWriter(file, COLUMNS)  # ends lines with CR LF: else it quotes no lone CR
    table.writeheader()
    for row in rows:
        table.writerow(
            {
                name: value if isinstance(value, str) else orjson.dumps(value).decode()
                for name, value in row.items()
            }
        )

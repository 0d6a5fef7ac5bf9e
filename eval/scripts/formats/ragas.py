"""ragas data sets: columns of version 0.1 (question, …) and of later ones (user_input, …)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from formats.shared.dialogue import cases_of, rest_of, turns_in
from formats.shared.item import Ids, ImportedCase, ImportOptions, Notes, SystemAnswer, passages
from formats.shared.rows import Fields, SourceRow, iter_rows, unpacked, with_rest
from formats.shared.texts import parsed
from records.results import TestResult

NAME = "ragas"

ABOUT = (
    "rows of an EvaluationDataset: JSONL, JSON, CSV or Parquet, column names of 0.1 and of later "
    "versions"
)

ONE_FILE = True

EXAMPLE = ("expected_answer",)
"""Columns of ragas' own example sets that its samples do not have (hf_doc_qa_eval.csv, 0.4)."""


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

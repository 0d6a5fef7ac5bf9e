"""DeepEval's goldens, test cases and test runs, as its loaders and evaluate() have them.

Test runs as DeepEval 4.3.1 writes them (github.com/confident-ai/deepeval): ``.deepeval/``'s
.latest_test_run.json, which holds the run under ``testRunData``, and .latest_run_full.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from formats.shared.dialogue import cases_of, rest_of, turns_in
from formats.shared.item import (
    Ids,
    ImportedCase,
    ImportOptions,
    Notes,
    SystemAnswer,
    joined,
    passages,
)
from formats.shared.rows import Fields, SourceRow, iter_rows, unpacked, with_rest
from formats.traces.values import structured
from records.lines import parse_json
from records.results import RetrievedChunk, TestResult

NAME = "deepeval"

ABOUT = (
    "goldens, test cases (input, actual_output, …), .deepeval/.latest_test_run.json: JSON, JSONL, "
    "CSV, Parquet"
)

ONE_FILE = True

LISTS = ("goldens", "test_cases", "testCases", "data")

TURNS = ("turns", "scenario")

SOURCE = re.compile(r"deepeval_source=(.*?),deepeval_context=(.*)", re.DOTALL)
"""The form in which save_as writes a retrieved passage with its source."""

AS_JSON = (
    "additional_metadata",
    "metadata",
    "custom_column_key_values",
    "tools_called",
    "expected_tools",
)
"""Fields that are JSON texts in CSV."""


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each golden; its actual_output, if it has one, in a run named like the file.

    Lists of passages that were joined into one text (CSV; JSONL of later versions) are parted at
    ``|``, or at the wanted delimiter.
    """
    yield from joined(_items(sources, options, notes), notes)


def _items(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    for source in sources:
        path = unpacked(source, options.scratch)
        ids = Ids()
        for row in iter_rows(path, notes, LISTS, unwrap=_test_run):
            notes.rows["rows"] += 1
            if any(row.fields.get(name) for name in TURNS) and not row.fields.get("input"):
                yield from _dialogue(row, ids, options, notes)
            else:
                yield _item(row, ids, options, notes)


def _test_run(document: Any) -> Any:
    """A test run without what is around it, its conversations behind the other test cases."""
    if not isinstance(document, dict):
        return document
    run = dict(document)
    if isinstance(run.get("testRunData"), dict):
        run |= run.pop("testRunData")
    cases, talks = run.get("testCases"), run.pop("conversationalTestCases", None)
    if isinstance(talks, list):
        run["testCases"] = [*(cases if isinstance(cases, list) else ()), *talks]
    return run


def _dialogue(
    row: SourceRow, ids: Ids, options: ImportOptions, notes: Notes
) -> Iterator[ImportedCase]:
    """The questions of a conversational golden or test case; what it says of the whole conversation
    (scenario, expected outcome) goes to the first one."""
    raw = row.fields.get("turns")
    listed = structured(raw)
    items = listed if isinstance(listed, list) else []
    turns = turns_in(row, "turns", items, "turn with a role and a content", notes)
    if not turns:
        notes.left_out["scenarios without a turn of the user"] += 1
        return
    rest = rest_of(row, ("turns", "name"), notes)
    own = row.fields.get("name")
    name = own if isinstance(own, str) and own.strip() else ids.make(turns[0].question)
    run = options.run_id or row.path.stem
    yield from cases_of(turns, name, row.path, row.line, run, rest)


def _item(row: SourceRow, ids: Ids, options: ImportOptions, notes: Notes) -> ImportedCase:
    fields = Fields(row, notes)
    delimiter = options.delimiter or "|"
    question = fields.question(options.question_field or "input") or ""
    case: dict[str, Any] = {"id": ids.make(question), "question": question}
    notes.changed["rows without an id, named by a hash of the input"] += 1
    case["reference_answer"] = fields.text("expected_output", "expectedOutput")
    case["gold_contexts"] = fields.texts("context", delimiter=delimiter)
    if isinstance(row.fields.get("tags"), list):
        case["tags"] = fields.texts("tags")
    answer = fields.text("actual_output", "actualOutput")
    contexts = _retrieved(fields, delimiter)
    usage = {
        "input_tokens": fields.number("input_token_count", "inputTokenCount"),
        "output_tokens": fields.number("output_token_count", "outputTokenCount"),
    }
    cost = fields.number("token_cost", "tokenCost")
    seconds = fields.number("completion_time", "completionTime")
    for name in AS_JSON:
        _unpack(row, fields, name)
    item = ImportedCase(with_rest(case, _flat(fields.rest())), row.path, row.line)
    if answer is not None or contexts is not None:
        result = TestResult(case["id"], question, answer=answer, retrieved=[*(contexts or ())])
        result.usage = {name: int(number) for name, number in usage.items() if number is not None}
        result.cost_usd = cost
        if seconds is not None:
            result.latency_ms = {"total": seconds * 1000}
        item.answers.append(SystemAnswer(row.path.stem, result))
    return item


def _retrieved(fields: Fields, delimiter: str) -> list[RetrievedChunk] | None:
    """The retrieved passages; objects and marked texts tell a source as well."""
    name = "retrieval_context"
    value = fields.row.fields.get(name, fields.row.fields.get("retrievalContext"))
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        fields.take(name, "retrievalContext")
        pairs = [
            (entry.get("source"), entry.get("context"))
            if isinstance(entry, dict)
            else (None, entry)
            for entry in value
        ]
        if not all(isinstance(text, str) for _, text in pairs):
            fields.wrong("has passages without a text")
            return None
        return _named([(str(source or ""), str(text)) for source, text in pairs])
    texts = fields.texts(name, "retrievalContext", delimiter=delimiter)
    if texts is None:
        return None
    matches = [SOURCE.fullmatch(text) for text in texts]
    return _named(
        [
            (match[1], match[2]) if match else ("", text)
            for match, text in zip(matches, texts, strict=True)
        ]
    )


def _named(pairs: list[tuple[str, str]]) -> list[RetrievedChunk]:
    chunks = passages(text for _, text in pairs)
    for chunk, (source, _) in zip(chunks, pairs, strict=True):
        chunk.doc_id = source or None
    return chunks


def _unpack(row: SourceRow, fields: Fields, name: str) -> None:
    """Put the value of a JSON text in the place of the text, for what goes to metadata."""
    value = row.fields.get(name)
    if isinstance(value, str):
        try:
            fields.replace(name, parse_json(value))
        except orjson.JSONDecodeError:
            return


def _flat(rest: dict[str, Any]) -> dict[str, Any]:
    """The rest of a golden with its own metadata as the metadata of the case."""
    names = ("additional_metadata", "additionalMetadata", "metadata")
    own = next((rest.pop(name) for name in names if name in rest), None)
    name = "metadata" if isinstance(own, dict) else "additional_metadata"
    return rest | ({name: own} if own else {})

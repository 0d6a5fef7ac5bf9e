"""Langfuse: traces, observations and items of data sets, by their documented shape.

Such files come from Langfuse's server (download of a trace, export of a table, blob storage,
public API); this reader follows its documentation and was tried with files written after that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from formats.shared.item import Ids, ImportedCase, ImportOptions, Notes
from formats.shared.rows import (
    JSON_ENDINGS,
    Fields,
    SourceRow,
    case_id,
    iter_rows,
    source_files,
    with_rest,
)
from formats.traces.cases import TracedCase, as_conversations, case_of_trace, passages_kept
from formats.traces.feedback import Ratings, rating_in
from formats.traces.ids import hidden
from formats.traces.products import is_observation, langfuse_fields, langfuse_spans
from formats.traces.spans import Span
from formats.traces.values import structured, words_in
from records.file_access import read_whole
from records.lines import parse_json

NAME = "langfuse"

ABOUT = "traces, observations, scores, dataset items: JSON, JSONL, CSV (by the documented shape)"

_ENDINGS = JSON_ENDINGS | {".csv"}

_SCORES = "scores"

DOCUMENTED = "read by the documented shape of the server's export, which was not seen here: files"


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each trace with a question, and for each item of a data set.

    Traces, observations and scores may stand in several files; a run is named like the first.
    """
    notes.changed[DOCUMENTED] += len(sources)
    traces: dict[str, list[Span]] = {}
    scores: dict[str, list[Any]] = {}
    ratings = Ratings(notes)
    first: Path | None = None
    for path, named in source_files(sources, _ENDINGS, options.scratch, notes):
        first = first or named
        ids = Ids()
        for row in _rows(path, notes):
            fields = langfuse_fields(row.fields)
            if "expected_output" in fields or "datasetId" in fields or "dataset_id" in fields:
                notes.rows["dataset items"] += 1
                yield _item(row._replace(fields=fields), ids, options, notes)
            elif ratings.take_scale(row.fields):
                notes.rows["scales of scores"] += 1
            elif (told := rating_in(row.fields)) is not None:
                notes.rows[_SCORES] += 1
                if not ratings.add(told):
                    scores.setdefault(told.trace, []).append(row.fields)
            elif not (fields.get("trace_id") or fields.get("id")):
                about = "is missing: no trace of Langfuse; spans of OpenTelemetry: import otel"
                notes.problem(row.path, row.line, "id", about)
            else:
                _take_scores(fields, ratings)
                spans = langfuse_spans(fields, options.question_field)
                traces.setdefault(spans[0].trace, []).extend(spans)
                inner = structured(fields.get("observations"))
                listed = len(inner) if isinstance(inner, list) else 0
                if is_observation(fields):
                    notes.rows["observations"] += 1
                    continue
                notes.rows["traces"] += 1
                notes.rows["observations"] += len(spans) - 1
                lone = "observations that the trace only names by id"
                notes.left_out[lone] += listed - len(spans) + 1
    assert first is not None
    cases = []
    for trace, spans in traces.items():
        traced = _case(first, trace, spans, scores.get(trace), options, notes)
        cases += [traced] if traced is not None else []
    ratings.give(cases, options.key_of_ids)
    yield from as_conversations(cases, options, notes)
    unknown = scores.keys() - traces.keys()
    notes.left_out["scores of missing traces"] += sum(len(scores[t]) for t in unknown)


def _rows(path: Path, notes: Notes) -> Iterator[SourceRow]:
    """The rows of a file; one trace alone, or ``{trace, observations}``, is a row, too."""
    if path.suffix.lower() == ".json":
        try:
            document = parse_json(read_whole(path))
        except orjson.JSONDecodeError:
            document = None
        if isinstance(document, dict) and (document.keys() & {"id", "trace"}):
            yield SourceRow(path, None, "", document)
            return
    yield from iter_rows(path, notes, ("data", "traces", "observations", "items"))


def _take_scores(fields: dict[str, Any], ratings: Ratings) -> None:
    """Take people's ratings out of the scores of a trace, which may stand in it as objects."""
    listed = structured(fields.get(_SCORES))
    if isinstance(listed, list):
        named = {"traceId": fields.get("id")}
        rows = [named | row if isinstance(row, dict) else {} for row in listed]
        told = [rating_in(row) for row in rows]
        is_taken = [rating is not None and ratings.add(rating) for rating in told]
        fields[_SCORES] = [row for row, gone in zip(listed, is_taken, strict=True) if not gone]


def _case(
    path: Path,
    trace: str,
    spans: list[Span],
    scores: list[Any] | None,
    options: ImportOptions,
    notes: Notes,
) -> TracedCase | None:
    run = options.run_id or path.stem
    traced = case_of_trace(path, run, trace, spans, notes, options.key_of_ids)
    if traced is None:
        return None
    passages_kept(traced.item, "output", notes)
    if scores:
        notes.carried[_SCORES] += len(scores)
        traced.item.case.setdefault("metadata", {})[_SCORES] = hidden(scores, options.key_of_ids)
    return traced


def _item(row: SourceRow, ids: Ids, options: ImportOptions, notes: Notes) -> ImportedCase:
    """An item of a data set: a question with its expected output."""
    fields = Fields(row, notes)
    asked, expected = structured(fields.take("input")), structured(fields.take("expected_output"))
    question = words_in(asked, "in", options.question_field)
    if question is None:
        fields.name = "input"
        fields.wrong("contains no question; name its field with --map question=FIELD")
    name = case_id(fields, notes)
    case: dict[str, Any] = {"id": name or ids.make(question or ""), "question": question or ""}
    if expected not in (None, "", {}, []):
        words = words_in(expected, "out")
        case["reference_answer"] = words if words is not None else orjson.dumps(expected).decode()
    rest = fields.rest()
    if isinstance(asked, dict):
        other = {key: value for key, value in asked.items() if value != question}
        notes.carried.update(f"input.{key}" for key in other)
        rest |= {"input": other} if other else {}
    return ImportedCase(with_rest(case, rest), row.path, row.line)

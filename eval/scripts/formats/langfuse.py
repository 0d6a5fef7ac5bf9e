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
from formats.shared.rows import Fields, SourceRow, case_id, iter_rows, unpacked, with_rest
from formats.traces.cases import TracedCase, as_conversations, case_of_trace, passages_kept
from formats.traces.exporters import nanoseconds
from formats.traces.feedback import Ratings, rating_in
from formats.traces.ids import hidden
from formats.traces.spans import COST, KINDS, Span
from formats.traces.values import messages_in, rest_of, structured, words_in
from records.files import read_whole
from records.lines import parse_json

NAME = "langfuse"

ABOUT = "traces, observations, scores, dataset items: JSON, JSONL, CSV (by the documented shape)"

_SCORES = "scores"

_KINDS = {"GENERATION": "LLM", "SPAN": "STEP"}
"""Types of observations under OpenInference's names; the others are called the same."""

_NAMES = {
    "traceId": "trace_id",
    "parentObservationId": "parent_observation_id",
    "startTime": "start_time",
    "endTime": "end_time",
    "statusMessage": "status_message",
    "usageDetails": "usage_details",
    "costDetails": "cost_details",
    "calculatedTotalCost": "total_cost",
    "totalCost": "total_cost",
    "providedModelName": "provided_model_name",
    "expectedOutput": "expected_output",
}
"""The API writes camelCase, the export to blob storage writes snake_case."""

_OF_OBSERVATION = {
    *("id", "trace_id", "parent_observation_id", "type", "name", "start_time", "end_time"),
    *("level", "status_message", "input", "output", "usage", "usage_details", "cost_details"),
    *("total_cost", "model", "provided_model_name", "observations", "timestamp", "latency"),
}

DOCUMENTED = "read by the documented shape of the server's export, which was not seen here: files"


def read(sources: Sequence[Path], options: ImportOptions, notes: Notes) -> Iterator[ImportedCase]:
    """A case for each trace that tells a question, and for each item of a data set.

    Traces, observations and scores may stand in several files; a run is named like the first.
    """
    notes.changed[DOCUMENTED] += len(sources)
    traces: dict[str, list[Span]] = {}
    scores: dict[str, list[Any]] = {}
    ratings = Ratings(notes)
    first: Path | None = None
    for source in sources:
        path = unpacked(source, options.scratch)
        first = first or path
        ids = Ids()
        for row in _rows(path, notes):
            fields = {_NAMES.get(name, name): value for name, value in row.fields.items()}
            if "expected_output" in fields or "datasetId" in fields or "dataset_id" in fields:
                notes.rows["dataset items"] += 1
                yield _item(row._replace(fields=fields), ids, options, notes)
            elif ratings.take_scale(row.fields):
                notes.rows["scales of scores"] += 1
            elif (told := rating_in(row.fields)) is not None:
                notes.rows[_SCORES] += 1
                if not ratings.add(told):
                    scores.setdefault(told.trace, []).append(row.fields)
            elif "trace_id" in fields and "type" in fields:
                notes.rows["observations"] += 1
                trace = str(fields["trace_id"])
                traces.setdefault(trace, []).append(_span(fields, trace, options))
            else:
                notes.rows["traces"] += 1
                _take_scores(fields, ratings)
                _take_trace(fields, traces, options, notes)
    assert first is not None
    cases = []
    for trace, spans in traces.items():
        traced = _case(first, trace, _rooted(spans, trace), scores.get(trace), options, notes)
        cases += [traced] if traced is not None else []
    ratings.give(cases, options.key_of_ids)
    yield from as_conversations(cases, options.key_of_ids, notes)
    unknown = scores.keys() - traces.keys()
    notes.left_out["scores of traces that are not there"] += sum(len(scores[t]) for t in unknown)


def _rows(path: Path, notes: Notes) -> Iterator[SourceRow]:
    """The rows of a file; one trace alone, or ``{trace, observations}``, is a row, too."""
    if path.suffix.lower() == ".json":
        try:
            document = parse_json(read_whole(path))
        except orjson.JSONDecodeError:
            document = None
        if isinstance(document, dict) and isinstance(document.get("trace"), dict):
            others = {name: value for name, value in document.items() if name != "trace"}
            document = document["trace"] | others
        if isinstance(document, dict) and "id" in document:
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


def _take_trace(
    fields: dict[str, Any], traces: dict[str, list[Span]], options: ImportOptions, notes: Notes
) -> None:
    """A trace becomes the outermost span; its observations stand in it or come by themselves."""
    trace = str(fields.get("id") or "")
    start, seconds = nanoseconds(fields.get("timestamp")), fields.get("latency")
    lasted = int(seconds * 1e9) if isinstance(seconds, int | float) else 0
    attributes = _attributes({"type": "AGENT"} | fields, options)
    root = Span(
        trace, f"trace:{trace}", "", str(fields.get("name") or ""), start, 0, None, attributes
    )
    root.end = start + lasted if start and lasted else 0
    spans = traces.setdefault(trace, [])
    spans.append(root)
    observations = structured(fields.get("observations"))
    for item in observations if isinstance(observations, list) else ():
        if isinstance(item, dict):
            notes.rows["observations"] += 1
            inner = {_NAMES.get(str(name), str(name)): value for name, value in item.items()}
            spans.append(_span(inner, trace, options))
        else:
            notes.left_out["observations of which the trace tells the id alone"] += 1


def _span(fields: dict[str, Any], trace: str, options: ImportOptions) -> Span:
    failed = fields.get("level") == "ERROR"
    span = Span(
        trace,
        str(fields.get("id") or ""),
        str(fields.get("parent_observation_id") or ""),
        str(fields.get("name") or ""),
        nanoseconds(fields.get("start_time")),
        nanoseconds(fields.get("end_time")),
        str(fields.get("status_message") or "") if failed else None,
        _attributes(fields, options),
    )
    # An event has no end; a generation that has none is still being written.
    span.is_open = fields.get("type") == "GENERATION" and span.start > 0 and not span.end
    return span


def _attributes(fields: dict[str, Any], options: ImportOptions) -> dict[str, Any]:
    """The fields of a trace or an observation under OpenInference's names; the rest as is."""
    kind = str(fields.get("type") or "").upper()
    attributes: dict[str, Any] = {KINDS[1]: _KINDS.get(kind, kind)}
    for side in ("input", "output"):
        value = structured(fields.get(side))
        messages = messages_in(value)
        if kind == "RETRIEVER" and side == "output":
            attributes["gen_ai.retrieval.documents"] = _documents(value)
        elif messages:
            attributes[f"gen_ai.{side}.messages"] = value
        elif value is not None:
            words = words_in(value, side[:-3], options.question_field)
            is_named = side == "input" and options.question_field is not None
            attributes |= {f"{side}.value": words if is_named else value}
            attributes |= {side: rest_of(value, words) or None}
    usage = structured(fields.get("usage_details")) or structured(fields.get("usage"))
    if isinstance(usage, dict):
        attributes["llm.token_count.prompt"] = _whole(usage.get("input"))
        attributes["llm.token_count.completion"] = _whole(usage.get("output"))
    attributes[COST] = _cost(fields)
    attributes["llm.model_name"] = fields.get("model") or fields.get("provided_model_name")
    others = {name: value for name, value in fields.items() if name not in _OF_OBSERVATION}
    attributes |= {name: value for name, value in others.items() if value not in ([], {}, "")}
    return {name: value for name, value in attributes.items() if value is not None}


def _documents(value: Any) -> Any:
    """The documents that a retriever gave out; texts alone become objects."""
    if isinstance(value, dict):
        value = next((value[name] for name in ("documents", "output") if name in value), None)
    texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return [{"text": text} for text in value] if texts else value


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 0 else None


def _cost(fields: dict[str, Any]) -> float | None:
    details = structured(fields.get("cost_details"))
    total = details.get("total") if isinstance(details, dict) else None
    total = fields.get("total_cost") if total is None else total
    return float(total) if isinstance(total, int | float) and not isinstance(total, bool) else None


def _rooted(spans: list[Span], trace: str) -> list[Span]:
    """Observations without a parent hang below the trace itself, when there is one."""
    root = next((span for span in spans if span.id == f"trace:{trace}"), None)
    for span in spans:
        if root is not None and span is not root and not span.parent:
            span.parent = root.id
    if root is not None and not root.start:
        times = [span for span in spans if span.start]
        root.start = min((span.start for span in times), default=0)
        root.end = max((span.end for span in times), default=0)
    return spans


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

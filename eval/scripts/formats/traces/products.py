"""Spans out of the exports of LangSmith (runs) and Langfuse (traces and observations), with
OpenInference's names, by their documented shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from formats.traces.spans import COST, KINDS, SESSION_KEYS, Span
from formats.traces.values import (
    documents_in,
    messages_in,
    nanoseconds,
    rest_of,
    structured,
    words_in,
)

_RUN_KINDS = {"retriever": "RETRIEVER", "llm": "LLM", "chain": "CHAIN"}

_OF_RUN = {
    *("id", "trace_id", "parent_run_id", "name", "run_type", "start_time", "end_time", "error"),
    *("inputs", "outputs", "prompt_tokens", "completion_tokens", "total_tokens", "total_cost"),
    *("child_runs", "child_run_ids", "parent_run_ids", "dotted_order", "session_name", "latency"),
}
"""Fields of a run that have a place on our side, or say again what others say."""

_OBSERVATION_KINDS = {"GENERATION": "LLM", "SPAN": "STEP"}
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

_OF_TRACE = frozenset(
    ("observations", "projectId", "project_id", "sessionId", "session_id", "userId", "user_id")
) | {"htmlPath", "environment", "public", "bookmarked"}
"""One of these is in each trace of Langfuse, beside its id and timestamp."""


def product_spans(document: dict[str, Any]) -> list[Span]:
    """The spans of a run of LangSmith, of a trace or an observation of Langfuse; [] of another
    object."""
    if "run_type" in document:
        runs = list(runs_within(document))
        return [
            span_of_run(run, str(run.get("trace_id") or runs[0].get("id") or "")) for run in runs
        ]
    fields = langfuse_fields(document)
    if is_observation(fields):
        return langfuse_spans(fields)
    is_trace = fields.keys() >= {"id", "timestamp"} and "trace_id" not in fields  # as a score has
    is_trace = is_trace and not _OF_TRACE.isdisjoint(document)
    return langfuse_spans(fields) if is_trace else []


def runs_within(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A run of LangSmith and all that are nested in it, each with the id of its trace."""
    children = run.get("child_runs")
    yield run
    for child in children if isinstance(children, list) else ():
        if isinstance(child, dict):
            yield from runs_within({"trace_id": run.get("trace_id") or run.get("id")} | child)


def span_of_run(run: dict[str, Any], trace: str, question_field: str | None = None) -> Span:
    """A run of LangSmith with OpenInference's names. ``question_field``: of its inputs."""
    kind, outputs = str(run.get("run_type") or ""), structured(run.get("outputs"))
    attributes: dict[str, Any] = {KINDS[1]: _RUN_KINDS.get(kind, kind.upper())}
    for side, value in (("input", structured(run.get("inputs"))), ("output", outputs)):
        if kind == "retriever" and side == "output":
            continue
        if kind == "llm" and messages_in(value):
            attributes[f"gen_ai.{side}.messages"] = value
            continue
        words = words_in(value, side[:-3], question_field)
        is_named = side == "input" and question_field is not None
        attributes[f"{side}.value"] = words if is_named else value
        if not messages_in(value):
            attributes[f"{side}s"] = rest_of(value, words) or None
    if kind == "retriever":
        documents = (
            outputs.get("documents", outputs.get("output"))
            if isinstance(outputs, dict)
            else outputs
        )
        attributes["gen_ai.retrieval.documents"] = documents_in(documents) or documents
    attributes["llm.token_count.prompt"] = run.get("prompt_tokens")
    attributes["llm.token_count.completion"] = run.get("completion_tokens")
    attributes[COST] = _number(run.get("total_cost"))
    extra = structured(run.get("extra"))
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    if metadata.get("ls_model_name"):
        attributes["llm.model_name"] = metadata["ls_model_name"]
    attributes |= {name: value for name, value in run.items() if name not in _OF_RUN}
    session = next((metadata[name] for name in SESSION_KEYS if metadata.get(name)), None)
    attributes["thread_id"] = session
    span = Span(
        trace,
        str(run.get("id") or ""),
        str(run.get("parent_run_id") or ""),
        str(run.get("name") or ""),
        nanoseconds(run.get("start_time")),
        nanoseconds(run.get("end_time")),
        str(run["error"]) if run.get("error") else None,
        {name: value for name, value in attributes.items() if value is not None},
    )
    span.is_open = span.start > 0 and not span.end
    return span


def _number(value: Any) -> float | None:
    try:
        return float(value) if value is not None else None
    except (TypeError, ValueError):
        return None


def langfuse_fields(row: dict[str, Any]) -> dict[str, Any]:
    """A row of Langfuse under the names of its export to blob storage; of ``{trace,
    observations}`` the trace with them."""
    if isinstance(row.get("trace"), dict):
        row = row["trace"] | {name: value for name, value in row.items() if name != "trace"}
    return {_NAMES.get(str(name), str(name)): value for name, value in row.items()}


def is_observation(fields: dict[str, Any]) -> bool:
    """Whether a row is an observation of Langfuse."""
    return "trace_id" in fields and "type" in fields and "id" in fields


def langfuse_spans(fields: dict[str, Any], question_field: str | None = None) -> list[Span]:
    """An observation, or a trace as the outermost span with the observations that are in it."""
    if is_observation(fields):
        return [_observation(fields, str(fields["trace_id"] or ""), question_field)]
    trace = str(fields.get("id") or "")
    start, seconds = nanoseconds(fields.get("timestamp")), fields.get("latency")
    lasted = (_whole(seconds * 1e9) or 0) if isinstance(seconds, int | float) else 0
    attributes = _attributes({"type": "AGENT"} | fields, question_field)
    root = Span(
        trace, f"trace:{trace}", "", str(fields.get("name") or ""), start, 0, None, attributes
    )
    observations = structured(fields.get("observations"))
    inner = [
        _observation(langfuse_fields(item), trace, question_field)
        for item in (observations if isinstance(observations, list) else ())
        if isinstance(item, dict)
    ]
    root.start = start or min((span.start for span in inner if span.start), default=0)
    root.end = root.start + lasted if lasted else max((span.end for span in inner), default=0)
    return [root, *inner]


def _observation(fields: dict[str, Any], trace: str, question_field: str | None) -> Span:
    failed = fields.get("level") == "ERROR"
    span = Span(
        trace,
        str(fields.get("id") or ""),
        str(fields.get("parent_observation_id") or ""),
        str(fields.get("name") or ""),
        nanoseconds(fields.get("start_time")),
        nanoseconds(fields.get("end_time")),
        str(fields.get("status_message") or "") if failed else None,
        _attributes(fields, question_field),
    )
    # An event has no end; a generation that has none is still being written.
    span.is_open = fields.get("type") == "GENERATION" and span.start > 0 and not span.end
    return span


def _attributes(fields: dict[str, Any], question_field: str | None) -> dict[str, Any]:
    """The fields of a trace or an observation under OpenInference's names; the rest as is."""
    kind = str(fields.get("type") or "").upper()
    attributes: dict[str, Any] = {KINDS[1]: _OBSERVATION_KINDS.get(kind, kind)}
    for side in ("input", "output"):
        value = structured(fields.get(side))
        messages = messages_in(value)
        if kind == "RETRIEVER" and side == "output":
            attributes["gen_ai.retrieval.documents"] = _documents(value)
        elif messages:
            attributes[f"gen_ai.{side}.messages"] = value
        elif value is not None:
            words = words_in(value, side[:-3], question_field)
            is_named = side == "input" and question_field is not None
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
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e18 else None


def _cost(fields: dict[str, Any]) -> float | None:
    details = structured(fields.get("cost_details"))
    total = details.get("total") if isinstance(details, dict) else None
    total = fields.get("total_cost") if total is None else total
    return float(total) if isinstance(total, int | float) and not isinstance(total, bool) else None

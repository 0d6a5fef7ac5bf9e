"""Spans as exporters other than OTLP write them, in OTLP's shape: Phoenix, MLflow, the OpenAI
Agents SDK, LangSmith, Langfuse. Those of OpenTelemetry's console exporter and of Jaeger are not
read, and named."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from formats.traces.products import product_spans
from formats.traces.spans import Span
from formats.traces.values import nanoseconds

_MOST_NESTED = 4
"""How deep spans may lie in an object: a file of traces of spans is two."""


def items_of(value: Any, *names: str) -> list[Any]:
    """The list under the first of the names that a value has; [] without one."""
    for name in names:
        items = value.get(name) if isinstance(value, dict) else None
        if isinstance(items, list):
            return items
    return []


_LISTS = ("data", "spans", "traces", "runs", "observations")
"""Keys under which other exporters hold their spans or traces."""
_TABLE_ID = "context.trace_id"
"""A column of Phoenix' table of spans (get_spans_dataframe, as pandas writes it)."""


def unread_exporter(document: Any) -> str:
    """The exporter of an object, where spans of that exporter are not read; else ""."""
    if not isinstance(document, dict):
        return ""
    if str(document.get("kind")).startswith("SpanKind.") and "context" in document:
        return "OpenTelemetry's console exporter"
    traces = [document, *(row for row in items_of(document, "data")[:1] if isinstance(row, dict))]
    return "Jaeger" if any("traceID" in trace for trace in traces) else ""


def other_spans(document: Any, where: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Spans of an object that is no OTLP, with their places, in OTLP's shape."""
    if not isinstance(document, dict) or depth > _MOST_NESTED or unread_exporter(document):
        return
    if document.get("object") in ("trace", "trace.span"):
        yield where, _of_openai(document)
        return
    if _is_span(document):
        yield where, _as_otlp(document)
        return
    if _TABLE_ID in document:
        for index, row in _table_rows(document):
            yield f"{where}{index}", _as_otlp(_of_table(row))
        return
    if spans := product_spans(document):
        yield from ((where, span) for span in spans)
        return
    info, data = document.get("info"), document.get("data")
    if isinstance(info, dict) and isinstance(data, dict):
        yield from _of_mlflow(info, data, where)
        return
    for name in _LISTS:
        for number, item in enumerate(
            listed if isinstance(listed := document.get(name), list) else ()
        ):
            yield from other_spans(item, f"{where}.{name}[{number}]".lstrip("."), depth + 1)


def _of_mlflow(info: dict[str, Any], data: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """The spans of ``Trace.to_json``; what the trace says of session and user goes to its root."""
    metadata = info.get("trace_metadata") or info.get("request_metadata")
    named = metadata if isinstance(metadata, dict) else {}
    about = {n: named[n] for n in ("mlflow.trace.session", "mlflow.trace.user") if named.get(n)}
    state = str(info.get("state") or info.get("status") or "")
    for number, raw in enumerate(items_of(data, "spans")):
        span = _as_otlp(raw) if isinstance(raw, dict) else raw
        if isinstance(span, dict) and not (span.get("parentSpanId") or span.get("parent_span_id")):
            held = span.get("attributes")
            span = span | {"attributes": (held if isinstance(held, dict) else {}) | about}
            if state == "IN_PROGRESS":
                span |= {"endTimeUnixNano": 0, "end_time_unix_nano": 0}
        yield f"{where}.data.spans[{number}]".lstrip("."), span


_OPENAI_KINDS = {"agent": "AGENT", "function": "TOOL", "generation": "LLM", "response": "LLM"}
_OPENAI_KINDS |= {"guardrail": "GUARDRAIL", "mcp_tools": "STEP", "custom": "STEP"}


def _of_openai(raw: dict[str, Any]) -> Any:
    """A trace or a span as the OpenAI Agents SDK exports it; the trace is the outermost span."""
    if raw["object"] == "trace":
        about = {"openinference.span.kind": "AGENT", "group_id": raw.get("group_id")}
        about |= {"metadata": raw.get("metadata")}
        trace, name = str(raw.get("id") or ""), str(raw.get("workflow_name") or "")
        return Span(trace, trace, "", name, 0, 0, None, {k: v for k, v in about.items() if v})
    data = raw.get("span_data")
    data = data if isinstance(data, dict) else {}
    kind = str(data.get("type") or "")
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    attributes = {
        "openinference.span.kind": _OPENAI_KINDS.get(kind, "STEP"),
        "input.value": data.get("input"),
        "output.value": data.get("output"),
        "tool.name": data.get("name") if kind == "function" else None,
        "llm.model_name": data.get("model"),
        "llm.token_count.prompt": usage.get("input_tokens", usage.get("prompt_tokens")),
        "llm.token_count.completion": usage.get("output_tokens", usage.get("completion_tokens")),
        "gen_ai.output.messages_ref": data.get("response_id"),
    }
    error = raw.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return {
        "traceId": raw.get("trace_id"),
        "spanId": raw.get("id"),
        "parentSpanId": raw.get("parent_id") or raw.get("trace_id"),
        "name": data.get("name") or kind,
        "startTimeUnixNano": nanoseconds(raw.get("started_at")),
        "endTimeUnixNano": nanoseconds(raw.get("ended_at")),
        "status": {"code": 2 if error else 0, "message": str(message or "")},
        "attributes": {name: value for name, value in attributes.items() if value is not None},
    }


def _table_rows(table: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A row unchanged, or the rows of a table that was written by columns (pandas' to_json)."""
    first = table[_TABLE_ID]
    if isinstance(first, dict):
        columns = {name: cells for name, cells in table.items() if isinstance(cells, dict)}
        return [
            (f"[{row}]", {name: cells.get(row) for name, cells in columns.items()}) for row in first
        ]
    return [("", table)]


def _of_table(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a span with an object of attributes; empty cells are no attributes.

    A column of whole numbers in which cells are empty holds them as 3.0.
    """
    attributes = {
        name.removeprefix("attributes."): int(value)
        if isinstance(value, float) and value.is_integer()
        else value
        for name, value in row.items()
        if name.startswith("attributes.") and value is not None
    }
    kind = row.get("span_kind")
    named = {"openinference.span.kind": kind} if isinstance(kind, str) else {}
    context = {"trace_id": row[_TABLE_ID], "span_id": row.get("context.span_id")}
    times = {name: _as_time(row.get(name)) for name in ("start_time", "end_time")}
    return row | times | {"context": context, "attributes": named | attributes}


def _as_time(value: Any) -> Any:
    """A time as text. pandas writes a number since 1970, of seconds or parts of them."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e20:
        return value
    while value >= 1e11:  # the year 5138 in seconds
        value /= 1000
    return datetime.fromtimestamp(value, UTC).isoformat()


def _is_span(raw: dict[str, Any]) -> bool:
    """Whether an object is itself a span of one of these exporters."""
    context = raw.get("context")
    if isinstance(context, dict) and "trace_id" in context:
        return True
    if "traceId" in raw and "spanId" in raw:
        return "body" not in raw
    return "trace_id" in raw and "span_id" in raw and "start_time_unix_nano" in raw


def _as_otlp(raw: dict[str, Any]) -> dict[str, Any]:
    """A span with OTLP's field names; one that has them already is given back."""
    if not isinstance(raw.get("context"), dict):
        return raw
    context, code = raw["context"], str(raw.get("status_code") or "")
    return {
        "traceId": as_hex(context.get("trace_id") or context.get("request_id")),
        "spanId": as_hex(context.get("span_id")),
        "parentSpanId": as_hex(raw.get("parent_id")),
        "name": raw.get("name"),
        "startTimeUnixNano": nanoseconds(raw.get("start_time")),
        "endTimeUnixNano": nanoseconds(raw.get("end_time")),
        "status": {
            "code": 2 if code.upper().endswith("ERROR") else 0,
            "message": raw.get("status_message"),
        },
        "attributes": flat(raw.get("attributes")),
        "events": raw.get("events"),
    }


def as_hex(value: Any) -> Any:
    """An id as hexadecimal digits: without 0x, and out of base64 where it is that."""
    if not isinstance(value, str):
        return value
    if len(value) in (12, 24) and value.endswith("="):
        try:
            return base64.b64decode(value, validate=True).hex()
        except (binascii.Error, ValueError):
            return value
    return value.removeprefix("0x")


def flat(attributes: Any) -> dict[str, Any]:
    """Nested attributes by dotted names, lists of objects by number, as OpenInference names them.

    Values of ``gen_ai.…`` are left whole: their lists of messages belong together.
    """
    flattened: dict[str, Any] = {}
    waiting = [("", attributes)] if isinstance(attributes, dict) else []
    while waiting:
        prefix, value = waiting.pop()
        inner: list[tuple[str, Any]] = []
        if prefix.startswith("gen_ai."):
            flattened[prefix] = value
        elif isinstance(value, dict):
            inner = [
                (f"{prefix}.{name}" if prefix else str(name), item) for name, item in value.items()
            ]
        elif isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
            inner = [(f"{prefix}.{number}", entry) for number, entry in enumerate(value)]
        else:
            flattened[prefix] = value
        waiting.extend(reversed(inner))
    return flattened

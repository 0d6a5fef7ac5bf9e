"""Spans out of JSON as exporters write them: OTLP, the console, Phoenix, Jaeger, MLflow, OpenAI.

OTLP of the usual shape is decoded with its types; anything else, and all that is damaged, is walked
through value by value. Log records of GenAI instrumentations (OTLP, the console) become events of
the span that they belong to.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import orjson

from formats.shared.item import Notes
from formats.shared.parquet import SUFFIX as PARQUET
from formats.shared.parquet import parquet_rows
from formats.shared.rows import BOM, jsonl_rows
from formats.traces.spans import Span, is_read_event
from records.errors import StorageError
from records.files import read_whole
from records.lines import parse_json

MOST_DEPTH = 64
_MOST_NESTED = 4
"""How deep spans may lie in an object: a file of traces of spans is two."""

RESOURCES = "attributes of resources, such as service.name"
OTHER_LOGS = "log records of other events"
NO_SPAN_LOGS = "log records without a span"


class _TypedValue(msgspec.Struct, gc=False):
    stringValue: str | None = None
    intValue: str | int | None = None
    doubleValue: float | None = None
    boolValue: bool | None = None
    arrayValue: msgspec.Raw | None = None
    kvlistValue: msgspec.Raw | None = None
    bytesValue: str | None = None


class _Pair(msgspec.Struct, gc=False):
    key: str
    value: _TypedValue


class _TypedEvent(msgspec.Struct, gc=False):
    name: str = ""
    attributes: list[_Pair] = []


class _TypedStatus(msgspec.Struct, gc=False):
    code: int | str = 0
    message: str = ""


class _TypedSpan(msgspec.Struct, gc=False):
    traceId: str
    spanId: str
    startTimeUnixNano: str | int
    endTimeUnixNano: str | int
    parentSpanId: str | None = None
    name: str = ""
    attributes: list[_Pair] = []
    events: list[_TypedEvent] = []
    status: _TypedStatus | None = None
    traceState: str = ""
    flags: int = 0


class _TypedScope(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    spans: list[_TypedSpan]
    scope: msgspec.Raw = msgspec.Raw(b"")
    schemaUrl: str = ""


class _TypedResource(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    scopeSpans: list[_TypedScope]
    resource: msgspec.Raw = msgspec.Raw(b"")
    schemaUrl: str = ""


class _TypedRequest(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    resourceSpans: list[_TypedResource]


_REQUEST = msgspec.json.Decoder(_TypedRequest)
_SPAN = msgspec.json.Decoder(_TypedSpan)
_IS_REQUEST = re.compile(rb'\s*\{\s*"resourceSpans"')
_IS_SPAN = re.compile(rb'\s*\{\s*"traceId"')


def typed_spans(data: bytes) -> list[Span] | None:
    """The spans of OTLP's usual shape, a request or one span; None for anything else."""
    try:
        if _IS_REQUEST.match(data):
            request = _REQUEST.decode(data)
            return [
                _of_typed(span)
                for resource in request.resourceSpans
                for scope in resource.scopeSpans
                for span in scope.spans
            ]
        return [_of_typed(_SPAN.decode(data))] if _IS_SPAN.match(data) else None
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _of_typed(raw: _TypedSpan) -> Span:
    """Raises ValueError for what only the slow way can name."""
    if not raw.traceId.strip():
        raise ValueError("traceId")
    start, end = int(raw.startTimeUnixNano or 0), int(raw.endTimeUnixNano or 0)
    status = raw.status
    failed = status is not None and status.code in _FAILED
    span = Span(
        raw.traceId,
        raw.spanId,
        raw.parentSpanId or "",
        raw.name,
        start,
        end,
        status.message if failed and status else None,
        _typed_attributes(raw.attributes),
        [(event.name, _typed_attributes(event.attributes)) for event in raw.events],
    )
    if raw.flags or raw.traceState or not end:
        _mark(span, raw.flags, raw.traceState)
    return span


def _typed_attributes(pairs: list[_Pair]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for pair in pairs:
        value: Any = pair.value.stringValue
        attributes[pair.key] = _typed_value(pair.value) if value is None else value
    return attributes


def _typed_value(value: _TypedValue) -> Any:
    if value.intValue is not None:
        return _whole(value.intValue)
    if value.arrayValue is not None:
        return _plain({"arrayValue": parse_json(bytes(value.arrayValue))})
    if value.kvlistValue is not None:
        return _plain({"kvlistValue": parse_json(bytes(value.kvlistValue))})
    if value.boolValue is not None:
        return value.boolValue
    return value.bytesValue if value.doubleValue is None else value.doubleValue


_FAILED = (2, "2", "STATUS_CODE_ERROR")
_IS_REMOTE = 0x300
"""The bits of a span's flags that say: its parent is known to be in another service."""
_THRESHOLD = re.compile(r"(?:^|,)\s*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?:[;,]|$)")


def _mark(span: Span, flags: Any, state: Any) -> None:
    """What a span says of its parent, of sampling, and of being unfinished."""
    span.is_remote = isinstance(flags, int) and flags & _IS_REMOTE == _IS_REMOTE
    span.is_open = span.start > 0 and not span.end
    if isinstance(state, str) and (match := _THRESHOLD.search(state)):
        # Of 2^56 traces those whose number is below the threshold are dropped.
        span.weight = 16**14 / (16**14 - int(match[1].ljust(14, "0"), 16))


def spans_of(path: Path, notes: Notes) -> Iterator[Span]:
    """Every span of a file. Raises StorageError when it holds none at all."""
    any_span = False
    keys: set[str] = set()
    for line, document in _documents(path, notes):
        for item in document if isinstance(document, list) else [document]:
            notes.left_out[RESOURCES] += _of_resources(item)
            if not any_span and isinstance(item, dict):
                keys.update(str(key)[:40] for key in [*item][:8])
            for where, read in spans_in(item, notes.left_out):
                any_span = True
                if isinstance(read, Span):
                    yield read
                else:
                    notes.problem(path, line, where + read, "is missing or of another type")
    if not any_span:
        notes.check()
        shown = f" It has objects with the keys {', '.join(sorted(keys)[:8])}." if keys else ""
        raise StorageError(
            f"{path}: holds no spans;{shown and shown + ' Please'} write OTLP JSON with "
            "resourceSpans, Phoenix' table, MLflow's traces, or see --list."
        )


def spans_in(document: Any, left_out: Any = None) -> Iterator[tuple[str, Span | str]]:
    """The spans of one JSON value with their places in it; of a faulty span the field's name.

    ``left_out``: counts by kind what is no span and belongs to none.
    """
    for where, raw in _raw_spans(document):
        yield where, raw if isinstance(raw, Span) else _span(raw)
    for where, record in _raw_logs(document):
        log = _log(record)
        if log is not None:
            yield where, log
        elif left_out is not None:
            left_out[OTHER_LOGS] += 1


def _of_resources(item: Any) -> int:
    """How many attributes the resources of a document have; spans stand below them."""
    holders = [item, *_items(item, "resourceSpans", "resource_spans")]
    resources = [holder.get("resource") for holder in holders if isinstance(holder, dict)]
    found = (_attributes_of(one.get("attributes")) for one in resources if isinstance(one, dict))
    return sum(len(attributes) for attributes in found)


def _documents(path: Path, notes: Notes) -> Iterator[tuple[int | None, Any]]:
    """The JSON values of a file with their lines: one, one a line, or one behind the other.

    Of a Parquet table the rows.
    """
    if path.suffix.lower() == PARQUET:
        yield None, list(parquet_rows(path))
        return
    data = read_whole(path).removeprefix(BOM)
    try:
        yield None, parse_json(data)
        return
    except orjson.JSONDecodeError:
        pass
    first = data.lstrip().partition(b"\n")[0].strip()
    if first not in (b"{", b"["):
        yield from ((row.line, row.fields) for row in jsonl_rows(path, notes))
        return
    text, position, decoder = data.decode("utf-8", "replace"), 0, json.JSONDecoder()
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", position)) + 1
            notes.problem(
                path, line, "", f"not JSON ({getattr(error, 'msg', 'nested too deeply')})"
            )
            return
        yield text.count("\n", 0, position) + 1, value
        position = end


def _raw_spans(document: Any) -> Iterator[tuple[str, Any]]:
    for i, resource in enumerate(_items(document, "resourceSpans", "resource_spans")):
        scopes = list(_items(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"))
        for j, scope in enumerate(scopes):
            for k, span in enumerate(_items(scope, "spans")):
                yield f"resourceSpans[{i}].scopeSpans[{j}].spans[{k}]", span
    yield from _other_spans(document)


def _raw_logs(document: Any) -> Iterator[tuple[str, Any]]:
    for i, resource in enumerate(_items(document, "resourceLogs", "resource_logs")):
        for j, scope in enumerate(_items(resource, "scopeLogs", "scope_logs")):
            for k, record in enumerate(_items(scope, "logRecords", "log_records")):
                yield f"resourceLogs[{i}].scopeLogs[{j}].logRecords[{k}]", record
    if isinstance(document, dict) and "body" in document and "span_id" in document:
        yield "", document  # of the SDK's console exporter


def _log(raw: Any) -> Span | str | None:
    """A log record as an event of its span; None for one that tells nothing of an answer."""
    if not isinstance(raw, dict):
        return ""
    attributes = _attributes_of(raw.get("attributes"))
    name = _first(raw, "eventName", "event_name") or attributes.get("event.name")
    if not isinstance(name, str) or not is_read_event(name):
        return None
    trace, span = _hex(_first(raw, "traceId", "trace_id")), _hex(_first(raw, "spanId", "span_id"))
    if not isinstance(trace, str) or not isinstance(span, str) or not trace.strip("0 "):
        return None
    body = raw.get("body")
    plain = _plain(body) if isinstance(body, dict) and "kvlistValue" in body else body
    fields = attributes | (plain if isinstance(plain, dict) else {})
    return Span(trace, span, "", name, 0, 0, None, {}, [(name, fields)], is_log=True)


def _items(value: Any, *names: str) -> list[Any]:
    for name in names:
        items = value.get(name) if isinstance(value, dict) else None
        if isinstance(items, list):
            return items
    return []


def _span(raw: Any) -> Span | str:
    """The span, or the name of the field that is wrong."""
    if not isinstance(raw, dict):
        return ""
    trace, identity = _first(raw, "traceId", "trace_id"), _first(raw, "spanId", "span_id")
    if not isinstance(trace, str) or not trace.strip():
        return ".traceId"
    if not isinstance(identity, str):
        return ".spanId"
    start = _whole(_first(raw, "startTimeUnixNano", "start_time_unix_nano"))
    end = _whole(_first(raw, "endTimeUnixNano", "end_time_unix_nano"))
    if start is None or end is None:
        return ".startTimeUnixNano"
    status = raw.get("status")
    status = status if isinstance(status, dict) else {}
    span = Span(
        trace,
        identity,
        str(_first(raw, "parentSpanId", "parent_span_id") or ""),
        str(raw.get("name") or ""),
        start,
        end,
        str(status.get("message") or "") if status.get("code") in _FAILED else None,
        _attributes_of(raw.get("attributes")),
        [
            (str(event.get("name") or ""), _attributes_of(event.get("attributes")))
            for event in _items(raw, "events")
            if isinstance(event, dict)
        ],
    )
    _mark(span, raw.get("flags"), _first(raw, "traceState", "trace_state"))
    return span


def _first(raw: dict[str, Any], name: str, other: str) -> Any:
    value = raw.get(name)
    return raw.get(other) if value is None else value


def _whole(value: Any) -> int | None:
    """Nanoseconds, which OTLP writes as a text; 0 when absent, None for what is no number."""
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return None


def _attributes_of(raw: Any) -> dict[str, Any]:
    """Attributes by name: OTLP's list of key and typed value, or a plain object."""
    if isinstance(raw, dict):
        return dict(raw)
    attributes: dict[str, Any] = {}
    for pair in raw if isinstance(raw, list) else ():
        if isinstance(pair, dict) and isinstance(name := pair.get("key"), str):
            value = pair.get("value")
            text = value.get("stringValue") if isinstance(value, dict) else None
            attributes[name] = _plain(value) if text is None else text
    return attributes


def _plain(value: Any, depth: int = 0) -> Any:
    """An OTLP value such as ``{"stringValue": "a"}`` without its type; None past a sane depth."""
    if not isinstance(value, dict) or depth > MOST_DEPTH:
        return None
    for name, inner in value.items():
        if name == "intValue":
            return _whole(inner)
        if name == "arrayValue":
            return [_plain(item, depth + 1) for item in _items(inner, "values")]
        if name == "kvlistValue":
            return {
                str(pair.get("key")): _plain(pair.get("value"), depth + 1)
                for pair in _items(inner, "values")
                if isinstance(pair, dict)
            }
        if name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
    return None


_LISTS = ("data", "spans", "traces")
"""Keys under which other exporters hold their spans or traces."""
_TABLE_ID = "context.trace_id"
"""A column of Phoenix' table of spans (get_spans_dataframe, as pandas writes it)."""


def _other_spans(document: Any, where: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Spans of an object that is no OTLP, with their places, in OTLP's shape."""
    if not isinstance(document, dict) or depth > _MOST_NESTED:
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
    info, data = document.get("info"), document.get("data")
    if isinstance(info, dict) and isinstance(data, dict):
        yield from _of_mlflow(info, data, where)
        return
    for name in _LISTS:
        for number, item in enumerate(
            listed if isinstance(listed := document.get(name), list) else ()
        ):
            yield from _other_spans(item, f"{where}.{name}[{number}]".lstrip("."), depth + 1)


def _of_mlflow(info: dict[str, Any], data: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """The spans of ``Trace.to_json``; what the trace says of session and user goes to its root."""
    metadata = info.get("trace_metadata") or info.get("request_metadata")
    named = metadata if isinstance(metadata, dict) else {}
    about = {n: named[n] for n in ("mlflow.trace.session", "mlflow.trace.user") if named.get(n)}
    state = str(info.get("state") or info.get("status") or "")
    for number, raw in enumerate(_items(data, "spans")):
        span = _as_otlp(raw) if isinstance(raw, dict) else raw
        if isinstance(span, dict) and not (span.get("parentSpanId") or span.get("parent_span_id")):
            span = span | {"attributes": _attributes_of(span.get("attributes")) | about}
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
    """A row as it is, or the rows of a table that was written by its columns (pandas' to_json)."""
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
    pairs = (("traceID", "spanID"), ("traceId", "spanId"))
    if any(trace in raw and span in raw for trace, span in pairs):
        return "body" not in raw
    return "trace_id" in raw and "span_id" in raw and "start_time_unix_nano" in raw


def _as_otlp(raw: dict[str, Any]) -> dict[str, Any]:
    """A span with OTLP's field names; one that has them already is given back."""
    if "traceID" in raw:
        return _jaeger(raw)
    if not isinstance(raw.get("context"), dict):
        return raw
    context, status = raw["context"], raw.get("status")
    status = status if isinstance(status, dict) else {}
    code = str(status.get("status_code") or raw.get("status_code") or "")
    state = context.get("trace_state")
    return {
        "traceId": _hex(context.get("trace_id") or context.get("request_id")),
        "spanId": _hex(context.get("span_id")),
        "parentSpanId": _hex(raw.get("parent_id")),
        "name": raw.get("name"),
        "startTimeUnixNano": nanoseconds(raw.get("start_time")),
        "endTimeUnixNano": nanoseconds(raw.get("end_time")),
        "status": {
            "code": 2 if code.upper().endswith("ERROR") else 0,
            "message": status.get("description") or raw.get("status_message"),
        },
        "attributes": flat(raw.get("attributes")),
        "events": raw.get("events"),
        "traceState": state.strip("[]'\" ").replace("': '", "=") if isinstance(state, str) else "",
    }


def _jaeger(raw: dict[str, Any]) -> dict[str, Any]:
    tags = _tags(raw.get("tags"))
    start, lasted = raw.get("startTime"), raw.get("duration")
    times = (0, 0)
    if isinstance(start, int) and isinstance(lasted, int):
        times = (start * 1000, (start + lasted) * 1000)
    parents = [
        reference.get("spanID")
        for reference in raw.get("references") or ()
        if isinstance(reference, dict) and reference.get("refType") == "CHILD_OF"
    ]
    failed = tags.get("otel.status_code") == "ERROR" or tags.get("error") in (True, "true")
    logs = [_tags(log.get("fields")) for log in raw.get("logs") or () if isinstance(log, dict)]
    return {
        "traceId": raw.get("traceID"),
        "spanId": raw.get("spanID"),
        "parentSpanId": (parents or [""])[0],
        "name": raw.get("operationName"),
        "startTimeUnixNano": times[0],
        "endTimeUnixNano": times[1],
        "status": {"code": 2 if failed else 0, "message": tags.get("otel.status_description")},
        "attributes": tags,
        "events": [{"name": log.pop("event", ""), "attributes": log} for log in logs],
    }


def _tags(raw: Any) -> dict[str, Any]:
    pairs = raw if isinstance(raw, list) else []
    return {
        str(tag["key"]): tag.get("value") for tag in pairs if isinstance(tag, dict) and "key" in tag
    }


def _hex(value: Any) -> Any:
    """An id as hexadecimal digits: without 0x, and out of base64 where it is that."""
    if not isinstance(value, str):
        return value
    if len(value) in (12, 24) and value.endswith("="):
        try:
            return base64.b64decode(value, validate=True).hex()
        except (binascii.Error, ValueError):
            return value
    return value.removeprefix("0x")


def nanoseconds(value: Any) -> int:
    """A time such as 2024-01-01T00:00:02.5Z in nanoseconds since 1970; 0 for anything else.

    A whole number is taken as nanoseconds already.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 1e17:
        return value
    if not isinstance(value, str):
        return 0
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return 0
    passed = time.replace(tzinfo=time.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1000


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

"""Spans out of JSON: OTLP's, and what other exporters write, brought into its shape.

Log records of GenAI instrumentations become events of the span that they belong to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from formats.traces.exporters import as_hex, items_of, other_spans, unread_exporter
from formats.traces.spans import Span, is_read_event
from records.errors import StorageError
from records.file_access import read_whole
from records.lines import BOM, parse_json

if TYPE_CHECKING:
    from formats.shared.item import Notes

MOST_DEPTH = 64
RESOURCES = "attributes of resources, such as service.name"
OTHER_LOGS = "log records of other events"
WITHOUT_SPANS = "values without spans"

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


class NoSpans(StorageError):
    """A file without any span."""


def spans_of(
    path: Path, notes: Notes, take: Callable[[Any], bool] = lambda _: False
) -> Iterator[Span]:
    """Every span of a file. ``take``: whether a JSON value tells something else, which it takes.

    Raises NoSpans for a file without either."""
    any_span, without = False, 0
    keys: set[str] = set()
    exporter = ""
    for line, document in _documents(path, notes):
        for item in document if isinstance(document, list) else [document]:
            notes.left_out[RESOURCES] += _of_resources(item)
            if not any_span and isinstance(item, dict):
                keys.update(str(key)[:40] for key in [*item][:8])
                exporter = exporter or unread_exporter(item)
            is_read = take(item)
            for where, read in spans_in(item, notes.left_out):
                is_read = True
                if isinstance(read, Span):
                    yield read
                else:
                    notes.problem(path, line, where + read, "is missing or of another type")
            any_span = any_span or is_read
            without += not is_read
    if not any_span:
        notes.check()
        if exporter:
            raise NoSpans(
                f"{path}: has spans of {exporter}, which are not read; write OTLP JSON, as the "
                "file exporter of an OpenTelemetry collector does."
            )
        shown = f" It has objects with the keys {', '.join(sorted(keys)[:8])}." if keys else ""
        raise NoSpans(
            f"{path}: has no spans;{shown and shown + ' Please'} write OTLP JSON with "
            "resourceSpans, Phoenix' table, MLflow's traces, or see --list."
        )
    notes.left_out[WITHOUT_SPANS] += without


def spans_in(document: Any, left_out: Any = None) -> Iterator[tuple[str, Span | str]]:
    """The spans of one JSON value with their places in it; of a faulty span the field's name.

    ``left_out``: counts by kind what is no span and belongs to none.
    """
    for where, raw in _raw_spans(document):
        if not isinstance(raw, Span):
            yield where, _span(raw)
        else:
            yield where, raw if raw.trace.strip() else ".id"
    for where, record in _raw_logs(document):
        log = _log(record)
        if log is not None:
            yield where, log
        elif left_out is not None:
            left_out[OTHER_LOGS] += 1


def _of_resources(item: Any) -> int:
    """How many attributes the resources of a document have; spans stand below them."""
    holders = [item, *items_of(item, "resourceSpans", "resource_spans")]
    resources = [holder.get("resource") for holder in holders if isinstance(holder, dict)]
    found = (_attributes_of(one.get("attributes")) for one in resources if isinstance(one, dict))
    return sum(len(attributes) for attributes in found)


def _documents(path: Path, notes: Notes) -> Iterator[tuple[int | None, Any]]:
    """The JSON values of a file with their lines: one, one a line, or one behind the other.

    Of a Parquet table the rows.
    """
    from formats.shared.parquet import SUFFIX as PARQUET
    from formats.shared.parquet import parquet_rows
    from formats.shared.rows import jsonl_rows

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
    for i, resource in enumerate(items_of(document, "resourceSpans", "resource_spans")):
        scopes = list(
            items_of(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
        )
        for j, scope in enumerate(scopes):
            for k, span in enumerate(items_of(scope, "spans")):
                yield f"resourceSpans[{i}].scopeSpans[{j}].spans[{k}]", span
    yield from other_spans(document)


def _raw_logs(document: Any) -> Iterator[tuple[str, Any]]:
    for i, resource in enumerate(items_of(document, "resourceLogs", "resource_logs")):
        for j, scope in enumerate(items_of(resource, "scopeLogs", "scope_logs")):
            for k, record in enumerate(items_of(scope, "logRecords", "log_records")):
                yield f"resourceLogs[{i}].scopeLogs[{j}].logRecords[{k}]", record


def _log(raw: Any) -> Span | str | None:
    """A log record as an event of its span; None for one that tells nothing of an answer."""
    if not isinstance(raw, dict):
        return ""
    attributes = _attributes_of(raw.get("attributes"))
    name = _first(raw, "eventName", "event_name") or attributes.get("event.name")
    if not isinstance(name, str) or not is_read_event(name):
        return None
    trace, span = (
        as_hex(_first(raw, "traceId", "trace_id")),
        as_hex(_first(raw, "spanId", "span_id")),
    )
    if not isinstance(trace, str) or not isinstance(span, str) or not trace.strip("0 "):
        return None
    body = raw.get("body")
    plain = _plain(body) if isinstance(body, dict) and "kvlistValue" in body else body
    fields = attributes | (plain if isinstance(plain, dict) else {})
    times = (raw.get("timeUnixNano"), raw.get("observedTimeUnixNano"))
    at = next((time for raw_time in times if (time := _whole(raw_time))), 0)
    return Span(trace, span, "", name, at, at, None, {}, [(name, fields)], is_log=True)


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
            for event in items_of(raw, "events")
            if isinstance(event, dict)
        ],
    )
    _mark(span, raw.get("flags"), _first(raw, "traceState", "trace_state"))
    return span


def _first(raw: dict[str, Any], name: str, other: str) -> Any:
    value = raw.get(name)
    return raw.get(other) if value is None else value


def _whole(value: Any) -> int | None:
    """Nanoseconds, which OTLP writes as a text; 0 when absent, None for what is not a number."""
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return None


def _int64(value: Any) -> int | str | None:
    """A whole number of an attribute; one that no 64 bits hold as its text."""
    number = _whole(value)
    return str(value) if number is not None and not -(2**63) <= number < 2**63 else number


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
            return _int64(inner)
        if name == "arrayValue":
            return [_plain(item, depth + 1) for item in items_of(inner, "values")]
        if name == "kvlistValue":
            return {
                str(pair.get("key")): _plain(pair.get("value"), depth + 1)
                for pair in items_of(inner, "values")
                if isinstance(pair, dict)
            }
        if name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
    return None

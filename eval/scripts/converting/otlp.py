"""Spans in JSON with plain attributes, from one value, one a line or one behind the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from converting.notes import Notes
from converting.sources import BOM, jsonl_rows
from converting.span_shapes import other_spans
from storage import StorageError

MOST_DEPTH = 64


@dataclass
class Span:
    """One span. Times in nanoseconds since 1970, 0 when unknown."""

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    failed: str | None
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def milliseconds(self) -> float | None:
        """How long it took; None when the times are absent or run backwards."""
        return (self.end - self.start) / 1e6 if 0 < self.start <= self.end else None


def spans_of(path: Path, notes: Notes) -> Iterator[Span]:
    """Every span of a file. Raises StorageError when it holds none at all."""
    found = False
    for line, document in _documents(path, notes):
        for item in document if isinstance(document, list) else [document]:
            for place, span in _raw_spans(item):
                found = True
                read = _span(span)
                if isinstance(read, Span):
                    yield read
                else:
                    notes.problem(path, line, place + read, "is missing or of another type")
    if not found:
        notes.check()
        raise StorageError(f"{path}: holds no spans; write OTLP JSON with resourceSpans.")


def _documents(path: Path, notes: Notes) -> Iterator[tuple[int | None, Any]]:
    """The JSON values of a file with their lines: one, one a line, or one behind the other."""
    data = path.read_bytes().removeprefix(BOM)
    try:
        yield None, orjson.loads(data)
        return
    except orjson.JSONDecodeError:
        pass
    first = data.lstrip().partition(b"\n")[0].strip()
    if first not in (b"{", b"["):
        yield from ((row.line, row.fields) for row in jsonl_rows(path, notes))
        return
    text, place, decoder = data.decode("utf-8", "replace"), 0, json.JSONDecoder()
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", place)) + 1
            notes.problem(
                path, line, "", f"not JSON ({getattr(error, 'msg', 'nested too deeply')})"
            )
            return
        yield text.count("\n", 0, place) + 1, value
        place = end


def _raw_spans(document: Any) -> Iterator[tuple[str, Any]]:
    for i, resource in enumerate(_items(document, "resourceSpans", "resource_spans")):
        scopes = list(_items(resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"))
        for j, scope in enumerate(scopes):
            for k, span in enumerate(_items(scope, "spans")):
                yield f"resourceSpans[{i}].scopeSpans[{j}].spans[{k}]", span
    yield from other_spans(document)


def _items(value: Any, *names: str) -> list[Any]:
    for name in names:
        found = value.get(name) if isinstance(value, dict) else None
        if isinstance(found, list):
            return found
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
    times = [
        _whole(_first(raw, f"{name}TimeUnixNano", f"{name}_time_unix_nano"))
        for name in ("start", "end")
    ]
    if None in times:
        return ".startTimeUnixNano"
    status = raw.get("status")
    status = status if isinstance(status, dict) else {}
    failed = status.get("code") in (2, "2", "STATUS_CODE_ERROR")
    return Span(
        trace,
        identity,
        str(_first(raw, "parentSpanId", "parent_span_id") or ""),
        str(raw.get("name") or ""),
        times[0] or 0,
        times[1] or 0,
        str(status.get("message") or "") if failed else None,
        attributes_of(raw.get("attributes")),
        [
            (str(event.get("name") or ""), attributes_of(event.get("attributes")))
            for event in _items(raw, "events")
            if isinstance(event, dict)
        ],
    )


def _first(raw: dict[str, Any], *names: str) -> Any:
    return next((raw[name] for name in names if raw.get(name) is not None), None)


def _whole(value: Any) -> int | None:
    """Nanoseconds, which OTLP writes as a text; 0 when absent, None for what is no number."""
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return None


def attributes_of(raw: Any) -> dict[str, Any]:
    """Attributes by name: OTLP's list of key and typed value, or a plain object."""
    if isinstance(raw, dict):
        return dict(raw)
    pairs = raw if isinstance(raw, list) else []
    return {
        pair["key"]: plain(pair.get("value"))
        for pair in pairs
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def plain(value: Any, depth: int = 0) -> Any:
    """An OTLP value such as ``{"stringValue": "a"}`` without its type; None past a sane depth."""
    if not isinstance(value, dict) or depth > MOST_DEPTH:
        return None
    for name, found in value.items():
        if name == "intValue":
            return _whole(found)
        if name == "arrayValue":
            return [plain(one, depth + 1) for one in _items(found, "values")]
        if name == "kvlistValue":
            return {
                str(pair.get("key")): plain(pair.get("value"), depth + 1)
                for pair in _items(found, "values")
                if isinstance(pair, dict)
            }
        if name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return found
    return None


def structured(value: Any) -> Any:
    """What a JSON text holds; any other value as it is."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value

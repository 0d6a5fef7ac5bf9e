"""Spans as exporters other than OTLP write them (the console, Phoenix, Jaeger), in OTLP's shape.

Phoenix' table of spans has a column an attribute: ``get_spans_dataframe`` of arize-phoenix 20.26
(github.com/Arize-ai/phoenix, src/phoenix/trace/dsl/query.py), as pandas writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

_LISTS = ("data", "spans", "traces")
"""Keys under which other exporters hold their spans or traces."""

_MOST_DEPTH = 4
"""How deep spans may lie: a file of traces of spans is two."""


def other_spans(document: Any, where: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Spans of an object that is no OTLP, with their places, in OTLP's shape."""
    if not isinstance(document, dict) or depth > _MOST_DEPTH:
        return
    if _is_span(document):
        yield where, _as_otlp(document)
        return
    if _TABLE_ID in document:
        for index, row in _table_rows(document):
            yield f"{where}{index}", _as_otlp(_of_table(row))
        return
    for name in _LISTS:
        for number, item in enumerate(
            listed if isinstance(listed := document.get(name), list) else ()
        ):
            yield from other_spans(item, f"{where}.{name}[{number}]".lstrip("."), depth + 1)


_TABLE_ID = "context.trace_id"
"""A column of Phoenix' table of spans."""


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
    return ("traceID" in raw and "spanID" in raw) or ("traceId" in raw and "spanId" in raw)


def _as_otlp(raw: dict[str, Any]) -> dict[str, Any]:
    """A span with OTLP's field names; one that has them already is given back."""
    if "traceID" in raw:
        return _jaeger(raw)
    if not isinstance(raw.get("context"), dict):
        return raw
    context, status = raw["context"], raw.get("status")
    status = status if isinstance(status, dict) else {}
    code = str(status.get("status_code") or raw.get("status_code") or "")
    return {
        "traceId": _hex(context.get("trace_id")),
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
    return value.removeprefix("0x") if isinstance(value, str) else value


def nanoseconds(text: Any) -> int:
    """A time such as 2024-01-01T00:00:02.5Z in nanoseconds since 1970; 0 for anything else."""
    if not isinstance(text, str):
        return 0
    try:
        time = datetime.fromisoformat(text)
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

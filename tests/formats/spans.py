"""Spans as OTLP writes them in JSON."""

from __future__ import annotations

from typing import Any

T0 = 1_700_000_000_000_000_000


def value(raw: Any) -> dict[str, Any]:
    """A plain value in OTLP's typed form."""
    if isinstance(raw, bool):
        return {"boolValue": raw}
    if isinstance(raw, int):
        return {"intValue": str(raw)}  # 64-bit numbers stand as texts in OTLP JSON
    if isinstance(raw, float):
        return {"doubleValue": raw}
    if isinstance(raw, list):
        return {"arrayValue": {"values": [value(one) for one in raw]}}
    if isinstance(raw, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": value(v)} for k, v in raw.items()]}}
    return {"stringValue": raw}


def span(
    trace: str,
    name: str,
    attributes: dict[str, Any],
    *,
    parent: str = "",
    at: int = 0,
    ms: int = 10,
    **more: Any,
) -> dict[str, Any]:
    start = T0 + at * 1_000_000
    return {
        "traceId": trace,
        "spanId": name,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + ms * 1_000_000),
        "attributes": [{"key": k, "value": value(v)} for k, v in attributes.items()],
    } | more


def attributes(**values: Any) -> list[dict[str, Any]]:
    """Attributes by names with __ for a dot."""
    return [{"key": name.replace("__", "."), "value": value(v)} for name, v in values.items()]


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": list(spans)}]}]}


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}

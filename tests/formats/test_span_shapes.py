"""Spans as other libraries name them and other exporters write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from formats.traces.exporters import flat
from formats.traces.values import nanoseconds

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Hi?"}]}]',
    "gen_ai.output.messages": (
        '[{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"},'
        ' {"type": "text", "content": "Ho."}], "finish_reason": "stop"}]'
    ),
}
START = "2024-01-01T00:00:00.000000Z"
END = "2024-01-01T00:00:02.500000Z"


def otlp(*spans: dict[str, Any]) -> str:
    numbered = [{"traceId": "t", "spanId": str(n)} | one for n, one in enumerate(spans)]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": numbered}]}]})


COMMON: dict[str, Any] = {"name": "chat m", "parent_id": None, "start_time": START, "end_time": END}
COMMON |= {"events": []}


def phoenix(trace: str, attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A span as Phoenix' server gives it out."""
    ids = {"context": {"trace_id": trace, "span_id": "a"}, "span_kind": "CHAIN"}
    status = {"status_code": "OK", "status_message": ""}
    return COMMON | ids | status | {"attributes": attributes} | more


def test_values_one_behind_the_other_over_several_lines(desk: Any) -> None:
    """As jq writes JSON lines."""
    failed = {"status_code": "ERROR", "status_message": "rate limit"}
    asked = {k: v for k, v in CHAT.items() if k != "gen_ai.output.messages"}
    spans = [phoenix("a1", CHAT), phoenix("a2", asked, **failed)]
    text = "".join(json.dumps(one, indent=4) + "\n" for one in spans)
    desk.take("otel", desk.file("spans.json", text))
    assert [case["id"] for case in desk.cases()] == ["a1", "a2"]
    done, broken = desk.results("spans")
    assert (done["answer"], done["latency_ms"]["total"]) == ("Ho.", 2500.0)
    assert broken["error"]["message"] == "rate limit"
    torn = desk.refused("otel", desk.file("torn.json", text[:-20]))
    assert "1 problem" in torn
    assert "not JSON" in torn


CONSOLE = COMMON | {
    "context": {"trace_id": "0xa1", "span_id": "0xa", "trace_state": "[]"},
    "kind": "SpanKind.CLIENT",
    "status": {"status_code": "UNSET"},
    "attributes": CHAT,
}
JAEGER = {"data": [{"traceID": "a1", "spans": [{"traceID": "a1", "spanID": "s1", "tags": []}]}]}


@pytest.mark.parametrize(
    ("exporter", "text", "values"),
    [
        ("OpenTelemetry's console exporter", json.dumps(CONSOLE, indent=4) * 2, 2),
        ("OpenTelemetry's console exporter", json.dumps([CONSOLE]), 1),
        ("Jaeger", json.dumps(JAEGER), 1),
        ("Jaeger", json.dumps(JAEGER["data"]), 1),
    ],
)
def test_a_file_of_an_exporter_that_is_not_read_says_what_to_write_instead(
    desk: Any, exporter: str, text: str, values: int
) -> None:
    said = desk.refused("otel", desk.file("s.json", text))
    assert f"has spans of {exporter}, which are not read; write OTLP JSON, as the file" in said
    # Beside spans that are read it is counted.
    read = json.dumps(json.loads(otlp({"attributes": CHAT})), indent=1)
    beside = desk.file("both.json", f"{read}\n{text}")
    report = desk.take("otel", beside)
    assert report["left_out"] == {"values without spans": values}


def test_traceloop_workflow_and_vector_database(desk: Any) -> None:
    workflow = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": '{"args": ["Hi?"], "kwargs": {}}',
        "traceloop.entity.output": '"Ho \\"there\\"."',
    }
    name = "db.query.result"
    rows = ({"id": "d1", "document": "first", "distance": 0.1}, {"document": "second"})
    found = [{"name": name, "attributes": {f"{name}.{k}": v for k, v in r.items()}} for r in rows]
    spans: list[dict[str, Any]] = [
        {"attributes": workflow},
        {"attributes": {"db.system": "chroma"}, "events": found, "parentSpanId": "0"},
        {"attributes": {"traceloop.span.kind": "task"}, "parentSpanId": "0"},
    ]
    report = desk.take("otel", desk.file("s.json", otlp(*spans)))
    (result,) = desk.results("s")
    assert (result["question"], result["answer"]) == ("Hi?", 'Ho "there".')
    places = [(c["chunk_id"], c["doc_id"], c["text"]) for c in result["retrieved"]]
    assert places == [("d1", "d1", "first"), ("2", None, "second")]
    assert report["left_out"] == {
        "distance of passages": 1,
        "spans of other operations": 1,
        "db.system of inner spans": 1,
    }


def test_nesting_without_end_is_no_trace(desk: Any) -> None:
    deep = '{"data": [' * 400 + "{}" + "]}" * 400
    assert "nested levels" in desk.refused("otel", desk.file("deep.json", deep))


def test_nested_names_and_times() -> None:
    # 2.5 s after the start of 1970, and the same in a zone two hours ahead of UTC
    assert nanoseconds("1970-01-01T00:00:02.5Z") == 2_500_000_000
    assert nanoseconds("1970-01-01T02:00:02.500+02:00") == 2_500_000_000
    assert nanoseconds("soon") == nanoseconds(None) == 0
    messages = {"gen_ai.input.messages": [{"role": "u"}]}
    nested = messages | {"a": {"b": [{"c": 1}, {"c": 2}], "d": ["x"]}}
    assert flat(nested) == messages | {"a.b.0.c": 1, "a.b.1.c": 2, "a.d": ["x"]}
    assert flat("nonsense") == {}

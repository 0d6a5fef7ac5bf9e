"""People's ratings of answers, as the servers write them: who, when, and on which scale."""

from __future__ import annotations

import hmac
import json
from typing import Any

import pytest
from tests.formats.spans import attributes
from tests.rows import each_row

from formats.traces import ids
from formats.traces.feedback import rating_in, ratings_beside

T0, T1 = "2026-03-01T10:00:00", "2026-03-01T10:00:02"


def pseudonym(user: str) -> str:
    """HMAC-SHA256 by the key that the converter made, its first 16 digits."""
    key = ids.key_of_ids()
    return "h-" + hmac.new(key, user.encode(), "sha256").hexdigest()[:16]


# Langfuse: fern/apis/server/definition/commons.yml (Score: NumericScore, BooleanScore,
# CategoricalScore; ScoreConfig) of github.com/langfuse/langfuse: values of booleans are 1 and
# 0, the source is API, ANNOTATION or EVAL.
def score(name: str, value: Any, source: str = "API", **more: Any) -> dict[str, Any]:
    base = {"id": f"{name}-{more.get('at', '')}", "traceId": "t1", "observationId": None}
    at = more.pop("at", "2026-03-01T11:00:00.000Z")
    times = {"timestamp": at, "createdAt": at, "updatedAt": at}
    row = {"name": name, "value": value, "source": source, "dataType": "NUMERIC", "comment": None}
    return base | times | row | {"authorUserId": None, "configId": None, "queueId": None} | more


LANGFUSE_TRACE: dict[str, Any] = {
    "id": "t1",
    "timestamp": f"{T0}Z",
    "name": "ask",
    "input": {"question": "What is A?"},
    "output": {"answer": "An A."},
    "userId": "u7",
    "latency": 2.5,
    "observations": [
        {"id": "o1", "traceId": "t1", "type": "RETRIEVER", "name": "find", "startTime": f"{T0}Z",
         "endTime": f"{T1}Z", "input": "A", "output": [{"content": "Of A."}]},
    ],
}  # fmt: skip

LANGFUSE_SCORES = [
    score("user-feedback", 0, at="2026-03-01T11:00:00.000Z", comment="Ask joe@example.com, wrong."),
    score("user-feedback", 1, at="2026-03-01T11:05:00.000Z"),  # the same person, later
    score("helpful", 1, "ANNOTATION", dataType="BOOLEAN", stringValue="True", authorUserId="maria"),
    score("tone", 4, "ANNOTATION", authorUserId="maria", configId="c1"),
    score("verdict", None, "ANNOTATION", dataType="CATEGORICAL", stringValue="Thumbs Down",
          authorUserId="li"),
    score("stars", 1, "ANNOTATION", authorUserId="li"),  # of five, as the next line shows
    score("stars", 5, "ANNOTATION", authorUserId="maria"),
    score("hallucination", 1, "EVAL"),
    score("likelihood", 1, "API"),
    score("user-feedback", 1, observationId="o1"),
    score("user-feedback", 1, traceId="elsewhere"),
]  # fmt: skip

CONFIG = {"id": "c1", "name": "tone", "dataType": "NUMERIC", "minValue": 0, "maxValue": 5,
          "isArchived": False, "categories": None, "projectId": "p"}  # fmt: skip


@pytest.mark.parametrize("is_inside", [False, True])
def test_scores_of_langfuse(desk: Any, is_inside: bool) -> None:
    """In a table of their own, or as objects in the trace.

    Scores: thumbs 0, then 1; a boolean 1; 4 of 0 to 5 is (4 - 0) / (5 - 0) = 0.8; a word for bad is
    0; of ``stars`` nothing declares the scale and one is 5, so the 1 is no thumb.
    """
    own = [row for row in LANGFUSE_SCORES if row["traceId"] == "t1"]
    trace = LANGFUSE_TRACE | ({"scores": own} if is_inside else {})
    rows = [CONFIG, *(LANGFUSE_SCORES[len(own) :] if is_inside else LANGFUSE_SCORES)]
    sources = (desk.file("trace.json", json.dumps(trace)), desk.rows("scores.jsonl", rows))
    report = desk.take("langfuse", *sources)
    (result,) = desk.results("trace")
    assert [(r["name"], r.get("score"), r.get("user")) for r in result["feedback"]] == [
        ("user-feedback", 0.0, None),
        ("user-feedback", 1.0, None),
        ("helpful", 1.0, pseudonym("maria")),
        ("tone", 0.8, pseudonym("maria")),
        ("verdict", 0.0, pseudonym("li")),
        ("stars", None, pseudonym("li")),
        ("stars", None, pseudonym("maria")),
    ]
    assert result["feedback"][0]["at"] == "2026-03-01T11:00:00Z"
    assert result["feedback"][0]["comment"].startswith("Ask ")
    assert report["rows"]["ratings by people"] == 7
    left, changed = report["left_out"], report["changed"]
    assert left["ratings by models or programs: no feedback"] == 1
    assert left["ratings that do not say whether a person gave them: no feedback"] == 1
    assert left["ratings of a search or a tool, not of the answer"] == 1
    assert left["ratings of missing answers"] == 1
    assert changed["ratings by people on an unknown scale (unknown)"] == 2
    kept = desk.cases()[0]["metadata"]["scores"]
    assert [row["name"] for row in kept] == ["hallucination", "likelihood"]
    written = "".join(p.read_text() for p in (desk.folder / "out").rglob("*") if p.is_file())
    assert not [name for name in ("joe@example", "maria", '"li"') if name in written]


# LangSmith: docs.langchain.com/langsmith/feedback-data-format, and Feedback and FeedbackConfig of
# python/langsmith/schemas.py in github.com/langchain-ai/langsmith-sdk; types of a source: app, api,
# model, auto_eval. A page on collecting feedback names the keys user_liked and user_disliked.
def feedback(key: str, score: Any, kind: str = "api", **more: Any) -> dict[str, Any]:
    at = more.pop("at", "2026-03-01T11:00:00+00:00")
    source = {"type": kind, "metadata": {}, "user_id": more.pop("user", None)}
    row = {"id": f"{key}-{at}-{more.get('run_id')}", "created_at": at, "modified_at": at}
    row |= {"run_id": "r1", "trace_id": "r1", "key": key, "score": score, "value": None}
    return row | {"comment": None, "correction": None, "feedback_source": source} | more


def langsmith_run(identity: str) -> dict[str, Any]:
    return {"id": identity, "trace_id": identity, "run_type": "chain", "name": "ask",
            "start_time": T0, "end_time": T1, "inputs": {"question": f"What is {identity}?"},
            "outputs": {"answer": "An A."}, "session_name": "prod",
            "feedback_stats": {"user_liked": {"n": 1, "avg": 1.0}}}  # fmt: skip


def test_feedback_of_langsmith(desk: Any) -> None:
    """9 of 1 to 10 is (9 - 1) / (10 - 1) = 0.888…; a disliked answer is 0, and 0 of that says
    nothing for certain. A model's ``positive`` is no thumb."""
    config = {"type": "continuous", "min": 1, "max": 10, "categories": None}
    rows = [
        feedback("user_liked", 1.0),
        feedback("user_disliked", 1, run_id="r2", trace_id="r2"),
        feedback("user_disliked", 0, at="2026-03-01T12:00:00+00:00"),
        feedback("clarity", 9, "app", feedback_config=config, user="u-1"),
        feedback("note", None, "app", comment="See page 3.", user="u-1"),
        feedback("agent", 0.9, "model", value="positive"),
        feedback("online", 1, "auto_eval"),
        feedback("exact_match", 1, "api"),
    ]
    runs = desk.rows("runs.jsonl", [langsmith_run("r1"), langsmith_run("r2")])
    report = desk.take("langsmith", desk.rows("feedback.jsonl", rows), runs)
    first, second = desk.results("prod")
    assert [(r["name"], r.get("score"), r.get("comment")) for r in first["feedback"]] == [
        ("user_liked", 1.0, None),
        ("user_disliked", None, None),
        ("clarity", pytest.approx(8 / 9), None),
        ("note", None, "See page 3."),
    ]
    assert first["feedback"][2]["user"] == pseudonym("u-1")
    assert [(r["name"], r["score"]) for r in second["feedback"]] == [("user_disliked", 0.0)]
    left = report["left_out"]
    assert left["ratings by models or programs: no feedback"] == 2
    assert left["ratings that do not say whether a person gave them: no feedback"] == 1
    assert report["changed"]["ratings by people on an unknown scale (unknown)"] == 2


# Phoenix: GET /v1/projects/{project}/span_annotations (SpanAnnotation, AnnotationResult of
# src/phoenix/server/api/routers/v1/annotations.py in github.com/Arize-ai/phoenix).
def annotation(span: str, kind: str, **result: Any) -> dict[str, Any]:
    at = "2026-03-01T11:00:00+00:00"
    whole = {"label": None, "score": None, "explanation": None} | result
    return {"id": "U3Bhbk==", "created_at": at, "updated_at": at, "source": "APP", "user_id": None,
            "name": "thumbs", "annotator_kind": kind, "result": whole, "metadata": {},
            "identifier": f"px-app:{kind}", "span_id": span}  # fmt: skip


def phoenix_spans() -> list[dict[str, Any]]:
    kinds = (("a1", None, "CHAIN", "What is A?", "An A."), ("a2", "a1", "RETRIEVER", "A", None))
    return [
        {"name": kind, "context": {"trace_id": "f" * 32, "span_id": span}, "parent_id": parent,
         "start_time": f"{T0}+00:00", "end_time": f"{T1}+00:00", "status_code": "OK",
         "attributes": {"openinference": {"span": {"kind": kind}}, "input": {"value": asked}}
         | ({"output": {"value": answer}} if answer else {})}
        for span, parent, kind, asked, answer in kinds
    ]  # fmt: skip


def test_annotations_of_phoenix(desk: Any) -> None:
    """Annotations name a span, in a file that may be read before the spans."""
    rows = [
        annotation("a1", "HUMAN", label="👎", explanation="Not what I asked."),
        annotation("a1", "LLM", label="correct", score=1.0),
        annotation("a1", "CODE", score=1.0),
        annotation("a2", "HUMAN", score=1.0),
        annotation("a9", "HUMAN", score=1.0),
    ]
    body = json.dumps({"data": rows, "next_cursor": None})
    sources = (desk.file("annotations.json", body), desk.rows("spans.jsonl", phoenix_spans()))
    report = desk.take("otel", *sources)
    (result,) = desk.results("spans")
    assert result["feedback"] == [
        {"name": "thumbs", "score": 0.0, "value": "👎", "user": pseudonym("px-app:HUMAN"),
         "at": "2026-03-01T11:00:00Z", "comment": "Not what I asked."}
    ]  # fmt: skip
    assert report["left_out"]["ratings by models or programs: no feedback"] == 2
    assert report["left_out"]["ratings of a search or a tool, not of the answer"] == 1
    assert report["left_out"]["ratings of missing answers"] == 1


def test_events_of_opentelemetry(desk: Any) -> None:
    """gen_ai.evaluation.result (gen-ai-events.md of open-telemetry/semantic-conventions), on a span
    or as a log record; it does not say who rated, so a name must."""
    events: list[tuple[str, dict[str, Any]]] = [
        ("user_feedback", {"gen_ai__evaluation__score__value": 0.0, "enduser__id": "u7"}),
        ("Relevance", {"gen_ai__evaluation__score__value": 1.0}),
    ]
    span = {
        "traceId": "e" * 32, "spanId": "b" * 16, "name": "agent",
        "startTimeUnixNano": "1772359200000000000", "endTimeUnixNano": "1772359202000000000",
        "attributes": attributes(openinference__span__kind="AGENT", input__value="What is A?",
                            output__value="An A."),
        "events": [{"name": "gen_ai.evaluation.result",
                    "attributes": attributes(gen_ai__evaluation__name=name, **more)}
                   for name, more in events],
    }  # fmt: skip
    log = {"traceId": "e" * 32, "spanId": "b" * 16, "timeUnixNano": "1772359203000000000",
           "eventName": "gen_ai.evaluation.result",
           "attributes": attributes(gen_ai__evaluation__name="user-rating",
                               gen_ai__evaluation__score__label="positive")}  # fmt: skip
    lines = [
        {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]},
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]},
    ]
    report = desk.take("otel", desk.rows("spans.jsonl", lines))
    (result,) = desk.results("spans")
    assert [(r["name"], r["score"], r.get("user")) for r in result["feedback"]] == [
        ("user_feedback", 0.0, pseudonym("u7")),
        ("user-rating", 1.0, None),
    ]
    left = report["left_out"]
    assert left["ratings that do not say whether a person gave them: no feedback"] == 1


def test_feedback_in_a_chat_log(desk: Any) -> None:
    """Of a line it is that of its last answer, of a message that of its own."""
    asked = [{"role": "user", "content": "What is A?"}]
    lines = [
        {"id": "c1", "messages": [
            *asked, {"role": "assistant", "content": "An A.", "feedback": "thumbs_up"},
            {"role": "user", "content": "And B?"}, {"role": "assistant", "content": "A B."}],
         "feedback": {"rating": 2, "min": 1, "max": 5, "user_id": "u7", "created_at": 1772359200,
                      "comment": "Mail joe@example.com."}},
        {"id": "c2", "messages": [*asked, {"role": "assistant", "content": "An A"}],
         "feedback": [False, {"score": 1, "source": "llm"}]},
    ]  # fmt: skip
    report = desk.take("openai", desk.rows("log.jsonl", lines))
    first, second, third = (result["feedback"] for result in desk.results("log"))
    assert [(r["name"], r["score"]) for r in first] == [("feedback", 1.0)]
    assert (second[0]["score"], second[0]["user"]) == (0.25, pseudonym("u7"))  # (2 - 1) / (5 - 1)
    assert second[0]["at"] == "2026-03-01T10:00:00Z"
    assert "joe@" not in second[0]["comment"]
    assert [r["score"] for r in third] == [0.0]
    assert report["left_out"]["ratings by models or programs: no feedback"] == 1
    assert all("metadata" not in case for case in desk.cases())


@each_row(
    ("value", "score"),
    [(True, 1.0), (1, 1.0), ("0", 0.0), ("👍🏽", 1.0), ("Not Helpful", 0.0), ("thumbs_down", 0.0),
     (-1, None), (0.5, None), (3, None), ("so so", None), (float("nan"), None),
     ({"a": 1}, None), ("\ud800", None),
     (10**400, None), ({"rating": "inf", "min": 1, "max": "inf"}, None),
     ({"rating": {"deep": [1]}, "at": 10**30}, None)],
)  # fmt: skip
def test_a_scale_is_never_guessed(value: Any, score: float | None) -> None:
    (told,) = ratings_beside(value if isinstance(value, dict) else [value])
    assert told.score(is_thumb=True) == score


def test_a_value_outside_its_declared_scale_is_unknown() -> None:
    row = score("user-feedback", 7)
    told = rating_in(row)
    assert told is not None
    inside = ratings_beside({"rating": 7, "min": 1, "max": 5})
    assert [rating.score(is_thumb=True) for rating in inside] == [None]


def test_other_objects_are_no_ratings() -> None:
    others = (LANGFUSE_TRACE, LANGFUSE_TRACE["observations"][0], langsmith_run("r1"), CONFIG)
    assert [rating_in(row) for row in (*others, *phoenix_spans(), {})] == [None] * 7

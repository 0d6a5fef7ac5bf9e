"""OpenTelemetry spans under their old and new names."""

from __future__ import annotations

import json
from typing import Any

from tests.formats.spans import message, otlp, span, value

from formats.traces.wire import _attributes_of, _plain


def new_names(trace: str) -> list[dict[str, Any]]:
    prompt = "Use this: Paris is big.\nQuestion: What is big?"
    documents = [{"id": "d1", "score": 0.9, "content": "Paris is big."}, {"id": "d2", "score": 0.5}]
    found = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": "What is big?",
        "gen_ai.retrieval.documents": documents,
    }
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": "m-1",
        "gen_ai.conversation.id": "c9",
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.input.messages": json.dumps([message("user", prompt)]),
        "gen_ai.output.messages": json.dumps([message("assistant", "Paris.")]),
    }
    return [
        span(trace, "root", {"http.route": "/ask"}, ms=100),
        span(trace, "retrieval", found, parent="root", at=1, ms=20),
        span(trace, "chat", said, parent="root", at=30, ms=50),
    ]


def test_a_trace_becomes_a_case_with_its_answer(desk: Any) -> None:
    """The collector's file exporter writes a batch a line; a trace may be spread over them, in any
    order. The conversation is the HMAC-SHA256 of c9 with the key of the tests."""
    one, two = new_names("t1"), new_names("t2")
    lines = [otlp(one[2]), otlp(two[0], one[0]), otlp(two[1], two[2], one[1])]
    report = desk.take("otel", desk.rows("spans.jsonl", lines))
    first, other = desk.cases()
    assert (first["id"], first["question"], other["id"]) == ("t1", "What is big?", "t2")
    assert first["metadata"] == {"models": ["m-1"], "http.route": "/ask"}
    assert (first["conversation"], other["turn"]) == ("h-3a027d1fed5b56c6", 2)
    result, second = desk.results("spans")
    assert {**result, "test_case_id": "t2"} == second
    assert result["answer"] == "Paris."
    assert result["latency_ms"] == {"total": 100.0, "retrieve": 20.0, "generate": 50.0}
    assert result["usage"] == {"input_tokens": 30, "output_tokens": 5}
    assert [(c["chunk_id"], c["score_final"], c["text"]) for c in result["retrieved"]] == [
        ("d1", 0.9, "Paris is big."),
        ("d2", 0.5, None),
    ]
    assert report["changed"] == {"questions cut out of a prompt with passages": 2}


def retrieval_of(metadata: list[Any], **more: Any) -> dict[str, Any]:
    """A trace of a retriever whose documents have these metadata, as OpenInference writes them."""
    attributes = {"openinference.span.kind": "RETRIEVER", "input.value": "Hi?"}
    for place, found in enumerate(metadata):
        name = f"retrieval.documents.{place}.document"
        attributes |= {f"{name}.id": f"node-{place}", f"{name}.content": "text"}
        if isinstance(found, str):
            attributes[f"{name}.metadata"] = found
        else:  # Phoenix takes the object apart
            attributes |= {f"{name}.metadata.{key}": value for key, value in found.items()}
    return otlp(span("t", "s", attributes | more))


def test_openinference_metadata_become_places_and_the_rest_is_told(desk: Any) -> None:
    """What LlamaIndex's readers and MarkdownNodeParser put there; its header paths have slashes."""
    llama = {
        "file_path": "/home/me/notes/guide/setup.md",
        "file_name": "guide/setup.md",
        "file_size": 120,
        "header_path": "/Guide/Set up/",
    }
    own = {"file_path": "guide/run.md", "file_name": "run.md", "heading": "Run it", "lang": "en"}
    root = {"rel_path": "a.md", "header_path": "/"}
    found = [json.dumps(llama), json.dumps(own), root]
    report = desk.take("otel", desk.file("s.json", json.dumps(retrieval_of(found))))
    chunks = desk.results("s")[0]["retrieved"]
    assert [(c["chunk_id"], c["doc_id"], c["rel_path"], c["heading_path"]) for c in chunks] == [
        ("node-0", "guide/setup.md", "guide/setup.md", "Guide > Set up"),
        ("node-1", "guide/run.md", "guide/run.md", "Run it"),
        ("node-2", "a.md", "a.md", None),
    ]
    assert report["left_out"] == {
        "metadata.file_path of passages": 1,  # absolute: another machine has another
        "metadata.file_size of passages": 1,
        "metadata.lang of passages": 1,
    }
    assert report["changed"] == {"headings of passages, from /A/B/ to A > B": 2}


def test_an_absolute_path_is_taken_where_there_is_no_other(desk: Any) -> None:
    found = [json.dumps({"file_path": path}) for path in ("/notes/a.md", "C:\\notes\\b.md")]
    report = desk.take("otel", desk.file("s.json", json.dumps(retrieval_of(found))))
    paths = [chunk["rel_path"] for chunk in desk.results("s")[0]["retrieved"]]
    assert paths == ["/notes/a.md", "C:\\notes\\b.md"]
    assert report["left_out"] == {}


def test_metadata_that_are_no_object_are_told(desk: Any) -> None:
    """None of them is a path: lists, numbers and words that are no JSON."""
    found = ["no JSON", json.dumps({"file_path": 7, "heading": ["A"]}), json.dumps({"empty": ""})]
    report = desk.take("otel", desk.file("s.json", json.dumps(retrieval_of(found))))
    assert {chunk["rel_path"] for chunk in desk.results("s")[0]["retrieved"]} == {None}
    assert report["left_out"] == {
        "metadata of passages": 1,
        "metadata.file_path of passages": 1,
        "metadata.heading of passages": 1,
    }


def test_what_failed_is_an_error_and_no_answer(desk: Any) -> None:
    asked = {"gen_ai.operation.name": "chat", "gen_ai.prompt": "Hi?"}
    status: Any = {"status": {"code": 2, "message": "rate limit"}}
    spans = [span("t1", "s", asked, **status), span("t2", "s", asked)]
    desk.take("otel", desk.file("s.json", json.dumps(otlp(*spans))))
    failed, silent = desk.results("s")
    assert failed["status"] == "error"
    assert failed["error"]["message"] == "rate limit"
    assert silent["error"]["message"] == "the spans have no answer"


def test_traces_without_a_question_are_counted(desk: Any) -> None:
    bare = span("t0", "s", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    tool = span("t1", "tool", {"gen_ai.operation.name": "execute_tool"}, parent="chat")
    report = desk.take("otel", desk.file("s.json", json.dumps(otlp(bare, tool, *new_names("t1")))))
    assert len(desk.cases()) == 1
    assert report["left_out"] == {
        "traces without a question (content capture off?)": 1,
        # the prompt around the question, which the retrieval's query tells alone
        "messages beside question and answer (prompts, tools, steps)": 1,
    }


def test_values_of_any_depth_end() -> None:
    deep: Any = {"stringValue": "x"}
    for _ in range(500):
        deep = {"arrayValue": {"values": [deep]}}
    assert isinstance(_plain(deep), list)
    assert _attributes_of([{"key": "a", "value": {"intValue": "9" * 5000}}]) == {"a": None}
    assert _attributes_of("nonsense") == {}


def test_a_trace_was_asked_of_the_run_that_it_stands_in(desk: Any) -> None:
    """Two logs of different questions: what one service was asked, the other was not."""
    logs = [
        desk.file(f"{name}.json", json.dumps(otlp(*new_names(name)))) for name in ("one", "two")
    ]
    desk.take("otel", *logs)
    for run in ("one", "two"):
        config = json.loads((desk.folder / "out/results" / run / "config.json").read_text())
        assert (config["run"]["selected"], config["dataset"]["cases"]) == (1, 2)
        assert config["run"]["store_full_text"] is True


def searched(name: str, parent: str, at: int, query: str, *ids: str, **more: Any) -> dict[str, Any]:
    """A retriever's span as OpenInference writes it."""
    attributes: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": query}
    for number, identity in enumerate(ids):
        attributes[f"retrieval.documents.{number}.document.id"] = identity
        attributes[f"retrieval.documents.{number}.document.content"] = f"text of {identity}"
    return span("t1", name, attributes, parent=parent, at=at, **more)


CALLED = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "files",
    "gen_ai.tool.call.arguments": '{"query": "f"}',
    "gen_ai.tool.call.result": '[{"id": "k", "path": "k.md", "content": "Four."}]',
}
"""A tool by the names of OpenTelemetry's GenAI conventions."""


def test_every_search_of_an_agent_is_kept(desk: Any) -> None:
    """A tool around a retriever and a retriever within a retriever of the same documents (or
    without any: LlamaIndex writes both) are one search; a tool that gives back a text is none.
    """
    tool = {"openinference.span.kind": "TOOL", "tool.name": "notes"}
    words = {"openinference.span.kind": "TOOL", "tool.name": "web", "input.value": '{"query": "w"}'}
    spans = [
        span("t1", "agent", {"openinference.span.kind": "AGENT", "input.value": "Hi?"}, ms=100)
        | {"attributes": [
            {"key": "openinference.span.kind", "value": value("AGENT")},
            {"key": "input.value", "value": value("Hi?")},
            {"key": "output.value", "value": value("Ho.")},
        ]},
        span("t1", "call", tool, parent="agent", at=5, ms=20),
        searched("r1", "call", 6, "first", "a", "b", ms=15),
        searched("r1-inner", "r1", 7, "first", "a", "b", ms=10),
        searched("r1-bare", "r1", 8, '{"query": {"query_str": "first"}}', ms=5),
        searched("r2", "agent", 30, "second", "a", ms=5),
        searched("r3", "agent", 40, "third", ms=5, status={"code": 2, "message": "no index"}),
        span("t1", "w", words | {"output.value": "It rains."}, parent="agent", at=50, ms=8),
        span("t1", "execute_tool", CALLED, parent="agent", at=60, ms=4, events=[{"name": "e.1"}]),
    ]  # fmt: skip
    report = desk.take("otel", desk.file("spans.json", json.dumps(otlp(*spans))))
    (result,) = desk.results("spans")
    names = ("query", "tool", "start_ms", "latency_ms")
    rows = [("first", "notes", 6.0, 15.0), ("second", "r2", 30.0, 5.0), ("third", "r3", 40.0, 5.0)]
    rows.append(("f", "files", 60.0, 4.0))
    assert [tuple(one.get(name) for name in names) for one in result["searches"]] == rows
    first, second, third, fourth = result["searches"]
    assert [chunk["chunk_id"] for chunk in fourth["retrieved"]] == ["k"]
    assert [chunk["chunk_id"] for chunk in first["retrieved"]] == ["a", "b"]
    assert third["error"] == "no index"
    # What the answer saw: no prompt was captured, so all that the searches brought, each once, and
    # beside the passages what a tool gave back that is none.
    assert [chunk["chunk_id"] for chunk in result["retrieved"]] == ["a", "b", "k"]
    assert [chunk["rank"] for chunk in result["retrieved"]] == [1, 2, 3]
    assert result["seen"] == "union"
    assert result["seen_tools"] == ["It rains."]
    assert "retrieved_from_search" not in result
    assert "text" not in second["retrieved"][0]  # it stands in retrieved
    assert [(tool["name"], tool.get("arguments")) for tool in result["tools"]] == [
        ("notes", None),
        ("web", {"query": "w"}),
        ("files", {"query": "f"}),
    ]
    errors = "errors of spans in traces that have an answer"
    assert report["left_out"] == {errors: 1, "events e.1 of spans": 1}


def test_what_a_reranker_gives_out_is_what_the_answer_saw(desk: Any) -> None:
    attributes = {"openinference.span.kind": "RERANKER"}
    attributes |= {"reranker.output_documents.0.document.id": "b"}
    root = {"openinference.span.kind": "CHAIN", "input.value": "Hi?", "output.value": "Ho."}
    spans = [
        span("t1", "root", root, ms=50),
        searched("r1", "root", 5, "Hi?", "a", "b"),
        span("t1", "rerank", attributes, parent="root", at=20),
    ]
    desk.take("otel", desk.file("spans.json", json.dumps(otlp(*spans))))
    (result,) = desk.results("spans")
    assert [chunk["chunk_id"] for chunk in result["retrieved"]] == ["b"]
    assert "retrieved_from_search" not in result
    assert len(result["searches"]) == 1

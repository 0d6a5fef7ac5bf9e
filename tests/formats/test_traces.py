"""Traces of any source, read by one set of rules: the conventions' documents are the measure."""

from __future__ import annotations

import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from tests.formats.conftest import KEY
from tests.formats.spans import T0, attributes, message, otlp, span, value
from tests.rows import each_row

from formats.traces.ids import hidden, key_of_ids
from formats.traces.reading import Trace, read_trace
from formats.traces.spans import Span, documents_of, kind_of
from formats.traces.values import answer_in, documents_in, is_printed, question_in
from formats.traces.wire import spans_in

ASKED = "How long can I return shoes?"
ANSWER = "Within 60 days, if they are unworn."
PASSAGE = "Shoes can be returned within 60 days of delivery."
OPENINFERENCE = "openinference.span.kind"


def trace_of(*spans: dict[str, Any], logs: Any = ()) -> Trace:
    documents = [otlp(*spans), {"resourceLogs": [{"scopeLogs": [{"logRecords": list(logs)}]}]}]
    read = [one for document in documents for _, one in spans_in(document)]
    return read_trace([one for one in read if isinstance(one, Span)])


def agent(output: Any, **more: Any) -> dict[str, Any]:
    value = output if isinstance(output, str) else json.dumps(output)
    asked = {"messages": [{"role": "user", "content": ASKED}]}
    names = {OPENINFERENCE: "AGENT", "input.value": json.dumps(asked), "output.value": value}
    return span("t", "root", names | more, ms=100)


def chat(text: str, *, at: int = 10, parent: str = "root", asks: str = "", prompt: str = ASKED,
         name: str = "chat") -> dict[str, Any]:  # fmt: skip
    names: dict[str, Any] = {
        OPENINFERENCE: "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": prompt,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": text,
    }
    if asks:
        called = "llm.output_messages.0.message.tool_calls.0.tool_call.function"
        names |= {f"{called}.name": asks, f"{called}.arguments": '{"query": "shoes"}'}
    return span("t", f"{name}{at}", names, parent=parent, at=at, ms=10)


def search(query: str, text: str, at: int, **more: Any) -> dict[str, Any]:
    names = {OPENINFERENCE: "RETRIEVER", "input.value": query}
    names |= {"retrieval.documents.0.document.content": text}
    names |= {"retrieval.documents.0.document.id": f"p{at}"}
    return span("t", f"find{at}", names, parent="root", at=at, ms=5, **more)


def routing(text: str, at: int = 50) -> dict[str, Any]:
    names = {OPENINFERENCE: "CHAIN", "input.value": "{}", "output.value": text}
    return span("t", "should_continue", names, parent="root", at=at, ms=1)


def test_the_last_message_of_the_outermost_span_is_the_answer_not_a_node_name() -> None:
    """LangGraph's root gives out all messages; its conditional edges give out names of nodes."""
    state = [
        {"type": "human", "data": {"content": ASKED}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "find", "args": {}}]}},
        {"type": "tool", "data": {"content": PASSAGE}},
        {"type": "ai", "data": {"content": ANSWER}},
    ]
    read = trace_of(agent({"messages": state}), routing("__end__"), chat(ANSWER))
    assert (read.question, read.answer, read.state) == (ASKED, ANSWER, "read")
    unended = trace_of(agent({"messages": state[:3]}), routing("tools"))
    assert (unended.answer, unended.state) == (None, "unknown")


@each_row("said", ["__end__", "should_continue", "Result(code=1)", "<X object at 0x7>"])
def test_a_name_or_a_repr_is_no_answer(said: str) -> None:
    assert trace_of(agent(said), routing("tools")).state == "unknown"


def test_what_a_model_said_is_the_answer_where_a_printed_event_holds_it_whole_or_cut() -> None:
    """LlamaIndex prints events; its instrumentation cuts them after some characters."""
    printed = (
        "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: "
        f"'assistant'>, additional_kwargs={{}}, blocks=[TextBlock(block_type='text', "
        f"text='{ANSWER}')]), tool_calls=[], raw=None))"
    )
    assert trace_of(agent(printed), chat(ANSWER)).answer == ANSWER
    assert trace_of(agent(printed)).state == "unknown"
    assert trace_of(agent(printed), chat("Another text of the model.")).state == "unknown"
    cut = printed[: printed.index("unworn")] + "..."
    assert trace_of(agent(cut), chat(ANSWER)).answer == ANSWER
    assert trace_of(agent(f"StopEvent(result='{ANSWER[:20]}...')"), chat(ANSWER)).answer == ANSWER
    assert trace_of(agent(cut), chat("Another text of the model.")).state == "unknown"
    assert trace_of(agent(ANSWER[:20] + "..."), chat(ANSWER)).answer == ANSWER


def test_without_an_output_the_model_that_ended_last_answers_if_it_asks_for_no_tool() -> None:
    bare = agent("", **{"output.value": ""})
    tool = span(
        "t", "tool", {OPENINFERENCE: "TOOL", "tool.name": "find"}, parent="root", at=30, ms=30
    )
    inner = chat("A summary for the tool.", at=40, parent="tool")
    asking = chat("Let me look.", at=70, asks="find")
    read = trace_of(bare, chat("first", at=5), chat(ANSWER, at=20), tool, inner, asking)
    assert read.answer == ANSWER
    ended_last = chat(ANSWER, at=5) | {"endTimeUnixNano": str(T0 + 90 * 10**6)}
    assert trace_of(bare, ended_last, chat("began last", at=20)).answer == ANSWER
    refused = trace_of(agent({"status": "no"}), chat(ANSWER))
    assert refused.state == "unknown"  # what came out does not hold what the model said


def test_a_search_query_is_never_the_question() -> None:
    read = trace_of(agent(ANSWER), search("shoes", PASSAGE, 5), chat(ANSWER))
    assert (read.question, read.searches[0].query) == (ASKED, "shoes")
    prompt = f"Context:\n{PASSAGE}\nQuestion: {ASKED}\nAnswer:"
    bare = span("t", "root", {"http.route": "/ask"}, ms=100)
    read = trace_of(bare, search("return shoes", PASSAGE, 5), chat(ANSWER, prompt=prompt))
    assert (read.question, read.is_cut) == (ASKED, True)
    read = trace_of(bare, chat(ANSWER, prompt=prompt))  # none of the trace's passages is in it
    assert (read.question, read.is_cut) == (prompt, False)


def taken(desk: Any, *spans: dict[str, Any]) -> dict[str, Any]:
    desk.take("otel", desk.file("s.json", json.dumps(otlp(*spans))))
    result: dict[str, Any] = desk.results("s")[0]
    return result


OTHER = "Hats cannot be returned, for reasons of hygiene."


def test_of_several_searches_the_answer_saw_what_its_prompt_holds(desk: Any) -> None:
    found = [search("shoes", PASSAGE, 5), search("hats", OTHER, 20)]
    result = taken(desk, agent(ANSWER), *found, chat(ANSWER, at=60, prompt=f"{OTHER}\n{ASKED}"))
    assert [chunk["text"] for chunk in result["retrieved"]] == [OTHER]
    assert (result["seen"], len(result["searches"])) == ("prompt", 2)
    assert "retrieved_from_search" not in result


def test_where_no_prompt_was_captured_it_is_the_union(desk: Any) -> None:
    result = taken(desk, agent(ANSWER), search("shoes", PASSAGE, 5), search("hats", OTHER, 20),
                   search("both", PASSAGE, 30))  # fmt: skip
    assert [chunk["text"] for chunk in result["retrieved"]] == [PASSAGE, OTHER]  # each once
    assert result["seen"] == "union"
    # 5 to 10, 20 to 25, 30 to 35 ms; the root lasted 100
    assert result["latency_ms"] == {"total": 100.0, "retrieve": 15.0}


def test_one_search_is_as_it_was(desk: Any) -> None:
    result = taken(desk, agent(ANSWER), search("shoes", PASSAGE, 5), chat(ANSWER, prompt="other"))
    assert (result["retrieved_from_search"], result["retrieved"][0]["text"]) == (1, PASSAGE)
    assert "seen" not in result


def test_tool_calls_are_kept_and_their_results_are_seen(desk: Any) -> None:
    """The span has the argument as a bare text; what the model asked for has its name."""
    tool = {OPENINFERENCE: "TOOL", "tool.name": "weather", "input.value": "Lyon"}
    spans = [
        agent(ANSWER),
        chat("", at=5, asks="weather"),
        span("t", "w", tool | {"output.value": "It rains."}, parent="root", at=20, ms=8),
        chat(ANSWER, at=60, prompt=f"It rains.\n{ASKED}"),
    ]
    result = taken(desk, *spans)
    said = {"name": "weather", "arguments": {"query": "shoes"}, "result": "It rains."}
    assert result["tools"] == [said | {"latency_ms": 8.0}]
    assert result["seen_tools"] == ["It rains."]
    assert result["retrieved"] is None


def test_a_session_becomes_turns_with_hashed_ids(desk: Any) -> None:
    names = {"session.id": "u-17", "user.id": "jane"}
    first, second = agent(ANSWER, **names), agent("Yes.", **names)
    later = {"traceId": "t2", "startTimeUnixNano": str(T0 + 10**10), "spanId": "r2"}
    later |= {"endTimeUnixNano": str(T0 + 10**10 + 10**8)}
    report = desk.take("otel", desk.file("s.json", json.dumps(otlp(second | later, first))))
    assert report["kept"] == {"user.id": 2}  # the session is no field that no script reads
    cases = desk.cases()
    name = "h-" + hmac.digest(KEY, b"u-17", "sha256").hex()[:16]
    turns = [(case["id"], case["conversation"], case["turn"]) for case in cases]
    assert turns == [("t", name, 1), ("t2", name, 2)]
    assert cases[0]["metadata"] == {
        "user.id": "h-" + hmac.digest(KEY, b"jane", "sha256").hex()[:16]
    }
    assert "jane" not in json.dumps(cases)
    config = desk.file("c.toml", "[traces]\nkeep_ids = true\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAG_EVAL_CONFIG", config)
        desk.take("otel", desk.file("s.json", json.dumps(otlp(first))), out="plain")
    assert desk.cases("plain")[0]["metadata"] == {"conversation": "u-17", "user.id": "jane"}


def test_a_key_is_made_once(tmp_path: Path) -> None:
    key = key_of_ids(tmp_path / "eval" / "ids.key")
    key_of_ids.cache_clear()
    assert key == key_of_ids(tmp_path / "eval" / "ids.key")
    assert (len(key), (tmp_path / "eval" / "ids.key").stat().st_mode & 0o777) == (64, 0o600)
    assert hidden({"a": {"thread_id": "x"}, "b": ["x"]}, lambda: KEY)["b"] == ["x"]


def log(name: str, body: Any = None, **more: Any) -> dict[str, Any]:
    """A log record as OTLP writes it."""
    record = {"traceId": "t", "spanId": "c", "eventName": name, "body": value(body or "")}
    return record | {"attributes": attributes(**more)}


def test_contents_in_log_records_belong_to_their_span() -> None:
    """GenAI conventions to 1.36, an event a message, and from 1.37, one event with the details."""
    bare = span("t", "c", {"gen_ai.operation.name": "chat"}, ms=10)
    old = [
        log("gen_ai.user.message", {"content": ASKED}),
        log("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": ANSWER}}),
    ]
    new = log(
        "gen_ai.client.inference.operation.details",
        gen_ai__input__messages=[message("user", ASKED)],
        gen_ai__output__messages=[message("assistant", ANSWER)],
    )
    for logs in (old, [new]):
        read = trace_of(bare, logs=logs)
        assert (read.question, read.answer) == (ASKED, ANSWER)
    other = log("device.app.lifecycle")
    counts: Any = {"log records of other events": 0}
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [other]}]}]}
    assert list(spans_in(document, counts)) == []
    assert counts == {"log records of other events": 1}


def test_contents_that_were_not_captured_are_said_with_the_setting(desk: Any) -> None:
    bare = span("t", "c", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    said = desk.refused("otel", desk.file("s.json", json.dumps(otlp(bare))))
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in said
    referred = span(
        "t", "c", {"gen_ai.operation.name": "chat", "gen_ai.output.messages_ref": "s3://x"}
    )
    assert trace_of(referred).state == "by reference"


def test_a_trace_without_its_root_is_incomplete(desk: Any) -> None:
    inner = chat(ANSWER, parent="elsewhere")
    whole = agent(ANSWER) | {"traceId": "t2"}
    report = desk.take("otel", desk.file("s.json", json.dumps(otlp(inner, whole))))
    named = "traces without their outermost span, or not ended yet (incomplete)"
    assert report["left_out"][named] == 1
    remote = inner | {"flags": 0x300}  # its parent is in another service
    assert trace_of(remote).answer == ANSWER
    assert trace_of(agent(ANSWER) | {"endTimeUnixNano": "0"}).state == "incomplete"


@each_row(
    ("state", "weight"),
    [("ot=th:8", 2.0), ("x=1,ot=rv:1;th:c", 4.0), ("ot=th:0", 1.0), ("ot=rv:ab", 1.0), ("", 1.0)],
)
def test_head_sampling_is_read_from_the_trace_state(state: str, weight: float) -> None:
    """th:8 rejects the lower 8/16 of all traces, th:c the lower 12/16."""
    assert trace_of(agent(ANSWER) | {"traceState": state}).weight == weight


ASKS, SAYS = {"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWER}
FRAMEWORKS: dict[str, dict[str, Any]] = {
    "Vercel": {
        "ai.operationId": "ai.generateText",
        "ai.prompt": {"prompt": ASKED},
        "ai.response.text": ANSWER,
        "ai.telemetry.metadata.chatId": "c-1",
    },
    "Pydantic AI": {
        "agent_name": "shop",
        "final_result": ANSWER,
        "pydantic_ai.all_messages": [message("user", ASKED), message("assistant", ANSWER)],
    },
    "MLflow": {
        "mlflow.spanType": '"AGENT"',
        "mlflow.spanInputs": {"question": ASKED},
        "mlflow.spanOutputs": json.dumps(ANSWER),
    },
    "Langfuse": {
        "langfuse.observation.type": "agent",
        "langfuse.observation.input": [ASKS],
        "langfuse.observation.output": ANSWER,
    },
    "Haystack": {
        "haystack.pipeline.input_data": {"retriever": {"query": ASKED}},
        "haystack.pipeline.output_data": {"llm": {"replies": [ANSWER], "meta": [{}]}},
    },
}
"""Values that are no texts stand as JSON."""


@each_row("name", FRAMEWORKS)
def test_frameworks_with_names_of_their_own(name: str) -> None:
    said = FRAMEWORKS[name].items()
    texts = {key: text if isinstance(text, str) else json.dumps(text) for key, text in said}
    read = trace_of(span("t", "s", texts))
    assert (read.question, read.answer) == (ASKED, ANSWER)
    assert kind_of(read.spans[0]) == "agent"


def event(name: str, **more: Any) -> dict[str, Any]:
    pairs = {key.replace("__", "."): text for key, text in more.items()}
    return {"name": f"gen_ai.{name}", "attributes": pairs}


OPERATION = {"gen_ai.operation.name": "chat"}
LLM = {OPENINFERENCE: "LLM", "gen_ai.completion.0.content": ANSWER}
IN, OUT = "input.value", "output.value"


@each_row(
    ("names", "events"),
    [
        (OPERATION, [event("system.message", content="Be short."),
                     event("user.message", content=ASKED),
                     event("choice", message=json.dumps(SAYS))]),
        (OPERATION, [event("content.prompt", gen_ai__prompt=json.dumps([ASKS])),
                     event("content.completion", gen_ai__completion=json.dumps([SAYS]))]),
        (OPERATION, [event("client.inference.operation.details",
                           gen_ai__input__messages=[message("user", ASKED)],
                           gen_ai__output__messages=[message("assistant", ANSWER)])]),
        (LLM | {"gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be short.",
                "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": ASKED}, []),
        (LLM | {"llm.input_messages.0.message.contents.0.message_content.text": ASKED}, []),
        (LLM | {"gen_ai.prompt.0.content": json.dumps([{"type": "text", "text": ASKED}])}, []),
        ({OPENINFERENCE: "CHAIN", IN: ASKED, OUT: ANSWER}, []),
        ({OPENINFERENCE: "CHAIN", IN: json.dumps({"query": ASKED}),
          OUT: json.dumps({"result": ANSWER, "source_documents": []})}, []),
        ({OPENINFERENCE: "CHAIN", IN: json.dumps({"inputs": {"question": ASKED}}),
          OUT: json.dumps({"outputs": {"answer": ANSWER}})}, []),
    ],
)  # fmt: skip
def test_older_and_other_names(names: dict[str, Any], events: list[Any]) -> None:
    read = trace_of(span("t", "s", names, events=events))
    assert (read.question, read.answer) == (ASKED, ANSWER)


def test_documents_stand_in_the_order_of_their_numbers() -> None:
    names = {f"retrieval.documents.{n}.document.id": f"d{n}" for n in (10, 1, 2)}
    rows = documents_of(Span("t", "s", "", "", 0, 0, None, names))
    assert [row["id"] for row in rows] == ["d1", "d2", "d10"]


@each_row(
    "text",
    [
        "A(x=1, y=[B(z='it\\'s'), None], w=<E.ONE: 'one'>)",
        "Event(result='cut here...",
        "StartEvent()",
        "<q object at 0x1>",
        "{'question': 'Hi?'}",
        "[HumanMessage(content='Hi?'), None]",
        "[{'a': 1}, {'b'...",
    ],
)
def test_a_printed_object_is_neither_question_nor_answer(text: str) -> None:
    assert is_printed(text)
    assert (question_in(text), answer_in(text)) == (None, None)
    assert question_in({"question": text}) is None


@each_row(
    "text",
    [
        "Call foo(bar=1) to begin, and see <b>the notes</b>.",
        "[1] says so, and f(x) too.",
        "[len(x)](https://example.com) counts.",
        "['a', 'b'] is what it prints.",
        "{not: printed}",
        "foo",
    ],
)
def test_words_with_brackets_are_no_printed_object(text: str) -> None:
    assert not is_printed(text)
    assert question_in(text) == text


def test_a_trace_whose_question_is_printed_says_what_to_write_instead(desk: Any) -> None:
    """Of OpenInference's Haystack agents; a trace beside it is read."""
    printed = {"messages": ["ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[…])"]}
    names = {"input.value": json.dumps(printed), "output.value": json.dumps(printed)}
    file = desk.file("s.json", json.dumps(otlp(agent("", **names))))
    said = desk.refused("otel", file)
    assert "traces whose question is in a printed Python object, which is not read: 1" in said
    assert "write OTLP JSON whose values are JSON" in said
    other = span("u", "root", {"input.value": ASKED, "output.value": ANSWER}, ms=9)
    both = desk.file("both.json", json.dumps(otlp(agent("", **names), other)))
    done = desk.convert("import", "otel", both, "--output", str(desk.folder / "out"))
    assert "write OTLP JSON whose values are JSON" in done.stderr
    assert [case["question"] for case in desk.cases()] == [ASKED]


@each_row("kind", [{"a": 1}, ["AGENT"], 7, None])
def test_a_kind_of_another_type_is_none_of_ours(kind: Any) -> None:
    assert kind_of(Span("t", "s", "", "n", 0, 0, None, {OPENINFERENCE: kind})) == ""


def test_values_of_steps() -> None:
    assert answer_in({"question": "q", "generation": "a"}, {"question": "q"}) == "a"
    assert answer_in({"answer": "q"}, {"answer": "q"}) is None  # it went in
    assert question_in({"data": {"find": {"query": "q"}, "ask": {"question": "q"}}}) == "q"
    assert question_in({"data": {"find": {"query": "q"}, "ask": {"question": "other"}}}) is None
    wrapped = ['{"node": {"id_": "a", "text": "A", "class_name": "TextNode"}, "score": 0.5}']
    assert documents_in(wrapped) == [{"id": "a", "text": "A", "score": 0.5}]
    bare = ['{"id_": "b", "text": "B", "class_name": "TextNode", "hash": "x"}']
    assert documents_in(bare) == [{"id": "b", "text": "B"}]
    assert documents_in([{"role": "user", "content": "no document"}]) == []


def test_a_span_of_the_agents_sdk_is_below_its_parent_or_its_trace() -> None:
    span = {"object": "trace.span", "trace_id": "t", "id": "s2", "span_data": {"type": "function"}}
    read = [spans_in(span | {"parent_id": parent}) for parent in ("s1", None)]
    parents = [one.parent for found in read for _, one in found if isinstance(one, Span)]
    assert parents == ["s1", "t"]


def test_what_a_span_says_of_itself() -> None:
    """th:8 drops the half of 2^56 numbers below 8 · 2^52: a kept trace stands for two."""
    names = {"s": "text", "i": 7, "d": 0.5, "b": True, "l": ["x", 1], "o": {"k": ["v"]}}
    events = [
        {"name": "e", "timeUnixNano": "5", "attributes": [{"key": "k", "value": {"intValue": "1"}}]}
    ]
    state: dict[str, Any] = {"traceState": "ot=th:8", "flags": 0x300}
    state |= {"status": {"code": 2, "message": "boom"}}
    document = otlp(span("t", "s", names, parent="p", events=events, **state))
    ((_, read),) = spans_in(document)
    assert isinstance(read, Span)
    assert (read.attributes, read.events) == (names, [("e", {"k": 1})])
    assert (read.failed, read.weight, read.is_remote) == ("boom", 2.0, True)

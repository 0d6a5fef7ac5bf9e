"""Tool calls read out of bots' replies and streams, in the forms that their documentation gives."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from tests.clients.test_mapping import JSON
from tests.records.test_tool_passages import OTHER_TOOLS
from tests.rows import each_row

from clients.bot import Heard, Question, Timing
from clients.expressions import compile_path
from clients.guess import propose
from clients.http import CallError
from clients.known import recognised
from clients.mapping import AnswerMap, build_result
from clients.place_check import PlaceCheck, PlaceVerdict
from clients.profile import check_profile
from clients.proof import prove
from clients.reply_form import columns_of
from clients.tool_calls import search_calls, tool_calls
from clients.tool_paths import find_searches, find_tools
from records.tool_calls import MOST_CALLS, MOST_TOOL_TEXT, ToolCall

SEARCH = {"name": "search", "arguments": {"query": "hat"}}
FOUND = [SEARCH | {"result": "3 hats"}, {"name": "price", "arguments": {"id": 7}, "error": "down"}]


def chat_delta(**delta: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


def piece(index: int, text: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": text} | ({"name": more.pop("name")} if "name" in more else {})
    return chat_delta(tool_calls=[{"index": index, "function": function} | more])


OPENAI_MESSAGES = [
    {"role": "user", "content": "earlier"},
    {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "old"}}]},
    {"role": "user", "content": "now"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function",
             "function": {"name": "search", "arguments": '{"query": "hat"}'}},
            {"id": "b", "type": "function",
             "function": {"name": "price", "arguments": '{"id": 7}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "3 hats"},
    {"role": "tool", "tool_call_id": "b", "content": "down", "status": "error"},
    {"role": "assistant", "content": "Seven."},
]  # fmt: skip

LANGCHAIN = [
    {"type": "human", "content": "now"},
    {"type": "ai", "content": "", "tool_calls": [
        {"name": "search", "args": {"query": "hat"}, "id": "a", "type": "tool_call"},
        {"name": "price", "args": {"id": 7}, "id": "b", "type": "tool_call"}]},
    {"type": "tool", "tool_call_id": "a", "content": "3 hats", "status": "success"},
    {"type": "tool", "tool_call_id": "b", "content": "down", "status": "error"},
]  # fmt: skip

ANTHROPIC = [
    {"role": "user", "content": "now"},
    {"role": "assistant", "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "a", "name": "search", "input": {"query": "hat"}},
        {"type": "tool_use", "id": "b", "name": "price", "input": {"id": 7}}]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", 
         "content": [{"type": "text", "text": "3 hats"}]},
        {"type": "tool_result", "tool_use_id": "b", "content": "down", "is_error": True}]},
]  # fmt: skip

RESPONSES = [
    {"type": "function_call", "call_id": "a", "id": "fc1", "name": "search",
     "arguments": '{"query": "hat"}'},
    {"type": "function_call_output", "call_id": "a", "output": "3 hats"},
    {"type": "mcp_call", "id": "m", "name": "price", "arguments": '{"id": 7}', "output": None,
     "error": "down"},
    {"type": "message", "content": [{"type": "output_text", "text": "Seven."}]},
]  # fmt: skip

AG_UI = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "search"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": '{"query":'},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "a", "delta": ' "hat"}'},
    {"type": "TOOL_CALL_END", "toolCallId": "a"},
    {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "a", "content": "3 hats"},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "b", "toolCallName": "price", "delta": '{"id"'},
    {"type": "TOOL_CALL_CHUNK", "delta": ": 7}"},
]

VERCEL = [
    {"type": "start", "messageId": "m"},
    {"type": "tool-input-start", "toolCallId": "a", "toolName": "search"},
    {"type": "tool-input-delta", "toolCallId": "a", "inputTextDelta": '{"query":"hat"}'},
    {"type": "tool-input-available", "toolCallId": "a", "toolName": "search",
     "input": {"query": "hat"}},
    {"type": "tool-output-available", "toolCallId": "a", "output": "1 …", "preliminary": True},
    {"type": "tool-output-available", "toolCallId": "a", "output": "3 hats"},
    {"type": "tool-input-available", "toolCallId": "b", "toolName": "price", "input": {"id": 7}},
    {"type": "tool-output-error", "toolCallId": "b", "errorText": "down"},
]  # fmt: skip

VERCEL_4 = [
    {"event": "b", "data": {"toolCallId": "a", "toolName": "search"}},
    {"event": "c", "data": {"toolCallId": "a", "argsTextDelta": '{"query":"hat"}'}},
    {"event": "9", "data": {"toolCallId": "a", "toolName": "search", "args": {"query": "hat"}}},
    {"event": "a", "data": {"toolCallId": "a", "result": "3 hats"}},
    {"event": "9", "data": {"toolCallId": "b", "toolName": "price", "args": {"id": 7}}},
    {"event": "0", "data": "Seven."},
]

OPENAI_STREAM = [
    chat_delta(role="assistant", content=None),
    piece(0, "", id="a", name="search", type="function"),
    piece(0, '{"query":'),
    piece(1, '{"id"', id="b", name="price", type="function"),
    piece(0, '"hat"}'),
    piece(1, ": 7}"),
    chat_delta(content="Seven."),
]


def completed(items: list[Any]) -> list[ToolCall]:
    """The calls as a result has them."""
    tools = build_result({"answer": "x", "tools": tool_calls(items)}, "q", "?").tools
    assert isinstance(tools, list)
    return tools


@each_row(
    ("items", "with_results", "with_errors"),
    [
        (OPENAI_MESSAGES, True, True),
        (LANGCHAIN, True, True),
        (ANTHROPIC, True, True),
        (RESPONSES, True, True),
        (AG_UI, True, False),
        (VERCEL, True, True),
        (VERCEL_4, True, False),
        (OPENAI_STREAM, False, False),
    ],
)
def test_the_same_calls_in_each_form(
    items: list[Any], with_results: bool, with_errors: bool
) -> None:
    search, price = completed(items)
    assert (search.name, search.arguments) == ("search", {"query": "hat"})
    assert (price.name, price.arguments) == ("price", {"id": 7})
    assert search.result == ("3 hats" if with_results else None)
    assert (price.error, price.result) == ("down" if with_errors else None, None)


def test_a_further_step_of_a_stream_counts_its_calls_from_0_again() -> None:
    steps = [piece(0, '{"a":1}', id="a", name="f"), piece(0, '{"b":2}', id="b", name="g")]
    calls = [(call.name, call.arguments) for call in completed(steps)]
    assert calls == [("f", {"a": 1}), ("g", {"b": 2})]


def test_calls_without_ids_are_calls_by_themselves() -> None:
    call = {"name": "f", "args": {"a": 1}}
    message = {"type": "ai", "tool_calls": [call, call]}
    assert [made.arguments for made in completed([message, message])] == [{"a": 1}] * 4


def test_no_call_is_an_empty_list_and_null_is_not_reported() -> None:
    assert tool_calls([{"role": "user", "content": "?"}, {"role": "assistant"}]) == []
    assert compile_path("tool_calls(messages)")({}) is None


@given(
    st.lists(JSON | st.sampled_from([*OPENAI_MESSAGES, *RESPONSES, *AG_UI, *VERCEL]), max_size=6)
)
def test_any_items_are_calls_or_a_known_error(items: list[Any]) -> None:
    calls = tool_calls(items)
    assert calls is not None
    with contextlib.suppress(CallError):  # which the run records; anything else would end it
        json.dumps(build_result({"answer": "x", "tools": calls}, "q", "?").to_dict())


def profile(**tables: Any) -> AnswerMap:
    raw = {"request": {"path": "/", "body": {"q": "{question}"}}, **tables}
    return check_profile("p", raw, "p.toml").answer


def read(answer: AnswerMap, payload: Any) -> Any:
    return build_result(answer.fields(payload), "q", "?").tools


def test_a_profile_names_the_fields_of_a_call() -> None:
    answer = profile(
        latency_unit="s",
        response={"answer": "text", "tools": "steps"},
        tool={"name": "tool", "arguments": "input", "result": "out", "latency_ms": "took",
              "error": "failed"},
    )  # fmt: skip
    steps = [
        {"tool": "search", "input": '{"query": "hat"}', "out": {"hits": [1]}, "took": 0.5},
        {"tool": "ask", "input": "plain words", "failed": True},
        {"tool": "ping", "failed": False, "input": ""},
    ]
    first, second, third = read(answer, {"text": "x", "steps": steps})
    assert (first.arguments, first.result) == ({"query": "hat"}, '{"hits": [1]}')
    assert first.latency_ms == 500.0
    assert (second.arguments, second.error) == ({"input": "plain words"}, "failed")
    assert (third.arguments, third.error) == ({}, None)
    assert read(answer, {"text": "x", "steps": []}) == []
    assert not isinstance(read(answer, {"text": "x"}), list)  # not reported


@each_row(
    ("tools", "complaint"),
    [
        ("search", "tools: is not a list but str"),
        ([{"arguments": {}}], r"tools\[0\].name: a tool call needs a name"),
        ([7], r"tools\[0\]: is neither an object nor a name"),
        ([SEARCH | {"latency_ms": -1}], r"tools\[0\].latency_ms: -1 is not a time"),
        ([SEARCH] * (MOST_CALLS + 1), "tools: 1,001 calls; an answer may have 1,000"),
    ],
)
def test_what_is_no_list_of_calls_is_refused(tools: Any, complaint: str) -> None:
    with pytest.raises(CallError, match=complaint):
        read(profile(response={"answer": "text", "tools": "tools"}), {"text": "x", "tools": tools})


def test_long_texts_are_cut_and_long_arguments_leave_their_length() -> None:
    """The JSON of the arguments, {"q": "…"}, has 9 characters around the 30,000 letters."""
    calls = [{"name": "f", "arguments": {"q": "x" * 30_000}, "result": "y" * 150_000}]
    (call,) = build_result({"answer": "x", "tools": calls}, "q", "?").tools or [ToolCall("")]
    assert (call.arguments, call.arguments_length) == ({}, 30_009)
    assert (len(call.result or ""), call.result_length) == (MOST_TOOL_TEXT, 150_000)
    stored = build_result({"answer": "x", "tools": calls}, "q", "?").to_dict()["tools"][0]
    assert (len(stored["result"]), stored["result_length"]) == (200, 150_000)
    again = build_result({"answer": "x", "tools": [stored]}, "q", "?").to_dict()["tools"][0]
    assert again == stored  # a line of a run may be the answer of another one


def test_deeply_nested_arguments_stay_a_text() -> None:
    text = "[" * 500 + "]" * 500
    calls = build_result({"tools": [{"name": "f", "arguments": text}]}, "q", "?").tools
    (call,) = calls or [ToolCall("")]
    assert call.arguments == {"input": text}


def proposed(payload: Any, *, streamed: bool = False) -> Any:
    return find_tools([payload], columns_of([payload], streamed=streamed), streamed=streamed)


def test_connect_maps_calls_where_it_is_certain() -> None:
    assert proposed({"messages": LANGCHAIN}) == ("tool_calls(messages)", {})
    assert proposed({"output": RESPONSES}) == ("tool_calls(output)", {})
    whole = {"choices": [{"message": {"content": "x", "tool_calls": [
        {"id": "a", "function": {"name": "f", "arguments": "{}"}}]}}]}  # fmt: skip
    assert proposed(whole) == ("tool_calls([@])", {})
    streamed = {"events": OPENAI_STREAM, "text": "x"}
    assert proposed(streamed, streamed=True) == ("tool_calls(events)", {})
    own = [{"toolName": "f", "toolInput": {"a": 1}, "observation": "b"}]
    inside = {"name": "toolName", "arguments": "toolInput", "result": "observation"}
    assert proposed({"text": "x", "tools_used": own}) == ("tools_used", inside)


@each_row(
    "payload",
    [
        {"tools": [{"name": "f", "description": "what it does"}]},  # tools on offer
        {"tools": ["f", "g"]},
        {"steps": [{"name": "f", "arguments": {}}]},  # a name that says nothing of tools
        {"tool_calls": [{"name": "f", "arguments": {}}, {"name": None, "arguments": {}}]},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"tool_calls": []},
    ],
)
def test_connect_leaves_out_what_is_not_certain(payload: Any) -> None:
    assert proposed(payload) is None


DOCUMENTS = [
    {"page_content": "Hats can be returned within 60 days.", "metadata": {"source": "a.md"}},
    {"page_content": "Hats are made in Porto.", "metadata": {"source": "b.md"}},
]


def called(number: int, name: str, arguments: Any, result: dict[str, Any]) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": arguments}
    call = {"id": f"c{number}", "type": "function", "function": function}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [asked, {"role": "tool", "tool_call_id": f"c{number}", **result}]


def test_the_calls_of_named_tools_are_searches() -> None:
    """Their passages as JSON, in an object around the list, as LangChain's artifact; an empty list
    is a search that found nothing, and what another tool said in JSON is none."""
    messages = [
        {"role": "user", "content": "?"},
        *called(1, "search", '{"query": "hat"}', {"content": json.dumps(DOCUMENTS)}),
        *called(2, "search", '{"query": "cap"}', {"content": "[]"}),
        *called(3, "lookup", '{"text": "Porto", "k": 3}', {"content": "x", "artifact": DOCUMENTS}),
        *called(4, "find", "hats", {"content": json.dumps({"hits": DOCUMENTS[:1], "n": 1})}),
        *called(5, "price", '{"query": "hat"}', {"content": '[{"eur": 7}]'}),
        *called(6, "price", '{"query": "hat"}', {"content": "[broken"}),
        {"role": "assistant", "content": "So."},
    ]
    read = [each | {"text": each["page_content"], "rel_path": path}
            for each, path in zip(DOCUMENTS, ("a.md", "b.md"), strict=True)]  # fmt: skip
    assert search_calls(messages, "search", "lookup", "find") == [
        {"tool": "search", "query": "hat", "retrieved": read},
        {"tool": "search", "query": "cap", "retrieved": []},
        {"tool": "lookup", "query": "Porto", "retrieved": read},
        {"tool": "find", "query": "hats", "retrieved": read[:1]},
    ]
    assert (search_calls(messages, "lookup") or [{}])[0]["retrieved"] == DOCUMENTS
    path, lists, about = find_searches([{"m": messages}], "tool_calls(m)", set())
    assert path == "search_calls(m, 'search', 'lookup', 'find')"
    assert ([len(found) for found in lists], about) == ([5], [])
    told = tool_calls(messages)
    assert told is not None
    assert [call["name"] for call in told] == ["search", "search", "lookup", "find", *["price"] * 2]
    assert not any("artifact" in call for call in told)
    with pytest.raises(
        ValueError, match=r"has 1 of 2 values; write search_calls\(messages, 'NAME'"
    ):
        compile_path("search_calls(messages)")
    assert search_calls(None) is None
    assert search_calls([]) == []


@pytest.mark.parametrize("kind", OTHER_TOOLS)
def test_other_tools_of_a_live_bot_are_no_searches(kind: str) -> None:
    """They stay calls of tools; a profile reads no passages from them."""
    replies = [
        {"messages": [
            {"role": "user", "content": question},
            *called(1, "t", arguments, {"content": json.dumps(OTHER_TOOLS[kind])}),
            {"role": "assistant", "content": f"The answer to this is {question}"},
        ]}
        for question, arguments in (
            ("May I bring my dog?", '{"query": "dogs in rooms"}'),
            ("When is it open?", '{"query": "opening hours"}'),
        )
    ]  # fmt: skip
    questions = [reply["messages"][0]["content"] for reply in replies]
    response = propose(replies, questions, gold_paths=["rooms.md"]).tables["response"]
    assert response["tools"] == "tool_calls(messages)"
    assert not response.keys() & {"retrieved", "searches"}


@given(st.lists(JSON, max_size=4))
def test_searches_of_any_json_have_lists(items: list[Any]) -> None:
    for search in search_calls(items, "search") or ():
        assert isinstance(search["retrieved"], list)


def test_a_list_of_messages_ends_with_the_answer() -> None:
    """For an unknown bot that answers with nothing but the messages."""
    questions = ["Can I return a hat?", "And shoes, for how many days?"]
    replies = [
        {"log": [{"role": "user", "content": q}, {"role": "assistant", "content": f"On {q[:9]}"}]}
        for q in questions
    ]
    assert propose(replies, questions).tables["response"]["answer"] == "log[-1].content"
    replies[1]["log"].reverse()  # now the user has the last word
    assert "answer" not in propose(replies, questions).tables["response"]


def test_a_known_product_that_ends_with_the_question_is_asked_for_its_answer_elsewhere() -> None:
    """LangGraph's state: the last message is the answer, where a graph adds it to them."""
    question, answer = "Can I return a hat?", "Within 14 days, in its box."
    messages = [{"type": "human", "content": question}]
    reply = {"messages": messages, "reply": answer}
    recipe = recognised(reply)
    assert recipe is not None
    assert recipe.proposal([reply], [question]).tables["response"]["answer"] == "reply"
    messages.append({"type": "ai", "content": answer})
    response = recipe.proposal([reply], [question]).tables["response"]
    assert response["answer"] == "messages[-1].content"


def test_a_known_product_whose_calls_are_told_beside_the_answer() -> None:
    """Flowise lists the tools that its agent used (``usedTools`` in its API's documentation)."""
    used = [{"tool": "search", "toolInput": {"query": "hat"}, "toolOutput": "3 hats"}]
    reply = {"text": "Seven.", "question": "?", "chatId": "c", "usedTools": used}
    recipe = recognised(reply)
    assert recipe is not None
    assert recipe.title == "Flowise"
    tables = recipe.proposal([reply], ["?"]).tables
    assert tables["response"]["tools"] == "usedTools"
    assert tables["tool"] == {"name": "tool", "arguments": "toolInput", "result": "toolOutput"}


def test_a_list_of_passages_as_a_result_keeps_its_places() -> None:
    """An agent with a search beside another tool: its passages are no parts of a message."""
    hits = [{"path": "hats.md", "heading": "Prices", "text": "A hat costs three euros today."}]
    outputs = {"weather": {"text": "Sunny"}, "find": hits * 2}
    events = [
        {"type": kind, "toolCallId": name, "toolName": name, "input": {"query": "hats"},
         "output": output}
        for name, output in outputs.items()
        for kind in ("tool-input-available", "tool-output-available")
    ]  # fmt: skip
    proposal = propose([{"events": events, "text": "It is three."}], ["a?"],
                       settings={"stream": "sse", "stream_delta": "delta"})  # fmt: skip
    assert proposal.tables["response"]["searches"] == "search_calls(events, 'find')"
    assert [search["retrieved"] for search in search_calls(events, "find") or ()] == [hits * 2]
    assert (tool_calls(events) or [{}])[0]["result"] == '{"text": "Sunny"}'


def test_searches_of_different_shapes_are_read_by_one_profile() -> None:
    """Two tools with names of their own, one of them without headings, and one with blocks."""
    messages = [
        {"role": "user", "content": "?"},
        *called(1, "notes", '{"query": "hat"}',
                {"content": json.dumps([{"path": "a.md", "heading": "A", "text": "Felt hats."}])}),
        *called(2, "pages", '{"query": "hat"}',
                {"content": json.dumps({"hits": [{"file": "b.md", "content": "Straw hats."}]})}),
        *called(3, "minutes", '{"query": "hat"}', {"content": "[c.md # C]\nWoollen hats."}),
        {"role": "assistant", "content": "There are three kinds of hats."},
    ]  # fmt: skip
    tables = propose([{"messages": messages}], ["?"]).tables
    answer = profile(response=tables["response"], chunk=tables["chunk"])
    result = build_result(answer.fields({"messages": messages}), "q", "?")
    assert [(c.rel_path, c.heading_path, c.text) for c in result.chunks()] == [
        ("a.md", "A", "Felt hats."), ("b.md", None, "Straw hats."), ("c.md", "C", "Woollen hats."),
    ]  # fmt: skip


def test_several_searches_among_steps_are_no_single_list() -> None:
    """They have no one ranking, and what a memory remembers is no passage."""

    def answer(*texts: str) -> dict[str, Any]:
        hits = [{"path": f"{text[0]}.md", "text": f"{text} are made of felt."} for text in texts]
        remembered = [{"id": "m1", "text": "The user asked for hats before."}]
        steps = [("memory", remembered), ("find", hits), ("find", hits[:1])]
        return {
            "reply": f"All of these are made of felt: {texts}.",
            "steps": [
                {"tool": tool, "input": {"query": f"hats {n}"}, "output": output}
                for n, (tool, output) in enumerate(steps)
            ],
        }

    answers = [answer("Caps", "Hats"), answer("Bonnets")]
    tables = propose(answers, ["a?", "b?"]).tables
    assert "retrieved" not in tables["response"]
    searches = compile_path(tables["response"]["searches"])(answers[0])
    assert [(s["tool"], s["query"]) for s in searches] == [("find", "hats 1"), ("find", "hats 2")]
    paths = [[hit["path"] for hit in search["retrieved"]] for search in searches]
    assert paths == [["C.md", "H.md"], ["C.md"]]
    assert tables["chunk"] == {"rel_path": "path", "text": "text"}
    # One search in each of these answers: another answer may have several.
    alone = [each | {"steps": each["steps"][1:2]} for each in answers]
    assert propose(alone, ["a?", "b?"]).tables["response"] == tables["response"]
    asked = profile(response=tables["response"], chunk=tables["chunk"])
    lists = [build_result(asked.fields(each), "q", "?").chunks() for each in alone]
    assert [[hit.rel_path for hit in hits] for hits in lists] == [["C.md", "H.md"], ["B.md"]]


@each_row(
    ("tool", "arguments", "found", "name"),
    [
        ("tool", "input", "output", "find"),
        ("tool-name", "tool-input", "found-docs", "find"),
        ("tool", "input", "output", "editor's find"),
    ],
)
def test_searches_among_other_steps_are_found_whatever_their_names(
    tool: str, arguments: str, found: str, name: str
) -> None:
    """A thought and a closing word are no calls, and no reason to join the lists of searches."""

    def answer(word: str) -> dict[str, Any]:
        hits = [{"path": f"{word}{n}.md", "text": f"{word} are made of felt {n}."} for n in (1, 2)]
        searches = [{tool: name, arguments: {"query": word}, found: hits[n:]} for n in (0, 1)]
        return {
            "reply": f"They say that {word} are made of felt.",
            "agent-steps": [{"thought": "Let me look."}, *searches, {"final": "Done."}],
        }

    answers = [answer("Caps"), answer("Hats")]
    tables = propose(answers, ["a?", "b?"]).tables
    asked = profile(response=tables["response"], chunk=tables["chunk"])
    result = build_result(asked.fields(answers[0]), "q", "?")
    assert isinstance(result.searches, list)
    assert [(s.tool, s.query) for s in result.searches] == [(name, "Caps")] * 2
    first, second = (to_builtins(search.retrieved) for search in result.searches)
    assert [chunk["rel_path"] for chunk in first] == ["Caps1.md", "Caps2.md"]
    assert [chunk["rel_path"] for chunk in second] == ["Caps2.md"]


def test_calls_whose_fields_have_dashes_in_their_names_are_read() -> None:
    call = {"tool-name": "price", "tool-input": {"id": 1}, "tool-output": "2 EUR"}
    answers = [{"reply": f"It costs {n} EUR in our shop.", "tools_used": [call]} for n in (2, 3)]
    tables = propose(answers, ["a?", "b?"]).tables
    result = build_result(
        profile(response=tables["response"], tool=tables["tool"]).fields(answers[0]), "q", "?"
    )
    assert result.tools == [ToolCall("price", {"id": 1}, "2 EUR")]


def test_an_answer_that_is_a_passage_of_a_search_gets_no_check_mark() -> None:
    def answer(word: str) -> dict[str, Any]:
        text = f"{word} are made of felt by hand."
        coats = {"path": "z.md", "text": "Coats are of wool."}
        hits = [{"path": f"{word}.md", "text": text}, coats]
        step = {"tool": "find", "input": {"query": word}, "output": hits}
        return {"reply": text, "steps": [step, step]}

    answers = [answer("Caps"), answer("Hats")]
    tables = propose(answers, ["a?", "b?"]).tables
    assert "searches" in tables["response"]
    asked = profile(response=tables["response"], chunk=tables["chunk"])
    proven = [
        Heard(
            Question("q", question),
            each,
            Timing(0.1),
            build_result(asked.fields(each), "q", question),
        )
        for question, each in zip(("a?", "b?"), answers, strict=True)
    ]
    row = prove(tables, proven, None, PlaceVerdict(PlaceCheck())).rows[0]
    assert (row.mark, row.says) == ("?", "Every answer is word for word a passage.")

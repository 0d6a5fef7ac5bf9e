"""Which requests an unknown bot is tried with: descriptions, curl, what it says against one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.bots.query_engine import OPENAPI
from tests.rows import each_row

from clients.bot import Question
from clients.connect import given_request, given_shape, url_parts
from clients.connect_options import ConnectOptions
from clients.curl import parse_curl
from clients.shapes import (
    SecretFinder,
    Shape,
    corrected,
    known_shapes,
    openapi_shapes,
    shape_of,
    template,
    with_history,
)
from clients.templates import render
from records.errors import StorageError


def described(path: str, schema: Any, method: str = "post", **more: Any) -> dict[str, Any]:
    body = {"content": {"application/json": {"schema": schema}}}
    return {"paths": {path: {method: {"requestBody": body, **more}}}}


def of(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT, INTEGER, BOOLEAN = ({"type": name} for name in ("string", "integer", "boolean"))
Q = "{question}"
USER = {"role": "user", "content": Q}
SYSTEM = {"role": "system", "content": "s"}


def test_only_operations_that_answer_questions_are_tried() -> None:
    """Feedback has a string `message`, too: sending one would store it."""
    assert [shape.path for shape in openapi_shapes(OPENAPI, "/")] == ["/v2/query"]


MODE = {"enum": ["fast", "good"], "type": "string"}
OR_NONE = {"anyOf": [{"type": "null"}, TEXT]}


@each_row(
    ("schema", "body"),
    [
        (of({"question": TEXT, "lang": TEXT}, "question"), {"question": Q}),
        (
            of({"q": TEXT, "top_k": INTEGER, "stream": BOOLEAN}, "q"),
            {"q": Q, "top_k": "{k}", "stream": False},
        ),
        (of({"prompt": TEXT, "mode": MODE}, "mode"), {"prompt": Q, "mode": "fast"}),
        (
            of({"messages": {"type": "array", "items": {}}, "model": TEXT}, "messages", "model"),
            {"messages": [USER], "model": "default"},
        ),
        (of({"input": of({"input": TEXT}, "input")}, "input"), {"input": {"input": Q}}),
        (
            {"allOf": [of({"query": TEXT}), of({"thread_id": TEXT}, "thread_id")]},
            {"query": Q, "thread_id": "{uuid}"},
        ),
        (of({"text": OR_NONE, "return_sources": BOOLEAN}), {"text": Q, "return_sources": True}),
    ],
)
def test_a_schema_becomes_a_body(schema: Any, body: Any) -> None:
    (shape,) = openapi_shapes(described("/ask", schema), "/")
    assert shape.body == body


@each_row(
    ("url", "ask"),
    [
        ("http://h/search?q={question}&n=3", ()),
        ("http://h/search?q=%7Bquestion%7D&n=3", ()),
        ("http://h/search?q=What+is+it%3F&n=3", ("What is it?",)),
    ],
)
def test_a_url_that_holds_the_question_is_asked_by_get(url: str, ask: tuple[str, ...]) -> None:
    options = ConnectOptions(url=url, ask=ask)
    _, path, query = url_parts(url)
    shape = given_shape(options, given_request(options), path, query, SecretFinder())
    assert shape is not None
    assert (shape.method, shape.path, shape.body) == ("GET", "/search", None)
    assert shape.query == {"q": Q, "n": "3"}
    assert given_request(ConnectOptions(url="http://h/search")) is None


def test_a_kind_of_json_without_a_schema_hides_no_other() -> None:
    document = described("/ask", of({"question": TEXT}, "question"))
    content = document["paths"]["/ask"]["post"]["requestBody"]["content"]
    document["paths"]["/ask"]["post"]["requestBody"]["content"] = {"text/json": {}, **content}
    (shape,) = openapi_shapes(document, "/")
    assert shape.body == {"question": Q}


def test_parameters_of_the_query_and_prefixes() -> None:
    parameters = [{"in": "query", "name": "q", "required": True, "schema": TEXT}]
    document = {
        "servers": [{"url": "/api"}],
        "paths": {"/search": {"get": {"parameters": parameters}}, "/docs/{id}": {"get": {}}},
    }
    (shape,) = openapi_shapes(document, "/")
    assert (shape.method, shape.path, shape.query) == ("GET", "/api/search", {"q": Q})
    assert shape.body is None


def test_the_users_path_is_the_only_one_that_is_tried() -> None:
    document = {"paths": {**described("/ask", of({"q": TEXT}))["paths"]}}
    document["paths"] |= described("/documents", of({"text": TEXT}))["paths"]
    assert [shape.path for shape in openapi_shapes(document, "/documents")] == ["/documents"]
    assert openapi_shapes(document, "/other") == []
    begun = {"/sessions": {"post": []}, "/sessions/{session_id}/messages": {"post": "none"}}
    assert openapi_shapes({"paths": begun}, "/") == []


def test_a_path_without_operations_names_those_below_it() -> None:
    """A chain of LangServe is served below its name; what is beside it is not tried."""
    document = {"paths": {**described("/rag/invoke", of({"input": TEXT}))["paths"]}}
    document["paths"] |= described("/rag/documents", of({"text": TEXT}))["paths"]
    document["paths"] |= described("/ragged/ask", of({"q": TEXT}))["paths"]
    assert [shape.path for shape in openapi_shapes(document, "/rag/")] == ["/rag/invoke"]
    document["paths"] |= described("/rag", of({"q": TEXT}))["paths"]
    assert [shape.path for shape in openapi_shapes(document, "/rag")] == ["/rag"]


@each_row(
    "document",
    [
        None,
        [],
        {"paths": 3},
        {"paths": {"/a": 3, "/b": {"post": []}}},
        {"paths": {"/a": {"post": {"parameters": 7, "requestBody": "x"}}}, "servers": [{}]},
        described("/ask", {"$ref": "#/x/y"}),
        described("/ask", {"$ref": "#/paths"}),
        json.loads(json.dumps(described("/ask", of({"q": TEXT}))).replace("/json", "/xml")),
        "text",
    ],
)
def test_a_description_that_is_none_names_nothing(document: Any) -> None:
    assert openapi_shapes(document, "/") == []


OURS = known_shapes("/ask")[0]


def missing(*loc: str) -> dict[str, Any]:
    return {"type": "missing", "loc": list(loc), "msg": "Field required"}


LITERAL = {"type": "literal_error", "loc": ["body", "mode"], "msg": "Input should be 'a' or 'b'"}
EXTRA = {"type": "extra_forbidden", "loc": ["body", "k"]}


@each_row(
    ("said", "dropped", "added"),
    [
        ({"detail": [missing("body", "query")]}, "question", {"query": Q}),
        ({"detail": [missing("body", "messages"), EXTRA]}, "question k", {"messages": [USER]}),
        ({"error": "the field 'prompt' is required"}, "question", {"prompt": Q}),
        ({"error": {"message": "Missing parameter: 'model'."}}, "", {"model": "default"}),
        ({"message": "session_id is required"}, "", {"session_id": "{uuid}"}),
        ("'input' is a required property", "question", {"input": Q}),
        ("JSON error: missing field `prompt`", "question", {"prompt": Q}),
        ("must have required property 'text'", "question", {"text": Q}),
        ('"k" is not allowed; "query" is required', "k question", {"query": Q}),
        ({"error": "additional properties are not allowed ('k' was unexpected)"}, "k", {}),
        (
            {"detail": [missing("body", "input", "question")]},
            "question",
            {"input": {"question": Q}},
        ),
        ({"detail": [LITERAL]}, "", {"mode": "a"}),
    ],
)
def test_what_a_bot_misses_is_put_in(said: Any, dropped: str, added: dict[str, Any]) -> None:
    raw = said if isinstance(said, str) else json.dumps(said)
    better = corrected(OURS, raw.encode())
    assert better is not None
    left = {name: value for name, value in OURS.body.items() if name not in dropped.split()}
    assert better.body == left | added
    assert better.path == OURS.path


@each_row("said", ["", "Bad Request", "<html>", '{"error": "no"}', '{"detail": [1]}'])
def test_nothing_is_made_of_what_names_nothing(said: str) -> None:
    assert corrected(OURS, said.encode()) is None


def test_braces_of_a_body_stay_braces() -> None:
    graphql = {"query": "query Q($q: String!) { ask(q: $q) { text } }", "variables": {"q": "Why?"}}
    assert template(graphql, "Why?") == {
        "query": "query Q($q: String!) {{ ask(q: $q) {{ text }} }}",
        "variables": {"q": Q},
    }


@each_row(
    ("body", "asked", "expected"),
    [
        ({"q": "How?", "n": 3}, ["How?"], {"q": Q, "n": 3}),
        ({"prompt": "Answer: How?"}, ["How?"], {"prompt": "Answer: {question}"}),
        ({"tenant": "a", "question": "x"}, [], {"tenant": "a", "question": Q}),
        ({"q": Q, "s": "{uuid}"}, [], {"q": Q, "s": "{uuid}"}),
        ({"messages": [SYSTEM, USER | {"content": "x"}]}, [], {"messages": [SYSTEM, USER]}),
    ],
)
def test_where_the_question_stands(body: Any, asked: list[str], expected: Any) -> None:
    request = parse_curl(f"curl h/ask -d '{json.dumps(body)}'")
    assert shape_of(request, "/ask", asked, "--curl").body == expected


def test_a_request_without_a_question_is_refused() -> None:
    with pytest.raises(StorageError, match="which part is the question"):
        shape_of(parse_curl("curl h/ask -d '{\"n\": 3}'"), "/ask", ["Why?"], "--curl")


def test_secrets_become_variables() -> None:
    shape = Shape(
        "POST",
        "/ask",
        "--curl",
        {"api_key": "query-4711-abc"},
        {"Authorization": "Bearer sk-head-4711", "Cookie": "sid=0815abcd", "X-Plain": "yes"},
        {"q": Q, "auth": {"token": "body-4711-xyz"}, "session_id": "{uuid}"},
    )
    finder = SecretFinder()
    safe = finder.shape(shape)
    assert safe.headers == {
        "Authorization": "Bearer ${BOT_TOKEN}",
        "Cookie": "${BOT_COOKIE}",
        "X-Plain": "yes",
    }
    assert safe.query == {"api_key": "${BOT_API_KEY}"}
    assert safe.body["auth"] == {"token": "${BOT_TOKEN_2}"}
    assert finder.values == {
        "BOT_TOKEN": "sk-head-4711",
        "BOT_COOKIE": "sid=0815abcd",
        "BOT_API_KEY": "query-4711-abc",
        "BOT_TOKEN_2": "body-4711-xyz",
    }
    assert "4711" not in repr(finder)


@each_row(
    ("body", "expected"),
    [
        ({"messages": [USER]}, {"messages": ["{history}", USER]}),
        (
            {"input": {"messages": [SYSTEM, USER]}},
            {"input": {"messages": [SYSTEM, "{history}", USER]}},
        ),
        ({"messages": ["{history}", USER]}, {"messages": ["{history}", USER]}),
        ({"question": Q, "chatHistory": []}, {"question": Q, "chatHistory": ["{history}"]}),
        ({"question": Q, "filters": []}, {"question": Q, "filters": []}),
    ],
)
def test_a_place_for_the_history_is_proposed(
    body: dict[str, Any], expected: dict[str, Any]
) -> None:
    proposed = with_history(Shape("POST", "/ask", "test", body=body))
    assert proposed.body == expected
    values = Question("q", "Why?").values()  # a question by itself is asked as before
    assert render(proposed.body, values) == render(body, values)


@each_row(
    ("value", "is_secret"),
    [
        ("zz9CANARYqwertyuiop1234567890", True),
        ("550e8400-e29b-41d4-a716-446655440000", True),
        ("a1b2c3d4", True),
        ("qwertyuiopasdfghjklzxcvb", True),
        ("2024-05-01", False),
        ("XMLHttpRequest", False),
        ("text/plain; charset=utf-8", False),
        ("acme-corp-eu", False),
        ("${MY_VALUE}", False),
    ],
)
def test_a_header_whose_value_looks_random_becomes_a_variable(value: str, is_secret: bool) -> None:
    finder = SecretFinder()
    headers = finder.shape(Shape("POST", "/", "--curl", {}, {"X-Custom": value}, {})).headers
    assert headers == {"X-Custom": "${BOT_X_CUSTOM}" if is_secret else value}


CHAT = Shape("POST", "/chat", "test", body={"model": "default", "query": Q})


@each_row(
    ("said", "body"),
    [
        (
            {"code": "invalid_param", "message": "Missing required parameter", "params": "inputs"},
            CHAT.body | {"inputs": {}},
        ),
        (
            {"error": {"message": "Missing required parameter.", "param": "session_id"}},
            CHAT.body | {"session_id": "{uuid}"},
        ),
        ({"error": "message parameter cannot be empty."}, {"model": "default", "message": Q}),
        ({"error": "input must not be blank"}, {"model": "default", "input": Q}),
        ({"message": "frage_text: Field required"}, {"model": "default", "frage_text": Q}),
        (
            {"error": "You must specify the field 'q_text' or 'payload.q_text'"},
            {"model": "default", "q_text": Q},
        ),
        (
            {"error": "Key: 'Chat.Query' Error: validation for 'Query' failed on 'required'"},
            {"model": "default", "Query": Q},
        ),
        (
            {"error": {"message": "model 'default' not found. Available: rag-small, rag-large"}},
            CHAT.body | {"model": "rag-small"},
        ),
        (
            {"detail": "Unknown model default; available models: ['kb-1']"},
            CHAT.body | {"model": "kb-1"},
        ),
    ],
)
def test_an_error_that_names_a_parameter_is_understood(said: Any, body: Any) -> None:
    better = corrected(CHAT, json.dumps(said).encode())
    assert better is not None
    assert better.body == body


PARTS = [{"type": "text", "text": Q}]


def test_an_error_that_names_a_field_within_is_understood() -> None:
    chat = Shape("POST", "/", "test", body={"messages": [{"role": "user", "content": Q}]})
    for said in ("messages[0].parts: Required", "messages.0.parts is required"):
        better = corrected(chat, json.dumps({"error": said}).encode())
        assert better is not None
        assert better.body["messages"][0]["parts"] == PARTS
    bare = corrected(replace(chat, body={"k": "{k}"}), b'{"error": "messages[0].parts: Required"}')
    assert bare is not None
    assert bare.body["messages"][0]["parts"] == PARTS


@each_row(
    "said", [{"detail": "Not Found"}, {"error": "no such page"}, "Available soon", {"param": 3}]
)
def test_an_error_that_names_nothing_changes_nothing(said: Any) -> None:
    assert corrected(CHAT, json.dumps(said).encode()) is None

"""The bodies that are sent, held against what each server documents of its chat completions.

The schemas below were written from the servers' own pages: OpenAI's API reference and its guide to
structured outputs; Ollama's page on OpenAI compatibility and the request types of its server;
llama.cpp's README of its server; vLLM's page on its OpenAI-compatible server and its request types;
the request types of llama-cpp-python's server. A field that a server does not document is forbidden
here, also where the server would ignore it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.rows import each_row

from judging.protocols import Sampling, ServerCapabilities, request_body, sent_parameters
from judging.replies import ask_again
from judging.trial import CANARY, MISLED
from records.verdicts import MODES

NUMBER = {"type": "number", "minimum": 0, "maximum": 2}
WHOLE = {"type": "integer"}
POSITIVE = {"type": "integer", "minimum": 1}
TEXT = {"type": "string"}
IDENTIFIER = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
SCHEMA_OBJECT: dict[str, Any] = {"type": "object", "properties": {"type": {"const": "object"}}}
SCHEMA_OBJECT |= {"required": ["type"]}


def record(required: str, **properties: Any) -> dict[str, Any]:
    whole = {"type": "object", "properties": properties, "required": required.split()}
    return whole | {"additionalProperties": False}


MESSAGE = record("role content", role={"enum": ["system", "user", "assistant"]}, content=TEXT)
MESSAGES = {"type": "array", "minItems": 1, "items": MESSAGE}
FUNCTION = record("name", name=IDENTIFIER, description=TEXT, parameters=SCHEMA_OBJECT)
TOOL = record("type function", type={"const": "function"}, function=FUNCTION)
TOOLS = {"type": "array", "maxItems": 128, "items": TOOL}
OF_NAME = record("name", name=IDENTIFIER)
NAMED = record("type function", type={"const": "function"}, function=OF_NAME)
JSON_OBJECT = record("type", type={"const": "json_object"})
HELD_OBJECT = record("type schema", type={"const": "json_object"}, schema=SCHEMA_OBJECT)


def json_schema(required: str, **properties: Any) -> dict[str, Any]:
    inner = record(required, **properties)
    return record("type json_schema", type={"const": "json_schema"}, json_schema=inner)


PARTS = {"name": IDENTIFIER, "description": TEXT, "strict": {"type": "boolean"}}
FULL_FORMAT = json_schema("name schema", **PARTS, schema=SCHEMA_OBJECT)
COMMON = {
    **{"model": TEXT, "messages": MESSAGES, "temperature": NUMBER, "seed": WHOLE},
    **{"max_tokens": POSITIVE, "tools": TOOLS, "tool_choice": NAMED},
    "response_format": {"oneOf": [FULL_FORMAT, JSON_OBJECT]},
}
SERVERS = {
    "openai": record("model messages", **COMMON, max_completion_tokens=POSITIVE),
    "vllm": record("model messages", **COMMON, max_completion_tokens=POSITIVE),
    # of response_format.json_schema it reads `schema` alone, and tool_choice it does not support:
    # both are skipped by its decoder, and the canary shows whether the way works all the same
    "ollama": record("model messages", **COMMON),
    # `model` is optional there; response_format.json_schema.schema is what it compiles
    "llama.cpp": record(
        "messages",
        **COMMON | {"response_format": {"oneOf": [FULL_FORMAT, JSON_OBJECT, HELD_OBJECT]}},
        max_completion_tokens=POSITIVE,
    ),
    # "Input should be 'text' or 'json_object'" is its word on json_schema
    "llama-cpp-python": record(
        "messages", **COMMON | {"response_format": {"oneOf": [JSON_OBJECT, HELD_OBJECT]}}
    ),
}
UNKNOWN = {(server, "json_object_schema") for server in ("openai", "vllm", "ollama")}
UNKNOWN |= {("llama-cpp-python", "json_schema")}
"""Ways that a server does not document; they are tried only where a better one has failed."""


def subschemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from subschemas(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from subschemas(value)


def faults(server: str, body: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(SERVERS[server]).iter_errors(body)]


@each_row("server", SERVERS)
@each_row("mode", MODES)
def test_each_body_fits_each_server(task: Any, mode: str, server: str) -> None:
    one = task()
    sent = sent_parameters(Sampling(), ServerCapabilities(mode), one.max_tokens)
    again = ask_again(one.messages, "no", ["it is no JSON"])
    for messages in (one.messages, again, CANARY.messages, MISLED.messages):
        body = request_body("judge", messages, one.schema, mode, sent)
        assert bool(faults(server, body)) == ((server, mode) in UNKNOWN)


def test_the_schemas_find_what_does_not_fit(task: Any) -> None:
    body = request_body("judge", task().messages, task().schema, "json_schema", {"top_k": 1})
    assert all(faults(server, body) for server in SERVERS)
    body = request_body("judge", task().messages, {"enum": [1]}, "tool", {})
    assert all(faults(server, body) for server in SERVERS)


def test_the_canary_is_strict_as_openai_wants_it() -> None:
    """Structured Outputs: every property required, no additional ones, in every object."""
    for schema in subschemas(CANARY.schema):
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert sorted(schema["required"]) == sorted(schema["properties"])


def test_json_mode_names_json_in_the_messages(task: Any) -> None:
    """OpenAI refuses json_object unless the word JSON stands somewhere in the messages."""
    for mode in ("json_object", "plain"):
        body = request_body("judge", task().messages, task().schema, mode, {})
        assert re.search("JSON", body["messages"][-1]["content"])
        assert '"verdicts"' in body["messages"][-1]["content"]
    assert task().messages[-1]["content"] in body["messages"][-1]["content"]


def test_the_seed_moves_with_the_repeat_and_nothing_unsaid_is_sent() -> None:
    found = ServerCapabilities("plain")
    assert sent_parameters(Sampling(seed=5), found, 10, repeat=2)["seed"] == 7
    assert sent_parameters(Sampling(None, None), found, 10) == {"max_tokens": 10}
    extra = Sampling(extra={"top_p": 0.9})
    assert sent_parameters(extra, found, 10)["top_p"] == 0.9
    with pytest.raises(ValueError, match="messages is set by the toolkit"):
        Sampling(extra={"messages": []})

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

from clients.judge_bodies import MODES, Found, Sampling, request_body, sent_parameters
from clients.judge_probe import CANARY, MISLED
from clients.judge_replies import ask_again

NUMBER = {"type": "number", "minimum": 0, "maximum": 2}
WHOLE = {"type": "integer"}
POSITIVE = {"type": "integer", "minimum": 1}
TEXT = {"type": "string"}
IDENTIFIER = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
SCHEMA_OBJECT = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"const": "object"}},
}


def record(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


MESSAGES = {
    "type": "array",
    "minItems": 1,
    "items": record("role content", role={"enum": ["system", "user", "assistant"]}, content=TEXT),
}
TOOLS = {
    "type": "array",
    "maxItems": 128,
    "items": record(
        "type function",
        type={"const": "function"},
        function=record("name", name=IDENTIFIER, description=TEXT, parameters=SCHEMA_OBJECT),
    ),
}
NAMED = record(
    "type function", type={"const": "function"}, function=record("name", name=IDENTIFIER)
)
JSON_OBJECT = record("type", type={"const": "json_object"})
HELD_OBJECT = record("type schema", type={"const": "json_object"}, schema=SCHEMA_OBJECT)


def json_schema(required: str, **properties: Any) -> dict[str, Any]:
    inner = record(required, **properties)
    return record("type json_schema", type={"const": "json_schema"}, json_schema=inner)


FULL_FORMAT = json_schema(
    "name schema",
    name=IDENTIFIER,
    description=TEXT,
    strict={"type": "boolean"},
    schema=SCHEMA_OBJECT,
)
COMMON = {
    "model": TEXT,
    "messages": MESSAGES,
    "temperature": NUMBER,
    "seed": WHOLE,
    "max_tokens": POSITIVE,
    "tools": TOOLS,
    "tool_choice": NAMED,
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
UNKNOWN = {
    ("openai", "json_object_schema"),
    ("vllm", "json_object_schema"),
    ("ollama", "json_object_schema"),
    ("llama-cpp-python", "json_schema"),
}
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


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("mode", MODES)
def test_each_body_fits_each_server(task: Any, mode: str, server: str) -> None:
    one = task()
    sent = sent_parameters(Sampling(), Found(mode), one.max_tokens)
    again = ask_again(one.messages, "no", ["it is no JSON"])
    for messages in (one.messages, again, CANARY.messages, MISLED.messages):
        body = request_body("judge", messages, one.schema, mode, sent)
        assert bool(faults(server, body)) == ((server, mode) in UNKNOWN)


def test_openai_is_never_asked_in_an_unknown_way(fake_judge: Any, judge: Any, task: Any) -> None:
    """What it documents comes first, so the words of others are not tried on it."""
    assert judge().ask(task()).ok
    assert all(not faults("openai", body) for body in fake_judge.chats(canaries=True))


@pytest.mark.parametrize("server", ["openai", "vllm", "llama.cpp"])
def test_the_new_name_of_the_limit_fits(task: Any, server: str) -> None:
    found = Found("json_schema", ("max_tokens", "temperature"))
    sent = sent_parameters(Sampling(), found, 500)
    assert sent == {"seed": 0, "max_completion_tokens": 500}
    body = request_body("judge", task().messages, task().schema, "json_schema", sent)
    assert faults(server, body) == []


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
    found = Found("plain")
    assert sent_parameters(Sampling(seed=5), found, 10, repeat=2)["seed"] == 7
    assert sent_parameters(Sampling(None, None), found, 10) == {"max_tokens": 10}
    extra = Sampling(extra={"top_p": 0.9})
    assert sent_parameters(extra, found, 10)["top_p"] == 0.9
    with pytest.raises(ValueError, match="messages is set by the toolkit"):
        Sampling(extra={"messages": []})


def test_the_best_way_that_works_is_taken(fake_judge: Any, judge: Any, task: Any) -> None:
    for number, mode in enumerate(MODES):
        fake_judge.modes = set(MODES[number:])
        fake_judge.bot.seen.clear()
        client = judge()
        assert client.found == Found(mode)
        assert len(fake_judge.chats(canaries=True)) == number + 1
        verdict = client.ask(task())
        assert (verdict.ok, verdict.mode) == (True, mode)
        assert verdict.sent["mode"] == client.describe()["mode"] == mode


@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_a_way_that_the_server_refuses_is_passed_over(
    fake_judge: Any, judge: Any, status: int
) -> None:
    fake_judge.modes = {"json_object"}
    fake_judge.unknown_mode = lambda mode: fake_judge.fails(status, f"{mode} is unknown")
    assert judge().found.mode == "json_object"


def test_a_schema_that_only_advises_is_found_out(fake_judge: Any, judge: Any) -> None:
    """Such a server shows the model the schema at most: the model writes what the prompt says."""
    asked = fake_judge.says('{"wet": "it depends", "code": "harbour"}')
    filled = fake_judge.says({"wet": "yes", "code": "zq-17-umber"})

    def advises(exchange: Any) -> None:
        misled = "harbour" in exchange.json()["messages"][1]["content"]
        (asked if misled else filled)(exchange)

    fake_judge.script("water", advises)
    assert judge().found == Found("tool")
    ways = [sorted(body.keys() & {"response_format", "tools"}) for body in fake_judge.chats(True)]
    assert ways == [["response_format"], ["response_format"], ["tools"]]
    with pytest.raises(Exception, match=r"in any way .json_schema: wet: 'it depends' is not one"):
        judge(mode="json_schema")


def test_no_way_works(fake_judge: Any, judge: Any) -> None:
    fake_judge.modes = set()
    with pytest.raises(Exception, match=r"form of two fields in any way .json_schema: the reply"):
        judge()
    fake_judge.unknown_mode = lambda mode: fake_judge.fails(404, "model judge not found")
    with pytest.raises(Exception, match=r"no such model or address .HTTP 404.*judge not found"):
        judge()
    fake_judge.unknown_mode = lambda mode: fake_judge.fails(500, "boom")
    with pytest.raises(Exception, match="the judge's server fails: HTTP 500") as caught:
        judge()
    assert getattr(caught.value, "exit_code", None) == 3


def test_a_chosen_way_is_the_only_one_tried(fake_judge: Any, judge: Any) -> None:
    assert judge(mode="json_object").found.mode == "json_object"
    fake_judge.modes = {"plain"}
    with pytest.raises(Exception, match=r"in any way .tool: "):
        judge(mode="tool")
    with pytest.raises(Exception, match="unknown way to ask for JSON: 'xml'"):
        judge(mode="xml")


def test_what_worked_before_is_tried_first(fake_judge: Any, judge: Any) -> None:
    client = judge(ready=False)
    client.identify()
    assert client.probe(Found("tool", ("seed",))) == Found("tool", ("seed",))
    (canary,) = fake_judge.chats(canaries=True)
    assert "tools" in canary
    assert "seed" not in canary


def test_refused_parameters_are_left_out_and_recorded(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    """As newer models do: no temperature, and another name of the limit."""

    def newer(exchange: Any) -> None:
        for name in ("max_tokens", "temperature"):
            if name in exchange.json():
                fake_judge.refuses(name)(exchange)
                return
        fake_judge.bot.default(exchange)

    fake_judge.script("water", newer)
    fake_judge.script("ships", newer)
    client = judge()
    assert client.found == Found("json_schema", ("max_tokens", "temperature"))
    assert client.describe()["dropped_params"] == ["max_tokens", "temperature"]
    assert client.describe()["parameters"] == {"seed": 0}
    verdict = client.ask(task())
    assert (verdict.ok, verdict.attempts) == (True, 1)
    assert verdict.sent == {"mode": "json_schema", "seed": 0, "max_completion_tokens": 500}


def test_a_parameter_that_is_refused_only_later(fake_judge: Any, judge: Any, task: Any) -> None:
    fake_judge.script("ships", fake_judge.refuses("seed"))
    client = judge()
    verdict = client.ask(task())
    assert (verdict.ok, verdict.attempts, verdict.asks) == (True, 2, 1)
    assert client.found.dropped == ("seed",)
    assert client.ask(task()).attempts == 1


@pytest.mark.parametrize(
    ("message", "dropped"),
    [
        ("Unrecognized request argument supplied: seed", ("seed",)),
        (
            "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'not permitted'}]",
            ("seed",),
        ),
        ("Unsupported value: 'temperature' does not support 0", ("temperature",)),
        ("`temperature` must be strictly positive", ("temperature",)),
        ("max_tokens is too large: 500. This model supports at most 100 tokens", ()),
        ("Invalid 'max_tokens': integer above maximum value", ()),
        ("the seeds of doubt are not supported", ()),
        ("something is invalid", ()),
    ],
)
def test_which_messages_name_a_parameter(
    fake_judge: Any, judge: Any, task: Any, message: str, dropped: tuple[str, ...]
) -> None:
    fake_judge.script("ships", fake_judge.fails(400, message))
    client = judge()
    assert client.ask(task()).failure == "rejected"
    assert client.found.dropped == dropped


def test_one_call_of_the_function_and_no_more(
    fake_judge: Any, judge: Any, task: Any, good: Any
) -> None:
    fake_judge.modes = {"tool"}
    client = judge()
    call = {"function": {"name": "verdict", "arguments": good}}  # an object, as some servers give
    for calls, reason, kind in [
        ([call], "tool_calls", None),
        ([call], "stop", None),
        ([call, call], "tool_calls", "malformed"),
        ([call], "length", "truncated"),
    ]:
        message = {"message": {"tool_calls": calls, "content": None}}
        fake_judge.script("ships", fake_judge.says(good, finish_reason=reason, **message))
        assert client.ask(task()).failure == kind

"""Which way of asking for JSON is taken, and which parameters a server refuses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.rows import each_row

from clients.http import finish
from judging.protocols import ServerCapabilities
from records.verdicts import MODES


def test_the_best_way_that_works_is_taken(fake_judge: Any, judge: Any, task: Any) -> None:
    for number, mode in enumerate(MODES):
        fake_judge.modes = set(MODES[number:])
        fake_judge.bot.seen.clear()
        client = judge()
        assert client.capabilities == ServerCapabilities(mode)
        assert len(fake_judge.chats(canaries=True)) == number + 1
        verdict = finish(client.ask(task()))
        assert (verdict.ok, verdict.mode) == (True, mode)
        assert verdict.sent["mode"] == client.describe()["mode"] == mode


@each_row("status", [400, 404, 422, 500])
def test_a_way_that_the_server_refuses_is_passed_over(
    fake_judge: Any, judge: Any, status: int
) -> None:
    fake_judge.modes = {"json_object"}
    fake_judge.unknown_mode = lambda mode: fake_judge.fails(status, f"{mode} is unknown")
    assert judge().capabilities.mode == "json_object"


def test_a_schema_that_only_advises_is_found_out(fake_judge: Any, judge: Any) -> None:
    """Such a server shows the model the schema at most: the model writes what the prompt says."""
    asked = fake_judge.says('{"wet": "it depends", "code": "harbour"}')
    filled = fake_judge.says({"wet": "yes", "code": "zq-17-umber"})

    def advises(exchange: Any) -> None:
        misled = "harbour" in exchange.json()["messages"][1]["content"]
        (asked if misled else filled)(exchange)

    fake_judge.script("water", advises)
    assert judge().capabilities == ServerCapabilities("tool")
    ways = [sorted(body.keys() & {"response_format", "tools"}) for body in fake_judge.chats(True)]
    assert ways == [["response_format"], ["response_format"], ["tools"]]
    with pytest.raises(Exception, match=r"in any mode .json_schema: wet: 'it depends' is not one"):
        judge(mode="json_schema")


def test_no_way_works(fake_judge: Any, judge: Any) -> None:
    fake_judge.modes = set()
    with pytest.raises(
        Exception, match=r"form of two fields in any mode .json_schema, .*, plain: the reply"
    ):
        judge()
    fake_judge.unknown_mode = lambda mode: fake_judge.fails(404, "model judge not found")
    with pytest.raises(Exception, match=r"no such model or address .HTTP 404.*judge not found"):
        judge()
    fake_judge.unknown_mode = lambda mode: fake_judge.fails(500, "boom")
    with pytest.raises(Exception, match="the judge's server fails: HTTP 500") as caught:
        judge()
    assert getattr(caught.value, "exit_code", None) == 3


def test_a_chosen_way_is_the_only_one_tried(fake_judge: Any, judge: Any) -> None:
    assert judge(mode="json_object").capabilities.mode == "json_object"
    fake_judge.modes = {"plain"}
    with pytest.raises(Exception, match=r"in any mode .tool: "):
        judge(mode="tool")
    with pytest.raises(Exception, match="unknown way to ask for JSON: 'xml'"):
        judge(mode="xml")


def test_what_worked_before_is_tried_first(fake_judge: Any, judge: Any) -> None:
    client = judge(ready=False)
    client.identify()
    found = ServerCapabilities("tool", ("seed",))
    assert client.probe(found) == found
    (canary,) = fake_judge.chats(canaries=True)
    assert ("tools" in canary, "seed" in canary) == (True, False)


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
    assert client.capabilities == ServerCapabilities("json_schema", ("max_tokens", "temperature"))
    assert client.describe()["dropped_params"] == ["max_tokens", "temperature"]
    assert client.describe()["parameters"] == {"seed": 0}
    verdict = finish(client.ask(task()))
    assert (verdict.ok, verdict.attempts) == (True, 1)
    assert verdict.sent == {"mode": "json_schema", "seed": 0, "max_completion_tokens": 500}


def test_a_parameter_that_is_refused_only_later(fake_judge: Any, judge: Any, task: Any) -> None:
    fake_judge.script("ships", fake_judge.refuses("seed"))
    client = judge()
    verdict = finish(client.ask(task()))
    assert (verdict.ok, verdict.attempts, verdict.asks) == (True, 2, 1)
    assert client.capabilities.dropped == ("seed",)
    assert finish(client.ask(task())).attempts == 1


@each_row(
    ("message", "dropped"),
    [
        ("Unrecognized request argument supplied: seed", ("seed",)),
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'no'}]", ("seed",)),
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
    assert finish(client.ask(task())).failure == "rejected"
    assert client.capabilities.dropped == dropped


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
        assert finish(client.ask(task())).failure == kind

"""How a server is asked: with less of a schema, with room to think, after one small trial."""

from __future__ import annotations

import json
from typing import Any

import pytest

from storage import RetrievedChunk


@pytest.mark.parametrize("word", ["maxLength", "minItems"])
def test_a_server_that_refuses_parts_of_a_schema_gets_it_without(
    run: Any, server: Any, word: str
) -> None:
    run.write()

    def picky(server: Any, body: dict[str, Any]) -> tuple[int, Any]:
        if word in json.dumps(body["response_format"]):
            return 400, {"error": {"message": f"Invalid schema: {word} is not permitted."}}
        reply: tuple[int, Any] = server.support(body)
        return reply

    server.reply = picky
    assert run.judge(*server.words())["mean"]["faithfulness"] == 1.0
    config = json.loads((run.finished.run / "config.json").read_text("utf-8"))
    assert f"schema:{word}" in config["judge"]["dropped_params"]
    calls = len(server.calls)
    run.judge(*server.words())
    assert len(server.calls) == calls, "all from the cache, nothing is tried again"
    (run.finished.run / "verdicts.jsonl").unlink()
    assert run.judge(*server.words("--offline"))["mean"]["faithfulness"] == 1.0


@pytest.mark.parametrize("named", [(), ("--model", "judge-2025-01-01"), ("--judge", "local")])
def test_offline_counts_the_models_verdicts(run: Any, server: Any, named: tuple[str, ...]) -> None:
    """The rules find 2 of 3 claims supported; the model found all, and is meant."""
    run.write()
    run.judge(*server.words())
    (run.finished.run / "verdicts.jsonl").unlink()
    words = (*named, "--set", "revision=r1", "--offline", "--metrics", "groundedness")
    if named == ("--judge", "local"):
        words = (*words, "--model", "judge-2025-01-01")
    assert run.judge(*words)["mean"]["faithfulness"] == 1.0
    assert {line["judge"]["model"] for line in run.lines()} == {"judge-2025-01-01"}


def test_a_thinking_model_gets_room_and_a_cut_reply_says_how(run: Any, server: Any) -> None:
    run.write()
    server.reply = lambda server, body: (200, server.completion('{"notes": "', "length"))
    done = run.call(*server.words())
    assert "--set thinking_tokens=" in done.stderr
    rooms = {call["max_tokens"] for call in server.calls if "verdicts" in schema_of(call)}
    server.reply = type(server).support
    run.judge(*server.words("--set", "thinking_tokens=4000"))
    more = {call["max_tokens"] for call in server.calls if "verdicts" in schema_of(call)} - rooms
    assert more == {tokens + 4000 for tokens in rooms}
    run.judge(*server.words("--set", "thinking_tokens=4000", "--offline"))


def schema_of(body: dict[str, Any]) -> str:
    return json.dumps(body.get("response_format"))


def test_the_way_to_ask_is_tried_once_a_run_before_the_first_call(run: Any, server: Any) -> None:
    def canaries() -> int:
        return sum("wet" in json.dumps(call) for call in server.calls)

    run.write()
    run.judge(*server.words())
    assert canaries() == 1
    run.judge(*server.words())
    assert canaries() == 1, "a run that asks nothing tries nothing"
    run.judge(*server.words("--repeats", "3"))
    assert canaries() == 2


def test_an_estimate_counts_what_the_provider_remembers(run: Any, server: Any) -> None:
    """Three opinions on one answer share their prompt: two of three are read from memory, in steps
    of 128 tokens, and cost a tenth."""
    text = "The fee is 15 euros. " * 400
    result = run.result(
        "good", "The fee is 15 euros.", retrieved=[RetrievedChunk("k1", text=text, rank=1)]
    )
    run.write([{"id": "good", "category": "factual"}], [result])
    prices = ("--set", "prices.prompt=10", "--set", "prices.completion=0")
    words = server.words(*prices, "--set", "prices.cached=1", "--repeats", "3", "--dry-run")
    found = run.call(*words, "--json")
    report = json.loads(found.stdout)
    one = report["prompt_tokens"] / 3
    assert report["calls"] == 3
    assert one > 2000
    assert 2 * (one - 128) <= report["remembered_tokens"] + 2 * 400 <= 2 * one + 2 * 400
    fresh = report["prompt_tokens"] - report["remembered_tokens"]
    assert report["cost_usd"] == (fresh * 10 + report["remembered_tokens"]) / 1e6
    assert "of them from the provider's memory, about" in run.call(*words).stdout
    without = json.loads(run.call(*server.words(*prices, "--dry-run", "--json")).stdout)
    assert without["remembered_tokens"] == 0

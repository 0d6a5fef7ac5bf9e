"""What no bot should send: it ends the call with an error of its kind, never the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from clients.bot import ChatApi, Question
from clients.http import finish
from clients.secrets import Headers
from records.results import ErrorInfo

MakeApi = Callable[..., ChatApi]


def failure(client: ChatApi) -> ErrorInfo:
    result = finish(client.ask(Question("case", "q"))).result
    assert result.status == "error"
    assert result.answer is None
    assert result.error is not None
    return result.error


@pytest.mark.parametrize("depth", [101, 300, 900])
@pytest.mark.parametrize("secrets", [(), ("tok-1234",)])
def test_nesting_too_deep(
    fake_bot: Any, api: MakeApi, depth: int, secrets: tuple[str, ...]
) -> None:
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    body = b'{"answer": "a", "retrieved": [], "guardrail": ' + nested + b"}"
    fake_bot.default = lambda exchange: exchange.raw(body)
    error = failure(api(headers=Headers({}, secrets)))
    assert error.kind == "malformed"
    assert "100 nested levels" in error.message


def test_nesting_as_deep_as_allowed_can_be_written(fake_bot: Any, api: MakeApi) -> None:
    # the answer itself is level 1
    nested = b'{"a":' * 99 + b"1" + b"}" * 99
    body = b'{"answer": "a", "retrieved": [], "guardrail": ' + nested + b"}"
    fake_bot.default = lambda exchange: exchange.raw(body)
    result = finish(api(headers=Headers({}, ("tok-1234",))).ask(Question("case", "q"))).result
    assert result.status == "ok"
    assert orjson.dumps(result.to_dict()).count(b'"a":') == 99


def test_many_brackets_are_not_many_levels(fake_bot: Any, api: MakeApi) -> None:
    chunks = [{"chunk_id": f"c{number}"} for number in range(500)]
    fake_bot.default = lambda exchange: exchange.reply({"answer": "a", "retrieved": chunks})
    assert len(finish(api().ask(Question("case", "q"))).result.chunks()) == 500


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"cost_usd": -0.5}, "cost_usd"),
        ({"cost_usd": 1e300}, "cost_usd"),
        ({"usage": {"tokens": -1}}, "usage.tokens"),
        ({"usage": {"tokens": 2**64 - 1}}, "usage.tokens"),
        ({"usage": {"tokens": 1e300}}, "usage.tokens"),
    ],
)
def test_a_count_or_price_that_is_none(fake_bot: Any, api: MakeApi, more: Any, field: str) -> None:
    """A negative price would make a run cheaper, the sum of huge counts be no number of JSON."""
    fake_bot.default = lambda exchange: exchange.reply(fake_bot.answer("q", **more))
    error = failure(api())
    assert error.kind == "mapping"
    assert error.message.startswith(field)


def test_an_id_that_is_a_number_is_told_how_to_become_a_text(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.default = lambda exchange: exchange.reply(
        {"answer": "a", "retrieved": [{"chunk_id": 7}]}
    )
    error = failure(api())
    assert error.message.startswith("retrieved[0].chunk_id: ")
    assert "to_string" in error.message


def test_an_empty_id_is_no_id(fake_bot: Any, api: MakeApi) -> None:
    chunks = [{"chunk_id": "", "text": text} for text in ("one", "two")]
    fake_bot.default = lambda exchange: exchange.reply({"answer": "a", "retrieved": chunks})
    result = finish(api().ask(Question("case", "q"))).result
    ids = {chunk.chunk_id for chunk in result.chunks()}
    assert len(ids) == 2
    assert "" not in ids

"""What no bot should send: it ends the call with an error of its kind, never the run."""

from __future__ import annotations

import gzip
import threading
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


@pytest.mark.parametrize(
    "location", ["http://[::1/x", "http://127.0.0.1:99999/x", "http://127.0.0.1:port/x", "//[/", ""]
)
def test_a_redirect_to_no_address(fake_bot: Any, api: MakeApi, location: str) -> None:
    fake_bot.default = lambda exchange: exchange.raw(b"", 307, Location=location)
    assert failure(api()).kind == "redirect"
    assert fake_bot.asked["q"] == 1


@pytest.mark.parametrize("announce", [True, False])
def test_a_huge_body_is_cut_off(fake_bot: Any, api: MakeApi, announce: bool) -> None:
    total, limit = 200 * 2**20, 2**20
    sent: list[int] = []
    left = threading.Event()

    def flood(exchange: Any) -> None:
        sent.append(exchange.stream(total, announce))
        left.set()

    fake_bot.default = flood
    assert failure(api(max_bytes=limit)).kind == "too_large"
    assert fake_bot.asked["q"] == 1
    assert left.wait(60)
    # the limit, and what lies in the sockets' buffers
    assert sent[0] < 40 * 2**20


def test_a_body_that_unpacks_beyond_the_limit(fake_bot: Any, api: MakeApi) -> None:
    packed = gzip.compress(b" " * (30 * 2**20))
    fake_bot.default = lambda exchange: exchange.raw(packed, Content_Encoding="gzip")
    assert failure(api(max_bytes=2**20)).kind == "too_large"


@pytest.mark.parametrize("depth", [101, 300, 900])
@pytest.mark.parametrize("secrets", [(), ("tok-1234",)])
def test_an_answer_that_is_nested_too_deep(
    fake_bot: Any, api: MakeApi, depth: int, secrets: tuple[str, ...]
) -> None:
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    body = b'{"answer": "a", "retrieved": [], "guardrail": ' + nested + b"}"
    fake_bot.default = lambda exchange: exchange.raw(body)
    error = failure(api(headers=Headers({}, secrets)))
    assert error.kind == "malformed"
    assert "100 nested levels" in error.message


def test_an_answer_that_is_nested_as_deep_as_allowed_can_be_written(
    fake_bot: Any, api: MakeApi
) -> None:
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
def test_a_count_or_a_price_that_is_none(
    fake_bot: Any, api: MakeApi, more: dict[str, Any], field: str
) -> None:
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


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n", "too many headers"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", "too long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "contradict"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n", "match its framing"),
        (b"SSH-2.0-x\r\n", "does not speak HTTP"),
    ],
    ids=["headers", "long", "lengths", "frames", "no HTTP"],
)
def test_what_is_no_http_is_told_in_words(
    fake_bot: Any, api: MakeApi, sent: bytes, words: str
) -> None:
    def answer(exchange: Any) -> None:
        exchange.handler.wfile.write(sent)
        exchange.handler.close_connection = True

    fake_bot.default = answer
    error = failure(api())
    assert error.kind == "connection"
    assert words in error.message


@pytest.mark.parametrize(
    "url", ["http://exa mple", "http://a..b", f"http://{'a' * 80}.invalid", "http://x%zz"]
)
def test_a_host_that_is_none_is_no_connection(api: MakeApi, url: str) -> None:
    asked = finish(api(url=url).ask(Question("case", "q")))
    assert asked.result.error is not None
    assert asked.result.error.message == "the URL has no valid host"
    assert not asked.connected


@pytest.mark.parametrize(
    ("variable", "value", "url", "words"),
    [
        ("REQUESTS_CA_BUNDLE", "/none/such.pem", "https://bot.invalid", "/none/such.pem"),
        ("http_proxy", "socks5://127.0.0.1:9", "http://bot.invalid", "SOCKS"),
        ("http_proxy", ":::x", "http://bot.invalid", "no valid host"),
    ],
)
def test_settings_that_reach_nobody_are_told(
    monkeypatch: pytest.MonkeyPatch, api: MakeApi, variable: str, value: str, url: str, words: str
) -> None:
    for name in ("no_proxy", "NO_PROXY", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    asked = finish(api(url=url).ask(Question("case", "q")))
    assert asked.result.error is not None
    assert words in asked.result.error.message
    assert not asked.connected


def test_a_proxy_that_refuses_says_so(
    fake_bot: Any, monkeypatch: pytest.MonkeyPatch, api: MakeApi
) -> None:
    """The scripted bot as the proxy: it knows no CONNECT and says 501."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", fake_bot.url)
    asked = finish(api(url="https://bot.invalid").ask(Question("case", "q")))
    assert asked.result.error is not None
    assert asked.result.error.message.startswith("Tunnel connection failed: 501")
    assert not asked.connected

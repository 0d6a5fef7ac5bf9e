"""Which transport sends, and what the one of many calls does that the other need not."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from clients.http_aiohttp import AiohttpTransport
from clients.http_requests import HttpTransport

from clients.bot import ChatApi
from clients.http import CallError, ask_all
from clients.profile import load_profile
from clients.transport import MOST_WITH_REQUESTS, open_transport
from judging.server import HttpJudge

PROFILES = Path(__file__).parents[2] / "eval" / "profiles"
BODY = b'{"question": "q"}'


def test_requests_up_to_its_limit_and_where_there_is_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    few, many = MOST_WITH_REQUESTS, MOST_WITH_REQUESTS + 1
    assert isinstance(open_transport("http://bot.invalid", connections=few), HttpTransport)
    assert isinstance(open_transport("http://bot.invalid", connections=many), AiohttpTransport)
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    assert isinstance(open_transport("http://bot.invalid", connections=many), HttpTransport)
    assert isinstance(open_transport("http://127.0.0.1:1", connections=many), AiohttpTransport)


def test_bot_and_judge_take_it_by_their_connections() -> None:
    api = ChatApi("http://127.0.0.1:1", load_profile("default", PROFILES), connections=64)
    assert isinstance(api._transport, AiohttpTransport)
    judge: Any = HttpJudge("http://127.0.0.1:1/v1", "m-2025-01-01", connections=64)
    assert isinstance(judge._channel._transport, AiohttpTransport)


def test_the_same_request_goes_out(fake_bot: Any) -> None:
    """Headers as given, and none that a library adds of itself."""
    sent = {"User-Agent": "rag", "Accept": "application/json", "Accept-Encoding": "gzip, deflate"}
    url = f"{fake_bot.url}/a%20b/é?x=1%2F2&y=%41"
    for transport in (HttpTransport(url), AiohttpTransport(url)):
        transport.send("POST", url, sent, BODY, 5)
        transport.close()
    first, second = fake_bot.seen
    assert first.path == second.path
    assert first.body == second.body == BODY
    assert {name.lower(): value for name, value in first.headers.items()} == {
        name.lower(): value for name, value in second.headers.items()
    }


@pytest.mark.parametrize("transport", [HttpTransport, AiohttpTransport])
def test_each_call_has_its_own_headers(fake_bot: Any, transport: Any) -> None:
    """Headers of an earlier call of the same address are not sent again."""
    client = transport(fake_bot.url)
    for header in ({"X-Call": "1", "X-First": "yes"}, {"X-Call": "2"}, {"X-Call": "1"}):
        client.send("POST", fake_bot.url, header, BODY, 20)
    client.close()
    headers = [exchange.headers for exchange in fake_bot.seen]
    assert [header["X-Call"] for header in headers] == ["1", "2", "1"]
    assert ["X-First" in header for header in headers] == [True, False, False]


def test_many_threads_share_the_loop_and_keep_their_answers(fake_bot: Any) -> None:
    transport = AiohttpTransport(fake_bot.url)

    def ask(number: int) -> tuple[int, bytes]:
        body = b'{"question": "q%d"}' % number
        return number, transport.send("POST", fake_bot.url, {}, body, 20).body

    answers = dict(ask_all(range(200), ask, 40, threading.Event()))
    assert len(answers) == 200
    assert all(b'"answer to q%d [1]"' % number in body for number, body in answers.items())
    transport.close()


def test_closing_fails_what_is_under_way_and_the_next_call_opens_anew(fake_bot: Any) -> None:
    fake_bot.script("q", lambda exchange: exchange.hang(), fake_bot.reply_properly)
    transport = AiohttpTransport(fake_bot.url)
    errors: list[str] = []

    def ask() -> None:
        with pytest.raises(CallError) as failed:
            transport.send("POST", fake_bot.url, {}, BODY, 60)
        errors.append(failed.value.message)

    thread = threading.Thread(target=ask)
    thread.start()
    while not fake_bot.asked["q"]:
        thread.join(0.01)
    transport.close()
    thread.join(60)
    assert errors == ["the transport was closed"]
    assert transport.send("POST", fake_bot.url, {}, BODY, 20).status == 200
    transport.close()


def test_pieces_of_a_stream_have_their_times(fake_bot: Any) -> None:
    def slowly(exchange: Any) -> None:
        exchange.handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        exchange.drip(b"abcd", 0.02)

    fake_bot.default = slowly
    transport = AiohttpTransport(fake_bot.url, timed=True)
    reply = transport.send("POST", fake_bot.url, {}, BODY, 20)
    transport.close()
    assert reply.body == b"abcd"
    sizes = [size for size, _ in reply.arrivals]
    moments = [moment for _, moment in reply.arrivals]
    assert len(sizes) >= 2
    assert sizes[-1] == 4
    assert moments == sorted(moments)
    assert reply.seconds >= moments[-1] >= 0.02

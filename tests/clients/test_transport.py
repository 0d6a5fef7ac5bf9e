"""How requests are sent: one loop, connections that stay open, deadlines, TLS and proxies."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from clients.http import CallError, Reply, ask_all, finish
from clients.transport import HttpTransport

BODY = b'{"question": "q"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def send(client: HttpTransport, url: str, seconds: float = 60, **headers: str) -> Reply:
    try:
        return finish(client.send("POST", url, headers, BODY, seconds))
    finally:
        client.close()


def test_each_call_has_its_own_headers(fake_bot: Any) -> None:
    """Headers of an earlier call of the same address are not sent again."""
    client = HttpTransport(fake_bot.url)
    for header in ({"X-Call": "1", "X-First": "yes"}, {"X-Call": "2"}, {"X-Call": "1"}):
        finish(client.send("POST", fake_bot.url, header, BODY, 60))
    client.close()
    headers = [exchange.headers for exchange in fake_bot.seen]
    assert [header["X-Call"] for header in headers] == ["1", "2", "1"]
    assert ["X-First" in header for header in headers] == [True, False, False]


def test_pieces_of_a_stream_have_their_times(fake_bot: Any) -> None:
    def slowly(exchange: Any) -> None:
        exchange.handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        exchange.drip(b"abcd", 0.02)

    fake_bot.default = slowly
    reply = send(HttpTransport(fake_bot.url), fake_bot.url)
    assert reply.body == b"abcd"
    sizes = [size for size, _ in reply.arrivals]
    moments = [moment for _, moment in reply.arrivals]
    assert len(sizes) >= 2
    assert sizes[-1] == 4
    assert moments == sorted(moments)
    assert reply.seconds >= moments[-1] >= 0.02


def test_work_that_holds_the_loop_up_costs_no_other_call_its_answer(fake_bot: Any) -> None:
    """Answers that came while a huge one was read are read before their deadline counts."""
    transport = HttpTransport(fake_bot.url)
    transport_of_first = HttpTransport(fake_bot.url)
    begun = threading.Event()

    def late(exchange: Any) -> None:
        begun.wait(60)  # the answer comes while the loop stands still
        fake_bot.reply_properly(exchange)

    fake_bot.script("late", late)

    async def ask(name: str) -> int:
        if name == "late":
            body = b'{"question": "late"}'
            return len((await transport.send("POST", fake_bot.url, {}, body, 1.0)).body)
        await transport_of_first.send("POST", fake_bot.url, {}, BODY, 60)
        while not fake_bot.asked["late"]:
            await asyncio.sleep(0.001)
        begun.set()
        time.sleep(1.5)
        return 0

    sizes = sorted(ask_all(["huge", "late"], ask, 2, threading.Event()))
    assert sizes[0] == 0
    assert sizes[1] > 100
    transport.close()
    transport_of_first.close()


def test_a_call_that_hangs_ends_on_time_though_another_one_works(fake_bot: Any) -> None:
    fake_bot.script("q", fake_bot.reply_properly, lambda exchange: exchange.hang())
    transport = HttpTransport(fake_bot.url, timeout=0.2)
    finish(transport.send("POST", fake_bot.url, {}, BODY, 60))

    async def ask(name: str) -> str:
        if name == "busy":
            for _ in range(20):
                time.sleep(0.06)  # each time longer than a deadline may be late
                await asyncio.sleep(0)
            return "done"
        with pytest.raises(CallError) as failed:
            await transport.send("POST", fake_bot.url, {}, BODY, 0.2)
        return failed.value.message

    first, second = ask_all(["hangs", "busy"], ask, 2, threading.Event())
    assert first == "no complete answer within 0.2 s"
    assert second == "done"
    transport.close()


def test_closing_breaks_off_what_is_under_way(fake_bot: Any) -> None:
    fake_bot.script("hangs", lambda exchange: exchange.hang())
    transport = HttpTransport(fake_bot.url)

    async def ask(name: str) -> int:
        body = b'{"question": "%b"}' % name.encode()
        return (await transport.send("POST", fake_bot.url, {}, body, 60)).status

    start = time.monotonic()
    answers = ask_all(["hangs", "quick"], ask, 2, threading.Event())
    assert next(answers) == 200
    answers.close()
    assert time.monotonic() - start < 30
    assert finish(transport.send("POST", fake_bot.url, {}, BODY, 60)).status == 200
    transport.close()

"""The client against a real HTTP server: what each failure becomes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import pytest

from clients.bot import ChatApi, Question
from clients.http import (
    KINDS,
    RetryPolicy,
    ask_all,
    call_with_retries,
    finish,
)
from clients.limits import Interrupted
from clients.secrets import Headers
from records.results import TestResult

QUICK = RetryPolicy(timeout=60, retries=2, backoff=0.001)
IMPATIENT = RetryPolicy(timeout=0.3, retries=1, backoff=0.05)
MakeApi = Callable[..., ChatApi]


def ask(client: ChatApi, text: str = "q", **more: Any) -> TestResult:
    return finish(client.ask(Question("case", text, **more))).result


def kind(result: TestResult) -> str:
    """The error kind; a failed call has nothing that a scorer could take for an answer."""
    assert result.status == "error"
    assert result.error is not None
    assert result.error.kind in KINDS
    assert result.answer is None
    assert result.retrieved is None
    return result.error.kind


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "malformed"),
        (b"  \n", "malformed"),
        (b"<html><body>busy</body></html>", "malformed"),
        (b'{"answer": "a", "retrieved": [', "malformed"),
        (b'{"answer": "a", "retrieved": [], "confidence": NaN}', "malformed"),
        (b'{"answer": "a", "retrieved": [], "confidence": Infinity}', "malformed"),
        (b'{"answer": "a", "retrieved": [], "confidence": 1e999}', "malformed"),
        ('{"answer": "é", "retrieved": []}'.encode("latin-1"), "malformed"),
        ('{"answer": "a", "retrieved": []}'.encode("utf-16"), "malformed"),
        (b'{"answer": "\\ud800", "retrieved": []}', "malformed"),
        (b"[" * 5000, "malformed"),
        (b"[]", "no_answer"),
        (b"null", "no_answer"),
        (b'"answer"', "no_answer"),
        (b'{"answer": 42, "retrieved": []}', "mapping"),
        (b'{"answer": null, "retrieved": []}', "no_answer"),
        (b'{"answer": " \\n", "retrieved": []}', "no_answer"),
        (b'{"retrieved": [], "detail": "no such index"}', "bot_error"),
        (b'{"retrieved": [], "message": "quota"}', "bot_error"),
        (b'{"answer": "a", "retrieved": "c1"}', "mapping"),
        (b'{"answer": "a", "retrieved": [17]}', "mapping"),
        (b'{"answer": "a", "retrieved": [{}]}', "mapping"),
        (b'{"answer": "a", "retrieved": [{"chunk_id": 5}]}', "mapping"),
        (b'{"answer": "a", "retrieved": [{"chunk_id": "c", "score_final": "high"}]}', "mapping"),
        (b'{"answer": "a", "retrieved": [{"chunk_id": "c", "rank": 0}]}', "mapping"),
        (b'{"answer": "a", "retrieved": [], "abstained": "no"}', "mapping"),
        (b'{"answer": "a", "retrieved": [], "latency_ms": {"total": -1}}', "mapping"),
        (b'{"answer": "a", "retrieved": [], "latency_ms": {"total": "5 ms"}}', "mapping"),
        (b'{"answer": "a", "retrieved": [], "latency_ms": 5}', "mapping"),
        (b'{"answer": "a", "retrieved": [], "references": {}}', "mapping"),
        (b'{"error": {"message": "index is being built"}}', "bot_error"),
    ],
)
def test_unusable_bodies_are_asked_once(
    fake_bot: Any, api: MakeApi, body: bytes, expected: str
) -> None:
    fake_bot.default = lambda exchange: exchange.raw(body)
    assert kind(ask(api())) == expected
    assert fake_bot.asked["q"] == 1


@pytest.mark.parametrize(
    ("status", "expected", "tries"),
    [
        (400, "client_error", 1),
        (401, "client_error", 1),
        (404, "client_error", 1),
        (422, "client_error", 1),
        (429, "rate_limited", 3),
        (500, "server_error", 3),
        (501, "server_error", 1),
        (502, "server_error", 3),
        (503, "server_error", 3),
        (504, "server_error", 3),
        (505, "server_error", 1),
        (511, "server_error", 1),
        (524, "server_error", 3),
        (529, "server_error", 3),
    ],
)
def test_statuses(fake_bot: Any, api: MakeApi, status: int, expected: str, tries: int) -> None:
    # the body is a valid answer: the status alone makes it an error
    fake_bot.default = lambda exchange: exchange.reply(fake_bot.answer("q"), status)
    result = ask(api())
    assert kind(result) == expected
    assert result.error is not None
    assert result.error.message.startswith(f"HTTP {status}")
    assert result.error.attempts == fake_bot.asked["q"] == tries


@pytest.mark.parametrize("failure", ["status", "reset", "cut", "hang"])
def test_a_passing_failure_is_retried(fake_bot: Any, api: MakeApi, failure: str) -> None:
    ways: dict[str, Callable[[Any], None]] = {
        "status": lambda exchange: exchange.reply({}, 500),
        "reset": lambda exchange: exchange.reset(),
        "cut": lambda exchange: exchange.cut(json.dumps(fake_bot.answer("q")).encode()),
        "hang": lambda exchange: exchange.hang(),
    }
    fake_bot.script("q", ways[failure], fake_bot.reply_properly)
    policy = RetryPolicy(timeout=1.0, retries=1, backoff=0) if failure == "hang" else QUICK
    assert ask(api(policy=policy)).status == "ok"
    assert fake_bot.asked["q"] == 2


def test_retry_after_is_waited_for(
    fake_bot: Any, api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("clients.bot.call_with_retries", partial(call_with_retries, sleep=note))
    fake_bot.script(
        "q", lambda exchange: exchange.reply({}, 429, Retry_After="7"), fake_bot.reply_properly
    )
    result = ask(api())
    assert result.status == "ok"
    assert len(waits) == 1
    assert 7 <= waits[0] <= 7 + QUICK.backoff  # what the server asked for, and the jitter
    assert result.latency_ms["total"] == 5.0


def test_a_retry_after_beyond_the_time_of_the_call_is_not_waited_for(
    fake_bot: Any, api: MakeApi
) -> None:
    fake_bot.default = lambda exchange: exchange.reply({}, 429, Retry_After="86400")
    result = ask(api())
    assert kind(result) == "rate_limited"
    assert result.error is not None
    assert "86400" in result.error.message
    assert fake_bot.asked["q"] == 1


def test_waiting_for_a_retry_is_no_latency(fake_bot: Any, api: MakeApi) -> None:
    """Without times from the bot the client's own is taken: that of the last try alone."""
    answer = fake_bot.answer("q", latency_ms=None)
    fake_bot.script("q", lambda exchange: exchange.hang(), lambda exchange: exchange.reply(answer))
    result = ask(api(policy=RetryPolicy(timeout=1.0, retries=1, backoff=0)))
    # the first try took all of its 1 s; a total that held it would be above 1000
    assert 0 < result.latency_ms["total"] < 1000


@pytest.mark.parametrize("way", ["hang", "drip"])
def test_the_deadline_covers_the_whole_call(fake_bot: Any, api: MakeApi, way: str) -> None:
    """A byte now and then keeps every single read alive: only a deadline ends such a call."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Filler: " + b"a" * 5000
    ways: dict[str, Callable[[Any], None]] = {
        "hang": lambda exchange: exchange.hang(),
        "drip": lambda exchange: exchange.drip(head),
    }
    fake_bot.default = ways[way]
    result = ask(api(policy=IMPATIENT))
    assert kind(result) == "timeout"
    assert fake_bot.asked["q"] == 2
    # the option's number, although waiting left the second try a little less
    assert result.error is not None
    assert result.error.message == "no complete answer within 0.3 s"


def test_a_slow_body_is_ended_too(fake_bot: Any, api: MakeApi) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n"

    def slow_body(exchange: Any) -> None:
        exchange.handler.wfile.write(head)
        exchange.drip(b" " * 9000)

    fake_bot.default = slow_body
    assert kind(ask(api(policy=IMPATIENT))) == "timeout"


def test_compressed_answers_are_read(fake_bot: Any, api: MakeApi) -> None:
    packed = gzip.compress(json.dumps(fake_bot.answer("q")).encode())
    fake_bot.script("good", lambda exchange: exchange.raw(packed, Content_Encoding="gzip"))
    fake_bot.script("bad", lambda exchange: exchange.raw(packed[::-1], Content_Encoding="gzip"))
    assert ask(api(), "good").answer == "answer to q [1]"
    assert kind(ask(api(), "bad")) == "malformed"


def test_nobody_listens(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.close()
    asked = finish(api().ask(Question("case", "q")))
    assert kind(asked.result) == "connection"
    assert not asked.connected
    assert asked.result.error is not None
    assert asked.result.error.attempts == 3


def test_a_broken_connection_is_not_an_absent_bot(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.default = lambda exchange: exchange.reset()
    asked = finish(api().ask(Question("case", "q")))
    assert kind(asked.result) == "connection"
    assert asked.connected


def test_redirects(fake_bot: Any, api: MakeApi) -> None:
    def moved(exchange: Any, status: int, target: str) -> None:
        exchange.raw(b"", status, Location=target)

    fake_bot.script("here", lambda e: moved(e, 307, "/other"), fake_bot.reply_properly)
    fake_bot.script("away", lambda e: moved(e, 307, "http://other.invalid/api"))
    fake_bot.script("port", lambda e: moved(e, 308, "http://127.0.0.1:9/api"))
    fake_bot.script("get", lambda e: moved(e, 302, "/login"))
    fake_bot.script("circle", lambda e: moved(e, 307, "/api/v1/ask"))
    client = api()
    assert ask(client, "here").status == "ok"
    for name in ("away", "port", "get", "circle"):
        assert kind(ask(client, name)) == "redirect"
    assert fake_bot.asked["away"] == fake_bot.asked["get"] == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "127.0.0.1.nip.invalid"])
def test_a_redirect_to_another_host_does_not_get_the_key(
    fake_bot: Any, api: MakeApi, host: str
) -> None:
    """Scheme, port and method are kept, so that the host alone stands between it and the key."""
    port = urlsplit(fake_bot.url).port
    target = f"http://{host}:{port}/elsewhere"
    fake_bot.script("away", lambda e: e.raw(b"", 307, Location=target), fake_bot.reply_properly)
    client = api(headers=Headers({"Authorization": "Bearer sk-key"}, ("sk-key",)))
    result = ask(client, "away")
    assert kind(result) == "redirect"
    assert result.error is not None
    assert result.error.message == f"HTTP 307 to another host ({host}); not followed"
    assert [exchange.path for exchange in fake_bot.seen if "elsewhere" in exchange.path] == []
    assert fake_bot.asked["away"] == 1


def test_no_cookie_reaches_the_next_question(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.default = lambda exchange: exchange.reply(
        fake_bot.answer("q"), Set_Cookie="session=1; Path=/"
    )
    client = api()
    ask(client)
    ask(client)
    assert all("Cookie" not in exchange.headers for exchange in fake_bot.seen)


def test_a_proxy_of_the_environment_is_not_used_for_loopback(
    fake_bot: Any, api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert ask(api()).status == "ok"


def test_secrets_are_taken_out_of_everything(fake_bot: Any, api: MakeApi) -> None:
    """The bot repeats the header in its answer, in a key and in an error page."""
    token = "tok-5f3a9c"
    headers = Headers({"Authorization": f"Bearer {token}"}, (token, f"Bearer {token}"))

    def echo(exchange: Any) -> None:
        seen = exchange.headers["Authorization"]
        exchange.reply(fake_bot.answer("q", answer=f"you sent {seen}", usage={seen: 1}))

    fake_bot.script("answer", echo)
    fake_bot.script(
        "error", lambda exchange: exchange.reply(exchange.headers["Authorization"], 403)
    )
    client = api(headers=headers)
    for name in ("answer", "error"):
        asked = finish(client.ask(Question("case", name)))
        assert token not in repr(asked)
        assert "[secret]" in repr(asked)
    assert fake_bot.seen[0].headers["Authorization"] == f"Bearer {token}"

    # user name and password of the address are sent as a header too: base64 of user:pass-word
    basic = "dXNlcjpwYXNzLXdvcmQ="
    address = fake_bot.url.replace("http://", "http://user:pass-word@")
    client = api(url=address)
    for name in ("answer", "error"):
        assert basic not in repr(finish(client.ask(Question("case", name))))
    assert fake_bot.seen[-1].headers["Authorization"] == f"Basic {basic}"


def test_closing_ends_a_call_that_waits(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.script("q", lambda exchange: exchange.reply({}, 503, Retry_After="60"))
    client = api(policy=RetryPolicy(timeout=100, retries=2))
    questions = [Question("case", text) for text in ("q", "quick", "quick")]
    answers = ask_all(questions, client.ask, 2, client.stop)
    assert [next(answers).result.status for _ in range(2)] == ["ok", "ok"]
    until = monotonic() + 10  # on a busy machine the two answers may come before this call is sent
    while not fake_bot.asked["q"] and monotonic() < until:
        sleep(0.01)
    answers.close()
    assert fake_bot.asked["q"] == 1
    with pytest.raises(Interrupted):
        finish(client.ask(Question("case", "q")))
    assert fake_bot.asked["q"] == 1

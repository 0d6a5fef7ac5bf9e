"""The client against a real HTTP server: what each failure becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import pytest

from clients.bot import ChatApi, Question
from clients.http import KINDS, RetryPolicy, ask_all, finish
from clients.limits import Interrupted
from records.results import TestResult

QUICK = RetryPolicy(timeout=60, retries=2, backoff=0.001)
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
def test_unusable_bodies_end_a_call(
    fake_bot: Any, api: MakeApi, body: bytes, expected: str
) -> None:
    fake_bot.default = lambda exchange: exchange.raw(body)
    assert kind(ask(api())) == expected
    assert fake_bot.asked["q"] == 1


@pytest.mark.parametrize(
    ("status", "expected", "tries"),
    [
        *((status, "client_error", 1) for status in (400, 401, 404, 422)),
        (429, "rate_limited", 3),
        *((status, "server_error", 1) for status in (501, 505, 511)),
        *((status, "server_error", 3) for status in (500, 502, 503, 504, 524, 529)),
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


def test_waiting_for_a_retry_is_no_latency(fake_bot: Any, api: MakeApi) -> None:
    """Without times from the bot the client's own is taken: that of the last try alone."""
    answer = fake_bot.answer("q", latency_ms=None)
    fake_bot.script("q", lambda exchange: exchange.hang(), lambda exchange: exchange.reply(answer))
    result = ask(api(policy=RetryPolicy(timeout=1.0, retries=1, backoff=0)))
    # the first try took all of its 1 s; a total that held it would be above 1000
    assert 0 < result.latency_ms["total"] < 1000


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


def test_no_cookie_reaches_the_next_question(fake_bot: Any, api: MakeApi) -> None:
    fake_bot.default = lambda exchange: exchange.reply(
        fake_bot.answer("q"), Set_Cookie="session=1; Path=/"
    )
    client = api()
    ask(client)
    ask(client)
    assert all("Cookie" not in exchange.headers for exchange in fake_bot.seen)


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

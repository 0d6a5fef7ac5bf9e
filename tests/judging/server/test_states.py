"""Every way in which a judge can fail is a failure of its own kind, and never a verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.rows import each_row

from clients.http import RetryPolicy, finish
from judging.types import FAILURES

BAD_IDS = {"verdicts": [{"id": "1", "verdict": "supported"}, {"id": "7", "verdict": "supported"}]}
ONE_ID = {"verdicts": [{"id": "1", "verdict": "supported"}]}
NOT_IN_SCHEMA = {"verdicts": [{"id": "1", "verdict": "perhaps"}, {"id": "2", "verdict": "yes"}]}


@each_row("fields", [{}, {"error": None}])
def test_a_good_reply_is_a_verdict(
    fake_judge: Any, judge: Any, task: Any, good: Any, fields: dict[str, Any]
) -> None:
    """Some servers send ``error: null`` beside a reply that is none."""
    fake_judge.script("ships", fake_judge.says(good, fields=fields))
    verdict = finish(judge().ask(task()))
    assert (verdict.ok, verdict.data, verdict.raw) == (True, good, json.dumps(good))
    assert (verdict.failure, verdict.mode, verdict.cached) == (None, "json_schema", False)
    assert (verdict.attempts, verdict.asks, verdict.repaired) == (1, 1, False)
    assert verdict.cost_usd is None
    assert verdict.usage.prompt_tokens
    assert verdict.seconds


@each_row(
    ("reply", "more", "kind", "asks"),
    [
        (ONE_ID, {"finish_reason": "length"}, "truncated", 1),
        ("ok", {"finish_reason": None}, "truncated", 1),
        ("no", {"message": {"refusal": "I won't"}}, "refused", 1),
        ("", {"finish_reason": "content_filter"}, "refused", 1),
        ("The claims are fine.", {}, "malformed", 3),
        ('{"verdicts": [' + "[" * 100_000, {}, "malformed", 3),
        (NOT_IN_SCHEMA, {}, "schema", 3),
        ({"score": 5}, {}, "schema", 3),
        (ONE_ID, {}, "incomplete", 3),
        (BAD_IDS, {}, "incomplete", 3),
        (ONE_ID, {"usage": {"prompt_tokens": 3}}, "prompt_truncated", 1),
    ],
)
def test_a_bad_reply_is_a_failure(
    fake_judge: Any, judge: Any, task: Any, reply: Any, more: Any, kind: str, asks: int
) -> None:
    fake_judge.script("ships", fake_judge.says(reply, **more))
    verdict = finish(judge().ask(task()))
    assert (verdict.failure, verdict.data, verdict.ok, verdict.asks) == (kind, None, False, asks)
    assert verdict.message
    assert kind in FAILURES
    if isinstance(reply, dict):
        assert verdict.raw == json.dumps(reply)


@each_row(
    ("behave", "kind", "attempts"),
    [
        *((status, "transport", 3) for status in (500, 503, 429, 408, 409, 425)),
        *((status, "rejected", 1) for status in (400, 401, 404)),
        (lambda e: e.reset(), "transport", 3),
        (lambda e: e.cut(b"x" * 100), "transport", 3),
        (lambda e: e.raw(b"<html>Sign in</html>", Content_Type="text/html"), "transport", 1),
        (lambda e: e.raw(b""), "transport", 1),
        (lambda e: e.reply({"choices": []}), "transport", 1),
        (lambda e: e.reply([1]), "transport", 1),
        (lambda e: e.reply({"error": {"message": "out of memory"}}), "transport", 1),
        (lambda e: e.stream(64 * 2**20), "transport", 1),
    ],
)
def test_a_failing_server_is_a_failure(
    fake_judge: Any, judge: Any, task: Any, behave: Any, kind: str, attempts: int
) -> None:
    fake_judge.script("ships", fake_judge.fails(behave) if isinstance(behave, int) else behave)
    verdict = finish(judge().ask(task()))
    assert (verdict.failure, verdict.data, verdict.attempts) == (kind, None, attempts)
    assert verdict.asks == 0 or verdict.raw == ""


@pytest.mark.parametrize("slow", ["hang", "drip"])
def test_a_slow_server_is_left_at_the_deadline(
    fake_judge: Any, judge: Any, task: Any, slow: str
) -> None:
    client = judge(policy=RetryPolicy(timeout=0.3, retries=1, backoff=0.001))
    dripped = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b" " * 5000
    fake_judge.script("ships", lambda e: e.hang() if slow == "hang" else e.drip(dripped))
    verdict = finish(client.ask(task()))
    assert (verdict.failure, verdict.attempts) == ("transport", 2)
    assert "0.3 s" in verdict.message


def test_retry_after_beyond_the_deadline_is_not_waited_for(
    fake_judge: Any, judge: Any, task: Any
) -> None:
    fake_judge.script("ships", fake_judge.fails(429, Retry_After="86400"))
    verdict = finish(judge().ask(task()))
    assert (verdict.failure, verdict.attempts) == ("transport", 1)
    assert "86400" in verdict.message

"""Every way in which a judge can fail is a failure of its own kind, and never a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from clients.http import RetryPolicy, finish
from judging.types import FAILURES

BAD_IDS = {"verdicts": [{"id": "1", "verdict": "supported"}, {"id": "7", "verdict": "supported"}]}
ONE_ID = {"verdicts": [{"id": "1", "verdict": "supported"}]}
NOT_IN_SCHEMA = {"verdicts": [{"id": "1", "verdict": "perhaps"}, {"id": "2", "verdict": "yes"}]}


def test_a_good_reply_is_a_verdict(fake_judge: Any, judge: Any, task: Any, good: Any) -> None:
    verdict = finish(judge().ask(task()))
    assert verdict.ok
    assert verdict.data == good
    assert (verdict.failure, verdict.mode, verdict.cached) == (None, "json_schema", False)
    assert (verdict.attempts, verdict.asks, verdict.repaired) == (1, 1, False)
    assert verdict.raw == json.dumps(good)
    assert verdict.usage.prompt_tokens
    assert verdict.cost_usd is None
    assert verdict.seconds


@pytest.mark.parametrize(
    ("reply", "more", "kind", "asks"),
    [
        pytest.param(ONE_ID, {"finish_reason": "length"}, "truncated", 1, id="cut"),
        pytest.param("ok", {"finish_reason": None}, "truncated", 1, id="no-reason"),
        pytest.param("no", {"message": {"refusal": "I won't"}}, "refused", 1, id="refusal"),
        pytest.param("", {"finish_reason": "content_filter"}, "refused", 1, id="filter"),
        pytest.param("The claims are fine.", {}, "malformed", 3, id="prose"),
        pytest.param("", {}, "malformed", 3, id="empty"),
        pytest.param(json.dumps(ONE_ID) * 2, {}, "malformed", 3, id="two-objects"),
        pytest.param('{"verdicts": NaN}', {}, "malformed", 3, id="nan"),
        pytest.param('{"verdicts": 1e999}', {}, "malformed", 3, id="infinite"),
        pytest.param('{"verdicts": [], "verdicts": []}', {}, "malformed", 3, id="key-twice"),
        pytest.param('{"verdicts": "\\ud800"}', {}, "malformed", 3, id="half-a-surrogate"),
        pytest.param('{"verdicts": [' + "[" * 100_000, {}, "malformed", 3, id="deep"),
        pytest.param("[1, 2]", {}, "malformed", 3, id="list"),
        pytest.param('{"verdicts": [{"id": "1"', {}, "malformed", 3, id="half"),
        pytest.param(NOT_IN_SCHEMA, {}, "schema", 3, id="schema"),
        pytest.param({"score": 5}, {}, "schema", 3, id="another-object"),
        pytest.param(ONE_ID, {}, "incomplete", 3, id="missing-id"),
        pytest.param(BAD_IDS, {}, "incomplete", 3, id="unknown-id"),
        pytest.param(
            ONE_ID, {"usage": {"prompt_tokens": 3}}, "prompt_truncated", 1, id="prompt-cut"
        ),
    ],
)
def test_a_bad_reply_is_a_failure(
    fake_judge: Any, judge: Any, task: Any, reply: Any, more: Any, kind: str, asks: int
) -> None:
    fake_judge.script("ships", fake_judge.says(reply, **more))
    verdict = finish(judge().ask(task()))
    assert (verdict.failure, verdict.data, verdict.ok) == (kind, None, False)
    assert verdict.asks == asks
    assert verdict.message
    assert kind in FAILURES
    if isinstance(reply, dict):
        assert verdict.raw == json.dumps(reply)


@pytest.mark.parametrize(
    ("behave", "kind", "attempts"),
    [
        pytest.param(lambda j: j.fails(500), "transport", 3, id="500"),
        pytest.param(lambda j: j.fails(503), "transport", 3, id="503"),
        pytest.param(lambda j: j.fails(429), "transport", 3, id="429"),
        pytest.param(lambda j: j.fails(408), "transport", 3, id="408"),
        pytest.param(lambda j: j.fails(409), "transport", 3, id="409"),
        pytest.param(lambda j: j.fails(425), "transport", 3, id="425"),
        pytest.param(lambda j: j.fails(400), "rejected", 1, id="400"),
        pytest.param(lambda j: j.fails(401), "rejected", 1, id="401"),
        pytest.param(lambda j: j.fails(404), "rejected", 1, id="404"),
        pytest.param(lambda j: lambda e: e.reset(), "transport", 3, id="reset"),
        pytest.param(lambda j: lambda e: e.cut(b"x" * 100), "transport", 3, id="cut-body"),
        pytest.param(
            lambda j: lambda e: e.raw(b"<html>Sign in</html>", Content_Type="text/html"),
            "transport",
            1,
            id="html",
        ),
        pytest.param(lambda j: lambda e: e.raw(b""), "transport", 1, id="empty-body"),
        pytest.param(lambda j: lambda e: e.reply({"choices": []}), "transport", 1, id="no-choice"),
        pytest.param(lambda j: lambda e: e.reply([1]), "transport", 1, id="a-list"),
        pytest.param(
            lambda j: lambda e: e.reply({"error": {"message": "out of memory"}}),
            "transport",
            1,
            id="error-in-200",
        ),
        pytest.param(lambda j: lambda e: e.stream(64 * 2**20), "transport", 1, id="huge"),
    ],
)
def test_a_failing_server_is_a_failure(
    fake_judge: Any, judge: Any, task: Any, behave: Callable[..., Any], kind: str, attempts: int
) -> None:
    fake_judge.script("ships", behave(fake_judge))
    verdict = finish(judge().ask(task()))
    assert (verdict.failure, verdict.data) == (kind, None)
    assert verdict.attempts == attempts
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

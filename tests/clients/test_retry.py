"""When a call is tried again, on a clock of the test's own."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from clients.http import MAX_WAIT, CallError, CallFailed, RetryPolicy, call_with_retries, finish
from clients.policy import retry_after_seconds

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Clock:
    """Time passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def run(policy: RetryPolicy, clock: Clock, errors: list[CallError], draw: float = 1.0) -> int:
    """Fails with each of ``errors`` in turn, then succeeds; returns the number of tries."""
    left = list(errors)

    async def once(seconds: float) -> str:
        assert 0 < seconds <= policy.timeout
        if left:
            raise left.pop(0)
        return "answer"

    answer, attempts = finish(
        call_with_retries(
            once, policy, threading.Event(), lambda: clock.now, lambda: draw, sleep=clock.sleep
        )
    )
    assert answer == "answer"
    return attempts


def error(retry_after: float | None = None, retryable: bool = True) -> CallError:
    return CallError("rate_limited", "HTTP 429", retryable=retryable, retry_after=retry_after)


def test_waits_double() -> None:
    clock = Clock()
    policy = RetryPolicy(timeout=100, retries=4, backoff=0.5)
    assert run(policy, clock, [error()] * 4) == 5
    assert clock.waits == [0.5, 1.0, 2.0, 4.0]  # 0.5 * 2^n at the largest draw


@given(attempt=st.integers(1, 900), draw=st.floats(0, 1, exclude_max=True))
def test_waits_have_full_jitter_and_a_ceiling(attempt: int, draw: float) -> None:
    wait = RetryPolicy(backoff=0.5).wait(attempt, draw)
    assert 0 <= wait <= min(MAX_WAIT, 0.5 * 2.0 ** (attempt - 1))


def test_what_cannot_be_retried_is_not() -> None:
    with pytest.raises(CallFailed) as caught:
        run(RetryPolicy(), Clock(), [error(retryable=False)])
    assert caught.value.attempts == 1


def test_retries_end() -> None:
    with pytest.raises(CallFailed) as caught:
        run(RetryPolicy(retries=2), Clock(), [error()] * 9)
    assert caught.value.attempts == 3


def test_retry_after_comes_on_top_of_the_jitter() -> None:
    clock = Clock()
    run(RetryPolicy(timeout=100, retries=1, backoff=0.5), clock, [error(retry_after=20)])
    assert clock.waits == [20.5]


def test_a_wait_beyond_the_budget_ends_the_call_at_once() -> None:
    clock = Clock()
    # budget (1 + 1) * 10 s = 20 s; the server asks for 3600
    with pytest.raises(CallFailed, match="3600 s"):
        run(RetryPolicy(timeout=10, retries=1), clock, [error(retry_after=3600)])
    assert clock.waits == []


@each_row(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("9" * 400, float("inf")),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),  # one minute after NOW
        ("Fri, 02 Jan 2026 05:05:05 +0200", 60.0),
        ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0),  # past
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
        ("²", None),
        (None, None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds

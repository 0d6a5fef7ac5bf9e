"""Calls are spaced, headers are heeded, and a server that refuses gets fewer at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fake_bot import Exchange, FakeBot
from tests.rows import each_row

from clients.http import CallError, Reply, RetryPolicy, call_with_retries, finish
from clients.limits import WATCHED, CallLimits, Interrupted, _seconds


class Clock:
    """A clock that waits move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def begun(limits: CallLimits, clock: Clock, calls: int) -> list[float]:
    """Seconds from the start at which calls begin that end at once."""
    stop, start, moments = threading.Event(), clock.now, []
    for _ in range(calls):
        finish(limits.enter(stop))
        moments.append(clock.now - start)
        limits.answered(0.0, {})
    return moments


def test_requests_a_minute_are_sent_evenly() -> None:
    """60 a minute: one second apart, and 1.5 % more for what arrives unevenly."""
    clock = Clock()
    moments = begun(CallLimits(8, rpm=60, clock=clock, sleep=clock.sleep), clock, 4)
    assert moments == pytest.approx([0.0, 1 / 0.985, 2 / 0.985, 3 / 0.985])


def test_tokens_a_minute_are_sent_evenly_and_corrected() -> None:
    """600 a minute are 10 a second: 40 taken keep the next call 4 s. It is expected to take the
    mean of one in eight, 5 (half a second); 20 taken make that 2 s."""
    clock = Clock()
    limits = CallLimits(8, tpm=600, clock=clock, sleep=clock.sleep)
    assert begun(limits, clock, 1) == [0.0]
    limits.spent(40)
    assert begun(limits, clock, 1) == pytest.approx([4 / 0.985])
    limits.spent(20)
    assert begun(limits, clock, 1) == pytest.approx([2 / 0.985])


def test_a_429_stops_all_calls_as_long_as_it_says_and_halves() -> None:
    clock = Clock()
    limits = CallLimits(8, clock=clock, sleep=clock.sleep)
    stop = threading.Event()
    finish(limits.enter(stop))
    limits.failed(429, 7.0)
    assert limits.window == 4
    assert finish(limits.enter(stop)) == pytest.approx(7.0)
    limits.answered(0.1, {})
    for _ in range(40):  # 1/4 + 1/4.25 + ...: from 4 to 8 in about (64 - 16) / 2 = 24 answers
        finish(limits.enter(stop))
        limits.answered(0.1, {})
    assert limits.window == 8


def test_calls_under_way_together_halve_once() -> None:
    clock = Clock()
    limits = CallLimits(8, clock=clock, sleep=clock.sleep)
    for _ in range(3):
        finish(limits.enter(threading.Event()))
    for _ in range(3):
        limits.failed(429, None)
    assert limits.window == 4


def test_answers_that_take_three_times_as_long_halve() -> None:
    clock = Clock()
    limits = CallLimits(8, clock=clock, sleep=clock.sleep)
    stop = threading.Event()
    for seconds in (0.1, 0.1, 0.31):
        for _ in range(WATCHED):
            finish(limits.enter(stop))
            limits.answered(seconds, {})
    assert limits.window == 4


@each_row(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "1s"}, 0.5),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "12"}, 12.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "150ms"}, 0.0),
        ({"ratelimit-remaining": "900", "ratelimit-reset": "60"}, 0.0),
        ({"ratelimit-remaining": "-1", "ratelimit-reset": "soon"}, 0.0),
    ],
)
def test_what_headers_say_is_left_is_spread(headers: dict[str, str], seconds: float) -> None:
    """Left to ask, and one: 1 in 1 s is every half second; nobody waits while much is left."""
    clock = Clock()
    limits = CallLimits(2, clock=clock, sleep=clock.sleep)
    finish(limits.enter(threading.Event()))
    limits.answered(0.1, headers)
    assert finish(limits.enter(threading.Event())) == pytest.approx(seconds / 0.985, abs=1e-6)


def test_calls_that_wait_together_are_spread_by_what_headers_say() -> None:
    """3 left for 8 s are one each 2 s, also for those that come before the next answer."""
    clock = Clock()
    limits = CallLimits(16, clock=clock, sleep=clock.sleep)
    stop, start = threading.Event(), clock.now
    finish(limits.enter(stop))
    headers = {"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "8s"}
    limits.answered(0.1, headers)
    moments = []
    for _ in range(3):
        finish(limits.enter(stop))
        moments.append(clock.now - start)
    assert moments == pytest.approx([2 / 0.985, 4 / 0.985, 6 / 0.985])


@each_row(
    ("text", "seconds"),
    [("1h2m3.5s", 3723.5), ("12ms", 0.012), ("7", 7.0), ("", 0.0), ("later", None), (None, None)],
)
def test_times_in_headers(text: str | None, seconds: float | None) -> None:
    assert _seconds(text) == (None if text == "" else seconds)


def test_a_moment_is_a_time_from_now() -> None:
    assert _seconds("2000-01-01T00:00:00Z") == 0.0
    assert _seconds(str(int(time.time()) + 100)) == pytest.approx(100, abs=3)


def test_stopping_ends_a_wait_and_gives_the_place_back() -> None:
    limits = CallLimits(1, rpm=1)
    stop = threading.Event()
    finish(limits.enter(stop))
    limits.answered(0.0, {})
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(Interrupted):
        finish(limits.enter(stop))
    with pytest.raises(Interrupted):
        finish(call_with_retries(never, RetryPolicy(), stop, limits=limits))
    assert limits._active == 0


async def never(allowed: float) -> None:
    raise AssertionError("nothing is asked any more")


def test_waiting_takes_nothing_from_the_time_of_a_call() -> None:
    clock = Clock()
    limits = CallLimits(1, rpm=6, clock=clock, sleep=clock.sleep)
    stop = threading.Event()
    allowed: list[float] = []

    async def attempt(seconds: float) -> Reply:
        allowed.append(seconds)
        if len(allowed) == 1:
            raise CallError("rate_limited", "no", retryable=True, status=429, retry_after=3.0)
        return Reply(200, {}, b"", 0.0)

    policy = RetryPolicy(timeout=5, retries=1, backoff=0)
    finish(
        call_with_retries(
            attempt, policy, stop, clock=clock, draw=lambda: 0.0, limits=limits, sleep=clock.sleep
        )
    )
    assert allowed == pytest.approx([5.0, 5.0])


def test_run_eval_keeps_to_the_requests_a_minute(tmp_path: Path) -> None:
    """Four questions at 120 a minute begin half a second apart: the last one 1.5 s after the start,
    which no busy machine makes earlier; the bot may see the first one late."""
    import run_eval

    bot: Any = FakeBot()
    moments: list[float] = []

    def behave(exchange: Exchange) -> None:
        moments.append(time.monotonic())
        bot.reply_properly(exchange)

    bot.default = behave
    rows = "".join(f'{{"id": "q{n}", "question": "Q {n}?"}}\n' for n in range(4))
    (tmp_path / "set.jsonl").write_text(rows)
    words = ["--eval-set", str(tmp_path / "set.jsonl"), "--results-dir", str(tmp_path)]
    words += ["--api-url", bot.url, "--set", "rpm=120", "--quiet", "--run-id", "r"]
    started = time.monotonic()
    done = CliRunner().invoke(run_eval.main, words)
    assert done.exit_code == 0, done.output
    assert moments[-1] - started >= 1.4

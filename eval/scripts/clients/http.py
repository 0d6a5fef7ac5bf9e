"""HTTP calls: what can go wrong with one, its retries, and the loop in which many are under way.

``clients.policy`` has the rules of sending one.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
)
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from clients.limits import CallLimits, Interrupted
from records.results import EARLIER_TURN_FAILED

KINDS = {
    "connection": "no connection, or it broke before the end of the answer",
    "timeout": "the answer was not complete within the time of the call",
    "rate_limited": "HTTP 429 on every try, or a Retry-After longer than the time left",
    "server_error": "HTTP 5xx on every try (501, 505 and other lasting ones: asked once)",
    "client_error": "HTTP 4xx or another status without success; asked once",
    "redirect": "a redirect to another host, to another method, or in a circle; not followed",
    "malformed": "the body is not JSON: truncated, HTML, empty, NaN, not UTF-8; asked once",
    "too_large": "the body is larger than the limit; reading was stopped",
    "mapping": "JSON that does not fit the profile: a field is missing or has a wrong type",
    "bot_error": "the bot answered with its own error (the profile's `error` field, or `error`, "
    "`detail` or `message` and no answer)",
    "no_answer": "no text at the profile's path of the answer, and no sign that the bot abstains; "
    "asked once",
    "imported": "an imported answer that failed elsewhere without a known kind",
    "no_text": "a turn of a conversation whose answer has no text, so that the conversation cannot "
    "continue",
    EARLIER_TURN_FAILED: "a turn that was not asked, because an earlier one failed",
}
"""Every kind that ``error.kind`` of a result can have, with its meaning."""


LASTING = frozenset({501, 505, 506, 508, 510, 511})
"""Server errors that say "never": not implemented, no such version, a login page in between."""


RETRIED_STATUS = frozenset({429, *range(500, 600)}) - LASTING
"""Status codes that are retried, including those that proxies and model servers use beyond the
standard: 520 to 530, 598, 599."""


class CallError(Exception):
    """One failed try. ``retry_after``: seconds that the server asked to wait, if it did.

    ``status``, ``body`` and ``headers``: of an answer that is no success, else None and nothing.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        if kind not in KINDS:
            raise ValueError(f"unknown error kind {kind!r}")
        self.kind, self.message, self.retryable = kind, message, retryable
        self.retry_after, self.status, self.body = retry_after, status, body
        self.headers = headers or {}


def message_of(error: Any) -> str:
    """The error message of a server's reply, in one line of at most 200 characters."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return " ".join(str(error).split())[:200]


class NotConnected(CallError):
    """There was no connection at all: no server listens, no such host, no valid certificate."""

    def __init__(self, message: str) -> None:
        super().__init__("connection", message, retryable=True)


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer with a 2xx status. ``seconds``: from sending to the last byte.

    ``arrivals``: how many bytes of the body were there after how many seconds, piece by piece.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    arrivals: tuple[tuple[int, float], ...] = ()


Answer = TypeVar("Answer")
Job = TypeVar("Job")

MAX_WAIT = 30.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most ``retries`` further tries; waits are drawn from 0 to ``backoff`` * 2^n seconds.

    ``timeout`` is the time of one try. A call as a whole has (retries + 1) * timeout seconds, waits
    not counted beyond that: a Retry-After that does not fit in is not waited for.
    """

    timeout: float = 60.0
    retries: int = 3
    backoff: float = 0.5

    @property
    def budget(self) -> float:
        """Seconds that one call may take with all its tries and waits."""
        return self.timeout * (self.retries + 1)

    def wait(self, attempt: int, draw: float) -> float:
        """Seconds before the next try, after ``attempt`` failed ones; ``draw`` is in [0, 1)."""
        longest: float = self.backoff * 2 ** min(attempt - 1, 16)
        return draw * min(MAX_WAIT, longest)


class CallFailed(Exception):
    """The last error of a call and the number of tries that were made."""

    def __init__(self, error: CallError, attempts: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.attempts = attempts


async def call_with_retries(
    attempt_call: Callable[[float], Awaitable[Answer]],
    policy: RetryPolicy,
    stop: threading.Event,
    clock: Callable[[], float] = time.monotonic,
    draw: Callable[[], float] = random.random,
    limits: CallLimits | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> tuple[Answer, int]:
    """``attempt_call(seconds allowed)`` until it succeeds; its answer and the number of tries.

    ``limits``: whose turn each try waits for, which takes nothing from the call's time. Raises
    CallFailed with the last error, or Interrupted when ``stop`` is set before a try.
    """
    end = clock() + policy.budget
    attempt = 0
    while True:
        attempt += 1
        if stop.is_set():
            raise Interrupted
        try:
            if limits is None:
                return await attempt_call(min(policy.timeout, end - clock())), attempt
            end += await limits.enter(stop)
            allowed = min(policy.timeout, end - clock())
            return await _limited(attempt_call, allowed, limits), attempt
        except CallError as error:
            if not error.retryable or attempt > policy.retries:
                raise CallFailed(error, attempt) from error
            wait = policy.wait(attempt, draw())
            if error.retry_after is not None:
                # A server that names a time is not asked earlier, and not all at the same moment.
                wait += error.retry_after
            if clock() + wait >= end:
                if error.retry_after is not None and error.retry_after > policy.budget:
                    error.message += f"; it asked to wait {error.retry_after:.0f} s"
                raise CallFailed(error, attempt) from error
            await sleep(wait)


async def _limited(
    attempt_call: Callable[[float], Awaitable[Answer]], allowed: float, limits: CallLimits
) -> Answer:
    """One try; its end is reported to the limits."""
    status: int | None = None
    wait: float | None = None
    done = False
    try:
        answer = await attempt_call(allowed)
        if isinstance(answer, Reply):
            done = True
            limits.answered(answer.seconds, answer.headers)
        return answer
    except CallError as error:
        status, wait = error.status, error.retry_after
        raise
    finally:
        if not done:
            limits.failed(status, wait)


_LONGEST_END = 1.0
"""Seconds that calls which are broken off get to close their connections."""


class _ThreadLoop:
    """The event loop of a thread, closed when the thread ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def __del__(self) -> None:
        self.loop.close()


_of_thread = threading.local()


def _own_loop() -> asyncio.AbstractEventLoop:
    if not hasattr(_of_thread, "holder"):
        _of_thread.holder = _ThreadLoop()
    loop: asyncio.AbstractEventLoop = _of_thread.holder.loop
    return loop


def finish(call: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a call and return its outcome; the caller waits. Not in the loop itself."""
    loop = _own_loop()
    task = loop.create_task(call)
    task.add_done_callback(lambda _: loop.stop())
    try:
        while not task.done():
            loop.run_forever()
        return task.result()
    except BaseException:
        _break_off([task])
        raise


def _break_off(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel what is under way and wait a moment for its end."""
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        finish(asyncio.wait(left, timeout=_LONGEST_END))
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # what is on its way already is not told twice


def ask_all(
    jobs: Iterable[Job],
    ask: Callable[[Job], Awaitable[Answer]],
    workers: int,
    stop: threading.Event,
) -> Generator[Answer]:
    """The answer of each job; see ``ask_each``."""

    async def ask_one(job: Job, take: Callable[[Answer], None]) -> None:
        take(await ask(job))

    return ask_each(jobs, ask_one, workers, stop)


def ask_each(
    jobs: Iterable[Job],
    ask: Callable[[Job, Callable[[Answer], None]], Awaitable[None]],
    workers: int,
    stop: threading.Event,
) -> Generator[Answer]:
    """Yield the answers of all jobs as they arrive, with ``workers`` calls in flight.

    ``ask(job, take)`` hands each answer of a job to ``take``. All is done in the thread that takes
    the answers, in its event loop, which stands still while an answer is looked at. Closing the
    iterator early sets ``stop`` and breaks off what is under way. An exception of ``ask`` is raised
    here; Interrupted ends its worker. When all jobs are done ``stop`` is as it was.
    """
    loop = _own_loop()
    source = iter(jobs)
    ready: deque[Answer] = deque()
    ended: list[asyncio.Task[None]] = []

    def take(answer: Answer) -> None:
        ready.append(answer)
        loop.stop()

    async def work() -> None:
        await asyncio.sleep(0)  # one round of the loop: which connections has the server closed?
        with suppress(Interrupted):
            for job in source:
                await ask(job, take)
                if stop.is_set():
                    break

    def note_end(task: asyncio.Task[None]) -> None:
        ended.append(task)
        loop.stop()

    tasks = [loop.create_task(work()) for _ in range(0 if stop.is_set() else workers)]
    for task in tasks:
        task.add_done_callback(note_end)
    try:
        while ready or len(ended) < len(tasks):
            if not ready:
                loop.run_forever()
            while ready:
                yield ready.popleft()
            for task in ended:
                task.result()
    except BaseException:
        stop.set()
        raise
    finally:
        _break_off(tasks)

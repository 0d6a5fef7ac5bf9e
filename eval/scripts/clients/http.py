"""HTTP calls: what can go wrong with one, its retries, and the loop in which many are under way.

``Transport`` is the whole interface to the network. The one that sends (``clients.transport``) asks
the functions here what a redirect, a status or a size means.
"""

from __future__ import annotations

import asyncio
import codecs
import random
import threading
import time
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
)
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar
from urllib.parse import urljoin, urlsplit

from clients.limits import CallLimits, Stopped
from clients.secrets import Redactor
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
    ) -> None:
        super().__init__(message)
        if kind not in KINDS:
            raise ValueError(f"unknown error kind {kind!r}")
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
        self.body = body
        self.headers: Mapping[str, str] = {}


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

    ``arrivals``: how many bytes of the body were there after how many seconds, piece by piece; only
    where the transport was made to note it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    arrivals: tuple[tuple[int, float], ...] = ()


class Transport(Protocol):
    """Sends one request. Any number may be under way in one loop."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Reply:
        """One try of at most ``timeout`` seconds. Raises CallError for anything but a success."""

    def close(self) -> None:
        """Release the unused connections."""


CHUNK = 65_536


MAX_REDIRECTS = 5


KEEPS_METHOD = frozenset({307, 308})


REDIRECTS = frozenset({301, 302, 303, 307, 308})


MOST_SHOWN = 200
"""Characters of an error page that a message shows."""


def redirect_target(status: int, headers: Mapping[str, str], method: str, url: str) -> str:
    """Where a redirect leads, if it keeps host and method. Raises CallError otherwise."""
    location = headers.get("Location")
    if not location:
        raise CallError("redirect", f"HTTP {status} without a Location")
    old = urlsplit(url)
    try:
        target = urljoin(url, location)
        new = urlsplit(target)
        upgrade = (old.scheme, old.port, new.scheme, new.port) == ("http", None, "https", None)
    except ValueError:  # half an IPv6 address, a port that is none
        raise CallError("redirect", f"HTTP {status} to an invalid address") from None
    same = (old.scheme, old.port) == (new.scheme, new.port) or upgrade
    if new.hostname != old.hostname or not same:
        host = new.hostname or "nowhere"
        raise CallError("redirect", f"HTTP {status} to another host ({host}); not followed")
    if status not in KEEPS_METHOD and method != "GET":
        raise CallError(
            "redirect", f"HTTP {status} to {new.path} would turn {method} into GET; not followed"
        )
    return target


def check_announced_size(headers: Mapping[str, str], limit: int) -> None:
    """Raises CallError when a success announces a larger body than ``limit`` bytes."""
    announced = headers.get("Content-Length", "")
    if announced.isascii() and announced.isdigit():
        size = int(announced[:19])  # int() refuses thousands of digits
        if size > limit:
            raise _too_large(limit, f"the server announced {size:,} bytes")


def too_large(limit: int, size: int) -> CallError:
    """The error for a body of more than ``limit`` bytes."""
    return _too_large(limit, f"reading stopped after {size:,} bytes")


def _too_large(limit: int, detail: str) -> CallError:
    return CallError("too_large", f"the body is larger than {limit:,} bytes; {detail}")


def status_error(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    retried: frozenset[int],
    redactor: Redactor,
) -> CallError:
    """The error that a status makes which is no success. ``body``: the page, or its beginning."""
    # a character that the end of the piece cuts in two is left out
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(body)
    excerpt = redactor.excerpt(text, MOST_SHOWN)
    message = f"HTTP {status}: {excerpt}" if excerpt else f"HTTP {status}"
    if status == 429:
        kind = "rate_limited"
    elif status >= 500:
        kind = "server_error"
    else:
        kind = "client_error"
    retryable = status in retried
    wait = _retry_after_seconds(headers.get("Retry-After")) if retryable else None
    error = CallError(
        kind, message, retryable=retryable, retry_after=wait, status=status, body=body
    )
    error.headers = headers
    return error


Answer = TypeVar("Answer")


Job = TypeVar("Job")


MAX_WAIT = 30.0


class Interrupted(Exception):
    """The run is being stopped: what is in flight counts for nothing."""


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
    tokens: int | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> tuple[Answer, int]:
    """``attempt_call(seconds allowed)`` until it succeeds; its answer and the number of tries.

    ``limits``: whose turn each try waits for, which takes nothing from the call's time; ``tokens``:
    what a try is expected to take of them. Raises CallFailed with the last error, or Interrupted
    when ``stop`` is set before a try.
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
            end += await limits.enter(stop, tokens)
            allowed = min(policy.timeout, end - clock())
            return await _limited(attempt_call, allowed, limits), attempt
        except Stopped:
            raise Interrupted from None
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


def _retry_after_seconds(value: str | None, now: datetime | None = None) -> float | None:
    """A Retry-After header in seconds from now: whole seconds or an HTTP date; None if neither.

    A date in the past is 0. Source: RFC 9110, section 10.2.3.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 16 else float("inf")
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


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

    return _work_on(jobs, ask_one, workers, stop)


def ask_each(
    jobs: Iterable[Job],
    ask: Callable[[Job], AsyncIterator[Answer]],
    workers: int,
    stop: threading.Event,
) -> Generator[Answer]:
    """Yield the answers of all jobs as they arrive, with ``workers`` calls in flight.

    All is done in the thread that takes the answers, in its event loop, which stands still while an
    answer is looked at. Closing the iterator early sets ``stop`` and breaks off what is under way.
    An exception of ``ask`` is raised here; Interrupted ends its worker. When all jobs are done
    ``stop`` is as it was.
    """

    async def ask_for_all(job: Job, take: Callable[[Answer], None]) -> None:
        async for answer in ask(job):
            take(answer)

    return _work_on(jobs, ask_for_all, workers, stop)


def _work_on(
    jobs: Iterable[Job],
    ask: Callable[[Job, Callable[[Answer], None]], Awaitable[None]],
    workers: int,
    stop: threading.Event,
) -> Generator[Answer]:
    """``ask_each`` with an ``ask`` that hands over each answer itself."""
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

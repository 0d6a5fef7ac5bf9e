"""When to try again, and after how long: exponential backoff with full jitter, Retry-After."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from clients.errors import CallError

Answer = TypeVar("Answer")
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


def call_with_retries(
    once: Callable[[float], Answer],
    policy: RetryPolicy,
    stop: threading.Event,
    clock: Callable[[], float] = time.monotonic,
    draw: Callable[[], float] = random.random,
) -> tuple[Answer, int]:
    """``once(seconds allowed)`` until it succeeds; returns its answer and the number of tries.

    Raises CallFailed with the last error, or Interrupted as soon as ``stop`` is set.
    """
    end = clock() + policy.budget
    attempt = 0
    while True:
        attempt += 1
        if stop.is_set():
            raise Interrupted
        try:
            return once(min(policy.timeout, end - clock())), attempt
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
            if stop.wait(wait):
                raise Interrupted from error


def retry_after_seconds(value: str | None, now: datetime | None = None) -> float | None:
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

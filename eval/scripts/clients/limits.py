"""How fast a server may be asked: requests and tokens a minute, and how many calls at once.

What the user sets is kept by spacing calls evenly, so that no window of a server is ever exceeded.
Beyond that the server decides: what its headers say is left is spread until they begin anew, a 429
stops all calls for as long as it says, and the number of calls at once is halved on a 429 or when
answers take three times as long, and grows by one for each round of good answers (additive
increase, multiplicative decrease; Chiu & Jain 1989).
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from records.settings import KeyRule

MARGIN = 0.985
"""Share of an allowance that is used: what is sent evenly does not arrive evenly."""

SLOWER = 3.0
"""Times the usual time of an answer from which a server counts as overloaded."""

WATCHED = 32
"""Answers whose median time is looked at."""

NEXT_STEP = 0.1
"""Seconds after which the call that may begin next looks whether it may earlier."""

LATE = 0.05
"""Seconds by which a waiting call may wake too late, at most."""

MINUTE = 60.0

REQUESTS = (
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("ratelimit-remaining", "ratelimit-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
)
TOKENS = (
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
)
"""Headers with the remaining tokens and the time of their renewal: OpenAI and those that imitate
it, Anthropic, the IETF draft "RateLimit header fields for HTTP", and a common form."""

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


class Interrupted(Exception):
    """The run is being stopped: what is in flight counts for nothing."""


class CallLimits:
    """Lets calls begin when they may. One object for all calls to one server, of one loop.

    ``concurrency``: the most calls at once; ``rpm`` and ``tpm``: requests and tokens a minute, None
    for no limit of the user's. ``clock``: seconds that only grow; ``sleep`` lets them pass.
    """

    def __init__(
        self,
        concurrency: int,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._sleep = sleep
        self._most = concurrency
        self._window = float(concurrency)
        self._interval = MINUTE / (rpm * MARGIN) if rpm else 0.0
        self._token_interval = MINUTE / (tpm * MARGIN) if tpm else 0.0
        self._clock = clock
        self._active = 0
        self._next_request = self._next_token = self._not_before = 0.0
        self._learnt_interval = 0.0
        self._last_cut = float("-inf")
        self._times: deque[float] = deque(maxlen=WATCHED)
        self._usual: float | None = None
        self._since_look = 0
        self._mean_tokens = 0.0
        self._line = asyncio.Lock()
        """Held by the one call that may begin next: the others need not wake with it."""
        self._place = asyncio.Event()
        """Set when a call ends."""

    @property
    def window(self) -> int:
        """How many calls may be under way at once now."""
        return max(1, int(self._window))

    async def enter(self, stop: threading.Event) -> float:
        """Wait for a call's turn; the seconds that were waited. Raises Interrupted."""
        begin = self._clock()
        if not self._line.locked() and not stop.is_set() and self._begin(begin) is None:
            return 0.0
        async with self._line:
            # limits are re-read after each wait
            while not stop.is_set():
                now = self._clock()
                left = self._begin(now)
                if left is None:
                    return now - begin
                if left:
                    await self._sleep(min(left, NEXT_STEP))
                else:
                    self._place.clear()
                    await self._place.wait()
        raise Interrupted

    def _begin(self, now: float) -> float | None:
        """Let a call begin (None), if it may; else the seconds until then, 0 for not before another
        call ends."""
        if self._active >= self.window:
            return 0.0
        left = max(self._next_request, self._next_token, self._not_before) - now
        if left > 0:
            return left
        self._active += 1
        self._book(now)
        return None

    def _book(self, now: float) -> None:
        """Set when the next call may begin. One that began a little late delays no other."""
        moment = self._next_request if now - self._next_request < LATE else now
        self._next_request = moment + max(self._interval, self._learnt_interval)
        self._next_token = max(now, self._next_token) + self._mean_tokens * self._token_interval

    def _leave(self) -> None:
        self._active -= 1
        self._place.set()

    def answered(self, seconds: float, headers: Mapping[str, str]) -> None:
        """A good answer came after ``seconds``."""
        self._window = min(self._most, self._window + 1 / self._window)
        self._watch(seconds)
        self._learn(headers)
        self._leave()

    def failed(self, status: int | None, retry_after: float | None) -> None:
        """A call failed; ``status``: None without an answer, ``retry_after``: as it asks."""
        if status == 429:
            now = self._clock()
            self._halve(now)
            if retry_after is not None:
                self._not_before = max(self._not_before, now + retry_after)
        self._leave()

    def spent(self, tokens: int) -> None:
        """Replace the expected tokens of a call, the mean so far, by those that it took."""
        self._next_token += (tokens - self._mean_tokens) * self._token_interval
        self._mean_tokens += (tokens - self._mean_tokens) / 8

    def _halve(self, now: float) -> None:
        """Halve the window once per congestion event."""
        if now - self._last_cut >= max(1.0, self._usual or 0.0):
            self._window = max(1.0, self._window / 2)
            self._last_cut = now

    def _watch(self, seconds: float) -> None:
        self._times.append(seconds)
        self._since_look += 1
        if len(self._times) < WATCHED or self._since_look < WATCHED:
            return
        self._since_look = 0
        middle = median(self._times)
        if self._usual is None or middle < self._usual:
            self._usual = middle
        elif middle > SLOWER * self._usual:
            self._halve(self._clock())
            self._times.clear()
        else:
            self._usual += (middle - self._usual) / 16

    def _learn(self, headers: Mapping[str, str]) -> None:
        """Spread a small remaining allowance over the time until the next window."""
        now = self._clock()
        for remaining, reset in REQUESTS:
            left, seconds = _number(headers.get(remaining)), _seconds(headers.get(reset))
            if left is None or seconds is None:
                continue
            if left < 2 * self._active + 4:
                # those under way are counted already by most servers, by none twice
                self._learnt_interval = seconds / (left + 1) / MARGIN
                self._next_request = max(self._next_request, now + self._learnt_interval)
            else:
                self._learnt_interval = 0.0
                self._next_request = min(self._next_request, now + self._interval)
        for remaining, reset in TOKENS:
            left, seconds = _number(headers.get(remaining)), _seconds(headers.get(reset))
            need = self._mean_tokens * (self._active + 1)
            if left is not None and seconds is not None and left < need:
                self._next_token = max(self._next_token, now + seconds)


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\d{1,15}(\.\d{1,6})?", text.strip()):
        return None
    return float(text)


def _seconds(text: str | None) -> float | None:
    """Seconds from now: a number of them, ``6m0s``, ``12ms``, a moment, or Unix time."""
    if text is None:
        return None
    text = text.strip()
    number = _number(text)
    if number is not None:
        return max(0.0, number - time.time()) if number > 10**8 else number
    match = _DURATION.fullmatch(text)
    if match and text:
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=moment.tzinfo or UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


DAY_S = 86_400.0

LIMITS = {
    "concurrency": KeyRule("whole", "Limit of calls at once; lower after refusals.", 1, 512),
    "rpm": KeyRule("number", "Limit of requests a minute, sent evenly.", 0, 1e9, above=True),
    "tpm": KeyRule("number", "Limit of tokens a minute, by the server.", 0, 1e9, above=True),
    "timeout": KeyRule("number", "Seconds for one try, to the last byte.", 0, DAY_S, above=True),
    "retries": KeyRule("whole", "Further tries of a call.", 0, 1000),
}
"""Limits of rate, time and retries for any server."""

BOT_LIMITS = {
    **LIMITS,
    "backoff": KeyRule("number", "Longest first wait before a new try; doubled.", 0, DAY_S),
    "max_mb": KeyRule("number", "Largest answer in megabytes.", 0, 1e6, above=True),
}
"""The keys of ``[limits]`` in a bot's profile."""


@dataclass(frozen=True, slots=True)
class BotLimits:
    """How a bot is asked: the values of ``BOT_LIMITS`` and, here, what is usual."""

    concurrency: int = 8
    rpm: float | None = None
    tpm: float | None = None
    timeout: float = 60.0
    retries: int = 3
    backoff: float = 0.5
    max_mb: float = 64

    @property
    def max_bytes(self) -> int:
        """The largest answer in bytes."""
        return int(self.max_mb * 2**20)

"""HTTP over ``requests``, with what it lacks: a deadline for the whole call and a size limit.

``Transport`` is the whole interface to the network; another one can take the place of
``HttpTransport``. Around it stand the retries of one call and the threads of many.
"""

from __future__ import annotations

import codecs
import io
import ipaddress
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urljoin, urlsplit

from clients.limits import CallLimits, Stopped
from clients.secrets import Redactor
from records.results import EARLIER_TURN_FAILED

if TYPE_CHECKING:
    import requests
    from requests.adapters import HTTPAdapter

KINDS = {
    "connection": "no connection, or it broke before the whole answer had come",
    "timeout": "the answer was not complete when the time of the call was over",
    "rate_limited": "HTTP 429 on every try, or a Retry-After longer than the time left",
    "server_error": "HTTP 5xx on every try (501, 505 and other lasting ones: asked once)",
    "client_error": "HTTP 4xx or another status that is no success; asked once",
    "redirect": "a redirect to another host, to another method, or in a circle; not followed",
    "malformed": "the body is no JSON: truncated, HTML, empty, NaN, not UTF-8; asked once",
    "too_large": "the body is larger than the limit; reading was stopped",
    "mapping": "JSON that does not fit the profile: a field is missing or has a wrong type",
    "bot_error": "the bot answered with an error of its own (the profile's `error` field)",
    "imported": "an answer that was produced elsewhere, and failed there without a known kind",
    "no_text": "a turn of a conversation whose answer has no text: nothing could go on from it",
    EARLIER_TURN_FAILED: "a turn that was not asked, since one before it failed",
}
"""Every kind that ``error.kind`` of a result can have, with its meaning."""


LASTING = frozenset({501, 505, 506, 508, 510, 511})
"""Server errors that say "never": not implemented, no such version, a login page in between."""


RETRIED_STATUS = frozenset({429, *range(500, 600)}) - LASTING
"""Also what proxies and model servers use beyond the standard: 520 to 530, 598, 599."""


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


class NotConnected(CallError):
    """There was no connection at all: nobody listens, no such host, no valid certificate."""

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
    """Sends one request. Safe to use from several threads."""

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Reply:
        """One try of at most ``timeout`` seconds. Raises CallError for anything but a success."""

    def close(self) -> None:
        """Give back what is not in use."""


CHUNK = 65_536


MAX_REDIRECTS = 5


KEEPS_METHOD = frozenset({307, 308})


REDIRECTS = frozenset({301, 302, 303, 307, 308})


MOST_SHOWN = 200
"""Characters of an error page that a message shows."""


class HttpTransport:
    """Sends requests from many threads over one pool of kept-open connections.

    Cookies are not kept, so that no question can see the session of another one; ``.netrc`` is not
    read. Proxies and certificates come from the environment, proxies never for loopback.
    """

    def __init__(
        self,
        url: str,
        *,
        connections: int = 1,
        max_bytes: int = 64 * 2**20,
        timeout: float = 60.0,
        retried: frozenset[int] = RETRIED_STATUS,
        redactor: Redactor | None = None,
        timed: bool = False,
    ) -> None:
        """``timeout``: seconds of a try as the user set them, for messages; ``send`` may get less,
        when waits have used up some of a call's time. ``retried``: statuses worth another try.
        ``redactor``: takes secrets out of what a message shows, before that is shortened.
        ``timed``: note when each piece of a body arrived."""
        import requests

        self.max_bytes = max_bytes
        self._retried = retried
        self._redactor = redactor or Redactor()
        self._timed = timed
        self._timeout = timeout
        self._clock = _Deadline()
        self._adapter = _deadline_adapter(connections, self._clock)
        with requests.Session() as session:
            settings: Any = session.merge_environment_settings(url, {}, True, None, None)
        settings["stream"] = True
        if _is_loopback(urlsplit(url).hostname or ""):
            settings["proxies"] = {}
        self._settings = settings
        self._templates: dict[tuple[str, str], requests.PreparedRequest] = {}

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Reply:
        """One try. Raises CallError; 429, 5xx, timeouts and broken connections are retryable."""
        start = time.perf_counter()
        self._clock.start(timeout)
        for _ in range(MAX_REDIRECTS + 1):
            target = self._send_once(method, url, headers, body)
            if isinstance(target, Reply):
                return replace(
                    target,
                    seconds=time.perf_counter() - start,
                    arrivals=tuple((size, moment - start) for size, moment in target.arrivals),
                )
            url = target
        raise CallError("redirect", f"more than {MAX_REDIRECTS} redirects")

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._adapter.close()

    def _send_once(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Reply | str:
        """The answer, or the URL that a permitted redirect leads to."""
        import requests
        import urllib3

        response = None
        try:
            request = self._prepared(method, url, headers, body)
            # The adapter, not the session: that would add cookies, redirects and hooks, at a cost.
            response = self._adapter.send(request, timeout=self._clock.left(), **self._settings)
            return self._read(response, method, url)
        except requests.ConnectTimeout:
            raise NotConnected(f"could not connect within {self._timeout:g} s") from None
        except (requests.Timeout, urllib3.exceptions.TimeoutError, TimeoutError):
            message = f"no complete answer within {self._timeout:g} s"
            raise CallError("timeout", message, retryable=True) from None
        except urllib3.exceptions.DecodeError:
            raise CallError("malformed", "the body is not compressed as it says") from None
        except (urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
            # requests' own exceptions are OSErrors
            raise _connection_error(error, self._redactor) from None
        finally:
            if response is not None:
                response.close()

    def _prepared(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> requests.PreparedRequest:
        """A copy of the request made once for this URL: making one anew costs a third of a call."""
        import requests

        template = self._templates.get((method, url))
        if template is None:
            template = requests.Request(method, url, headers=dict(headers)).prepare()
            if len(self._templates) < 64:
                self._templates[method, url] = template
        request = template.copy()
        if body is not None:
            request.body = body
            request.headers["Content-Length"] = str(len(body))
        return request

    def _read(self, response: requests.Response, method: str, url: str) -> Reply | str:
        status = response.status_code
        if status in REDIRECTS:
            return _redirect_target(response, method, url)
        announced = response.headers.get("Content-Length", "")
        if 200 <= status < 300 and announced.isascii() and announced.isdigit():
            size = int(announced[:19])  # int() refuses thousands of digits
            if size > self.max_bytes:
                raise _too_large(self.max_bytes, f"the server announced {size:,} bytes")
        arrivals: list[tuple[int, float]] = []
        body = self._body(response, self.max_bytes if 200 <= status < 300 else CHUNK, arrivals)
        if 200 <= status < 300:
            return Reply(status, response.headers, body, 0.0, tuple(arrivals))
        wait = response.headers.get("Retry-After")
        # a character that the end of the piece cuts in two is left out
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(body)
        excerpt = self._redactor.excerpt(text, MOST_SHOWN)
        error = _status_error(status, body, excerpt, wait, status in self._retried)
        error.headers = response.headers
        raise error

    def _body(
        self, response: requests.Response, limit: int, arrivals: list[tuple[int, float]]
    ) -> bytes:
        """The whole body; at most a first piece of an error page, which only fills a message."""
        pieces: list[bytes] = []
        size = 0
        read = response.raw.read1 if self._timed else response.raw.read
        while piece := read(CHUNK, decode_content=True):
            size += len(piece)
            if self._timed:
                arrivals.append((size, time.perf_counter()))
            if size > limit:
                if limit == self.max_bytes:
                    raise _too_large(limit, f"reading stopped after {size:,} bytes")
                break
            pieces.append(piece)
        return b"".join(pieces)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _redirect_target(response: requests.Response, method: str, url: str) -> str:
    """Where a redirect leads, if it keeps host and method. Raises CallError otherwise."""
    status = response.status_code
    location = response.headers.get("Location")
    if not location:
        raise CallError("redirect", f"HTTP {status} without a Location")
    old = urlsplit(url)
    try:
        target = urljoin(url, location)
        new = urlsplit(target)
        upgrade = (old.scheme, old.port, new.scheme, new.port) == ("http", None, "https", None)
    except ValueError:  # half an IPv6 address, a port that is none
        raise CallError("redirect", f"HTTP {status} to an address that is none") from None
    same = (old.scheme, old.port) == (new.scheme, new.port) or upgrade
    if new.hostname != old.hostname or not same:
        host = new.hostname or "nowhere"
        raise CallError("redirect", f"HTTP {status} to another place ({host}); not followed")
    if status not in KEEPS_METHOD and method != "GET":
        raise CallError(
            "redirect", f"HTTP {status} to {new.path} would turn {method} into GET; not followed"
        )
    return target


def _status_error(
    status: int, body: bytes, excerpt: str, retry_after: str | None, retryable: bool
) -> CallError:
    message = f"HTTP {status}: {excerpt}" if excerpt else f"HTTP {status}"
    if status == 429:
        kind = "rate_limited"
    elif status >= 500:
        kind = "server_error"
    else:
        kind = "client_error"
    wait = _retry_after_seconds(retry_after) if retryable else None
    return CallError(kind, message, retryable=retryable, retry_after=wait, status=status, body=body)


def _too_large(limit: int, detail: str) -> CallError:
    return CallError("too_large", f"the body is larger than {limit:,} bytes; {detail}")


def _connection_error(error: BaseException, redactor: Redactor) -> CallError:
    """The innermost reason in a few words: library messages repeat the URL with its query."""
    import requests
    from urllib3 import exceptions

    never = (
        *(exceptions.NewConnectionError, exceptions.SSLError, exceptions.ProxyError),
        # an address or a proxy by which nobody is reached; UnicodeError: a host name that is none
        *(exceptions.LocationValueError, requests.exceptions.InvalidURL, UnicodeError),
        requests.exceptions.InvalidSchema,
    )
    connected = True
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        innermost = following
        seen.add(id(innermost))
        plain = type(innermost) is OSError and innermost.errno is None
        connected = connected and not plain and not isinstance(innermost, never)
        reason = getattr(innermost, "reason", None)
        deeper = innermost.__cause__ or innermost.__context__
        following = reason if isinstance(reason, BaseException) else deeper
    name = type(innermost).__name__
    message = getattr(innermost, "strerror", None) or _PLAIN.get(name) or name
    if plain or isinstance(innermost, requests.exceptions.InvalidSchema):
        message = (
            redactor.excerpt(str(innermost), MOST_SHOWN) or name
        )  # no CA file there, a proxy that refuses, no SOCKS
    if "CERTIFICATE_VERIFY_FAILED" in message:
        message += "; REQUESTS_CA_BUNDLE=FILE names certificates to trust"
    return CallError("connection", message, retryable=True) if connected else NotConnected(message)


_PLAIN = {
    "RemoteDisconnected": "the server closed the connection without an answer",
    "IncompleteRead": "the connection was closed before the end of the answer",
    "InvalidChunkLength": "the connection was closed before the end of the answer",
    "BadStatusLine": "the server does not speak HTTP",
    "LocationParseError": "the URL has no valid host",
    "InvalidURL": "the URL is not valid",
    "UnicodeError": "the URL has no valid host",
    "HTTPException": "the server sends too many headers",
    "LineTooLong": "the server sends a header that is too long",
    "InvalidHeader": "the server sends headers that contradict each other",
    "ValueError": "the server sends a body that is not framed as it says",
}


class _Deadline(threading.local):
    """The end of the call that this thread makes."""

    _end = 0.0

    def start(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left, more than 0. Raises TimeoutError when none are."""
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds


class _TimedReader(io.RawIOBase):
    """A socket's bytes. The first read needs no new timeout: the library has just set it."""

    def __init__(self, sock: socket.socket, clock: _Deadline) -> None:
        self._sock = sock
        self._clock = clock
        self._raw = sock.makefile("rb", buffering=0)
        self._first = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if not self._first:
            self._sock.settimeout(self._clock.left())
        self._first = False
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _deadline_adapter(connections: int, clock: _Deadline) -> HTTPAdapter:
    """A requests adapter for ``connections`` threads that reads status, headers and body by
    ``clock``, and sends a request in one piece (two would wake the server twice)."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class TimedResponse(HTTPResponse):
        def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
            super().__init__(sock, *args, **more)
            self.fp.close()
            self.fp = io.BufferedReader(_TimedReader(sock, clock), CHUNK)

    class OnePiece(HTTPConnection):
        response_class = TimedResponse
        _pending: list[bytes] | None = None

        def request(self, *args: Any, **more: Any) -> None:
            self._pending = []
            try:
                super().request(*args, **more)
                pieces = self._pending
            finally:
                self._pending = None
            super().send(b"".join(pieces))

        def send(self, data: Any) -> None:
            if self._pending is None:
                super().send(data)
            else:
                self._pending.append(data)

    class OnePieceTls(OnePiece, HTTPSConnection):
        pass

    class Pool(HTTPConnectionPool):
        ConnectionCls = OnePiece

    class TlsPool(HTTPSConnectionPool):
        ConnectionCls = OnePieceTls

    pools = {"http": Pool, "https": TlsPool}

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **more: Any) -> None:
            super().init_poolmanager(*args, **more)
            self.poolmanager.pool_classes_by_scheme = pools

        def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
            manager = super().proxy_manager_for(proxy, **more)
            manager.pool_classes_by_scheme = pools
            return manager

    return Adapter(pool_connections=4, pool_maxsize=connections, max_retries=0)


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


def call_with_retries(
    attempt_call: Callable[[float], Answer],
    policy: RetryPolicy,
    stop: threading.Event,
    clock: Callable[[], float] = time.monotonic,
    draw: Callable[[], float] = random.random,
    limits: CallLimits | None = None,
    tokens: int | None = None,
) -> tuple[Answer, int]:
    """``attempt_call(seconds allowed)`` until it succeeds; its answer and the number of tries.

    ``limits``: whose turn each try waits for, which takes nothing from the call's time; ``tokens``:
    what a try is expected to take of them. Raises CallFailed with the last error, or Interrupted as
    soon as ``stop`` is set.
    """
    end = clock() + policy.budget
    attempt = 0
    while True:
        attempt += 1
        if stop.is_set():
            raise Interrupted
        try:
            if limits is None:
                return attempt_call(min(policy.timeout, end - clock())), attempt
            end += limits.enter(stop, tokens)
            return _limited(attempt_call, min(policy.timeout, end - clock()), limits), attempt
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
            if stop.wait(wait):
                raise Interrupted from error


def _limited(attempt_call: Callable[[float], Answer], allowed: float, limits: CallLimits) -> Answer:
    """One try, of whose end the limits are told."""
    status: int | None = None
    wait: float | None = None
    done = False
    try:
        answer = attempt_call(allowed)
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


END = object()


def ask_all(
    jobs: Iterable[Job],
    ask: Callable[[Job], Answer],
    workers: int,
    stop: threading.Event,
) -> Generator[Answer]:
    """The answers of all jobs; see ``ask_each``."""
    return ask_each(jobs, lambda job: (ask(job),), workers, stop)


def ask_each(
    jobs: Iterable[Job],
    ask: Callable[[Job], Iterable[Answer]],
    workers: int,
    stop: threading.Event,
) -> Generator[Answer]:
    """The answers of all jobs, of which each gives some, one after the other.

    Closing the iterator early sets ``stop`` and waits for nobody. The threads are daemons: a call
    that hangs cannot hold up the end of the process. An exception of ``ask`` is raised here. When
    all jobs are done ``stop`` is as it was.
    """
    source = iter(jobs)
    turn = threading.Lock()
    ready: queue.SimpleQueue[object] = queue.SimpleQueue()

    def work() -> None:
        try:
            while not stop.is_set():
                with turn:
                    job = next(source, END)
                if job is END:
                    break
                for answer in ask(job):  # type: ignore[arg-type]
                    ready.put((answer,))
        except Interrupted:
            pass
        except BaseException as error:
            ready.put(error)
        ready.put(END)

    for number in range(workers):
        threading.Thread(target=work, name=f"ask-{number}", daemon=True).start()
    left = workers
    try:
        while left:
            item = ready.get()
            if item is END:
                left -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item[0]  # type: ignore[index]
    except BaseException:
        stop.set()
        raise

"""The transport for many calls at once: one event loop of ``aiohttp`` behind all threads.

``requests`` costs about half a millisecond of one core a call, so that 128 calls in flight of 50 ms
each come to little more than half of what they could. This transport takes about half of that. All
that a call may do and all that its failures become is the same; what it lacks is a proxy.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clients.http import (
    CHUNK,
    MAX_REDIRECTS,
    REDIRECTS,
    RETRIED_STATUS,
    CallError,
    NotConnected,
    Reply,
    check_announced_size,
    connection_error,
    redirect_target,
    status_error,
    too_large,
)
from clients.http_requests import RequestTemplates, environment_settings
from clients.secrets import Redactor

if TYPE_CHECKING:
    import aiohttp

_LONGEST_LINE = 65_536
"""Bytes of a status line or a header, as ``http.client`` allows."""

_CONNECT_SHARE = 0.98
"""Of a call's time that connecting may take: beyond it there was no connection, and not just no
answer."""


_CLOSED = "the transport was closed"


class _Call:
    """One request on its way between its thread and the event loop."""

    __slots__ = ("body", "deadline", "done", "error", "headers", "method", "reply", "url")

    def __init__(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        deadline: float,
    ) -> None:
        self.method, self.url, self.headers, self.body = method, url, headers, body
        self.deadline = deadline
        self.reply: Reply | None = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()


class AiohttpTransport:
    """Sends the requests of all threads from one event loop in a thread of its own.

    As with ``HttpTransport`` cookies are not kept, ``.netrc`` is not read, and certificates come
    from the environment.
    """

    def __init__(
        self,
        url: str,
        *,
        max_bytes: int = 64 * 2**20,
        timeout: float = 60.0,
        retried: frozenset[int] = RETRIED_STATUS,
        redactor: Redactor | None = None,
        timed: bool = False,
    ) -> None:
        """As ``HttpTransport``; there are as many connections as calls in flight."""
        self.max_bytes = max_bytes
        self._timeout = timeout
        self._retried = retried
        self._redactor = redactor or Redactor()
        self._timed = timed
        self._verify = environment_settings(url)["verify"]
        self._templates = RequestTemplates()
        self._starting = threading.Lock()
        self._loop: _Loop | None = None

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Reply:
        """One try. Raises CallError; 429, 5xx, timeouts and broken connections are retryable."""
        call = _Call(method, url, headers, body, time.monotonic() + timeout)
        with self._starting:
            if self._loop is None:
                self._loop = _Loop(self._answer)
            self._loop.hand_over(call)
        call.done.acquire()
        if call.error is not None:
            raise call.error
        assert call.reply is not None
        return call.reply

    def close(self) -> None:
        """Close all connections; a call that is still under way fails."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

    async def _answer(self, session: aiohttp.ClientSession, call: _Call) -> None:
        """Settle a call: its reply or its error."""
        try:
            async with asyncio.timeout_at(call.deadline):
                call.reply = await self._follow(session, call)
        except TimeoutError:
            message = f"no complete answer within {self._timeout:g} s"
            call.error = CallError("timeout", message, retryable=True)
        except CallError as error:
            call.error = error
        except asyncio.CancelledError:
            call.error = CallError("connection", _CLOSED)
            raise
        except Exception as error:  # what is no failure of the call is raised where it was asked
            call.error = _failure(error, self._redactor) or error

    async def _follow(self, session: aiohttp.ClientSession, call: _Call) -> Reply:
        start = time.perf_counter()
        url = call.url
        for _ in range(MAX_REDIRECTS + 1):
            target = await self._send_once(session, call, url, start)
            if isinstance(target, Reply):
                return target
            url = target
        raise CallError("redirect", f"more than {MAX_REDIRECTS} redirects")

    async def _send_once(
        self, session: aiohttp.ClientSession, call: _Call, url: str, start: float
    ) -> Reply | str:
        """The answer, or the URL that a permitted redirect leads to."""
        import aiohttp
        from multidict import CIMultiDict
        from yarl import URL

        # the words and checks of requests for the address and the headers
        request = self._templates.get(call.method, url, call.headers)
        sent = {k: v for k, v in request.headers.items() if k != "Content-Length"}
        connecting = max(0.0, call.deadline - time.monotonic()) * _CONNECT_SHARE
        more: dict[str, Any] = {"ssl": self._tls()} if str(request.url)[:5] == "https" else {}
        try:
            response = await session.request(
                call.method,
                URL(str(request.url), encoded=True),
                data=call.body,
                headers=sent,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(sock_connect=connecting, ceil_threshold=1e9),
                **more,
            )
        except aiohttp.ConnectionTimeoutError:
            raise NotConnected(f"could not connect within {self._timeout:g} s") from None
        try:
            status = response.status
            headers = CIMultiDict(
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in response.raw_headers
            )
            if status in REDIRECTS:
                return redirect_target(status, headers, call.method, url)
            success = 200 <= status < 300
            if success:
                check_announced_size(headers, self.max_bytes)
            arrivals: list[tuple[int, float]] = []
            limit = self.max_bytes if success else CHUNK
            body = await self._body(response, limit, arrivals, start)
            if success:
                seconds = time.perf_counter() - start
                return Reply(status, headers, body, seconds, tuple(arrivals))
            raise status_error(status, headers, body, self._retried, self._redactor)
        finally:
            response.release()  # closes the connection unless the whole body was read

    async def _body(
        self,
        response: aiohttp.ClientResponse,
        limit: int,
        arrivals: list[tuple[int, float]],
        start: float,
    ) -> bytes:
        """The whole body; at most a first piece of an error page, which only fills a message."""
        pieces: list[bytes] = []
        size = 0
        while piece := await response.content.readany():
            size += len(piece)
            if self._timed:
                arrivals.append((size, time.perf_counter() - start))
            if size > limit:
                if limit == self.max_bytes:
                    raise too_large(limit, size)
                pieces.append(piece[: limit - size])
                break
            pieces.append(piece)
        return b"".join(pieces)

    def _tls(self) -> ssl.SSLContext:
        """What certificates are trusted, made once."""
        if not hasattr(self, "_context"):
            self._context = _trusting(self._verify)
        return self._context


def _trusting(verify: Any) -> ssl.SSLContext:
    """The settings of ``requests`` for TLS. ``verify``: True, or a file or folder to trust."""
    from requests.utils import DEFAULT_CA_BUNDLE_PATH
    from urllib3.util import create_urllib3_context

    path = Path(DEFAULT_CA_BUNDLE_PATH if verify is True else verify)
    if not path.exists():
        raise OSError(f"there is no file or folder of certificates at {path}")
    context = create_urllib3_context()
    if path.is_dir():
        context.load_verify_locations(capath=path)
    else:
        context.load_verify_locations(cafile=path)
    return context


def _failure(error: BaseException, redactor: Redactor) -> CallError | None:
    """What an exception of the library means in words; None for what is none of a call."""
    import aiohttp
    from aiohttp import http_exceptions

    cause = error.__cause__ or error.__context__
    if type(cause) is http_exceptions.HttpProcessingError:  # around what the parser said
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, http_exceptions.ContentEncodingError) or isinstance(
        cause, http_exceptions.ContentEncodingError
    ):
        return CallError("malformed", "the body is not compressed as it says")
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = error.os_error
        if isinstance(reason, ssl.SSLError):
            return NotConnected(connection_error(reason, redactor).message)
        number = reason.errno or 0
        return NotConnected(os.strerror(number) if number > 0 else reason.strerror or str(reason))
    if isinstance(error, aiohttp.ClientSSLError):
        return NotConnected(connection_error(cause or error, redactor).message)
    if isinstance(error, aiohttp.ClientResponseError):
        return CallError("connection", _no_http(cause), retryable=True)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        message = "the server closed the connection without an answer"
        return CallError("connection", message, retryable=True)
    if isinstance(error, aiohttp.ClientPayloadError):
        message = "the connection was closed before the end of the answer"
        if isinstance(cause, OSError) and cause.strerror:
            message = cause.strerror
        elif isinstance(cause, http_exceptions.BadHttpMessage) and not isinstance(
            cause, http_exceptions.PayloadEncodingError
        ):
            message = _no_http(cause)
        return CallError("connection", message, retryable=True)
    if isinstance(error, (aiohttp.InvalidURL, UnicodeError)):
        return NotConnected("the URL has no valid host")
    if isinstance(error, (OSError, aiohttp.ClientError)):
        return connection_error(error, redactor)
    return None


def _no_http(cause: BaseException | None) -> str:
    """What is wrong with an answer that the parser refuses; nothing of the answer is repeated."""
    from aiohttp import http_exceptions

    words = str(cause)
    if isinstance(cause, http_exceptions.LineTooLong):
        return "the server sends a header that is too long"
    if isinstance(cause, http_exceptions.BadStatusLine):
        return "the server does not speak HTTP"
    if "Too many headers" in words:
        return "the server sends too many headers"
    if "chunk" in words:
        return "the server sends a body that is not framed as it says"
    if "Content-Length" in words or "Transfer-Encoding" in words:
        return "the server sends headers that contradict each other"
    return "the server sends headers that are none"


class _Loop:
    """An event loop in a daemon thread, its session, and the calls that wait to be begun."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._waiting: deque[_Call] = deque()
        self._awake = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None
        threading.Thread(target=self._run, name="http", daemon=True).start()

    def hand_over(self, call: _Call) -> None:
        """Begin a call soon; calls that come together wake the loop once."""
        self._waiting.append(call)
        if not self._awake:
            self._awake = True
            self._loop.call_soon_threadsafe(self._begin)

    def close(self) -> None:
        """End what is under way, and the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _begin(self) -> None:
        import aiohttp

        self._awake = False
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                max_line_size=_LONGEST_LINE,
                max_field_size=_LONGEST_LINE,
            )
        while self._waiting:
            call = self._waiting.popleft()
            task = self._loop.create_task(self._settle(self._session, call))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _settle(self, session: aiohttp.ClientSession, call: _Call) -> None:
        try:
            await self._answer(session, call)
        finally:
            call.done.release()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            for call in self._waiting:
                call.error = CallError("connection", _CLOSED)
                call.done.release()
            self._loop.run_until_complete(self._end())
        finally:
            self._loop.close()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

"""How requests are sent: ``aiohttp``'s connections and its parser, within the loop that calls.

Its session is left out: the checks of addresses, headers, cookies and redirects that it makes for
each call are made here once for an address, and cost three times what sending does.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from clients.http import (
    CHUNK,
    MAX_REDIRECTS,
    MOST_SHOWN,
    REDIRECTS,
    RETRIED_STATUS,
    CallError,
    NotConnected,
    Reply,
    check_announced_size,
    finish,
    redirect_target,
    status_error,
    too_large,
)
from clients.secrets import Redactor

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.http import RawResponseMessage

_LONGEST_LINE = 65_536
"""Bytes of a status line or a header, as ``http.client`` allows."""

_HOST = re.compile(r"[\w.-]+|[0-9A-Fa-f:.]+(%[\w.-]+)?", re.ASCII)
"""A name or a number that can be looked up."""

_KEPT = "!#$%&'()*+,/:;=?@[]~"
"""Characters of a path and a query that stay as they are."""

_HELD_UP = 0.05
"""Seconds that a loop may be late for a deadline before that counts as its own fault."""

_MOST_HEADS = 64
"""Addresses whose request is kept: a bot that is asked by GET has another one for each question."""


class HttpTransport:
    """Sends the requests of one loop over connections that are kept open, one for each at a time.

    Cookies are not kept, so that no question can see the session of another one; ``.netrc`` is not
    read. Proxies and certificates come from the environment, proxies never for loopback.
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
        """``timeout``: seconds of a try as the user set them, for messages; ``send`` may get less,
        when waits have used up some of a call's time. ``retried``: statuses worth another try.
        ``redactor``: takes secrets out of what a message shows, before that is shortened.
        ``timed``: note when each piece of a body arrived."""
        self.max_bytes = max_bytes
        self._timeout = timeout
        self._retried = retried
        self._redactor = redactor or Redactor()
        self._timed = timed
        self._proxy = _proxy_for(url)
        self._pool: _Pool | None = None

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Reply:
        """One try. Raises CallError; 429, 5xx, timeouts and broken connections are retryable."""
        start = time.perf_counter()
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool.loop is not loop:
            self._pool = _Pool(loop, self._proxy)
        pool = self._pool
        deadline = _Deadline(loop, timeout)
        try:
            with deadline:
                for _ in range(MAX_REDIRECTS + 1):
                    target = await self._send_once(pool, deadline, method, url, headers, body)
                    if not isinstance(target, str):
                        status, received, content, arrivals = target
                        seconds = time.perf_counter() - start
                        times = tuple((size, moment - start) for size, moment in arrivals)
                        return Reply(status, received, content, seconds, times)
                    url = target
            raise CallError("redirect", f"more than {MAX_REDIRECTS} redirects")
        except CallError:
            raise
        except Exception as error:  # what is no failure of the call is raised as it is
            if deadline.expired and not deadline.connected:
                raise NotConnected(f"could not connect within {self._timeout:g} s") from None
            if deadline.expired:
                message = f"no complete answer within {self._timeout:g} s"
                raise CallError("timeout", message, retryable=True) from None
            if (failure := _failure(error, self._redactor)) is None:
                raise
            raise failure from None

    def close(self) -> None:
        """Close all connections, in the thread that has called."""
        pool, self._pool = self._pool, None
        if pool is not None:
            finish(pool.connector.close(abort_ssl=True))

    async def _send_once(
        self,
        pool: _Pool,
        deadline: _Deadline,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> tuple[int, Mapping[str, str], bytes, list[tuple[int, float]]] | str:
        """Status, headers, body and arrivals, or the URL that a permitted redirect leads to."""
        request = pool.request(method, url, headers)
        deadline.connected = False
        connection = await pool.connector.connect(request.target, [], pool.no_timeout)
        deadline.connected = True
        try:
            protocol, writer = connection.protocol, connection.transport
            assert protocol is not None
            assert writer is not None
            protocol.set_response_params(
                skip_payload=method == "HEAD",
                read_until_eof=True,
                max_line_size=_LONGEST_LINE,
                max_field_size=_LONGEST_LINE,
            )
            writer.write(request.with_body(body))
            message, payload = await protocol.read()
            while 100 <= message.code < 200 and message.code != 101:
                message, payload = await protocol.read()
            status, received = message.code, _readable(message)
            if status in REDIRECTS:
                return redirect_target(status, received, method, url)
            success = 200 <= status < 300
            if success:
                check_announced_size(received, self.max_bytes)
            arrivals: list[tuple[int, float]] = []
            content = await self._body(payload, self.max_bytes if success else CHUNK, arrivals)
            if not success:
                raise status_error(status, received, content, self._retried, self._redactor)
            if writer.get_write_buffer_size():  # answered before it had read the question
                connection.close()
            return status, received, content, arrivals
        except BaseException:
            connection.close()
            raise
        finally:
            connection.release()  # closes the connection unless the whole body was read

    async def _body(
        self, payload: aiohttp.StreamReader, limit: int, arrivals: list[tuple[int, float]]
    ) -> bytes:
        """The whole body; at most a first piece of an error page, which only fills a message."""
        pieces: list[bytes] = []
        size = 0
        while piece := await payload.readany():
            size += len(piece)
            if self._timed:
                arrivals.append((size, time.perf_counter()))
            if size > limit:
                if limit == self.max_bytes:
                    raise too_large(limit, size)
                pieces.append(piece[: limit - size])
                break
            pieces.append(piece)
        return b"".join(pieces)


def _readable(message: RawResponseMessage) -> Mapping[str, str]:
    """The headers of an answer; bytes beyond ASCII as Latin-1, for half a character is no text."""
    if all(map(str.isascii, message.headers.values())):
        return message.headers
    from multidict import CIMultiDict

    pairs = message.raw_headers
    return CIMultiDict((name.decode("latin-1"), text.decode("latin-1")) for name, text in pairs)


class _Pool:
    """The connections of one loop, and the requests that go over them without their bodies."""

    def __init__(self, loop: asyncio.AbstractEventLoop, proxy: str | None) -> None:
        import aiohttp

        self.connector = aiohttp.TCPConnector(limit=0)
        self.no_timeout = aiohttp.ClientTimeout(total=None, sock_connect=None)
        self.loop, self._proxy = loop, proxy
        self._requests: dict[tuple[Any, ...], _Request] = {}
        self._context: ssl.SSLContext | None = None

    def request(self, method: str, url: str, headers: Mapping[str, str]) -> _Request:
        """The request without its body. Raises ValueError for a URL that is none."""
        key = method, url, *headers.items()
        request = self._requests.get(key)
        if request is None:
            request = self._new_request(method, url, headers)
            if len(self._requests) < _MOST_HEADS:
                self._requests[key] = request
        return request

    def _new_request(self, method: str, url: str, headers: Mapping[str, str]) -> _Request:
        from aiohttp.client_reqrep import ClientRequest
        from yarl import URL

        parts = urlsplit(url)
        target = URL(f"{parts.scheme}://{parts.netloc}")
        if not _HOST.fullmatch(target.raw_host or ""):
            raise ValueError("no host")
        if target.user or target.password:  # of a redirect: our own login is a header
            target = target.with_user(None)
        if target.scheme == "https" and self._context is None:
            self._context = _trusted_certificates()
        if self._proxy is not None and not self._proxy.startswith(("http://", "https://")):
            raise OSError("a SOCKS proxy is set; only HTTP proxies can be used")
        request = ClientRequest(
            method,
            target,
            headers=dict(headers),
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
            loop=self.loop,
            proxy=None if self._proxy is None else URL(self._proxy),
            ssl=self._context if target.scheme == "https" and self._context else True,
        )
        path = quote(parts.path or "/", _KEPT) + f"?{quote(parts.query, _KEPT)}".rstrip("?")
        return _Request(request, path)


class _Request:
    """A request whose head is written once. ``target``: its server, for the connector."""

    __slots__ = ("_head", "_path", "target")

    def __init__(self, target: ClientRequest, path: str) -> None:
        self.target, self._path = target, path
        self._head = b""

    def with_body(self, body: bytes | None) -> bytes:
        """What goes over the wire. Called with a connection: a proxy's login is known by then."""
        target = self.target
        if not self._head:
            by_proxy = target.proxy is not None and not target.is_ssl()
            origin = str(target.url.origin()) if by_proxy else ""
            lines = [f"{target.method} {origin}{self._path} HTTP/1.1"]
            for name, value in target.headers.items():
                if name.lower() != "content-length":
                    lines.append(f"{name}: {value}")
            if any(set("\r\n\0") & set(line) for line in lines):
                raise NotConnected("a header of the request has a line break")
            self._head = "\r\n".join(lines).encode("latin-1")
        if body is None and target.method in target.GET_METHODS:
            return self._head + b"\r\n\r\n"
        content = body or b""
        return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (self._head, len(content), content)


class _Deadline:
    """Ends what its task awaits after ``seconds``, with TimeoutError.

    A loop that comes late, since it was held up by work of ours such as a huge answer, gives that
    time back once: what has arrived meanwhile is read first. ``connected``: is there a connection?
    """

    __slots__ = ("_handle", "_loop", "_seconds", "_task", "connected", "expired")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop, self._seconds = loop, seconds
        self.expired = self.connected = False

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._handle = self._loop.call_later(max(0.0, self._seconds), self._expire, True)

    def _expire(self, first: bool) -> None:
        late = self._loop.time() - self._handle.when()
        if first and late > _HELD_UP:
            self._handle = self._loop.call_later(late, self._expire, False)
            return
        self.expired = True
        assert self._task is not None
        self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._handle.cancel()
        if self.expired:
            assert self._task is not None
            if self._task.uncancel() == 0 and kind is asyncio.CancelledError:
                raise TimeoutError


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment sets for an address; None for loopback and ``no_proxy``."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # told when it is asked
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or _is_loopback(host) or proxy_bypass(host if port is None else f"{host}:{port}"):
        return None
    ranges = [name.strip() for name in proxies.get("no", "").split(",") if "/" in name]
    if any(_is_in(host, network) for network in ranges):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_in(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _trusted_certificates() -> ssl.SSLContext:
    """What is trusted: REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE, else Mozilla's list."""
    bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    if not bundle:
        import certifi

        bundle = certifi.where()
    path = Path(bundle)
    if not path.exists():
        raise OSError(f"there is no file or folder of certificates at {path}")
    if path.is_dir():
        return ssl.create_default_context(capath=path)
    return ssl.create_default_context(cafile=path)


def _failure(error: BaseException, redactor: Redactor) -> CallError | None:
    """What an exception of the library means in words; None for what is none of a call.

    Its own message is not repeated: most have the URL with its query.
    """
    import aiohttp
    from aiohttp import http_exceptions

    cause = error.__cause__ or error.__context__
    if type(cause) is http_exceptions.HttpProcessingError:  # around what the parser said
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, http_exceptions.ContentEncodingError) or isinstance(
        cause, http_exceptions.ContentEncodingError
    ):
        return CallError("malformed", "the body's compression does not match its header")
    if isinstance(error, aiohttp.ClientConnectorError):
        return _no_connection(error.os_error)
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        return _no_connection(cause or error)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        reason = redactor.excerpt(f"{error.status} {error.message}", MOST_SHOWN)
        return NotConnected(f"Tunnel connection failed: {reason}")
    if isinstance(error, http_exceptions.HttpProcessingError):
        return _broken(_no_http(cause))
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return _broken("the server closed the connection without an answer")
    if isinstance(error, aiohttp.ClientPayloadError):
        if isinstance(cause, http_exceptions.BadHttpMessage) and not isinstance(
            cause, http_exceptions.PayloadEncodingError
        ):
            return _broken(_no_http(cause))
        return _broken(
            (isinstance(cause, OSError) and cause.strerror)
            or "the connection was closed before the end of the answer"
        )
    if isinstance(error, (aiohttp.InvalidURL, ValueError)):  # also a host name that is none
        return NotConnected("the URL has no valid host")
    if isinstance(error, OSError) and error.errno is None and error.args:
        # no file of certificates there, a proxy of another kind
        return NotConnected(redactor.excerpt(str(error), MOST_SHOWN))
    if isinstance(error, (OSError, aiohttp.ClientError)):
        return _broken(getattr(error, "strerror", None) or type(error).__name__)
    return None


def _broken(message: str) -> CallError:
    return CallError("connection", message, retryable=True)


def _no_connection(reason: BaseException) -> NotConnected:
    if isinstance(reason, ssl.SSLCertVerificationError):
        trust = "REQUESTS_CA_BUNDLE=FILE names certificates to trust"
        return NotConnected(f"{reason.strerror or 'CERTIFICATE_VERIFY_FAILED'}; {trust}")
    number = 0 if isinstance(reason, ssl.SSLError) else getattr(reason, "errno", None) or 0
    if number > 0:
        return NotConnected(os.strerror(number))
    return NotConnected(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__)


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
        return "the server's body does not match its framing headers"
    if "Content-Length" in words or "Transfer-Encoding" in words:
        return "the server sends headers that contradict each other"
    return "the server sends malformed headers"

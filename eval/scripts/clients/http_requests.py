"""The usual transport: ``requests``, with a deadline for the whole call and a size limit."""

from __future__ import annotations

import io
import ipaddress
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

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
from clients.secrets import Redactor

if TYPE_CHECKING:
    import requests
    from requests.adapters import HTTPAdapter


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
        self.max_bytes = max_bytes
        self._retried = retried
        self._redactor = redactor or Redactor()
        self._timed = timed
        self._timeout = timeout
        self._clock = _Deadline()
        self._adapter = _deadline_adapter(connections, self._clock)
        self._settings = environment_settings(url)
        self._templates = RequestTemplates()

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
            raise connection_error(error, self._redactor) from None
        finally:
            if response is not None:
                response.close()

    def _prepared(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> requests.PreparedRequest:
        request = self._templates.get(method, url, headers).copy()
        if body is not None:
            request.body = body
            request.headers["Content-Length"] = str(len(body))
        return request

    def _read(self, response: requests.Response, method: str, url: str) -> Reply | str:
        status, headers = response.status_code, response.headers
        if status in REDIRECTS:
            return redirect_target(status, headers, method, url)
        success = 200 <= status < 300
        if success:
            check_announced_size(headers, self.max_bytes)
        arrivals: list[tuple[int, float]] = []
        body = self._body(response, self.max_bytes if success else CHUNK, arrivals)
        if success:
            return Reply(status, headers, body, 0.0, tuple(arrivals))
        raise status_error(status, headers, body, self._retried, self._redactor)

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
                    raise too_large(limit, size)
                break
            pieces.append(piece)
        return b"".join(pieces)


def environment_settings(url: str) -> dict[str, Any]:
    """Proxies and certificates as the environment sets them for an address, as ``requests`` does.

    Proxies are never used for loopback.
    """
    import requests

    with requests.Session() as session:
        settings: Any = session.merge_environment_settings(url, {}, True, None, None)
    settings["stream"] = True
    if _is_loopback(urlsplit(url).hostname or ""):
        settings["proxies"] = {}
    return dict(settings)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class RequestTemplates:
    """Requests made once for each URL and its headers: making one anew costs a third of a call.
    Not to be changed; thread-safe."""

    def __init__(self) -> None:
        self._templates: dict[tuple[Any, ...], requests.PreparedRequest] = {}

    def get(self, method: str, url: str, headers: Mapping[str, str]) -> requests.PreparedRequest:
        """The request without its body. Raises what ``requests`` does for a URL that is none."""
        import requests

        key = method, url, *headers.items()
        template = self._templates.get(key)
        if template is None:
            template = requests.Request(method, url, headers=dict(headers)).prepare()
            if len(self._templates) < 64:
                self._templates[key] = template
        return template


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

"""Sockets that obey a deadline for the whole call, as an adapter for ``requests``.

A socket's own timeout begins anew with every byte, so a server that sends a byte a second could
hold a call for ever. Here each read is given what is left of the call's time.
"""

from __future__ import annotations

import io
import socket
import threading
import time
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from requests.adapters import HTTPAdapter

CHUNK = 65_536


class Deadline(threading.local):
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


class _Reader(io.RawIOBase):
    """A socket's bytes. The first read needs no new timeout: the library has just set it."""

    def __init__(self, sock: socket.socket, clock: Deadline) -> None:
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


def deadline_adapter(connections: int, clock: Deadline) -> HTTPAdapter:
    """A requests adapter for ``connections`` threads that reads status, headers and body by
    ``clock``, and sends a request in one piece (two would wake the server twice)."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class Response(HTTPResponse):
        def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
            super().__init__(sock, *args, **more)
            self.fp.close()
            self.fp = io.BufferedReader(_Reader(sock, clock), CHUNK)

    class OnePiece(HTTPConnection):
        response_class = Response
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

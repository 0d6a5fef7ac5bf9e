"""Bots that a sweep starts for its settings: embedded ones, or one by a command."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Self
from urllib.parse import urlsplit

from clients.demo_server import demo_server
from records.errors import StorageError, Unreachable

_STDERR = 2
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.1
_MOST_SERVERS = 4
"""Embedded APIs that run at once; each has its own model and index in memory."""
_PORTS = {"http": 80, "https": 443}


class DemoServers:
    """Embedded APIs, one for each list of options; the one that was needed last stays longest.

    A context manager: at its end all are stopped.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._open: dict[tuple[str, ...], tuple[contextlib.ExitStack, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while self._open:
            self._close_oldest()

    def url(self, words: Sequence[str]) -> str:
        """The address of an API with these options, started when it has to be."""
        key = tuple(words)
        if key in self._open:
            self._open[key] = self._open.pop(key)
        else:
            while len(self._open) >= _MOST_SERVERS:
                self._close_oldest()
            stack = contextlib.ExitStack()
            self._open[key] = stack, stack.enter_context(demo_server(key, quiet=self._quiet))
        return self._open[key][1]

    def _close_oldest(self) -> None:
        stack, _ = self._open.pop(next(iter(self._open)))
        stack.close()


@contextlib.contextmanager
def started(words: Sequence[str], url: str, wait_s: float) -> Iterator[None]:
    """Start a command, wait until something listens at the address, stop the command at the end.

    What it prints goes to our stderr. Its process group is ended with it. Raises StorageError when
    it cannot be started or something listens there already, Unreachable when nothing does in time.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    address = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)
    if _listens(address):
        raise StorageError(
            f"another server listens at {url} already; stop it, or its answers would be evaluated."
        )
    try:
        child = subprocess.Popen(
            list(words), stdin=subprocess.DEVNULL, stdout=_STDERR, start_new_session=True
        )
    except OSError as error:
        raise StorageError(f"command {words[0]}: cannot be started ({error.strerror}).") from None
    try:
        deadline = time.monotonic() + wait_s
        while not _listens(address):
            if child.poll() is not None:
                raise Unreachable(
                    f"the command ended with code {child.returncode} before anything listened at "
                    f"{url}: {' '.join(words)}"
                )
            if time.monotonic() > deadline:
                raise Unreachable(
                    f"nothing listens at {url} {wait_s:g} s after the command was started; raise "
                    "wait_s in the grid."
                )
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        _stop(child)


def _listens(address: tuple[str, int]) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(address, 1.0):
        return True
    return False


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the process group that the command has to itself; its own children go with it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(child.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_STOP_SECONDS)
            return

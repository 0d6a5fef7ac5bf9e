"""Worker processes that end when this one does, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection


@contextlib.contextmanager
def worker_pool(size: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``size`` processes. When the block is left by an exception they end at once.

    Each watches a pipe that nobody writes to and that only this process holds open at the other
    end: a kill closes it as well as an end in order, on every platform.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    reader, writer = multiprocessing.Pipe(duplex=False)
    pool = ProcessPoolExecutor(size, initializer=_watch, initargs=(reader, writer))
    try:
        yield pool
    except BaseException:
        writer.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        writer.close()
        reader.close()


def _watch(reader: Connection, writer: Connection) -> None:
    """Begin a worker: its own copy of the writing end would keep the pipe open for ever.

    Ctrl+C and a closed terminal reach all processes; the one that started them says what happens.
    """
    writer.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # how a pool ends workers when one is lost
    threading.Thread(target=_end_with, args=(reader,), daemon=True).start()


def _end_with(reader: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        reader.recv_bytes()
    os._exit(1)

"""Who scores the ranges of a run: processes of this machine, or the workers of a Dask scheduler.

What all ranges need goes to each worker once, by the way that tasks go, too: never by a file of the
run, since unpickling runs what it reads. A task itself is a number and some offsets, so it may be
lost with its worker and be done again elsewhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import signal
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import orjson

from records.errors import StorageError, Unreachable
from records.extras import EXTRAS

if TYPE_CHECKING:
    from concurrent.futures import Executor, ProcessPoolExecutor
    from multiprocessing.connection import Connection


@contextlib.contextmanager
def worker_pool(size: int, sealed: bytes) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of ``size`` processes, whose `opened` returns the value that is ``sealed``. When
    the block is left by an exception they end at once.

    Each watches a pipe without data that only this process keeps open at the other end: a kill
    closes it as well as an end in order, on every platform."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    reader, writer = multiprocessing.Pipe(duplex=False)
    pool = ProcessPoolExecutor(size, initializer=_watch, initargs=(reader, writer, sealed))
    try:
        yield pool
    except BaseException:
        writer.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        writer.close()
        reader.close()


def _watch(reader: Connection, writer: Connection, sealed: bytes) -> None:
    """Begin a worker: its own copy of the writing end would keep the pipe open for ever.

    Ctrl+C and a closed terminal reach all processes; the one that started them says what happens.
    """
    global _of_process
    _of_process = sealed
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


def how_it_ended(exit_code: int | None) -> str:
    """Describe how a process ended from its exit code, if known."""
    if exit_code is None:
        return "was killed"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


ATTEMPTS = 3
"""Times that a range is scored again when its worker was lost."""

_ANSWER_WITHIN = 10.0
"""Seconds in which a scheduler must answer."""

_NEEDED = (
    "--scheduler needs Dask: install it with make setup-cluster, on this machine and on the "
    "workers' machines."
)


class Cluster(NamedTuple):
    """An executor, and how many tasks it does at once."""

    executor: Executor
    threads: int


@contextlib.contextmanager
def cluster(address: str | None) -> Iterator[Cluster | None]:
    """The workers of a Dask scheduler; None without an address.

    Raises StorageError when Dask is not installed or the address is none, Unreachable when the
    scheduler does not answer, has no workers, or is lost on the way.
    """
    if not address:
        yield None
        return
    from concurrent.futures import CancelledError

    try:
        import dask
        from distributed import Client, KilledWorker
        from distributed.comm import CommClosedError
    except ImportError:
        raise StorageError(_NEEDED) from None
    # A scheduler that is gone has forgotten the tasks: to wait for its return helps nobody.
    settings = {
        "distributed.comm.timeouts.connect": f"{_ANSWER_WITHIN}s",
        "distributed.client.scheduler-info-interval": "2s",
        "distributed.admin.large-graph-warning-threshold": "10GB",  # labels: they are needed
    }
    lost = (CancelledError, CommClosedError, TimeoutError, OSError)
    _quiet()
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        try:
            client = Client(address, timeout=_ANSWER_WITHIN, set_as_default=False)
            stack.callback(_close, client)
            workers = client.scheduler_info(n_workers=-1)["workers"].values()
        except ValueError as error:
            raise StorageError(f"--scheduler {address}: {error}; write tcp://HOST:PORT.") from None
        except lost:
            raise Unreachable(
                f"{address}: no Dask scheduler answers there; start one (docs/scale.md)."
            ) from None
        threads = sum(int(worker["nthreads"]) for worker in workers)
        if not threads:
            raise Unreachable(f"{address}: has no workers; start some with make worker.")
        try:
            yield Cluster(cast("Executor", _DaskExecutor(client)), threads)
        except KilledWorker as error:
            raise Unreachable(
                f"{address}: {error.allowed_failures + 1} workers were killed at one range, or ran "
                "out of memory. All scores so far are kept: give the workers more memory, or split "
                "the run into more parts, and start the same command again."
            ) from None
        except lost as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise  # a file of ours
            raise Unreachable(
                f"{address}: the connection to the scheduler was lost. All scores so far are kept: "
                "start it and its workers, then the same command again."
            ) from None


class _DaskExecutor:
    """The workers of a scheduler, as far as they are used like an Executor."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._executor = client.get_executor(pure=False, retries=ATTEMPTS)

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Any,
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[Any]:
        results: Iterator[Any] = self._executor.map(fn, *iterables, timeout=timeout)
        return results

    def sent(self, sealed: bytes) -> Any:
        """In place of it among the arguments of tasks: workers hand it on to each other. It is the
        result of a task, since the scheduler can have that made again; what is scattered is lost
        with the workers that have it."""
        return self._client.submit(bytes, sealed, pure=False, retries=ATTEMPTS)


def sent(executor: Any, sealed: bytes) -> Any:
    """Return ``sealed`` in the form that an executor's tasks take."""
    return executor.sent(sealed) if isinstance(executor, _DaskExecutor) else sealed


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):  # the scheduler may be gone: nothing is left to tell it
        client.close(timeout=2)


def _quiet() -> None:
    """Dask's own messages of lost connections stay away, to the end: one sentence says it."""
    import logging

    for name in [
        name for name in logging.root.manager.loggerDict if name.startswith("distributed")
    ]:
        logging.getLogger(name).setLevel(logging.CRITICAL)


_LIBRARIES = (
    "numpy",
    "msgspec",
    "orjson",
    "rapidfuzz",
    "sentencex",
    "torch",
    "sentence-transformers",
    "tokenizers",
)
"""What else the numbers depend on, besides the toolkit's own code."""

_of_process = b""
"""In a process of a pool: what it was started with."""

_of_thread = threading.local()
"""What a thread opened last: the tasks of a run follow each other, and share their caches."""


@cache
def code_versions() -> dict[str, str]:
    """A hash of the toolkit's code, the version of Python and of each library in use."""
    from importlib import metadata

    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    extras = EXTRAS.glob("*/*.py")  # their scripts and modules, not their tests
    for path in sorted([*root.glob("*/**/*.py"), *extras]):
        name = path.relative_to(root.parent).as_posix()
        digest.update(name.encode() + b"\0" + path.read_bytes())
    versions = {"the toolkit": digest.hexdigest()[:16], "Python": platform.python_version()}
    for name in _LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def sealed(value: Any) -> bytes:
    """Return the value that all tasks need, with the versions that it was made by."""
    return orjson.dumps(code_versions()) + b"\n" + pickle.dumps(value)


def opened(sealed: bytes | None = None) -> Any:
    """In a worker: what all tasks need, made once a thread; None: what its process began with.

    Raises StorageError when the worker runs other code than the process that sealed it.
    """
    sealed = _of_process if sealed is None else sealed
    if getattr(_of_thread, "sealed", None) != sealed:
        versions, _, pickled = sealed.partition(b"\n")
        theirs, own = orjson.loads(versions), code_versions()
        others = [name for name in theirs | own if theirs.get(name) != own.get(name)]
        if others:
            raise StorageError(
                f"worker {platform.node()}: has another version of {', '.join(others)}; install "
                "the same code and packages there, and restart it."
            )
        _of_thread.value = pickle.loads(pickled)
        _of_thread.sealed = sealed
    return _of_thread.value

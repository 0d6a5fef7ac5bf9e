"""Chunks fetched ahead of the annotator, in daemon threads that no exit waits for.

source = Fetcher(ask, described="http://127.0.0.1:8080")   # ask(case_id, query, k) -> chunks
source.request("q-1", "How long …?")
…
for arrival in source.arrivals(): …
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from queue import Empty, PriorityQueue, SimpleQueue
from typing import Final, NamedTuple

from labeller.anchors import Chunk
from labeller.model import Arrival

Ask = Callable[[str, str, int | None], list[Chunk]]
"""Fetches chunks for a case id, a query and a k; raises FetchError."""

THREADS: Final = 2
"""One slow call does not hold up the next question."""
_NOW, _SOON, _NEVER = 0, 1, 2


class _Job(NamedTuple):
    when: int
    number: int
    case_id: str = ""
    text: str = ""
    query: str | None = None
    k: int | None = None
    recalled: bool = False


class FetchError(Exception):
    """Why chunks could not be fetched: one sentence for the status line."""


class Fetcher:
    """A `labeller.ports.Source` over any function that gets chunks."""

    def __init__(
        self,
        ask: Ask,
        described: str | Callable[[], str],
        threads: int = THREADS,
        *,
        kept: Ask | None = None,
    ) -> None:
        """`kept` is asked for what an earlier session found; without it `ask` is."""
        self._ask, self._kept, self._described = ask, kept or ask, described
        self._jobs: PriorityQueue[_Job] = PriorityQueue()
        self._count = itertools.count()
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()
        self._done: SimpleQueue[Arrival] = SimpleQueue()
        self._callback: Callable[[], None] = lambda: None
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"chunks-{n}", daemon=True)
            for n in range(threads)
        ]
        self._started = False

    def request(self, case_id: str, question: str) -> None:
        """Ask for the chunks of a question, once; after a failure it can be asked for again."""
        with self._lock:
            known = case_id in self._asked
        if not known:
            self._put(_SOON, case_id, question, None, None)

    def refetch(self, case_id: str, question: str) -> None:
        """Ask again; an answer to an earlier request that comes late is dropped."""
        self._put(_NOW, case_id, question, None, None)

    def probe(self, case_id: str, query: str, k: int | None = None) -> None:
        """Ask for another query's chunks, or for another number of them; before all others."""
        self._put(_NOW, case_id, query, query, k)

    def recall(self, case_id: str, query: str, k: int | None = None) -> None:
        """Bring back what a probe found in an earlier session, from what was kept if it was."""
        self._put(_SOON, case_id, query, query, k, recalled=True)

    def arrivals(self) -> list[Arrival]:
        """What has come since the last call. Never waits."""
        found = []
        while True:
            try:
                found.append(self._done.get_nowait())
            except Empty:
                return found

    def listen(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, in a fetching thread, after each arrival."""
        self._callback = callback

    def wait(self, case_id: str, timeout: float) -> list[Arrival]:
        """What comes until something for the case is there, or `timeout` seconds are over."""
        found: list[Arrival] = []
        while not any(arrival.case_id == case_id for arrival in found):
            try:
                found.append(self._done.get(timeout=timeout))
            except Empty:
                break
        return found

    def close(self) -> None:
        """Ask for nothing more. A call under way ends by itself."""
        self._closed.set()
        if self._started:
            for _ in self._threads:
                self._jobs.put(_Job(_NEVER, next(self._count)))

    def describe(self) -> str:
        """Where the chunks come from."""
        return self._described if isinstance(self._described, str) else self._described()

    def _put(
        self,
        when: int,
        case_id: str,
        text: str,
        query: str | None,
        k: int | None,
        *,
        recalled: bool = False,
    ) -> None:
        if self._closed.is_set():
            return
        number = next(self._count)
        if query is None:
            with self._lock:
                self._asked[case_id] = number
        self._jobs.put(_Job(when, number, case_id, text, query, k, recalled))
        if not self._started:
            self._started = True
            for thread in self._threads:
                thread.start()

    def _work(self) -> None:
        while not self._closed.is_set():
            when, number, case_id, text, query, k, recalled = self._jobs.get()
            if when == _NEVER or self._closed.is_set():
                return
            ask = self._kept if recalled else self._ask
            found: tuple[Chunk, ...] = ()
            problem = ""
            try:
                found = tuple(ask(case_id, text, k))
            except FetchError as error:
                problem = str(error)
            except Exception as error:  # a thread that dies would leave the screen waiting
                problem = f"{type(error).__name__}: {error}"
            arrival = Arrival(case_id, found, query, problem, k, recalled)
            with self._lock:
                stale = query is None and self._asked.get(case_id) != number
                if query is None and not stale and arrival.problem:
                    del self._asked[case_id]  # it may be asked for again
            if not stale:
                self._done.put(arrival)
                self._callback()


def without_api(case_id: str, query: str, k: int | None) -> list[Chunk]:
    """An `Ask` for sessions that have nothing to ask."""
    raise FetchError("no API and no run: name one with --api-url or --from-run; editing works.")

"""Fetching passages in the background: what is asked for, what arrived, and its delivery."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, PriorityQueue, SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple

from labeller.passages import Chunk
from records.tool_calls import ToolCall

if TYPE_CHECKING:
    from labeller.session import Session


@dataclass(frozen=True)
class Arrival:
    """Chunks that came for a case; `query` is the probe's, None for the case's own question.

    `calls`: of tools, where reported.
    """

    case_id: str
    chunks: tuple[Chunk, ...] = ()
    query: str | None = None
    problem: str = ""
    calls: tuple[ToolCall, ...] = ()


class FetchedChunks(list[Chunk]):
    """The chunks of a result, with the calls of tools that it reports."""

    calls: tuple[ToolCall, ...] = ()


Ask = Callable[[str, str, int | None], list[Chunk]]
"""Fetches chunks for a case id, a query and a k; raises FetchError."""

THREADS: Final = 2
"""Number of calls at once. One slow call does not delay the next question."""

_NOW, _SOON, _NEVER = 0, 1, 2


class _Job(NamedTuple):
    when: int
    number: int
    case_id: str = ""
    text: str = ""
    query: str | None = None
    k: int | None = None


class FetchError(Exception):
    """Why chunks could not be fetched: one sentence for the status line."""


class Fetcher:
    """Fetches chunks in the background, by any function that gets them; never waits or raises."""

    def __init__(
        self, ask: Ask, described: str | Callable[[], str], threads: int = THREADS
    ) -> None:
        self._ask, self._described = ask, described
        self._jobs: PriorityQueue[_Job] = PriorityQueue()
        self._count = itertools.count()
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()
        self._done: SimpleQueue[Arrival] = SimpleQueue()
        self._callback: Callable[[], None] = lambda: None
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"chunks-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def request(self, case_id: str, question: str) -> None:
        """Ask for the chunks of a question, once; after a failure it can be asked for again."""
        with self._lock:
            asked = case_id in self._asked
        if not asked:
            self._put(_SOON, case_id, question)

    def refetch(self, case_id: str, question: str) -> None:
        """Ask again; an answer to an earlier request that comes late is dropped."""
        self._put(_NOW, case_id, question)

    def probe(self, case_id: str, query: str, k: int | None = None) -> None:
        """Ask for another query's chunks, or for another number of them; before all others."""
        self._put(_NOW, case_id, query, query, k)

    def arrivals(self) -> list[Arrival]:
        """The passages that arrived since the last call. Never waits."""
        arrivals = []
        while True:
            try:
                arrivals.append(self._done.get_nowait())
            except Empty:
                return arrivals

    def listen(self, callback: Callable[[], None]) -> None:
        """Have `callback` called, in a fetching thread, after each arrival."""
        self._callback = callback

    def close(self) -> None:
        """Ask for nothing more. A call under way ends by itself."""
        self._closed.set()
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
        query: str | None = None,
        k: int | None = None,
    ) -> None:
        if self._closed.is_set():
            return
        number = next(self._count)
        if query is None:
            with self._lock:
                self._asked[case_id] = number
        self._jobs.put(_Job(when, number, case_id, text, query, k))

    def _work(self) -> None:
        while not self._closed.is_set():
            when, number, case_id, text, query, k = self._jobs.get()
            if when == _NEVER or self._closed.is_set():
                return
            chunks: list[Chunk] = []
            problem = ""
            try:
                chunks = self._ask(case_id, text, k)
            except FetchError as error:
                problem = str(error)
            except Exception as error:  # a thread that dies would leave the screen waiting
                problem = f"{type(error).__name__}: {error}"
            calls = chunks.calls if isinstance(chunks, FetchedChunks) else ()
            arrival = Arrival(case_id, tuple(chunks), query, problem, calls)
            with self._lock:
                stale = query is None and self._asked.get(case_id) != number
                if query is None and not stale and arrival.problem:
                    del self._asked[case_id]  # it may be asked for again
            if not stale:
                self._done.put(arrival)
                self._callback()


def query_and_k(text: str) -> tuple[str, int | None]:
    """`extend retention k=50` as words and the number of chunks asked for."""
    words = text.split()
    if words and words[-1].startswith("k=") and words[-1][2:].isdecimal():
        return " ".join(words[:-1]), max(1, min(1000, int(words[-1][2:])))
    return " ".join(words), None


def without_api(case_id: str, query: str, k: int | None) -> list[Chunk]:
    """An `Ask` for sessions that have nothing to ask."""
    raise FetchError("no API and no run: name one with --api-url or --from-run; editing works.")


def deliver(session: Session, source: Fetcher) -> list[Arrival]:
    """Pass the arrived passages to the session. Returns it, for messages."""
    arrived = source.arrivals()
    for arrival in arrived:
        case_id, query, pool = arrival.case_id, arrival.query, session.pool
        if case_id not in session.queue:
            continue
        if arrival.problem:
            pool.put_problem(case_id, arrival.problem)
        elif query is None:
            pool.calls[case_id] = arrival.calls
            pool.put(case_id, arrival.chunks)
        else:
            pool.add(case_id, arrival.chunks, query)
    return arrived


def prefetch(session: Session, source: Fetcher, ahead: int = 3) -> None:
    """Ask for the chunks of the current case and the next ones, so that moving on never waits."""
    for case_id in filter(session.pool.waits, session.queue.upcoming(ahead)):
        source.request(case_id, session.queue.summaries[case_id].question)

"""Fetching passages in the background, from the bot's API or from the results of a run."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import PriorityQueue, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from labeller.conversation import AskedQuery, asked_query
from labeller.passages import Chunk
from records.errors import StorageError
from records.files import replace_bytes
from records.results import RetrievedChunk, TestResult, passages_unknown
from records.run import Run
from records.tool_calls import ToolCall

if TYPE_CHECKING:
    from clients.profile import Profile
    from clients.secrets import Headers
    from labeller.session import Session


@dataclass(frozen=True)
class Arrival:
    """Chunks and calls of tools that came for a case; `query`: the probe's, None: its own."""

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
        self._callback: Callable[[], object] = lambda: None
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
        return [self._done.get() for _ in range(self._done.qsize())]

    def listen(self, callback: Callable[[], object]) -> None:
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
        self, when: int, case_id: str, text: str, query: str | None = None, k: int | None = None
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


Query = Callable[[str, str, int | None], TestResult]
"""Asks a bot for a case id, a query and a k; failures are results of status ``error``."""


def _chunks_of(result: TestResult) -> FetchedChunks:
    """The retrieved passages of a result. Raises FetchError when it holds nothing to label."""
    if result.error is not None:
        raise FetchError(f"{result.error.kind}: {result.error.message}")
    calls = tuple(result.tools or ())
    if (why := passages_unknown(result)) and not calls:
        raise FetchError(f"{why}: there is nothing to label.")
    chunks = FetchedChunks(_chunk(chunk, rank) for rank, chunk in enumerate(result.chunks(), 1))
    chunks.calls = calls
    return chunks


def _chunk(chunk: RetrievedChunk, rank: int) -> Chunk:
    return Chunk(
        rel_path=chunk.rel_path or chunk.doc_id or chunk.chunk_id,
        heading_path=chunk.heading_path or "",
        text=chunk.text or "",
        chunk_id=chunk.chunk_id,
        rank=chunk.rank or rank,
        score_vector=chunk.score_vector,
        score_lexical=chunk.score_lexical,
        score_final=chunk.score_final,
        cut=chunk.truncated or chunk.text is None,
        page=chunk.page_label,
    )


def run_chunks(run: Run) -> Ask:
    """An `Ask` for the passages stored in a run."""
    lock = threading.Lock()  # the run reads its file through at the first question

    def ask(case_id: str, query: str, k: int | None) -> list[Chunk]:
        try:
            with lock:
                result = run.first_answer(case_id)
        except StorageError as error:
            raise FetchError(str(error)) from None
        if result is None:
            raise FetchError("the run has no result for this case; p needs an API.")
        if query != result.question and result.question:
            raise FetchError("a run cannot answer other questions; name an API with --api-url.")
        return _chunks_of(result)

    return ask


class ApiChunks:
    """The chunks that a bot retrieves. An `Ask` that keeps what it got, for when the bot is away.

    `scope` names the bot and its settings; it is part of the kept file's name, so that another
    bot's chunks are never taken for this one's.
    """

    def __init__(
        self,
        ask: Query,
        cache: Path,
        scope: str,
        asked_as: Callable[[str, str], AskedQuery] = lambda case_id, query: AskedQuery(query),
    ) -> None:
        """`asked_as` says what is sent for a case and a query, and what as said before it."""
        self._ask, self._cache, self._scope, self._asked_as = ask, cache, scope, asked_as
        self.offline = ""

    def __call__(self, case_id: str, query: str, k: int | None) -> list[Chunk]:
        result, path = self._ask(case_id, query, k), self._path(case_id, query, k)
        if result.error is None:
            chunks = _chunks_of(result)
            with contextlib.suppress(StorageError, OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_bytes(path, msgspec.json.encode(result))
            self.offline = ""
            return chunks
        try:
            old = msgspec.json.decode(path.read_bytes(), type=TestResult)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _chunks_of(result)
        self.offline = f"{result.error.kind}: chunks kept from an earlier session"
        return _chunks_of(old)

    def _path(self, case_id: str, query: str, k: int | None) -> Path:
        asked = self._asked_as(case_id, query)
        said_before = (text for message in asked.history for text in message[:2])
        parts = "\0".join((self._scope, asked.text, str(k), *said_before))
        name = hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._cache / f"{name}.json"


SECONDS = 20.0
"""For one call, from connecting to the last byte: a person waits for it."""

MAX_BYTES = 16 * 2**20


@dataclass(frozen=True)
class _Bot:
    """Asks the bot for passages, and for its calls of tools where the profile maps them.

    Usable from several threads. Without `tools` in the profile the bot is asked for passages alone.
    """

    url: str
    profile: Profile
    headers: Headers
    k: int
    cases: Mapping[str, Any]

    def ask(self, case_id: str, query: str, k: int | None) -> TestResult:
        """One call, tried twice. Failures are results of status ``error``."""
        from clients.bot import ChatApi, Question
        from clients.http import RetryPolicy, finish
        from records.cases import ChatMessage

        case = self.cases.get(case_id) or {}
        asked = self.asked_as(case_id, query)
        question = Question(
            case_id,
            asked.text,
            k or self.k,
            vaults=tuple(case.get("vaults") or ()),
            folders=tuple(case.get("folders") or ()),
            user_roles=tuple(case.get("user_roles") or ()),
            history=tuple(ChatMessage(item.role, item.content) for item in asked.history),
        )
        client = ChatApi(
            self.url,
            self.profile,
            self.headers,
            RetryPolicy(self.profile.limits.get("timeout", SECONDS), retries=1),
            retrieval_only="tools" not in self.profile.answer.response,
            max_bytes=MAX_BYTES,
        )
        with contextlib.closing(client):
            return finish(client.ask(question)).result

    def asked_as(self, case_id: str, query: str) -> AskedQuery:
        """What is sent for a query, and what as said before it.

        A bot that takes no messages is asked a follow-up made whole, where the set has that.
        """
        case = self.cases.get(case_id)
        if case is None:
            return AskedQuery(query)
        ids = list(self.cases) if case.get("conversation") else ()
        asked = asked_query(case, query, ids, self.cases.__getitem__)
        if "history" in self.profile.uses:
            return asked
        own = query == str(case.get("question") or "")
        return AskedQuery(str(case.get("question_alone") or asked.text) if own else asked.text)


@contextlib.contextmanager
def api_source(
    url: str, profile_name: str, k: int, profiles: Path, cache: Path, cases: Mapping[str, Any]
) -> Iterator[Fetcher]:
    """The bot as a `Source`; ``demo`` starts the embedded API and stops it at the end.

    Raises StorageError for a profile or an address that cannot be used. A bot that does not answer
    is no error: its arrivals say so, and chunks kept from an earlier session stand in.
    """
    from clients.bot import check_bot_address
    from clients.profile import fill, load_profile
    from clients.secrets import public_url

    check_bot_address(url)
    with contextlib.ExitStack() as stack:
        shown = public_url(url)
        if url == "demo":
            from clients.demo_server import demo_server

            url = stack.enter_context(demo_server((), quiet=True))
        profile = load_profile(profile_name, profiles)
        bot = _Bot(url, *fill(profile, os.environ), k, cases)
        chunks = ApiChunks(bot.ask, cache, f"{shown}\0{profile.sha256}\0{k}", bot.asked_as)
        source = Fetcher(chunks, lambda: chunks.offline or f"{shown}, k = {k}")
        yield stack.enter_context(contextlib.closing(source))

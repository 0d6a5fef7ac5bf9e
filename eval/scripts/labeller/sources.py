"""Where chunks come from: the bot's API, or the results of a run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from decisions.case_verdict import read_verdicts
from labeller.conversation import AskedQuery, asked_query
from labeller.fetching import Ask, FetchedChunks, Fetcher, FetchError
from labeller.passages import Chunk
from records.errors import StorageError
from records.files import replace_bytes
from records.results import (
    RetrievedChunk,
    TestResult,
    passages_unknown,
)
from records.run import Run

if TYPE_CHECKING:
    from clients.profile import Profile
    from clients.secrets import Headers


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
        result = self._ask(case_id, query, k)
        if result.error is None:
            chunks = _chunks_of(result)
            with contextlib.suppress(StorageError, OSError):
                path = self._path(case_id, query, k)
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_bytes(path, msgspec.json.encode(result))
            self.offline = ""
            return chunks
        old = self._read(case_id, query, k)
        if old is None:
            return _chunks_of(result)
        self.offline = f"{result.error.kind}: chunks kept from an earlier session"
        return _chunks_of(old)

    def _read(self, case_id: str, query: str, k: int | None) -> TestResult | None:
        """What was kept of a query, if it can be read."""
        try:
            data = self._path(case_id, query, k).read_bytes()
            return msgspec.json.decode(data, type=TestResult)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def _path(self, case_id: str, query: str, k: int | None) -> Path:
        asked = self._asked_as(case_id, query)
        said_before = (text for message in asked.history for text in message[:2])
        parts = "\0".join((self._scope, asked.text, str(k), *said_before))
        name = hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._cache / f"{name}.json"


def uncertainty(run: Run) -> Mapping[str, float]:
    """How unsure the retriever was of each case of a run: near 1 a tie at the top, 0 no doubt.

    One minus the gap between the two best final scores, as a share of the best score.
    """
    doubts: dict[str, float] = {}
    fields = ("test_case_id", "retrieved.score_final")
    for result in Run(run.folder, tolerant=True).iter_results(*fields):
        chunks = (chunk for chunk in result.retrieved or () if not isinstance(chunk, str))
        scores = sorted(c.score_final for c in chunks if c.score_final is not None)
        if len(scores) > 1 and scores[-1] > 0:
            doubts.setdefault(result.test_case_id, 1 - (scores[-1] - scores[-2]) / scores[-1])
    return doubts


def failures(folder: Path, case_ids: Iterable[str]) -> Mapping[str, float]:
    """How badly each case of a scored run fails: near 2 the most harmful reason, above 1 any other
    one, 0.5 a warning. Cases that are fine, or that the run lacks, are not named.

    Raises StorageError for a run without scores.
    """
    run = read_verdicts(folder)
    if not run.cases:
        raise StorageError(
            f"{folder}: is not scored, so it is not known which cases fail; run "
            f"eval_suite.py --run {folder.name} first."
        )
    rules = run.ruling.rules
    scores: dict[str, float] = {}
    for case_id in case_ids:
        verdict = run.verdict(case_id)
        if verdict is not None and verdict.fails:
            scores[case_id] = 2 - rules.index(verdict.reasons[0]) / len(rules)
        elif verdict is not None and verdict.warnings:
            scores[case_id] = 0.5
    return scores


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
        try:
            return finish(client.ask(question)).result
        finally:
            client.close()

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
        scope = f"{shown}\0{profile.sha256}\0{k}"
        bot = _Bot(url, *fill(profile, os.environ), k, cases)
        chunks = ApiChunks(bot.ask, cache, scope, bot.asked_as)
        described = lambda: chunks.offline or f"{shown}, k = {k}"  # noqa: E731
        source = Fetcher(chunks, described)
        stack.callback(source.close)
        yield source

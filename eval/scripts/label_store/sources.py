"""Where chunks come from: the bot's API, or the results of a run."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

import storage
from label_store.fetch import FetchError
from labeller.anchors import Chunk, anchored
from records.errors import StorageError
from records.files import replace_bytes
from records.results import RetrievedChunk, TestResult

Query = Callable[[str, str, int | None], TestResult]
"""Asks a bot for a case id, a query and a k; failures are results of status ``error``."""


class _Key(msgspec.Struct):
    test_case_id: str


def chunks_of(result: TestResult) -> list[Chunk]:
    """The retrieved passages of a result. Raises FetchError when it holds none to show."""
    if result.error is not None:
        raise FetchError(f"{result.error.kind}: {result.error.message}")
    return [_chunk(chunk, place) for place, chunk in enumerate(result.chunks(), start=1)]


def _chunk(chunk: RetrievedChunk, place: int) -> Chunk:
    return Chunk(
        rel_path=chunk.rel_path or chunk.doc_id or chunk.chunk_id,
        heading_path=chunk.heading_path or "",
        text=chunk.text or "",
        chunk_id=chunk.chunk_id,
        rank=chunk.rank or place,
        score_vector=chunk.score_vector,
        score_lexical=chunk.score_lexical,
        score_final=chunk.score_final,
        cut=chunk.truncated or chunk.text is None,
    )


class RunChunks:
    """The chunks stored in a run's results.jsonl. An `Ask`; the file is read through once."""

    def __init__(self, results: Path) -> None:
        self._path = results
        self._lock = threading.Lock()
        self._offsets: dict[str, int] | None = None

    def __call__(self, case_id: str, query: str, k: int | None) -> list[Chunk]:
        with self._lock:
            if self._offsets is None:
                self._offsets = self._index()
            offset = self._offsets.get(case_id)
        if offset is None:
            raise FetchError("the run holds no result for this case; p needs an API.")
        try:
            with open(self._path, "rb") as file:
                file.seek(offset)
                result = msgspec.json.decode(file.readline(), type=TestResult)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FetchError(f"{self._path.name}: {error}") from None
        if query != result.question and result.question:
            raise FetchError("a run cannot be asked anything else; name an API with --api-url.")
        return chunks_of(result)

    def _index(self) -> dict[str, int]:
        decode = msgspec.json.Decoder(_Key).decode
        offsets: dict[str, int] = {}
        try:
            with open(self._path, "rb") as file:
                offset = 0
                for line in file:
                    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                        offsets.setdefault(decode(line).test_case_id, offset)
                    offset += len(line)
        except OSError as error:
            raise FetchError(f"{self._path}: {error.strerror}") from None
        return offsets


class ApiChunks:
    """The chunks that a bot retrieves. An `Ask` that keeps what it got, for when the bot is away.

    `scope` names the bot and its settings; it is part of the kept file's name, so that another
    bot's chunks are never taken for this one's.
    """

    def __init__(self, ask: Query, cache: Path, scope: str) -> None:
        self._ask, self._cache, self._scope = ask, cache, scope
        self.offline = ""

    def __call__(self, case_id: str, query: str, k: int | None) -> list[Chunk]:
        result = self._ask(case_id, query, k)
        if result.error is None:
            chunks = chunks_of(result)
            with contextlib.suppress(StorageError, OSError):
                kept = self._path(query, k)
                kept.parent.mkdir(parents=True, exist_ok=True)
                replace_bytes(kept, msgspec.json.encode(result))
            self.offline = ""
            return chunks
        old = self._read(query, k)
        if old is None:
            return chunks_of(result)
        self.offline = f"{result.error.kind}: chunks kept from an earlier session"
        return chunks_of(old)

    def kept(self, case_id: str, query: str, k: int | None) -> list[Chunk]:
        """An `Ask` that asks the bot only for what was not kept."""
        old = self._read(query, k)
        return self(case_id, query, k) if old is None else chunks_of(old)

    def _read(self, query: str, k: int | None) -> TestResult | None:
        """What was kept of a query, if it can be read."""
        try:
            kept = self._path(query, k).read_bytes()
            return msgspec.json.decode(kept, type=TestResult)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def _path(self, query: str, k: int | None) -> Path:
        parts = "\0".join((self._scope, query, str(k)))
        name = hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._cache / f"{name}.json"


def uncertainty(results: Path) -> Mapping[str, float]:
    """How unsure the retriever was of each case of a run: near 1 a tie at the top, 0 no doubt.

    One minus the gap between the two best final scores, as a share of the best score.
    """
    found: dict[str, float] = {}
    for result in _results(results):
        scores = sorted(c.score_final for c in result.chunks() if c.score_final is not None)
        if len(scores) > 1 and scores[-1] > 0:
            found.setdefault(result.test_case_id, 1 - (scores[-1] - scores[-2]) / scores[-1])
    return found


def failures(results: Path, cases: Mapping[str, dict[str, Any]]) -> Mapping[str, float]:
    """How badly each case of a run failed, seen from its results alone.

    3 an error; 2 an abstention where there is an answer, or an answer where there is none; 1 no
    gold support retrieved; below 1 the later the first support came.
    """
    found: dict[str, float] = {}
    for result in _results(results):
        case = cases.get(result.test_case_id)
        if case is None or result.test_case_id in found:
            continue
        if result.status == "error":
            found[result.test_case_id] = 3.0
            continue
        answerable = case.get("answerable")
        if answerable is not None and result.abstained is answerable:
            found[result.test_case_id] = 2.0
            continue
        supports = case.get("gold_supports") or ()
        chunks = [_chunk(chunk, place) for place, chunk in enumerate(result.chunks(), start=1)]
        ranks = [i for i, c in enumerate(chunks, 1) if any(anchored(s, c) for s in supports)]
        if supports:
            found[result.test_case_id] = 1 - 1 / ranks[0] if ranks else 1.0
    return found


def _results(path: Path) -> Iterator[TestResult]:
    """The readable results of a run."""
    return storage.iter_results(path, lambda problem: None)

"""The embedded bot without its wire: a request in, the chat API's response out.

``POST /api/v1/ask`` of demo.server hands the parsed request to ``Bot.ask``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec

from demo import guard
from demo.answerer import SOURCES, Answer, Answerer
from demo.chunker import Chunk
from demo.folders import FolderMode, Selection
from demo.retriever import Hit, Retrieval, Retriever

LARGEST_K = 100
LONGEST_QUESTION = 20_000
UNCERTAIN_BELOW = 0.5
"""Confidence below which an answer carries the flag ``uncertain``."""
BLOCKED = Answer("I cannot help with this request.", (), 0.0, "guardrail_blocked")
NOTHING = Retrieval((), Selection((), "blocked by the guardrail: nothing was searched"))


class AskRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a question. What is null or left out takes the bot's default; [] means all."""

    question: Annotated[str, msgspec.Meta(max_length=LONGEST_QUESTION, pattern=r"\S")]
    k: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_K)] | None = None
    vaults: list[str] | None = None
    folders: list[str] | None = None
    folder_mode: FolderMode | None = None


class Bot:
    """Retriever and answerer with the defaults of one server. Safe to use from several threads."""

    def __init__(
        self, retriever: Retriever, answerer: Answerer, *, k: int, folder_mode: FolderMode
    ) -> None:
        self._retriever = retriever
        self._answerer = answerer
        self._k = k
        self._folder_mode = folder_mode

    def health(self) -> dict[str, Any]:
        """What is served: status, vaults, number of chunks, hash of the index."""
        facts = self._retriever.index.facts
        return {
            "status": "ok",
            "vaults": facts["vaults"],
            "chunks": facts["chunks"],
            "index_hash": facts["index_hash"],
        }

    def ask(self, request: AskRequest, *, debug: bool) -> dict[str, Any]:
        """The response to one question; ``debug`` adds what was retrieved and how all was made.

        ``usage`` counts words between white space, for there is no tokenizer to bill by: the
        prompt is the question and the texts that the answerer read, the completion is the answer.
        Times are milliseconds. Raises UnknownFilter, EmbeddingUnavailable.
        """
        clock = _Clock()
        k = request.k or self._k
        mode = request.folder_mode or self._folder_mode
        with clock.stage("guardrail_input"):
            checked = guard.check_input(request.question)
        found, answer = NOTHING, BLOCKED
        if not checked.blocked:
            with clock.stage("retrieve"):
                found = self._retriever.search(
                    request.question,
                    k,
                    vaults=request.vaults or (),
                    folders=request.folders or (),
                    folder_mode=mode,
                )
            with clock.stage("generate"):
                answer = self._answerer.answer(request.question, found.hits)
            with clock.stage("guardrail_output"):
                read = [hit.chunk.text for hit in found.hits[:SOURCES]]
                sent = guard.check_output(answer.text, read)
            checked = guard.Verdict(sent.blocked, checked.scores | sent.scores)
            answer = BLOCKED if sent.blocked else answer
        response = {
            "answer": answer.text,
            "references": [
                {"index": index, **_anchor(chunk)}
                for index, chunk in enumerate(answer.references, start=1)
            ],
            "abstained": answer.abstained,
            "abstain_reason": answer.abstain_reason,
            "confidence": answer.confidence,
            "policy_flags": _flags(answer),
            "guardrail": checked.scores,
            "usage": _usage(request.question, found.hits, answer),
        }
        if debug:
            response |= self._debug(request, found, k, mode)
        response["latency_ms"] = clock.times()
        return response

    def _debug(
        self, request: AskRequest, found: Retrieval, k: int, mode: FolderMode
    ) -> dict[str, Any]:
        retriever = self._retriever
        return {
            "retrieved": [_retrieved(hit) for hit in found.hits],
            "folder_selection": {
                "chosen": list(found.selection.chosen),
                "reason": found.selection.reason,
            },
            "index": retriever.index.facts,
            "retriever": {
                "k": k,
                "filters": {"vaults": request.vaults or [], "folders": request.folders or []},
                "folder_mode": mode,
                "vector_weight": retriever.vector_weight,
                "lexical_weight": retriever.lexical_weight,
                "reranker": None,
            },
            "answerer": {
                "model": "extractive-1",
                "prompt_version": None,
                "abstain_threshold": self._answerer.threshold,
                "sources": SOURCES,
            },
        }


class _Clock:
    """Milliseconds by stage, and in total since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._stages[name] = time.perf_counter() - start

    def times(self) -> dict[str, float]:
        seconds = self._stages | {"total": time.perf_counter() - self._start}
        return {name: round(value * 1000, 3) for name, value in seconds.items()}


def _anchor(chunk: Chunk) -> dict[str, str]:
    return {
        "chunk_id": chunk.chunk_id,
        "doc_id": chunk.doc_id,
        "rel_path": chunk.rel_path,
        "heading_path": chunk.heading_path,
    }


def _retrieved(hit: Hit) -> dict[str, Any]:
    return {
        **_anchor(hit.chunk),
        "score_vector": hit.score_vector,
        "score_lexical": hit.score_lexical,
        "score_final": hit.score_final,
        "text": hit.chunk.text,
        "text_length": len(hit.chunk.text),
        "rank": hit.rank,
    }


def _flags(answer: Answer) -> list[str]:
    if answer is BLOCKED:
        return ["guardrail_blocked"]
    flags = ["no_context"] if answer.abstained else []
    return [*flags, "uncertain"] if answer.confidence < UNCERTAIN_BELOW else flags


def _usage(question: str, hits: tuple[Hit, ...], answer: Answer) -> dict[str, int]:
    read = [question, *(hit.chunk.text for hit in hits[:SOURCES])]
    prompt = sum(len(text.split()) for text in read)
    completion = len(answer.text.split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }

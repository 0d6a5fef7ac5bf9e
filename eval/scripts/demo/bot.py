"""The embedded bot: questions in, the chat API's responses out, and the server that it answers on.

``POST /api/v1/ask`` hands the parsed request to ``Bot.ask``.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Annotated, Any
from urllib.parse import parse_qs

import msgspec
import orjson

from clients.embedder import EmbeddingUnavailable
from demo.answerer import SOURCES, THRESHOLD, DemoAnswer, extract_answer
from demo.chunker import NoteChunk
from demo.retriever import FolderMode, Hit, Retrieval, Retriever, UnknownFilter, carried_terms
from guardrails import injection, leakage

UNCERTAIN_BELOW = 0.5  # confidence of an answer that carries the flag ``uncertain``

BLOCKED = DemoAnswer("I cannot help with this request.", (), 0.0, "guardrail_blocked")
NOTHING = Retrieval((), (), "blocked by the guardrail: nothing was searched")


class AskRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a question. What is null or left out takes its default; [] means all.

    ``history`` holds the messages {role, content} so far, oldest first; only the words of the
    ``user`` are read. ``session`` names the conversation; this bot remembers none.
    """

    question: Annotated[str, msgspec.Meta(max_length=20_000, pattern=r"\S")]
    k: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    vaults: list[str] | None = None
    folders: list[str] | None = None
    folder_mode: FolderMode | None = None
    history: list[dict[str, str]] | None = None
    session: str | None = None


class Bot:
    """Answers from one index. Safe to use from several threads."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    def ask(self, request: AskRequest, *, debug: bool) -> dict[str, Any]:
        """The response to one question; ``debug`` adds the retrieved passages and how each part was
        made.

        ``usage`` counts words between white space, for there is no tokenizer to bill by: the
        prompt is the question and the texts that the answerer read, the completion is the answer.
        Times are milliseconds. Raises UnknownFilter, EmbeddingUnavailable.
        """
        start = time.perf_counter()
        latency: dict[str, float] = {}
        retriever, rarity = self._retriever, self._retriever.index.lexical.rarity
        k, mode = request.k or 10, request.folder_mode or "off"
        vaults, folders = request.vaults or [], request.folders or []
        turns = request.history or ()
        earlier = [turn.get("content", "") for turn in turns if turn.get("role") == "user"]
        with _timed(latency, "guardrail_input"):
            attack = injection.score_injection(request.question)
        scores: dict[str, Any] = {"input_score": round(attack.score, 4)}
        scores["input_category"] = attack.category
        carried = carried_terms(request.question, earlier, rarity)
        question = " ".join([request.question, *carried])
        found, answer = NOTHING, BLOCKED
        if attack.score < injection.BLOCK:
            with _timed(latency, "retrieve"):
                found = retriever.search(request.question, carried, k, mode, vaults, folders)
            with _timed(latency, "generate"):
                answer = extract_answer(
                    question, found.hits, carried, rarity, retriever.vector_weight
                )
            with _timed(latency, "guardrail_output"):
                scores |= _check_output(answer.text, found.hits)
            answer = BLOCKED if scores["output_score"] >= leakage.BLOCK else answer
        flags = ["no_context"] if answer.abstain_reason else []
        flags += ["uncertain"] if answer.confidence < UNCERTAIN_BELOW else []
        read = [question, *(hit.chunk.text for hit in found.hits[:SOURCES])]
        prompt, completion = sum(len(text.split()) for text in read), len(answer.text.split())
        response = {
            "answer": answer.text,
            "references": [
                _place(chunk) | {"index": mark} for mark, chunk in enumerate(answer.references, 1)
            ],
            "abstained": answer.abstain_reason is not None,
            "abstain_reason": answer.abstain_reason,
            "confidence": answer.confidence,
            "policy_flags": ["guardrail_blocked"] if answer is BLOCKED else flags,
            "guardrail": scores,
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion}
            | {"total_tokens": prompt + completion},
        }
        if debug:
            filters = {"vaults": vaults, "folders": folders}
            settings = {"k": k, "filters": filters, "folder_mode": mode}
            response |= _retrieval(found, start) | self._facts(settings)
        latency["total"] = _milliseconds(start, time.perf_counter())
        return response | {"latency_ms": latency}

    def _facts(self, settings: dict[str, Any]) -> dict[str, Any]:
        """How the three parts were made."""
        return {
            "index": self._retriever.index.facts,
            "retriever": {
                **settings,
                "vector_weight": self._retriever.vector_weight,
                "lexical_weight": self._retriever.lexical_weight,
                "reranker": None,
            },
            "answerer": {
                "model": "extractive-1",
                "prompt_version": None,
                "abstain_threshold": THRESHOLD,
                "sources": SOURCES,
            },
        }


def _retrieval(found: Retrieval, start: float) -> dict[str, Any]:
    """What was retrieved, and for a follow-up by which searches; ``start``: of the call."""
    selection = {"chosen": found.folders, "reason": found.reason}
    response = {"retrieved": [_retrieved(hit) for hit in found.hits], "folder_selection": selection}
    if not found.searches:
        return response
    searches = [
        {
            "query": search.query,
            "start_ms": _milliseconds(start, search.start),
            "latency_ms": _milliseconds(search.start, search.end),
            "retrieved": [_retrieved(hit) for hit in search.hits],
        }
        for search in found.searches
    ]
    return response | {"rewritten_query": found.searches[-1].query, "searches": searches}


def _check_output(answer: str, hits: Sequence[Hit]) -> dict[str, Any]:
    """How much the answer gives away, in [0, 1] by kind of leak; the score leaves copying out.

    This bot answers in its sources' own words, so a copied passage is no fault of it.
    """
    report = leakage.score_leakage(answer, [hit.chunk.text for hit in hits[:SOURCES]])
    leaks = {name: round(score, 4) for name, score in report.categories.items()}
    worst = max(score for name, score in leaks.items() if name != "verbatim_context")
    return {"output_score": worst, "output_categories": leaks}


@contextmanager
def _timed(latency: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    latency[stage] = _milliseconds(start, time.perf_counter())


def _milliseconds(start: float, end: float) -> float:
    return round((end - start) * 1000, 3)


def _place(chunk: NoteChunk) -> dict[str, Any]:
    return {
        "chunk_id": chunk.chunk_id,
        "doc_id": chunk.rel_path,
        "rel_path": chunk.rel_path,
        "heading_path": chunk.heading_path,
        **({} if chunk.page is None else {"page": chunk.page}),
    }


def _retrieved(hit: Hit) -> dict[str, Any]:
    return {
        **_place(hit.chunk),
        "score_vector": hit.score_vector,
        "score_lexical": hit.score_lexical,
        "score_final": hit.score_final,
        "text": hit.chunk.text,
        "text_length": len(hit.chunk.text),
        "rank": hit.rank,
    }


HOST, PATH = "127.0.0.1", "/api/v1/ask"


class BotServer(ThreadingTCPServer):
    """Serves ``bot`` to programs of this machine on ``port``; 0 takes a free one (see ``url``)."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, port: int, bot: Bot) -> None:
        """Binds at once; raises OSError when the port is taken."""
        super().__init__((HOST, port), _Handler)
        self.bot = bot
        self.url = f"http://{HOST}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no event; anything else is printed on stderr."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: BotServer
    default_request_version = protocol_version = "HTTP/1.1"  # no answer without a head
    wbufsize = -1  # head and body leave in one packet

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch("[0-9]{1,6}", length):
            return self.send_error(413, "send a Content-Length of at most 999999 bytes")
        body = self.rfile.read(int(length))
        # Another name that points here is a web page's way to read the notes (DNS rebinding).
        if self.headers.get("Host", HOST).lower().partition(":")[0] not in (HOST, "localhost"):
            return self.send_error(403, f"only requests to {self.server.url} are answered")
        path, _, query = self.path.partition("?")
        if (self.command, path) != ("POST", PATH):
            return self.send_error(404, f"use POST {PATH}")
        debug = parse_qs(query).get("debug", [""])[-1].lower() in ("true", "1")
        try:
            request = msgspec.json.decode(body, type=AskRequest)
            response = self.server.bot.ask(request, debug=debug)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UnknownFilter) as error:
            self.send_error(400, str(error))
        except EmbeddingUnavailable as error:
            self.send_error(503, str(error))
        except Exception:  # the client gets no traceback, stderr does
            self.send_error(500, "internal error; see the messages of demo_api.py")
            raise
        else:
            self._send(200, response)

    do_GET = do_POST

    def _send(self, status: int, payload: dict[str, Any]) -> None:
        data = orjson.dumps(payload)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close" if self.close_connection else "keep-alive")
        self.end_headers()
        self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request, also one that the base class cannot read; the connection ends."""
        self.close_connection = True
        self._send(code, {"error": {"message": message or HTTPStatus(code).phrase}})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Requests are not logged."""

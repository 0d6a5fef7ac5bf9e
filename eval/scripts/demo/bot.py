"""The embedded bot without its wire: a request in, the chat API's response out.

``POST /api/v1/ask`` of demo.server hands the parsed request to ``Bot.ask``.
"""

from __future__ import annotations

import logging
import re
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs, urlsplit

import msgspec
import orjson

from clients.embedder import EmbeddingUnavailable
from clients.own_pages import bracketed, is_own, own_hosts
from demo.answerer import SOURCES, Answerer, DemoAnswer
from demo.chunker import NoteChunk
from demo.retriever import (
    FolderMode,
    Hit,
    IndexSearch,
    Retrieval,
    Retriever,
    Selection,
    UnknownFilter,
)
from demo.rewriting import FollowUp, Sessions, rewrite
from guardrails import injection, leakage

LARGEST_K = 100

LONGEST_QUESTION = 20_000

MOST_MESSAGES = 1000

HISTORY_WEIGHT = 0.5
"""Weight of a term of the last question in a follow-up, unless a setting changes it."""

UNCERTAIN_BELOW = 0.5
"""Confidence below which an answer carries the flag ``uncertain``."""

BLOCKED = DemoAnswer("I cannot help with this request.", (), 0.0, "guardrail_blocked")

NOTHING = Retrieval((), Selection((), "blocked by the guardrail: nothing was searched"))


class _Message(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What was said before the question. Only the words of the ``user`` are read."""

    role: Literal["user", "assistant", "system"]
    content: Annotated[str, msgspec.Meta(max_length=LONGEST_QUESTION)]


class _AskRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a question. What is null or left out takes the bot's default; [] means all.

    ``history`` holds the conversation so far, oldest message first. Without it ``session`` names
    a conversation that this server remembers.
    """

    question: Annotated[str, msgspec.Meta(max_length=LONGEST_QUESTION, pattern=r"\S")]
    k: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_K)] | None = None
    vaults: list[str] | None = None
    folders: list[str] | None = None
    folder_mode: FolderMode | None = None
    history: Annotated[list[_Message], msgspec.Meta(max_length=MOST_MESSAGES)] | None = None
    session: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class Bot:
    """Retriever and answerer with the defaults of one server. Safe to use from several threads."""

    def __init__(
        self,
        retriever: Retriever,
        answerer: Answerer,
        *,
        k: int,
        folder_mode: FolderMode,
        history_weight: float = HISTORY_WEIGHT,
    ) -> None:
        """``history_weight`` in [0, 1]: what a follow-up takes from the question before it."""
        self._sessions = Sessions()
        self._history_weight = history_weight
        self._retriever = retriever
        self._answerer = answerer
        self._k = k
        self._folder_mode = folder_mode

    def health(self) -> dict[str, Any]:
        """The served index and settings: status, vaults, number of chunks, hash of the index."""
        facts = self._retriever.index.facts
        return {
            "status": "ok",
            "vaults": facts["vaults"],
            "chunks": facts["chunks"],
            "index_hash": facts["index_hash"],
        }

    def ask(self, request: _AskRequest, *, debug: bool) -> dict[str, Any]:
        """The response to one question; ``debug`` adds the retrieved passages and how each part was
        made.

        ``usage`` counts words between white space, for there is no tokenizer to bill by: the
        prompt is the question and the texts that the answerer read, the completion is the answer.
        Times are milliseconds. Raises UnknownFilter, EmbeddingUnavailable.
        """
        clock = _Clock()
        k = request.k or self._k
        mode = request.folder_mode or self._folder_mode
        with clock.stage("guardrail_input"):
            checked = _check_input(request.question)
        follow_up = self._follow_up(request)
        retrieval, answer = NOTHING, BLOCKED
        if not checked.blocked:
            with clock.stage("retrieve"):
                retrieval = self._retrieve(request, follow_up, k, mode)
            with clock.stage("generate"):
                answer = self._answerer.answer(follow_up.text, retrieval.hits, follow_up.carried)
            with clock.stage("guardrail_output"):
                read = [hit.chunk.text for hit in retrieval.hits[:SOURCES]]
                sent = _check_output(answer.text, read)
            checked = _GuardrailVerdict(sent.blocked, checked.scores | sent.scores)
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
            "usage": _usage(follow_up.text, retrieval.hits, answer),
        }
        if debug:
            response |= self._debug(request, retrieval, k, mode)
        if debug and retrieval.searches:
            response["rewritten_query"] = follow_up.text
            response["searches"] = [_searched(search, clock) for search in retrieval.searches]
        response["latency_ms"] = clock.times()
        return response

    def _follow_up(self, request: _AskRequest) -> FollowUp:
        """The question with what it takes from those before it."""
        earlier: list[str] = []
        if request.history is not None:
            earlier = [turn.content for turn in request.history if turn.role == "user"]
        elif request.session is not None:
            earlier = self._sessions.take(request.session, request.question)
        rarity = self._retriever.index.lexical.rarity
        return rewrite(request.question, earlier, self._history_weight, rarity)

    def _retrieve(
        self, request: _AskRequest, follow_up: FollowUp, k: int, mode: FolderMode
    ) -> Retrieval:
        vaults, folders = request.vaults or (), request.folders or ()
        if not follow_up.carried:
            return self._retriever.search(
                request.question, k, vaults=vaults, folders=folders, folder_mode=mode
            )
        return self._retriever.search_again(
            request.question,
            follow_up.text,
            follow_up.carried,
            self._history_weight,
            k,
            vaults=vaults,
            folders=folders,
            folder_mode=mode,
        )

    def _debug(
        self, request: _AskRequest, retrieval: Retrieval, k: int, mode: FolderMode
    ) -> dict[str, Any]:
        retriever = self._retriever
        return {
            "retrieved": [_retrieved(hit) for hit in retrieval.hits],
            "folder_selection": {
                "chosen": list(retrieval.selection.chosen),
                "reason": retrieval.selection.reason,
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
                # said where it was set: a server that was not told answers as it always did
                **self._history_facts(),
            },
        }

    def _history_facts(self) -> dict[str, float]:
        weight = self._history_weight
        return {} if weight == HISTORY_WEIGHT else {"history_weight": weight}


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

    def since(self, moment: float) -> float:
        """Milliseconds from the start to ``moment``, a reading of ``time.perf_counter``."""
        return round((moment - self._start) * 1000, 3)

    def times(self) -> dict[str, float]:
        seconds = self._stages | {"total": time.perf_counter() - self._start}
        return {name: round(value * 1000, 3) for name, value in seconds.items()}


def _anchor(chunk: NoteChunk) -> dict[str, str]:
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


def _searched(search: IndexSearch, clock: _Clock) -> dict[str, Any]:
    return {
        "query": search.query,
        "start_ms": clock.since(search.start),
        "latency_ms": round(search.seconds * 1000, 3),
        "retrieved": [_retrieved(hit) for hit in search.hits],
    }


def _flags(answer: DemoAnswer) -> list[str]:
    if answer is BLOCKED:
        return ["guardrail_blocked"]
    flags = ["no_context"] if answer.abstained else []
    return [*flags, "uncertain"] if answer.confidence < UNCERTAIN_BELOW else flags


def _usage(question: str, hits: tuple[Hit, ...], answer: DemoAnswer) -> dict[str, int]:
    read = [question, *(hit.chunk.text for hit in hits[:SOURCES])]
    prompt = sum(len(text.split()) for text in read)
    completion = len(answer.text.split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


@dataclass(frozen=True, slots=True)
class _GuardrailVerdict:
    """``scores`` as the response shows them: numbers in [0, 1], and names of categories."""

    blocked: bool
    scores: dict[str, Any]


def _check_input(question: str) -> _GuardrailVerdict:
    """How much the question looks like an attack on the prompt; blocked from ``BLOCK`` on."""
    report = injection.score_injection(question)
    scores = {"input_score": round(report.score, 4), "input_category": report.category}
    return _GuardrailVerdict(report.score >= injection.BLOCK, scores)


def _check_output(answer: str, contexts: Sequence[str]) -> _GuardrailVerdict:
    """How much the answer gives away; blocked from ``BLOCK`` on.

    ``output_categories`` holds all four leaks, ``output_score`` the highest but copying: this bot
    answers in its sources' own words, so a copied passage is no fault of it.
    """
    report = leakage.score_leakage(answer, contexts)
    categories = {name: round(score, 4) for name, score in report.categories.items()}
    worst = max(score for name, score in categories.items() if name != "verbatim_context")
    scores = {"output_score": worst, "output_categories": categories}
    return _GuardrailVerdict(worst >= leakage.BLOCK, scores)


ASK = "/api/v1/ask"

HEALTH = "/health"

METHODS = {ASK: ("POST",), HEALTH: ("GET", "HEAD")}

BODY_LIMIT = 1 << 20
"""Bytes of a request's body."""

DRAIN_LIMIT = 16 << 20
"""Bytes that are read and dropped, so that a client which sends too much can read the refusal."""

MOST_DIGITS = 20
"""Of a Content-Length: no body is longer, and int() refuses some thousands."""

IDLE_SECONDS = 120.0

FLAGS = {"true": True, "1": True, "": True, "false": False, "0": False}

_FIELD = re.compile(r" - at `\$\.?([^`]*)`$")

_UNKNOWN_FIELD = re.compile(r"contains unknown field `(.*)`")

_MISSING_FIELD = re.compile(r"missing required field `(.*)`")

log = logging.getLogger("demo.bot")


class _Refusal(Exception):
    """A request that gets no answer: the status, the field at fault (None: not in the body)."""

    def __init__(self, status: HTTPStatus, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field

    def payload(self) -> dict[str, Any]:
        return {"error": {"field": self.field, "message": str(self)}}


class BotServer(ThreadingHTTPServer):
    """Serves ``bot`` on ``host:port``; port 0 takes a free one (see ``url``)."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, host: str, port: int, bot: Bot) -> None:
        """Binds at once; raises OSError when the address is taken or unknown."""
        self.bot = bot
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)
        self.own = own_hosts(host, self.server_port)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{bracketed(str(host))}:{port}"

    def server_bind(self) -> None:
        """As in the base class, without its name lookup, which hangs where there is no network."""
        if self.allow_reuse_address:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no event; anything else is logged."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            log.exception("connection of %s failed", client_address)


class _Handler(BaseHTTPRequestHandler):
    server: BotServer
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # 0.9 would leave out the status of a refusal
    server_version = "rag-eval-demo"
    sys_version = ""
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet

    def _handle(self) -> None:
        try:
            status, payload = HTTPStatus.OK, self._answer()
        except _Refusal as refusal:
            status, payload = refusal.status, refusal.payload()
        except (ConnectionError, TimeoutError):
            raise
        except Exception:  # the client gets no traceback, the log does
            log.exception("%s %s failed", self.command, self.path)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            payload = _Refusal(status, "internal error; see the server's log").payload()
        self._send(status, payload)

    do_GET = do_POST = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _handle

    def _answer(self) -> dict[str, Any]:
        target = urlsplit(self.path)
        body = self._body()  # read in any case, so that the connection can be kept
        if not is_own(self.server.own, self.headers.get("Host"), self.headers.get("Origin")):
            raise _Refusal(
                HTTPStatus.FORBIDDEN,
                f"this server answers only requests to {self.server.url}, and none from other web "
                "pages; for another name, start demo_api.py with --host NAME",
            )
        if target.path not in METHODS:
            raise _Refusal(HTTPStatus.NOT_FOUND, f"no such path; use: {', '.join(METHODS)}")
        if self.command not in METHODS[target.path]:
            raise _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"use {METHODS[target.path][0]}")
        if target.path == HEALTH:
            return self.server.bot.health()
        request = _parse(body)
        debug = _debug_flag(target.query)
        try:
            return self.server.bot.ask(request, debug=debug)
        except UnknownFilter as error:
            raise _Refusal(HTTPStatus.BAD_REQUEST, str(error), error.field) from None
        except EmbeddingUnavailable as error:
            raise _Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length")
        if length is None:
            return b""
        if not (length.isascii() and length.isdigit() and len(length) <= MOST_DIGITS):
            self.close_connection = True
            raise _Refusal(HTTPStatus.BAD_REQUEST, "Content-Length is not a whole number")
        size = int(length)
        if size > BODY_LIMIT:
            self.close_connection = True
            left = min(size, DRAIN_LIMIT)
            while left > 0 and (block := self.rfile.read(min(left, 1 << 16))):
                left -= len(block)
            limit = f"the body has {size} bytes; at most {BODY_LIMIT} are read"
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit, "body")
        body = self.rfile.read(size)
        if len(body) < size:
            raise ConnectionResetError("the client left before its request was whole")
        return body

    def _send(self, status: HTTPStatus, payload: dict[str, Any]) -> None:
        data = orjson.dumps(payload)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(METHODS[urlsplit(self.path).path]))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses by itself (a broken request line, too many headers)."""
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(status, _Refusal(status, message or status.phrase).payload())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        log.debug(format, *args)


def _parse(body: bytes) -> _AskRequest:
    if not body:
        raise _Refusal(HTTPStatus.BAD_REQUEST, "send a JSON object with a question", "body")
    try:
        return msgspec.json.decode(body, type=_AskRequest)
    except msgspec.ValidationError as error:
        message = str(error)
        for pattern in (_UNKNOWN_FIELD, _MISSING_FIELD, _FIELD):
            if match := pattern.search(message):
                field = match[1] or "body"
                break
        else:
            field = "body"
        if field == "question" and "regex" in message:
            message = "must contain more than white space"
        raise _Refusal(HTTPStatus.BAD_REQUEST, _FIELD.sub("", message), field) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Refusal(HTTPStatus.BAD_REQUEST, f"not JSON: {error}", "body") from None


def _debug_flag(query: str) -> bool:
    value = parse_qs(query, keep_blank_values=True).get("debug", ["false"])[-1].lower()
    if value not in FLAGS:
        raise _Refusal(HTTPStatus.BAD_REQUEST, "write debug=true or debug=false", "debug")
    return FLAGS[value]

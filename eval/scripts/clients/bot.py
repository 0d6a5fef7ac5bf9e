"""Asks a RAG bot over HTTP as its profile describes, and maps each answer to a TestResult.

    api = ChatApi("http://127.0.0.1:8080", profile, headers, RetryPolicy(timeout=60))
    answer = await api.ask(Question(case_id="q1", text="How do I…?", k=10))

A call that fails becomes a result of status ``error`` with one of the kinds in ``http.KINDS``;
it never becomes an answer.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import msgspec
import orjson

from clients.curl import FORM
from clients.expressions import compile_path
from clients.http import (
    CallError,
    CallFailed,
    NotConnected,
    Reply,
    RetryPolicy,
    call_with_retries,
    finish,
)
from clients.limits import CallLimits
from clients.mapping import AnswerMap, build_result, payload_fields
from clients.profile import Profile
from clients.secrets import Headers, literal_keys, url_in_message, without_login
from clients.streams import ACCEPTED, Stream, read_stream
from clients.templates import merge, render
from clients.transport import HttpTransport
from records.cases import ChatMessage, TestCase
from records.errors import StorageError
from records.lines import MAX_DEPTH, nests_deeper, parse_json
from records.results import ErrorInfo, TestResult
from records.tool_calls import ToolCall

BOM = b"\xef\xbb\xbf"

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Question:
    """The values that a request template can contain. None and empty lists are left out of it."""

    case_id: str
    text: str
    k: int | None = None
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    folder_mode: str | None = None
    user_roles: tuple[str, ...] = ()
    repeat: int = 0
    seed: int | None = None
    run_id: str | None = None
    history: tuple[ChatMessage, ...] = ()
    session: str | None = None
    in_session: bool = False
    """Whether the bot may have taken a question whose answer did not come: it is not sent again."""
    reset: bool = False
    """Whether the bot has to forget the conversation before, if the profile says how."""

    @classmethod
    def of_case(cls, case: TestCase, k: int | None, **more: Any) -> Question:
        """The question of a case with the filters of its passages."""
        return cls(
            case.id,
            case.question,
            k,
            vaults=tuple(case.vaults),
            folders=tuple(case.folders),
            user_roles=tuple(case.user_roles),
            **more,
        )

    def values(self) -> dict[str, Any]:
        """The placeholders of a request template and their values."""
        random_id = str(uuid.uuid4())
        return {
            "question": self.text,
            "k": self.k,
            "vaults": list(self.vaults),
            "folders": list(self.folders),
            "folder_mode": self.folder_mode,
            "user_roles": list(self.user_roles),
            "case_id": self.case_id,
            "repeat": self.repeat,
            "seed": self.seed,
            "run_id": self.run_id,
            "history": [],
            "session": self.session,
            "uuid": random_id,
            "session_or_uuid": self.session or random_id,
        }


@dataclass(frozen=True, slots=True)
class BotAnswer:
    """A result with the facts that the bot reported about itself; the first ones also with their
    fields' names."""

    result: TestResult
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    fields_seen: list[str] = field(default_factory=list)
    connected: bool = True
    """False when no try got as far as a connection."""


_Send = Callable[[float], Coroutine[Any, Any, Reply]]
"""Sends a request, within so many seconds."""


class ChatApi:
    """One bot. Any number of ``ask`` may be under way in one loop."""

    def __init__(
        self,
        url: str,
        profile: Profile,
        headers: Headers | None = None,
        policy: RetryPolicy | None = None,
        *,
        retrieval_only: bool = False,
        limits: CallLimits | None = None,
        max_bytes: int = 64 * 2**20,
        user_agent: str = "rag-eval-toolkit",
    ) -> None:
        self._profile = profile
        self._policy = policy or RetryPolicy()
        self._limits = limits
        self._retrieval_only = retrieval_only
        self.stop = threading.Event()
        headers = headers or Headers()
        self._headers = {
            "User-Agent": user_agent,
            "Accept": f"{ACCEPTED[profile.stream.form]}, {JSON}" if profile.stream else JSON,
            "Accept-Encoding": "gzip, deflate",
            **({} if profile.body is None else {"Content-Type": JSON}),
            **headers.values,
        }
        overlay = profile.retrieval_only if retrieval_only and profile.retrieval_only else {}
        self._body = merge(profile.body, overlay["body"]) if "body" in overlay else profile.body
        self._query = merge(dict(profile.query), overlay.get("query", {}))
        keys = [key for part in (self._query, self._body) for _, key in literal_keys(part)]
        url, login, self.redactor = without_login(url, [*headers.secrets, *keys])
        for name, value in login.items():
            self._headers.setdefault(name, value)
        self._url = urlsplit(url)
        parts = (profile.path, *self._query.values())
        fixed = not any(set("{}") & set(str(part)) for part in parts)
        self._fixed_url = (
            self._url_for(profile.path, self._query, {"session": None}) if fixed else None
        )
        self._seen = False
        self._transport = HttpTransport(
            url,
            max_bytes=max_bytes,
            timeout=self._policy.timeout,
            redactor=self.redactor,
        )

    async def ask(self, question: Question) -> BotAnswer:
        """Ask once, with retries. Raises Interrupted when ``stop`` is set, and nothing else."""
        attempts = 1
        try:
            if question.reset and self._profile.reset is not None:
                send = self._other(self._profile.reset, question)
                await call_with_retries(send, self._policy, self.stop, limits=self._limits)
            if self._profile.begin is not None and question.session is None:
                send = self._other(self._profile.begin, question)
                begun, _ = await call_with_retries(
                    send, self._policy, self.stop, limits=self._limits
                )
                question = self._begun(question, begun)
            send = self._request(question)
            reply, attempts = await call_with_retries(
                send, self._policy, self.stop, limits=self._limits
            )
            await asyncio.sleep(0)  # answers that came together have their times before one is read
            answer = self._read(reply, question)
            if self._profile.begin is not None:
                answer.result.session = answer.result.session or question.session
            tokens = answer.result.usage.get("total_tokens")
            if self._limits is not None and isinstance(tokens, int):
                self._limits.spent(tokens)
            return answer
        except CallFailed as failed:
            return self._failed(failed.error, question, failed.attempts)
        except CallError as error:
            return self._failed(error, question, attempts)

    def reply(self, question: Question) -> Reply:
        """One try, as the bot answers it. Raises CallError for anything but a success."""
        if self._profile.begin is not None and question.session is None:
            begun = finish(self._other(self._profile.begin, question)(self._policy.timeout))
            question = self._begun(question, begun)
        return finish(self._request(question)(self._policy.timeout))

    def _begun(self, question: Question, reply: Reply) -> Question:
        """The question in the conversation that the bot has just begun. Raises CallError."""
        path = (self._profile.begin or {})["session"]
        session = compile_path(path)(_parse(reply))
        if not session or not isinstance(session, (str, int)):
            raise CallError("mapping", f"begin.session: the answer has no id at {path}")
        return replace(question, session=str(session))

    def _request(self, question: Question) -> _Send:
        """The request for a question, which is sent with the seconds that it may take."""
        values = self._values(question)
        url = self._fixed_url or self._url_for(self._profile.path, self._query, values)
        body = None if self._body is None else self._encoded(render(self._body, values))

        def send(timeout: float) -> Coroutine[Any, Any, Reply]:
            return self._transport.send(self._profile.method, url, self._headers, body, timeout)

        async def send_once(timeout: float) -> Reply:
            try:
                return await send(timeout)
            except NotConnected:
                raise
            except CallError as error:
                error.retryable = error.retryable and error.kind not in ("timeout", "connection")
                raise

        return send_once if question.in_session else send

    def _encoded(self, body: Any) -> bytes:
        """The body as JSON, or as a form where the headers say so."""
        if self._headers.get("Content-Type", JSON).lower().startswith(FORM):
            return urlencode({name: _query_text(value) for name, value in body.items()}).encode()
        return orjson.dumps(body)

    def _other(self, request: Mapping[str, Any], question: Question) -> _Send:
        """A request beside the question's: to begin a conversation, or to forget what came."""
        values = self._values(question)
        url = self._url_for(
            request.get("path", self._profile.path), request.get("query", {}), values
        )
        body = orjson.dumps(render(request["body"], values)) if "body" in request else None
        headers = {"Content-Type": JSON, **self._headers} if body else self._headers
        method = request.get("method", "POST")
        return lambda timeout: self._transport.send(method, url, headers, body, timeout)

    def _values(self, question: Question) -> dict[str, Any]:
        history = self._profile.messages(question.history) if question.history else []
        return {**question.values(), "history": history, **self._profile.settings}

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def _url_for(self, path: str, query: Mapping[str, Any], values: dict[str, Any]) -> str:
        pairs = parse_qsl(self._url.query, keep_blank_values=True)
        for name, value in render(query, values).items():
            items = value if isinstance(value, list) else [value]
            pairs.extend((name, _query_text(item)) for item in items)
        path = render(path, {**values, "session": quote(str(values["session"] or ""), safe="")})
        # an address that names the endpoint already is taken as it is
        path = self._url.path.rstrip("/").removesuffix(self._profile.path) + path
        return urlunsplit((self._url.scheme, self._url.netloc, path, urlencode(pairs), ""))

    def _read(self, reply: Reply, question: Question) -> BotAnswer:
        payload, first_token = parse_reply(reply, self._profile.stream)
        payload = self.redactor.data(payload)
        fields_seen = [] if self._seen else payload_fields(payload)
        timing = Timing(reply.seconds, first_token)
        result = read_answer(
            payload, self._profile.answer, question, timing, retrieval_only=self._retrieval_only
        )
        if self.redactor and result.tools:
            # arguments come as JSON in a text, and in pieces: what they hold is known only now
            calls = self.redactor.data(msgspec.to_builtins(result.tools))
            result.tools = msgspec.convert(calls, list[ToolCall])
        self._seen = True
        return BotAnswer(result, self._profile.answer.found_facts(payload), fields_seen)

    def _failed(self, error: CallError, question: Question, attempts: int) -> BotAnswer:
        info = ErrorInfo(error.kind, self.redactor.text(error.message), attempts)
        result = TestResult(
            question.case_id, question.text, "error", error=info, repeat=question.repeat
        )
        return BotAnswer(result, connected=not isinstance(error, NotConnected))


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call, and to the first piece of text where it came as a stream."""

    total: float
    first_token: float | None = None


@dataclass(frozen=True)
class Heard:
    """The bot's reply to one question, and the result that a profile reads from it."""

    question: Question
    payload: Any
    timing: Timing
    result: TestResult = field(default_factory=lambda: TestResult(""))


def read_answer(
    payload: Any,
    answer: AnswerMap,
    question: Question,
    timing: Timing,
    *,
    retrieval_only: bool = False,
) -> TestResult:
    """The result that a profile's paths make of a bot's answer. Raises CallError."""
    fields = answer.fields(payload, retrieval_only=retrieval_only)
    latency = fields.get("latency_ms", {})
    if isinstance(latency, dict):
        if latency.get("total") is None:
            latency = latency | {"total": round(timing.total * 1000, 3)}
        if timing.first_token is not None:
            latency = {"first_token": round(timing.first_token * 1000, 3)} | latency
        fields["latency_ms"] = latency
    return build_result(fields, question.case_id, question.text, question.repeat)


def parse_reply(reply: Reply, stream: Stream | None) -> tuple[Any, float | None]:
    """The value of an answer, and for a stream the seconds to its first piece of text.

    Raises CallError of kind ``malformed``.
    """
    if stream is None:
        return _parse(reply), None
    try:
        payload, size = read_stream(reply.body, stream)
    except RecursionError:
        raise CallError("malformed", "the stream is nested too deeply") from None
    if nests_deeper(payload):
        raise CallError("malformed", f"the stream is nested deeper than {MAX_DEPTH} levels")
    arrived = (seconds for total, seconds in reply.arrivals if size and total >= size)
    return payload, next(arrived, None)


def _parse(reply: Reply) -> Any:
    """The JSON of an answer. Raises CallError of kind ``malformed``."""
    body = reply.body.removeprefix(BOM)
    if not body.strip():
        raise CallError("malformed", "the body is empty")
    try:
        return parse_json(body)
    except orjson.JSONDecodeError as error:
        try:
            body.decode()
        except UnicodeDecodeError as fault:
            where = f"byte {fault.start} is {body[fault.start]:#04x}"
            raise CallError("malformed", f"the body is not UTF-8: {where}") from None
        kind = reply.headers.get("Content-Type", "").partition(";")[0].strip()
        shown = f" (Content-Type: {kind})" if kind and "json" not in kind else ""
        raise CallError("malformed", f"the body is not valid JSON{shown}: {error}") from None


def _query_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


DEMO = "demo"
"""The word that names the embedded bot in place of an address."""


def check_bot_address(url: str) -> None:
    """Raise StorageError unless the value is an HTTP address or ``demo``; the message repeats no
    login."""
    if url != DEMO and not _is_address(url):
        raise StorageError(f"--api-url {url_in_message(url)!r}: write http://HOST[:PORT], or demo.")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, or half an IPv6 address
        return False

"""Asks a RAG bot over HTTP what a profile says, and turns each answer into a TestResult.

    api = ChatApi("http://127.0.0.1:8080", profile, headers, RetryPolicy(timeout=60))
    reply = api.ask(Question(case_id="q1", text="How do I…?", k=10))

A call that fails becomes a result of status ``error`` with one of the kinds in clients/errors.py;
it never becomes an answer.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import orjson

from clients.depth import MAX_DEPTH, too_deep
from clients.errors import CallError, NotConnected
from clients.headers import Headers, literal_keys
from clients.mapping import build_result, payload_fields
from clients.profiles import Profile
from clients.redact import Redactor, split_login, url_secrets
from clients.retry import CallFailed, RetryPolicy, call_with_retries
from clients.template import merge, render
from clients.transport import HttpTransport, Reply
from records.results import ErrorInfo, TestResult

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Question:
    """What can be put into a request. None and empty lists are left out of it."""

    case_id: str
    text: str
    k: int | None = None
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    folder_mode: str | None = None
    user_roles: tuple[str, ...] = ()
    repeat: int = 0
    seed: int | None = None

    def values(self) -> dict[str, Any]:
        """The placeholders of a request template and their values."""
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
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """A result, with what the bot told of itself; the first ones also with their fields' names."""

    result: TestResult
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    fields_seen: list[str] = field(default_factory=list)
    connected: bool = True
    """False when no try got as far as a connection."""


class ChatApi:
    """One bot. ``ask`` may be called from as many threads as ``connections`` says."""

    def __init__(
        self,
        url: str,
        profile: Profile,
        headers: Headers | None = None,
        policy: RetryPolicy | None = None,
        *,
        retrieval_only: bool = False,
        connections: int = 8,
        max_bytes: int = 64 * 2**20,
        user_agent: str = "rag-eval-toolkit",
    ) -> None:
        self._profile = profile
        self._policy = policy or RetryPolicy()
        self._retrieval_only = retrieval_only
        self.stop = threading.Event()
        headers = headers or Headers()
        self._headers = {
            "User-Agent": user_agent,
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            **({} if profile.body is None else {"Content-Type": "application/json"}),
            **headers.values,
        }
        hidden = url_secrets(url)
        url, login = split_login(url)
        for name, value in login.items():
            self._headers.setdefault(name, value)
        overlay = profile.retrieval_only if retrieval_only and profile.retrieval_only else {}
        self._body = merge(profile.body, overlay["body"]) if "body" in overlay else profile.body
        self._query = merge(dict(profile.query), overlay.get("query", {}))
        keys = [key for part in (self._query, self._body) for _, key in literal_keys(part)]
        self.redactor = Redactor([*headers.secrets, *login.values(), *hidden, *keys])
        self._url = urlsplit(url)
        self._seen = False
        self._transport = HttpTransport(
            url,
            connections=connections,
            max_bytes=max_bytes,
            timeout=self._policy.timeout,
            redactor=self.redactor,
        )

    def ask(self, question: Question) -> Asked:
        """Ask once, with retries. Raises Interrupted when ``stop`` is set, and nothing else."""
        values = question.values()
        url = self._url_for(values)
        body = None if self._body is None else orjson.dumps(render(self._body, values))

        def once(timeout: float) -> Reply:
            return self._transport.send(self._profile.method, url, self._headers, body, timeout)

        attempts = 1
        try:
            reply, attempts = call_with_retries(once, self._policy, self.stop)
            return self._read(reply, question)
        except CallFailed as failed:
            return self._failed(failed.error, question, failed.attempts)
        except CallError as error:
            return self._failed(error, question, attempts)

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def _url_for(self, values: dict[str, Any]) -> str:
        pairs = parse_qsl(self._url.query, keep_blank_values=True)
        for name, value in render(self._query, values).items():
            items = value if isinstance(value, list) else [value]
            pairs.extend((name, _query_text(item)) for item in items)
        # an address that names the endpoint already is taken as it is
        path = self._url.path.rstrip("/").removesuffix(self._profile.path) + self._profile.path
        return urlunsplit((self._url.scheme, self._url.netloc, path, urlencode(pairs), ""))

    def _read(self, reply: Reply, question: Question) -> Asked:
        payload = self.redactor.data(_parse(reply))
        answer = self._profile.answer
        fields_seen = [] if self._seen else payload_fields(payload)
        fields = answer.fields(payload, retrieval_only=self._retrieval_only)
        latency = fields.get("latency_ms", {})
        if isinstance(latency, dict) and latency.get("total") is None:
            fields["latency_ms"] = latency | {"total": round(reply.seconds * 1000, 3)}
        result = build_result(fields, question.case_id, question.text, question.repeat)
        self._seen = True
        return Asked(result, answer.found_facts(payload), fields_seen)

    def _failed(self, error: CallError, question: Question, attempts: int) -> Asked:
        info = ErrorInfo(error.kind, self.redactor.text(error.message), attempts)
        result = TestResult(
            question.case_id, question.text, "error", error=info, repeat=question.repeat
        )
        return Asked(result, connected=not isinstance(error, NotConnected))


def _parse(reply: Reply) -> Any:
    """The JSON of an answer. Raises CallError of kind ``malformed``."""
    body = reply.body.removeprefix(BOM)
    if not body.strip():
        raise CallError("malformed", "the body is empty")
    try:
        payload = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        kind = reply.headers.get("Content-Type", "").partition(";")[0].strip()
        shown = f" (Content-Type: {kind})" if kind and "json" not in kind else ""
        raise CallError("malformed", f"the body is no valid JSON{shown}: {error}") from None
    if too_deep(body, payload):
        raise CallError("malformed", f"the body is nested deeper than {MAX_DEPTH} levels")
    return payload


def _query_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

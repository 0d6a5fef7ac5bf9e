"""Tries requests against an unknown bot, one by one and each told before it is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clients.bot import ChatApi, Question, Timing, parse_reply
from clients.expressions import compile_path
from clients.guess import propose
from clients.http import CallError, NotConnected, Reply, RetryPolicy
from clients.mapping import AnswerMap
from clients.profile import Profile, fill
from clients.reply_form import guess_stream
from clients.secrets import SECRET_HEADER, Redactor, url_in_message
from clients.shapes import Shape, corrected, known_shapes, openapi_shapes
from clients.streams import END_MARK, Stream
from records.errors import StorageError, Unreachable
from terminal.tables import printable

MOST_TRIES = 8

SHOWN = 120
"""Characters of an answer that the table of tries shows."""

K = 5
"""Passages that the tries ask for."""

LONGEST_WAIT_S = 60.0

_ACCEPT = "application/json, text/event-stream;q=0.5, application/x-ndjson;q=0.5"

_WAITING = frozenset(("pending", "queued", "processing", "accepted", "in_progress", "running"))

HOW_TO_GO_ON = (
    "Two ways on: --curl 'curl …' (or --curl @FILE) with a request that works, or --from-response "
    "FILE with an answer that you saved."
)


@dataclass(frozen=True)
class Try:
    """One request that was sent, and how it ended."""

    request: str
    status: str
    excerpt: str


@dataclass(frozen=True)
class Heard:
    """What the bot answered to one question."""

    question: Question
    payload: Any
    timing: Timing


@dataclass(frozen=True)
class Answered:
    """The request that the bot takes, and how its answer is read."""

    shape: Shape
    settings: Mapping[str, str]
    first: Heard


def _stream_of(settings: Mapping[str, str]) -> Stream | None:
    """How a body is read by the settings of a profile; None for plain JSON."""
    if "stream" not in settings:
        return None
    delta, last = settings.get("stream_delta"), settings.get("stream_last")
    return Stream(
        settings["stream"],
        compile_path(delta) if delta else None,
        compile_path(last) if last and last != END_MARK else None,
        needs_mark=last == END_MARK,
    )


def read_reply(
    reply: Reply, redactor: Redactor, settings: Mapping[str, str] | None = None
) -> tuple[Any, Mapping[str, str], Timing]:
    """The value of an answer without any secret, and the settings that read it. Raises CallError.

    Without ``settings`` its form is found out.
    """
    if settings is None:
        settings = guess_stream(reply.body, reply.headers.get("Content-Type", "")) or {}
    payload, first_token = parse_reply(reply, _stream_of(settings))
    return redactor.data(payload), settings, Timing(reply.seconds, first_token)


class Prober:
    """Asks a bot without knowing how. ``tell`` gets a line for each request before it goes out."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        environ: Mapping[str, str],
        tell: Callable[[str], None],
        timeout: float,
        query: Mapping[str, Any] | None = None,
        max_bytes: int = 64 * 2**20,
    ) -> None:
        """``headers``: name and value with ``${VARIABLE}``; ``environ``: the variables' values.

        ``query``: parameters of the user's URL, which every request but a given one gets."""
        self.tries: list[Try] = []
        self._url, self._headers, self._environ = url, headers, environ
        self._tell, self._timeout, self._max_bytes = tell, timeout, max_bytes
        self._query = query or {}
        self._waited = self._reached = False
        self._last: Shape | None = None

    def find(self, given: Shape | None, path: str, question: Question) -> Answered:
        """The first request that brings an answer or passages.

        ``given``: the user's own request, then nothing else is tried. Raises StorageError when none
        does, with a table of the tries; Unreachable when nobody answers at all.
        """
        shapes = [given] if given else self._shapes(path)
        seen: set[str] = set()
        while shapes and len(self.tries) < MOST_TRIES:
            shape = shapes.pop(0)
            if shape.key() in seen:
                continue
            seen.add(shape.key())
            try:
                reply, redactor = self.send(shape, question)
            except CallError as error:
                shapes[:0] = self._next(shape, error, seen)
                continue
            if answered := self._answer(shape, reply, redactor, question):
                return answered
            better = corrected(shape, reply.body)  # some say with 200 what they miss
            shapes[:0] = [better] if better else []
        if not self._reached:
            raise Unreachable(f"no answer from {self._shown_url}: {self.tries[-1].excerpt}.")
        raise StorageError(self.table() + "\nNothing was written. " + HOW_TO_GO_ON)

    def send(self, shape: Shape, question: Question) -> tuple[Reply, Redactor]:
        """One request, told, sent and noted; and what takes secrets out of its answer.

        Raises CallError, and Unreachable where there is no connection.
        """
        again = shape == self._last
        self._last = shape
        request = "the same request" if again else shape.text()
        asked = f"  ← {printable(question.text)}" if question.text else ""
        self._tell(f"{len(self.tries) + 1}. {request}{asked}")
        profile = Profile(
            name="connect_bot",
            sha256="",
            answer=AnswerMap({}),
            path=shape.path,
            method=shape.method,
            query=shape.query,
            headers={"Accept": _ACCEPT, **shape.headers, **self._headers},
            body=shape.body,
            stream=Stream("sse"),  # what arrives when is noted
        )
        profile, headers = fill(profile, self._environ)
        policy = RetryPolicy(self._timeout, retries=0)
        client = ChatApi(self._url, profile, headers, policy, max_bytes=self._max_bytes)
        try:
            reply = client.reply(question)
        except NotConnected as error:
            message = client.redactor.text(error.message)
            raise Unreachable(
                f"no answer from {self._shown_url} ({printable(message)}); is the bot running?"
            ) from None
        except CallError as error:
            text = client.redactor.excerpt(error.message.partition(": ")[2] or error.message, SHOWN)
            status = str(error.status) if error.status else error.kind
            self.tries.append(Try(shape.text(), status, printable(text)))
            self._reached = self._reached or error.kind not in ("timeout", "connection")
            raise
        finally:
            client.close()
        self._reached = True
        shown = client.redactor.excerpt(reply.body[:1000].decode("utf-8", "replace"), SHOWN)
        self.tries.append(Try(shape.text(), str(reply.status), printable(shown)))
        return reply, client.redactor

    def table(self) -> str:
        """Each try with its status and the beginning of what came."""
        lines = [
            f"  {number}. {each.request}\n     → {each.status}: {each.excerpt or '(empty)'}"
            for number, each in enumerate(self.tries, start=1)
        ]
        return "No request brought an answer:\n" + "\n".join(lines)

    @property
    def _shown_url(self) -> str:
        return printable(url_in_message(self._url))

    def _shapes(self, path: str) -> list[Shape]:
        """What openapi.json names, else the known requests at the user's own path."""
        shape = Shape("GET", "/openapi.json", "does the bot describe itself?")
        document = None
        try:
            document = json.loads(self.send(shape, Question("openapi", ""))[0].body)
        except (CallError, ValueError, RecursionError) as error:
            if isinstance(error, CallError) and error.status in (401, 403) and path == "/":
                self._refuse_login(error.status, shape)
        shapes = openapi_shapes(document, path) or known_shapes(path)
        return [replace(each, query={**self._query, **each.query}) for each in shapes]

    def _answer(
        self, shape: Shape, reply: Reply, redactor: Redactor, question: Question
    ) -> Answered | None:
        try:
            payload, settings, timing = read_reply(reply, redactor)
        except CallError:
            return None
        if isinstance(payload, dict) and payload.get("error"):
            return None
        if not propose([payload], [question.text], settings=settings).usable:
            self._check_waiting(reply, payload)
            return None
        return Answered(shape, settings, Heard(question, payload, timing))

    def _check_waiting(self, reply: Reply, payload: Any) -> None:
        status = payload.get("status") if isinstance(payload, dict) else None
        if reply.status == 202 or (isinstance(status, str) and status.lower() in _WAITING):
            raise StorageError(
                "this bot takes the question and answers later, when it is asked again (polling): "
                "that is not supported. Put a small service in front of it that waits."
            )

    def _next(self, shape: Shape, error: CallError, seen: set[str]) -> list[Shape]:
        """The requests to try first after this failure."""
        if error.status in (401, 403):
            self._refuse_login(error.status, shape)
        if error.kind == "timeout" and sum(each.status == "timeout" for each in self.tries) > 1:
            raise Unreachable(
                f"no answer from {self._shown_url} within {self._timeout:g} s, twice; give it more "
                "time with --set limits.timeout=300."
            )
        if error.status == 429 and not self._waited:
            return self._wait(shape, error, seen)
        if error.status == 405:
            return self._allowed(shape, error)
        if error.status in (400, 422) and (better := corrected(shape, error.body)):
            return [better]
        return []

    def _refuse_login(self, status: int, shape: Shape) -> None:
        sent = [*self._headers, *filter(SECRET_HEADER.search, shape.headers)]
        if sent:
            raise StorageError(
                f"the bot refuses what {', '.join(sent)} holds (HTTP {status}). The variable must "
                'hold the whole value, such as "Bearer abc…".'
            )
        raise StorageError(
            f"the bot needs a header (HTTP {status}): --header Authorization=BOT_TOKEN, where "
            'BOT_TOKEN is an environment variable with the whole value, such as "Bearer abc…".'
        )

    def _wait(self, shape: Shape, error: CallError, seen: set[str]) -> list[Shape]:
        import time

        self._waited = True
        seconds = 1.0 if error.retry_after is None else error.retry_after
        if seconds > LONGEST_WAIT_S:
            raise StorageError(
                f"the bot asks to wait {seconds:,.0f} s before the next request; try again then."
            )
        self._tell(f"   429: waiting {seconds:g} s, as the bot asks")
        time.sleep(seconds)
        seen.discard(shape.key())
        return [shape]

    def _allowed(self, shape: Shape, error: CallError) -> list[Shape]:
        """The same request by the methods that the bot allows."""
        methods = [name.strip().upper() for name in error.headers.get("Allow", "").split(",")]
        shapes = []
        for method in methods:
            if method in ("POST", "PUT") and method != shape.method and shape.body is not None:
                shapes.append(replace(shape, method=method))
            elif method == "GET" and shape.method != "GET" and isinstance(shape.body, dict):
                plain = {
                    name: value for name, value in shape.body.items() if isinstance(value, str)
                }
                query = {**shape.query, **plain}
                shapes.append(replace(shape, method="GET", query=query, body=None))
            elif method in ("POST", "PUT") and shape.method == "GET":
                shapes.append(replace(shape, method=method, query={}, body=dict(shape.query)))
        return shapes


def questions_of(texts: Sequence[str]) -> list[Question]:
    """Questions that belong to no case."""
    return [Question(f"question {number}", text, K) for number, text in enumerate(texts, 1)]

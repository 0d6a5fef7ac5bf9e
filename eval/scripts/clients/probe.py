"""Tries requests against an unknown bot, one at a time, and announces each before it is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clients.bot import ChatApi, Heard, Question, Timing, parse_reply
from clients.expressions import compile_path
from clients.guess import has_text, propose
from clients.http import CallError, NotConnected, Reply, RetryPolicy
from clients.known import MODEL, Recipe, at_path, described, recipes, recognised
from clients.mapping import AnswerMap
from clients.profile import Profile, fill
from clients.proposal import Proposal
from clients.reply_form import guess_stream
from clients.secrets import SECRET_HEADER, Redactor, url_in_message
from clients.shapes import NO_MODEL, SESSION, Shape, corrected, known_shapes, openapi_shapes
from clients.streams import END_MARK, Stream
from records.errors import StorageError, Unreachable
from terminal.tables import printable

MOST_TRIES = 10

SHOWN = 120
"""Characters of an answer that the table of tries shows."""

K = 5
"""Passages that the tries ask for."""

LONGEST_WAIT_S = 60.0

_MODELS = "[data[].id, models[].[name, id][], [].[graph_id, id][]][] | [?@]"
"""The names in a list of models, however it is written."""

_ACCEPT = "application/json, text/event-stream;q=0.5, application/x-ndjson;q=0.5"

_OWN_HEADER = re.compile(
    rb"\bx-(?!(?:request|trace|correlation)\b)[a-z][a-z0-9-]{1,40}", re.IGNORECASE
)
"""A header that a refusal names; ids of the request itself are none that a client must send."""

_WAITING = frozenset(("pending", "queued", "processing", "accepted", "in_progress", "running"))

HOW_TO_GO_ON = (
    "Three ways to continue: an address with the path that answers questions "
    "(http://HOST:PORT/chat), "
    "--curl 'curl …' (or --curl @FILE) with a request that works, or --from-response FILE with an "
    "answer that you saved."
)


@dataclass(frozen=True)
class Try:
    """One request that was sent, and how it ended."""

    request: str
    status: str
    answer: str


@dataclass(frozen=True)
class Answered:
    """The request that the bot takes, and how its answer is read."""

    shape: Shape
    settings: Mapping[str, str]
    first: Heard
    recipe: Recipe | None = None
    """The known product that the answer is of."""

    def proposal(self, heard: Sequence[Heard], **labels: Any) -> Proposal:
        """The paths by the product's recipe, else guessed; ``labels``: as in ``propose``."""
        payloads, texts = [each.payload for each in heard], [each.question.text for each in heard]
        if self.recipe:
            return self.recipe.proposal(payloads, texts, **labels)
        return propose(payloads, texts, settings=self.settings, **labels)


def read_reply(
    reply: Reply, redactor: Redactor, settings: Mapping[str, str] | None = None
) -> tuple[Any, Mapping[str, str], Timing]:
    """The value of an answer without any secret, and the settings that read it. Raises CallError.

    Without ``settings`` its form is found out.
    """
    if settings is None:
        settings = guess_stream(reply.body, reply.headers.get("Content-Type", "")) or {}
    form, last = settings.get("stream"), settings.get("stream_last")
    delta, end = (
        compile_path(path) if path and path != END_MARK else None
        for path in (settings.get("stream_delta"), last)
    )
    stream = Stream(form, delta, end, needs_mark=last == END_MARK) if form else None
    payload, first_token = parse_reply(reply, stream)
    return redactor.data(payload), settings, Timing(reply.seconds, first_token)


def understood(shape: Shape, question: Question, reply: Reply, redactor: Redactor) -> Answered:
    """The answer to a request, and the product that it is of, read by its recipe.

    Raises CallError.
    """
    payload, settings, timing = read_reply(reply, redactor)
    recipe = recognised(payload, shape.path)
    if recipe is not None and recipe.stream and recipe.stream != settings:
        payload, settings, timing = read_reply(reply, redactor, recipe.stream)
    return Answered(shape, settings, Heard(question, payload, timing), recipe)


def with_model(shape: Shape, model: str) -> Shape:
    """The shape with a model in the place of none."""
    body = json.dumps(shape.body).replace(json.dumps(MODEL), json.dumps(model))
    none = f'"model": {json.dumps(NO_MODEL)}'
    return replace(shape, body=json.loads(body.replace(none, f'"model": {json.dumps(model)}')))


@dataclass
class Prober:
    """Asks a bot without knowing how. ``tell`` gets a line for each request before it goes out.

    ``headers``: name and value with ``${VARIABLE}``; ``environ``: the variables' values. ``query``:
    parameters of the user's URL, which every request but a given one gets. ``model``: the model to
    ask, where a request names one; ``begin``: the request that begins a conversation, for requests
    that have a session.
    """

    url: str
    headers: Mapping[str, str]
    environ: Mapping[str, str]
    tell: Callable[[str], None]
    timeout: float
    query: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    begin: Mapping[str, Any] | None = None
    tries: list[Try] = field(default_factory=list)
    _waited: bool = False
    _reached: bool = False
    _last: Shape | None = None
    _listed: dict[str, str | None] = field(default_factory=dict)
    _refused: tuple[int, Shape, bytes] | None = None
    _spare: Answered | None = None
    """The first reply that may hold an answer under a name that says nothing."""

    def find(self, given: Shape | None, path: str, question: Question) -> Answered:
        """The first request that brings an answer or passages.

        ``given``: the user's own request, then nothing else is tried. Raises StorageError when none
        does, with a table of the tries; Unreachable when no server answers at all."""
        shapes = [given] if given else self._product_shapes(path)
        guessed = given is not None
        seen: set[str] = set()
        while len(self.tries) < MOST_TRIES:
            if not shapes:
                if guessed:
                    break
                guessed, shapes = True, self._shapes(path)
                continue
            shape = self._with_model(shapes.pop(0))
            if self.begin and SESSION in shape.path + json.dumps([shape.body, dict(shape.query)]):
                shape = replace(shape, begin=self.begin)
            if shape.key() in seen or (self._refused and shape.path == self._refused[1].path):
                continue
            seen.add(shape.key())
            try:
                reply, redactor = self.send(shape, question)
            except CallError as error:
                shapes[:0] = _rpc_shapes(shape, error.body) or self._next(shape, error, seen)
                continue
            if answered := self._answer(shape, reply, redactor, question):
                return answered
            if rpc := _rpc_shapes(shape, reply.body):
                shapes[:0] = rpc
                continue
            better = corrected(shape, reply.body)  # some say with 200 what they miss
            shapes[:0] = [better] if better else []
        if self._spare:
            return self._spare
        if self._refused:
            self._refuse_login(*self._refused)
        if not self._reached:
            raise Unreachable(f"no answer from {self._shown_url}: {self.tries[-1].answer}.")
        raise StorageError(self.table() + "\nNothing was written. " + HOW_TO_GO_ON)

    def send(self, shape: Shape, question: Question) -> tuple[Reply, Redactor]:
        """Announce, send and record one request; return it with a function that removes secrets
        from its answer.

        Raises CallError, and Unreachable where there is no connection.
        """
        again = shape == self._last
        self._last = shape
        request = "the same request" if again else shape.text()
        asked = f"  ← {printable(question.text)}" if question.text else ""
        self.tell(f"{len(self.tries) + 1}. {request}{asked}")
        own = {name: getattr(shape, name) for name in ("path", "method", "query", "body", "begin")}
        sent = {"Accept": _ACCEPT, **shape.headers, **self.headers}
        profile = Profile(name="connect_bot", sha256="", answer=AnswerMap({}), headers=sent, **own)
        profile, headers = fill(profile, self.environ)
        policy = RetryPolicy(self.timeout, retries=0)
        client = ChatApi(self.url, profile, headers, policy)
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

    def ask(self, answered: Answered, question: Question) -> Heard | None:
        """The answer to one more question; None where that failed."""
        try:
            reply, redactor = self.send(answered.shape, question)
            payload, _, timing = read_reply(reply, redactor, answered.settings)
        except CallError as error:
            self.tell(f"   failed: {error.kind}: {self.tries[-1].answer}")
            return None
        return Heard(question, payload, timing)

    def table(self) -> str:
        """Each try with its status and the beginning of its reply."""
        lines = [
            f"  {number}. {each.request}\n     → {each.status}: {each.answer or '(empty)'}"
            for number, each in enumerate(self.tries, start=1)
        ]
        return "No request brought an answer:\n" + "\n".join(lines)

    @property
    def _shown_url(self) -> str:
        return printable(url_in_message(self.url))

    def _product_shapes(self, path: str) -> list[Shape]:
        """The requests of the products whose address ends like the user's."""
        shapes = (recipe.shape(path) for recipe in at_path(path))
        return [replace(each, query=self.query) for each in shapes if each is not None]

    def _with_model(self, shape: Shape) -> Shape:
        """The shape with a model that the bot has: the user's, else the first that it lists."""
        body = json.dumps(shape.body)
        ours = isinstance(shape.body, Mapping) and shape.body.get("model") == NO_MODEL
        if MODEL not in body and not ours:
            return shape
        return with_model(shape, self.model or self._first_model(shape) or NO_MODEL)

    def _first_model(self, shape: Shape) -> str | None:
        method, _, path = shape.models.rpartition(" ")
        if base := re.fullmatch(r"(.*)/(?:chat/completions|responses)/?", shape.path):
            path = path or f"{base[1]}/models"
        if path and path not in self._listed:
            body: dict[str, Any] | None = {} if method == "POST" else None
            ask = Shape(method or "GET", path, "list the models", self.query, body=body)
            document = self._json(ask)
            names = [
                name for name in compile_path(_MODELS)(document) or () if isinstance(name, str)
            ]
            self._listed[path] = names[0] if names else None
            if names:
                which = f"the first of {len(names)}" if len(names) > 1 else "the only one"
                self.tell(f"   model {printable(names[0])}, {which}; another: --model NAME")
        return self._listed.get(path)

    def _json(self, shape: Shape, *, needs_login: bool = False) -> Any:
        """The JSON that a request without a question brings; None without any."""
        try:
            return json.loads(self.send(shape, Question("connect", ""))[0].body)
        except CallError as error:
            if needs_login and error.status in (401, 403):
                self._refuse_login(error.status, shape, error.body)
        except (ValueError, RecursionError):
            pass
        return None

    def _shapes(self, path: str) -> list[Shape]:
        """What openapi.json names, else the known requests at the user's own path."""
        shape = Shape("GET", "/openapi.json", "look for a description of the API")
        document = self._json(shape, needs_login=path == "/")
        shapes = openapi_shapes(document, path)
        if recipe := described(document):
            own = [each for each in shapes if recipe.fit(each.path)]
            fixed = recipe.shape()
            if not own and recipe.needs_id and path == "/":
                raise StorageError(
                    f"this is {recipe.title}, whose address names one of yours: "
                    f"{recipe.recognition['command']}"
                )
            shapes = [*([fixed] if fixed and not own else []), *own, *shapes]
        shapes = shapes or known_shapes(path)
        return [replace(each, query={**self.query, **each.query}) for each in shapes]

    def _answer(
        self, shape: Shape, reply: Reply, redactor: Redactor, question: Question
    ) -> Answered | None:
        kind = reply.headers.get("Content-Type", "")
        if reply.body.lstrip()[:5] == b"<?xml" or kind.startswith(("application/xml", "text/xml")):
            raise _unsupported("in XML", "answers in JSON")
        try:
            answered = understood(shape, question, reply, redactor)
        except CallError as error:
            if reply.body.strip():
                last = self.tries[-1]
                shown = f"{printable(error.message)}: {last.answer}"
                self.tries[-1] = replace(last, answer=shown)
            return None
        payload = answered.first.payload
        if isinstance(payload, dict) and payload.get("error"):
            return None
        if answered.proposal([answered.first]).usable:
            return answered
        status = payload.get("status") if isinstance(payload, dict) else None
        if reply.status == 202 or (isinstance(status, str) and status.lower() in _WAITING):
            raise _unsupported("only to a later request (polling)", "waits")
        if has_text(payload, question.text):
            self._spare = self._spare or answered
        return None

    def _next(self, shape: Shape, error: CallError, seen: set[str]) -> list[Shape]:
        """The requests to try first after this failure."""
        if error.status in (401, 403):
            self._refused = error.status, shape, error.body
            return []
        if error.status == 426:
            raise _unsupported("over a WebSocket (HTTP 426)", "answers over HTTP")
        if error.kind == "timeout" and sum(each.status == "timeout" for each in self.tries) > 1:
            raise Unreachable(
                f"no answer from {self._shown_url} within {self.timeout:g} s, twice; give it more "
                "time with --set limits.timeout=300."
            )
        if error.status == 429 and not self._waited:
            return self._wait(shape, error, seen)
        if error.status == 405:
            return self._allowed(shape, error)
        if error.status in (400, 404, 422):
            better = corrected(shape, error.body, refused=error.status != 404)
            return [better] if better else []
        return []

    def _refuse_login(self, status: int, shape: Shape, body: bytes) -> None:
        sent = [*self.headers, *filter(SECRET_HEADER.search, shape.headers)]
        named = _OWN_HEADER.search(body)
        whole = 'the whole value, such as "Bearer abc…"'
        if sent:
            says = f"the bot refuses the value of {', '.join(sent)} (HTTP {status}). The variable "
            raise StorageError(f"{says}must hold {whole}.")
        says = f"the bot needs a header (HTTP {status}): --header "
        if named:
            name = named[0].decode()
            says += f"{name}=VARIABLE, where VARIABLE is an environment variable, or --header "
            raise StorageError(f"{says}'{name}: VALUE' where it is no secret.")
        variable = f"BOT_TOKEN is an environment variable with {whole}"
        raise StorageError(f"{says}Authorization=BOT_TOKEN, where {variable}.")

    def _wait(self, shape: Shape, error: CallError, seen: set[str]) -> list[Shape]:
        import time

        self._waited = True
        seconds = 1.0 if error.retry_after is None else error.retry_after
        if seconds > LONGEST_WAIT_S:
            raise StorageError(
                f"the bot asks for {seconds:,.0f} s before the next request; try again then."
            )
        self.tell(f"   429: waiting {seconds:g} s, as the bot asks")
        time.sleep(seconds)
        seen.discard(shape.key())
        return [shape]

    def _allowed(self, shape: Shape, error: CallError) -> list[Shape]:
        """The same request by the methods that the bot allows."""
        methods = [name.strip().upper() for name in error.headers.get("Allow", "").split(",")]
        shapes = []
        for method in methods:
            if method == "GET" != shape.method and isinstance(shape.body, dict):
                plain = {name: text for name, text in shape.body.items() if isinstance(text, str)}
                query = {**shape.query, **plain}
                shapes.append(replace(shape, method="GET", query=query, body=None))
            elif method in ("POST", "PUT") and shape.method == "GET":
                shapes.append(replace(shape, method=method, query={}, body=dict(shape.query)))
            elif method in ("POST", "PUT") and method != shape.method and shape.body is not None:
                shapes.append(replace(shape, method=method))
        return shapes


def _unsupported(how: str, remedy: str) -> StorageError:
    return StorageError(
        f"this bot answers {how}, which is not supported. Put a small service in front of it that "
        f"{remedy}."
    )


def _rpc_shapes(shape: Shape, body: bytes) -> list[Shape]:
    """The requests of products that speak JSON-RPC, where a bot refuses another one by it."""
    try:
        refused = json.loads(body)
    except (ValueError, RecursionError):
        return []
    is_rpc = isinstance(refused, dict) and refused.get("jsonrpc") == "2.0" and "error" in refused
    if not is_rpc or (isinstance(shape.body, Mapping) and "jsonrpc" in shape.body):
        return []
    own = [recipe.shape() for recipe in recipes() if recipe.recognition.get("rpc")]
    return [replace(each, path=shape.path, query=shape.query) for each in own if each is not None]

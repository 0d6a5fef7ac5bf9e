"""Which request an unknown bot may take: from a curl command, an OpenAPI document, known shapes.

Pure: nothing is sent from here. ``corrected`` reads what a bot said against a request and makes the
next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clients.curl import CurlRequest
from clients.field_names import NAMES, is_named, name_rank, name_words, plain_name
from clients.secrets import DRAWN, MIN_LENGTH, RANDOM, SECRET_HEADER, SECRET_NAME, VARIABLE
from clients.templates import PLACEHOLDERS
from records.errors import StorageError

QUESTION = "{question}"

HISTORY = "{history}"

SESSION = "{session}"

SESSION_ID = (
    "session_id || conversation_id || thread_id || chat_id || id || data.session_id || data.id"
)
"""Where the answer to a request that begins a conversation may name it."""

_CONVERSATIONS = frozenset(("session", "conversation", "thread", "chat"))

_GUESSED = ("our own request", "OpenAI chat", "OpenAI responses", "one field")
"""Where the requests are from that are tried at any path."""

_ALONE = ("message", "query", "input", "prompt", "msg")
"""Fields by which demos name the question, the most frequent first."""

NO_MODEL = "default"
"""Placeholder for the model in a request to a bot that lists none."""

_HELD = re.compile(rf"\{{(?:{'|'.join(PLACEHOLDERS)})\}}|{VARIABLE.pattern}")
_BRACE = re.compile(rf"{_HELD.pattern}|[{{}}]")
_SETTINGS: dict[str, Any] = {
    **dict.fromkeys(NAMES["top_k"], "{k}"),
    **dict.fromkeys((*NAMES["session"], "run_id", "message_id"), "{uuid}"),
    **dict.fromkeys(("stream", "streaming"), False),
}
"""The values of fields that are known settings by their names."""
_VALUES: dict[str, Any] = {
    **{name: [] for name in (*NAMES["history"], "tools", "context")},
    **{name: {} for name in NAMES["objects"]},
    **_SETTINGS,
    "messages": [{"role": "user", "content": QUESTION}],
    "parts": [{"type": "text", "text": QUESTION}],
    "max_tokens": 1024,
}
"""The values of fields that a bot asks for, by their names."""
_BY_TYPE = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
_NAME = r"([A-Za-z_]\w*(?:\[\d+\]|\.\w+)*)"
"""A field that an error names, perhaps with its place, such as ``messages[0].parts``."""
_QUOTED = re.compile(r"[`'\"“]([A-Za-z_]\w*(?:\[\d+\](?:\.\w+)*)?)[`'\"”]")
"""A name in quotation marks; one with dots alone may be a type's, or a file's."""
_LACKS = re.compile(
    r"missing|required|must|need|expect|provide|(?:empty|blank|null)\b", re.IGNORECASE
)
_SURPLUS = re.compile(r"unexpected|not allowed|unknown|not permitted|extra", re.IGNORECASE)
_BARE = re.compile(
    rf"(?:field|parameter|property|key|argument)s?:? {_NAME}"
    rf"|{_NAME}['\"`]?:? (?i:field |parameter )?(?:is )?(?i:required|missing)\b"
    rf"|provide an? {_NAME} (?:parameter|field)"
    rf"|{_NAME} (?:field |parameter )?(?:can ?not|can't|must not|should not) be"
    r" (?:empty|blank|null)",
)
_CHOICES = re.compile(
    r"(?:available|choose|one of|supported|allowed|valid|known)(?:[ \w]*)[:=]"
    r" *\[?[`'\"]?([\w./:@-]+)",
    re.IGNORECASE,
)
_OPENING = re.compile(r"\bPOST (/[\w./-]*\w)")
"""The request that a message tells to send first."""
_NAMED = ("param", "params", "parameter", "field", "argument")
"""Keys of an error that name the field which is wrong."""


@dataclass(frozen=True)
class Shape:
    """A request with placeholders, as in a profile's ``[request]``, and its source."""

    method: str
    path: str
    origin: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    begin: Mapping[str, Any] | None = None
    """The request that begins a conversation, as in a profile's ``[begin]``."""
    models: str = ""
    """The request that lists the models, such as ``GET /v1/models``."""

    def text(self) -> str:
        """The request on one line; variables are shown by their names."""
        query = "&".join(f"{name}={value}" for name, value in self.query.items())
        shown = f"{self.method} {self.path}" + (f"?{query}" if query else "")
        body = "" if self.body is None else " " + json.dumps(self.body, ensure_ascii=False)
        return f"{shown}{body}  ({self.origin})"

    def key(self) -> str:
        """Equal for requests that are the same to the bot."""
        parts = [self.method, self.path, dict(self.query), self.body, self.begin]
        return json.dumps(parts, sort_keys=True)

    def as_begin(self) -> dict[str, Any]:
        """The request as a profile's ``[begin]``, whose answer names the session."""
        body = self.body if isinstance(self.body, Mapping) else {}
        begin = {"method": self.method, "path": self.path, "query": dict(self.query)}
        kept: dict[str, Any] = {key: value for key, value in begin.items() if value}
        return kept | ({} if self.method == "GET" else {"body": body}) | {"session": SESSION_ID}


def known_shapes(path: str) -> list[Shape]:
    """The requests to try at a path: our own, OpenAI's two, and one field alone, as demos read it;
    first the one whose path it looks like."""
    messages = _VALUES["messages"]
    ours = Shape("POST", path, _GUESSED[0], body={"question": QUESTION, "k": "{k}"})
    chat = Shape("POST", path, _GUESSED[1], body={"model": NO_MODEL, "messages": messages})
    responses = Shape("POST", path, _GUESSED[2], body={"model": NO_MODEL, "input": QUESTION})
    alone = [Shape("POST", path, _GUESSED[3], body={name: QUESTION}) for name in _ALONE]
    if path.rstrip("/").endswith("completions"):
        return [chat, ours, responses]
    if path.rstrip("/").endswith("responses"):
        return [responses, ours, chat]
    return [ours, chat, *alone[:2], responses, *alone[2:]]


def fixed_depths(value: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a request that fix how many passages come, with their numbers."""
    for name, item in value.items() if isinstance(value, Mapping) else ():
        number = type(item) is int or (isinstance(item, str) and item.isdecimal())
        if number and is_named(name, "top_k"):
            yield name, item
        yield from fixed_depths(item)


def _mapped(value: Any, change: Callable[[str, str], str], name: str = "") -> Any:
    """A copy of JSON with each text changed, by the name of its field and its value."""
    if isinstance(value, Mapping):
        return {key: _mapped(item, change, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change, name) for item in value]
    return change(name, value) if isinstance(value, str) else value


def template(value: Any, asked: str | None) -> Any:
    """A request's value with the text that was asked as ``{question}`` and other braces doubled."""
    return _mapped(
        value,
        lambda _, text: QUESTION.join(map(_doubled, text.split(asked) if asked else [text])),
    )


def _doubled(text: str) -> str:
    """Braces doubled, but for those of placeholders and variables that stand there on purpose."""
    return _BRACE.sub(lambda match: match[0] if match[0][1:] else match[0] * 2, text)


def shape_of(request: CurlRequest, path: str, asked: Sequence[str], origin: str) -> Shape:
    """The user's request with ``{question}`` in place of the question.

    That is a text of ``asked``, or the field that is named as a question. Raises StorageError when
    neither is there.
    """
    for text in (*asked, None):
        query, body = template(request.query, text), template(request.body, text)
        if _holds(query) or _holds(body):
            break
    else:
        body = _with_question(body)
        query = query if _holds(body) else _with_question(query)
    if not _holds([query, body]):
        raise StorageError(
            f"{origin}: which part is the question? Give its text with --ask, or replace it with "
            f"{QUESTION}."
        )
    return Shape(request.method, path, origin, query, dict(request.headers), body)


def with_history(shape: Shape) -> Shape:
    """The request with ``{history}`` where it shows a place for it: before the question in a list
    of messages, or in a field of that name. It is empty for a question by itself."""
    return replace(shape, body=_with_history(shape.body))


def _with_history(value: Any, name: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _with_history(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        if not value and is_named(name, "history"):
            return [HISTORY]  # an empty list without one, for bots that want the field
        last = value[-1] if value else None
        if isinstance(last, Mapping) and QUESTION in last.values() and HISTORY not in value:
            return [*value[:-1], HISTORY, last]
    return value


def _holds(value: Any) -> bool:
    return QUESTION in json.dumps(value)


def _with_question(value: Any) -> Any:
    """A copy in which the text that is most likely the question is ``{question}``."""
    if not isinstance(value, dict):
        return value
    messages = value.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        return {**value, "messages": [*messages[:-1], {**messages[-1], "content": QUESTION}]}
    ranked = [(name_rank(key, "question"), key) for key in value]
    for rank, key in sorted(ranked, key=lambda pair: -pair[0]):
        if rank and isinstance(value[key], str):
            return {**value, key: QUESTION}
    for key, item in value.items():
        if isinstance(item, dict) and _holds(changed := _with_question(item)):
            return {**value, key: changed}
    return value


@dataclass
class SecretFinder:
    """Replaces values that look like secrets by ``${VARIABLE}``, and keeps the values apart.

    ``name``: the name of the variable, for the proposed one; ``values``: by that name.
    """

    name: Callable[[str], str] = str
    values: dict[str, str] = field(default_factory=dict, repr=False)
    _names: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)
    """The name by the proposed one and the value."""

    def shape(self, shape: Shape) -> Shape:
        """The shape without any literal secret in it."""
        headers = {name: self._header(name, value) for name, value in shape.headers.items()}
        query = self._data(shape.query)
        return replace(shape, headers=headers, query=query, body=self._data(shape.body))

    def _header(self, name: str, value: str) -> str:
        """The value without a secret: by the header's name, and by the look of the value."""
        secret_name = SECRET_HEADER.search(name) and len(value) >= MIN_LENGTH
        if VARIABLE.search(value) or not (secret_name or DRAWN.search(value)):
            return value
        scheme, space, secret = value.partition(" ")
        if space and secret and scheme.lower() in ("bearer", "token", "basic", "apikey"):
            return f"{scheme} {self._variable('BOT_TOKEN', secret)}"
        return self._variable(f"BOT_{name}", value)

    def _data(self, value: Any) -> Any:
        def hidden(name: str, text: str) -> str:
            secret = SECRET_NAME.search(name) and RANDOM.fullmatch(text)
            if not secret or _HELD.search(text) or name.lower() in NAMES["session"]:
                return text
            return self._variable(f"BOT_{name}", text)

        return _mapped(value, hidden)

    def _variable(self, name: str, value: str) -> str:
        proposed = re.sub(r"\W", "_", name).upper()
        value = value.replace("{{", "{").replace("}}", "}")
        while any(other == proposed and own != value for other, own in self._names):
            proposed += "_2"
        if (proposed, value) not in self._names:
            chosen = self.name(proposed).strip()
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", chosen):
                raise StorageError(f"{chosen[:40]!r} is not the name of an environment variable.")
            self._names[proposed, value] = chosen
            self.values[chosen] = value
        return f"${{{self._names[proposed, value]}}}"


def openapi_shapes(document: Any, own_path: str) -> list[Shape]:
    """The operations of an OpenAPI document that take a question, the likeliest first.

    With a path of the user's only those of that path, or else those below it. Operations that
    store, change or delete something by their name are left out.
    """
    document = _a_dict(document)
    prefix, at = _server_prefix(document), own_path.rstrip("/")
    ranked: list[tuple[bool, float, Shape]] = []
    for path, operations in _a_dict(document.get("paths")).items():
        begin = _begun_at(document, prefix, path)
        if "{" in path and begin is None:
            continue
        full = prefix + (re.sub(r"\{\w+\}", SESSION, path) if begin else path)
        own = at in (full.rstrip("/"), path.rstrip("/"))
        if not own and not full.startswith(f"{at}/"):
            continue
        for method in ("post", "get"):
            operation = _a_dict(_a_dict(operations).get(method))
            if not operation or not (own or _asks(path, operation)):
                continue
            shape, weight = _operation_shape(document, method, full, operation)
            if shape is not None:
                ranked.append((own, weight, replace(shape, begin=begin)))
    if at:
        ranked = [each for each in ranked if each[0]] or ranked
    return [shape for _, _, shape in sorted(ranked, key=lambda each: -each[1])]


def _begun_at(document: Mapping[str, Any], prefix: str, path: str) -> dict[str, Any] | None:
    """The request that begins a conversation, where a path holds the id of one: the POST to the
    collection that the id is of. None for other paths."""
    match = re.fullmatch(r"(/[^{}]*)/\{(\w+)\}/[^{}]+", path)
    if match is None or not _of_conversations(f"{match[1]} {match[2]}"):
        return None
    operations = _a_dict(document["paths"].get(match[1]))
    if "post" not in operations:
        return None
    post = _a_dict(operations["post"])
    shape, _ = _operation_shape(document, "post", match[1], post, bare=True)
    ids = dict.fromkeys((match[2], *SESSION_ID.split(" || ")))
    body = shape.body if shape is not None else {}
    return {"path": prefix + match[1], "body": body or {}, "session": " || ".join(ids)}


def _of_conversations(text: str) -> bool:
    return any(word.removesuffix("s") in _CONVERSATIONS for word in name_words(text))


def _server_prefix(document: Mapping[str, Any]) -> str:
    """The path that all operations stand behind; another host in it is not asked."""
    url = _a_dict(next(iter(_a_list(document.get("servers"))), None)).get("url")
    return url.rstrip("/") if isinstance(url, str) and url.startswith("/") else ""


def _asks(path: str, operation: Mapping[str, Any]) -> bool:
    words = set(name_words(path.rstrip("/").rpartition("/")[2]))
    words |= set(name_words(str(operation.get("operationId", ""))))
    return not words & NAMES["not_asking"] or bool(words & NAMES["asking"])


def _operation_shape(
    document: Mapping[str, Any],
    method: str,
    path: str,
    operation: Mapping[str, Any],
    *,
    bare: bool = False,
) -> tuple[Shape | None, float]:
    """The request of an operation and how likely it takes a question; ``bare``: it takes none."""
    origin = f"openapi.json: {operation.get('summary') or operation.get('operationId') or path}"
    properties, required = {}, []
    for raw in _a_list(operation.get("parameters")):
        parameter = _resolved(document, raw)
        if parameter.get("in") == "query" and isinstance(parameter.get("name"), str):
            properties[parameter["name"]] = parameter.get("schema", {"type": "string"})
            required += [parameter["name"]] if parameter.get("required") else []
    query, in_query = _filled(document, {"properties": properties, "required": required})
    content = _a_dict(_resolved(document, operation.get("requestBody")).get("content"))
    schemas = (_a_dict(content[kind]).get("schema") for kind in content if "json" in kind)
    schema = next((each for each in schemas if isinstance(each, Mapping)), None)
    body, in_body = (None, 0.0) if method == "get" else _filled(document, schema)
    if not in_query and not in_body and not bare:
        return None, 0.0
    if in_body and in_query:  # the same text twice asks nothing more
        query = {name: value for name, value in query.items() if value != QUESTION}
    words = set(name_words(path))
    weight = 3 * len(words & NAMES["asking"]) + max(in_query, in_body) / 3
    weight -= 2 * bool(operation.get("deprecated")) + ("stream" in words) + (method == "get")
    return Shape(method.upper(), path, origin, query or {}, {}, body), weight


def _resolved(document: Mapping[str, Any], node: Any, depth: int = 0) -> Mapping[str, Any]:
    """A schema with its reference followed, and of several the first that is not null."""
    if not isinstance(node, Mapping) or depth > 8:
        return {}
    if isinstance(node.get("$ref"), str):
        target: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target.get(step) if isinstance(target, Mapping) else None
        return _resolved(document, target, depth + 1)
    for key in ("anyOf", "oneOf"):
        for choice in _a_list(node.get(key)):
            chosen = _resolved(document, choice, depth + 1)
            if chosen and chosen.get("type") != "null":
                return {**chosen, **{k: v for k, v in node.items() if k != key}}
    parts = node.get("allOf")
    if isinstance(parts, list):
        merged: dict[str, Any] = {"properties": {}, "required": []}
        for part in [*parts, {key: value for key, value in node.items() if key != "allOf"}]:
            resolved = _resolved(document, part, depth + 1)
            merged["properties"] |= _a_dict(resolved.get("properties"))
            merged["required"] += _a_list(resolved.get("required"))
        return merged
    return node


def _filled(document: Mapping[str, Any], node: Any, depth: int = 0) -> tuple[dict[str, Any], float]:
    """An object of a schema with the question in it, and how well its name fits (0: none)."""
    schema = _resolved(document, node)
    properties = _a_dict(schema.get("properties")) if depth <= 3 else {}
    schemas = {str(name): _resolved(document, value) for name, value in properties.items()}
    required = {name for name in _a_list(schema.get("required")) if isinstance(name, str)}
    ranked = [
        (name_rank(name, "question"), name)
        for name, each in schemas.items()
        if each.get("type", "string") == "string" and "enum" not in each
    ]
    rank, question = max(ranked, default=(0.0, ""))
    value: dict[str, Any] = {}
    for name, each in schemas.items():
        kind = each.get("type")
        if name == "messages" and kind == "array":
            value[name], rank = _VALUES["messages"], max(rank, 9.0)
            question = name
        elif name == question and rank:
            value[name] = QUESTION
        elif (filled := _field(name, each)) is not None:
            value[name] = filled
        elif name in required or not rank:
            inner, fits = _filled(document, each, depth + 1)
            if fits:
                value[name], rank = inner, max(rank, fits - 1)
            elif name in required:
                value[name] = _default(each)
    return value, rank


def _a_dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _a_list(value: Any) -> list[Any]:
    """The value if it is a list: what a stranger sends may be anything."""
    return value if isinstance(value, list) else []


def _field(name: str, schema: Mapping[str, Any]) -> Any:
    """What a field gets by its name, required or not; None for nothing."""
    plain, kind = plain_name(name), schema.get("type")
    kinds = {"{k}": ("integer", "number"), "{uuid}": ("string",), False: ("boolean",)}
    if plain in _SETTINGS and kind in kinds[_SETTINGS[plain]]:
        return _SETTINGS[plain]
    return True if kind == "boolean" and plain in NAMES["shows_more"] else None


def _default(schema: Mapping[str, Any]) -> Any:
    """A value that a required field may have: its default, its first choice, or one of its type."""
    for key in ("default", "const", "example"):
        if key in schema:
            return template(schema[key], None)
    for key in ("enum", "examples"):
        if choices := _a_list(schema.get(key)):
            return template(choices[0], None)
    return _BY_TYPE.get(str(schema.get("type")), "default")


def corrected(shape: Shape, body: bytes, *, refused: bool = False) -> Shape | None:
    """The request after the bot's complaint about this one; None when the complaint names no field.

    ``refused``: the status said that the request is wrong, so the only quoted name in the message
    is the missing field, whatever its language.
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = body.decode("utf-8", "replace")
    changes = [*_offers(shape, said), *_complaints(said)]
    if refused and not changes and (name := _only_name(shape, said)):
        changes = [("body", [name], None)]
    new = shape
    for where, path, value in changes:
        new = _changed(new, where, path, value)
    if new.key() == shape.key():
        return None
    origin = shape.origin.partition(", corrected")[0] + ", corrected by the bot's answer"
    return replace(_begun(new, said), origin=origin)


_DROP = object()


def _complaints(said: Any) -> Iterator[tuple[str, list[str], Any]]:
    """(query or body, path of the field, value that it should have or None) of each complaint."""
    details = said.get("detail") if isinstance(said, dict) else None
    if isinstance(details, list) and all(isinstance(item, dict) for item in details):
        for item in details:
            where, *path = list(map(str, _a_list(item.get("loc")))) or ["body"]
            kind = str(item.get("type", ""))
            if where not in ("body", "query") or not path:
                continue
            if "extra" in kind:
                yield where, path, _DROP
            elif "missing" in kind or "required" in str(item.get("msg", "")).lower():
                yield where, path, None
            elif "enum" in kind or "literal" in kind:
                allowed = re.findall(r"'([^']+)'", str(item.get("msg", "")))
                yield where, path, allowed[0] if allowed else None
            elif "list" in kind:
                yield where, path, []
        return
    if named := _named(said):
        yield "body", [named], None
        return
    for sentence in (each for text in _texts(said) for each in re.split(r"(?<=[.;!\n])\s", text)):
        drop = bool(_SURPLUS.search(sentence))
        bare = (name for match in _BARE.findall(sentence) for name in match if name)
        for name in dict.fromkeys(_QUOTED.findall(sentence) or bare):
            if (drop or _LACKS.search(sentence)) and name.lower() not in NAMES["plain_words"]:
                yield "body", re.findall(r"\w+", name), _DROP if drop else None


def _only_name(shape: Shape, said: Any) -> str | None:
    """The one name that a message puts in quotation marks, if the request does not have it."""
    names = {name for text in _texts(said) for name in _QUOTED.findall(text)}
    name = names.pop() if len(names) == 1 else ""
    sent = json.dumps([shape.body, dict(shape.query)])
    return (
        name
        if name and name.lower() not in NAMES["plain_words"] and f'"{name}"' not in sent
        else None
    )


def _begun(shape: Shape, said: Any) -> Shape:
    """The shape with the request that begins a session, where the bot says which one that is."""
    opening = _OPENING.search("\n".join(_texts(said)))
    if opening is None or not _of_conversations(opening[1]) or shape.begin:
        return shape
    if not isinstance(shape.body, dict) or "{uuid}" not in shape.body.values():
        return shape
    body = {name: SESSION if value == "{uuid}" else value for name, value in shape.body.items()}
    begin: dict[str, Any] = {"path": opening[1], "body": {}, "session": SESSION_ID}
    return replace(shape, body=body, begin=begin)


def _named(said: Any) -> str | None:
    """The field that an error names beside its message, as ``"params": "inputs"``."""
    for each in (said, *(said.values() if isinstance(said, Mapping) else ())):
        for key in _NAMED if isinstance(each, Mapping) else ():
            if isinstance(name := each.get(key), str) and re.fullmatch(r"[A-Za-z_]\w*", name):
                return name
    return None


def _offers(shape: Shape, said: Any) -> Iterator[tuple[str, list[str], Any]]:
    """Fields of the request with the first value that an error offers: ``Available: a, b``."""
    text = "\n".join(_texts(said))
    choice = _CHOICES.search(text)
    if choice is None or not isinstance(shape.body, Mapping):
        return
    for name, value in shape.body.items():
        named = re.search(rf"\b{re.escape(name)}s?\b", text)
        if isinstance(value, str) and not _HELD.search(value) and (named or value in text):
            yield "body", [name], choice[1].rstrip(".")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:2000]
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value[:20]:
            yield from _texts(item)


def _changed(shape: Shape, where: str, path: Sequence[str], value: Any) -> Shape:
    """The shape with one field set or dropped, unless its value is there already."""
    in_query = where == "query" or shape.body is None
    part = shape.query if in_query else shape.body
    if not isinstance(part, Mapping):
        return shape
    name, new = path[-1], dict(part)
    old = new.get(name) if len(path) == 1 else None
    if value is _DROP:
        new.pop(name, None)
    elif value is None or value == []:
        guessed = shape.origin.startswith(_GUESSED)
        filled = [QUESTION] if value == [] and old == QUESTION else _missing(name, guessed)
        if filled == old or (value is None and old is not None):
            return shape
        if _holds(filled) and "openapi" not in shape.origin and _takes_question(name):
            new = {key: item for key, item in new.items() if item != QUESTION}
        if len(path) > 1 and path[1].isdecimal() and path[0] not in new:
            new[path[0]] = _missing(path[0], guessed)
        new = _put(new, path, filled)
    else:
        new = _put(new, path, value)
    return replace(shape, query=new) if in_query else replace(shape, body=new)


def _put(value: Any, path: Sequence[str], item: Any) -> Any:
    """A copy with an item at a path; of a list only where the path leads into an object of it."""
    if not path:
        return item
    if isinstance(value, list):
        at = path[0] if len(path) > 1 else ""
        return [
            _put(each, path[1:], item) if str(n) == at and isinstance(each, dict) else each
            for n, each in enumerate(value)
        ]
    inner = value if isinstance(value, dict) else {}
    return {**inner, path[0]: _put(inner.get(path[0]), path[1:], item)}


def _takes_question(name: str) -> bool:
    return name_words(name) == ["messages"] or name_rank(name, "question") > 0


def _missing(name: str, guessed: bool) -> Any:
    """What a field gets of which only the name is known.

    ``guessed``: nothing says that the request's own field is the bot's field of the question, so a
    field that is no known setting gets it, too.
    """
    if (plain := plain_name(name)) in _VALUES:
        return _VALUES[plain]
    setting = not guessed or bool(set(name_words(name)) & NAMES["other_fields"])
    return QUESTION if _takes_question(name) or not setting else "default"

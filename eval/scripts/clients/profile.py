"""Profiles: one TOML file a bot says how to ask it and where each value is in its answer.

``load_profile("default", folder)`` reads eval/profiles/default.toml; a path works as well. The
tables of a profile are described in eval/profiles/default.toml itself. A value that is no value of
its field makes the answer an error of kind ``mapping``: a ``confidence`` outside [0, 1], a negative
time, a rank below 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from clients.expressions import HELPERS, Getter, compile_path
from clients.limits import BOT_LIMITS
from clients.mapping import (
    CHUNK_FIELDS,
    FACT_FIELDS,
    MILLISECONDS,
    REFERENCE_FIELDS,
    SEARCH_FIELDS,
    Absent,
    AnswerMap,
    PlaceForm,
)
from clients.secrets import Headers, fill_variables, resolve_headers
from clients.streams import END_MARK, FORMS, Stream
from clients.templates import NAME, PLACEHOLDERS, used_placeholders
from ragmetrics.paths import STEPS
from records.cases import ChatMessage
from records.checked_results import RESULT_FIELDS
from records.errors import StorageError
from records.profiles import digest, digest_without_turns, find_profile
from records.results import TestResult
from records.settings import check_keys
from records.toml_files import KeyPath, OneOf, Parsed, TomlReader, open_file
from records.tool_calls import TOOL_FIELDS
from records.tool_passages import tool_forms

METHODS = ("GET", "POST", "PUT")

KINDS = ("chat", "retrieval")
"""The kinds of bots: it answers, or it only retrieves."""


@dataclass(frozen=True)
class Profile:
    """A checked profile. ``uses`` names the placeholders that its request has."""

    name: str
    sha256: str
    answer: AnswerMap
    path: str = ""
    method: str = "POST"
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    retrieval_only: Mapping[str, Any] | None = None
    uses: frozenset[str] = frozenset()
    stream: Stream | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the bot that the request names, and their values unless a grid sets others."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The bot's own words for roles and keys of a message."""
    reset: Mapping[str, Any] | None = None
    """The request after which the bot forgets the conversation."""
    begin: Mapping[str, Any] | None = None
    """The request that begins a conversation; ``session`` finds its name in the answer."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """How fast the bot may be asked, and how patiently: values of ``limits.BOT_LIMITS``."""
    one_passage_per_document: bool = False
    """Whether the bot reports only one passage of each document although it may use several."""
    turns_sha256: str = ""
    """Over all that a question with a history is asked by."""

    @property
    def remembers(self) -> bool:
        """Whether the bot itself remembers a conversation: by a session, or until it is reset."""
        return "session" in self.uses or self.reset is not None

    @property
    def one_memory(self) -> bool:
        """Whether the bot has one memory for all callers, so that only one may ask at a time."""
        return self.reset is not None and "session" not in self.uses

    def messages(self, history: Sequence[ChatMessage]) -> list[dict[str, str]]:
        """The messages as the bot wants them."""
        role, content = (self.names.get(key, key) for key in ("role", "content"))
        return [
            {role: self.names.get(message.role, message.role), content: message.content}
            for message in history
        ]

    def with_settings(self, values: Mapping[str, Any]) -> Profile:
        """The same profile with other values of its settings. Raises StorageError for a name that
        ``[settings]`` does not have."""
        for name in (name for name in values if name not in self.settings):
            names = ", ".join(sorted(self.settings)) or "none"
            raise StorageError(f"profile {self.name} has no setting {name!r}; it has: {names}.")
        return replace(self, settings={**self.settings, **values})


def load_profile(name: str, folder: Path) -> Profile:
    """Read and check a profile given by name or path. Raises StorageError with every problem."""
    path = find_profile(name, folder)
    raw, reader = open_file(path)
    return _profile(path.stem, raw, reader)


def check_profile(name: str, raw: dict[str, Any], source: str) -> Profile:
    """The profile of parsed TOML. Raises StorageError with every problem, under ``source``."""
    return _profile(name, raw, TomlReader(source))


def _profile(name: str, raw: dict[str, Any], reader: TomlReader) -> Profile:
    top: _ProfileTable = reader.read(raw, _ProfileTable)
    if isinstance(limits := raw.get("limits"), dict):
        check_keys(reader, limits, BOT_LIMITS, ("limits",))
    forms = tool_forms(top.tools, compile_path, reader, ("tools",))
    reader.end()
    return Profile(
        name=name,
        sha256=digest_without_turns(raw),
        turns_sha256=digest(raw),
        one_passage_per_document=top.one_passage_per_document,
        answer=replace(_answer_map(top, raw), tool_forms=forms),
        path=top.request.path,
        method=top.request.method,
        query=top.request.query,
        headers=top.request.headers,
        body=top.request.body,
        retrieval_only=raw.get("retrieval_only"),
        uses=frozenset(top.placeholders()),
        stream=None if top.stream is None else _stream(top.stream, top),
        settings=top.settings,
        names=raw.get("history", {}),
        reset=raw.get("reset"),
        begin=raw.get("begin"),
        limits=top.limits,
    )


def _stream(form: str, top: _ProfileTable) -> Stream:
    needs_mark = top.stream_last == END_MARK
    last = None if needs_mark else top.stream_last
    return Stream(form, top.stream_delta, last, needs_mark, "error" in top.response)


def _answer_map(top: _ProfileTable, raw: Mapping[str, Any]) -> AnswerMap:
    response = {name: getter for name, getter in top.response.items() if name != "error"}
    required = frozenset(top.required or ())
    # A profile of before this setting that does not require passages takes none for empty.
    lenient = top.required is not None and "retrieved" not in required
    return AnswerMap(
        response=response,
        chunk=top.chunk,
        reference=top.reference,
        search=top.search,
        tool=top.tool,
        facts=top.facts,
        constant=top.constant,
        required=required,
        absent=top.absent or ("empty" if lenient else "error"),
        answers="answer" in top.fields(),
        paths={name: raw["response"][name] for name in response},
        latency_unit=top.latency_unit,
        prices=raw.get("prices", {}),
        error=top.response.get("error"),
        places=PlaceForm(
            top.heading_separator,
            top.heading_root,
            top.path_root,
            " ".join(top.path_cut.split()),
            tuple(top.path_files),
            top.page_base,
        ),
        is_reversed=top.order == "reversed",
        reads_text=frozenset(
            table
            for table in ("chunk", "reference", "search")
            if any("@" in path for path in raw.get(table, {}).values())
        ),
    )


def _endpoint(path: Any) -> str:
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError('must begin with "/"; the host comes from --api-url')
    if any(mark in path for mark in "?# "):
        raise ValueError('contains "?", "#" or a space; parameters go into request.query')
    return path


def _expression(text: Any) -> Getter:
    if not isinstance(text, str):
        raise ValueError("must be a string, a JMESPath expression")
    try:
        return compile_path(text)
    except ValueError as error:
        reason = " ".join(str(error).split())
        helpers = f"; helpers are {', '.join(HELPERS)}" if "no function" in reason else ""
        clause = f"{text!r} is not a JMESPath expression ({reason}{helpers})"
        raise ValueError(clause) from None


def _last_event(text: Any) -> Any:
    return text if text == END_MARK else _expression(text)


def _setting_name(name: str) -> str:
    if name in PLACEHOLDERS or not NAME.fullmatch(name):
        raise ValueError("cannot be the name of a setting; choose another")
    return name


def _setting(value: Any) -> Any:
    """A value that JSON and a query can hold."""
    items = value if isinstance(value, list) else [value]
    if all(isinstance(item, (str, int, float)) for item in items):
        return value
    raise ValueError("must be a text, a number, true, false, or a list")


def _part(text: Any) -> str:
    if isinstance(text, str) and text.strip():
        return text
    raise ValueError("is empty; write the part that the bot's places have, or leave it out")


def _steps(text: Any) -> str:
    if not isinstance(text, str):
        raise ValueError(f"must be a text of steps: {', '.join(STEPS)}")
    if unknown := [name for name in text.split() if name not in STEPS]:
        raise ValueError(f"has {unknown[0]!r}; steps are: {', '.join(STEPS)}")
    return text


_Part = Annotated[str, Parsed(_part)]
_Expression = Annotated[Getter, Parsed(_expression)]
_Paths = dict[str, _Expression]
_Price = Annotated[float, Meta(ge=0, le=1e9, description="in USD a million tokens")]


_NO_PATH = 'is missing; write the endpoint, such as "/api/v1/ask"'


class _Request(msgspec.Struct, kw_only=True):
    """A request to the bot: [request], [reset] or [begin]."""

    path: Annotated[str, Parsed(_endpoint)] = ""
    method: Annotated[str, OneOf(METHODS)] = "POST"
    query: dict[str, Any] = {}
    body: dict[str, Any] | None = None

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yields a missing path, and a body that a GET request cannot have."""
        if not self.path:
            yield ("path",), _NO_PATH
        if self.method == "GET" and self.body is not None:
            yield ("body",), "a GET request has none; use request.query"


class _MainRequest(_Request, kw_only=True):
    headers: dict[str, str] = {}


class _Begin(_Request, kw_only=True):
    session: _Expression | None = None

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yields also a session that the answer does not name."""
        yield from super().faults()
        if self.session is None:
            yield ("session",), "is missing; write the JMESPath expression of its name"


class _RetrievalOnly(msgspec.Struct):
    query: dict[str, Any] = {}
    body: dict[str, Any] = {}


class _History(msgspec.Struct):
    role: str = ""
    content: str = ""
    user: str = ""
    assistant: str = ""
    system: str = ""


class _ProfileTable(msgspec.Struct, kw_only=True):
    """A profile as its file has it; its tables are described in eval/profiles/default.toml."""

    schema: Annotated[Literal[1], Meta(description="this version reads 1")] = 1
    description: str = ""
    kind: Annotated[str, OneOf(KINDS)] = "chat"
    absent: Absent | None = None
    one_passage_per_document: bool = False
    required: Annotated[list[str], Meta(description="write names of fields")] | None = None
    latency_unit: Annotated[str, OneOf(tuple(MILLISECONDS))] = "ms"
    stream: Annotated[str, OneOf(FORMS)] | None = None
    stream_delta: _Expression | None = None
    stream_last: Annotated[Any, Parsed(_last_event)] = None
    heading_separator: _Part = ""
    heading_root: _Part = ""
    path_root: _Part = ""
    path_cut: Annotated[str, Parsed(_steps)] = ""
    path_files: list[str] = []
    page_base: int = 1
    order: Annotated[str, OneOf(("best first", "reversed"))] = "best first"
    tools: dict[str, Any] = {}
    request: _MainRequest = msgspec.field(default_factory=_MainRequest)
    retrieval_only: _RetrievalOnly | None = None
    response: Annotated[_Paths, OneOf((*RESULT_FIELDS, "error"))] = {}
    chunk: Annotated[_Paths, OneOf(CHUNK_FIELDS)] = {}
    reference: Annotated[_Paths, OneOf(REFERENCE_FIELDS)] = {}
    search: Annotated[_Paths, OneOf(SEARCH_FIELDS)] = {}
    tool: Annotated[_Paths, OneOf(TOOL_FIELDS)] = {}
    facts: Annotated[_Paths, OneOf(FACT_FIELDS)] = {}
    constant: Annotated[dict[str, Any], OneOf(RESULT_FIELDS)] = {}
    prices: dict[str, _Price] = {}
    settings: dict[Annotated[str, Parsed(_setting_name)], Annotated[Any, Parsed(_setting)]] = {}
    history: _History | None = None
    reset: _Request | None = None
    begin: _Begin | None = None
    limits: dict[str, Any] = {}

    def fields(self) -> set[str]:
        """The fields of a result that the answer or a constant gives."""
        return (self.response.keys() | self.constant.keys()) - {"error"}

    def templates(self) -> Iterator[tuple[KeyPath, Any]]:
        """Each text or tree in which placeholders may be, with its key."""
        tables = (self.request, self.retrieval_only, self.reset, self.begin)
        names = ("request", "retrieval_only", "reset", "begin")
        for name, table in zip(names, tables, strict=True):
            for key in ("path", "query", "body"):
                if template := getattr(table, key, None):
                    yield (name, key), template

    def placeholders(self) -> set[str]:
        """The names of the placeholders that its requests have."""
        names = {name for _, part in self.templates() for _, name in used_placeholders(part)}
        return names | {"session"} if "session_or_uuid" in names else names

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yields what is wrong between tables."""
        if not self.request.path:
            yield ("request", "path"), _NO_PATH
        if not self.response.keys() - {"error"}:
            yield ("response",), 'maps no field; write at least answer = "…" or retrieved = "…"'
        elif "answer" not in self.fields() and self.kind != "retrieval":
            clause = 'is missing; map it, or write kind = "retrieval" for a bot that only retrieves'
            yield ("response", "answer"), clause
        for name, value in self.constant.items():
            if name in self.response:
                yield ("constant", name), "is also mapped under response; keep one of them"
            try:
                msgspec.convert({"test_case_id": "", name: value}, TestResult)
            except msgspec.ValidationError as error:
                yield ("constant", name), str(error).partition(" - at ")[0]
        for name in (name for name in self.required or () if name not in self.fields()):
            yield ("required",), f"{name!r} is not mapped under response"
        if self.tools and "tools" not in self.fields():
            yield ("response", "tools"), 'is missing; [tools] reads it: "tool_calls(messages)"'
        for key in ("stream_delta", "stream_last"):
            if self.stream is None and getattr(self, key) is not None:
                yield (key,), f'needs stream = "{FORMS[0]}" or "{FORMS[1]}"'
        yield from self._faults_of_placeholders()

    def _faults_of_placeholders(self) -> Iterator[tuple[KeyPath, str]]:
        allowed = ", ".join([*PLACEHOLDERS, *sorted(self.settings)])
        for (table, key), template in self.templates():
            for where, name in used_placeholders(template):
                at = (table, key, *where.strip(".").split(".")) if where else (table, key)
                if key == "path" and name != "session":
                    yield at, f"holds {{{name}}}; {{session}} alone may be there"
                elif name not in PLACEHOLDERS and name not in self.settings:
                    yield (
                        at,
                        f"{{{name}}} is unknown; known are: {allowed} (write {{{{ for a brace)",
                    )
        names = self.placeholders()
        if "question" not in names:
            yield ("request",), 'has no "{question}" in its body or query'
        if self.begin and "session" not in names:
            yield ("begin",), 'needs "{session}" in the request'
        for name in sorted(self.settings.keys() - names):
            yield ("settings", name), f'"{{{name}}}" is nowhere in the request'


def fill(
    profile: Profile, environ: Mapping[str, str], more: Mapping[str, str] | None = None
) -> tuple[Profile, Headers]:
    """The profile with each ``${VARIABLE}`` of its query and body filled in, and its headers.

    ``more``: further headers, by name, with variables. Every value that came from the environment
    is among the secrets of the headers. Raises StorageError with every variable that is not set.
    """
    source = f"profile {profile.name}"
    headers, problems = resolve_headers(profile.headers, environ, source)
    added, faults = resolve_headers(more or {}, environ, "--header")
    templates = {
        "request.query": profile.query,
        "request.body": profile.body,
        "retrieval_only": profile.retrieval_only,
        "reset": profile.reset,
        "begin": profile.begin,
    }
    filled = [fill_variables(part, environ, source, name) for name, part in templates.items()]
    problems = [*problems, *faults, *(problem for _, _, own in filled for problem in own)]
    if problems:
        raise StorageError.from_problems(problems)
    secrets = (secret for _, own, _ in filled for secret in own)
    all_headers = Headers(
        {**headers.values, **added.values},
        (*headers.secrets, *added.secrets, *secrets),
        headers.literal,
    )
    query, body, overlay, reset, begin = (value for value, _, _ in filled)
    parts = {"query": query, "body": body, "retrieval_only": overlay}
    return replace(profile, **parts, reset=reset, begin=begin), all_headers

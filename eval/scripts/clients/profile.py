"""Profiles: one TOML file a bot says how to ask it and where each value is in its answer.

``load_profile("default", folder)`` reads eval/profiles/default.toml; a path works as well. The
tables of a profile are described in eval/profiles/default.toml itself. A value that is no value of
its field makes the answer an error of kind ``mapping``: a ``confidence`` outside [0, 1], a negative
time, a rank below 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from clients.expressions import HELPERS, Getter, compile_path
from clients.limits import BOT_LIMITS
from clients.mapping import (
    CHUNK_FIELDS,
    FACT_FIELDS,
    MILLISECONDS,
    REFERENCE_FIELDS,
    SEARCH_FIELDS,
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
from records.files import read_toml
from records.profiles import digest, digest_without_turns, find_profile
from records.results import TestResult
from records.settings import check_keys
from records.toml_files import TomlReader
from records.tool_calls import TOOL_FIELDS

METHODS = ("GET", "POST", "PUT")

KINDS = ("chat", "retrieval")
"""The kinds of bots: it answers, or it only retrieves."""

ABSENT_MEANS = ("error", "empty")

TABLES = {
    "schema": int,
    "description": str,
    "latency_unit": str,
    "stream": str,
    "stream_delta": str,
    "stream_last": str,
    "heading_separator": str,
    "heading_root": str,
    "path_root": str,
    "path_cut": str,
    "path_files": list,
    "page_base": int,
    "kind": str,
    "absent": str,
    "one_passage_per_document": bool,
    "required": list,
    "request": dict,
    "retrieval_only": dict,
    "response": dict,
    "chunk": dict,
    "reference": dict,
    "search": dict,
    "tool": dict,
    "facts": dict,
    "constant": dict,
    "prices": dict,
    "settings": dict,
    "history": dict,
    "reset": dict,
    "begin": dict,
    "limits": dict,
}

HISTORY = {"role": str, "content": str, "user": str, "assistant": str, "system": str}

RESET = {"method": str, "path": str, "query": dict, "body": dict}

BEGIN = {**RESET, "session": str}

REQUEST = {"method": str, "path": str, "query": dict, "headers": dict, "body": dict}

RETRIEVAL_ONLY = {"query": dict, "body": dict}

_WORDS = {
    bool: "true or false",
    int: "a whole number",
    str: "a string",
    list: "a list",
    dict: "a table",
}


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
    raw = read_toml(path)
    return check_profile(path.stem, raw, str(path), path)


def check_profile(name: str, raw: dict[str, Any], source: str, path: Path | None = None) -> Profile:
    """The profile of parsed TOML. Raises StorageError with every problem, under ``source``.

    ``path``: of the file, for the lines of problems.
    """
    check = _ProfileReader(source, path)
    profile = check.profile(name, raw)
    check.reader.end()
    return profile


class _ProfileReader:
    """Walks over a parsed profile and gathers what is wrong with it."""

    def __init__(self, source: str, path: Path | None) -> None:
        self.reader = TomlReader(source, path)

    def profile(self, name: str, raw: dict[str, Any]) -> Profile:
        top = self._table("", raw, TABLES)
        if top.get("schema", 1) != 1:
            self._add("schema", f"is {top['schema']}; this version reads 1")
        request = self._table("request", top.get("request", {}), REQUEST)
        overlay = top.get("retrieval_only")
        if overlay is not None:
            overlay = self._table("retrieval_only", overlay, RETRIEVAL_ONLY)
        self._request(request)
        check_keys(self.reader, top.get("limits", {}), BOT_LIMITS, ("limits",))
        reset = top.get("reset")
        if reset is not None:
            reset = self._table("reset", reset, RESET)
            self._request(reset, "reset")
        begin = top.get("begin")
        if begin is not None:
            begin = self._table("begin", begin, BEGIN)
            self._request(begin, "begin")
            self._path("begin.session", begin.get("session"))
        tables = {"request": request, "retrieval_only": overlay, "reset": reset, "begin": begin}
        return Profile(
            name=name,
            sha256=digest_without_turns(raw),
            turns_sha256=digest(raw),
            one_passage_per_document=top.get("one_passage_per_document", False),
            answer=self._answer(top),
            path=request.get("path", ""),
            method=request.get("method", "POST"),
            query=request.get("query", {}),
            headers=request.get("headers", {}),
            body=request.get("body"),
            retrieval_only=overlay,
            uses=self._placeholders(tables, self._settings(top.get("settings", {}))),
            stream=self._stream(top),
            settings=top.get("settings", {}),
            names=self._table("history", top.get("history", {}), HISTORY),
            reset=reset,
            begin=begin,
            limits=top.get("limits", {}),
        )

    def _request(self, request: Mapping[str, Any], table: str = "request") -> None:
        if "path" not in request:
            self._add(f"{table}.path", 'is missing; write the endpoint, such as "/api/v1/ask"')
        elif isinstance(request["path"], str) and not request["path"].startswith("/"):
            self._add(f"{table}.path", 'must begin with "/"; the host comes from --api-url')
        elif any(mark in request["path"] for mark in "?# "):
            self._add(
                f"{table}.path", 'contains "?", "#" or a space; parameters go into request.query'
            )
        if request.get("method", "POST") not in METHODS:
            self._add(
                f"{table}.method", f"is {request['method']!r}; use one of {', '.join(METHODS)}"
            )
        if request.get("method") == "GET" and "body" in request:
            self._add(f"{table}.body", "a GET request has none; use request.query")
        for name, value in request.get("headers", {}).items():
            if not isinstance(value, str):
                self._add(f"{table}.headers.{name}", "must be a string")

    def _settings(self, settings: Mapping[str, Any]) -> set[str]:
        """The names of the settings, each with a value that JSON and a query can hold."""
        for name, value in settings.items():
            items = value if isinstance(value, list) else [value]
            if name in PLACEHOLDERS or not NAME.fullmatch(name):
                self._add(f"settings.{name}", "cannot be the name of a setting; choose another")
            if not all(isinstance(item, (str, int, float)) for item in items):
                self._add(f"settings.{name}", "must be a text, a number, true, false, or a list")
        return set(settings)

    def _stream(self, top: Mapping[str, Any]) -> Stream | None:
        form = top.get("stream")
        if form is None:
            for key in ("stream_delta", "stream_last"):
                if key in top:
                    self._add(key, f'needs stream = "{FORMS[0]}" or "{FORMS[1]}"')
            return None
        if form not in FORMS:
            self._add("stream", f"is {form!r}; use one of {', '.join(FORMS)}")
        delta, last = top.get("stream_delta"), top.get("stream_last")
        return Stream(
            form,
            self._path("stream_delta", delta) if delta is not None else None,
            self._path("stream_last", last) if last not in (None, END_MARK) else None,
            needs_mark=last == END_MARK,
            maps_error="error" in top.get("response", {}),
        )

    def _placeholders(
        self, tables: Mapping[str, Mapping[str, Any] | None], settings: set[str]
    ) -> frozenset[str]:
        names: set[str] = set()
        for table, part in ((table, part or {}) for table, part in tables.items()):
            for key in ("query", "body"):
                for where, name in used_placeholders(part.get(key, {})):
                    names.add(name)
                    if name not in PLACEHOLDERS and name not in settings:
                        allowed = ", ".join([*PLACEHOLDERS, *sorted(settings)])
                        self._add(
                            f"{table}.{key}{where}",
                            f"{{{name}}} is unknown; known are: {allowed} (write {{{{ for a brace)",
                        )
            for _, name in used_placeholders(part.get("path", "")):
                names.add(name)
                if name != "session":
                    self._add(f"{table}.path", f"holds {{{name}}}; {{session}} alone may be there")
        if "session_or_uuid" in names:
            names.add("session")
        if "question" not in names:
            self._add("request", 'has no "{question}" in its body or query')
        if tables["begin"] and "session" not in names:
            self._add("begin", 'needs "{session}" in the request')
        for name in sorted(settings - names):
            self._add(f"settings.{name}", f'"{{{name}}}" is nowhere in the request')
        return frozenset(names)

    def _answer(self, top: Mapping[str, Any]) -> AnswerMap:
        response = dict(top.get("response", {}))
        error = response.pop("error", None)
        constant = self._keys("constant", top.get("constant", {}), RESULT_FIELDS)
        for name in (name for name in constant if name in response):
            self._add(f"constant.{name}", "is also mapped under response; keep one of them")
        for name, value in constant.items():
            try:
                msgspec.convert({"test_case_id": "", name: value}, TestResult)
            except msgspec.ValidationError as error_found:
                self._add(f"constant.{name}", str(error_found).partition(" - at ")[0])
        getters = self._paths("response", response, RESULT_FIELDS)
        if not getters:
            self._add("response", 'maps no field; write at least answer = "…" or retrieved = "…"')
        elif "answer" not in response.keys() | constant.keys() and top.get("kind") != "retrieval":
            self._add(
                "response.answer",
                'is missing; map it, or write kind = "retrieval" for a bot that only retrieves',
            )
        for name, allowed in (("kind", KINDS), ("absent", ABSENT_MEANS)):
            if top.get(name, allowed[0]) not in allowed:
                self._add(name, f"is {top[name]!r}; use one of {', '.join(allowed)}")
        required = self._required(top.get("required"), response.keys() | constant.keys())
        # A profile of before this setting that does not require passages takes none for empty.
        lenient = "required" in top and "retrieved" not in required
        chunk = top.get("chunk", {})
        return AnswerMap(
            response=getters,
            chunk=self._paths("chunk", chunk, CHUNK_FIELDS),
            reference=self._paths("reference", top.get("reference", {}), REFERENCE_FIELDS),
            search=self._paths("search", top.get("search", {}), SEARCH_FIELDS),
            tool=self._paths("tool", top.get("tool", {}), TOOL_FIELDS),
            facts=self._paths("facts", top.get("facts", {}), FACT_FIELDS),
            constant=constant,
            required=required,
            absent=top.get("absent", "empty" if lenient else "error"),
            answers="answer" in response.keys() | constant.keys(),
            paths={name: path for name, path in response.items() if isinstance(path, str)},
            latency_unit=self._unit(top.get("latency_unit", "ms")),
            prices=self._prices(top.get("prices", {})),
            error=self._path("response.error", error) if error is not None else None,
            places=self._place_form(top),
            reads_text=frozenset(
                table
                for table in ("chunk", "reference", "search")
                if any("@" in str(path) for path in top.get(table, {}).values())
            ),
        )

    def _required(self, required: list[Any] | None, mapped: set[str]) -> frozenset[str]:
        if required is None:
            return frozenset()
        names = [name for name in required if isinstance(name, str)]
        if len(names) < len(required):
            self._add("required", "must be a list of field names, as strings")
        for name in names:
            if name not in mapped:
                self._add("required", f"{name!r} is not mapped under response")
        return frozenset(names)

    def _place_form(self, top: Mapping[str, Any]) -> PlaceForm:
        names = ("heading_separator", "heading_root", "path_root")
        for name in names:
            if name in top and not top[name].strip():
                self._add(
                    name, "is empty; write the part that the bot's places have, or leave it out"
                )
        steps = top.get("path_cut", "").split()
        if unknown := [name for name in steps if name not in STEPS]:
            self._add("path_cut", f"has {unknown[0]!r}; steps are: {', '.join(STEPS)}")
        files = top.get("path_files", [])
        if not all(isinstance(file, str) for file in files):
            self._add("path_files", "must be a list of file names, as strings")
            files = []
        separator, heading, root = (top.get(name, "") for name in names)
        return PlaceForm(
            separator, heading, root, " ".join(steps), tuple(files), top.get("page_base", 1)
        )

    def _unit(self, unit: str) -> str:
        if unit not in MILLISECONDS:
            self._add("latency_unit", f"is {unit!r}; use one of {', '.join(MILLISECONDS)}")
        return unit

    def _prices(self, prices: Mapping[str, Any]) -> dict[str, float]:
        """US dollars for a million tokens."""
        for name, price in prices.items():
            if type(price) not in (int, float) or not 0 <= price < math.inf:
                self._add(f"prices.{name}", "must be a number from 0 up, in USD a million")
        return dict(prices)

    def _paths(
        self, table: str, raw: Mapping[str, Any], allowed: tuple[str, ...]
    ) -> dict[str, Getter]:
        getters: dict[str, Getter] = {}
        for name, expression in self._keys(table, raw, allowed).items():
            getter = self._path(f"{table}.{name}", expression)
            if getter is not None:
                getters[name] = getter
        return getters

    def _path(self, where: str, expression: Any) -> Getter | None:
        if not isinstance(expression, str):
            self._add(where, "must be a string, a JMESPath expression")
            return None
        try:
            return compile_path(expression)
        except ValueError as error:
            reason = " ".join(str(error).split())
            helpers = f"; helpers are {', '.join(HELPERS)}" if "no function" in reason else ""
            self._add(where, f"{expression!r} is not a JMESPath expression ({reason}{helpers})")
            return None

    def _table(self, name: str, raw: Any, types: Mapping[str, type]) -> dict[str, Any]:
        """The known keys that have the right type."""
        values: dict[str, Any] = {}
        for key, value in self._keys(name, raw, tuple(types)).items():
            where = f"{name}.{key}" if name else key
            if isinstance(value, types[key]) and isinstance(value, bool) == (types[key] is bool):
                values[key] = value
            else:
                self._add(where, f"must be {_WORDS[types[key]]}")
        return values

    def _keys(self, table: str, raw: Mapping[str, Any], allowed: tuple[str, ...]) -> dict[str, Any]:
        for key in (key for key in raw if key not in allowed):
            where = f"{table}.{key}" if table else key
            self._add(where, f"is unknown; known here: {', '.join(allowed)}")
        return {key: value for key, value in raw.items() if key in allowed}

    def _add(self, where: str, message: str) -> None:
        self.reader.wrong(tuple(where.split(".")) if where else (), message)


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
    query, query_secrets, query_faults = fill_variables(
        profile.query, environ, source, "request.query"
    )
    body, body_secrets, body_faults = fill_variables(profile.body, environ, source, "request.body")
    overlay, overlay_secrets, overlay_faults = fill_variables(
        profile.retrieval_only, environ, source, "retrieval_only"
    )
    reset, reset_secrets, reset_faults = fill_variables(profile.reset, environ, source, "reset")
    begin, begin_secrets, begin_faults = fill_variables(profile.begin, environ, source, "begin")
    faults = [*faults, *reset_faults, *begin_faults]
    if problems := [*problems, *faults, *query_faults, *body_faults, *overlay_faults]:
        raise StorageError.from_problems(problems)
    all_headers = Headers(
        {**headers.values, **added.values},
        (
            *headers.secrets,
            *added.secrets,
            *query_secrets,
            *body_secrets,
            *overlay_secrets,
            *reset_secrets,
            *begin_secrets,
        ),
        headers.literal,
    )
    filled = replace(
        profile, query=query, body=body, retrieval_only=overlay, reset=reset, begin=begin
    )
    return filled, all_headers

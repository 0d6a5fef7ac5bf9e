"""Maps a bot's JSON to the fields of a TestResult; a value that does not fit is an error, never a
guess."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from clients.expressions import Getter, PlainName
from clients.http import CallError, message_of
from ragmetrics.abstention import detect
from ragmetrics.matching import SEPARATOR, heading_segments
from ragmetrics.paths import PathCut
from records.checked_results import SEARCH_TIMES, ResultFault, checked_result
from records.results import NO_LIST, Reference, RetrievedChunk, Search, TestResult
from records.tool_calls import TOOL_FIELDS, ToolCall, agent_handed_to
from records.tool_passages import ToolForm, passages_in, query_of

CHUNK_FIELDS = RetrievedChunk.__struct_fields__

REFERENCE_FIELDS = Reference.__struct_fields__

SEARCH_FIELDS = Search.__struct_fields__

FACT_FIELDS = ("index", "retriever", "answerer")

_SEARCHED = ("searches", "rewritten_query")

RETRIEVAL_FIELDS = {"retrieved", "folder_selection", "latency_ms", "usage", "cost_usd", *_SEARCHED}
"""The fields of an answer that a retrieval-only run keeps."""


_OF_ROW = {"score": "score_final"}

MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1000.0}
"""The units of a profile's times, in milliseconds."""

Absent = Literal["error", "empty"]

ANY_TITLE = "*"
"""The heading_root that drops the first heading, whatever it is."""


@dataclass(frozen=True)
class PlaceForm:
    """The form in which a bot writes the place of a passage, if it differs from the labels'
    (``a.md``, ``A > B``).

    ``separator``: what parts its headings. ``heading_root``: a title that all of its headings begin
    with and the labels lack; ``path_root``: a folder likewise. Each is dropped where it is there.
    ``path_cut``: steps of ``ragmetrics.paths``, done before; ``path_files``: files of the labels,
    which a path becomes that is one of them under steps that lose a part of it. ``page_base``: the
    number that the bot gives to the first sheet of a file; labels count from 1.
    """

    separator: str = ""
    heading_root: str = ""
    path_root: str = ""
    path_cut: str = ""
    path_files: tuple[str, ...] = ()
    page_base: int = 1

    def applied(self, item: Any) -> Any:
        """A mapped passage or source with its place as the labels write it."""
        if isinstance(item, dict) and self._changes:
            for name, read in (("heading_path", self._heading), ("rel_path", self._path)):
                if isinstance(text := item.get(name), str) and (own := read(text)) != text:
                    item = item | {name: own}
            page = str(item.get("page", "")).strip()
            if self.page_base != 1 and page.isdecimal():
                item = item | {"page": int(page) + 1 - self.page_base}
        return item

    @cached_property
    def _changes(self) -> bool:
        return self != PlaceForm()

    def _heading(self, text: str) -> str:
        if not self.separator and not self.heading_root:
            return text
        if self.separator:
            text = SEPARATOR.join(part.strip() for part in text.split(self.separator))
        parts = heading_segments(text)
        root = heading_segments(self.heading_root)
        if self.heading_root == ANY_TITLE:
            parts = parts[1:]
        elif parts[: len(root)] == root:
            parts = parts[len(root) :]
        return SEPARATOR.join(parts)

    def _path(self, text: str) -> str:
        if not self.path_root and not self.path_cut:
            return text
        own = self._cut.applied(text)
        return self._files.get(self._cut.key(text), own)

    @cached_property
    def _cut(self) -> PathCut:
        return PathCut(tuple(self.path_cut.split()), self.path_root)

    @cached_property
    def _files(self) -> dict[str, str]:
        """The files of the labels by what is left of them, where that is one file's alone."""
        keys = Counter(map(self._cut.gold_key, self.path_files))
        names = ((self._cut.gold_key(file), file) for file in self.path_files)
        return {key: file for key, file in names if keys[key] == 1}


@dataclass(frozen=True)
class AnswerMap:
    """Where each field of a result is found in an answer; compiled from a profile."""

    response: Mapping[str, Getter]
    chunk: Mapping[str, Getter] = field(default_factory=dict)
    reference: Mapping[str, Getter] = field(default_factory=dict)
    search: Mapping[str, Getter] = field(default_factory=dict)
    tool: Mapping[str, Getter] = field(default_factory=dict)
    facts: Mapping[str, Getter] = field(default_factory=dict)
    constant: Mapping[str, Any] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    latency_unit: str = "ms"
    prices: Mapping[str, float] = field(default_factory=dict)
    """US dollars for a million of each field of ``usage``."""
    error: Getter | None = None
    places: PlaceForm = PlaceForm()
    absent: Absent = "error"
    """The meaning of an answer without its list of passages: a field that failed, or an empty list.
    """
    answers: bool = True
    """Whether an answer must have a text; False for a bot that only retrieves."""
    paths: Mapping[str, str] = field(default_factory=dict)
    """The fields of ``response`` as the profile writes them."""
    is_reversed: bool = False
    """Whether the bot gives its best passage last."""
    tool_forms: Mapping[str, ToolForm] = field(default_factory=dict)
    """How passages are read from the results of tools, by the names of the tools."""
    reads_text: frozenset[str] = frozenset()
    """Which of ``chunk``, ``reference`` and ``search`` have an expression with ``@``: they read
    plain strings, too, which are ids otherwise (of a search: its query)."""

    def fields(self, payload: Any, *, retrieval_only: bool = False) -> dict[str, Any]:
        """The mapped fields, not yet checked for their types. Raises CallError."""
        from jmespath.exceptions import JMESPathError

        try:
            return self._fields(payload, retrieval_only)
        except JMESPathError as error:
            text = " ".join(str(error).split())
            raise CallError("mapping", f"an expression of the profile failed: {text}") from None

    def _fields(self, payload: Any, retrieval_only: bool) -> dict[str, Any]:
        if self.error is not None and (error := self.error(payload)):
            raise CallError("bot_error", message_of(error))
        fields = dict(self.constant)
        for name, get in self.response.items():
            if retrieval_only and name not in RETRIEVAL_FIELDS:
                continue
            value = get(payload)
            if value is not None:
                fields[name] = value
        self._require(fields, retrieval_only)
        self._check_answer(fields, payload, retrieval_only)
        if "retrieved" in self.response and "retrieved" not in fields:
            fields |= self._without_list(fields)
        if "retrieved" in fields:
            fields["retrieved"] = [
                self._item(item, self.chunk, "chunk" in self.reads_text)
                for item in _list(fields, "retrieved")
            ]
        if "references" in fields:
            fields["references"] = [
                self._item(item, self.reference, "reference" in self.reads_text)
                for item in _list(fields, "references")
            ]
        if "searches" in fields:
            fields["searches"] = [
                self._search(item, number) for number, item in enumerate(_list(fields, "searches"))
            ]
        if "tools" in fields:
            self._take_tools(fields)
        if self.is_reversed:
            for listed in (fields, *fields.get("searches", ())):
                if isinstance(listed, dict) and "retrieved" in listed:
                    listed["retrieved"] = listed["retrieved"][::-1]
        if isinstance(latency := fields.get("latency_ms"), dict) and self.latency_unit != "ms":
            factor = MILLISECONDS[self.latency_unit]
            fields["latency_ms"] = {
                stage: time * factor if type(time) in (int, float) else time
                for stage, time in latency.items()
            }
        if "cost_usd" not in fields and (cost := self._cost(fields.get("usage"))) is not None:
            fields["cost_usd"] = cost
        return fields

    def _cost(self, usage: Any) -> float | None:
        """The price of the tokens; None when the bot counts none of those that have a price."""
        counts = usage if isinstance(usage, dict) else {}
        priced = [name for name in self.prices if type(counts.get(name)) in (int, float)]
        return sum(counts[name] * self.prices[name] for name in priced) / 1e6 if priced else None

    def _require(self, fields: Mapping[str, Any], retrieval_only: bool) -> None:
        """Missing is not empty: no list of passages at all must not become a recall of 0."""
        if fields.get("abstained") is True:
            return
        for name in sorted(self.required - fields.keys()):
            if not retrieval_only or name in RETRIEVAL_FIELDS:
                raise CallError(
                    "mapping", f"{name}: the answer has no such field (see the profile's response)"
                )

    def _check_answer(self, fields: Mapping[str, Any], payload: Any, retrieval_only: bool) -> None:
        """An answer without a text is no answer, unless the bot abstains or is blocked."""
        if retrieval_only or not self.answers or fields.get("abstained") is True:
            return
        text = fields.get("answer")
        if not (text is None or (isinstance(text, str) and not text.strip())):
            return
        flags = fields.get("policy_flags")
        if isinstance(flags, list | str) and "guardrail_blocked" in flags:
            return
        for name in ("error", "detail", "message"):
            if isinstance(payload, dict) and (told := payload.get(name)):
                raise CallError("bot_error", message_of(told))
        raise CallError("no_answer", f"no text at {self.paths.get('answer', 'answer')}")

    def _without_list(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """What stands for passages that an answer should have and lacks."""
        text = fields.get("answer")
        abstains = fields.get("abstained") is True or (
            fields.get("abstained") is None and isinstance(text, str) and detect(text).abstained
        )
        if abstains or self.absent == "empty" or fields.get("searches"):
            return {} if fields.get("searches") else {"retrieved": []}
        return {"absent": {"retrieved": f"{NO_LIST}{self.paths.get('retrieved', 'retrieved')}"}}

    def _item(self, item: Any, getters: Mapping[str, Getter], reads_text: bool) -> Any:
        if type(item) is int or (isinstance(item, str) and not (getters and reads_text)):
            return {"chunk_id": item} if isinstance(item, str) else item
        if not getters:
            return self.places.applied(dict(item) if isinstance(item, dict) else item)
        if type(item) is dict and (names := self._names[getters is self.chunk]) is not None:
            read = item.get
            plain = {name: value for name, key in names if (value := read(key)) is not None}
            return self.places.applied(plain)
        mapped = {name: get(item) for name, get in getters.items()}
        if isinstance(item, str) and not any(mapped.values()):
            return {"chunk_id": item}
        return self.places.applied(
            {name: value for name, value in mapped.items() if value is not None}
        )

    @cached_property
    def _names(self) -> tuple[list[tuple[str, str]] | None, list[tuple[str, str]] | None]:
        """Fields and their names, of references and of chunks; None where a path is more."""
        reference, chunk = (
            [(field, get.name) for field, get in getters.items() if isinstance(get, PlainName)]
            for getters in (self.reference, self.chunk)
        )
        return (
            reference if len(reference) == len(self.reference) else None,
            chunk if len(chunk) == len(self.chunk) else None,
        )

    def _search(self, item: Any, number: int) -> Any:
        """One search by its paths; a bare text is its query."""
        if isinstance(item, str) and not (self.search and "search" in self.reads_text):
            return {"query": item}
        if self.search:
            mapped = {name: get(item) for name, get in self.search.items()}
        elif isinstance(item, dict):
            mapped = {name: item.get(name) for name in SEARCH_FIELDS}
        else:
            return item
        fields = {name: value for name, value in mapped.items() if value is not None}
        if "retrieved" in fields:
            if not isinstance(fields["retrieved"], list):
                kind = type(fields["retrieved"]).__name__
                text = f"searches[{number}].retrieved: is not a list but {kind}"
                raise CallError("mapping", text)
            fields["retrieved"] = [
                self._item(chunk, self.chunk, "chunk" in self.reads_text)
                for chunk in fields["retrieved"]
            ]
        factor = MILLISECONDS[self.latency_unit]
        return {
            name: value * factor if name in SEARCH_TIMES and type(value) in (int, float) else value
            for name, value in fields.items()
        }

    def _take_tools(self, fields: dict[str, Any]) -> None:
        """The calls of tools: handoffs apart, and as searches those whose tool has a form."""
        calls = [self._tool(item) for item in _list(fields, "tools")]
        agents = [_agent_of(call) for call in calls]
        if any(agents):
            fields["handoffs"] = [agent for agent in agents if agent]
        fields["tools"] = [c for c, agent in zip(calls, agents, strict=True) if not agent]
        searches = [
            {
                "tool": call["name"],
                "query": query_of(call.get("arguments")),
                "retrieved": [
                    self.places.applied(
                        {_OF_ROW.get(k, k): v for k, v in row.items() if k != "title"}
                    )
                    for row in passages_in(call.get("result"), form) or ()
                ],
            }
            for call in fields["tools"]
            if isinstance(call, dict) and (form := self.tool_forms.get(call.get("name", "")))
        ]
        if searches:
            fields["searches"] = [*fields.get("searches", ()), *searches]

    def _tool(self, item: Any) -> Any:
        """One call of a tool by its paths; a bare text is its name."""
        if not isinstance(item, dict):
            return item
        mapped = {name: get(item) for name, get in self.tool.items()} if self.tool else item
        call = {name: mapped[name] for name in TOOL_FIELDS if mapped.get(name) is not None}
        time = call.get("latency_ms")
        if isinstance(time, int | float) and not isinstance(time, bool):
            call["latency_ms"] = time * MILLISECONDS[self.latency_unit]
        return call

    def found_facts(self, payload: Any) -> dict[str, dict[str, Any]]:
        """The bot's report about its index, retriever and answerer; only objects count."""
        from jmespath.exceptions import JMESPathError

        facts: dict[str, dict[str, Any]] = {}
        for name, get in self.facts.items():
            with contextlib.suppress(JMESPathError):
                if isinstance(value := get(payload), dict):
                    facts[name] = value
        return facts


def _agent_of(call: Any) -> str | None:
    """The agent that a call hands over to; None for the call of a tool."""
    if not isinstance(call, dict) or not isinstance(name := call.get("name"), str):
        return None
    arguments = call.get("arguments")
    return agent_handed_to(ToolCall(name, arguments if isinstance(arguments, dict) else {}))


def build_result(
    fields: dict[str, Any], case_id: str, question: str, repeat: int = 0
) -> TestResult:
    """A checked TestResult. Raises CallError of kind ``mapping`` that names the field at fault."""
    try:
        return checked_result(fields, case_id, question, repeat)
    except ResultFault as fault:
        raise CallError("mapping", str(fault)) from None


def _list(fields: Mapping[str, Any], name: str) -> Iterable[Any]:
    value = fields[name]
    if not isinstance(value, list):
        raise CallError("mapping", f"{name}: is not a list but {type(value).__name__}")
    return value


def payload_fields(payload: Any, limit: int = 200) -> list[str]:
    """Names of the fields of an answer, three levels deep, ``[]`` for lists: no values."""
    names: set[str] = set()

    def walk(value: Any, prefix: str, depth: int) -> None:
        if isinstance(value, list) and value:
            walk(value[0], f"{prefix}[]", depth)
        elif isinstance(value, dict) and depth < 3:
            for key, item in value.items():
                name = f"{prefix}.{key}" if prefix else key
                names.add(name[:100])
                walk(item, name, depth + 1)

    walk(payload, "", 0)
    return sorted(names)[:limit]

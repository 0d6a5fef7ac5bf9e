"""A bot's JSON into the fields of a TestResult; what does not fit is an error, never a guess."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import msgspec

from clients.expressions import Getter, PlainName
from clients.http import CallError, message_of
from ragmetrics.abstention import detect
from ragmetrics.matching import SEPARATOR, heading_segments
from ragmetrics.paths import PathCut
from records.results import Reference, RetrievedChunk, Search, TestResult

RESULT_FIELDS = (
    "answer",
    "references",
    "retrieved",
    "folder_selection",
    "abstained",
    "abstain_reason",
    "confidence",
    "policy_flags",
    "guardrail",
    "latency_ms",
    "usage",
    "cost_usd",
    "session",
    "searches",
    "rewritten_query",
)
"""Fields of a result that a bot can fill; the others are known to the client."""

CHUNK_FIELDS = RetrievedChunk.__struct_fields__

REFERENCE_FIELDS = Reference.__struct_fields__

SEARCH_FIELDS = Search.__struct_fields__

FACT_FIELDS = ("index", "retriever", "answerer")

_SEARCHED = ("searches", "rewritten_query")

RETRIEVAL_FIELDS = {"retrieved", "folder_selection", "latency_ms", "usage", "cost_usd", *_SEARCHED}
"""What a retrieval-only run keeps of an answer."""


_OBJECTS = ("folder_selection", "guardrail", "latency_ms", "usage")

MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1000.0}
"""The units of a profile's times, in milliseconds."""

_TIMES = ("start_ms", "latency_ms")
"""Times of a search."""

MOST = 10**12
"""No answer has more tokens or costs more: sums over a run fit into every number format."""


Absent = Literal["error", "empty"]

ANY_TITLE = "*"
"""The heading_root that drops the first heading, whatever it is."""


@dataclass(frozen=True)
class PlaceForm:
    """How a bot writes where a passage stands, if not as the labels do (``a.md``, ``A > B``).

    ``separator``: what parts its headings. ``heading_root``: a title that all of its headings begin
    with and the labels lack; ``path_root``: a folder likewise. Each is dropped where it is there.
    ``path_cut``: steps of ``ragmetrics.paths``, done before; ``path_files``: files of the labels,
    which a path becomes that is one of them under steps that lose a part of it.
    """

    separator: str = ""
    heading_root: str = ""
    path_root: str = ""
    path_cut: str = ""
    path_files: tuple[str, ...] = ()

    def applied(self, item: Any) -> Any:
        """A mapped passage or source with its place as the labels write it."""
        if isinstance(item, dict) and self._changes:
            for name, read in (("heading_path", self._heading), ("rel_path", self._path)):
                if isinstance(text := item.get(name), str) and (own := read(text)) != text:
                    item = item | {name: own}
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
    facts: Mapping[str, Getter] = field(default_factory=dict)
    constant: Mapping[str, Any] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    latency_unit: str = "ms"
    prices: Mapping[str, float] = field(default_factory=dict)
    """US dollars for a million of each field of ``usage``."""
    error: Getter | None = None
    places: PlaceForm = PlaceForm()
    absent: Absent = "error"
    """What an answer without its list of passages means: a field that failed, or an empty list."""
    answers: bool = True
    """Whether an answer must have a text; False for a bot that only retrieves."""
    paths: Mapping[str, str] = field(default_factory=dict)
    """The fields of ``response`` as the profile writes them."""
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
        return {"absent": {"retrieved": f"no list at {self.paths.get('retrieved', 'retrieved')}"}}

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
                text = f"searches[{number}].retrieved: is no list but {kind}"
                raise CallError("mapping", text)
            fields["retrieved"] = [
                self._item(chunk, self.chunk, "chunk" in self.reads_text)
                for chunk in fields["retrieved"]
            ]
        factor = MILLISECONDS[self.latency_unit]
        return {
            name: value * factor if name in _TIMES and type(value) in (int, float) else value
            for name, value in fields.items()
        }

    def found_facts(self, payload: Any) -> dict[str, dict[str, Any]]:
        """What the bot tells of its index, retriever and answerer; only objects count."""
        from jmespath.exceptions import JMESPathError

        facts: dict[str, dict[str, Any]] = {}
        for name, get in self.facts.items():
            with contextlib.suppress(JMESPathError):
                if isinstance(value := get(payload), dict):
                    facts[name] = value
        return facts


def build_result(
    fields: dict[str, Any], case_id: str, question: str, repeat: int = 0
) -> TestResult:
    """A checked TestResult. Raises CallError of kind ``mapping`` that names the field at fault.

    Chunks without an id get one made of place and text; without ranks, their place in the list.
    References without an index are numbered by their place, as ``[n]`` marks are. A bot that tells
    its searches and not what the answer saw has the passages of the last search that brought some.
    """
    for name in _OBJECTS:
        if isinstance(value := fields.get(name), dict):
            # a bot that has no value for a stage or a reason says null
            fields[name] = {key: item for key, item in value.items() if item is not None}
    if not fields.get("folder_selection", True):
        del fields["folder_selection"]
    if fields.get("searches"):
        _complete_searches(fields)
    else:
        fields.pop("searches", None)
    if not fields.get("rewritten_query", True):
        del fields["rewritten_query"]
    if "retrieved" in fields:
        fields["retrieved"] = _complete_chunks(fields["retrieved"], "retrieved")
    references = fields.get("references", [])
    for place, item in enumerate(references):
        if type(item) is int:
            references[place] = _numbered(item, fields.get("retrieved", ()))
    if not any(isinstance(item, dict) and "index" in item for item in references):
        for number, item in enumerate(references, start=1):
            if isinstance(item, dict):
                item["index"] = number
    fields |= {"test_case_id": case_id, "question": question, "repeat": repeat}
    try:
        result = msgspec.convert(fields, TestResult)
    except msgspec.ValidationError as error:
        fault, _, where = str(error).partition(" - at `$.")
        where = where.rstrip("`") or "answer"
        if where.endswith("_id") and "got `int`" in fault:
            fault += "; ids are texts: to_string(…) in the profile makes one of a number"
        raise CallError("mapping", f"{where}: {fault}") from None
    _check(result)
    return result


def _numbered(number: int, chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A reference that is a bare number n: the n-th passage, as an [n] mark means it."""
    cited = chunks[number - 1]["chunk_id"] if 0 < number <= len(chunks) else None
    return {"index": number} | ({"chunk_id": cited} if cited else {})


def _complete_searches(fields: dict[str, Any]) -> None:
    """The searches with whole chunks, in the order in which they began; ``retrieved`` from the last
    one that brought passages when the bot tells nothing else."""
    for number, search in enumerate(fields["searches"]):
        where = f"searches[{number}]"
        if not isinstance(search, dict):
            raise CallError("mapping", f"{where}: is neither an object nor a query")
        chunks = search.get("retrieved", [])
        search["retrieved"] = _complete_chunks(chunks, f"{where}.retrieved")
    starts = [search.get("start_ms") for search in fields["searches"]]
    if all(type(start) in (int, float) for start in starts):
        fields["searches"].sort(key=lambda search: search["start_ms"])
    if "retrieved" in fields:
        return
    for number, search in reversed([*enumerate(fields["searches"], 1)]):
        if search["retrieved"] and not search.get("error"):
            fields["retrieved"] = [dict(chunk) for chunk in search["retrieved"]]
            fields["retrieved_from_search"] = number
            return
    fields["retrieved"] = []


def _complete_chunks(chunks: Any, where: str) -> list[Any]:
    """Passages with their ids, ranks and lengths."""
    if not isinstance(chunks, list):
        raise CallError("mapping", f"{where}: is no list but {type(chunks).__name__}")
    return [
        _complete_chunk(chunk, f"{where}[{index}]", index) for index, chunk in enumerate(chunks)
    ]


def _complete_chunk(chunk: Any, where: str, index: int) -> Any:
    if isinstance(chunk, str):
        chunk = {"chunk_id": chunk}
    if not isinstance(chunk, dict):
        raise CallError("mapping", f"{where}: is neither an object nor an id")
    chunk.setdefault("rank", index + 1)
    text = chunk.get("text")
    if isinstance(text, str):
        chunk.setdefault("text_length", len(text))
    if chunk.get("chunk_id") in (None, ""):
        identity = [chunk.get(name) for name in ("doc_id", "rel_path", "heading_path", "text")]
        if not any(identity):
            raise CallError(
                "mapping", f"{where}: has no id, path or text (see the profile's chunk)"
            )
        chunk["chunk_id"] = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
    return chunk


def _check(result: TestResult) -> None:
    """What no type can say."""
    _check_chunks(result.retrieved or (), "retrieved")
    for number, search in enumerate(result.searches or ()):
        where = f"searches[{number}]"
        _check_chunks(search.retrieved, f"{where}.retrieved")
        for name in _TIMES:
            duration = getattr(search, name)
            if duration is not None and not 0 <= duration < math.inf:
                raise CallError("mapping", f"{where}.{name}: {duration:g} is no time")
    for stage, time in result.latency_ms.items():
        if not 0 <= time < math.inf:
            raise CallError("mapping", f"latency_ms.{stage}: {time:g} is no time")
    for name, count in result.usage.items():
        if type(count) in (int, float) and not 0 <= count <= MOST:
            raise CallError("mapping", f"usage.{name}: {count:g} is no count")
    cost = result.cost_usd
    if cost is not None and not 0 <= cost <= MOST:
        raise CallError("mapping", f"cost_usd: {cost:g} is no cost")
    sure = result.confidence
    if sure is not None and not 0 <= sure <= 1:
        raise CallError(
            "mapping",
            f"confidence: {sure:g}; it must be from 0 to 1 (another scale: leave it out of the "
            "profile's response)",
        )


def _check_chunks(chunks: Sequence[RetrievedChunk | str], where: str) -> None:
    for index, chunk in enumerate(chunks):
        if not isinstance(chunk, RetrievedChunk):
            continue
        if chunk.rank is not None and chunk.rank < 1:
            raise CallError("mapping", f"{where}[{index}].rank: {chunk.rank}; ranks begin at 1")
        if chunk.text_length is not None and chunk.text_length < 0:
            length = f"{where}[{index}].text_length: {chunk.text_length}"
            raise CallError("mapping", f"{length}; it counts the characters of the whole text")


def _list(fields: Mapping[str, Any], name: str) -> Iterable[Any]:
    value = fields[name]
    if not isinstance(value, list):
        raise CallError("mapping", f"{name}: is no list but {type(value).__name__}")
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

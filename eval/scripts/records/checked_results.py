"""Fields that came from elsewhere as a result: completed, and refused where they cannot be true."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import orjson

from records.lines import nests_deeper
from records.results import RetrievedChunk, TestResult
from records.tool_calls import MOST_ARGUMENTS, MOST_CALLS, MOST_NAME, MOST_TOOL_TEXT, ToolCall

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
    "tools",
    "handoffs",
)
"""Fields of a result that come from outside; the asking script knows the others."""

_OBJECTS = ("folder_selection", "guardrail", "latency_ms", "usage")

SEARCH_TIMES = ("start_ms", "latency_ms")
"""Times of a search."""

MOST = 10**12
"""No answer has more tokens or costs more: sums over a run fit into every number format."""


class ResultFault(ValueError):
    """A field that no result can have; the message begins with its place and a colon."""


def checked_result(
    fields: dict[str, Any], case_id: str, question: str, repeat: int = 0
) -> TestResult:
    """The result that has these fields, completed. Raises ResultFault naming the field at fault.

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
    if "tools" in fields:
        fields["tools"] = _complete_tools(fields["tools"])
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
        raise ResultFault(f"{where}: {fault}") from None
    _check(result)
    return result


def _numbered(number: int, chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A reference that is a bare number n: the n-th passage, as an [n] mark means it."""
    cited = chunks[number - 1]["chunk_id"] if 0 < number <= len(chunks) else None
    return {"index": number} | ({"chunk_id": cited} if cited else {})


def _complete_searches(fields: dict[str, Any]) -> None:
    """The searches with whole chunks, in the order in which they began; ``retrieved`` from what
    they brought, each passage once, when the bot tells nothing else."""
    for number, search in enumerate(fields["searches"]):
        where = f"searches[{number}]"
        if not isinstance(search, dict):
            raise ResultFault(f"{where}: is neither an object nor a query")
        chunks = search.get("retrieved", [])
        search["retrieved"] = _complete_chunks(chunks, f"{where}.retrieved")
    starts = [search.get("start_ms") for search in fields["searches"]]
    if all(type(start) in (int, float) for start in starts):
        fields["searches"].sort(key=lambda search: search["start_ms"])
    if "retrieved" in fields:
        return
    searches = fields["searches"]
    brought = [n for n, s in enumerate(searches) if s["retrieved"] and not s.get("error")]
    chunks = [[dict(chunk) for chunk in searches[n]["retrieved"]] for n in brought]
    fields["retrieved"] = chunks[0] if len(chunks) == 1 else _each_once(chunks)
    if len(brought) == 1:
        fields["retrieved_from_search"] = brought[0] + 1
    elif brought:
        fields["seen"] = "union"


def _each_once(lists: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The passages of several searches, each once by its place and text, ranked in that order."""
    once: dict[Any, dict[str, Any]] = {}
    for chunk in (chunk for chunks in lists for chunk in chunks):
        place = tuple(chunk.get(name) for name in ("rel_path", "heading_path", "text"))
        once.setdefault(place if chunk.get("text") else chunk.get("chunk_id"), chunk)
    return [chunk | {"rank": rank} for rank, chunk in enumerate(once.values(), 1)]


def _complete_tools(calls: Any) -> list[dict[str, Any]]:
    """The calls of tools with arguments by name and texts of a bounded length."""
    if not isinstance(calls, list):
        raise ResultFault(f"tools: is not a list but {type(calls).__name__}")
    if len(calls) > MOST_CALLS:
        raise ResultFault(f"tools: {len(calls):,} calls; an answer may have {MOST_CALLS:,}")
    return [_complete_call(call, f"tools[{number}]") for number, call in enumerate(calls)]


def _complete_call(raw: Any, where: str) -> dict[str, Any]:
    if isinstance(raw, str):
        raw = {"name": raw}
    if not isinstance(raw, dict):
        raise ResultFault(f"{where}: is neither an object nor a name")
    call = {name: raw[name] for name in ToolCall.__struct_fields__ if raw.get(name) is not None}
    name = call.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ResultFault(f"{where}.name: a tool call needs a name (see the profile's tool)")
    call["name"] = name[:MOST_NAME]
    if call.get("error") in (False, ""):
        del call["error"]
    elif call.get("error") is True:
        call["error"] = "failed"
    for field in ("result", "error"):
        if field in call:
            text = _plain_text(call[field])
            if field == "result" and len(text) > MOST_TOOL_TEXT:
                call["result_length"] = len(text)
            call[field] = text[:MOST_TOOL_TEXT]
    return call | _complete_arguments(call.pop("arguments", None))


def _complete_arguments(value: Any) -> dict[str, Any]:
    """Arguments as an object, parsed where they are JSON in a text; only the length of too long
    ones."""
    if isinstance(value, str):
        try:
            parsed = orjson.loads(value) if value.strip() else {}
        except orjson.JSONDecodeError:
            parsed = value
        value = value if nests_deeper(parsed) else parsed
    if value is None:
        return {}
    if not isinstance(value, dict):
        value = {"input": value}
    length = len(_plain_text(value))
    return {"arguments_length": length} if length > MOST_ARGUMENTS else {"arguments": value}


def _plain_text(value: Any) -> str:
    """A text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _complete_chunks(chunks: Any, where: str) -> list[Any]:
    """Passages with their ids, ranks and lengths."""
    if not isinstance(chunks, list):
        raise ResultFault(f"{where}: is not a list but {type(chunks).__name__}")
    return [
        _complete_chunk(chunk, f"{where}[{index}]", index) for index, chunk in enumerate(chunks)
    ]


def _complete_chunk(chunk: Any, where: str, index: int) -> Any:
    if isinstance(chunk, str):
        chunk = {"chunk_id": chunk}
    if not isinstance(chunk, dict):
        raise ResultFault(f"{where}: is neither an object nor an id")
    chunk.setdefault("rank", index + 1)
    text = chunk.get("text")
    if isinstance(text, str):
        chunk.setdefault("text_length", len(text))
    if chunk.get("chunk_id") in (None, ""):
        identity = [chunk.get(name) for name in ("doc_id", "rel_path", "heading_path", "text")]
        if not any(identity):
            raise ResultFault(f"{where}: has no id, path or text (see the profile's chunk)")
        chunk["chunk_id"] = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
    return chunk


def _check(result: TestResult) -> None:
    """What no type can say."""
    _check_chunks(result.retrieved or (), "retrieved")
    for number, search in enumerate(result.searches or ()):
        where = f"searches[{number}]"
        _check_chunks(search.retrieved, f"{where}.retrieved")
        for name in SEARCH_TIMES:
            duration = getattr(search, name)
            if duration is not None and not 0 <= duration < math.inf:
                raise ResultFault(f"{where}.{name}: {duration:g} is not a time")
    for number, call in enumerate(result.tools or ()):
        if call.latency_ms is not None and not 0 <= call.latency_ms < math.inf:
            raise ResultFault(f"tools[{number}].latency_ms: {call.latency_ms:g} is not a time")
    for stage, time in result.latency_ms.items():
        if not 0 <= time < math.inf:
            raise ResultFault(f"latency_ms.{stage}: {time:g} is not a time")
    for name, count in result.usage.items():
        if type(count) in (int, float) and not 0 <= count <= MOST:
            raise ResultFault(f"usage.{name}: {count:g} is not a count")
    cost = result.cost_usd
    if cost is not None and not 0 <= cost <= MOST:
        raise ResultFault(f"cost_usd: {cost:g} is not a cost")
    sure = result.confidence
    if sure is not None and not 0 <= sure <= 1:
        raise ResultFault(
            f"confidence: {sure:g}; it must be from 0 to 1 (another scale: leave it out of the "
            "profile's response)",
        )


def _check_chunks(chunks: Sequence[RetrievedChunk | str], where: str) -> None:
    for index, chunk in enumerate(chunks):
        if not isinstance(chunk, RetrievedChunk):
            continue
        if chunk.rank is not None and chunk.rank < 1:
            raise ResultFault(f"{where}[{index}].rank: {chunk.rank}; ranks begin at 1")
        if chunk.text_length is not None and chunk.text_length < 0:
            length = f"{where}[{index}].text_length: {chunk.text_length}"
            raise ResultFault(f"{length}; it counts the characters of the whole text")

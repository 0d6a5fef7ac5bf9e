"""The tool calls of an answer, read out of its messages or the events of its stream; pure.

    tool_calls(payload["messages"])     # [{"name": "search", "arguments": …, "result": …}]

Read are, each by the names that its documentation gives: messages of OpenAI's chat completions,
LangChain and Anthropic; the items of OpenAI's responses; the pieces of OpenAI's chat completion
streams; the events of AG-UI; the events of the Vercel AI SDK, and its coded lines of version 4. A
result is joined to its call by the call's id. Of messages only those behind the last question
count: the calls before it belong to earlier turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from records.tool_passages import Row, items_in, passages_in, query_of

Raw = Mapping[str, Any]

_CALLS = re.compile(
    "function_call|mcp_call|tool_use|TOOL_CALL_(START|ARGS|CHUNK)"
    "|tool-input-(start|delta|available|error)|[9bc]"
)
_RESULTS = re.compile(
    "function_call_output|mcp_call|tool_result|tool|TOOL_CALL_RESULT"
    "|tool-input-error|tool-output-(available|error|denied)|a"
)
"""The types (of messages the roles, of coded lines the codes) that tell of a call, of a result."""

_IDS = ("toolCallId", "tool_call_id", "call_id", "tool_use_id", "id")
_NAMES = ("toolName", "toolCallName", "name")
_ARGUMENTS = ("arguments", "args", "input")
_PIECES = ("delta", "inputTextDelta", "argsTextDelta")
_OUTPUTS = ("output", "result", "content")
_ERRORS = ("errorText", "error")


def tool_calls(items: Sequence[Any] | None) -> list[dict[str, Any]] | None:
    """Each call with its result, in order; [] without any, None for null."""
    if items is None:
        return None
    return [{k: v for k, v in call.items() if k != "artifact"} for call in read_calls(items)]


def search_calls(items: Sequence[Any] | None, *tools: str) -> list[dict[str, Any]] | None:
    """The calls of these tools as searches: tool, query, and the passages, as the bot has them.

    LangChain's message has passages as its ``artifact``, too. Those of several tools have text,
    rel_path and heading_path by these names besides, for each tool may have its own. None for null.
    """
    if items is None:
        return None
    return [
        {
            "tool": call["name"],
            "query": query_of(call.get("arguments")),
            "retrieved": _passages(returned(call), is_one_of=len(tools)),
        }
        | ({"error": call["error"]} if call.get("error") else {})
        for call in read_calls(items)
        if call["name"] in tools
    ]


def _passages(result: Any, *, is_one_of: int) -> list[Row]:
    items = items_in(result) or []
    if is_one_of < 2:
        return items
    return [{**item, **row} for item, row in zip(items, passages_in(result) or (), strict=True)]


def returned(call: Raw) -> Any:
    """The result of a call; of its two forms the one with passages."""
    return call["artifact"] if items_in(call.get("artifact")) else call.get("result")


def read_calls(items: Sequence[Any]) -> list[dict[str, Any]]:
    """Each call of a tool with its result, also LangChain's ``artifact``."""
    reader = _CallReader()
    entries = [item for item in items if isinstance(item, Mapping)]
    for entry in entries[_behind_last_question(entries) :]:
        reader.read(entry)
    return [reader.finished(call) for call in reader.calls]


def _behind_last_question(entries: Sequence[Raw]) -> int:
    """The place behind the last message of the user; results of tools may be sent as the user."""
    for place in reversed(range(len(entries))):
        entry = entries[place]
        results = any(part.get("type") == "tool_result" for part in _objects(entry, "content"))
        if entry.get("role", entry.get("type")) in ("user", "human") and not results:
            return place + 1
    return 0


def _objects(entry: Raw, name: str) -> list[Raw]:
    value = entry.get(name)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _first(entry: Raw, names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


class _CallReader:
    """Gathers calls by their ids, with the pieces of their arguments."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self._by_id: dict[Any, dict[str, Any]] = {}
        self._last: Any = None

    def read(self, entry: Raw) -> None:
        """One message, item, part or event."""
        kind = entry.get("type") or entry.get("role") or entry.get("event")
        if kind == "response.output_item.done" and isinstance(entry.get("item"), Mapping):
            self.read(entry["item"])
        if isinstance(kind, str):
            coded = len(kind) == 1 and isinstance(entry.get("data"), Mapping)
            fields = entry["data"] if coded else entry
            if _CALLS.fullmatch(kind):
                key = _first(fields, _IDS)
                if kind == "TOOL_CALL_CHUNK":  # only the first one of a call has an id
                    key = self._last = key or self._last
                self._add(key, fields)
            if _RESULTS.fullmatch(kind) and not entry.get("preliminary"):
                self._end(kind, fields)
        for call in _objects(entry, "tool_calls"):
            self._add(call.get("id"), call)
        for part in _objects(entry, "content"):
            self.read(part)
        for choice in _objects(entry, "choices")[:1]:
            if isinstance(message := choice.get("message"), Mapping):
                self.read(message)
            if isinstance(delta := choice.get("delta"), Mapping):
                for place, call in enumerate(_objects(delta, "tool_calls")):
                    self._add_piece(("index", call.get("index", place)), call)

    def finished(self, call: dict[str, Any]) -> dict[str, Any]:
        """A call with its arguments put together."""
        pieces, _ = call.pop("pieces"), call.pop("id")
        return call if "arguments" in call or not pieces else call | {"arguments": "".join(pieces)}

    def _add_piece(self, key: Any, call: Raw) -> None:
        """A piece of a chat completion: its ``index`` counts from 0 again in each step."""
        begun = self._by_id.get(key)
        if begun and call.get("id") and begun["id"] not in (None, call["id"]):
            del self._by_id[key]
        function = call.get("function")
        function = function if isinstance(function, Mapping) else {}
        piece = {"name": function.get("name"), "delta": function.get("arguments")}
        target = self._add(key, piece)
        target["id"] = call.get("id") or target["id"]

    def _add(self, key: Any, entry: Raw) -> dict[str, Any]:
        """The call of this id, begun by its first mention; later ones may bring its arguments."""
        function = entry.get("function")  # as OpenAI's messages have it
        fields = function if isinstance(function, Mapping) else entry
        call = self._by_id.get(key) if isinstance(key, str | tuple) else None
        if call is None:
            call = {"name": _first(fields, _NAMES), "pieces": [], "id": None}
            self.calls.append(call)
            if isinstance(key, str | tuple):
                self._by_id[key] = call
        if (arguments := _first(fields, _ARGUMENTS)) is not None:
            call["arguments"] = arguments
        if isinstance(piece := _first(fields, _PIECES), str):
            call["pieces"].append(piece)
        return call

    def _end(self, kind: str, fields: Raw) -> None:
        """What a call gave back, or why it failed."""
        key = _first(fields, _IDS)
        call = self._by_id.get(key) if isinstance(key, str) else None
        if call is None:
            return
        result, error = _text(_first(fields, _OUTPUTS)), _text(_first(fields, _ERRORS))
        if fields.get("status") == "error" or fields.get("is_error") is True:
            result, error = None, result or "failed"
        if kind == "tool-output-denied":
            error = "denied"
        if isinstance(fields.get("artifact"), list):
            call["artifact"] = fields["artifact"]
        call |= {name: text for name, text in (("result", result), ("error", error)) if text}


def _text(value: Any) -> str | None:
    """A result as text: of a message's parts their texts, of anything else JSON, such as of
    passages, which have a text, too."""
    if value is None or isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else ()
    texts: list[Any] = [
        part["text"] if "text" in str(part.get("type", "")) or len(part) == 1 else None
        for part in parts
        if isinstance(part, Mapping) and "text" in part
    ]
    if texts and all(isinstance(text, str) for text in texts):
        return "\n".join(texts)
    return json.dumps(value, ensure_ascii=False, default=str)

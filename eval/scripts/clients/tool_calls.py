"""The tool calls of an answer, read out of its messages or the events of its stream; pure.

    tool_calls(payload["messages"])     # [{"name": "search", "arguments": …, "result": …}]

Read are, each by the names that its documentation gives: messages of OpenAI's chat completions,
LangChain and Anthropic; the items of OpenAI's responses; the pieces of OpenAI's chat completion
streams; the events of AG-UI; the parts and events of the Vercel AI SDK, and its coded lines of
version 4. A result is joined to its call by the call's id. Of messages only those behind the last
question count: the calls before it belong to earlier turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Raw = Mapping[str, Any]


def tool_calls(items: Sequence[Any] | None) -> list[dict[str, Any]] | None:
    """Each call with what it gave back, in order; [] where there is none, None for null."""
    if items is None:
        return None
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


class _CallReader:
    """Gathers calls by their ids; ``pieces`` are those of their arguments."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self._by_id: dict[Any, dict[str, Any]] = {}
        self._last: Any = None

    def read(self, entry: Raw) -> None:
        """One message, item, part or event."""
        kind = entry.get("type") or entry.get("event") or ""
        if isinstance(kind, str):
            self._read_kind(kind, entry)
        for call in _objects(entry, "tool_calls"):
            self._add_whole(call)
        if entry.get("role", kind) == "tool" and "tool_call_id" in entry:
            failed = entry.get("status") == "error"
            self._end(entry["tool_call_id"], entry.get("content"), failed=failed)
        for part in (*_objects(entry, "parts"), *_objects(entry, "content")):
            self.read(part)
        for choice in _objects(entry, "choices")[:1]:
            for name in ("delta", "message"):
                if isinstance(message := choice.get(name), Mapping):
                    self._read_choice(message, whole=name == "message")

    def finished(self, call: dict[str, Any]) -> dict[str, Any]:
        """A call with its arguments put together."""
        pieces, _ = call.pop("pieces"), call.pop("id", None)
        return call if "arguments" in call or not pieces else call | {"arguments": "".join(pieces)}

    def _read_choice(self, message: Raw, *, whole: bool) -> None:
        """The calls of a chat completion, whole or by a piece each."""
        for place, call in enumerate(_objects(message, "tool_calls")):
            if whole:
                self._add_whole(call)
                continue
            function = call.get("function")
            function = function if isinstance(function, Mapping) else {}
            key = ("index", call.get("index", place))
            if call.get("id") and self._by_id.get(key, {}).get("id", call["id"]) != call["id"]:
                del self._by_id[key]  # a further step of the agent counts from 0 again
            target = self._add(key, function.get("name"))
            if call.get("id"):
                target["id"] = call["id"]
                self._by_id[call["id"]] = target
            self._piece(key, function.get("arguments"))

    def _add_whole(self, call: Raw) -> None:
        """OpenAI's ``function: {name, arguments}``, or LangChain's ``name`` and ``args``."""
        function = call.get("function")
        named = function if isinstance(function, Mapping) else call
        arguments = named.get("arguments", named.get("args"))
        self._add(call.get("id"), named.get("name"), arguments)

    def _read_kind(self, kind: str, entry: Raw) -> None:
        """What is told by its ``type`` (or, of coded lines, by its code)."""
        data = entry.get("data")
        code = data if len(kind) == 1 and isinstance(data, Mapping) else {}
        vercel = kind == "dynamic-tool" or (kind.startswith("tool-") and "state" in entry)
        if kind in ("function_call", "mcp_call"):
            key = entry.get("call_id") or entry.get("id")
            self._add(key, entry.get("name"), entry.get("arguments"))
            if kind == "mcp_call":
                self._end(key, entry.get("output"), entry.get("error"))
        elif kind == "function_call_output":
            self._end(entry.get("call_id"), entry.get("output"))
        elif kind == "response.output_item.done" and isinstance(entry.get("item"), Mapping):
            self.read(entry["item"])
        elif kind == "tool_use":
            self._add(entry.get("id"), entry.get("name"), entry.get("input"))
        elif kind == "tool_result":
            failed = entry.get("is_error") is True
            self._end(entry.get("tool_use_id"), entry.get("content"), failed=failed)
        elif kind in ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK"):
            key = self._last = entry.get("toolCallId") or self._last
            if entry.get("toolCallName"):
                self._add(key, entry["toolCallName"])
            self._piece(key, entry.get("delta"))
        elif kind == "TOOL_CALL_RESULT":
            self._end(entry.get("toolCallId"), entry.get("content"))
        elif vercel:
            key, name = entry.get("toolCallId"), entry.get("toolName") or kind.removeprefix("tool-")
            self._add(key, name, entry.get("input"))
            self._end(key, entry.get("output"), entry.get("errorText"))
        elif kind in _VERCEL_EVENTS and "toolCallId" in entry:
            self._read_vercel(entry["toolCallId"], entry, kind)
        elif kind in _VERCEL_CODES and "toolCallId" in code:
            self._read_vercel(code["toolCallId"], code)

    def _read_vercel(self, key: Any, entry: Raw, kind: str = "") -> None:
        if entry.get("toolName"):
            self._add(key, entry["toolName"], entry.get("input", entry.get("args")))
        self._piece(key, entry.get("inputTextDelta", entry.get("argsTextDelta")))
        error = "denied" if kind == "tool-output-denied" else entry.get("errorText")
        if not entry.get("preliminary"):
            self._end(key, entry.get("output", entry.get("result")), error)

    def _add(self, key: Any, name: Any, arguments: Any = None) -> dict[str, Any]:
        """The call of this id, begun by its first mention; a later one may bring the arguments."""
        call = self._by_id.get(key) if _is_key(key) else None
        if call is None:
            call = {"name": name, "pieces": []}
            self.calls.append(call)
            if _is_key(key):
                self._by_id[key] = call
        if arguments is not None:
            call["arguments"] = arguments
        return call

    def _piece(self, key: Any, piece: Any) -> None:
        if isinstance(piece, str) and _is_key(key) and key in self._by_id:
            self._by_id[key]["pieces"].append(piece)

    def _end(self, key: Any, result: Any, error: Any = None, *, failed: bool = False) -> None:
        """What a call gave back; of one that failed, why."""
        call = self._by_id.get(key) if _is_key(key) else None
        if call is None:
            return
        if failed:
            error, result = _text(result) or "failed", None
        for name, value in (("result", result), ("error", error)):
            if value is not None:
                call[name] = _text(value)


_VERCEL_EVENTS = (
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "tool-input-error",
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
)

_VERCEL_CODES = ("9", "a", "b", "c")


def _is_key(key: Any) -> bool:
    return isinstance(key, str | tuple) and bool(key)


def _text(value: Any) -> str:
    """A result as text: of a list of parts their texts, of anything else JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and (texts := list(_texts(value))):
        return "\n".join(texts)
    return json.dumps(value, ensure_ascii=False, default=str)


def _texts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]

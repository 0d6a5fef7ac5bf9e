"""Tool calls: what a bot called on its way to an answer, and what a case expects and forbids."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

ToolOrder = Literal["none", "partial", "strict"]

ArgumentMatch = Literal["subset", "exact"]

TOOL_FIELDS = ("name", "arguments", "result", "error", "latency_ms")

MOST_CALLS = 1000
"""Calls that one answer may have."""

MOST_NAME = 200
MOST_ARGUMENTS = 20_000
MOST_TOOL_TEXT = 100_000
"""Characters of a name, of arguments as JSON, of a result and of an error that are kept."""


class ToolCall(msgspec.Struct, omit_defaults=True):
    """One call of a tool, in the order in which the calls began.

    ``arguments`` by name; arguments that are no object stand under ``input``. ``arguments_length``:
    characters of arguments that were too long to keep, None where they are there. ``result`` is a
    text, ``result_length`` its characters before it was cut. ``error``: why the call failed, None
    when it did not.
    """

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    result: str | None = None
    error: str | None = None
    latency_ms: float | None = None
    arguments_length: int | None = None
    result_length: int | None = None

    def cut(self, limit: int) -> ToolCall:
        """A copy whose result has at most ``limit`` characters, its full length kept beside it."""
        if self.result is None or len(self.result) <= limit:
            return self
        length = self.result_length or len(self.result)
        return msgspec.structs.replace(self, result=self.result[:limit], result_length=length)


_HANDOFF = re.compile(
    r"handoff to (?P<agent>.+)|(?:transfer_(?:back_)?|handoff_)to_(?P<named>\w+)", re.IGNORECASE
)
_HANDOFF_ARGUMENTS = frozenset({"agent_name", "message", "input", "reason", "task", "query"})


def agent_handed_to(call: ToolCall) -> str | None:
    """The agent that a call hands the conversation to; None for the call of a tool.

    Frameworks make a handoff look like the call of a tool without arguments of its own.
    """
    match = _HANDOFF.fullmatch(call.name)
    if match is None or not call.arguments.keys() <= _HANDOFF_ARGUMENTS:
        return None
    agent = call.arguments.get("agent_name")
    return agent if isinstance(agent, str) and agent else match["agent"] or match["named"]


def is_of_passages(text: str, lists: Iterable[Sequence[str]]) -> bool:
    """Whether a result of a tool is the passages of one of the lists, as one text or as JSON."""
    return _is_one_of(text, _folded_lists(lists), cut=False)


def _folded_lists(lists: Iterable[Sequence[str]]) -> list[list[str]]:
    folded = ([_folded(passage) for passage in texts] for texts in lists)
    return [passages for texts in folded if (passages := [text for text in texts if text])]


def _is_one_of(text: str, lists: Sequence[Sequence[str]], *, cut: bool) -> bool:
    """Of a result that was cut, the beginning of one passage is enough."""
    if not lists:
        return False
    try:
        said = _folded("\n".join(_strings(json.loads(text))))
    except (ValueError, RecursionError):
        said = _folded(text)
    if cut and any(passage[:_BEGINNING] in said for passages in lists for passage in passages):
        return True
    return any(all(passage in said for passage in passages) for passages in lists)


_BEGINNING = 60


def _folded(text: str) -> str:
    return " ".join(text.split())


def _strings(value: Any) -> Iterator[str]:
    """All texts in a value of JSON, in order."""
    if isinstance(value, str):
        yield value
    inner = value.values() if isinstance(value, dict) else value
    for item in inner if isinstance(value, dict | list) else ():
        yield from _strings(item)


def calls_beside_passages(
    calls: Iterable[ToolCall],
    searching: Collection[str | None],
    lists: Sequence[Sequence[str]],
    answer: str | None,
) -> list[ToolCall]:
    """The calls whose results the answer may rest on and no list of passages contains.

    ``searching``: the tools that searched; what they found is in ``lists``, the texts of each list
    of passages. A call that hands over the answer and gives it back is no source.
    """
    answer = (answer or "").strip()
    passages = _folded_lists(lists)
    beside = []
    for call in calls:
        result = (call.result or "").strip()
        is_answer = result == answer and any(
            isinstance(value, str) and value.strip() == answer for value in call.arguments.values()
        )
        is_known = not result or is_answer or call.name in searching
        if not is_known and not _is_one_of(result, passages, cut=call.result_length is not None):
            beside.append(call)
    return beside


class ExpectedTool(msgspec.Struct, omit_defaults=True):
    """A call that a case expects or forbids, by its name and its stated arguments.

    A stated argument is a value, or ``{"regex": …}``, ``{"number": …, "tolerance": …}``, or
    ``{"equals": …}`` for a value that looks like one of these. ``match``: whether a call may have
    arguments besides (``subset``) or not (``exact``).
    """

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    match: ArgumentMatch = "subset"


AnyTool = ExpectedTool | str
"""A bare name means a call with any arguments."""


def call_words(name: str, arguments: Mapping[str, Any], most: int = 600) -> str:
    """A call written like code, its arguments cut where they are long."""
    pairs = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    text = ", ".join(pairs)
    return f"{name}({text[:most]}{' …' if len(text) > most else ''})"


def expected_tool(tool: AnyTool) -> ExpectedTool:
    """The same with its fields."""
    return ExpectedTool(tool) if isinstance(tool, str) else tool


def tool_problems(field: str, tools: list[AnyTool]) -> Iterator[tuple[str, str]]:
    """Faults of expected or forbidden calls that no type can express: each field and what is wrong
    with it."""
    for index, tool in enumerate(map(expected_tool, tools)):
        where = f"{field}[{index}]"
        if not tool.name.strip():
            yield f"{where}.name", "is empty; write the tool's name"
        for name, stated in tool.arguments.items():
            if isinstance(stated, Mapping) and (fault := _matcher_fault(stated)):
                yield f"{where}.arguments.{name}", fault


def _matcher_fault(stated: Mapping[str, Any]) -> str:
    """What is wrong with an argument that is stated by an expression or a number."""
    if stated.keys() == {"regex"}:
        pattern = stated["regex"]
        if not isinstance(pattern, str):
            return "regex is not a string; write a regular expression"
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            return f"regex is not a regular expression ({error}); correct it"
    if stated.keys() in ({"number"}, {"number", "tolerance"}):
        for name, value in stated.items():
            if type(value) not in (int, float) or not math.isfinite(value):
                return f"{name} is not a number; write one"
        if stated.get("tolerance", 0) < 0:
            return "tolerance is below 0; write 0 or more"
    return ""

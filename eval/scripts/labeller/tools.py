"""Labels of tool calls: which of those that a bot made are expected or forbidden. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from labeller.case_state import CaseState, EditResult, Record
from ragmetrics.tools import fits
from records.tool_calls import AnyTool, ExpectedTool, ToolCall, call_words, expected_tool

EXPECTED, FORBIDDEN = "expected_tools", "forbidden_tools"


@dataclass(frozen=True)
class ToolRow:
    """A call that the bot made, or that the case names and the bot did not make (``seen`` False).

    ``place``: in the list of the set that has it.
    """

    name: str
    arguments: dict[str, Any]
    label: str
    seen: bool = True
    place: int | None = None
    gave: str = ""

    def text(self) -> str:
        """The call written like code, and its result."""
        call = call_words(self.name, self.arguments)
        return f"{call}  {self.gave}" if self.seen else f"{call}  (not called)"


def tool_rows(case: Record, calls: Sequence[ToolCall]) -> list[ToolRow]:
    """The calls of the bot with their labels, then those that only the case names."""
    labelled = [
        (label, place, tool)
        for label, name in (("expected", EXPECTED), ("forbidden", FORBIDDEN))
        for place, tool in enumerate(_tools(case, name))
    ]
    rows, met = [], set()
    for call in calls:
        gave = f"failed: {call.error}" if call.error else f"gave {call.result}" * bool(call.result)
        row = ToolRow(call.name, call.arguments, "", gave=" ".join(gave.split())[:200])
        for label, place, tool in labelled:
            if fits(tool, call):
                met.add((label, place))
                if not row.label:
                    row = replace(row, label=label, place=place)
        rows.append(row)
    return rows + [
        ToolRow(tool.name, tool.arguments, label, seen=False, place=place)
        for label, place, tool in labelled
        if (label, place) not in met
    ]


def _tools(case: Record, name: str) -> list[ExpectedTool]:
    return [expected_tool(msgspec.convert(tool, AnyTool)) for tool in case.get(name) or ()]


def expect(state: CaseState, row: ToolRow) -> EditResult:
    """Expect a call with these arguments, or no longer."""
    stated: Record = {"name": row.name}
    if row.arguments:
        stated["arguments"] = row.arguments
    if row.label == "expected":
        return _changed(_without(state, EXPECTED, row), f"{row.name} is not expected")
    state = _without(state, FORBIDDEN, row) if row.label == "forbidden" else state
    after = _with(state, EXPECTED, stated)
    return _changed(after, f"{row.name} is expected with these arguments")


def forbid(state: CaseState, row: ToolRow) -> EditResult:
    """Forbid a tool, with any arguments, or no longer."""
    if row.label == "forbidden":
        return _changed(_without(state, FORBIDDEN, row), f"{row.name} is not forbidden")
    state = _without(state, EXPECTED, row) if row.label == "expected" else state
    return _changed(_with(state, FORBIDDEN, row.name), f"{row.name} is forbidden")


def expect_none(state: CaseState) -> EditResult:
    """Say that the question needs no tool, or take that back."""
    if state.case.get(EXPECTED) == []:
        after, words = _set(state.case, EXPECTED, None), "tools are not labelled"
    else:
        after, words = _set(state.case, EXPECTED, []), "no tool call is expected"
    return _changed(replace(state, case=after), words)


def _changed(after: CaseState, message: str) -> EditResult:
    return EditResult("label_tools", after, message)


def _with(state: CaseState, name: str, tool: Any) -> CaseState:
    return replace(state, case=_set(state.case, name, [*(state.case.get(name) or ()), tool]))


def _without(state: CaseState, name: str, row: ToolRow) -> CaseState:
    """Without the entry of a row; the last one takes the field with it, for an empty list says that
    no call is expected."""
    kept = [tool for place, tool in enumerate(state.case[name]) if place != row.place]
    return replace(state, case=_set(state.case, name, kept or None))


def _set(case: Record, name: str, value: list[Any] | None) -> Record:
    rest = {key: item for key, item in case.items() if key != name or value is not None}
    return rest if value is None else {**rest, name: value}

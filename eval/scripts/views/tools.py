"""The tools that an answer called, beside its case's expectations, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from records.cases import TestCase
from records.results import TestResult
from records.scores import ToolCallEvidence, ToolsEvidence
from records.tool_calls import AnyTool, ToolCall, call_words, expected_tool

SHOWN = 600
"""Characters of a result that are shown."""


@dataclass(frozen=True, slots=True)
class ToolStep:
    """One call. ``call``: its name and arguments; ``marks``: what the score says of it."""

    call: str
    result: str
    error: str
    latency_ms: float | None
    marks: tuple[str, ...]
    bad: bool

    def says(self) -> str:
        """Marks and time: ``expected, 120 ms``."""
        time = [] if self.latency_ms is None else [f"{self.latency_ms:,.0f} ms"]
        return ", ".join([*self.marks, *time])


def tool_steps(result: TestResult, evidence: ToolsEvidence) -> tuple[ToolStep, ...] | None:
    """The calls of a result; None where it reports none. ``evidence`` is that of its line in the
    section ``tools``, empty where that was not scored."""
    if not isinstance(result.tools, list):
        return None
    rows = evidence.calls
    if len(rows) != len(result.tools):
        rows = [ToolCallEvidence()] * len(result.tools)
    return tuple(map(_step, result.tools, rows))


def _step(call: ToolCall, row: ToolCallEvidence) -> ToolStep:
    marks = [name for name in ("forbidden", "redundant", "retry") if getattr(row, name)]
    if row.expected is not None:
        marks.insert(0, "expected")
    arguments = call_words(call.name, call.arguments)
    if call.arguments_length is not None:
        arguments = f"{call.name}(… {call.arguments_length:,} characters, not kept)"
    result = (call.result or "")[:SHOWN]
    if (length := call.result_length or len(call.result or "")) > len(result):
        result += f" … ({length:,} characters)"
    return ToolStep(
        arguments,
        result,
        (call.error or "")[:SHOWN],
        call.latency_ms,
        tuple(marks),
        row.forbidden or call.error is not None,
    )


def missing_calls(asked: TestCase | None, evidence: ToolsEvidence) -> tuple[str, ...]:
    """The expected calls that were not made."""
    expected = (asked.expected_tools if asked else None) or []
    return tuple(stated_words(expected[at]) for at in evidence.missing if at < len(expected))


def tool_labels(asked: TestCase) -> list[tuple[str, str]]:
    """A case's expectations on tools, as labels with their texts."""
    labels = [("expected call", stated_words(tool)) for tool in asked.expected_tools or ()]
    if asked.expected_tools == []:
        labels.append(("expected call", "none"))
    labels += [("forbidden call", stated_words(tool)) for tool in asked.forbidden_tools]
    if asked.max_tool_calls is not None:
        labels.append(("most tool calls", str(asked.max_tool_calls)))
    if asked.tool_order is not None:
        labels.append(("order of calls", asked.tool_order))
    return labels


def stated_words(tool: AnyTool) -> str:
    """An expected or forbidden call: ``search(query="hats")``."""
    stated = expected_tool(tool)
    exact = " exactly" if stated.match == "exact" else ""
    return call_words(stated.name, stated.arguments) + exact


def tools_note(steps: Sequence[ToolStep], missing: Sequence[str]) -> str:
    """How many calls there were, and how many expected ones were not made."""
    from terminal.tables import counted

    note = counted(len(steps), "call") if steps else "no tool was called"
    return f"{note}, {counted(len(missing), 'expected call')} not made" if missing else note

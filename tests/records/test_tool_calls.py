"""What a case may say of tools, and what it is told when it says it wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.rows import each_row

from records.profiles import digest_without_turns
from records.tool_calls import ExpectedTool, ToolCall, expected_tool
from storage import StorageError, read_cases

GOOD = {"id": "a", "question": "Why?"}


def problems(folder: Path, **fields: Any) -> list[tuple[int | None, str, str]]:
    path = folder / "set.jsonl"
    path.write_text(json.dumps(GOOD | fields) + "\n", encoding="utf-8")
    try:
        read_cases(path)
    except StorageError as error:
        return [(problem.line, problem.field, problem.message) for problem in error.problems]
    return []


def test_a_case_expects_forbids_and_limits_calls(tmp_path: Path) -> None:
    stated: dict[str, Any] = {"q": {"regex": "hats?"}, "n": {"number": 3, "tolerance": 0.5}}
    stated |= {"o": {"regex": 1, "b": 2}}
    fields = {
        "expected_tools": ["search", {"name": "price", "arguments": stated, "match": "exact"}],
        "forbidden_tools": ["delete", {"name": "pay", "arguments": {"to": "x"}}],
        "max_tool_calls": 2,
        "tool_order": "strict",
    }
    assert problems(tmp_path, **fields) == []
    (case,) = read_cases(tmp_path / "set.jsonl")
    first, second = map(expected_tool, case.expected_tools or ())
    assert first == ExpectedTool("search")
    assert (second.match, second.arguments) == ("exact", stated)
    assert problems(tmp_path, expected_tools=[], tool_order="partial") == []
    assert read_cases(tmp_path / "set.jsonl")[0].expected_tools == []
    assert problems(tmp_path, expected_tools=None, max_tool_calls=0) == []
    assert read_cases(tmp_path / "set.jsonl")[0].expected_tools is None


def tool(**arguments: Any) -> list[Any]:
    return [{"name": "f", "arguments": arguments}]


FIRST = "expected_tools[0]"
BAD_MATCH = "invalid enum value 'some'; correct the value"
NO_STRING, NO_NUMBER = "regex is not a string", "number is not a number; write one"
NO_ORDER = "'any' is unknown; use one of: none, partial, strict"
NEGATIVE = {"number": 3, "tolerance": -1}
TWO_OF_ONE = {"max_tool_calls": 1, "expected_tools": ["f", "g"]}


@each_row(
    ("fields", "field", "message"),
    [
        ({"expected_tools": "search"}, "expected_tools", "is a string; write"),
        ({"expected_tools": [7]}, FIRST, "is a whole number; write"),
        ({"expected_tools": [{"arguments": {}}]}, FIRST, "lacks 'name'; add it"),
        ({"expected_tools": [" "]}, f"{FIRST}.name", "is empty; write the tool's name"),
        ({"expected_tools": [{"name": "f", "match": "some"}]}, f"{FIRST}.match", BAD_MATCH),
        ({"expected_tools": tool(q={"regex": "("})}, f"{FIRST}.arguments.q", "regex is not a reg"),
        ({"forbidden_tools": tool(q={"regex": 1})}, "forbidden_tools[0].arguments.q", NO_STRING),
        ({"expected_tools": tool(n={"number": "3"})}, f"{FIRST}.arguments.n", NO_NUMBER),
        ({"expected_tools": tool(n=NEGATIVE)}, f"{FIRST}.arguments.n", "tolerance is below 0; wri"),
        ({"max_tool_calls": -1}, "max_tool_calls", "is -1; write 0 or more"),
        (TWO_OF_ONE, "max_tool_calls", "is 1; write at least 2, as many as expected_tools"),
        ({"expected_tools": ["f"], "forbidden_tools": ["f"]}, FIRST, "'f' is forbidden too; keep"),
        ({"tool_order": "strict"}, "tool_order", "needs expected_tools; name the calls"),
        ({"tool_order": "any", "expected_tools": []}, "tool_order", NO_ORDER),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_field(
    tmp_path: Path, fields: dict[str, Any], field: str, message: str
) -> None:
    ((line, where, text),) = problems(tmp_path, **fields)
    assert (line, where) == (1, field)
    assert text.startswith(message), text


def test_a_short_result_is_not_cut() -> None:
    call = ToolCall("f", result="abc")
    assert call.cut(3) is call
    assert call.cut(2) == ToolCall("f", result="ab", result_length=3)


def test_a_profile_that_learns_of_tools_asks_as_before() -> None:
    """The hash of a profile is part of that of a run: what was recorded before stays comparable."""
    profile = {"request": {"path": "/ask"}, "response": {"answer": "answer"}}
    learned = profile | {"response": {"answer": "answer", "tools": "steps"}}
    learned |= {"tool": {"name": "tool", "arguments": "input"}}
    assert digest_without_turns(learned) == digest_without_turns(profile)
    other = {**profile, "response": {"answer": "text"}}
    assert digest_without_turns(other) != digest_without_turns(profile)

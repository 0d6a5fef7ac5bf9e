"""Where an unknown bot's answers report its tool calls: proposed only where it is certain; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from clients.expressions import compile_path
from clients.field_names import GROUPS, is_named, plain_name
from clients.reply_form import ReplyColumn, child
from clients.tool_calls import read_calls, returned, tool_calls
from records.tool_passages import QUERIES
from records.tool_searches import ToolResult, judge_tool

_JOINED = re.compile(r"unique\((?P<outer>[^\[\]]+)\[[^\]]*\]\.(?P<inner>[^\[\]]+)\[\]\)")
"""How ``clients.reply_form`` joins the lists in the items of a list."""


class ToolPaths(NamedTuple):
    """The path of the list of calls, and the paths inside a call; {}: they have our names."""

    tools: str
    inside: dict[str, str]


def find_tools(
    payloads: Sequence[Any], columns: Sequence[ReplyColumn], *, streamed: bool
) -> ToolPaths | None:
    """The calls in answers: messages, items or events of a documented form, else a list that is
    named as calls and whose items all have a name and arguments. None where neither is there."""
    if streamed:
        events = [payload.get("events") for payload in payloads]
        return ToolPaths("tool_calls(events)", {}) if _hold_calls(events) else None
    for column in columns:
        if _hold_calls(column.present):
            return ToolPaths(f"tool_calls({_all_items(column.path)})", {})
    for column in columns:
        items = [item for value in column.present if isinstance(value, list) for item in value]
        if is_named(column.name, "tools") and (inside := _inside(items)):
            return ToolPaths(_all_items(column.path), inside)
    whole = _hold_calls([[payload] for payload in payloads])
    return ToolPaths("tool_calls([@])", {}) if whole else None


def find_searches(
    payloads: Sequence[Any], tools: str, gold_files: AbstractSet[str]
) -> tuple[str | None, list[list[Any]], list[str]]:
    """The path of the searches among the calls in messages, None without any.

    Also the passages that they returned in each answer, and a sentence about each other tool.
    """
    if not tools.startswith("tool_calls("):
        return None, [], []
    inner = tools.removeprefix("tool_calls(").removesuffix(")")
    get = compile_path(inner)
    calls: dict[str, list[ToolResult]] = {}
    for call in (call for payload in payloads for call in read_calls(get(payload) or ())):
        if not call.get("error"):
            calls.setdefault(call["name"], []).append((call.get("arguments"), returned(call)))
    verdicts = {name: judge_tool(name, held, gold=gold_files) for name, held in calls.items()}
    searching = [name for name, verdict in verdicts.items() if verdict.is_search]
    about = [v.about for v in verdicts.values() if v.about and not v.is_search]
    if not searching:
        return None, [], about
    names = "".join(f", {_quoted(name)}" for name in searching)
    path = f"search_calls({inner}{names})"
    found = compile_path(path)
    lists = [[p for call in found(each) or () for p in call["retrieved"]] for each in payloads]
    return path, lists, about


def find_step_searches(
    payloads: Sequence[Any], passages: str, gold_files: AbstractSet[str]
) -> tuple[str, list[list[Any]]] | None:
    """The path of the searches among steps with a tool and its arguments, None without any.

    Also the passages of each answer. ``passages``: the path of all of their lists as one, which has
    no one ranking. Where one step has all of them, their list is the ranking.
    """
    joined = _JOINED.fullmatch(passages)
    if joined is None:
        return None
    outer, inner = joined["outer"], joined["inner"]
    get = compile_path(inner)
    steps = [item for payload in payloads for item in compile_path(outer)(payload) or ()]
    found_by = [each for each in steps if isinstance(each, dict) and isinstance(get(each), list)]
    keys = _inside(found_by)
    if not keys:
        return None
    name, arguments = keys["name"], keys["arguments"]
    name_of, arguments_of = compile_path(name), compile_path(arguments)
    calls: dict[str, list[ToolResult]] = {}
    for item in found_by:
        calls.setdefault(name_of(item), []).append((arguments_of(item), get(item)))
    searching = [
        tool for tool, held in calls.items() if judge_tool(tool, held, gold=gold_files).is_search
    ]
    if not searching:
        return None
    asked = [held for tool in searching for held, _ in calls[tool]]
    query = next((q for q in QUERIES if all(isinstance(a, dict) and q in a for a in asked)), None)
    fields = f"tool: {name}, " + f"query: {arguments}.{query}, " * (query is not None)
    tools = ", ".join(map(_quoted, searching))
    path = f"{outer}[?contains([{tools}], {name}) && type({inner}) == 'array']"
    path += f".{{{fields}retrieved: {inner}}}"
    found = compile_path(path)
    lists = [[p for call in found(each) or () for p in call["retrieved"]] for each in payloads]
    return path, lists


def find_last_message(payloads: Sequence[Any], columns: Sequence[ReplyColumn]) -> str | None:
    """The path of the last message's text. It exists if every answer is a list of messages that
    ends with one of the assistant; else None."""
    for column in columns:
        lists = [value for value in column.values if isinstance(value, list) and value]
        last = [messages[-1] for messages in lists if isinstance(messages[-1], Mapping)]
        roles = {message.get("role", message.get("type")) for message in last}
        texts = [message.get("content") for message in last]
        are_said = all(isinstance(text, str) and text.strip() for text in texts)
        is_last = len(last) == len(payloads) > 0 and roles <= {"assistant", "ai"}
        if is_last and are_said:
            return f"{column.path}[-1].content"
    return None


def _all_items(path: str) -> str:
    """The path of joined lists with equal items, too: a call that was made twice counts twice."""
    return path.removeprefix("unique(").removesuffix(")") if path.startswith("unique(") else path


def _quoted(name: str) -> str:
    """The name of a tool as a text in an expression."""
    return "'" + name.replace("'", r"\'") + "'"


def _hold_calls(lists: Sequence[Any]) -> bool:
    """Whether the lists are of a documented form and hold calls, all with a name."""
    found = [call for each in lists if isinstance(each, list) for call in tool_calls(each) or ()]
    return bool(found) and all(isinstance(call["name"], str) and call["name"] for call in found)


def _inside(items: Sequence[Any]) -> dict[str, str]:
    """The paths of a call's fields, where every item has a name and arguments; {} else."""
    keys = dict.fromkeys(key for item in items if isinstance(item, Mapping) for key in item)
    paths: dict[str, str] = {}
    for field in dict.fromkeys(GROUPS["tool"].values()):
        able = (key for key in keys if GROUPS["tool"].get(plain_name(key)) == field)
        if key := next(able, None):
            paths[field] = key
    certain = {"name", "arguments"} <= paths.keys() and all(
        isinstance(item, Mapping)
        and isinstance(item.get(paths["name"]), str)
        and isinstance(item.get(paths["arguments"]), dict | str)
        for item in items
    )
    return {field: child("", key) for field, key in paths.items()} if certain else {}

"""The paths of a profile: JMESPath, and functions of our own (``HELPERS``) that give null for null.

``split(path, '/')`` calls ``_split``. A passage without a heading has none instead of being an
error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from clients.tool_calls import search_calls, tool_calls

Getter = Callable[[Any], Any]

MAX_DEPTH = 100
"""Levels of an expression, as of an answer: a call in a call is two."""
_TOO_DEEP = f"is nested deeper than {MAX_DEPTH} levels"

MOST = 64 * 2**20
"""Characters of a text that an expression makes, as many as an answer may have bytes."""
_MOST_ITEMS = 1_000_000

_PLAIN_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


class PlainName:
    """The path of a single name, which can be read without a call."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Any) -> Any:
        return value.get(self.name) if isinstance(value, dict) else None


def compile_path(expression: str) -> Getter:
    """A JMESPath expression, with the functions of ``HELPERS``, as a function. Raises ValueError
    when it is not valid.

    Dotted names, by far the most frequent, do not go through the JMESPath interpreter: it would
    cost more than all the rest of a call.
    """
    import jmespath

    try:
        tree = jmespath.compile(expression).parsed
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if not _PLAIN_PATH.fullmatch(expression):
        calls, depth = _calls_and_depth(tree)
        if depth > MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        for name, values in calls:
            if name not in _interpreter().known:
                raise ValueError(f"there is no function {name}()")
            _, types, about = HELPERS.get(name, (None, (), ""))
            if values < len(types):
                raise ValueError(f"{name}() has {values} of {len(types)} values; write {about}")
        return partial(_interpreter().visit, tree)
    names = expression.split(".")
    if len(names) == 1:
        return PlainName(expression)

    def get(value: Any) -> Any:
        for name in names:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    return get


_NUMBER = re.compile(r"[-+]?\d[\d,_']*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_MARK = re.compile(r"\[(\d{1,6}(?:\s*[,;]\s*\d{1,6})*)\]")


def _split(text: str | None, separator: str) -> list[str] | None:
    if text is None:
        return None
    pieces = text.split(separator) if separator else text.split()
    return [piece.strip() for piece in pieces if piece.strip()]


def _replace(text: str | None, old: str, new: str) -> str | None:
    if text is None or not old:
        return text
    if len(new) > len(old):
        _check_size(len(text) + text.count(old) * (len(new) - len(old)), MOST)
    return text.replace(old, new)


def _basename(path: str | None) -> str | None:
    return None if path is None else re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _join(glue: str, items: Sequence[Any] | None) -> str | None:
    if items is None:
        return None
    texts = [item if isinstance(item, str) else _plain(item) for item in items]
    _check_size(sum(map(len, texts)) + len(texts) * len(glue), MOST)
    return glue.join(text for text in texts if text)


def _plain(item: Any) -> str:
    return str(item) if isinstance(item, (int, float)) and not isinstance(item, bool) else ""


def _trim(text: str | None) -> str | None:
    return None if text is None else text.strip()


def _lines(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _before(text: str | None, mark: str) -> str | None:
    return None if text is None else text.partition(mark)[0] if mark else text


def _after(text: str | None, mark: str) -> str | None:
    if text is None or not mark:
        return text
    _, match, rest = text.partition(mark)
    return rest if match else None


def _number(text: str | float | None) -> float | None:
    if text is None or isinstance(text, (int, float)):
        return text
    match = _NUMBER.search(text)
    if match is None:
        return None
    digits = re.sub(r"[,_']", "", match[0])
    return int(digits) if re.fullmatch(r"[-+]?\d{1,18}", digits) else float(digits)


def _marks(text: str | None) -> list[int] | None:
    if text is None:
        return None
    numbers = (int(digits) for mark in _MARK.findall(text) for digits in re.findall(r"\d+", mark))
    return list(dict.fromkeys(numbers))


def _zip(*lists: Sequence[Any] | None) -> list[list[Any]] | None:
    from jmespath.exceptions import JMESPathError

    lengths = {len(items) for items in lists if items is not None}
    if len(lengths) > 1:
        raise JMESPathError(f"zip() got lists of {' and '.join(map(str, sorted(lengths)))} items")
    if not lengths:
        return None
    size = lengths.pop()
    return [list(row) for row in zip(*(items or [None] * size for items in lists), strict=True)]


def _unique(items: Sequence[Any] | None) -> list[Any] | None:
    if items is None:
        return None
    once: dict[str, Any] = {}
    for item in items:
        once.setdefault(json.dumps(item, sort_keys=True), item)
    return list(once.values())


_TEXT = ("string", "null")
_LIST = ("array", "null")

HELPERS: dict[str, tuple[Callable[..., Any], tuple[tuple[str, ...], ...], str]] = {
    "split": (_split, (_TEXT, ("string",)), "split(text, '/'): the pieces, without empty ones"),
    "join": (_join, (("string",), ("array", "null")), "join(' > ', list): nulls are left out"),
    "replace": (_replace, (_TEXT, ("string",), ("string",)), "replace(text, 'old', 'new')"),
    "basename": (_basename, (_TEXT,), "basename(path): the file's name without its folders"),
    "trim": (_trim, (_TEXT,), "trim(text): without the space around it"),
    "lines": (_lines, (_TEXT,), "lines(text): its lines, without empty ones"),
    "before": (_before, (_TEXT, ("string",)), "before(text, ' ('): all of it if ' (' is missing"),
    "after": (_after, (_TEXT, ("string",)), "after(text, 'Sources:'): null if that is missing"),
    "number": (_number, (("string", "number", "null"),), "number('1,204 ms'): 1204"),
    "marks": (_marks, (_TEXT,), "marks(text): the numbers of its [1] and [2, 3] marks"),
    "unique": (_unique, (_LIST,), "unique(list): each item once, where it comes first"),
    "tool_calls": (
        tool_calls,
        (_LIST,),
        "tool_calls(messages), tool_calls(events): the calls of tools with their results",
    ),
    "search_calls": (
        search_calls,
        (_LIST, ("string",)),
        "search_calls(messages, 'NAME', …): the calls of these tools, as searches",
    ),
    "zip": (_zip, (_LIST, _LIST), "zip(a, b, …): parallel lists item by item; [0] is that of a"),
}
"""Each helper with the types of its arguments and one line about it."""

_VARIADIC = frozenset(("zip", "search_calls"))
"""Helpers that take further arguments of the last type."""


def _check_size(size: int, most: int) -> None:
    """Nested calls could grow a short answer into all memory."""
    from jmespath.exceptions import JMESPathError

    if size > most:
        raise JMESPathError(f"it makes a text or list of {size:,} parts, more than {most:,}")


@lru_cache
def _interpreter() -> Any:
    """Evaluates expressions with the helpers; its texts and lists are limited.

    ``join`` takes the place of JMESPath's own, which refuses a list with a null in it.
    """
    import jmespath
    from jmespath import functions
    from jmespath.visitor import TreeInterpreter

    members: dict[str, Any] = {}
    for name, (function, types, _) in HELPERS.items():

        def method(self: Any, *values: Any, function: Callable[..., Any] = function) -> Any:
            return function(*values)

        method.__name__ = f"_func_{name}"
        arguments: list[Any] = [{"types": list(kinds)} for kinds in types]
        if name in _VARIADIC:
            arguments[-1]["variadic"] = True
        members[method.__name__] = functions.signature(*arguments)(method)
    registry: Any = type("Helpers", (functions.Functions,), members)

    class Limited(TreeInterpreter):
        known = registry.FUNCTION_TABLE

        def visit_function_expression(self, node: Any, value: Any) -> Any:
            result = super().visit_function_expression(node, value)
            if isinstance(result, str):
                _check_size(len(result), MOST)
            return result

        def visit_flatten(self, node: Any, value: Any) -> Any:
            result = super().visit_flatten(node, value)
            _check_size(len(result or ()), _MOST_ITEMS)
            return result

    return Limited(jmespath.Options(custom_functions=registry()))


def _calls_and_depth(tree: Any) -> tuple[list[tuple[str, int]], int]:
    """The functions that a parsed expression calls, each with the number of its values, and how
    deep it is nested."""
    calls: list[tuple[str, int]] = []
    depth, level = 0, [tree]
    while level:
        depth += 1
        calls += [
            (node["value"], len(node["children"]))
            for node in level
            if node["type"] == "function_expression"
        ]
        children = [child for node in level for child in node.get("children", ())]
        level = [child for child in children if isinstance(child, dict)]
    return calls, depth

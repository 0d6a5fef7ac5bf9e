"""The paths of a profile: JMESPath, and functions of our own (``HELPERS``) that give null for null.

``split(path, '/')`` calls ``_split``. A passage without a heading has none instead of being an
error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

Getter = Callable[[Any], Any]

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

    parsed = jmespath.compile(expression)
    if not _PLAIN_PATH.fullmatch(expression):
        if name := _unknown_function(parsed):
            raise ValueError(f"there is no function {name}()")
        options = _search_options()
        return lambda value: parsed.search(value, options)
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
    return text.replace(old, new) if text is not None and old else text


def _basename(path: str | None) -> str | None:
    return None if path is None else re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _join(glue: str, items: Sequence[Any] | None) -> str | None:
    if items is None:
        return None
    texts = (item if isinstance(item, str) else _plain(item) for item in items)
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


_TEXT = ("string", "null")

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
}
"""Each helper with the types of its arguments and one line about it."""


@lru_cache
def _search_options() -> Any:
    """The options with which an expression finds the helpers.

    ``join`` takes the place of JMESPath's own, which refuses a list with a null in it.
    """
    import jmespath
    from jmespath import functions

    members: dict[str, Any] = {}
    for name, (function, types, _) in HELPERS.items():

        def method(self: Any, *values: Any, function: Callable[..., Any] = function) -> Any:
            return function(*values)

        method.__name__ = f"_func_{name}"
        arguments: list[Any] = [{"types": list(kinds)} for kinds in types]
        members[method.__name__] = functions.signature(*arguments)(method)
    registry: Any = type("Helpers", (functions.Functions,), members)
    return jmespath.Options(custom_functions=registry())


def _unknown_function(parsed: Any) -> str | None:
    """The name of a function in a parsed expression that neither JMESPath nor this module has."""
    table = _search_options().custom_functions.FUNCTION_TABLE

    def walk(node: Any) -> str | None:
        if not isinstance(node, dict):
            return None
        if node.get("type") == "function_expression" and node["value"] not in table:
            return str(node["value"])
        return next((name for child in node.get("children", ()) if (name := walk(child))), None)

    return walk(parsed.parsed)

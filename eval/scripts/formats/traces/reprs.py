"""Parses the printed form of a Python object: ``Event(result=Message(text='Hi'))`` as fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

CLASS = "__class__"
"""The key under which the name of an object's class is in its fields."""

_BEGINS = re.compile(r"[A-Za-z_][\w.]*\(|<[\w.]+[ :]|<[\w.]+>$|[\[{]")
_TOKEN = re.compile(
    r"\s*(?:(?P<text>[rbuRBU]{0,2}(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))"
    r"|(?P<angle><[^<>]*(?:<[^<>]*>[^<>]*)*>)"
    r"|(?P<name>[A-Za-z_][\w.-]*)|(?P<number>-?\d[\w.+-]*)|(?P<sign>[()\[\]{},=:]))",
    re.DOTALL,
)
_ENUM = re.compile(r"<[\w.]+: (.+)>", re.DOTALL)
_WORDS = {"None": None, "True": True, "False": False, "nan": None, "inf": None}
_MOST_DEPTH = 40
_MOST_CHARACTERS = 1_000_000


def is_repr(text: str) -> bool:
    """Whether a text looks like a printed object, whole or cut at its end: a class with arguments,
    or ``<… at 0x…>``."""
    text = text.strip()
    if text[-1:] == ">":
        return re.match(r"<[A-Za-z_][\w.]*(?:\(|: | object| at 0x)", text) is not None
    is_ended = text[-1:] == ")" or text[-3:] == "..." or text.count("(") > text.count(")")
    return is_ended and re.match(r"[A-Za-z_][\w.]*\((?:\)$|[A-Za-z_]\w*(?:=|: ))", text) is not None


def parse_repr(text: str) -> Any:
    """Objects as dicts of their fields, with lists, texts and numbers; None for anything else.

    What cannot be known (``<object at …>``) is None; the value of an enumeration is its value.
    """
    if len(text) > _MOST_CHARACTERS or not _BEGINS.match(text.strip()):
        return None
    try:
        reader = _ReprReader(text)
        value = reader.value(0)
        return value if reader.is_at_end() else None
    except (ValueError, SyntaxError, RecursionError):
        return None


class _ReprReader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def is_at_end(self) -> bool:
        return not self._text[self._at :].strip()

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise ValueError(self._at)
        self._at = match.end()
        kind = str(match.lastgroup)
        return kind, match[kind]

    def _peek(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        return match[str(match.lastgroup)] if match else ""

    def value(self, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise ValueError(depth)
        kind, token = self._next()
        if kind == "text":
            text = ast.literal_eval(token)
            while self._peek()[-1:] in ("'", '"') and self._peek()[:1] not in "<[({":
                text += ast.literal_eval(self._next()[1])  # adjacent texts are one
            return text
        if kind == "number":
            return _number(token)
        if kind == "angle":
            enum = _ENUM.fullmatch(token)
            return _literal(enum[1]) if enum else None
        if kind == "name":
            if self._peek() == "(":
                self._next()
                return {CLASS: token, **self._arguments(depth)}
            return _WORDS.get(token, token)
        if token in "[(":
            return self._items("]" if token == "[" else ")", depth)
        if token == "{":
            return self._mapping(depth)
        raise ValueError(token)

    def _items(self, end: str, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in self._each_until(end)]

    def _each_until(self, end: str) -> Iterator[None]:
        """Once for each item that the caller reads, with the comma behind it, and the end."""
        while self._peek() != end:
            yield
            if self._peek() == ",":
                self._next()
        self._next()

    def _arguments(self, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for _ in self._each_until(")"):
            value = self.value(depth + 1)
            if self._peek() == "=" and isinstance(value, str | None):
                self._next()
                fields[str(value).lstrip("_")] = self.value(depth + 1)
            elif self._peek() == ":" and isinstance(value, str):  # Haystack prints fields so
                self._next()
                fields[value] = self.value(depth + 1)
            else:
                fields[str(len(fields))] = value
        return fields

    def _mapping(self, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for _ in self._each_until("}"):
            name = self.value(depth + 1)
            if self._peek() == ":":
                self._next()
                fields[str(name)] = self.value(depth + 1)
            else:
                fields[str(len(fields))] = name
        return fields


def _number(token: str) -> Any:
    try:
        return ast.literal_eval(token)
    except (ValueError, SyntaxError):
        return None


def _literal(token: str) -> Any:
    try:
        return ast.literal_eval(token)
    except (ValueError, SyntaxError):
        return token

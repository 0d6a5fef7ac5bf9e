"""Searching a text for any of many patterns, of which it can hold very few.

Of each pattern some letters are known that every match holds. Only the patterns whose letters stand
in the text are tried, which finds the same and is many times faster than trying all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

# The parser of the standard library; its trees have had this shape since Python 3.7.
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_SIZE = 4
_LONG = _SIZE + 1
"""A literal of so many bytes holds a run of four that begins at an even byte, wherever in a text it
stands: only those runs of a text are looked up."""
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


_Literal = tuple[str, int]
"""Letters, and the number of the pattern that cannot match without them, or others of its own."""

_LongLiteral = tuple[str, frozenset[int]]
"""The same with all patterns of these letters."""


class PhraseSearch:
    """Many patterns as one. They are written for lower-case text and match with letters alone."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        self._compiled: dict[int, re.Pattern[str]] = {}

    def first_in(self, text: str) -> int | None:
        """The number of the first pattern that matches somewhere in the text; None for none."""
        ascii_only, others, by_letters = self._index
        tried = {number for literal, number in ascii_only if literal in text}
        if not text.isascii():
            tried.update(number for literal, number in others if literal in text)
        for letters in by_letters.keys() & _pieces_of(text):
            for literal, numbers in by_letters[letters]:
                if literal in text:
                    tried |= numbers
        return next((number for number in sorted(tried) if self._matches(number, text)), None)

    def _matches(self, number: int, text: str) -> bool:
        """Patterns of languages that nobody writes are never compiled."""
        pattern = self._compiled.get(number)
        if pattern is None:
            pattern = self._compiled[number] = re.compile(self._patterns[number])
        return pattern.search(text) is not None

    @cached_property
    def _index(self) -> tuple[list[_Literal], list[_Literal], dict[int, list[_LongLiteral]]]:
        """Short literals in ASCII, other short ones, and by runs of bytes the long ones with them.

        A pattern that needs no letters has the empty literal, which stands in every text.
        """
        owners: dict[str, set[int]] = {}
        for number, pattern in enumerate(self._patterns):
            for literal in _needed(_parser.parse(pattern)) or {""}:
                owners.setdefault(literal, set()).add(number)
        ascii_only: list[_Literal] = []
        others: list[_Literal] = []
        index: dict[int, list[_LongLiteral]] = {}
        for literal, numbers in sorted(owners.items()):
            data = literal.encode()
            if len(data) < _LONG:
                short = ascii_only if literal.isascii() else others
                short.extend((literal, number) for number in numbers)
                continue
            for run in (data[:_SIZE], data[1:_LONG]):
                for piece in _pieces(run):
                    index.setdefault(piece, []).append((literal, frozenset(numbers)))
        return ascii_only, others, index


def _pieces(data: bytes) -> set[int]:
    """The runs of four bytes that begin at an even one, as numbers."""
    begins = (data[: len(data) & -_SIZE], data[2 : 2 + (max(0, len(data) - 2) & -_SIZE)])
    return {number for part in begins for number in memoryview(part).cast("I")}


@lru_cache(maxsize=64)
def _pieces_of(text: str) -> set[int]:
    return _pieces(text.encode("utf-8", "replace"))


_Literals = frozenset[str] | None
"""Letters of which every match holds one at least; None: no letters are known."""


def _weight(literals: _Literals) -> tuple[int, int]:
    """How well letters tell a text apart: the shortest of them, and how few they are."""
    return (min(map(len, literals)), -len(literals)) if literals else (0, 0)


def _needed(tree: Sequence[Any]) -> _Literals:
    """The letters that a parsed pattern cannot do without."""
    best: _Literals = None
    run = ""
    for name, argument in [*((str(op), argument) for op, argument in tree), ("", None)]:
        if name == "LITERAL":
            run += chr(argument)
            continue
        for literals in (frozenset({run}) if run else None, _needed_by(name, argument)):
            if _weight(literals) > _weight(best):
                best = literals
        run = "" if name not in ("ASSERT", "ASSERT_NOT", "AT") else run
    return best


def _needed_by(name: str, argument: Any) -> _Literals:
    if name == "SUBPATTERN":
        return _needed(argument[-1]) if not (argument[1] or argument[2]) else None
    if name == "ATOMIC_GROUP":
        return _needed(argument)
    if name in _REPEATS:
        return _needed(argument[2]) if argument[0] else None
    if name == "BRANCH":
        parts = [_needed(part) for part in argument[1]]
        return None if None in parts else frozenset().union(*(part or () for part in parts))
    return None

"""Searching a text for any of many patterns, of which it can hold very few.

Of each pattern some letters are known that every match holds, often in several of its parts: of a
subject, of a negation, of a verb. Only the patterns of whose letters some stand in the text for
every such part are tried, which finds the same and is many times faster than trying all of them.
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


_MOST_LITERALS = 24
"""A part of a pattern with more letters than this is not worth looking for."""


_Literal = tuple[str, frozenset[int]]
"""Letters, and the patterns that cannot match without them, or others of their own."""


class PhraseSearch:
    """Many patterns as one. They are written for lower-case text and match with letters alone."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        self._compiled: dict[int, re.Pattern[str]] = {}

    def first_in(self, text: str) -> int | None:
        """The number of the first pattern that matches somewhere in the text; None for none."""
        ascii_only, others, by_letters = self._index
        tried: set[int] = set()
        for literal, numbers in ascii_only:
            if literal in text:
                tried |= numbers
        if not text.isascii():
            for literal, numbers in others:
                if literal in text:
                    tried |= numbers
        for letters in by_letters.keys() & _pieces_of(text):
            for literal, numbers in by_letters[letters]:
                if literal in text:
                    tried |= numbers
        if not tried:
            return None
        absent: dict[int, bool] = {}  # parts are shared by many patterns of a language
        for number in sorted(tried):
            for part in self._parts[number]:
                if part not in absent:
                    absent[part] = not _holds_any(text, self._letters[part])
                if absent[part]:
                    break
            else:
                if self._matches(number, text):
                    return number
        return None

    def _matches(self, number: int, text: str) -> bool:
        """Patterns of languages that nobody writes are never compiled."""
        pattern = self._compiled.get(number)
        if pattern is None:
            pattern = self._compiled[number] = re.compile(self._patterns[number])
        return pattern.search(text) is not None

    @cached_property
    def _needs(self) -> list[list[frozenset[str]]]:
        """For each pattern the letters of its parts, those that tell texts apart best first."""
        return [_needed(_parser.parse(pattern)) for pattern in self._patterns]

    @cached_property
    def _letters(self) -> list[frozenset[str]]:
        """The letters of each part but the first that is worth looking for."""
        parts = {part for own in self._needs for part in own[1:] if len(part) <= _MOST_LITERALS}
        return sorted(parts, key=sorted)

    @cached_property
    def _parts(self) -> list[list[int]]:
        """For each pattern the numbers of such parts, the one of fewest letters first."""
        numbers = {part: number for number, part in enumerate(self._letters)}
        listed = [sorted(filter(numbers.__contains__, own[1:]), key=len) for own in self._needs]
        return [[numbers[part] for part in own] for own in listed]

    @cached_property
    def _index(self) -> tuple[list[_Literal], list[_Literal], dict[int, list[_Literal]]]:
        """Short literals in ASCII, other short ones, and by runs of bytes the long ones with them.

        A pattern that needs no letters has the empty literal, which stands in every text.
        """
        owners: dict[str, set[int]] = {}
        for number, needs in enumerate(self._needs):
            for literal in needs[0] if needs else {""}:
                owners.setdefault(literal, set()).add(number)
        ascii_only: list[_Literal] = []
        others: list[_Literal] = []
        index: dict[int, list[_Literal]] = {}
        for literal, numbers in sorted(owners.items()):
            data, item = literal.encode(), (literal, frozenset(numbers))
            if len(data) < _LONG:
                (ascii_only if literal.isascii() else others).append(item)
                continue
            for run in (data[:_SIZE], data[1:_LONG]):
                for piece in _pieces(run):
                    index.setdefault(piece, []).append(item)
        return ascii_only, others, index


def _holds_any(text: str, literals: frozenset[str]) -> bool:
    for literal in literals:  # a plain loop: any() would cost more than the search itself
        if literal in text:
            return True
    return False


def _pieces(data: bytes) -> set[int]:
    """The runs of four bytes that begin at an even one, as numbers."""
    begins = (data[: len(data) & -_SIZE], data[2 : 2 + (max(0, len(data) - 2) & -_SIZE)])
    return {number for part in begins for number in memoryview(part).cast("I")}


@lru_cache(maxsize=64)
def _pieces_of(text: str) -> set[int]:
    return _pieces(text.encode("utf-8", "replace"))


def _weight(literals: frozenset[str]) -> tuple[int, int]:
    """How well letters tell a text apart: the shortest of them, and how few they are."""
    return min(map(len, literals)), -len(literals)


def _needed(tree: Sequence[Any]) -> list[frozenset[str]]:
    """The letters that a parsed pattern cannot do without: every match holds one of each set at
    least. The best set comes first."""
    needed: list[frozenset[str]] = []
    run = ""
    for name, argument in [*((str(op), argument) for op, argument in tree), ("", None)]:
        if name == "LITERAL":
            run += chr(argument)
            continue
        needed += [frozenset({run})] if run else []
        needed += _needed_by(name, argument)
        run = "" if name not in ("ASSERT", "ASSERT_NOT", "AT") else run
    return sorted(needed, key=_weight, reverse=True)


def _needed_by(name: str, argument: Any) -> list[frozenset[str]]:
    if name == "SUBPATTERN":
        return _needed(argument[-1]) if not (argument[1] or argument[2]) else []
    if name == "ATOMIC_GROUP":
        return _needed(argument)
    if name in _REPEATS:
        return _needed(argument[2]) if argument[0] else []
    if name == "BRANCH":
        parts = [_needed(part) for part in argument[1]]
        return [frozenset().union(*(part[0] for part in parts))] if all(parts) else []
    return []

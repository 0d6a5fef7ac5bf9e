"""Searches a text for any of many patterns when very few can occur in it.

Of each pattern some letters are known that every match holds, mostly in several of its parts: a
subject, a negation, a verb. Which letters stand in a word is looked up once for a word, and only
the patterns of which every part has letters in the text are tried. This finds the same as trying
all of them, many times faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain

# The parser of the standard library; its trees have had this shape since Python 3.7.
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_SIZE = 3
"""Letters by which a literal is looked up."""
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


_MANY = 25
"""Letters of one part that are too many to tell texts apart."""

_WORDS, _LONGEST = 1 << 14, 1000
"""How many words are kept with what stands in them, and from texts of how many characters."""


class PhraseSearch:
    """Many patterns as one. They are written for lower-case text and match with letters alone."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._known_parts_in = lru_cache(maxsize=_WORDS)(self._parts_in)

    def first_in(self, text: str) -> int | None:
        """The number of the first pattern that matches somewhere in the text; None for none."""
        tried = self._tried(text)
        return next((number for number in tried if self._match(number, text) is not None), None)

    def all_in(self, text: str) -> list[tuple[int, re.Match[str]]]:
        """The patterns that match somewhere in the text, each with its first match."""
        matches = ((number, self._match(number, text)) for number in self._tried(text))
        return [(number, match) for number, match in matches if match is not None]

    def _tried(self, text: str) -> list[int]:
        """The patterns of which every part has letters in the text, in order."""
        parts_in = self._known_parts_in if len(text) <= _LONGEST else self._parts_in
        present: set[int] = set()
        present.update(*map(parts_in, text.split()))
        needs, begun = self._needs, self._begun_by
        tried = [
            number
            for part in present & begun.keys()
            for number in begun[part]
            if present.issuperset(needs[number])
        ]
        return sorted([*tried, *begun.get(None, ())])

    def _match(self, number: int, text: str) -> re.Match[str] | None:
        """Patterns of a language are compiled on first use."""
        pattern = self._compiled.get(number)
        if pattern is None:
            pattern = self._compiled[number] = re.compile(self._patterns[number])
        return pattern.search(text)

    def _parts_in(self, word: str) -> frozenset[int]:
        """The parts of patterns of which letters stand in a word."""
        index = self._index
        literals = [
            literal
            for piece in index.keys() & _pieces(word)
            for literal in index[piece]
            if literal in word
        ]
        return frozenset().union(*map(self._owners.__getitem__, literals))

    @cached_property
    def _parts(self) -> list[list[frozenset[str]]]:
        """For each pattern the letters of its parts within words, the most telling ones first."""
        listed = [_needed(_parser.parse(pattern)) for pattern in self._patterns]
        inside = [[part for part in own if not any(map(_has_blank, part))] for own in listed]
        return [own[:1] + list(filter(_is_telling, own[1:])) for own in inside]

    @cached_property
    def _numbers(self) -> dict[frozenset[str], int]:
        """A number for each part; many patterns of a language share theirs."""
        return {part: number for number, part in enumerate(set(chain(*self._parts)))}

    @cached_property
    def _needs(self) -> list[frozenset[int]]:
        """For each pattern the numbers of its parts."""
        return [frozenset(self._numbers[part] for part in own) for own in self._parts]

    @cached_property
    def _begun_by(self) -> dict[int | None, list[int]]:
        """The patterns by their most telling part; None for those of which no letters are known."""
        begun: dict[int | None, list[int]] = {}
        for number, own in enumerate(self._parts):
            begun.setdefault(self._numbers[own[0]] if own else None, []).append(number)
        return begun

    @cached_property
    def _owners(self) -> dict[str, frozenset[int]]:
        """The parts that each literal is one of."""
        owners: dict[str, set[int]] = {}
        for part, number in self._numbers.items():
            for literal in part:
                owners.setdefault(literal, set()).add(number)
        return {literal: frozenset(numbers) for literal, numbers in owners.items()}

    @cached_property
    def _index(self) -> dict[str, list[str]]:
        """The literals by their first letters."""
        index: dict[str, list[str]] = {}
        for literal in sorted(self._owners):
            index.setdefault(literal[:_SIZE], []).append(literal)
        return index


def _is_telling(part: frozenset[str]) -> bool:
    """Whether it spares more searches than looking for it costs."""
    return min(map(len, part)) > 2 and len(part) < _MANY


def _has_blank(literal: str) -> bool:
    return literal.split() != [literal]


def _pieces(word: str) -> set[str]:
    """All that stands in a word and has up to three letters."""
    last = len(word) - 1
    pieces = {word[first : first + 3] for first in range(last)}  # the last one has two letters
    pieces.update([word[first : first + 2] for first in range(last)])
    return pieces.union(word)


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
        if name == "BRANCH" and run and (ends := _spelled(argument[1])):
            needed.append(frozenset(run + end for end in ends))  # non|né is parsed as n(?:on|é)
            run = ""
            continue
        needed += [frozenset({run})] if run else []
        needed += _needed_by(name, argument)
        run = "" if name not in ("ASSERT", "ASSERT_NOT", "AT") else run
    return sorted(needed, key=_weight, reverse=True)


def _spelled(branches: Iterable[Sequence[Any]]) -> list[str]:
    """The branches as texts, when all of them are letters alone; [] otherwise."""
    if not all(str(op) == "LITERAL" for branch in branches for op, _ in branch):
        return []
    return ["".join(chr(letter) for _, letter in branch) for branch in branches]


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

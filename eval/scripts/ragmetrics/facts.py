"""Finds the texts that contain gold facts (nuggets), in any wording, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from ragmetrics.text.numbers import Number, numbers
from ragmetrics.text.words import STOP_WORDS, clean, fold, stem, words


class Fact(Protocol):
    """A gold fact, its other wordings, and whether an answer must state it (else: okay)."""

    @property
    def fact(self) -> str: ...
    @property
    def aliases(self) -> Sequence[str]: ...
    @property
    def vital(self) -> bool: ...


@dataclass(frozen=True)
class FactScores:
    """The facts found. ``found[i]``: places of the chunks (from 0) that contain fact i."""

    holders: tuple[tuple[int, ...], ...] = field(default=())

    @property
    def coverage(self) -> float | None:
        """Facts found in any chunk / facts; None without facts."""
        return sum(map(bool, self.holders)) / len(self.holders) if self.holders else None

    @property
    def dispersion(self) -> float | None:
        """Mean number of chunks that contain a fact, over the facts found; None when none was."""
        held = [len(chunks) for chunks in self.holders if chunks]
        return sum(held) / len(held) if held else None


def find_facts(texts: Sequence[str], facts: Sequence[Fact]) -> FactScores:
    """Find the chunks that contain each fact."""
    read = [(text, canonical(text)) for text in texts] if facts else []
    return FactScores(
        tuple(
            tuple(
                index
                for index, (text, held) in enumerate(read)
                if holds(text, held, fact.fact, fact.aliases)
            )
            for fact in facts
        )
    )


def nugget_recall(worth: Sequence[float], vital: Sequence[bool]) -> dict[str, float | None]:
    """Return the share of the gold facts in an answer, for the vital facts and for all; in [0, 1].

    ``worth``: of each fact 1 when the answer holds it, 0 when not, 1/2 where a judge finds a part
    of it. None without a vital fact, or without any. Source: nugget recall of TREC RAG 2024
    (Pradeep et al. 2024), whose "okay" facts count in the second alone.
    """
    pairs = list(zip(worth, vital, strict=True))
    needed = [credit for credit, must in pairs if must]
    return {
        "vital": sum(needed) / len(needed) if needed else None,
        "all": sum(worth) / len(pairs) if pairs else None,
    }


SHORT = 2
"""An alias of this many characters, or of digits only, needs a word of the fact beside it."""


def _spoken(number: Number) -> str:
    """One spelling for a number: ``15``, 17:30 as ``t17x30``, a day as ``d3x4``."""
    for key in sorted(number.keys, key=str, reverse=True):
        if len(key) == 3:
            return f"{key[0]}{key[1]}x{key[2]}"
    values = [key[1] for key in number.keys if key[0] == "v" and isinstance(key[1], float)]
    spoken = f"{max(values):.10g}" if values else number.text
    return f"{spoken} percent" if re.search(r"%|per\s?cent|pct", number.text) else spoken


def canonical(text: str) -> list[str]:
    """The words of a text in order, stemmed, every number in one spelling."""
    return list((_known_canonical if len(text) <= _USUAL_LENGTH else _canonical)(text))


def _canonical(text: str) -> Sequence[str]:
    folded = fold(text)
    parts: list[str] = []
    end = 0
    for number in numbers(text, claim=False):
        if number.start < end or number.is_id:
            continue
        parts += [folded[end : number.start], f" {_spoken(number)} "]
        end = number.end
    parts.append(folded[end:])
    return [stem(word) for word in words("".join(parts))]


_known_canonical = lru_cache(maxsize=512)(_canonical)
"""Passages come again with other questions."""

_USUAL_LENGTH = 4000


def _is_weak(alias: str) -> bool:
    plain = fold(alias).strip()
    return len(plain) <= SHORT or plain.replace(",", "").replace(".", "").isdigit()


def _occurrences(phrase: Sequence[str], held: Sequence[str]) -> list[int]:
    """Where a phrase begins among the words, also where it overlaps itself.

    Source: Knuth, Morris and Pratt 1977; comparing anew at each place costs the product of the
    lengths where one word is repeated.
    """
    borders = [0] * len(phrase)
    matched = 0
    for index in range(1, len(phrase)):
        while matched and phrase[index] != phrase[matched]:
            matched = borders[matched - 1]
        matched += phrase[index] == phrase[matched]
        borders[index] = matched
    starts = []
    matched = 0
    for index, word in enumerate(held):
        while matched and (matched == len(phrase) or word != phrase[matched]):
            matched = borders[matched - 1]
        matched += word == phrase[matched]
        if matched == len(phrase):
            starts.append(index + 1 - matched)
    return starts


def _in_capitals(alias: str, text: str) -> bool:
    """An alias in capitals ("US") is another word in small letters."""
    plain = unicodedata.normalize("NFKC", clean(text))
    return re.search(rf"(?<!\w){re.escape(alias)}(?!\w)", plain) is not None


def holds(text: str, held: Sequence[str], fact: str, aliases: Sequence[str] = ()) -> bool:
    """Return True when a chunk (its text and ``canonical`` words) has a fact or one of its aliases.

    The longest wording is tried first. An alias of one or two characters, or of digits only, counts
    only with another word of the fact within five words.
    """
    context = {word for word in canonical(fact) if word not in STOP_WORDS}
    for alias in sorted({fact, *aliases}, key=lambda item: (-len(item), item)):
        name = alias.strip()
        phrase = canonical(name)
        if not phrase:
            continue
        if len(name) > 1 and name.isalpha() and name.isupper() and not _in_capitals(name, text):
            continue
        starts = _occurrences(phrase, held)
        if _is_weak(name) and context - set(phrase):
            near = context - set(phrase)
            starts = [
                start
                for start in starts
                if near & set(held[max(0, start - 5) : start + len(phrase) + 5])
            ]
        if starts:
            return True
    return False

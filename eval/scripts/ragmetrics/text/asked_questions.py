"""Finds questions asked before in nearly the same words, and how far a question is from all others.

Two questions are compared by their content words; courtesies, the words by which questions are
asked, the order, and a slip of the pen in a longer word do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ragmetrics.text.words import content_words, fold, words

NEAR = 0.75
"""Share of common content words (Jaccard) at which two questions count as the same."""

_COURTESY = """
know hi hello hey dear please thanks thank kindly tell explain show wonder wondering quick could
would like help me you i to
"""
_COURTESIES = frozenset(_COURTESY.split())
_ASKING = frozenset(
    word
    for text in [*_COURTESIES, "happens", "used", "mean", "question"]
    for word in content_words(text)
)
"""Words by which questions are asked; they tell nothing of what is asked about."""

_NEAR_WORDS = 0.9
"""The same for all words, which counts for short questions that refer to what came before."""

_SHORTEST_SLIP = 4
_LONGEST_SLIP = 64
"""A longer run of letters is no word; it would leave its square behind."""


class _Question(NamedTuple):
    """A question as its content words, and as all words but courtesies."""

    content: frozenset[str]
    every: frozenset[str]


class AskedQuestions:
    """The questions so far; each new one is compared with those that share a word."""

    def __init__(self, questions: Iterable[str] = ()) -> None:
        self._asked: list[_Question] = []
        self._by_key: dict[str, list[int]] = {}
        for text in questions:
            self._keep(_question(text))

    def add(self, text: str) -> bool:
        """Keep the question; False, and not kept, if it has no content word or is a near copy."""
        question = _question(text)
        if not question.content or self._closeness(question) >= NEAR:
            return False
        self._keep(question)
        return True

    def closeness(self, text: str) -> float:
        """The similarity to the nearest question: 1 for the same words, 0 for no common word."""
        return self._closeness(_question(text))

    def _closeness(self, question: _Question) -> float:
        near = {index for key in _keys(question) for index in self._by_key.get(key, ())}
        return max((_likeness(question, self._asked[index]) for index in near), default=0.0)

    def _keep(self, question: _Question) -> None:
        for key in _keys(question):
            self._by_key.setdefault(key, []).append(len(self._asked))
        self._asked.append(question)


def _question(text: str) -> _Question:
    """Content words but those of asking; of a question without any, all its words."""
    folded = fold(text)
    every = frozenset(words(folded))
    return _Question(frozenset(content_words(folded)) - _ASKING or every, every - _COURTESIES)


def _likeness(first: _Question, other: _Question) -> float:
    """Jaccard's index, in which a word counts as common with a slip of the pen, too."""
    likeness = _jaccard(first.content, other.content, NEAR)
    if likeness < NEAR and _jaccard(first.every, other.every, _NEAR_WORDS) >= _NEAR_WORDS:
        return 1.0
    return likeness


def _jaccard(first: frozenset[str], other: frozenset[str], near: float) -> float:
    """Slips are looked for where they could lift the index to ``near``."""
    common = len(first & other)
    smaller, larger = sorted((first - other, other - first), key=len)
    left = set(larger)
    if smaller and common + len(smaller) >= near * (common + len(larger)):
        for word in smaller:
            slip = next((item for item in sorted(left) if _is_slip(word, item)), None)
            if slip is not None:
                left.discard(slip)
                common += 1
    return common / max(1, len(first) + len(other) - common)


def _is_slip(word: str, other: str) -> bool:
    """Whether two words are one letter apart: missing, another one, or swapped with the next."""
    return not _without_a_letter(word).isdisjoint(_without_a_letter(other))


@lru_cache(maxsize=4096)
def _without_a_letter(word: str) -> frozenset[str]:
    """A longer word, and all that is left of it when one letter is missing (Garbe's SymSpell)."""
    if not _SHORTEST_SLIP <= len(word) <= _LONGEST_SLIP or not word.isalpha():
        return frozenset()
    return frozenset([word, *(word[:at] + word[at + 1 :] for at in range(len(word)))])


def _keys(question: _Question) -> frozenset[str]:
    """What two questions that are compared have in common: a word, or one with a slip."""
    return question.content.union(*map(_without_a_letter, question.content | question.every))

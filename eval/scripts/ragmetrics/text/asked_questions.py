"""Whether a question was asked before in nearly the same words, and how far it is from all others.

Two questions are compared by their content words; courtesies, the words by which questions are
asked, the order, and a slip of the pen in a longer word do not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache

from ragmetrics.text.words import content_words, fold, words

NEAR = 0.75
"""Share of common content words (Jaccard) from which on two questions count as the same."""

_ASKED_WITH = """
know happens used mean hi hello hey dear please thanks thank kindly tell explain show wonder
wondering question quick could would like help me
"""

_ASKING = frozenset(word for text in _ASKED_WITH.split() for word in content_words(text))
"""Words by which questions are asked; they tell nothing of what is asked about."""

_SHORTEST_SLIP = 5
_ALIKE = 0.8

Bag = frozenset[str]


class AskedQuestions:
    """The questions that there are; each new one is compared with those that share a word."""

    def __init__(self, questions: Iterable[str] = ()) -> None:
        self._bags: list[Bag] = []
        self._by_key: dict[str, list[int]] = {}
        for question in questions:
            self._keep(_bag(question))

    def add(self, question: str) -> bool:
        """Keep the question; False, and nothing kept, when one nearly like it is there."""
        bag = _bag(question)
        if not bag or self._closeness(bag) >= NEAR:
            return False
        self._keep(bag)
        return True

    def closeness(self, question: str) -> float:
        """How like the most similar question it is: 1 for the same words, 0 for no common word."""
        return self._closeness(_bag(question))

    def _closeness(self, bag: Bag) -> float:
        near = {index for key in _keys(bag) for index in self._by_key.get(key, ())}
        return max((_likeness(bag, self._bags[index]) for index in near), default=0.0)

    def _keep(self, bag: Bag) -> None:
        for key in _keys(bag):
            self._by_key.setdefault(key, []).append(len(self._bags))
        self._bags.append(bag)


def _bag(question: str) -> Bag:
    """Content words but those of asking; of a question without any, all its words."""
    folded = fold(question)
    return frozenset(content_words(folded)) - _ASKING or frozenset(words(folded))


def _keys(bag: Bag) -> set[str]:
    """What questions that are compared have in common: a word, or how a longer one begins."""
    return {*bag, *(f"{word[:3]}…" for word in bag if len(word) >= _SHORTEST_SLIP)}


def _likeness(first: Bag, other: Bag) -> float:
    """Jaccard's index, in which a word counts as common with a slip of the pen, too."""
    common = len(first & other)
    smaller, larger = sorted((first - other, other - first), key=len)
    if common + len(smaller) < NEAR * (common + len(larger)):
        return common / len(first | other)  # no slip could make them the same
    left = set(larger)
    for word in smaller:
        if len(word) >= _SHORTEST_SLIP and word.isalpha():
            match = next((item for item in sorted(left) if _is_slip(word, item)), None)
            if match is not None:
                left.discard(match)
                common += 1
    return common / (len(first) + len(other) - common)


@lru_cache(maxsize=4096)
def _is_slip(word: str, other: str) -> bool:
    """Whether two longer words differ by a letter or two."""
    if len(other) < _SHORTEST_SLIP or abs(len(word) - len(other)) > 2 or not other.isalpha():
        return False
    return SequenceMatcher(None, word, other, autojunk=False).ratio() >= _ALIKE

"""Is a question new? Two questions with nearly the same words ask the same."""

from __future__ import annotations

from collections.abc import Iterable

from ragmetrics.text import content_words, fold, words

NEAR = 0.75
"""Share of common content words (Jaccard) from which on two questions count as the same."""

ASKING = frozenset(
    word for text in ("know", "happens", "used", "mean") for word in content_words(text)
)
"""Words by which questions are asked; they tell nothing of what is asked about."""


class Asked:
    """The questions that there are; each new one is compared with those that share a word."""

    def __init__(self, questions: Iterable[str] = ()) -> None:
        self._kept: list[frozenset[str]] = []
        self._by_word: dict[str, list[int]] = {}
        for question in questions:
            self._keep(_bag(question))

    def add(self, question: str) -> bool:
        """Keep the question; False, and nothing kept, when one nearly like it is there."""
        bag = _bag(question)
        if not bag:
            return False
        near = {place for word in bag for place in self._by_word.get(word, ())}
        if any(_jaccard(bag, self._kept[place]) >= NEAR for place in near):
            return False
        self._keep(bag)
        return True

    def _keep(self, bag: frozenset[str]) -> None:
        for word in bag:
            self._by_word.setdefault(word, []).append(len(self._kept))
        self._kept.append(bag)


def _bag(question: str) -> frozenset[str]:
    """Content words but those of asking; of a question without any, all its words."""
    folded = fold(question)
    return frozenset(content_words(folded)) - ASKING or frozenset(words(folded))


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)

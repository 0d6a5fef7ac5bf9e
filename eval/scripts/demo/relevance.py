"""How much of a question a text speaks of, on a scale that means the same for every question.

Retrieval scores only order the chunks of one question. Abstaining and falling back need to know
whether the best chunk is any good at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from demo.tokens import terms

_FORM = (
    "can could did do does explain give how i me my our please shall should tell us we what when "
    "where which who whom whose why will would you your"
)
QUESTION_WORDS = frozenset(_FORM.split())
"""English words that make a question's form. They are rare in the texts that answer, so rarity
alone would take them for content; other small words (the, with, is) are common everywhere."""


def question_terms(question: str) -> frozenset[str]:
    """The terms of ``question`` that say what it is about; all of its terms if none does."""
    found = frozenset(terms(question))
    return found - QUESTION_WORDS or found


def coverage(
    wanted: Collection[str], found: Collection[str], rarity: Callable[[str], float]
) -> float:
    """Share of the ``wanted`` terms' rarity that ``found`` holds, in [0, 1]; 0 if none is wanted.

    ``rarity`` weighs a term, > 0.
    """
    total = sum(rarity(term) for term in wanted)
    if total <= 0:
        return 0.0
    return sum(rarity(term) for term in wanted if term in found) / total


def relevance(coverage: float, cosine: float | None, vector_weight: float) -> float:
    """Weighted mean of coverage and cosine (below 0 counts as 0), in [0, 1].

    ``vector_weight`` in [0, 1] is the retriever's; without a cosine the coverage stands alone.
    """
    if cosine is None:
        return coverage
    return (1 - vector_weight) * coverage + vector_weight * min(1.0, max(0.0, cosine))

"""An answer beside what its case expects: reference answer, expected and forbidden claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ragmetrics.claims import Chunk, score_claim
from ragmetrics.text import content_words, fold

FORBIDDEN_THRESHOLD = 0.8
"""Share of a forbidden claim's words in one sentence of the answer that counts as saying it."""


def overlap(answer: str, reference: str) -> tuple[float, float] | None:
    """(F1, recall) of content words, repeats counted, in [0, 1]; None for no word to expect."""
    ours, wanted = (Counter(content_words(fold(text))) for text in (answer, reference))
    if not wanted:
        return None
    shared = (ours & wanted).total()
    return 2 * shared / (ours.total() + wanted.total()), shared / wanted.total()


def _plainly(said: Chunk, text: str) -> bool:
    """For a claim without a content word: is it there letter by letter?"""
    return fold(text).strip() in fold(said.text)


def missing_claims(said: Chunk, expected: Sequence[str]) -> list[str]:
    """The expected claims that an answer (made ready as a chunk) does not state.

    Stated: the support scorer finds the claim in the answer, its numbers included.
    """
    found: list[str] = []
    for text in expected:
        support = score_claim(text, [said], known=said.numbers)
        if not (_plainly(said, text) if support is None else support.supported):
            found.append(text)
    return found


def stated_claims(said: Chunk, forbidden: Sequence[str]) -> list[str]:
    """The forbidden claims that one sentence of an answer states, and does not deny.

    Stated: at least 0.8 of its words and all its numbers. Denied: one of the two is negated.
    """
    found: list[str] = []
    for text in forbidden:
        support = score_claim(
            text, [said], known=said.numbers, threshold=FORBIDDEN_THRESHOLD, size=1
        )
        if support is None:
            said_so = _plainly(said, text)
        else:
            said_so = support.supported and not support.negation_mismatch
        if said_so:
            found.append(text)
    return found

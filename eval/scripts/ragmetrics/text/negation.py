"""Checks whether two texts with the same words say opposite things: a *not* on one side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ragmetrics.text.content import content_stems
from ragmetrics.text.words import fold, stem, words

_SHARED = 0.85
"""Share of the claim's other content words that the sentence must hold."""

_REACH = 4
"""Words behind a negation within which the word stands that it negates."""

NEGATIONS = frozenset({"not", "no", "never", "cannot", "neither", "nor", "none"})

_TURNS = """
only unless without nobody nothing until except lack free fail refuse reject deny prevent prohibited
forbidden banned avoid stop cease exempt unable impossible hardly rarely seldom barely otherwise
instead rather longer anymore nowhere less least most exclude missing absent void invalid optional
but either
"""

_TURNING = frozenset(map(stem, _TURNS.split()))
"""Stems of words that turn a meaning or bound it."""

_SHORT = (
    *(("can't", "cannot"), ("won't", "will not"), ("shan't", "shall not"), ("n't", " not")),
    *((" no longer ", " not "), (" any longer", ""), (" any more.", "."), (" anymore", "")),
)

_PAIR = re.compile(r"\bneither\b(.{1,80}?)\bnor\b")
"""Two negations that are one."""


def is_opposite(claim: str, sentences: Sequence[str]) -> bool:
    """Return True when the sentence with most of an English claim's words says its opposite.

    It holds at least 85 % of the claim's content words; exactly one of the two has a negation,
    once; the word that it negates is in both; and no word that turns or bounds a meaning (only,
    unless, without, fail, ...) is in one of them alone. For texts that were edited: paraphrases
    of an opposite are not seen, and of answers from passages it vetoes next to none.
    """
    ours = Side(claim)
    sides = [Side(sentence) for sentence in sentences]
    most = max(map(ours.shares, sides), default=0)
    if not most or most < _SHARED * len(ours.stems):
        return False
    return all(ours.denies(side) for side in sides if ours.shares(side) == most)


class Side:
    """A text with its negations, its turning words and its other content words."""

    def __init__(self, text: str) -> None:
        text = fold(text)
        for short, full in _SHORT:
            text = text.replace(short, full)
        text = _PAIR.sub(r"not \1and", text)
        self.words = words(text)
        self.negations = [at for at, word in enumerate(self.words) if word in NEGATIONS]
        self.turns = Counter(word for word in map(stem, self.words) if word in _TURNING)
        self.stems = content_stems(text, None).keys() - NEGATIONS

    def shares(self, other: Side) -> int:
        return len(self.stems & other.stems)

    def _swaps(self, other: Side) -> bool:
        """Whether one says *with* where the other says *without*."""
        bare, full = (self, other) if "without" in self.words else (other, self)
        without = Counter([stem("without")])
        return (
            bare.turns - full.turns == without
            and not full.turns - bare.turns
            and "with" in full.words
            and "with" not in bare.words
        )

    def denies(self, other: Side) -> bool:
        if not self.negations and not other.negations:
            return self._swaps(other)
        if sorted((len(self.negations), len(other.negations))) != [0, 1]:
            return False
        denied = self if self.negations else other
        behind = denied.negations[0] + 1
        near = [*content_stems(" ".join(denied.words[behind : behind + _REACH]), None), ""]
        return self.turns == other.turns and near[0] in self.stems & other.stems

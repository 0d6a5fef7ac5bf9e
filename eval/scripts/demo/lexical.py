"""BM25 over the terms of texts, by the library bm25s (Lucene's variant, k1 1.5, b 0.75).

In: texts. Out: a score for each of them, for any question; and how rare a term is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K1 = 1.5
B = 0.75


class LexicalIndex:
    """Scores and document frequencies. Made by ``build`` or ``load``; never changed after that."""

    def __init__(self, bm25: Any) -> None:
        import numpy as np

        self._bm25 = bm25
        self._size = int(bm25.scores["num_docs"])
        self._frequency: NDArray[np.int64] = np.diff(bm25.scores["indptr"])

    @classmethod
    def build(cls, texts: Sequence[str]) -> LexicalIndex:
        """Index ``texts``, at least one of them with a term; ValueError otherwise."""
        import bm25s

        corpus = [terms(text) for text in texts]
        if not any(corpus):
            raise ValueError("no text holds a word")
        bm25 = bm25s.BM25(k1=K1, b=B, method="lucene")
        bm25.index(corpus, show_progress=False)
        return cls(bm25)

    @classmethod
    def load(cls, folder: Path) -> LexicalIndex:
        """What ``save`` wrote; raises OSError, ValueError or KeyError when it is not whole."""
        import bm25s

        return cls(bm25s.BM25.load(str(folder), load_corpus=False))

    def save(self, folder: Path) -> None:
        """Write into ``folder``, which need not exist."""
        self._bm25.save(str(folder), show_progress=False)

    def scores(self, question: str) -> NDArray[np.float32]:
        """BM25 of each text, shape (n,), >= 0; 0 where no term is shared.

        A term counts once, however often the question repeats it.
        """
        import numpy as np

        vocabulary = self._bm25.vocab_dict
        known = [vocabulary[term] for term in dict.fromkeys(terms(question)) if term in vocabulary]
        if not known:
            return np.zeros(self._size, dtype=np.float32)
        scores: NDArray[np.float32] = self._bm25.get_scores(known)
        return scores

    def rarity(self, term: str) -> float:
        """Inverse document frequency, ``ln(1 + (N - n + 0.5) / (n + 0.5))`` with n texts that hold
        ``term`` (Robertson and Zaragoza 2009, in Lucene's form): > 0, largest for unknown terms.
        """
        place = self._bm25.vocab_dict.get(term)
        n = 0 if place is None else int(self._frequency[place])
        return math.log(1 + (self._size - n + 0.5) / (n + 0.5))

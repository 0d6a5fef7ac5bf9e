"""TF-IDF cosines between chunks, weighted by the document frequencies of a whole run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ragmetrics.stats.arrays import Floats, NDArray, np
from ragmetrics.text.words import clean, fold, words

if TYPE_CHECKING:
    Matrix = Floats


_FEATURES = 1 << 20

BLOCK = 512

_FRESH = 1 << 14
"""Hashes that are kept in a set before they are merged into the sorted ones."""


class _HashSet:
    """Which texts were seen: 8 bytes each, where a set of digests takes a hundred and more.

    Two texts are taken for one when their 64-bit hashes agree: among a million texts the chance is
    below 3 in 10^8 (n^2 / 2^65).
    """

    def __init__(self) -> None:
        self._sorted: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
        self._fresh: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._fresh)

    def add(self, text: str) -> bool:
        """True when the text is new."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        key = int.from_bytes(digest, "little")
        if key in self._fresh or self._is_sorted_in(key):
            return False
        self._fresh.add(key)
        if len(self._fresh) >= max(_FRESH, len(self._sorted) // 8):
            self._merge()
        return True

    def _is_sorted_in(self, key: int) -> bool:
        hashed = np.uint64(key)
        index = int(self._sorted.searchsorted(hashed))
        return index < len(self._sorted) and bool(self._sorted[index] == hashed)

    def _merge(self) -> None:
        fresh = np.fromiter(self._fresh, dtype=np.uint64, count=len(self._fresh))
        self._sorted = np.concatenate([self._sorted, fresh])
        self._sorted.sort()
        self._fresh = set()


def tokens(text: str) -> list[str]:
    """The words of a text, case and width folded; no word is left out."""
    return words(fold(text))


class Frequencies:
    """Document frequencies of a run's distinct chunks, gathered in one streaming pass.

    Weights are scikit-learn's: (1 + ln tf) x (ln((1 + n) / (1 + df)) + 1), L2-normalised, words
    hashed into 2^20 places so that memory stays flat. Words as everywhere here, case and width
    folded.
    """

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self._hasher: Any = HashingVectorizer(
            analyzer=tokens, n_features=_FEATURES, alternate_sign=False, norm=None
        )
        self._seen = _HashSet()
        self._waiting: list[str] = []
        self._df: Any = None
        self._model: Any = None

    def add(self, texts: Iterable[str]) -> None:
        """Count each text that was not counted before."""
        for text in texts:
            if self._seen.add(text):
                self._waiting.append(clean(text))
                if len(self._waiting) >= BLOCK:
                    self._count()
        self._model = None

    def _count(self) -> None:
        if self._df is None:
            self._df = np.zeros(_FEATURES)
        if self._waiting:
            counts = self._hasher.transform(self._waiting)
            self._df += np.bincount(counts.indices, minlength=_FEATURES)
            self._waiting = []

    def similarity(self, texts: Sequence[str]) -> Matrix:
        """Cosines of all pairs of texts, shape (k, k), in [0, 1]; equal texts have exactly 1.0.

        Texts that were never added are weighted with the frequencies of those that were.
        """
        from sklearn.feature_extraction.text import TfidfTransformer

        if self._model is None:
            self._count()
            self._model = TfidfTransformer(sublinear_tf=True)
            self._model.idf_ = np.log((1 + len(self._seen)) / (1 + self._df)) + 1
        rows = self._model.transform(self._hasher.transform([clean(text) for text in texts]))
        cosines: Matrix = np.clip((rows @ rows.T).toarray(), 0.0, 1.0)
        cosines[cosines > 1 - 1e-9] = 1.0
        for i, j in combinations(range(len(texts)), 2):
            if texts[i] == texts[j]:
                cosines[i, j] = cosines[j, i] = 1.0
        return cosines

"""TF-IDF cosines between chunks, weighted by the document frequencies of a whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import combinations
from typing import TYPE_CHECKING

from ragmetrics.stats.arrays import Floats, NDArray, np
from ragmetrics.text.words import clean, fold, words

if TYPE_CHECKING:
    Matrix = Floats


_FEATURES = 1 << 20

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
    folded. The numbers are scikit-learn's to the last bit; importing it would cost more than all
    the rest of the demo's section.
    """

    def __init__(self) -> None:
        self._seen = _HashSet()
        self._df: Floats = np.zeros(_FEATURES)

    def add(self, texts: Iterable[str]) -> None:
        """Count each text that was not counted before."""
        for text in texts:
            if self._seen.add(text):
                self._df[[*_counts(text)]] += 1

    def similarity(self, texts: Sequence[str]) -> Matrix:
        """Cosines of all pairs of texts, shape (k, k), in [0, 1]; equal texts have exactly 1.0.

        Texts that were never added are weighted with the frequencies of those that were.
        """
        rows = self._weights([_counts(text) for text in texts])
        cosines: Matrix = np.zeros((len(texts), len(texts)))
        for number, row in enumerate(rows):
            places = np.flatnonzero(row)  # the others would add 0
            if len(places):
                cosines[number] = _sums(row[places] * rows[:, places])
        cosines = np.clip(cosines, 0.0, 1.0)
        cosines[cosines > 1 - 1e-9] = 1.0
        for i, j in combinations(range(len(texts)), 2):
            if texts[i] == texts[j]:
                cosines[i, j] = cosines[j, i] = 1.0
        return cosines

    def _weights(self, texts: Sequence[Mapping[int, int]]) -> Matrix:
        """A row of length 1 for each text, a column for each place that any of them has."""
        places = sorted({place for counts in texts for place in counts})
        columns = {place: column for column, place in enumerate(places)}
        rows: Matrix = np.zeros((len(texts), len(places)))
        for row, counts in zip(rows, texts, strict=True):
            row[[columns[place] for place in counts]] = [*counts.values()]
        there = rows > 0
        rows[there] = np.log(rows[there]) + 1
        rows *= np.log((1 + len(self._seen)) / (1 + self._df[places])) + 1
        lengths = np.sqrt(_sums(rows * rows)) if places else np.zeros(len(texts))
        lengths[lengths == 0] = 1
        return rows / lengths[:, None]


def _sums(rows: Matrix) -> Floats:
    """The sum of each row, added up from left to right as sparse matrices are."""
    sums: Floats = np.add.accumulate(rows, axis=1)[:, -1]
    return sums


def _counts(text: str) -> Counter[int]:
    """How often each place has a word of the text."""
    return Counter(map(_bucket, tokens(clean(text))))


_32 = 0xFFFFFFFF


def _mixed(block: int) -> int:
    block = block * 0xCC9E2D51 & _32
    return (block << 15 | block >> 17) * 0x1B873593 & _32


@lru_cache(maxsize=1 << 16)
def _bucket(word: str) -> int:
    """The place of a word: the size of its MurmurHash3 (x86, 32 bits, seed 0, signed)."""
    data = word.encode()
    whole = len(data) & -4
    hashed = 0
    for block in memoryview(data[:whole]).cast("I"):
        hashed ^= _mixed(block)
        hashed = ((hashed << 13 & _32 | hashed >> 19) * 5 + 0xE6546B64) & _32
    hashed ^= _mixed(int.from_bytes(data[whole:], "little"))
    hashed ^= len(data)
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _32
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _32
    hashed ^= hashed >> 16
    return min(hashed, 2**32 - hashed) % _FEATURES

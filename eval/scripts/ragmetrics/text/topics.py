"""Topics of short texts: groups of similar vectors, and the words that a group has alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from typing import TYPE_CHECKING, Any

from ragmetrics.text.words import STOP_WORDS, fold, stem, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

COUNTS = (5, 10, 20)
"""The numbers of topics into which the same texts are divided."""

_PER_TOPIC, _STARTS, _STEPS, _TELLING = 6, 3, 15, 3


def topics(vectors: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """For each of COUNTS that the number of texts allows, the topic of each text, from 0 up.

    ``vectors``: unit vectors, shape (n, d). Spherical k-means, the best of three starts
    (k-means++); the same vectors give the same topics.
    """
    for count in COUNTS:
        if len(vectors) >= _PER_TOPIC * count:
            yield max((_divided(vectors, count, start) for start in range(_STARTS)), key=_fit)[1]


def _fit(division: tuple[float, NDArray[Any]]) -> float:
    return division[0]


def _divided(vectors: NDArray[Any], count: int, seed: int) -> tuple[float, NDArray[Any]]:
    """How similar texts are to the centres of their topics, and their topics."""
    import numpy as np

    rng = np.random.default_rng([count, seed])
    centres = vectors[[int(rng.integers(len(vectors)))]]
    while len(centres) < count:
        distance = np.clip(1 - (vectors @ centres.T).max(axis=1), 1e-9, None).astype(float)
        chosen = int(rng.choice(len(vectors), p=distance / distance.sum()))
        centres = np.concatenate([centres, vectors[[chosen]]])
    for _ in range(_STEPS):
        similarity = vectors @ centres.T
        topic = similarity.argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, topic, vectors)
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(length > 0, sums / np.maximum(length, 1e-12), centres)
    return float(similarity.max(axis=1).sum()), topic


def word_sets(texts: Sequence[str]) -> tuple[list[frozenset[str]], dict[str, str]]:
    """The stems of the words of each text, and how each stem is written most often."""
    spelled: dict[str, Counter[str]] = {}
    sets = []
    for text in texts:
        stems = {stem(word): word for word in words(fold(text))}
        for key, word in stems.items():
            spelled.setdefault(key, Counter())[word] += 1
        sets.append(frozenset(stems))
    return sets, {key: max(counts, key=lambda w: counts[w]) for key, counts in spelled.items()}


def telling_words(stems: Sequence[frozenset[str]], members: Sequence[bool]) -> list[str]:
    """Up to three stems of the members that are rare in other texts, the most specific first."""
    inside: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    for own, member in zip(stems, members, strict=True):
        (inside if member else outside).update(own)
    count = sum(members)
    others = len(members) - count

    def lift(key: str) -> float:
        return inside[key] * log((inside[key] / count) * (others + 1) / (outside[key] + 0.5))

    known = (key for key in inside if inside[key] > 1 and key not in STOP_WORDS)
    return sorted(known, key=lambda key: (-lift(key), key))[:_TELLING]

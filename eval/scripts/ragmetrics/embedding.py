"""Metrics of sentence vectors: how near question, contexts, answer and reference are in meaning.

Vectors come from outside, with L2 norm 1, as float arrays of shape (n, d); a text that is longer
than the model reads comes as several of them, one a window. A cosine lies in [-1, 1] and is rounded
to 6 places, so that a text is exactly 1.0 like itself; negative cosines stay negative.

Nearness is no truth: these numbers are blind to negation and to reversed facts.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ragmetrics.text.words import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_DECIMALS = 6
BLOCK = 256
"""Texts that are compared at once, so that two texts of a megabyte need no gigabyte."""
_WINDOW_SENTENCES = 3
_MOST_PAIRS = 2_000_000
SUFFICIENT = 0.5
HALLUCINATED = 0.4
HALLUCINATED_WINDOWS = 0.65


def cosines(first: Vectors, second: Vectors) -> NDArray[np.float64]:
    """Cosine of each row of ``first`` with each row of ``second``: shape (n, m), values in [-1, 1].

    Sums run in double precision and are rounded, so a vector of norm 1 has cosine 1.0 with itself.
    """
    import numpy as np

    product = first.astype(np.float64) @ second.astype(np.float64).T
    return np.clip(np.round(product, _DECIMALS), -1.0, 1.0)


def nearest(texts: Sequence[Vectors], other: Sequence[Vectors]) -> NDArray[np.float64]:
    """Best cosine between the windows of each text and those of each other text: shape (n, m).

    Taking the best window asks whether the other text speaks of this one *somewhere*.
    """
    import numpy as np

    if not texts or not other:
        return np.zeros((len(texts), len(other)))
    others, starts = np.concatenate(list(other)), _starts(other)
    blocks = []
    for first in range(0, len(texts), BLOCK):
        block = texts[first : first + BLOCK]
        whole = cosines(np.concatenate(list(block)), others)
        rows = np.maximum.reduceat(whole, _starts(block), axis=0)
        blocks.append(np.maximum.reduceat(rows, starts, axis=1))
    return np.concatenate(blocks)


def _starts(texts: Sequence[Vectors]) -> list[int]:
    starts = [0]
    for text in texts[:-1]:
        starts.append(starts[-1] + len(text))
    return starts


def _pooled(windows: Vectors) -> Vectors:
    """One vector for a text of several windows: their mean, at norm 1; shape (1, d).

    For comparing two texts as wholes, where the best pair of windows would say too much.
    """
    import numpy as np

    if len(windows) == 1:
        return windows
    mean = windows.astype(np.float64).mean(axis=0, keepdims=True)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length else mean)


def whole_similarity(first: Vectors, second: Vectors) -> float:
    """Cosine of two texts as wholes, -1 to 1 (1 the same). Undefined for texts without windows."""
    return float(cosines(_pooled(first), _pooled(second))[0, 0])


def context_relevance(similarities: Sequence[float]) -> dict[str, float | None]:
    """From cosine(question, context) of each context: the mean, the best, the mean of the best 3.

    -1 to 1. The mean falls as more contexts are asked for; the other two do not. None without
    contexts.
    """
    if not len(similarities):
        return dict.fromkeys(("mean", "max", "top3"))
    ordered = sorted(map(float, similarities), reverse=True)
    return {"mean": _mean(ordered), "max": ordered[0], "top3": _mean(ordered[:3])}


def share_from(similarities: Sequence[float], threshold: float) -> float | None:
    """Share of values that reach the threshold, 0-1; None without values."""
    if not len(similarities):
        return None
    return sum(value >= threshold for value in similarities) / len(similarities)


def share_below(similarities: Sequence[float], threshold: float) -> float | None:
    """Share of values under the threshold, 0-1 (of sentences: unsupported ones); None without."""
    share = share_from(similarities, threshold)
    return None if share is None else 1.0 - share


def answer_relevance(similarities: NDArray[np.float64]) -> float | None:
    """Mean, over reference sentences (rows), of the best answer sentence (columns); -1 to 1.

    1: every sentence of the reference stands in the answer. None when either has no sentence.
    """
    if not similarities.size:
        return None
    return _mean(similarities.max(axis=1).tolist())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def sentence_windows(sentences: Sequence[str], most: int = _WINDOW_SENTENCES) -> list[str]:
    """All runs of 1 to ``most`` consecutive sentences, each as one text, without repeats."""
    runs = (
        " ".join(sentences[start : start + size])
        for size in range(1, most + 1)
        for start in range(len(sentences) - size + 1)
    )
    return list(dict.fromkeys(runs))


def too_many_pairs(sentences: int, windows: int) -> bool:
    """True for texts so long (megabytes) that comparing each sentence with each window is out."""
    return sentences * windows > _MOST_PAIRS


def likely_windows(
    sentences: Sequence[str], windows: Sequence[str], most: int = 12
) -> dict[str, list[str]]:
    """For each sentence the windows that share most words with it, shorter ones first on ties.

    Where to look first, nothing more: whether a window supports the sentence its vector says.
    """
    held = [(_word_set(window), len(window), window) for window in windows]
    likely = {}
    for sentence in sentences:
        sentence_words = _word_set(sentence)
        ranked = heapq.nsmallest(most, held, key=partial(_distance, sentence_words))
        likely[sentence] = [window for _, _, window in ranked]
    return likely


def _distance(
    sentence_words: frozenset[str], window: tuple[frozenset[str], int, str]
) -> tuple[int, int]:
    held, length, _ = window
    return -len(sentence_words & held), length


def _word_set(text: str) -> frozenset[str]:
    return frozenset(words(text.casefold()))


def flat(text: str) -> str:
    """A text for literal comparison: casefolded, white space as single blanks, no outer stops."""
    return " ".join(text.casefold().split()).strip(" .:;,!?")


def as_list(values: Any) -> list[float]:
    """An array's values as plain floats."""
    return [float(value) for value in values]

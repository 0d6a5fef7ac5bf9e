"""A small linear text model: which words and letter groups an attack tends to use.

Features are single words, pairs of neighbouring words and the 3-5 letter groups inside each word,
hashed into a fixed number of buckets, so that the shipped weights hold no text. Words and letter
groups are two blocks; within each, a count n weighs 1 + ln n and the block has length 1. Five
features of the form (capitals, exclamation marks, line breaks, quotes, a question at the end) are
added at a quarter of that, and the logarithm of the length at twice: the same words mean less in a
short question. The prediction is the logistic function of weights . features + bias.

Inference is plain Python and linear in the text: letter groups are hashed once for each distinct
word. Training is in `fitting`.
"""

from __future__ import annotations

import base64
import math
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from guardrails.normalise import fold, words

BUCKETS = 1 << 17
_WINDOW_WORDS = 800  # a longer text is read in windows, so that a short attack is not diluted
_STEP_WORDS = 400
_MAX_WORD = 40  # letters of one word that are looked at
_FORM_SHARE = 0.25
_LENGTH_SHARE = 2.0
_LONG = 8.0  # natural logarithm of the characters from which a text is merely long, about 3,000


def _bucket(feature: str) -> int:
    return zlib.crc32(feature.encode("utf-8", "surrogatepass")) % BUCKETS


def _letter_groups(word: str) -> list[int]:
    padded = f" {word[:_MAX_WORD]} "
    return [
        _bucket("c:" + padded[start : start + size])
        for size in (3, 4, 5)
        for start in range(len(padded) - size + 1)
    ]


def _unit(counts: Counter[int]) -> Iterator[tuple[int, float]]:
    values = {bucket: 1.0 + math.log(count) for bucket, count in counts.items()}
    length = math.sqrt(sum(value * value for value in values.values()))
    return ((bucket, value / length) for bucket, value in values.items())


def form(text: str) -> dict[int, float]:
    """Describe a text apart from its words by five features of 0 to 0.25 and its length, 0 to 2.

    {} for no text.
    """
    if not text:
        return {}
    shares = {
        "capitals": min(1.0, 5 * sum(char.isupper() for char in text) / len(text)),
        "exclamations": min(3, text.count("!")) / 3,
        "lines": min(10, text.count("\n")) / 10,
        "quotes": min(6, text.count('"')) / 6,
        "question": float(text.rstrip().endswith("?")),
    }
    features = {_bucket("f:" + name): _FORM_SHARE * share for name, share in shares.items()}
    length = min(1.0, math.log1p(len(text)) / _LONG)
    return features | {_bucket("f:length"): _LENGTH_SHARE * length}


class Featurizer:
    """Turns words into hashed features; keeps each distinct word's letter groups."""

    def __init__(self) -> None:
        self._groups: dict[str, list[int]] = {}

    def features(self, tokens: Sequence[str], look: Mapping[int, float]) -> dict[int, float]:
        """Bucket to value for folded words of a text with this `form`; empty for no words."""
        if not tokens:
            return {}
        by_word: Counter[int] = Counter()
        by_letters: Counter[int] = Counter()
        for token, count in Counter(tokens).items():
            by_word[_bucket("w:" + token[:_MAX_WORD])] += count
            groups = self._groups.get(token)
            if groups is None:
                groups = self._groups[token] = _letter_groups(token)
            for bucket in groups:
                by_letters[bucket] += count
        for (first, second), count in Counter(pairwise(tokens)).items():
            by_word[_bucket(f"b:{first[:_MAX_WORD]} {second[:_MAX_WORD]}")] += count
        weights: dict[int, float] = {}
        for block in (by_word, by_letters):
            for bucket, value in _unit(block):
                weights[bucket] = weights.get(bucket, 0.0) + value
        for bucket, value in look.items():
            weights[bucket] = weights.get(bucket, 0.0) + value
        return weights


def windows(folded: str) -> Iterator[list[str]]:
    """The words of a folded text, in overlapping windows when there are many."""
    tokens = [match.group() for match in words(folded)]
    yield tokens[:_WINDOW_WORDS]
    for start in range(_STEP_WORDS, len(tokens) - _STEP_WORDS, _STEP_WORDS):
        yield tokens[start : start + _WINDOW_WORDS]


def sigmoid(value: float) -> float:
    """The logistic function, safe for any value, also infinite ones."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    return math.exp(value) / (1.0 + math.exp(value))


def logit(probability: float) -> float:
    """The log-odds of a probability, 0-1; infinite at both ends. The inverse of `sigmoid`."""
    if probability <= 0.0:
        return -math.inf
    return math.log(probability / (1.0 - probability)) if probability < 1.0 else math.inf


@dataclass(frozen=True)
class LinearModel:
    """Weights by bucket and a bias, which includes the calibration."""

    weights: Mapping[int, float]
    bias: float

    def logit(self, features: Mapping[int, float]) -> float:
        """Weighted sum of the features plus the bias, unbounded; the bias alone without known
        features."""
        get = self.weights.get
        return self.bias + sum(value * get(bucket, 0.0) for bucket, value in features.items())

    def probability(self, text: str) -> float:
        """The highest probability of any window of a text, 0-1; 0 without words."""
        featurizer = Featurizer()
        look = form(text)
        best = 0.0
        for tokens in windows(fold(text).text):
            if tokens:
                best = max(best, sigmoid(self.logit(featurizer.features(tokens, look))))
        return best

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LinearModel:
        """Read packed numbers: buckets, and weights as small integers, both in base64.

        Raises ValueError when they were made for other features.
        """
        if data["buckets"] != BUCKETS:
            raise ValueError(f"the model has {data['buckets']} buckets, this code has {BUCKETS}")
        values = _unpack("b", data["weights"])
        scale = float(data["scale"])
        indices = _unpack("I", data["indices"])
        if len(indices) != len(values):
            raise ValueError("the model's indices and weights differ in number")
        return cls(
            {index: value * scale for index, value in zip(indices, values, strict=True)},
            float(data["bias"]),
        )


def _unpack(kind: str, packed: str) -> array[int]:
    values: array[int] = array(kind)
    values.frombytes(base64.b64decode(packed))
    if sys.byteorder == "big":
        values.byteswap()
    return values

"""Train the linear model of `linear` (development only; needs scikit-learn and numpy).

Logistic regression with an L2 penalty on the hashed features, both classes weighing the same, and
within a class each set by the root of its size, so that no large set decides what an attack looks
like; then the smallest weights are dropped. Training on equal classes makes a probability of 0.5
far too eager for real use, where attacks are rare, so the bias is lowered by `_CAUTION`; the value
was chosen on predictions with one set left out, where about one benign prompt in fifty is then
flagged. So was the penalty: a model fitted closely learns what a set looks like, and a loose one
forgets the attacks that it was shown.
"""

from __future__ import annotations

import base64
import math
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from guardrails.linear import BUCKETS, Featurizer, LinearModel, form, windows
from guardrails.normalise import fold

_PENALTY = 4.0  # scikit-learn's C
_KEEP = 30_000  # weights
_CAUTION = 1.9  # taken off the bias, in logits


def featurize(texts: Sequence[str]) -> list[dict[int, float]]:
    """Hashed features of each text's first window."""
    featurizer = Featurizer()
    return [featurizer.features(next(windows(fold(text).text)), form(text)) for text in texts]


def fit(
    features: Sequence[dict[int, float]],
    labels: Sequence[int],
    sets: Sequence[str],
    *,
    penalty: float = _PENALTY,
    keep: int = _KEEP,
    caution: float = _CAUTION,
) -> LinearModel:
    """A model for `labels` (1 attack, 0 benign); `sets` names the set that each text is of.

    Raises ValueError when a class is missing.
    """
    if len(set(labels)) != 2:
        raise ValueError("training needs attacks and benign texts")
    import numpy as np
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    counts = [len(row) for row in features]
    matrix = csr_matrix(
        (
            np.fromiter(chain.from_iterable(map(dict.values, features)), float, sum(counts)),
            np.fromiter(chain.from_iterable(features), np.int64, sum(counts)),
            np.concatenate([[0], np.cumsum(counts)]),
        ),
        shape=(len(features), BUCKETS),
    )
    regression = LogisticRegression(C=penalty, max_iter=500)
    with threadpool_limits(1):  # several threads add up in another order each time
        regression.fit(matrix, np.asarray(labels), sample_weight=_shares(labels, sets))
    weights = regression.coef_[0]
    top = np.argsort(-np.abs(weights), kind="stable")[:keep]
    return LinearModel(
        {int(bucket): float(weights[bucket]) for bucket in sorted(top) if weights[bucket] != 0},
        float(regression.intercept_[0]) - caution,
    )


def _shares(labels: Sequence[int], sets: Sequence[str]) -> list[float]:
    """The weight of each text; they add up to half the number of texts in each class."""
    sizes = Counter(zip(sets, labels, strict=True))
    shares = [1 / math.sqrt(sizes[pair]) for pair in zip(sets, labels, strict=True)]
    totals = dict.fromkeys(labels, 0.0)
    for label, share in zip(labels, shares, strict=True):
        totals[label] += share
    return [
        share * len(labels) / 2 / totals[label] for label, share in zip(labels, shares, strict=True)
    ]


def packed(model: LinearModel) -> dict[str, Any]:
    """The model as `LinearModel.from_json` reads it: its buckets and, as small integers, its
    weights, both packed in base64."""
    scale = max((abs(weight) for weight in model.weights.values()), default=1.0) / 127
    order = sorted(b for b, weight in model.weights.items() if round(weight / scale))
    return {
        "buckets": BUCKETS,
        "bias": round(model.bias, 6),
        "scale": scale,
        "indices": _pack("I", order),
        "weights": _pack("b", [round(model.weights[bucket] / scale) for bucket in order]),
    }


def _pack(kind: str, values: Sequence[int]) -> str:
    numbers = array(kind, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode("ascii")

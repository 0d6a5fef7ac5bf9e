"""Which metrics go together: correlations of all pairs over the answers that have both scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ragmetrics.labelfit import pearson, spearman

Method = Literal["spearman", "pearson"]
LEAST = 3
"""Fewer pairs always correlate perfectly or not at all."""


def matrix(columns: Sequence[Sequence[float]], method: Method = "spearman") -> dict[str, Any]:
    """``r`` and ``n`` as symmetric lists of lists; columns hold NaN where there is no score.

    r lies in [-1, 1] and is None with fewer than 3 pairs or when one side is constant among them;
    n counts the pairs; on the diagonal a metric meets itself. Spearman's is Pearson's of the ranks,
    ties sharing their mean rank.
    """
    import numpy as np

    measure = spearman if method == "spearman" else pearson
    table = [np.asarray(column, dtype=float) for column in columns]
    known = [~np.isnan(column) for column in table]
    size = len(columns)
    r: list[list[float | None]] = [[None] * size for _ in range(size)]
    n = [[0] * size for _ in range(size)]
    for one in range(size):
        for other in range(one + 1):
            both = known[one] & known[other]
            n[one][other] = n[other][one] = count = int(both.sum())
            if count >= LEAST:
                x, y = table[one][both], table[other][both]
                r[one][other] = r[other][one] = measure(x.tolist(), y.tolist())
    return {"r": r, "n": n}

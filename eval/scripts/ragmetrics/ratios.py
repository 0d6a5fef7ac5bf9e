"""Ratios of sums over cases (F1), which are no means of cases, with their bootstrap interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragmetrics import stats

if TYPE_CHECKING:
    import numpy as np

Parts = tuple[float, float]
"""What a case adds to true positives, and to false positives plus false negatives."""


def f1(hits: float, wrong: float) -> float | None:
    """2 hits / (2 hits + wrong) in [0, 1]; None when nothing was to be found and nothing was."""
    return 2 * hits / (2 * hits + wrong) if hits or wrong else None


def f1_interval(
    counts: Mapping[Parts, int], rng: np.random.Generator, resamples: int = stats.RESAMPLES
) -> tuple[float, float] | None:
    """95 % percentile interval of F1 by resampling cases: ``counts[parts]`` cases added ``parts``.

    Resamples in which F1 is undefined are left out; None without cases, or when all are.
    """
    import numpy as np

    n = sum(counts.values())
    if not n:
        return None
    parts = np.array(sorted(counts), dtype=float)
    shares = np.array([counts[key] for key in sorted(counts)]) / n
    draws = rng.multinomial(n, shares, size=resamples)
    hits, wrong = ((draws * column).sum(axis=1) for column in parts.T)  # no BLAS: see stats.py
    defined = hits + wrong > 0
    if not defined.any():
        return None
    values = 2 * hits[defined] / (2 * hits[defined] + wrong[defined])
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)

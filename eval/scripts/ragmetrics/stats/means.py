"""Shares, Wilson's interval, F1 with its interval by resampling, seeded generators; pure.

No sum is left to a BLAS, whose order of adding up is the machine's: the same values give the same
bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from math import sqrt

from ragmetrics.stats.arrays import np

RESAMPLES = 10_000

Z95 = 1.959963984540054

UNRELIABLE_BELOW = 20
"""Cases under which an interval is printed with a warning."""


def share_from(values: Sequence[float], threshold: float) -> float | None:
    """Share of values that reach the threshold, 0-1; None without values."""
    if not len(values):
        return None
    return sum(value >= threshold for value in values) / len(values)


def wilson(successes: float, n: float) -> tuple[float, float]:
    """95 % interval of a proportion (Wilson 1927), within [0, 1].

    Raises ValueError for n < 1. Keeps its coverage at few cases and at rates near 0 or 1.
    """
    if n < 1:
        raise ValueError("an interval needs at least one value")
    p = successes / n
    centre = p + Z95**2 / (2 * n)
    spread = Z95 * sqrt(p * (1 - p) / n + Z95**2 / (4 * n**2))
    scale = 1 + Z95**2 / n
    low, high = (centre - spread) / scale, (centre + spread) / scale
    return (0.0 if successes == 0 else max(0.0, low), 1.0 if successes == n else min(1.0, high))


def generator(seed: int, name: str) -> np.random.Generator:
    """The random generator of one metric: adding a metric leaves the draws of others alone."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


Parts = tuple[float, float]
"""A case's counts of true positives, and of false positives plus false negatives."""


def f1(hits: float, wrong: float) -> float | None:
    """2 hits / (2 hits + wrong) in [0, 1]; None when nothing was to be found and nothing was."""
    return 2 * hits / (2 * hits + wrong) if hits or wrong else None


def f1_interval(
    counts: Mapping[Parts, int], rng: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[float, float] | None:
    """95 % percentile interval of F1 by resampling cases, or clusters of cases: ``counts[parts]``
    of them added ``parts``.

    Resamples in which F1 is undefined are left out; None without cases, or when all are.
    """
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

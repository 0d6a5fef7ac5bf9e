"""Means with their uncertainty: seeded bootstrap, Wilson interval; pure functions.

Values come with counts (``values[i]`` occurred ``counts[i]`` times), since most metrics have few
distinct values: resampling then costs one multinomial draw instead of one draw a case. No sum is
left to a BLAS, whose order of adding up is the machine's: the same values give the same bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from math import fsum, sqrt
from typing import TYPE_CHECKING

from ragmetrics.stats import exact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


RESAMPLES = 10_000

Z95 = 1.959963984540054

UNRELIABLE_BELOW = 20
"""Cases under which an interval is printed with a warning."""

DRAWN_CASES = 500

_NEARLY_NORMAL = 0.05
"""Skewness of the mean up to which its percentiles come from the expansion."""

_BLOCK = 1 << 21


def wilson(successes: float, n: int) -> tuple[float, float]:
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
    import numpy as np

    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def bootstrap_mean(
    values: Floats, counts: NDArray[np.int64], rng: np.random.Generator, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of the mean by resampling the n = counts.sum() values.

    Up to 500 cases, and for very skewed values, ``resamples`` are drawn. For more cases the
    percentiles of the same bootstrap distribution, whose cumulants are known, come from its
    Cornish-Fisher expansion: the error is below that of 10,000 draws, and nothing is drawn.
    Raises ValueError without values.
    """
    import numpy as np

    n = int(counts.sum())
    if n < 1:
        raise ValueError("an interval needs at least one value")
    values, counts = values[counts > 0], counts[counts > 0]
    if len(values) == 1:
        return float(values[0]), float(values[0])
    centre = exact.mean(values, counts)
    sigma, skew = _shape(values - centre, counts, n)
    if n > DRAWN_CASES and abs(skew) <= _NEARLY_NORMAL:
        # z + skew (z² - 1) / 6 at z = ±1.96 (Cornish and Fisher 1938); the next terms are O(1/n)
        shift = skew * (Z95**2 - 1) / 6
        return centre + sigma * (shift - Z95), centre + sigma * (shift + Z95)
    one_by_one = n < 8 * len(values)
    step = max(1, _BLOCK // (n if one_by_one else len(values)))
    every = np.repeat(values, counts if one_by_one else 1)
    means: list[Floats] = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        if one_by_one:
            means.append(every[rng.integers(0, n, size=(size, n), dtype=np.int32)].mean(axis=1))
        else:
            draws = rng.multinomial(n, counts / n, size=size)
            means.append((draws * values).sum(axis=1) / n)
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)


_CUBE_OVERFLOWS = 1e100
"""Deviations from which on the sum of the cubes may leave the range of floats."""


def _shape(deviations: Floats, counts: NDArray[np.int64], n: int) -> tuple[float, float]:
    """Standard deviation and skewness of the bootstrap distribution of the mean."""
    largest = float(abs(deviations).max())
    if largest > _CUBE_OVERFLOWS:
        sigma, skew = _shape(deviations / largest, counts, n)
        return sigma * largest, skew
    squares = deviations * deviations * counts
    variance = fsum(squares.tolist()) / n
    third = fsum((squares * deviations).tolist()) / n
    cubed = variance * sqrt(variance)
    return sqrt(variance / n), third / (cubed * sqrt(n)) if cubed else 0.0


Parts = tuple[float, float]
"""What a case adds to true positives, and to false positives plus false negatives."""


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

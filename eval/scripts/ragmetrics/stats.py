"""Means with their uncertainty: seeded bootstrap, Wilson interval; pure functions.

Values come with counts (``values[i]`` occurred ``counts[i]`` times), since most metrics have few
distinct values: resampling then costs one multinomial draw instead of one draw a case.
"""

from __future__ import annotations

import zlib
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 10_000
Z95 = 1.959963984540054
UNRELIABLE_BELOW = 20
"""Cases under which an interval is printed with a warning."""
EXACT_CASES = 2048
EXACT_VALUES = 32
BINS = 16
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

    Exact draws where they are cheap: a multinomial over up to 32 distinct values, or value by
    value up to 2,048 cases. Beyond that the values are put into 16 equal bins, each standing for
    the mean of its values, and the deviations are scaled to the true variance: mean and variance
    of the bootstrap distribution are kept, its skewness (of order 1/sqrt(n)) nearly so.
    Raises ValueError without values.
    """
    import numpy as np

    n = int(counts.sum())
    if n < 1:
        raise ValueError("an interval needs at least one value")
    if len(values) == 1:
        return float(values[0]), float(values[0])
    if n <= EXACT_CASES and n < 8 * len(values):
        every = np.repeat(values, counts)
        step = max(1, _BLOCK // n)
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        draws = (rng.integers(0, n, size=(size, n), dtype=np.int32) for size in sizes)
        means = np.concatenate([every[draw].mean(axis=1) for draw in draws])
    elif len(values) <= EXACT_VALUES:
        means = rng.multinomial(n, counts / n, size=resamples) @ values / n
    else:
        centre = float(values @ counts) / n
        binned, weights = _binned(values, counts)
        means = rng.multinomial(n, weights / n, size=resamples) @ binned / n
        spread = ((values - centre) ** 2 @ counts) / ((binned - centre) ** 2 @ weights)
        means = centre + (means - centre) * np.sqrt(spread)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _binned(values: Floats, counts: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """At most 16 values that stand for many, with their counts; the overall mean is kept."""
    import numpy as np

    low, high = float(values.min()), float(values.max())
    place = np.minimum(((values - low) / (high - low) * BINS).astype(np.int64), BINS - 1)
    number = np.bincount(place, weights=counts, minlength=BINS)
    total = np.bincount(place, weights=values * counts, minlength=BINS)
    kept = number > 0
    return total[kept] / number[kept], number[kept].astype(np.int64)

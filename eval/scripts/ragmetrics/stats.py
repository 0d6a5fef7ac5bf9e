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
MAX_BINS = 128
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

    With up to 128 distinct values the draw is exact (a multinomial over them). Many distinct
    values of few cases are drawn one by one, exact too. Many distinct values of many cases are put
    into 128 equal bins, each standing for the mean of its values: the overall mean is kept and
    the variance shrinks by at most (range / 128)^2 / 12, under a thousandth of the interval.
    Raises ValueError without values.
    """
    import numpy as np

    n = int(counts.sum())
    if n < 1:
        raise ValueError("an interval needs at least one value")
    if len(values) == 1:
        return float(values[0]), float(values[0])
    if len(values) > MAX_BINS and n <= 16 * MAX_BINS:
        every = np.repeat(values, counts)
        step = max(1, _BLOCK // n)
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        means = np.concatenate(
            [
                every[rng.integers(0, n, size=(size, n), dtype=np.int32)].mean(axis=1)
                for size in sizes
            ]
        )
    else:
        if len(values) > MAX_BINS:
            values, counts = _binned(values, counts)
        means = rng.multinomial(n, counts / n, size=resamples) @ values / n
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _binned(values: Floats, counts: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    import numpy as np

    low, high = float(values.min()), float(values.max())
    place = np.minimum(((values - low) / (high - low) * MAX_BINS).astype(np.int64), MAX_BINS - 1)
    number = np.bincount(place, weights=counts, minlength=MAX_BINS)
    total = np.bincount(place, weights=values * counts, minlength=MAX_BINS)
    kept = number > 0
    return total[kept] / number[kept], number[kept].astype(np.int64)

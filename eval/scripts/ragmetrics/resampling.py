"""What chance does to a mean of paired differences: sign flips and bootstrap; pure, seeded.

Equal differences are handled together (one binomial draw for all of them), values that occur
rarely through tables of signed sums. Both ways have exactly the distribution of flipping every
difference by itself, at a cost that hardly grows with the number of cases.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from ragmetrics import stats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

GROUP_FROM = 100
"""Times that a difference must occur until one binomial draw costs less than its share of tables.
"""
DISTINCT = 4096
"""Distinct values up to which a bootstrap works on all of them."""
_WIDTH = 12
_TABLES = 16
_BLOCK = 1 << 20
_ENDS, _STEPS = 128, 512


def sign_flip_p(
    differences: Floats, rng: np.random.Generator, resamples: int = stats.RESAMPLES
) -> float:
    """Two-sided p of the paired permutation test: are signs of the differences mere chance?

    The share of sign patterns whose mean is at least as far from 0 as the observed one (Fisher
    1935). All patterns are looked at where there are no more than ``resamples``; else that many are
    drawn, and the observed one is counted with them: (1 + hits) / (1 + resamples), never 0. 1.0
    when no difference is other than 0. Raises ValueError for no, infinite or undefined differences.
    """
    import numpy as np

    values, counts = distinct(np.abs(_checked(differences)))
    values, counts = values[values > 0], counts[values > 0]
    flipped = int(counts.sum())
    if not flipped:
        return 1.0
    observed = abs(float(differences.sum())) - 1e-11 * float(values @ counts)
    if 2**flipped <= resamples:
        sums = _signs(flipped) @ np.repeat(values, counts)
        return float(np.mean(np.abs(sums) >= observed))
    sums = np.zeros(resamples)
    often = counts >= GROUP_FROM
    for value, count in zip(values[often], counts[often], strict=True):
        sums += value * (2.0 * rng.binomial(count, 0.5, resamples) - count)
    _add_flips(sums, np.repeat(values[~often], counts[~often]), rng)
    return (1 + int(np.count_nonzero(np.abs(sums) >= observed))) / (1 + resamples)


def _signs(width: int) -> Floats:
    """Every pattern of ``width`` signs, a row each."""
    import numpy as np

    patterns = np.arange(1 << width)[:, None] >> np.arange(width) & 1
    signs: Floats = 1.0 - 2.0 * patterns.astype(float)
    return signs


def _add_flips(sums: Floats, values: Floats, rng: np.random.Generator) -> None:
    """Add the randomly signed values to each sum: a table of all sums of 12 values, then a draw."""
    import numpy as np

    rows = np.concatenate([values, np.zeros(-len(values) % _WIDTH)]).reshape(-1, _WIDTH)
    signs = _signs(_WIDTH)
    for start in range(0, len(rows), _TABLES):
        tables = rows[start : start + _TABLES] @ signs.T
        picks = rng.integers(0, 1 << _WIDTH, size=(len(tables), len(sums)), dtype=np.uint16)
        for table, pick in zip(tables, picks, strict=True):
            sums += table[pick]


def paired_bootstrap(
    differences: Floats, rng: np.random.Generator, resamples: int = stats.RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of the mean difference, resampling the cases.

    See stats.bootstrap_mean: it draws ``resamples`` up to 500 cases and for skewed differences,
    else takes the percentiles of the same distribution from its expansion. More than 4,096 distinct
    differences are condensed first; that takes less than a 1,000th off their variance at 100,000
    cases. Raises ValueError for no, infinite or undefined differences.
    """
    values, counts = distinct(_checked(differences))
    return stats.bootstrap_mean(*_condensed(values, counts), rng, resamples)


def clustered_bootstrap(
    sums: Floats, sizes: Floats, rng: np.random.Generator, resamples: int = stats.RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of the mean difference, resampling whole clusters of cases.

    ``sums``: sum of the differences of each cluster; ``sizes``: its cases, above 0. Above 500
    clusters the ratio of the two resampled sums is linearised. Raises ValueError as above.
    """
    import numpy as np

    clusters = len(_checked(sums))
    mean = float(sums.sum() / sizes.sum())
    if clusters > stats.DRAWN_CASES:
        influence = mean + (sums - mean * sizes) / float(sizes.mean())
        return paired_bootstrap(influence, rng, resamples)
    means = []
    step = max(1, _BLOCK // clusters)
    for start in range(0, resamples, step):
        picks = rng.integers(0, clusters, size=(min(step, resamples - start), clusters))
        means.append(sums[picks].sum(axis=1) / sizes[picks].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)


def spread(differences: Floats) -> float:
    """Standard deviation of differences (n - 1 below); 0.0 for a single one."""
    values = _checked(differences)
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def cluster_spread(sums: Floats, sizes: Floats) -> float:
    """The same per case for clustered cases: times 1/sqrt(cases) it is the error of the mean."""
    if len(sums) < 2:
        return 0.0
    cases = float(sizes.sum())
    rest = _checked(sums) - float(sums.sum()) / cases * sizes
    return sqrt(len(sums) / (len(sums) - 1) * float(rest @ rest) / cases)


def distinct(values: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Each value once, rising, with its count; what differs by rounding only is one value."""
    import numpy as np

    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    _, first, counts = np.unique(
        np.round(values / scale, 12), return_index=True, return_counts=True
    )
    return values[first], counts.astype(np.int64)


def _condensed(values: Floats, counts: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Rising values with counts, made few: the 128 at each end stay, of the others those within
    one of 512 equal steps become their mean."""
    import numpy as np

    if len(values) <= DISTINCT:
        return values, counts
    middle, weights = values[_ENDS:-_ENDS], counts[_ENDS:-_ENDS]
    place = np.searchsorted(np.linspace(middle[0], middle[-1], _STEPS + 1)[1:-1], middle)
    number = np.bincount(place, weights=weights)
    used = number > 0
    means = np.bincount(place, weights=weights * middle)[used] / number[used]
    kept = np.concatenate([values[:_ENDS], means, values[-_ENDS:]])
    times = np.concatenate([counts[:_ENDS], number[used].astype(np.int64), counts[-_ENDS:]])
    return kept, times


def _checked(values: Floats) -> Floats:
    import numpy as np

    if not len(values) or not np.isfinite(values).all():
        raise ValueError("differences must be finite numbers, at least one")
    return values

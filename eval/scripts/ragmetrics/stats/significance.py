"""Did it get better? Tests and intervals of paired differences, and corrections for many of them.

A difference is new minus base of one case. Sources: Fisher 1935 (permutation), McNemar 1947, its
mid-p form (Fagerland, Lydersen and Laake 2013), Holm 1979, Benjamini and Hochberg 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, exp, lgamma, log, sqrt
from typing import TYPE_CHECKING, Literal

from ragmetrics.stats import means
from ragmetrics.stats import means as stats_means

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


__all__ = [
    "ALPHA",
    "PairedTest",
    "benjamini_hochberg",
    "clustered_bootstrap",
    "holm",
    "mcnemar",
    "minimum_detectable_effect",
    "paired_bootstrap",
    "paired_test",
    "power",
    "sign_flip_p",
]

ALPHA = 0.05

_Z_POWER = 0.8416212335729143
"""Quantile of the normal distribution at a power of 80 %."""

Test = Literal["sign-flip", "McNemar mid-p"]


@dataclass(frozen=True, slots=True)
class PairedTest:
    """What n paired cases say of the difference new minus base.

    ``interval``: 95 %, of the mean difference. ``mde``: the smallest true difference that n cases
    with this spread would show 4 times in 5. ``rose``, ``fell``: cases whose value went up or down.
    ``units``: what was resampled, cases or clusters of them.
    """

    n: int
    delta: float
    interval: tuple[float, float]
    p: float
    test: Test
    mde: float
    sd: float
    rose: int
    fell: int
    units: int


def paired_test(
    base: Floats,
    new: Floats,
    *,
    binary: bool = False,
    name: str = "",
    seed: int = 0,
    resamples: int = means.RESAMPLES,
    clusters: Floats | None = None,
) -> PairedTest:
    """Test the values of the same cases in two runs, case by case.

    ``binary``: a case scores 0 or 1, so McNemar's test applies (it is left when averaged repeats
    lie between, and for clusters). ``name`` and ``seed`` fix the draws. ``clusters``: an integer
    for each case; cases with the same one are flipped and resampled together. Raises ValueError for
    no cases, lists of different lengths, and values that are no finite numbers.
    """
    import numpy as np

    if len(base) != len(new):
        raise ValueError("paired values need lists of one length")
    differences = _differences(base, new)
    rng = means.generator(seed, f"paired {name}")
    rose, fell = int((differences > 0).sum()), int((differences < 0).sum())
    if clusters is None:
        units, sd = len(differences), spread(differences)
        interval = paired_bootstrap(differences, rng, resamples)
    else:
        _, cluster = np.unique(clusters, return_inverse=True)
        sums = np.bincount(cluster, weights=differences).astype(float)
        sizes = np.bincount(cluster).astype(float)
        units, sd = len(sums), _cluster_spread(sums, sizes)
        interval = clustered_bootstrap(sums, sizes, rng, resamples)
    test: Test = "sign-flip"
    if binary and clusters is None and _is_binary(base) and _is_binary(new):
        test, p = "McNemar mid-p", mcnemar(rose, fell)[1]
    else:
        p = sign_flip_p(differences if clusters is None else sums, rng, resamples)
    delta, n = float(differences.mean()), len(differences)
    mde = minimum_detectable_effect(sd, n)
    return PairedTest(n, delta, interval, p, test, mde, sd, rose, fell, units)


def _differences(base: Floats, new: Floats) -> Floats:
    """New minus base; 0 where they differ by rounding only."""
    import numpy as np

    differences = new - base
    size = np.maximum(np.abs(base), np.abs(new))
    differences[np.abs(differences) <= 1e-12 * size] = 0.0
    return differences


def _is_binary(values: Floats) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def mcnemar(rose: int, fell: int) -> tuple[float, float]:
    """Two-sided p of ``rose`` against ``fell`` discordant pairs: exact, and mid-p.

    Exact: twice the binomial tail P(X <= min), at most 1. Mid-p: that tail with half of P(X = min),
    which is less conservative. Both 1.0 for equal counts. Raises ValueError below 0.
    """
    if min(rose, fell) < 0:
        raise ValueError("counts of pairs are 0 or more")
    n, least = rose + fell, min(rose, fell)
    if rose == fell:
        return 1.0, 1.0
    at_least = exp(lgamma(n + 1) - lgamma(least + 1) - lgamma(n - least + 1) - n * log(2))
    tail = term = at_least
    for k in range(least, 0, -1):
        term *= k / (n - k + 1)
        tail += term
        if term < tail * 1e-17:
            break
    return min(1.0, 2 * tail), min(1.0, 2 * tail - at_least)


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given; the chance of any false call stays below alpha.

    The i-th smallest of m is multiplied by m - i + 1, kept rising, at most 1.
    """
    adjusted = [0.0] * len(p)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        least = max(least, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = least
    return adjusted


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given; of what is called, the share of false calls stays
    below alpha.

    The i-th smallest of m is multiplied by m / i, kept rising from the largest down, at most 1.
    """
    adjusted = [0.0] * len(p)
    most = 1.0
    for rank, index in enumerate(sorted(range(len(p)), key=p.__getitem__, reverse=True)):
        most = min(most, len(p) / (len(p) - rank) * p[index])
        adjusted[index] = most
    return adjusted


def minimum_detectable_effect(sd: float, n: int) -> float:
    """The true mean difference that a test at 5 % finds with a chance of 80 %.

    2.80 sd / sqrt(n), the normal approximation: (1.96 + 0.84) standard errors. Raises ValueError
    for n below 1.
    """
    if n < 1:
        raise ValueError("an effect needs at least one case")
    return (means.Z95 + _Z_POWER) * sd / sqrt(n)


def power(effect: float, sd: float, n: int) -> float:
    """The chance that a two-sided test at 5 % finds a true mean difference of ``effect``.

    Normal approximation, too hopeful where fewer than about 10 cases differ; 0.05 for no effect.
    With sd 0: 1.0 for any effect. Raises ValueError for n below 1.
    """
    if n < 1:
        raise ValueError("power needs at least one case")
    if sd <= 0:
        return 1.0 if effect else ALPHA
    shift = abs(effect) * sqrt(n) / sd
    return _above(means.Z95 - shift) + _above(means.Z95 + shift)


def _above(z: float) -> float:
    """P(Z > z) of a standard normal Z."""
    return 0.5 * erfc(z / sqrt(2))


_GROUP_FROM = 100
"""Times that a difference must occur until one binomial draw costs less than its share of tables.
"""

_DISTINCT = 4096
"""Distinct values up to which a bootstrap works on all of them."""

_WIDTH = 12

_TABLES = 16

_BLOCK = 1 << 20

_ENDS, _STEPS = 128, 512


def sign_flip_p(
    differences: Floats, rng: np.random.Generator, resamples: int = stats_means.RESAMPLES
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
    often = counts >= _GROUP_FROM
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
    differences: Floats, rng: np.random.Generator, resamples: int = stats_means.RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of the mean difference, resampling the cases.

    See stats.bootstrap_mean: it draws ``resamples`` up to 500 cases and for skewed differences,
    else takes the percentiles of the same distribution from its expansion. More than 4,096 distinct
    differences are condensed first; that takes less than a 1,000th off their variance at 100,000
    cases. Raises ValueError for no, infinite or undefined differences.
    """
    values, counts = distinct(_checked(differences))
    return stats_means.bootstrap_mean(*_condensed(values, counts), rng, resamples)


def clustered_bootstrap(
    sums: Floats, sizes: Floats, rng: np.random.Generator, resamples: int = stats_means.RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of the mean difference, resampling whole clusters of cases.

    ``sums``: sum of the differences of each cluster; ``sizes``: its cases, above 0. Above 500
    clusters the ratio of the two resampled sums is linearised. Raises ValueError as above.
    """
    import numpy as np

    clusters = len(_checked(sums))
    mean = float(sums.sum() / sizes.sum())
    if clusters > stats_means.DRAWN_CASES:
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


def _cluster_spread(sums: Floats, sizes: Floats) -> float:
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

    if len(values) <= _DISTINCT:
        return values, counts
    middle, weights = values[_ENDS:-_ENDS], counts[_ENDS:-_ENDS]
    step = np.searchsorted(np.linspace(middle[0], middle[-1], _STEPS + 1)[1:-1], middle)
    number = np.bincount(step, weights=weights)
    used = number > 0
    means = np.bincount(step, weights=weights * middle)[used] / number[used]
    condensed = np.concatenate([values[:_ENDS], means, values[-_ENDS:]])
    times = np.concatenate([counts[:_ENDS], number[used].astype(np.int64), counts[-_ENDS:]])
    return condensed, times


def _checked(values: Floats) -> Floats:
    import numpy as np

    if not len(values) or not np.isfinite(values).all():
        raise ValueError("differences must be finite numbers, at least one")
    return values

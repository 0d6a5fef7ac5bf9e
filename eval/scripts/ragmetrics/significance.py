"""Did it get better? Tests and intervals of paired differences, and corrections for many of them.

A difference is new minus base of one case. Sources: Fisher 1935 (permutation), McNemar 1947, its
mid-p form (Fagerland, Lydersen and Laake 2013), Holm 1979, Benjamini and Hochberg 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, exp, lgamma, log, sqrt
from typing import TYPE_CHECKING, Literal

from ragmetrics import stats
from ragmetrics.resampling import (
    cluster_spread,
    clustered_bootstrap,
    paired_bootstrap,
    sign_flip_p,
    spread,
)

if TYPE_CHECKING:
    from ragmetrics.resampling import Floats

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
Z_POWER = 0.8416212335729143
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
    resamples: int = stats.RESAMPLES,
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
    rng = stats.generator(seed, f"paired {name}")
    rose, fell = int((differences > 0).sum()), int((differences < 0).sum())
    if clusters is None:
        units, sd = len(differences), spread(differences)
        interval = paired_bootstrap(differences, rng, resamples)
    else:
        _, place = np.unique(clusters, return_inverse=True)
        sums = np.bincount(place, weights=differences).astype(float)
        sizes = np.bincount(place).astype(float)
        units, sd = len(sums), cluster_spread(sums, sizes)
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
    for rank, place in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        least = max(least, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = least
    return adjusted


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given; of what is called, the share of false calls stays
    below alpha.

    The i-th smallest of m is multiplied by m / i, kept rising from the largest down, at most 1.
    """
    adjusted = [0.0] * len(p)
    most = 1.0
    for rank, place in enumerate(sorted(range(len(p)), key=p.__getitem__, reverse=True)):
        most = min(most, len(p) / (len(p) - rank) * p[place])
        adjusted[place] = most
    return adjusted


def minimum_detectable_effect(sd: float, n: int) -> float:
    """The true mean difference that a test at 5 % finds with a chance of 80 %.

    2.80 sd / sqrt(n), the normal approximation: (1.96 + 0.84) standard errors. Raises ValueError
    for n below 1.
    """
    if n < 1:
        raise ValueError("an effect needs at least one case")
    return (stats.Z95 + Z_POWER) * sd / sqrt(n)


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
    return _above(stats.Z95 - shift) + _above(stats.Z95 + shift)


def _above(z: float) -> float:
    """P(Z > z) of a standard normal Z."""
    return 0.5 * erfc(z / sqrt(2))

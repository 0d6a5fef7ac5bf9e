"""Tests of paired differences, one metric at a time, and corrections for multiple tests.

A difference is new minus base of one case. Sources: Fisher 1935 (permutation), McNemar 1947, its
mid-p form (Fagerland, Lydersen and Laake 2013), Benjamini and Hochberg 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log

from ragmetrics.stats.arrays import Floats, Ints, np
from ragmetrics.stats.means import RESAMPLES

__all__ = ["benjamini_hochberg", "mcnemar", "sign_flip_p"]


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


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given; the share of calls that are false stays below alpha.

    The i-th smallest of m is multiplied by m / i, kept rising from the largest down, at most 1.
    """
    adjusted = [0.0] * len(p)
    most = 1.0
    for rank, index in enumerate(sorted(range(len(p)), key=p.__getitem__, reverse=True)):
        most = min(most, len(p) / (len(p) - rank) * p[index])
        adjusted[index] = most
    return adjusted


_GROUP_FROM = 100
"""Times that a difference must occur until one binomial draw costs less than its share of tables.
"""

_WIDTH = 12

_TABLES = 16


def sign_flip_p(differences: Floats, rng: np.random.Generator, resamples: int = RESAMPLES) -> float:
    """Two-sided p of the paired permutation test, which flips the signs of the differences.

    The share of sign patterns whose mean is at least as far from 0 as the observed one (Fisher
    1935). All patterns are looked at where there are no more than ``resamples``; else that many are
    drawn, and the observed one is counted with them: (1 + hits) / (1 + resamples), never 0. 1.0
    when no difference is other than 0. Raises ValueError for no, infinite or undefined differences.
    """
    values, counts = _distinct(np.abs(_checked(differences)))
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
    patterns = np.arange(1 << width)[:, None] >> np.arange(width) & 1
    signs: Floats = 1.0 - 2.0 * patterns.astype(float)
    return signs


def _add_flips(sums: Floats, values: Floats, rng: np.random.Generator) -> None:
    """Add the randomly signed values to each sum: a table of all sums of 12 values, then a draw."""
    rows = np.concatenate([values, np.zeros(-len(values) % _WIDTH)]).reshape(-1, _WIDTH)
    signs = _signs(_WIDTH)
    for start in range(0, len(rows), _TABLES):
        tables = rows[start : start + _TABLES] @ signs.T
        picks = rng.integers(0, 1 << _WIDTH, size=(len(tables), len(sums)), dtype=np.uint16)
        for table, pick in zip(tables, picks, strict=True):
            sums += table.take(pick)


def _distinct(values: Floats) -> tuple[Floats, Ints]:
    """Each value once, rising, with its count; what differs by rounding only is one value, its
    smallest, and 0 where it differs from 0 by rounding only."""
    values = np.sort(values)
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    values[np.abs(values) < 5e-13 * scale] = 0.0
    _, first, counts = np.unique(
        np.round(values / scale, 12), return_index=True, return_counts=True
    )
    return values[first], counts.astype(np.int64)


def _checked(values: Floats) -> Floats:
    if not len(values) or not np.isfinite(values).all():
        raise ValueError("differences must be finite numbers, at least one")
    return values

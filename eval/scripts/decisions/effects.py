"""How much differences vary: spread, power, the smallest difference that shows, ratios, flips.

A difference is run b minus run a, of one case. Pure: plain arrays in, numbers out; draws are
seeded. Clusters are integers from 0 up, one for each case; None: each case is one by itself.

Sources: effective number of clusters: Kott and Carr 1997; limits of ratios: Hodges and Lehmann 1963
from signed ranks (Wilcoxon 1945), flipped by cluster as in Datta and Satten 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, sqrt

from ragmetrics.stats import student
from ragmetrics.stats.arrays import Floats, Ints, np
from ragmetrics.stats.means import Z95, generator

ALPHA = 0.05

DRAWS = 10_000
"""Sign patterns that are drawn where there are more of them."""

NORMAL_FROM = 2_000
"""Changed units above which flips are replaced by the normal distribution of their sums."""

POWER = 0.8

_BLOCK = 1 << 20
"""Signs that are drawn at once."""

ALIKE = 1e-9
"""Statistics nearer to each other than this are a tie."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How much differences vary, as far as power and intervals need it.

    ``n``: cases. ``effective``: clusters as if all were of one size (n without clusters).
    ``variance``: n times the variance of the mean difference. ``unchanged``: share of differences
    of 0. ``step``: size of a change, Σd²/Σ|d|; the metric's range when nothing changed, None when
    it has none.
    """

    n: int
    effective: float
    variance: float
    unchanged: float
    step: float | None
    largest: float | None = None
    """The metric's range; no difference is larger. None: unbounded."""
    loss: float | None = None
    """Of a bounded metric with scores in between: the mean of 2ab − b² over the cases, both ways,
    over the mean score, counted from the bad end: what cases that fall to it bring. Else None."""

    @property
    def carried(self) -> tuple[float, float]:
        """v and w of the variance s² + vD − wD² that a true difference D brings with it."""
        own = self.unchanged * (self.step or 0.0)
        return (own, self.unchanged) if self.loss is None else (max(own, self.loss), 1.0)

    def variance_with_unseen(self, n: float | None = None) -> float:
        """Variance with one pseudo-change added, so never 0 while cases can change."""
        cases = self.n if n is None else n
        if self.step is None or cases <= 1:
            return self.variance
        return self.variance + self.unchanged * self.step**2 / (cases - 1)

    def half_width(self, variance: float) -> float:
        """Half of the 95 % interval of a mean difference, by Student's t."""
        return _t_quantile(1 - ALPHA / 2, self.freedom()) * sqrt(variance / self.n)

    def freedom(self, n: float | None = None) -> float:
        """Degrees of freedom: effective clusters less one, at least 1."""
        effective = self.effective if n is None else self.effective * n / self.n
        return max(1.0, effective - 1)


def flipped(units: Floats, seed: int, draws: int) -> Iterator[Floats]:
    """The sign-flip null distribution of all columns, in batches."""
    count = len(units)
    if count < 63 and 1 << count <= draws:
        patterns = np.arange(1 << count)[:, None] >> np.arange(count) & 1
        yield (1.0 - 2.0 * patterns) @ units
        return
    rng = generator(seed, "joint flips")
    if count > NORMAL_FROM:
        values, vectors = np.linalg.eigh(units.T @ units)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        yield rng.standard_normal((draws, units.shape[1])) @ root.T
        return
    units = units[np.lexsort(np.round(units, 6).T)]  # the same draws whatever the order of cases
    step = max(1, _BLOCK // count)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        bits = np.unpackbits(rng.integers(0, 256, (rows, -(-count // 8)), np.uint8), axis=1)
        yield (1.0 - 2.0 * bits[:, :count]) @ units


_DENSE = 4
"""Times the number of cases that labels may reach for a table of all of them to pay."""


def compact(clusters: Ints | None) -> Ints | None:
    """Any integers as 0, 1, … in their order; None when no two cases have the same one."""
    if clusters is None:
        return None
    if len(clusters) and clusters.min() >= 0 and clusters.max() < _DENSE * len(clusters):
        used = np.zeros(int(clusters.max()) + 1, dtype=bool)
        used[clusters] = True
        codes = (np.cumsum(used) - 1)[clusters]
        return None if int(used.sum()) == len(clusters) else codes
    labels, codes = np.unique(clusters, return_inverse=True)
    return None if len(labels) == len(clusters) else codes.astype(np.int64)


def cluster_sums(values: Floats, clusters: Ints | None) -> Floats:
    """The sum over each cluster; the values themselves without clusters."""
    if clusters is None:
        return values
    sums: Floats = np.bincount(clusters, weights=values).astype(np.float64)
    return sums


def spread_of(differences: Floats, clusters: Ints | None, largest: float | None) -> Spread:
    """How much differences vary. The larger of the variances with and without clusters counts."""
    n = len(differences)
    size = float(np.abs(differences).sum())
    rest = differences - differences.mean()
    variance = float(rest @ rest) / (n - 1) if n > 1 else 0.0
    effective = float(n)
    if clusters is not None:
        sizes = np.bincount(clusters)
        effective = n * n / float(sizes @ sizes)
        del sizes
        sums = cluster_sums(rest, clusters)
        if effective > 1:
            variance = max(variance, float(sums @ sums) / n / (1 - 1 / effective))
    step = float(differences @ differences) / size if size else largest
    return Spread(n, effective, variance, float((differences == 0).mean()), step, largest)


def loss_of(a: Floats, b: Floats, largest: float) -> float | None:
    """See ``Spread.loss``; None where a case scores at an end of the range only."""
    size = float(a.sum() + b.sum()) / 2
    if not size or all(bool(((side == 0) | (side == largest)).all()) for side in (a, b)):
        return None
    return (2 * float(a @ b) - float(a @ a + b @ b) / 2) / size


def minimum_detectable_effect(
    spread: Spread, critical: float, alpha: float = ALPHA
) -> float | None:
    """The smallest true difference that a verdict finds 4 times in 5.

    ``critical``: the statistic Σd/√Σd² that the verdict asks for, as the flips of the joint test
    say; as Student's t it is at least that of one metric. The effect is thought of as cases that
    change by the usual step, or fall to the bad end, so it brings spread with it: the larger root D
    of D²(1 + cw) - cvD - cs² = 0, with c = (t_critical + t_power)²/n, s² the variance, v and w as
    ``Spread.carried``. At most the metric's range; None for an unbounded metric of which
    no case changed, and for one cluster.
    """
    if spread.step is None or spread.effective <= 1 or spread.n < 2:
        return None
    freedom = spread.freedom()
    reach = _t_asked(critical, spread.effective, alpha) + _t_quantile(POWER, freedom)
    c = reach * reach / spread.n
    v, w = spread.carried
    lead, middle = 1 + c * w, c * v
    effect = (middle + sqrt(middle**2 + 4 * lead * c * spread.variance_with_unseen())) / (2 * lead)
    return effect if spread.largest is None else min(effect, spread.largest)


def _t_asked(critical: float, units: float, alpha: float) -> float:
    """The t that a statistic Σd/√Σd² over so many units is, at least that of one test by itself."""
    least = _t_quantile(1 - alpha / 2, max(1.0, units - 1))
    square = critical * critical
    if square >= units:
        return max(least, critical)
    return max(least, critical * sqrt(max(units - 1, 1) / (units - square)))


def power_of(
    effect: float, spread: Spread, critical: float, n: int, alpha: float = ALPHA
) -> float | None:
    """The chance that a verdict finds a true difference of ``effect`` with ``n`` cases, whose
    differences vary as these do; the inverse of ``minimum_detectable_effect``."""
    if spread.step is None or spread.effective <= 1 or n < 2:
        return None
    size, freedom, (v, w) = abs(effect), spread.freedom(n), spread.carried
    variance = spread.variance_with_unseen(n) + size * (v - w * size)
    if variance <= 0:
        return 1.0 if size else alpha
    reach = size * sqrt(n / variance)
    asked = _t_asked(critical, freedom + 1, alpha)
    return 1 - student.upper_tail(reach - asked, freedom)


def _t_quantile(share: float, freedom: float) -> float:
    """Quantile of Student's t."""
    return student.quantile(1 - share, freedom)


def signed_ranks(values: Floats) -> Floats:
    """Rank of each size, with the sign of the value; equal sizes share their mean rank."""
    _, place, counts = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    signed: Floats = np.sign(values) * ranks[place]
    return signed


def ratio_of(
    ratios: Floats, clusters: Ints | None, seed: int
) -> tuple[float, tuple[float, float] | None]:
    """The typical ratio with its limits: the shifts of log ratios that the flips do not reject."""
    centre = _shift(ratios, clusters, 0.0)
    residuals = cluster_sums(signed_ranks(ratios - centre), clusters)
    if not residuals.any():  # every ratio is the same one
        residuals = cluster_sums(signed_ranks(ratios), clusters)
    interval = None
    bound = _critical(residuals, seed)
    if bound is not None:
        low, high = _shift(ratios, clusters, bound), _shift(ratios, clusters, -bound)
        interval = exp(min(low, centre)), exp(max(high, centre))
    return exp(centre), interval


def _critical(units: Floats, seed: int) -> float | None:
    """The size of the statistic that 5 % of the flips exceed; None when no flip is rejected."""
    units = units[units != 0]
    if len(units) > NORMAL_FROM:
        return Z95
    scaled = units / sqrt(float(units @ units) or 1.0)
    flips = flipped(scaled[:, None], seed, DRAWS)
    sizes = np.concatenate([np.abs(statistics[:, 0]) for statistics in flips])
    bound = float(np.quantile(sizes, 1 - ALPHA))
    return bound if bound < float(np.abs(scaled).sum()) - ALIKE else None


_EXACT_SHIFTS = 2_000
"""Cases up to which a limit is found to the last digit; above, to a millionth of the range."""


def _shift(ratios: Floats, clusters: Ints | None, bound: float) -> float:
    """Where the statistic of the shifted log ratios, which falls in steps, falls to ``bound``; 0:
    the typical one."""
    low, high = float(ratios.min()), float(ratios.max())
    if low == high:
        return low

    def excess(shift: float) -> float:
        units = cluster_sums(signed_ranks(ratios - shift), clusters)
        size = sqrt(float(units @ units))
        over = (float(units.sum()) / size if size else 0.0) - bound
        return 0.0 if abs(over) <= ALIKE else over

    at_low, at_high = excess(low), excess(high)
    if at_low <= 0:
        return low
    if at_high >= 0:
        return high
    exact = len(ratios) <= _EXACT_SHIFTS
    enough = (high - low) * (1e-13 if exact else 1e-6)
    # Between two steps it may equal the bound: of a limit the outer end counts, else the middle.
    ties = (1.0, -1.0) if not bound else (-1.0,) if bound > 0 else (1.0,)

    def broken(tie: float) -> Callable[[float], float]:
        return lambda at: excess(at) or tie

    ends = [_crossing(broken(tie), low, high, at_low, at_high, enough, exact) for tie in ties]
    shift = sum(ends) / len(ends)
    return 0.0 if abs(shift) <= 2 * enough else shift


def _crossing(
    excess: Callable[[float], float],
    low: float,
    high: float,
    at_low: float,
    at_high: float,
    enough: float,
    halve: bool,
) -> float:
    """Where a falling function changes its sign, to within ``enough``: by halves, or by halves and
    regula falsi in turn."""
    by_half = True
    while high - low > enough:
        share = 0.5 if by_half else min(max(at_low / (at_low - at_high), 0.02), 0.98)
        by_half = halve or not by_half
        middle = low + share * (high - low)
        if not low < middle < high:
            break
        value = excess(middle)
        if value > 0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return (low + high) / 2

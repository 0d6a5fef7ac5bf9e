"""95 % intervals of means that keep their coverage at realistic sizes; pure functions.

Metrics with bounds: the Wilson score interval with the effective sample size (Wilson 1927; Kott and
Carr 1997; Dean and Pagano 2015). Counts, times and costs: Hall's interval, which takes the skewness
out of t (Hall 1992; it covers what bootstrap-t covers, and draws nothing), widened to the score
interval of a count. Both follow from sums over cases and clusters of cases. The sums are exact, so
no order and no split of the cases changes a byte, and nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from sys import float_info
from typing import Any, NamedTuple

from ragmetrics.stats import exact, student
from ragmetrics.stats.arrays import Floats, Ints, np

WILSON, SKEWED, BOOTSTRAP, NORMAL = "wilson", "skew-corrected t", "bootstrap", "normal"
"""Names of the ways to compute an interval, as written in metrics.json."""

ALONE = 0
"""The cluster of a case that is counted by itself."""

_NO_VARIANCE = 1e-15

_MOST_PER_CASE = 50
"""What a case can count at most in the effective sample size."""

_SUSPICIOUS_PER_CASE = 5

_SMALL = 100
"""Cases below which an interval that rests on few distinct values is marked."""

ONE_CASE = "one case: no interval"
ONE_CLUSTER = "all cases share one document or group: no interval"
RARE = "a rare value that no case has shown could lie outside"
CONSTANT = "all values are equal: the interval is a guess"
POINT = "no resample differs: the true value may lie outside"
MOSTLY_ZERO = f"interval unreliable (almost all values are 0, fewer than {_SMALL} cases)"
MOSTLY_LOWEST = f"interval unreliable (almost all values are the lowest, fewer than {_SMALL} cases)"


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval of a mean. ``low`` and ``high`` are None where there is none; ``mark`` says
    why, or why it is to be doubted. ``units``: the clusters of cases that it rests on.
    """

    low: float | None
    high: float | None
    method: str
    units: int
    mark: str = ""

    @property
    def ends(self) -> list[float] | None:
        """Both ends, or None without an interval."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def drawn_interval(low: float, high: float, units: int) -> Interval:
    """Return an interval from resamples, marked if it has no width. One cluster has no ends."""
    if units < 2:
        return Interval(None, None, BOOTSTRAP, units, ONE_CLUSTER)
    return Interval(low, high, BOOTSTRAP, units, POINT if low == high else "")


class MeanOfGroup(NamedTuple):
    """The mean over the ``n`` cases of a group, with its interval."""

    group: int
    n: int
    mean: float
    interval: Interval


def effective_wilson(
    values: Floats, low: float, high: float, clusters: Sequence[Any] | Ints | None = None
) -> Interval:
    """95 % interval of the mean of ``values``, which lie within ``low`` to ``high``.

    ``clusters``: a label for each value; values with the same label are counted together. The
    variance is the larger one of that between clusters and that between cases; the effective sample
    size is what a proportion would need for it, at most 50 n. The quantile is t's with the
    effective number of clusters less one. Raises ValueError without values.
    """
    return _mean(values, low, high, clusters).interval


def skewed_interval(
    values: Floats, low: float | None = None, clusters: Sequence[Any] | Ints | None = None
) -> Interval:
    """95 % interval of the mean of values without an upper bound, such as counts, times and costs.

    ``low``: the least possible value, None when there is none. Values that are all equal, and
    mostly-zero ones of fewer than 100 cases, are marked. Raises ValueError without values.
    """
    return _mean(values, low, None, clusters).interval


def _mean(
    values: Floats,
    low: float | None,
    high: float | None,
    clusters: Sequence[Any] | Ints | None,
) -> MeanOfGroup:
    if not len(values):
        raise ValueError("an interval needs at least one value")
    numbers = np.full(len(values), ALONE, dtype=np.int64)
    if clusters is not None:
        numbers = np.unique(np.asarray(clusters), return_inverse=True)[1].astype(np.int64) + 1
    order = np.argsort(numbers, kind="stable")
    times = np.ones(len(values), dtype=np.int64)
    column = np.asarray(values, dtype=float)[order]
    return means_of_groups(column, times, times * 0, numbers[order], low, high)[0]


def means_of_groups(
    values: Floats,
    times: Ints,
    groups: Ints,
    clusters: Ints,
    low: float | None,
    high: float | None,
) -> list[MeanOfGroup]:
    """Mean and interval of each group of cases, in the order of the groups.

    ``values[i]`` occurred ``times[i]`` times in group ``groups[i]`` and cluster ``clusters[i]``
    (``ALONE``: each by itself). All are sorted by group, then by cluster.
    """
    if not len(values):
        return []
    scale = Scale.of(values, low, high)
    inside, own = scale.shrink(values), clusters == ALONE
    new_unit = own.copy()
    new_unit[_changes(groups)] = True
    new_unit[1:] |= clusters[1:] != clusters[:-1]
    first = np.flatnonzero(new_unit)
    single = own[first]
    # Units: clusters of cases, and cases by themselves. How many cases each has, the sum of their
    # values on the scale, and how often such a one recurs.
    unit_groups = groups[first]
    sizes = np.where(single, 1, np.add.reduceat(times, first))
    totals = np.where(single, inside[first], _sums(inside, times, first))
    repeats = np.where(single, times[first], 1)
    starts = _changes(groups)
    n = np.add.reduceat(times, starts)
    means = _exact_means(values, times, starts, n)
    position = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(groups)))
    centre = scale.shrink(np.array(means))
    deviations = inside - centre[position]
    within = _sums(deviations * deviations, times, starts)
    lowest = np.add.reduceat(np.where(inside == 0.0, times, 0), starts)

    unit_starts = _changes(unit_groups)
    unit_position = np.searchsorted(groups[starts], unit_groups)
    residuals = totals - sizes * centre[unit_position]
    squares = _sums(residuals * residuals, repeats, unit_starts)
    cubes = squares * 0.0  # a score interval is not skewed
    if scale.high is None:
        cubes = _sums(residuals * residuals * residuals, repeats, unit_starts)
    number = np.add.reduceat(repeats, unit_starts)
    effective_units = n * n / np.add.reduceat(sizes * sizes * repeats, unit_starts)

    found: list[MeanOfGroup] = []
    for index in range(len(starts)):
        spread = _Spread(
            n=int(n[index]),
            centre=float(centre[index]),
            within=float(within[index]),
            squares=float(squares[index]),
            cubes=float(cubes[index]),
            units=int(number[index]),
            effective_units=float(effective_units[index]),
            lowest=int(lowest[index]),
        )
        interval = scale.interval(spread)
        found.append(MeanOfGroup(int(groups[starts[index]]), spread.n, means[index], interval))
    return found


class _Spread(NamedTuple):
    """What an interval needs to know of the cases of a group.

    ``within``: the sum over cases of the squared deviations; ``squares``, ``cubes``: sums over the
    clusters of powers of their summed deviations (cubes of unbounded metrics only); ``lowest``:
    cases with the least possible value.
    """

    n: int
    centre: float
    within: float
    squares: float
    cubes: float
    units: int
    effective_units: float
    lowest: int

    @property
    def variance(self) -> float:
        """Of the mean: the larger one of that between clusters and that between cases."""
        between = self.squares / self.n**2 / (1 - 1 / self.effective_units)
        return max(between, self.within / (self.n * (self.n - 1)))

    @property
    def quantile(self) -> float:
        return student.quantile(0.025, max(1.0, self.effective_units - 1))


class Scale(NamedTuple):
    """From a metric's values to 0 and up: 0..1 for one with bounds, else small enough to be cubed.

    ``low``, ``high``: the bounds of the metric; ``origin``, ``width``: what becomes 0, and 1.
    """

    low: float | None
    high: float | None
    origin: float
    width: float

    @classmethod
    def of(cls, values: Floats, low: float | None, high: float | None) -> Scale:
        if low is not None and high is not None and high > low:
            return cls(low, high, low, high - low)
        largest = float(np.abs(values).max(initial=0.0))
        _, exponent = np.frexp(largest)
        width = float(np.ldexp(1.0, int(exponent) - 1)) if largest else 1.0
        return cls(low, None, low or 0.0, width)

    def shrink(self, values: Floats) -> Floats:
        """The values on the scale."""
        if self.origin == 0.0 and self.width == 1.0:
            return values
        return (values - self.origin) / self.width

    def interval(self, spread: _Spread) -> Interval:
        """The interval in the metric's own unit."""
        method = SKEWED if self.high is None else WILSON
        if spread.n < 2 or spread.units < 2:
            reason = ONE_CASE if spread.n < 2 else ONE_CLUSTER
            return Interval(None, None, method, spread.units, reason)
        if self.high is None:
            ends, mark = self._skewed(spread)
        else:
            ends, mark = _wilson(spread)
        low, high = (
            min(float_info.max, max(-float_info.max, self.origin + end * self.width))
            for end in ends
        )
        low = low if self.low is None else max(self.low, low)
        high = high if self.high is None else min(self.high, high)
        return Interval(low, high, method, spread.units, mark)

    def _skewed(self, spread: _Spread) -> tuple[tuple[float, float], str]:
        low, high = _hall(spread)
        if self.low is not None:
            # a mean at the lower bound tells no spread: then as of a count (Poisson)
            unit = 1.0 / self.width
            per_mean = spread.variance * spread.n / spread.centre if spread.centre > 0 else unit
            half = spread.quantile**2 * per_mean / (2 * spread.n)
            root = (half * half + 2 * half * max(spread.centre, 0.0)) ** 0.5
            low = min(low, spread.centre + half - root)
            high = max(high, spread.centre + half + root)
        if spread.within <= _NO_VARIANCE:
            return (low, high), CONSTANT
        if spread.n >= _SMALL or spread.lowest <= spread.n / 2:
            return (low, high), ""
        return (low, high), MOSTLY_LOWEST if self.origin else MOSTLY_ZERO


def _wilson(spread: _Spread) -> tuple[tuple[float, float], str]:
    n, variance = spread.n, spread.variance
    centre = min(1.0, max(0.0, spread.centre))
    if variance < _NO_VARIANCE:
        effective = spread.effective_units
    else:
        effective = min(centre * (1 - centre) / variance, float(_MOST_PER_CASE * n))
    suspicious = n < _SMALL and effective > _SUSPICIOUS_PER_CASE * n
    squared = spread.quantile**2 / effective
    middle = centre + squared / 2
    root = (squared * centre * (1 - centre) + squared * squared / 4) ** 0.5
    low, high = (middle - root) / (1 + squared), (middle + root) / (1 + squared)
    ends = (0.0 if centre <= 0 else max(0.0, low), 1.0 if centre >= 1 else min(1.0, high))
    return ends, RARE if suspicious else ""


def _hall(spread: _Spread) -> tuple[float, float]:
    """Hall's interval (1992): the cubic transformation that takes the skewness out of t."""
    error = spread.variance**0.5
    if spread.squares <= 0 or error == 0:
        return spread.centre, spread.centre
    skew = spread.cubes / spread.squares**1.5
    if abs(skew) < 1e-9:
        return spread.centre - spread.quantile * error, spread.centre + spread.quantile * error
    ends = []
    for quantile in (spread.quantile, -spread.quantile):
        cubed = 1 + skew * quantile - skew * skew / 6
        root = abs(cubed) ** (1 / 3) * (1 if cubed >= 0 else -1)
        ends.append(spread.centre - 3 * error / skew * (root - 1))
    return ends[0], ends[1]


def _changes(numbers: Ints) -> Ints:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))


def _exact_means(values: Floats, times: Ints, starts: Ints, n: Ints) -> list[float]:
    """The mean of each stretch of values, rounded once."""
    totals = [0] * len(starts)
    for shift, limb in exact.limbs(values, int(times.sum())):
        for index, total in enumerate(np.add.reduceat(limb * times, starts).tolist()):
            totals[index] += total << shift
    return [exact.rounded(total, size) for total, size in zip(totals, n.tolist(), strict=True)]


def _sums(values: Floats, times: Ints, starts: Ints) -> Floats:
    """The sum of each stretch of values: the same bits whatever the order within a stretch."""
    totals = np.zeros(len(starts))
    for shift, limb in exact.limbs(values, int(times.sum())):
        totals += np.ldexp(
            np.add.reduceat(limb * times, starts).astype(float), shift - exact.UNIT_BITS
        )
    return totals

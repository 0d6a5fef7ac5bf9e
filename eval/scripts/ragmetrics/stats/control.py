"""Finds shifts in a series of means: self-starting CUSUM and its control limits.

Pure functions of plain numbers, oldest first; nothing is known of them but what came before. The
figures of their false and true alarms are printed by bench/decisions_history.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, inf, log, sqrt
from statistics import NormalDist

from ragmetrics.stats import student

_NORMAL = NormalDist()

EPSILON = 1e-9

SLACK = 0.5
"""k of the CUSUM: shifts of one standard deviation are found best (Hawkins & Olwell 1998)."""

THRESHOLD, RISES_BY, RISES_AFTER = 4.4, 1.9, 19
"""h of the CUSUM up to point ``RISES_AFTER``, then h + 1.9 ln(i / 19) at point i. It counts on
where a line restarts: else a long history would alert falsely ever more often. They were chosen on
other seeds than those of the bench, so that at most 6 % of steady histories of 90 runs alert and
85 % of falls by 2.5 standard deviations are found within 5 runs, at run 15 and at run 60."""

ALIKE_ABOVE, ALIKE_FROM = 0.3, 20
"""Lag-1 correlation, and points, from which the runs of a line resemble each other."""

SUMS_FROM = 8
"""The point, counted from 1, from which the CUSUM adds up: the first ones are too uncertain."""

BAND_SIGMAS = 3.0


@dataclass(frozen=True, slots=True)
class ControlledPoint:
    """A value of a line, compared with the values before it.

    ``score``: how unlikely it is, as a normal score whose bad side is negative; None before the
    third point of a line, or when all earlier values are equal. ``band``: the limits within which
    this score lies between -3 and 3, drawn from ``SUMS_FROM`` on.
    """

    value: float
    score: float | None = None
    band: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class LevelShift:
    """A change of level that lasts. Places count from 0.

    ``found``: the point that gave it away; ``began``: the first point of the new level.
    """

    better: bool
    found: int
    began: int


def controlled(
    values: Sequence[float],
    *,
    higher_is_better: bool,
    spreads: Sequence[float] = (),
    threshold: float = THRESHOLD,
) -> tuple[list[ControlledPoint], list[LevelShift]]:
    """Compare each value with all earlier ones of its line; a line restarts where a shift began.

    ``spreads``: the least standard deviation to assume at each point (what one case moves, for a
    share of cases).

    U = Phi^-1(F_t(k-1)((x - mean) / s * sqrt(k / (k + 1)))) over the k earlier points (Hawkins
    1987), S = max(0, S - U - 1/2) towards the bad side, and likewise towards the good side. A shift
    began at the likeliest of the points since its sum was last 0.
    """
    sign = 1.0 if higher_is_better else -1.0
    least = [*spreads] or [0.0] * len(values)
    points: list[ControlledPoint] = []
    shifts: list[LevelShift] = []
    line = _ControlLine(0)
    for place, value in enumerate(values):
        earlier = values[line.start : place]
        mean, spread = _moments(earlier)
        point = _point(value, mean, max(spread, least[place]), len(earlier), sign)
        points.append(point)
        if point.score is None or len(earlier) + 1 < SUMS_FROM:
            continue
        rise = RISES_BY * log(max(1.0, (place + 1) / RISES_AFTER))
        if shift := line.add(point.score, place, threshold + rise):
            shifts.append(shift)
            line = _ControlLine(shift.began)
    return points, shifts


def lag_correlation(values: Sequence[float]) -> float | None:
    """How much each value resembles the one before it: the correlation of neighbours, −1 to 1;
    None for fewer than three values, and where all are equal."""
    middle = fsum(values) / max(1, len(values))
    rest = [value - middle for value in values]
    size = fsum(own * own for own in rest)
    if len(values) < 3 or size <= EPSILON**2:
        return None
    return fsum(own * after for own, after in pairwise(rest)) / size


class _ControlLine:
    """What is added up since the start of a line, towards the bad and towards the good side."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._sums = {False: 0.0, True: 0.0}
        self._scores: dict[bool, list[float]] = {False: [], True: []}
        """The scores that a sum is made of: those since it was last 0."""

    def add(self, score: float, place: int, threshold: float) -> LevelShift | None:
        """Take a normal score; a shift where a sum passes the threshold, the bad side first."""
        for better, towards in ((False, -score), (True, score)):
            if self._sums[better] == 0.0:
                self._scores[better].clear()
            self._scores[better].append(towards)
            self._sums[better] = max(0.0, self._sums[better] + towards - SLACK)
        for better in (False, True):
            if self._sums[better] > threshold:
                began = place + 1 - _lasting(self._scores[better])
                return LevelShift(better, place, began)
        return None


def _lasting(scores: Sequence[float]) -> int:
    """For how many of the last scores the new level most likely lasts: the n with the largest
    (sum of the last n)^2 / n, the likelihood of a step of unknown size (Hinkley 1970)."""
    best, count, total = -inf, 0, 0.0
    for n, score in enumerate(reversed(scores), 1):
        total += score
        if total > 0 and total * total / n > best:
            best, count = total * total / n, n
    return count


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (n - 1); 0 for what there are too few values for."""
    count = len(values)
    if not count:
        return 0.0, 0.0
    mean = fsum(values) / count
    if count < 2:
        return mean, 0.0
    return mean, sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1))


def _point(value: float, mean: float, spread: float, count: int, sign: float) -> ControlledPoint:
    """The value's normal score, and the limits where that score would be -3 and 3."""
    if count < 2 or spread <= EPSILON:
        return ControlledPoint(value)
    wider = spread * sqrt((count + 1) / count)
    score = _normal_score(sign * (value - mean) / wider, count - 1)
    if count + 1 < SUMS_FROM:
        return ControlledPoint(value, score)
    # the t quantile of the same probability as that many standard deviations have
    reach = student.quantile(_NORMAL.cdf(-BAND_SIGMAS), count - 1) * wider
    return ControlledPoint(value, score, (mean - reach, mean + reach))


def _normal_score(t: float, df: int) -> float:
    """The normal quantile of the same probability as ``t`` has, at most about 37 in size."""
    below = max(student.upper_tail(abs(t), df), 1e-300)  # the small tail keeps its digits
    return _NORMAL.inv_cdf(min(below, 0.5)) * (1.0 if t < 0 else -1.0) + 0.0


def relative_drop(baseline: float, value: float, higher_is_better: bool) -> float:
    """How much worse than the baseline a value is, relative to its size; below 0 when better.

    A baseline of 0 has no size: any worsening of it is infinite, no change is 0.
    """
    worse = (baseline - value) * (1.0 if higher_is_better else -1.0)
    if abs(worse) <= EPSILON:
        return 0.0
    return worse / abs(baseline) if abs(baseline) > EPSILON else inf if worse > 0 else -inf

"""When a line of numbers calls for a look: a drop under a baseline, a point outside its band.

Pure functions of plain numbers, oldest first. "Worse" follows the metric's direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import fmean, median
from typing import Literal

Band = Literal["shewhart", "mad", "none"]
Kind = Literal["best", "previous", "median"]
KINDS: dict[str, Kind] = {"best": "best", "previous": "previous", "median": "median"}
EPSILON = 1e-9
D2 = 1.1283791670955126
"""Mean range of two normal draws in units of sigma: 2 / sqrt(pi)."""
MAD_TO_SIGMA = 1.482602218505602
"""1 / the normal's upper quartile: makes the median absolute deviation an estimate of sigma."""
SIGMAS = 3.0
FEWEST = 8
"""Earlier points without which no band is drawn: the sigma of fewer would be a guess."""
WINDOW = 30
"""Earlier points that a band looks back on."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``baseline``: best, previous or median of the earlier points, or the place of a point that
    all later ones are held against. ``max_drop``: relative, 0.1 is 10 %."""

    baseline: Kind | int = "best"
    max_drop: float = 0.10
    band: Band = "shewhart"


@dataclass(frozen=True, slots=True)
class Judged:
    """One number. ``drop``: how much worse than the baseline, relative to it (below 0: better).

    ``band``: where chance keeps it; None without enough earlier points, or when they are all equal.
    ``baseline_at``: place of the baseline's point, None for a median.
    """

    value: float
    baseline: float | None = None
    baseline_at: int | None = None
    drop: float | None = None
    band: tuple[float, float] | None = None
    fell: bool = False
    left_band: bool = False

    @property
    def alert(self) -> bool:
        return self.fell or self.left_band


def judge(values: Sequence[float], higher_is_better: bool, rule: Rule) -> list[Judged]:
    """Each value against what came before it. One definition throughout: the caller's business.

    Values that left their band to the bad side do not enter later bands: a fall that lasts stays
    outside instead of becoming the new usual.
    """
    found: list[Judged] = []
    usual: list[float] = []
    sign = 1.0 if higher_is_better else -1.0
    for place, value in enumerate(values):
        baseline, at = _baseline(values[:place], rule.baseline, sign, place, values)
        drop = None if baseline is None else relative_drop(baseline, value, higher_is_better)
        band = control_band(usual[-WINDOW:], rule.band)
        left = band is not None and (
            value < band[0] - EPSILON if higher_is_better else value > band[1] + EPSILON
        )
        fell = drop is not None and drop > rule.max_drop + EPSILON
        found.append(Judged(value, baseline, at, drop, band, fell, left))
        if not left:
            usual.append(value)
    return found


def _baseline(
    before: Sequence[float], kind: Kind | int, sign: float, place: int, values: Sequence[float]
) -> tuple[float | None, int | None]:
    if isinstance(kind, int):
        return (values[kind], kind) if place > kind >= 0 else (None, None)
    if not before:
        return None, None
    if kind == "previous":
        return before[-1], len(before) - 1
    if kind == "median":
        return median(before), None
    best = max(range(len(before)), key=lambda at: (sign * before[at], -at))
    return before[best], best


def relative_drop(baseline: float, value: float, higher_is_better: bool) -> float:
    """How much worse than the baseline, in parts of its size; below 0 when better.

    A baseline of 0 has no size: any worsening of it is infinite, no change is 0.
    """
    worse = (baseline - value) * (1.0 if higher_is_better else -1.0)
    if abs(worse) <= EPSILON:
        return 0.0
    return worse / abs(baseline) if abs(baseline) > EPSILON else inf if worse > 0 else -inf


def control_band(before: Sequence[float], kind: Band) -> tuple[float, float] | None:
    """Limits of the next value: centre ± 3 sigma of the earlier ones.

    shewhart: individuals chart; centre is the mean, sigma the mean of the ranges of neighbours,
    divided by 1.128 (Shewhart 1931; Montgomery, Statistical Quality Control, section 6.4).
    mad: centre is the median, sigma 1.4826 times the median absolute deviation (Hampel 1974);
    single strange points do not widen it. None for fewer than 8 values or a sigma of 0.
    """
    if kind == "none" or len(before) < FEWEST:
        return None
    if kind == "shewhart":
        centre = fmean(before)
        pairs = pairwise(before)
        sigma = fmean(abs(now - then) for then, now in pairs) / D2
    else:
        centre = median(before)
        sigma = MAD_TO_SIGMA * median(abs(value - centre) for value in before)
    if sigma <= EPSILON:
        return None
    return centre - SIGMAS * sigma, centre + SIGMAS * sigma


def since(flags: Iterable[bool]) -> int | None:
    """Where the unbroken run of True that ends the line began; None when it ends with False."""
    start = None
    for place, flag in enumerate(flags):
        start = (place if start is None else start) if flag else None
    return start


def largest_step(values: Sequence[float], higher_is_better: bool, start: int, end: int) -> int:
    """The place in start < place <= end whose step from the one before was worst."""
    sign = 1.0 if higher_is_better else -1.0
    return max(range(start + 1, end + 1), key=lambda at: sign * (values[at - 1] - values[at]))

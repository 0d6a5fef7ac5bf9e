"""Compares runs before all cases are asked, without more false calls; pure functions.

Who looks several times at an interval made for one look calls a difference that is none in up to
four of ten comparisons. The intervals here hold at every look at once: five planned ones (O'Brien
and Fleming 1979), or ten at one flat level (Pocock 1977), for races.

A look's ``share`` is the share of all cases that were asked by then, above 0 and at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from ragmetrics.stats import student
from ragmetrics.stats.arrays import np

ALPHA = 0.05

PLANNED_LOOKS = 5

RACE_LOOKS = 10

_FLEMING = 2.040
"""The final z of five O'Brien-Fleming looks at two-sided 5 %: Jennison and Turnbull 2000, table
2.3. At a share t the z asked for is this number over the root of t."""

_FLAT_LOOKS = 5.0
"""What the level is divided by for ten looks: they are so alike that they count as fewer than five
(Pocock's level for ten looks is .0106 of .05)."""

_NORMAL = NormalDist()

_LEAST_TAIL = 1e-300


@dataclass(frozen=True, slots=True)
class InterimLook:
    """A difference at one of several interim looks.

    ``low``, ``high``: an interval that holds the true difference at all looks at once in 95 % of
    experiments. ``p``: the smallest error rate at which 0 would lie outside of it, range (0, 1].
    """

    share: float
    difference: float
    low: float
    high: float
    p: float

    @property
    def side(self) -> int:
        """1 when the interval is above 0, -1 when below, 0 when it includes 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


def look(difference: float, error: float, freedom: float, share: float) -> InterimLook:
    """Return the interim look at a difference with this standard error and degrees of freedom.

    The level that a look has left is turned into Student's t, so that few cases tell less. An
    ``error`` of 0 tells nothing. Raises ValueError for a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError("a share of the cases is above 0 and at most 1")
    tail = max(_LEAST_TAIL, _NORMAL.cdf(-_FLEMING / sqrt(share)))
    half = error * student.quantile(tail, max(1.0, freedom))
    low, high = difference - half, difference + half
    if not error:
        return InterimLook(share, difference, low, high, 1.0)
    tail = max(student.upper_tail(abs(difference) / error, max(1.0, freedom)), _LEAST_TAIL)
    z = max(0.0, -_NORMAL.inv_cdf(min(tail, 0.5)))
    return InterimLook(share, difference, low, high, chance_of_crossing(z * sqrt(share)))


def chance_of_crossing(bound: float, looks: int = PLANNED_LOOKS) -> float:
    """Return the chance that a random walk of ``looks`` equal steps ever goes beyond ``bound`` from
    0. Its final variance is 1. Range [0, 1]. By numerical integration from look to look (Armitage,
    McPherson and Rowe 1969), to about 1e-6."""
    if bound <= 0:
        return 1.0
    places, width = np.linspace(-bound, bound, 801, retstep=True)
    weights = np.where(np.arange(801) % 2, 4.0, 2.0) * width / 3  # Simpson's rule
    weights[[0, -1]] = width / 3
    step = 1 / sqrt(looks)
    scale = 1 / (step * sqrt(2 * np.pi))
    density = scale * np.exp(-0.5 * (places / step) ** 2)
    move = scale * np.exp(-0.5 * ((places[:, None] - places) / step) ** 2)
    for _ in range(looks - 1):
        density = move @ (density * weights)
    return float(min(1.0, max(0.0, 1 - (density * weights).sum())))


def flat_quantile(pairs: int, freedom: float, alpha: float = ALPHA) -> float:
    """Return the t that a difference must exceed, in size, at any of ten looks. With ``pairs``
    comparisons, the chance of a single false call then stays below ``alpha``."""
    tail = alpha / max(1, pairs) / _FLAT_LOOKS / 2
    return student.quantile(tail, max(1.0, freedom))

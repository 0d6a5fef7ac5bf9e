"""Student's t without scipy, whose import costs more than a scoring: tail and quantile."""

from __future__ import annotations

from functools import lru_cache
from math import copysign, exp, inf, lgamma, log, pi

_SMALLEST = 1e-300

_STEPS = 500

_NEARLY_NORMAL = 20_000.0
"""Degrees of freedom from which on the gamma function's rounding is larger than what it adds."""


def upper_tail(t: float, freedom: float) -> float:
    """P(T > t) of Student's t with ``freedom`` > 0 degrees of freedom, to about 1e-13.

    The regularised incomplete beta function by its continued fraction (Lentz's method).
    """
    if t < 0:
        return 1 - upper_tail(-t, freedom)
    if t == inf:
        return 0.0
    squared = t * t
    return 0.5 * _beta(freedom / (freedom + squared), squared / (freedom + squared), freedom / 2)


def _beta(x: float, rest: float, a: float) -> float:
    """I_x(a, 1/2), with ``rest`` = 1 - x."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    b = 0.5
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    numerator, denominator = 1.0, 1 / _away_from_0(1 - (a + b) * x / (a + 1))
    value = denominator
    for step in range(1, _STEPS):
        for factor in (
            step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step)),
            -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1)),
        ):
            denominator = 1 / _away_from_0(1 + factor * denominator)
            numerator = _away_from_0(1 + factor / numerator)
            change = denominator * numerator
            value *= change
        if abs(change - 1) < 1e-15:
            break
    return value


def _away_from_0(value: float) -> float:
    return value if abs(value) > _SMALLEST else copysign(_SMALLEST, value)


@lru_cache(maxsize=4096)
def quantile(tail: float, freedom: float) -> float:
    """Return the t that Student's t with ``freedom`` >= 1 exceeds with chance ``tail`` < 0.5."""
    if freedom > _NEARLY_NORMAL:
        from statistics import NormalDist

        z = -NormalDist().inv_cdf(tail)  # the expansion by Cornish and Fisher; its rest is < 1e-12
        first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / freedom + second / freedom**2
    low, high = 0.0, 1.0
    while upper_tail(high, freedom) > tail:
        low, high = high, 2 * high
    scale = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - 0.5 * log(freedom * pi)
    t = (low + high) / 2
    for _ in range(100):
        error = upper_tail(t, freedom) - tail
        low, high = (t, high) if error > 0 else (low, t)
        density = exp(scale - (freedom + 1) / 2 * log(1 + t * t / freedom))
        step = t + error / density
        step = step if low < step < high else (low + high) / 2
        if abs(step - t) <= 1e-14 * t:
            return step
        t = step
    return t

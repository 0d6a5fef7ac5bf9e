"""Sums floats without rounding, so that neither order nor split of the cases can change a byte.

A float is a whole number of units of 2**-1074 (the smallest there is), and whole numbers of Python
have no end: a sum kept in units is exact, and only the number that leaves is rounded, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ragmetrics.stats.arrays import Floats, Ints, np

UNIT_BITS = 1074
"""A unit is 2**-UNIT_BITS."""

_SUM_BITS = 62
"""Bits that a sum may take of a 64-bit integer."""


def units(value: float) -> int:
    """A finite float as a whole number of units. Raises ValueError or OverflowError for others."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (UNIT_BITS - denominator.bit_length() + 1)


def rounded(total: int, n: int = 1) -> float:
    """``total`` units divided by ``n``, as the nearest float. Raises ZeroDivisionError at n = 0."""
    return total / (n << UNIT_BITS)


def total(values: Iterable[float]) -> int:
    """The sum of finite floats in units, for few of them."""
    return sum(map(units, values))


def mean(values: Floats, counts: Ints) -> float:
    """The mean of ``values[i]``, each occurring ``counts[i]`` times, rounded once.

    Raises ValueError for a value that is not finite, ZeroDivisionError without values.
    """
    n = int(counts.sum())
    return rounded(sum(int(counts @ limb) << shift for shift, limb in limbs(values, n)), n)


def limbs(values: Floats, most: int) -> Iterator[tuple[int, Ints]]:
    """Arrays of whole numbers that, each ``<< shift``, add up to the values in units.

    A sum of ``most`` numbers of a limb fits into 64 bits: numpy may add them up, in any order.
    Values have few limbs when they are of a size, and as many as it takes when they are not.
    Raises ValueError for a value that is not finite.
    """
    if not np.isfinite(values).all():
        raise ValueError("only finite numbers have a sum")
    width = max(1, _SUM_BITS - most.bit_length())
    rest = np.array(values, dtype=float)
    while rest.any():
        _, top = np.frexp(np.abs(rest).max())  # every value is below 2**top
        at = max(int(top) - width, -UNIT_BITS)
        limb = np.trunc(np.ldexp(rest, -at))
        rest -= np.ldexp(limb, at)  # what is left are lower bits of the value: no rounding
        yield at + UNIT_BITS, limb.astype(np.int64)

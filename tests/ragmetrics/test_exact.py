"""Sums without rounding, held against Python's fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.stats import exact

finite = st.floats(allow_nan=False, allow_infinity=False)
counted = st.lists(st.tuples(finite, st.integers(1, 10**9)), min_size=1, max_size=30)


@given(finite)
def test_a_float_is_a_whole_number_of_units(value: float) -> None:
    assert Fraction(exact.units(value), 2**1074) == Fraction(value)
    assert exact.rounded(exact.units(value)) == value


@given(st.lists(finite, max_size=20), st.integers(1, 2**50))
def test_limbs_add_up_to_the_values(values: list[float], most: int) -> None:
    back = [0] * len(values)
    for shift, limb in exact.limbs(np.array(values, dtype=float), most):
        assert int(np.abs(limb).max()) * most < 2**63
        back = [known + (part << shift) for known, part in zip(back, limb.tolist(), strict=True)]
    assert back == [exact.units(value) for value in values]


@given(counted)
def test_a_mean_is_the_nearest_float(pairs: list[tuple[float, int]]) -> None:
    values, counts = zip(*pairs, strict=True)
    total = sum(Fraction(value) * times for value, times in pairs)
    found = exact.mean(np.array(values), np.array(counts, dtype=np.int64))
    assert found == float(total / sum(counts))


def test_what_cancels_out_leaves_what_is_small() -> None:
    # 1e16 + 1 is 1e16 in floats: added up from the left the sum is 0, exactly it is 1.
    assert sum([1e16, 1.0, -1e16]) in (0.0, 1.0)  # compensated in newer Pythons
    assert exact.mean(np.array([1e16, 1.0, -1e16]), np.ones(3, dtype=np.int64)) == 1 / 3


@each_row("bad", [float("inf"), float("nan")])
def test_only_finite_numbers_have_a_sum(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        list(exact.limbs(np.array([0.5, bad]), 1))

"""Student's t against scipy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as scipy_t

from ragmetrics.stats import student


@given(st.floats(-60, 60), st.floats(1, 1e5))
def test_the_tail_is_scipys(t: float, freedom: float) -> None:
    expected = float(scipy_t.sf(t, freedom))
    assert student.upper_tail(t, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-13)


@given(st.sampled_from([0.2, 0.05, 0.025, 0.005, 0.025 / 11, 1e-6]), st.floats(1, 1e6))
def test_the_quantile_is_scipys(tail: float, freedom: float) -> None:
    expected = float(scipy_t.isf(tail, freedom))
    assert student.quantile(tail, freedom) == pytest.approx(expected, rel=1e-9)


def test_ends_by_hand() -> None:
    assert student.upper_tail(0.0, 3.0) == 0.5
    assert student.upper_tail(float("inf"), 3.0) == 0.0
    # with one degree of freedom t is Cauchy's: P(T > 1) = 1/4
    assert student.upper_tail(1.0, 1.0) == pytest.approx(0.25)
    assert student.quantile(0.25, 1.0) == pytest.approx(1.0)

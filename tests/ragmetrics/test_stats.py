"""Intervals: Wilson by hand and by scipy, the bootstrap against scipy's and against theory."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap

from ragmetrics.stats import means


def test_wilson_by_hand() -> None:
    # 8 of 10, z = 1.96: centre (0.8 + z²/20)/(1 + z²/10), z² = 3.8415.
    z2 = means.Z95**2
    centre = (0.8 + z2 / 20) / (1 + z2 / 10)
    half = means.Z95 * sqrt(0.8 * 0.2 / 10 + z2 / 400) / (1 + z2 / 10)
    assert means.wilson(8, 10) == pytest.approx((centre - half, centre + half))
    assert means.wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(pair: tuple[int, int]) -> None:
    successes, n = pair
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert means.wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_needs_a_value() -> None:
    with pytest.raises(ValueError, match="at least one"):
        means.wilson(0, 0)


def interval(values: list[float], seed: int = 0) -> tuple[float, float]:
    distinct, counts = np.unique(np.array(values), return_counts=True)
    return means.bootstrap_mean(distinct, counts, np.random.default_rng(seed))


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.random(60),  # few cases, all different: drawn one by one
        lambda rng: rng.integers(0, 5, 400) / 4,  # few values: one multinomial
        lambda rng: rng.beta(0.4, 0.9, 6000),  # many values of many cases: bins
    ],
)
def test_bootstrap_equals_scipys_within_monte_carlo_error(make: object) -> None:
    values = make(np.random.default_rng(3))  # type: ignore[operator]
    theirs = bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=5, batch=500
    )
    low, high = theirs.confidence_interval
    # A percentile at 2.5 % from 10,000 draws has a standard error of about 0.027 sigma
    # (sqrt(.025 * .975 / 10000) / density); five of them on either side.
    sigma = float(np.std(values)) / sqrt(len(values))
    assert interval(list(values)) == pytest.approx((low, high), abs=5 * sqrt(2) * 0.027 * sigma)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [0.0, 0.5, 1.0, 1.0, 0.25]
    assert interval(values, 1) == interval(values, 1)


def test_one_value_has_no_spread() -> None:
    assert interval([0.4, 0.4, 0.4]) == (0.4, 0.4)


def test_no_values_have_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one"):
        means.bootstrap_mean(np.array([]), np.array([], dtype=np.int64), np.random.default_rng(0))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=300))
def test_an_interval_holds_the_mean_and_stays_within_the_values(values: list[float]) -> None:
    low, high = interval(values)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12


def test_generators_of_two_metrics_differ_and_repeat() -> None:
    first = means.generator(0, "retrieval/recall@1").random(3).tolist()
    assert first == means.generator(0, "retrieval/recall@1").random(3).tolist()
    assert first != means.generator(0, "retrieval/ndcg@1").random(3).tolist()


def test_values_near_the_end_of_floats_overflow_nothing() -> None:
    """An interval scales with its values; the cubes of these leave the range of floats."""
    values = [0.1, 0.4, 0.5, 0.9] * 500
    low, high = interval(values)
    scaled = interval([value * 2.0**900 for value in values])
    assert scaled == pytest.approx((low * 2.0**900, high * 2.0**900), rel=1e-9)

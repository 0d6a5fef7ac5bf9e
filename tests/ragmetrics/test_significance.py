"""Paired tests: by hand where it can be done, else beside scipy; ranges, seeds and memory."""

from __future__ import annotations

import tracemalloc
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats as scipy_stats
from tests.rows import each_row

from ragmetrics.stats import significance

Floats = NDArray[np.float64]
DRAWN = 10_000


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def p_of(*differences: float) -> float:
    return significance.sign_flip_p(np.array(differences, dtype=float), rng())


@each_row(
    ("differences", "expected"),
    [
        ((1, 1, 1), 2 / 8),  # of 8 patterns +++ and --- reach |3|
        ((3, 1), 2 / 4),  # sums 4, 2, -2, -4
        ((1, 2, -3), 1.0),  # observed sum 0: every pattern reaches it
        ((1, 1, 1, 0, 0), 2 / 8),  # zeros stay zero
        ((0.1, 0.2, -0.3), 1.0),  # its floating-point sum is 2.8e-17, which is rounding
        ((5,), 1.0),
        ((0, 0), 1.0),
        ((2, 2, 2, 2, -1), 4 / 32),  # |sum| >= 7: ++++- and its mirror, +++++ and its mirror
    ],
)
def test_few_differences_are_counted_out(differences: tuple[float, ...], expected: float) -> None:
    assert p_of(*differences) == expected


def test_the_observed_pattern_counts_as_drawn() -> None:
    # 50 equal differences: a drawn pattern reaches |50| with 2/2^50, so none of 10,000 does.
    assert p_of(*[1.0] * 50) == 1 / (1 + DRAWN)


def within_chance(found: float, exact: float, sigmas: float = 4.5) -> bool:
    """Whether a p of 10,000 draws is what ``exact`` gives."""
    return abs(found - exact) <= sigmas * sqrt(exact * (1 - exact) / DRAWN) + 2 / DRAWN


@each_row(("rose", "fell"), [(17, 9), (60, 45), (112, 88), (530, 470), (5200, 5000)])
def test_flips_of_equal_differences_are_a_binomial(rose: int, fell: int) -> None:
    """Up to 99 equal differences go through tables, more through one binomial draw."""
    exact = significance.mcnemar(rose, fell)[0]
    differences = np.array([0.5] * rose + [-0.5] * fell + [0.0] * 30)
    assert within_chance(significance.sign_flip_p(differences, rng()), exact)


def samples() -> list[tuple[str, Floats]]:
    """Differences as they come: few values, continuous, both, skewed; with and without effect."""
    draw = rng(7)
    few = np.array([-1, -0.5, -1 / 3, 0, 0, 0, 1 / 3, 0.5, 1])
    return [
        ("few 40", draw.choice(few, 40)),
        ("few 1100", draw.choice(few, 1100) + 0.0),
        ("continuous 14", draw.normal(0.5, 1, 14)),
        ("continuous 300", draw.normal(0.1, 1, 300)),
        ("mixed 600", np.concatenate([draw.choice(few, 400), draw.normal(0.03, 0.4, 200)])),
        ("skewed 100", draw.exponential(1, 100) - 0.8),
        ("rare 500", np.concatenate([np.ones(9), -np.ones(3), np.zeros(488)])),
    ]


@each_row(("name", "differences"), samples())
def test_p_is_that_of_scipy(name: str, differences: Floats) -> None:
    theirs = scipy_stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=DRAWN, rng=1
    ).pvalue
    mine = significance.sign_flip_p(differences, rng())
    # Both are drawn: the difference of the two has twice the variance.
    assert within_chance(mine, float(theirs), 4.5 * sqrt(2))


@each_row("values", [[], [float("nan"), 1.0], [float("inf")]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        significance.sign_flip_p(np.array(values), rng())


def test_mcnemar_by_hand() -> None:
    # P(X <= 3 of 15) = (1 + 15 + 105 + 455) / 2^15; mid-p takes half of the last term off twice.
    assert significance.mcnemar(3, 12) == pytest.approx((2 * 576 / 2**15, (2 * 576 - 455) / 2**15))
    assert significance.mcnemar(12, 3) == significance.mcnemar(3, 12)
    assert significance.mcnemar(0, 5) == pytest.approx((2 / 32, 1 / 32))
    assert significance.mcnemar(0, 0) == (1.0, 1.0)
    assert significance.mcnemar(8, 8) == (1.0, 1.0)
    with pytest.raises(ValueError, match="0 or more"):
        significance.mcnemar(-1, 2)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_exact_is_the_binomial_test(rose: int, fell: int) -> None:
    exact, mid = significance.mcnemar(rose, fell)
    if rose + fell:
        assert exact == pytest.approx(scipy_stats.binomtest(rose, rose + fell).pvalue, rel=1e-9)
    assert 0 <= mid <= exact <= 1


@given(st.lists(st.floats(0, 1), max_size=30))
def test_corrected_p_keeps_order_and_range(p: list[float]) -> None:
    theirs = list(scipy_stats.false_discovery_control(p)) if p else []
    rates = significance.benjamini_hochberg(p)
    assert rates == pytest.approx(theirs, abs=1e-12)
    for one, rate in zip(p, rates, strict=True):
        assert one - 1e-12 <= rate <= 1 + 1e-12
    order = sorted(range(len(p)), key=p.__getitem__)
    assert [rates[i] for i in order] == sorted(rates)


def test_memory_stays_flat() -> None:
    """100,000 continuous differences, 10,000 draws: no matrix of draws times cases (8 GB)."""
    differences = rng(1).normal(0, 1, 100_000)
    tracemalloc.start()
    significance.sign_flip_p(differences, rng(), 500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6

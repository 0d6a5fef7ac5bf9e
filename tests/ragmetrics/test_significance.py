"""Paired tests: by hand where it can be done, else beside scipy; ranges, seeds and memory."""

from __future__ import annotations

import tracemalloc
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from ragmetrics.stats import means, significance

Floats = NDArray[np.float64]
DRAWN = 10_000


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def p_of(*differences: float) -> float:
    return significance.sign_flip_p(np.array(differences, dtype=float), rng())


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(("rose", "fell"), [(17, 9), (60, 45), (112, 88), (530, 470), (5200, 5000)])
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
        ("few 2000", draw.choice(few, 2000) + 0.0),
        ("continuous 14", draw.normal(0.5, 1, 14)),
        ("continuous 300", draw.normal(0.1, 1, 300)),
        ("mixed 600", np.concatenate([draw.choice(few, 400), draw.normal(0.03, 0.4, 200)])),
        ("skewed 100", draw.exponential(1, 100) - 0.8),
        ("rare 500", np.concatenate([np.ones(9), -np.ones(3), np.zeros(488)])),
    ]


@pytest.mark.parametrize(("name", "differences"), samples(), ids=[name for name, _ in samples()])
def test_p_is_that_of_scipy(name: str, differences: Floats) -> None:
    theirs = scipy_stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=DRAWN, rng=1
    ).pvalue
    mine = significance.sign_flip_p(differences, rng())
    # Both are drawn: the difference of the two has twice the variance.
    assert within_chance(mine, float(theirs), 4.5 * sqrt(2))


@pytest.mark.parametrize(("name", "differences"), samples(), ids=[name for name, _ in samples()])
def test_interval_is_that_of_scipy(name: str, differences: Floats) -> None:
    theirs = scipy_stats.bootstrap(
        (differences,), np.mean, n_resamples=DRAWN, method="percentile", rng=1
    ).confidence_interval
    mine = significance.paired_bootstrap(differences, rng())
    # A drawn 2.5 % point is off by sqrt(0.025 * 0.975 / 10,000) / phi(1.96) = 0.027 standard
    # errors, the difference of two by 0.038; five of those, and a step where values are few.
    error = differences.std() / sqrt(len(differences))
    step = 1 / len(differences) if "rare" in name else 0.0
    assert mine == pytest.approx(tuple(theirs), abs=0.19 * error + step)


def test_interval_of_very_many_distinct_values_is_the_normal_one() -> None:
    """20,000 distinct, slightly skewed values are condensed; the mean of so many is normal."""
    values = rng(3).gamma(4, 1, 20_000)
    half = means.Z95 * values.std() / sqrt(len(values))
    low, high = significance.paired_bootstrap(values, rng())
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=half / 50)


def test_heavy_tails_are_kept_when_values_are_condensed() -> None:
    """A few huge values among 20,000 make the interval; the far ends are never merged."""
    values = np.concatenate([rng(3).normal(0, 1, 20_000), [4000.0, 5000.0, 6000.0]])
    low, high = significance.paired_bootstrap(values, rng())
    # Each huge value is drawn about Poisson(1) times: their sum lies between 0 and about 3 times.
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=2000, method="percentile", batch=200, rng=1
    ).confidence_interval
    assert low == pytest.approx(theirs.low, abs=0.08)
    assert high == pytest.approx(theirs.high, abs=0.12)


@pytest.mark.parametrize("count", [1, 3, 700])
def test_equal_differences_have_no_spread(count: int) -> None:
    assert significance.paired_bootstrap(np.full(count, 0.25), rng()) == (0.25, 0.25)


@pytest.mark.parametrize("values", [[], [float("nan"), 1.0], [float("inf")]])
def test_what_is_no_number_is_refused(values: list[float]) -> None:
    for function in (significance.sign_flip_p, significance.paired_bootstrap):
        with pytest.raises(ValueError, match="finite"):
            function(np.array(values), rng())


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


def test_fewer_than_six_discordant_cases_cannot_show_anything() -> None:
    assert significance.mcnemar(5, 0)[0] > 0.05 > significance.mcnemar(6, 0)[0]


def test_mcnemar_of_many_pairs_neither_overflows_nor_drifts() -> None:
    exact = sum(comb(2000, k) for k in range(951)) * 2 / 2**2000
    assert significance.mcnemar(950, 1050)[0] == pytest.approx(exact, rel=1e-10)


def test_holm_by_hand() -> None:
    # sorted .005 .01 .03 .04 → times 4, 3, 2, 1 = .02 .03 .06 .04 → rising: .02 .03 .06 .06
    assert significance.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert significance.holm([0.7, 0.6]) == [1.0, 1.0]
    assert significance.holm([]) == []


def test_benjamini_hochberg_by_hand() -> None:
    # sorted .005 .01 .03 .04 → times 4/1, 4/2, 4/3, 4/4 = .02 .02 .04 .04
    found = significance.benjamini_hochberg([0.01, 0.04, 0.03, 0.005])
    assert found == pytest.approx([0.02, 0.04, 0.04, 0.02])
    # from the largest down nothing rises: .5 * 3/2 = .75 falls to the .6 of the last one
    assert significance.benjamini_hochberg([0.5, 0.6, 0.001]) == pytest.approx([0.6, 0.6, 0.003])
    assert significance.benjamini_hochberg([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_corrected_p_keeps_order_and_range(p: list[float]) -> None:
    theirs = list(scipy_stats.false_discovery_control(p))
    rates, strict = significance.benjamini_hochberg(p), significance.holm(p)
    assert rates == pytest.approx(theirs, abs=1e-12)
    for one, rate, family in zip(p, rates, strict, strict=True):
        assert one - 1e-12 <= rate <= family + 1e-12 <= 1 + 2e-12
    order = sorted(range(len(p)), key=p.__getitem__)
    for adjusted in (rates, strict):
        assert [adjusted[i] for i in order] == sorted(adjusted)


def test_effect_that_can_be_seen() -> None:
    # (1.9600 + 0.8416) * 0.25 / sqrt(50) = 0.09905
    assert significance.minimum_detectable_effect(0.25, 50) == pytest.approx(0.09905, abs=1e-5)
    assert significance.power(0.09905, 0.25, 50) == pytest.approx(0.8, abs=1e-3)
    assert significance.power(0, 0.25, 50) == pytest.approx(0.05)
    assert significance.power(0.1, 0, 5) == 1.0
    assert significance.power(-0.1, 0.25, 50) == significance.power(0.1, 0.25, 50)
    for function in (
        significance.minimum_detectable_effect,
        lambda sd, n: significance.power(1, sd, n),
    ):
        with pytest.raises(ValueError, match="at least one case"):
            function(0.25, 0)


def test_power_is_how_often_the_test_finds_it() -> None:
    """Of 400 samples of 60 cases with sd .4 and a true difference of .15."""
    draw = rng(11)
    found = sum(
        significance.sign_flip_p(draw.normal(0.15, 0.4, 60), draw, 1000) < 0.05 for _ in range(400)
    )
    expected = significance.power(0.15, 0.4, 60)
    assert found / 400 == pytest.approx(expected, abs=4 * sqrt(expected * (1 - expected) / 400))


def test_nothing_is_found_where_nothing_is() -> None:
    """Of 400 samples without effect, p < .05 in no more than chance allows: 20 ± 4 * 4.4."""
    draw = rng(12)
    few = np.array([-1, -0.5, 0, 0, 0.5, 1])
    for sample in (lambda: draw.normal(0, 1, 50), lambda: draw.choice(few, 50)):
        found = sum(significance.sign_flip_p(sample(), draw, 1000) < 0.05 for _ in range(400))
        assert found <= 20 + 4 * sqrt(400 * 0.05 * 0.95)


def test_a_binary_metric_is_tested_by_mcnemar() -> None:
    base = np.array([1.0] * 12 + [0.0] * 3 + [1.0] * 20)
    new = np.array([0.0] * 12 + [1.0] * 3 + [1.0] * 20)
    found = significance.paired_test(base, new, binary=True)
    assert (found.test, found.rose, found.fell, found.n) == ("McNemar mid-p", 3, 12, 35)
    assert found.p == significance.mcnemar(3, 12)[1]
    assert found.delta == pytest.approx(-9 / 35)
    new[0] = 0.5  # the mean of two repeats: no longer 0 or 1
    assert significance.paired_test(base, new, binary=True).test == "sign-flip"


def test_rounding_is_no_change() -> None:
    found = significance.paired_test(np.array([0.3, 1e6]), np.array([0.1 + 0.2, 1e6 + 1e-9]))
    assert (found.rose, found.fell, found.p, found.delta) == (0, 0, 1.0, 0.0)


def test_a_seed_gives_the_same_numbers_and_a_name_other_draws() -> None:
    base, new = rng(1).normal(0, 1, 80), rng(2).normal(0.2, 1, 80)
    one = significance.paired_test(base, new, name="recall@5", seed=3)
    assert one == significance.paired_test(base, new, name="recall@5", seed=3)
    assert one.interval != significance.paired_test(base, new, name="recall@5", seed=4).interval
    assert one.interval != significance.paired_test(base, new, name="ndcg@5", seed=3).interval


values = st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=1, max_size=12)


@given(values, st.randoms())
def test_swapping_the_runs_turns_the_difference_around(base: list[float], chance: Any) -> None:
    new = [chance.choice(base) for _ in base]
    one = significance.paired_test(np.array(base), np.array(new))
    other = significance.paired_test(np.array(new), np.array(base))
    assert (one.p, one.rose, one.fell) == (other.p, other.fell, other.rose)
    assert one.delta == pytest.approx(-other.delta)
    assert one.interval[0] <= one.interval[1]
    assert min(np.array(new) - base) - 1e-9 <= one.interval[0]
    assert 0 < one.p <= 1


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        significance.paired_test(np.zeros(3), np.zeros(4))


class TestClusters:
    def test_doubled_cases_tell_no_more_than_the_cases(self) -> None:
        """Each of 30 cases stands there twice: by cluster, p and interval are those of the 30."""
        differences = rng(5).normal(0.3, 1, 30)
        doubled = np.repeat(differences, 2)
        clusters = np.repeat(np.arange(30.0), 2)
        single = significance.paired_test(np.zeros(30), differences)
        naive = significance.paired_test(np.zeros(60), doubled)
        found = significance.paired_test(np.zeros(60), doubled, clusters=clusters)
        assert (found.n, found.units) == (60, 30)
        assert found.delta == pytest.approx(single.delta)
        assert found.p == pytest.approx(single.p, abs=0.02)
        assert np.diff(found.interval) == pytest.approx(np.diff(single.interval), rel=0.05)
        assert np.diff(naive.interval) < 0.8 * np.diff(found.interval)
        assert found.mde == pytest.approx(single.mde)

    def test_p_counts_patterns_of_clusters(self) -> None:
        # Three clusters with sums 2, 2, 2: 2 of 8 patterns reach |6|.
        found = significance.paired_test(
            np.zeros(6), np.ones(6), clusters=np.array([0.0, 0, 1, 1, 2, 2]), binary=True
        )
        assert (found.p, found.test) == (0.25, "sign-flip")

    def test_clusters_of_one_case_are_the_cases(self) -> None:
        differences = rng(6).normal(0, 1, 40)
        plain = significance.paired_test(np.zeros(40), differences)
        found = significance.paired_test(np.zeros(40), differences, clusters=np.arange(40.0))
        assert found.sd == pytest.approx(plain.sd)
        assert found.interval == pytest.approx(plain.interval, abs=0.03)

    def test_many_clusters_are_linearised_alike(self) -> None:
        """501 clusters take the expansion, their first 500 are drawn: about the same interval."""
        sizes = rng(1).integers(1, 6, 501).astype(float)
        sums = sizes * rng(2).normal(0.1, 0.5, 501)
        many = significance.clustered_bootstrap(sums, sizes, rng())
        drawn = significance.clustered_bootstrap(sums[:500], sizes[:500], rng())
        assert many == pytest.approx(drawn, abs=0.006)


def test_memory_stays_flat() -> None:
    """100,000 continuous differences, 10,000 draws: no matrix of draws times cases (8 GB)."""
    differences = rng(1).normal(0, 1, 100_000)
    tracemalloc.start()
    significance.paired_test(np.zeros(100_000), differences)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6

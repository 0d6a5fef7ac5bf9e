"""Small parts of the statistics: by hand, and beside scipy, scikit-learn and Python's fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from scipy.stats import t as scipy_t
from sklearn.metrics import roc_auc_score
from tests.rows import each_row

from ragmetrics import safety
from ragmetrics.stats import exact, means, sequential, student
from ragmetrics.stats.means import f1, f1_interval
from ragmetrics.stats.repeats import PassTally, RepeatTally, pass_all_k, pass_at_k


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(pair: tuple[int, int]) -> None:
    successes, n = pair
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert means.wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_generators_of_two_metrics_differ_and_repeat() -> None:
    first = means.generator(0, "retrieval/recall@1").random(3).tolist()
    assert first == means.generator(0, "retrieval/recall@1").random(3).tolist()
    assert first != means.generator(0, "retrieval/ndcg@1").random(3).tolist()
    with pytest.raises(ValueError, match="at least one"):
        means.wilson(0, 0)


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


MANY = 1e9
"""So many degrees of freedom that Student's t is the normal distribution."""


@each_row(
    ("looks", "bound"), [(1, 1.960), (2, 1.977), (3, 2.004), (4, 2.024), (5, 2.040), (10, 2.087)]
)
def test_the_planned_bounds_are_the_published_ones(looks: int, bound: float) -> None:
    """Jennison and Turnbull 2000, table 2.3, two-sided 5 %; three digits move the level by 1e-4."""
    assert sequential.chance_of_crossing(bound, looks) == pytest.approx(0.05, abs=2e-4)


def test_looks_by_hand() -> None:
    """The last planned look asks for hardly more than one look, and few clusters for more."""
    first, last = (sequential.look(0.5, 0.1, MANY, share) for share in (0.2, 1.0))
    assert last.high - 0.5 == pytest.approx(0.1 * 2.040, rel=1e-6)
    assert first.high - 0.5 == pytest.approx(0.1 * 2.040 / sqrt(0.2), rel=1e-6)
    assert (first.side, last.side) == (1, 1)
    # Pocock's bound for ten looks is 2.555 (Jennison and Turnbull 2000, table 2.1); ours is the
    # quantile of 1 - .05/5/2, 2.5758, so above it. Pairs divide the level: .05/66/5/2 for 12.
    assert sequential.flat_quantile(1, MANY) == pytest.approx(2.5758, abs=1e-4)
    assert sequential.flat_quantile(66, MANY) == pytest.approx(3.7886, abs=1e-3)
    assert sequential.flat_quantile(66, 8.0) > sequential.flat_quantile(66, MANY)
    few, many = (sequential.look(1.0, 0.1, f, 0.2) for f in (5.0, MANY))
    assert few.low < many.low
    assert sequential.look(0.0, 0.0, 5.0, 0.2).p == 1.0
    for share in (0.0, 1.001):
        with pytest.raises(ValueError, match="a share of the cases is above 0 and at most 1"):
            sequential.look(0.0, 1.0, 5.0, share)
    assert sequential.look(1e6, 1e-3, MANY, 1.0).high < inf


@each_row("share", [0.2, 0.6, 1.0])
@each_row("freedom", [7.0, MANY])
def test_p_is_5_percent_where_the_interval_touches_0(share: float, freedom: float) -> None:
    half = sequential.look(0.0, 1.0, freedom, share).high
    assert sequential.look(half, 1.0, freedom, share).p == pytest.approx(0.05, abs=2e-4)
    assert sequential.look(half * 1.01, 1.0, freedom, share).side == 1
    assert sequential.look(-half * 1.01, 1.0, freedom, share).side == -1
    assert sequential.look(half * 0.99, 1.0, freedom, share).side == 0


SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_intervals_of_a_curve_at_its_ends() -> None:
    found = safety.roc_intervals([0.9, 0.8], [0.1, 0.2], rng(), 50)
    assert found == {"auc": (1.0, 1.0), "tpr_at_fpr_1": (1.0, 1.0), "tpr_at_fpr_5": (1.0, 1.0)}
    # All tie: AUC 1/2; flagging any flags all, so nothing is caught at a low rate.
    found = safety.roc_intervals([0.5] * 4, [0.5] * 4, rng(), 50)
    assert found == {"auc": (0.5, 0.5), "tpr_at_fpr_1": (0.0, 0.0), "tpr_at_fpr_5": (0.0, 0.0)}
    assert set(safety.roc_intervals([], [0.1], rng()).values()) == {None}
    assert set(safety.roc_intervals([0.1], [], rng()).values()) == {None}
    with pytest.raises(ValueError, match="both kinds"):
        safety.hanley_mcneil([], [0.5])


@settings(max_examples=40, deadline=None)
@given(SCORES, SCORES)
def test_a_draw_that_changes_nothing_gives_the_numbers_themselves(
    attacks: list[float], benign: list[float]
) -> None:
    """The counts of the sample itself, against scikit-learn and the pure functions."""
    values = np.unique(np.array(attacks + benign))
    bad, good = safety._histogram(values, attacks), safety._histogram(values, benign)
    truth = [1] * len(attacks) + [0] * len(benign)
    assert safety._auc(bad, good) == pytest.approx(roc_auc_score(truth, attacks + benign))
    for limit in (0.01, 0.05, 0.5):
        point = safety.tpr_at_fpr(attacks, benign, limit)
        assert point is not None
        assert safety._tpr(bad, good, limit) == pytest.approx(point.tpr)


def test_bootstrap_and_formula_agree_on_a_large_sample() -> None:
    """Normal scores one standard deviation apart: AUC = Phi(1 / sqrt 2) = 0.760."""
    draw = rng(1)
    attacks, benign = list(draw.normal(1, 1, 400)), list(draw.normal(0, 1, 400))
    low, high = safety.hanley_mcneil(attacks, benign)
    found = safety.roc_intervals(attacks, benign, rng(2), 500)["auc"]
    assert found is not None
    assert found == pytest.approx((low, high), abs=0.012)
    assert low < 0.760 < high


def test_many_distinct_scores_use_the_formula() -> None:
    draw = rng(3)
    attacks, benign = list(draw.random(3000)), list(draw.random(3000))
    found = safety.roc_intervals(attacks, benign, rng())
    assert found["auc"] == safety.hanley_mcneil(attacks, benign)
    assert found["tpr_at_fpr_1"] is None


@each_row(
    ("hits", "wrong", "value"),
    [
        (11, 22, 0.5),  # 2 x 11 / (2 x 11 + 22)
        (4, 0, 1.0),
        (0, 3, 0.0),
        (0, 0, None),
        (0.5, 0.5, 2 / 3),  # one case of two repeats: 1 / (1 + 0.5)
    ],
)
def test_f1_by_hand(hits: float, wrong: float, value: float | None) -> None:
    assert f1(hits, wrong) == value


def test_the_interval_equals_resampling_case_by_case() -> None:
    counts = {(1.0, 0.0): 11, (0.0, 1.0): 22, (0.0, 0.0): 57}
    low, high = f1_interval(counts, np.random.default_rng(1)) or (0.0, 0.0)
    cases = np.repeat(np.array(list(counts)), list(counts.values()), axis=0)
    rng = np.random.default_rng(2)
    draws = cases[rng.integers(0, len(cases), size=(20_000, len(cases)))].sum(axis=1)
    values = 2 * draws[:, 0] / (2 * draws[:, 0] + draws[:, 1])
    expected = list(np.quantile(values, [0.025, 0.975]))
    # F1 of whole cases moves in steps of about 0.02, so a quantile may fall on either side of one
    assert [low, high] == pytest.approx(expected, abs=0.02)
    assert low < 0.5 < high


def test_the_interval_of_one_kind_of_case_is_a_point_and_of_none_nothing() -> None:
    rng = np.random.default_rng(0)
    assert f1_interval({(1.0, 0.0): 5}, rng) == (1.0, 1.0)
    assert f1_interval({}, rng) is None
    assert f1_interval({(0.0, 0.0): 5}, rng) is None


draws = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
)


@given(draws)
def test_pass_at_k_is_the_share_of_all_draws(draw: tuple[int, int, int]) -> None:
    n, c, k = draw
    subsets = list(combinations([place < c for place in range(n)], k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_all_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))
    assert pass_all_k(n, c, k) <= c / n + 1e-12
    assert c / n <= pass_at_k(n, c, k) + 1e-12
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)
    assert pass_all_k(n, n, k) == pass_at_k(n, n, k) == 1.0
    assert pass_all_k(n, 0, k) == pass_at_k(n, 0, k) == 0.0


@each_row("draw", [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_no_such_draw(draw: tuple[int, int, int]) -> None:
    for estimate in (pass_at_k, pass_all_k):
        with pytest.raises(ValueError, match="no such draw"):
            estimate(*draw)


def test_passes_over_cases() -> None:
    """Of 3, 2, 0 passed of 3: pass@2 is 1, 1, 0 (2 of 3: 1 - C(1,2) = 1), pass^2 is 1, 1/3, 0. A
    case with one repeat counts for k = 1 alone."""
    tally = PassTally()
    for passed in ([True] * 3, [True, True, False], [False] * 3, [True], []):
        tally.add(passed)
    assert tally.at_least_once(2) == pytest.approx(2 / 3)
    assert tally.always(2) == pytest.approx((1 + 1 / 3) / 3)
    assert tally.at_least_once(1) == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert tally.always(4) is None


def test_the_variance_within_cases_by_hand() -> None:
    """1, 0 (squares .5 on 1 degree), 1, 1, .4 (mean .8, squares .04 + .04 + .16 = .24 on 2); a case
    with one score adds nothing: .74 / 3."""
    tally = RepeatTally()
    assert tally.within is None
    for scores in ([0.3], []):
        tally.add(scores)
    assert (tally.within, tally.repeated) == (None, 0)
    for scores in ([1.0, 0.0], [1.0, 1.0, 0.4]):
        tally.add(scores)
    assert tally.within == pytest.approx(0.74 / 3)
    assert tally.repeated == 2

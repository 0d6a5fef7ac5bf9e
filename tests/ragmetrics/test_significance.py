"""Paired tests and p-values of many subsets: by hand where it can be done, else beside scipy."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence
from itertools import permutations, product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats as scipy_stats
from scipy.stats import hypergeom
from tests.rows import each_row

from ragmetrics.stats import significance
from ragmetrics.stats.subsets import (
    MarkedItems,
    _by_cluster,
    _correlation,
    _normal_scores,
    adjusted_p,
    clustered_p,
)

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


@each_row(("n", "marked", "size"), [(20, 5, 8), (146, 40, 30), (12, 11, 6)])
def test_the_measure_is_the_mid_p_of_the_hypergeometric_tail(
    n: int, marked: int, size: int
) -> None:
    from scipy.stats import norm

    scores = _normal_scores(n, marked, size)
    for hits in range(max(0, size - n + marked), min(size, marked) + 1):
        tail = hypergeom.sf(hits, n, marked, size) + hypergeom.pmf(hits, n, marked, size) / 2
        assert scores[hits] == pytest.approx(norm.isf(tail), abs=1e-6)


def test_one_subset_has_the_exact_p_of_its_permutations() -> None:
    """3 of 3 marked of 6 with 3 marks: one of the 20 ways to choose 3 of 6."""
    items = MarkedItems(
        np.array([[1, 1, 1, 0, 0, 0]], bool), np.array([1, 1, 1, 0, 0, 0], bool), range(6)
    )
    p = adjusted_p(items, np.ones(1), np.random.default_rng(1), permutations=20_000)
    assert p[0] == pytest.approx(1 / 20, abs=0.006)
    # Three clusters of two, one of them marked: the marks have three places, not C(6, 2) = 15.
    items = MarkedItems(
        np.array([[1, 1, 0, 0, 0, 0]], bool), np.array([1, 1, 0, 0, 0, 0], bool), [7, 7, 8, 8, 9, 9]
    )
    p = adjusted_p(items, np.ones(1), np.random.default_rng(1), permutations=20_000)
    assert p[0] == pytest.approx(1 / 3, abs=0.02)


def test_a_larger_weight_gives_a_smaller_p() -> None:
    members = np.array([[1] * 6 + [0] * 24, [0] * 10 + [1] * 20], bool)
    items = MarkedItems(members, np.array([1] * 4 + [0] * 26, bool), range(30))
    even = adjusted_p(items, np.ones(2), np.random.default_rng(3))[0]
    favoured = adjusted_p(items, np.array([8.0, 1.0]), np.random.default_rng(3))[0]
    assert favoured <= even


def test_luck_of_clusters_widens_what_chance_explains() -> None:
    """Marks by cluster, subsets within clusters: p is larger than with independent items."""
    marked = np.repeat(np.arange(12) % 4 == 0, 5)
    members = np.array([np.arange(60) < 5], bool)
    single = adjusted_p(
        MarkedItems(members, marked, range(60), False), np.ones(1), np.random.default_rng(5)
    )
    shared = adjusted_p(
        MarkedItems(members, marked, np.repeat(np.arange(12), 5).tolist(), False),
        np.ones(1),
        np.random.default_rng(5),
    )
    assert single[0] < 0.01 < shared[0]


@each_row(
    ("values", "clusters", "correlation"),
    [
        # residuals ±1/2, mean square 1/4; sums ±1: (1 - 1/2) / (2 * 1) / (1/4)
        ([1, 1, 0, 0], "aabb", 1.0),
        # sums 0: (0 - 1/2) / 2 / (1/4) = -1, cut to 0
        ([1, 0, 1, 0], "aabb", 0.0),
        # residuals ±1/2; a: (9/4 - 3/4) / 6 = 1/4, b: (0 - 1/2) / 2 = -1/4, c alone:
        # (√3/4 - √2/4) / (√3 + √2) / (1/4)
        ([1, 1, 1, 1, 0, 0, 0, 0], "aaabbcde", (3**0.5 - 2**0.5) / (3**0.5 + 2**0.5)),
        ([1, 0, 1], "abc", 0.0),
    ],
)
def test_the_correlation_weighs_clusters_by_the_root_of_their_size(
    values: list[int], clusters: str, correlation: float
) -> None:
    residuals = (np.array(values) - np.mean(values)) / np.std(values)
    _, starts, sizes = _by_cluster([*map(ord, clusters)])
    assert _correlation(residuals, starts, sizes) == pytest.approx(correlation, abs=1e-12)


def by_counting(subsets: Sequence[set[int]], values: Sequence[float], clusters: str) -> list[float]:
    """p of each subset over every way to permute effects and residuals, as the definition reads."""
    n = len(values)
    mean = sum(values) / n
    r = [value - mean for value in values]
    rows = {c: [i for i in range(n) if clusters[i] == c] for c in dict.fromkeys(clusters)}
    sums = {c: sum(r[i] for i in own) for c, own in rows.items()}
    several = [c for c in rows if len(rows[c]) > 1]
    top = sum(
        math.sqrt(k) * (sums[c] ** 2 - sum(r[i] ** 2 for i in rows[c])) / (k * (k - 1))
        for c in several
        if (k := len(rows[c]))
    )
    root = sum(math.sqrt(len(rows[c])) for c in several)
    inner = min(1, max(0, top / root / (sum(x * x for x in r) / n)))
    scale = {c: math.sqrt(len(own) * (1 + (len(own) - 1) * inner)) for c, own in rows.items()}
    apart = [[(i in subset) - len(subset) / n for i in range(n)] for subset in subsets]

    def measures(r: Sequence[float]) -> list[float]:
        return [
            sum(map(math.prod, zip(a, r, strict=True)))
            / math.sqrt(
                (1 - inner) * sum(x * x for x in a)
                + inner * sum(sum(a[i] for i in own) ** 2 for own in rows.values())
            )
            for a in apart
        ]

    drawn = []
    rest = {c: [r[i] - sums[c] / len(own) for i in own] for c, own in rows.items()}
    for effects in permutations([sums[c] / scale[c] for c in rows]):
        for residuals in product(*(permutations(rest[c]) for c in rows)):
            new = [0.0] * n
            for (c, own), effect, left in zip(rows.items(), effects, residuals, strict=True):
                for i, value in zip(own, left, strict=True):
                    new[i] = scale[c] * effect / len(own) + value
            drawn.append(measures(new))
    sd = math.sqrt(sum(x * x for x in r) / n)
    spread = [max(1.0, float(np.std([row[k] for row in drawn])) / sd) for k in range(len(subsets))]

    def even(row: Sequence[float]) -> list[float]:
        return [round(x / s, 9) for x, s in zip(row, spread, strict=True)]

    def rest_of(row: Sequence[float]) -> float:
        """What decides between equal maxima."""
        return round(sum(max(x, 0) for x in row), 9)

    scores, observed = [even(row) for row in drawn], even(measures(r))
    return [
        sum((max(row), rest_of(row)) >= (y, rest_of(observed)) for row in scores) / len(scores)
        for y in observed
    ]


def test_clusters_of_any_size_give_the_p_of_all_permutations() -> None:
    """Five clusters of 3, 2, 2, 1 and 1 items: 120 orders of effects, 24 of residuals."""
    values = [0.9, 0.8, 0.45, 0.55, 0.2, 0.1, 0.35, 0.6, 0.05]
    clusters = "aaabbccde"
    subsets = [{0, 1, 2, 7}, {0, 3, 5, 7}]
    members = np.array([[i in subset for i in range(9)] for subset in subsets])
    numbers = [*map(ord, clusters)]
    rng = np.random.default_rng(4)
    for chosen in ([0], [1], [0, 1]):
        p = clustered_p(
            members[chosen], np.array(values), numbers, np.ones(len(chosen)), rng,
            permutations=40_000,
        )  # fmt: skip
        expected = by_counting([subsets[k] for k in chosen], values, clusters)
        assert p.tolist() == pytest.approx(expected, abs=0.01)


UNEVEN = np.repeat(np.arange(50), [6] * 5 + [2] * 45)
"""The documents of 120 items: 5 of 6 items and 45 of 2."""


def test_a_subset_of_the_large_clusters_can_be_seen() -> None:
    """All 30 items of the large clusters, 4 of the 90 others: no two of either have one size."""
    members, values = (UNEVEN < 5)[None], np.where(UNEVEN < 5, 1.0, np.arange(120) % 25 == 5)
    p = clustered_p(members, values, UNEVEN.tolist(), np.ones(1), np.random.default_rng(1))
    assert p[0] < 0.001
    equal = MarkedItems(members, values > 0, UNEVEN.tolist())
    assert adjusted_p(equal, np.ones(1), np.random.default_rng(1))[0] == 1.0
    p = clustered_p(
        (UNEVEN < 5)[None], np.ones(120), UNEVEN.tolist(), np.ones(1), np.random.default_rng(1)
    )
    assert p.tolist() == [1.0]


def test_fewer_than_elsewhere_is_a_find_of_the_two_sided_test_alone() -> None:
    """Ten documents of 4 lose a case each, the others' cases change both ways."""
    clusters = np.repeat(np.arange(40), 4)
    values = np.where(clusters < 10, -1.0, np.array([1, -1, 0, 0] * 40))
    members = (clusters < 10)[None]
    for two_sided, low, high in ((True, 0.0, 0.001), (False, 0.99, 1.0)):
        p = clustered_p(
            members, values, clusters.tolist(), np.ones(1), np.random.default_rng(1),
            two_sided=two_sided,
        )  # fmt: skip
        assert low <= p[0] <= high


@each_row("luck", [0.0, 0.8])
@each_row("two_sided", [False, True])
def test_clusters_of_two_sizes_keep_the_level(luck: float, two_sided: bool) -> None:
    """Under chance alone at most 5 % of data sets have any p of at most .05 (400 sets: ± .022)."""
    rng = np.random.default_rng(6)
    members = np.array([np.isin(UNEVEN, rng.permutation(50)[:12]) for _ in range(15)])
    members = np.concatenate([members, rng.random((15, 120)) < 0.2])
    named = 0
    for _ in range(400):
        shared = rng.random(50)[UNEVEN]
        draws = np.where(rng.random(120) < luck**0.5, shared, rng.random(120))
        values = np.where(draws < 0.2, 1.0, np.where(draws > 0.8, -1.0, 0.0))
        p = clustered_p(
            members, values, UNEVEN.tolist(), np.ones(30), rng,
            two_sided=two_sided, permutations=200,
        )  # fmt: skip
        named += bool((p <= 0.05).any())
    assert named / 400 <= 0.05 + 0.022

"""p-values of many subsets together, against scipy and by counting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

from ragmetrics.stats.subsets import MarkedItems, _normal_scores, adjusted_p


@pytest.mark.parametrize(("n", "marked", "size"), [(20, 5, 8), (146, 40, 30), (12, 11, 6)])
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


def test_clusters_move_as_a_whole() -> None:
    """Three clusters of two, one of them marked: the marks have three places, not C(6, 2) = 15."""
    items = MarkedItems(
        np.array([[1, 1, 0, 0, 0, 0]], bool), np.array([1, 1, 0, 0, 0, 0], bool), [7, 7, 8, 8, 9, 9]
    )
    p = adjusted_p(items, np.ones(1), np.random.default_rng(1), permutations=20_000)
    assert p[0] == pytest.approx(1 / 3, abs=0.02)


def test_the_smallest_p_keeps_its_level_over_all_subsets() -> None:
    """Under chance alone at most 5 % of data sets have any p of at most .05 (400 sets: ± .022)."""
    rng = np.random.default_rng(2)
    members = rng.random((30, 60)) < 0.2
    least = [
        adjusted_p(
            MarkedItems(members, rng.random(60) < 0.25, range(60)),
            np.ones(30),
            rng,
            permutations=200,
        ).min()
        for _ in range(400)
    ]
    assert np.mean(np.array(least) <= 0.05) <= 0.05 + 0.022


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

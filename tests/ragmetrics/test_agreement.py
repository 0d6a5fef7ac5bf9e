"""Agreement figures against hand-derived values, scikit-learn, and published examples."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics.stats.agreement import clustered_interval, krippendorff_alpha, weighted_kappa

LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def test_perfect_agreement_is_exactly_one() -> None:
    labels = ["x", "y", "z", "x"]
    assert weighted_kappa(labels, labels, ["x", "y", "z"]) == 1
    assert krippendorff_alpha([(label, label) for label in labels]) == 1


def test_weighted_kappa_by_hand() -> None:
    # Categories 0, 1, 2. Pairs: (0,0) (0,1) (1,1) (2,0).
    # a: 0 twice, 1 once, 2 once; b: 0 twice, 1 twice.
    # Linear: observed = 0+1+0+2 = 3. Expected sum of |i-j| n_i m_j:
    #   0-0: 0, 0-1: 1*2*2 = 4, 1-0: 1*1*2 = 2, 1-1: 0, 2-0: 2*1*2 = 4, 2-1: 1*1*2 = 2; 12 in all.
    #   kappa = 1 - 3*4/12 = 0.
    # Quadratic: observed = 1+4 = 5; expected = 4 + 2 + 8 + 2 = 16; kappa = 1 - 5*4/16 = -1/4.
    a, b = [0, 0, 1, 2], [0, 1, 1, 0]
    assert weighted_kappa(a, b, [0, 1, 2], "linear") == pytest.approx(0)
    assert weighted_kappa(a, b, [0, 1, 2], "quadratic") == pytest.approx(-0.25)


def test_weighted_kappa_refuses_an_unknown_label() -> None:
    with pytest.raises(ValueError, match="not among the categories"):
        weighted_kappa([0], [7], [0, 1])


def test_alpha_interval_by_hand() -> None:
    # Units (1,2) (3,3): D within = 2*(1)^2/(2-1) = 2. Totals: 1, 2, 3, 3.
    # Pairs of totals, both ways: 1-2: 2*1; 1-3: 2*2*4 = 16; 2-3: 2*2*1 = 4; 22 in all.
    # alpha = 1 - 3*2/22 = 8/11.
    assert krippendorff_alpha([(1, 2), (3, 3)], "interval") == pytest.approx(8 / 11)


def test_alpha_of_the_example_with_gaps() -> None:
    # Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", example C: four observers,
    # twelve units, gaps. He gives .743 nominal, .815 ordinal, .849 interval.
    rows = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = list(zip(*rows, strict=True))
    assert krippendorff_alpha(units, "nominal") == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(units, "ordinal") == pytest.approx(0.815, abs=5e-4)
    assert krippendorff_alpha(units, "interval") == pytest.approx(0.849, abs=5e-4)


def test_alpha_is_undefined_without_pairs_or_variation() -> None:
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha([("a", None), (None, "b")]) is None
    assert krippendorff_alpha([("a", "a"), ("a", "a")]) is None


@settings(deadline=None)  # the first call imports scikit-learn
@given(LABELS)
def test_weighted_kappa_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    for weights in ("linear", "quadratic"):
        weighted = weighted_kappa(a, b, [0, 1, 2, 3], weights)
        if weighted is not None:
            theirs = cohen_kappa_score(a, b, labels=[0, 1, 2, 3], weights=weights)
            assert weighted == pytest.approx(theirs, abs=1e-12)


def test_interval_draws_whole_questions() -> None:
    # Every question agrees within itself fully or not at all: the share over draws of 2 questions
    # is 0, .5 or 1 with probability 1/4, 1/2, 1/4, so the 95 % interval is [0, 1].
    clusters = [[1, 1, 1], [0, 0, 0]]
    found = clustered_interval(
        clusters, lambda items: sum(items) / len(items), np.random.default_rng(0)
    )
    assert found == (0.0, 1.0)
    assert clustered_interval([[1]], lambda items: 1.0, np.random.default_rng(0)) is None
    assert clustered_interval(clusters, lambda items: None, np.random.default_rng(0)) is None


def brute_alpha(units: list[list[float | None]], level: str) -> float:
    """The definition over single pairs: coincidences, expected pairs of all labels, the ordinal
    distance as a sum of the frequencies between two labels less half of their own."""
    kept = [[x for x in unit if x is not None] for unit in units]
    kept = [unit for unit in kept if len(unit) > 1]
    every = [x for unit in kept for x in unit]

    def apart(x: float, y: float) -> float:
        if level == "nominal":
            return float(x != y)
        low, high = min(x, y), max(x, y)
        between = sum(low <= z <= high for z in every)
        return (between - (every.count(x) + every.count(y)) / 2) ** 2

    observed = sum(
        apart(x, y) / (len(unit) - 1)
        for unit in kept
        for i, x in enumerate(unit)
        for j, y in enumerate(unit)
        if i != j
    )
    expected = sum(apart(x, y) for i, x in enumerate(every) for j, y in enumerate(every) if i != j)
    return 1 - (len(every) - 1) * observed / expected


@each_row("level", ["nominal", "ordinal"])
def test_alpha_is_that_of_single_pairs_with_votes_missing(level: Any) -> None:
    chance = random.Random(3)
    for _ in range(50):
        units: list[list[float | None]] = [
            [chance.choice((None, 1.0, 2.0, 3.0, 4.0)) for _ in range(3)] for _ in range(20)
        ]
        assert krippendorff_alpha(units, level) == pytest.approx(
            brute_alpha(units, level), abs=1e-9
        )

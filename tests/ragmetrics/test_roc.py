"""Intervals of AUC and TPR: known ends, an independent formula, and coverage of the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from ragmetrics import safety

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_perfect_scores_have_no_spread() -> None:
    found = safety.roc_intervals([0.9, 0.8], [0.1, 0.2], rng(), 50)
    assert found == {"auc": (1.0, 1.0), "tpr_at_fpr_1": (1.0, 1.0), "tpr_at_fpr_5": (1.0, 1.0)}


def test_equal_scores_are_chance() -> None:
    """All tie: AUC 1/2; flagging any flags all, so nothing is caught at a low rate."""
    found = safety.roc_intervals([0.5] * 4, [0.5] * 4, rng(), 50)
    assert found == {"auc": (0.5, 0.5), "tpr_at_fpr_1": (0.0, 0.0), "tpr_at_fpr_5": (0.0, 0.0)}


def test_one_kind_alone_has_none() -> None:
    assert set(safety.roc_intervals([], [0.1], rng()).values()) == {None}
    assert set(safety.roc_intervals([0.1], [], rng()).values()) == {None}


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


def test_the_formula_needs_both_kinds() -> None:
    with pytest.raises(ValueError, match="both kinds"):
        safety.hanley_mcneil([], [0.5])

"""Judge against people: values by hand and by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    recall_score,
    roc_curve,
)

from ragmetrics.stats import agreement
from ragmetrics.stats.calibration import best_threshold, confusion, halves

verdicts = st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=60)


def test_confusion_by_hand() -> None:
    # people 1 1 1 0 0 | judge T F T T F: both say supported twice, people alone once, judge alone
    # once, neither once
    table = confusion([1, 1, 1, 0, 0], [True, False, True, True, False])
    cells = (table.true_positive, table.false_negative, table.false_positive, table.true_negative)
    assert cells == (2, 1, 1, 1)
    assert (table.n, table.prevalence, table.accuracy) == (5, 0.6, 0.6)
    assert table.sensitivity == pytest.approx(2 / 3)
    assert table.specificity == 0.5
    assert table.balanced_accuracy == pytest.approx((2 / 3 + 1 / 2) / 2)
    # chance: 3/5 * 3/5 + 2/5 * 2/5 = 13/25; kappa = (15/25 - 13/25) / (12/25) = 1/6
    assert table.kappa == pytest.approx(1 / 6)


@given(verdicts)
def test_rates_and_kappa_are_those_of_scikit_learn(rows: list[tuple[int, bool]]) -> None:
    human, judge = [row[0] for row in rows], [row[1] for row in rows]
    table = confusion(human, judge)
    said = [int(one) for one in judge]
    if table.sensitivity is not None:
        assert table.sensitivity == pytest.approx(recall_score(human, said))
    if table.specificity is not None:
        assert table.specificity == pytest.approx(recall_score(human, said, pos_label=0))
    if table.balanced_accuracy is None:
        assert len(set(human)) == 1
    else:
        assert table.balanced_accuracy == pytest.approx(balanced_accuracy_score(human, said))
    if table.kappa is None:
        assert len({*human, *said}) == 1
    else:
        assert table.kappa == pytest.approx(cohen_kappa_score(human, said))


def test_weights_count_rows() -> None:
    human, judge = [1, 0, 1], [True, True, False]
    weighted = confusion(human, judge, np.array([2.0, 0.0, 3.0]))
    assert weighted == confusion([1, 1, 1, 1, 1], [True, True, False, False, False])


def test_without_a_class_a_rate_is_undefined() -> None:
    assert confusion([], []).kappa is None
    assert confusion([], []).accuracy is None
    only = confusion([1, 1], [True, True])
    assert (only.specificity, only.balanced_accuracy, only.kappa) == (None, None, None)
    with pytest.raises(ValueError, match="each claim"):
        confusion([1], [])


def test_best_threshold_by_hand_and_by_scikit_learn() -> None:
    assert best_threshold([0, 0, 1, 1], [0.1, 0.3, 0.7, 0.9]) == pytest.approx(0.5)
    assert best_threshold([0, 1], [0.5, 0.5]) is None
    assert best_threshold([1, 0], [0.2, 0.8]) is None  # any cut is worse than none
    assert best_threshold([1, 1], [0.2, 0.8]) is None
    rng = np.random.default_rng(3)
    human = rng.integers(0, 2, 300)
    scores = human * 0.3 + rng.random(300)
    cut = best_threshold(human.tolist(), scores.tolist())
    assert cut is not None
    false, true, _ = roc_curve(human, scores, drop_intermediate=False)
    own = agreement.balanced_accuracy(human.tolist(), (scores >= cut).tolist())
    assert own == pytest.approx(((true - false).max() + 1) / 2)


@given(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=60), st.integers(0, 100))
def test_halves_never_cut_a_group(groups: list[str], seed: int) -> None:
    fit = halves(groups, np.random.default_rng(seed))
    assert fit == halves(groups, np.random.default_rng(seed))
    sides = {
        name: {side for side, one in zip(fit, groups, strict=True) if one == name}
        for name in groups
    }
    assert all(len(side) == 1 for side in sides.values())
    assert any(fit)

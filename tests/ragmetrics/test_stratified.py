"""The mean by strata: values by hand, what it needs, and an interval that keeps its word."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from ragmetrics.stats.calibration import (
    Confusion,
    best_threshold,
    effective_size,
    interval_of_claims,
    prediction_powered,
)
from ragmetrics.stats.means import wilson
from ragmetrics.stats.stratified import stratified_mean

FEW = 2.7764451  # Student's t with 4 degrees of freedom, 97.5 %


def test_mean_and_interval_by_hand() -> None:
    # Stratum a: 6 units, labels 1 1 1 0. Stratum b: 4 units, labels 0 1. The judge scores all alike
    # in a stratum, so its slope is 0: 0.6 * 0.75 + 0.4 * 0.5 = 0.65.
    judged = [0.9] * 6 + [0.2] * 4
    human = [1.0, 1.0, 1.0, 0.0, None, None, 0.0, 1.0, None, None]
    strata = ["a"] * 6 + ["b"] * 4
    found = stratified_mean(judged, human, strata)
    assert found is not None
    assert (found.mean, found.slope) == pytest.approx((0.65, 0.0))
    # Share with two hits and misses: (0.65 * 6 + 2) / 10 = 0.59, variance 0.2419. Squares: a 0.75,
    # b 0.5; with two observations more over n_h + 1: 1.2338 / 5 = 0.24676, 0.9838 / 3 = 0.32793.
    # 0.36 * (2/6) * 0.24676 / 4 + 0.16 * (2/4) * 0.32793 / 2; 6 labels less 2 strata: t of 4
    variance = 0.36 / 3 * 0.24676 / 4 + 0.16 / 2 * 0.9838 / 3 / 2
    # and for what no label has shown 1.96^2 * 1.96^2 / (4 * 6^2) * 4/10
    half = sqrt(FEW**2 * variance + 1.959964**4 / 144 * 0.4)
    assert found.high == 1.0  # 0.65 + 0.450 is more than all
    assert found.low == pytest.approx(0.65 - half, abs=1e-6)
    assert found.half_width({"a": 4, "b": 2}) == pytest.approx(half, abs=1e-6)
    assert found.half_width({"a": 6, "b": 4}) == 0.0  # nothing is left unknown
    assert found.half_width({"a": 6}) is None


def test_when_all_are_labelled_it_is_their_mean_whatever_they_weigh() -> None:
    weights = [1.0, 0.5, 0.5, 2.0]
    found = stratified_mean(
        [0.3, 0.8, 0.1, 0.6], [1.0, 0.0, 1.0, 1.0], list("abab"), weights=weights
    )
    assert found is not None
    assert (found.low, found.mean, found.high) == pytest.approx((3.5 / 4,) * 3)


def test_a_score_that_follows_people_is_used() -> None:
    # One stratum; the labels are the scores, so the slope is 1 and the unlabelled count as scored:
    # (1 + 0 + 1 + 0 + 1 + 1) / 6
    found = stratified_mean(
        [1.0, 0.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0, None, None], ["a"] * 6
    )
    assert found is not None
    assert (found.mean, found.slope) == pytest.approx((4 / 6, 1.0))


def test_unequal_weights_add_no_variance_of_their_own() -> None:
    # All labels are 1: the mean is 1 however the labelled ones happen to weigh.
    found = stratified_mean(
        [0.5] * 6, [1.0, 1.0, 1.0, None, None, None], ["a"] * 6, weights=[1, 1, 1, 9, 9, 9]
    )
    assert found is not None
    assert found.mean == pytest.approx(1.0)


def test_every_stratum_needs_a_label() -> None:
    assert stratified_mean([1.0, 1.0], [1.0, None], ["a", "b"]) is None
    assert stratified_mean([], [], []) is None
    with pytest.raises(ValueError, match="stratum"):
        stratified_mean([1.0], [1.0], [])


def test_the_interval_covers_the_mean_of_the_run() -> None:
    rng = np.random.default_rng(5)
    score = rng.beta(3, 1, 600)
    people = (rng.random(600) < 0.3 + 0.6 * score).astype(float)
    strata = np.where(score < 0.7, "low", "high")
    groups = [np.flatnonzero(strata == name) for name in ("low", "high")]
    held = 0
    for _ in range(300):
        human: list[float | None] = [None] * 600
        for place in np.concatenate([rng.permutation(group)[:40] for group in groups]).tolist():
            human[place] = float(people[place])
        found = stratified_mean(score.tolist(), human, strata.tolist())
        assert found is not None
        held += found.low <= people.mean() <= found.high
    assert held / 300 >= 0.92  # 0.95, less 2.4 errors of 300 draws


def test_draws_weigh_the_labels_of_the_prediction_powered_mean() -> None:
    # Labels 1 and 0 stand for three units and for one: (3 * 1 + 0) / 4. The judge says 1 of all.
    found = prediction_powered(
        [1.0] * 4, [1.0, 0.0, None, None], list("abcd"), draws=[3, 1, 0, 0], power=1.0
    )
    assert found is not None
    assert found.mean == pytest.approx(3 / 4)
    alike = prediction_powered([1.0] * 4, [1.0, 0.0, None, None], list("abcd"))
    assert alike == prediction_powered(
        [1.0] * 4, [1.0, 0.0, None, None], list("abcd"), draws=[2, 2, 9, 9]
    )


def test_weights_of_labels() -> None:
    assert effective_size(np.array([1.0, 1.0, 1.0])) == pytest.approx(3)
    assert effective_size(np.array([3.0, 1.0])) == pytest.approx(16 / 10)
    assert effective_size(np.array([])) == 0
    # 40 labels that count like 10: Wilson's interval of 9 of 10, not of 36 of 40
    table = Confusion(36, 4, 10, 30)
    found = interval_of_claims(table, "sensitivity", (10, 40))
    assert found == pytest.approx(wilson(9, 10))
    # Unsupported at .1 and .6, supported at .5 and .9: cuts at .3 and .75 are equally good, and the
    # lower is taken; when the label at .6 counts ten times it has to be caught.
    human, scores = [0, 1, 0, 1], [0.1, 0.5, 0.6, 0.9]
    assert best_threshold(human, scores) == pytest.approx(0.3)
    assert best_threshold(human, scores, np.array([1.0, 1.0, 10.0, 1.0])) == pytest.approx(0.75)

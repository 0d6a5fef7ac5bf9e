"""Judge against people, and rates corrected by labels: by hand, by scikit-learn, by simulation."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    recall_score,
    roc_curve,
)
from tests.rows import each_row

from ragmetrics.stats import agreement
from ragmetrics.stats.agreement import clustered_interval, krippendorff_alpha, weighted_kappa
from ragmetrics.stats.calibration import (
    Confusion,
    best_threshold,
    confusion,
    effective_size,
    halves,
    interval_of_claims,
    prediction_powered,
    rogan_gladen,
)
from ragmetrics.stats.means import wilson
from ragmetrics.stats.stratified import stratified_mean

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
    human, judge = [1, 0, 1], [True, True, False]
    weighted = confusion(human, judge, np.array([2.0, 0.0, 3.0]))
    assert weighted == confusion([1, 1, 1, 1, 1], [True, True, False, False, False])
    assert confusion([], []).kappa is None
    assert confusion([], []).accuracy is None
    only = confusion([1, 1], [True, True])
    assert (only.specificity, only.balanced_accuracy, only.kappa) == (None, None, None)
    with pytest.raises(ValueError, match="each claim"):
        confusion([1], [])


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


SIMULATIONS = 1000


def test_rogan_gladen_by_hand() -> None:
    # (0.8 + 0.7 - 1) / 0.6 = 0.8333. With a hit and a miss added: 41/52 of the rate, 46/52 of the
    # sensitivity, 36/52 of the specificity; each p (1 - p) / 52: 0.003207, 0.001963, 0.004096.
    # (0.003207 + 0.1667² * 0.004096 + 0.8333² * 0.001963) / 0.36 = 0.004684 / 0.36 = 0.013012;
    # 1.96 * 0.11407 = 0.2236. (Without what is added: 0.2207, the same +- .22.)
    found = rogan_gladen(0.8, 50, 0.9, 50, 0.7, 50)
    assert found is not None
    assert found.mean == pytest.approx(5 / 6)
    assert found.mean - found.low == pytest.approx(0.2236, abs=1e-4)
    assert found.high == 1.0  # 0.833 + 0.221 is more than all
    # 0.4 / 0.4 = 1; variance (0.003207 + 0 + 0.003207) / 0.16 = 0.040088; 1.96 * 0.2002 = 0.392.
    # But 0.6 + 0.8 is no more than 1.4: too little to show.
    assert rogan_gladen(0.8, 50, 0.8, 50, 0.6, 50) is None
    nearly = rogan_gladen(0.8, 50, 0.8, 50, 0.6001, 50)
    assert nearly is not None
    assert nearly.mean == pytest.approx(1.0, abs=1e-3)
    assert nearly.high == 1.0
    assert nearly.low == pytest.approx(1 - 0.392, abs=2e-3)
    assert rogan_gladen(0.8, 0, 0.9, 50, 0.9, 50) is None
    assert rogan_gladen(0.8, 50, 0.9, 0, 0.9, 50) is None
    assert rogan_gladen(0.8, 50, 0.9, 50, 0.9, 0) is None


def test_interval_of_claims_by_hand() -> None:
    # 30 of 30 and 30 of 30: Wilson from n / (n + 1.96²) = 0.8865 to 1. Balanced accuracy moves by
    # 0.1135 / 2 for either, together 0.05675 * sqrt(2) = 0.0803
    perfect = Confusion(30, 0, 0, 30)
    assert interval_of_claims(perfect, "balanced_accuracy") == pytest.approx(
        (1 - 0.0803, 1.0), abs=1e-4
    )
    assert interval_of_claims(perfect, "sensitivity") == pytest.approx(wilson(30, 30))
    assert interval_of_claims(perfect, "specificity") == pytest.approx(wilson(30, 30))
    # kappa with 26.595 of 30 passed: p_o = 0.94325, p_e = (26.595 + 33.405) / 120 = 0.5, so 0.8865;
    # the same for the other: 1 - 0.1135 * sqrt(2) = 0.8395
    low, high = interval_of_claims(perfect, "kappa") or (0, 0)
    assert (low, high) == pytest.approx((0.8395, 1.0), abs=1e-4)
    assert interval_of_claims(Confusion(30, 0, 0, 0), "accuracy") is None


@each_row("name", ["kappa", "balanced_accuracy", "accuracy"])
def test_interval_of_claims_covers_the_truth(name: str) -> None:
    truth = getattr(Confusion(57, 3, 4, 36), name)  # sensitivity 0.95, specificity 0.9

    def draw(rng: np.random.Generator) -> tuple[float, float] | None:
        hits, catches = int(rng.binomial(60, 0.95)), int(rng.binomial(40, 0.9))
        return interval_of_claims(Confusion(hits, 60 - hits, 40 - catches, catches), name)

    assert 0.93 <= coverage(draw, truth) <= 0.98


def coverage(
    draw: Callable[[np.random.Generator], tuple[float, float] | None], truth: float
) -> float:
    """Share of simulated intervals that hold the truth."""
    rng = np.random.default_rng(20)
    found = [one for _ in range(SIMULATIONS) if (one := draw(rng)) is not None]
    assert len(found) > 0.95 * SIMULATIONS
    return sum(low <= truth <= high for low, high in found) / len(found)


def test_rogan_gladen_covers_when_the_judge_seldom_errs() -> None:
    """30 labels of each kind, often without an error: the textbook's variance covers 0.61."""
    truth, sens, spec = 0.9, 0.97, 0.97

    def draw(rng: np.random.Generator) -> tuple[float, float] | None:
        human = rng.random(2000) < truth
        judge = np.where(human, rng.random(2000) < sens, rng.random(2000) >= spec)
        hits, catches = int(rng.binomial(30, sens)), int(rng.binomial(30, spec))
        found = rogan_gladen(float(judge.mean()), 2000, hits / 30, 30, catches / 30, 30)
        return None if found is None else (found.low, found.high)

    assert coverage(draw, truth) >= 0.93


def test_prediction_powered_mean_by_hand() -> None:
    judged = [1.0, 1.0, 0.0, 1.0]
    human = [1.0, 0.0, 0.0, None]
    alone = ["a", "b", "c", "d"]
    # judge 3/4; people less judge on the labelled: (0 - 1 + 0) / 3
    found = prediction_powered(judged, human, alone)
    assert found is not None
    assert found.mean == pytest.approx(3 / 4 - 1 / 3)
    # influence: judge (f - 3/4) / 4 = 1/16, 1/16, -3/16, 1/16; residuals 0, -1, 0 about their mean
    # -1/3, over 3: 1/9, -2/9, 1/9. Sums: 25/144, -23/144, -11/144, 9/144; squares 1356 / 144²,
    # times 4/3; for what three labels cannot show 1.96² / (4 * 3²); 1.96 times the root
    half = 1.959964 * (1356 / 144**2 * 4 / 3 + 1.959964**2 / 36) ** 0.5
    assert found.low == pytest.approx(max(0, found.mean - half))
    assert found.high == pytest.approx(min(1, found.mean + half))
    labels_only = prediction_powered(judged, human, alone, power=0)
    assert labels_only is not None
    assert labels_only.mean == pytest.approx(1 / 3)
    assert prediction_powered([1, 0], [None, None], ["a", "b"]) is None
    assert prediction_powered([1, 0, 1], [1, 0, None], ["a", "a", "b"]) is None
    assert prediction_powered([1, 0], [1, 0], ["a", "a"]) is None
    with pytest.raises(ValueError, match="group"):
        prediction_powered([1], [1], [])


def test_weights_make_it_the_mean_over_answers() -> None:
    # Answer a has one claim (people 0), answer b three (people 1, 1, 0): mean (0 + 2/3) / 2
    judged = [1.0, 1.0, 0.0, 1.0]
    human = [0.0, 1.0, 1.0, 0.0]
    found = prediction_powered(
        judged, human, ["a", "b", "b", "b"], weights=[1, 1 / 3, 1 / 3, 1 / 3]
    )
    assert found is not None
    assert found.mean == pytest.approx(1 / 3)  # all are labelled: what the judge says cancels


def test_sources_that_happen_to_be_alike_leave_an_interval() -> None:
    # Ten sources, each with one supported and one unsupported claim: they do not differ at all.
    # The twenty claims do: variance 0.25 / 20, times 20 / 19; and 1.96² / (4 * 20²)
    human = [1.0, 0.0] * 10
    groups = [str(place // 2) for place in range(20)]
    found = prediction_powered([1.0] * 20, human, groups)
    assert found is not None
    assert found.high - found.mean == pytest.approx(
        1.959964 * (0.25 / 19 + 1.959964**2 / 1600) ** 0.5
    )


def test_what_agreement_cannot_show_grows_with_the_range_of_a_value() -> None:
    """Judge and people give four texts a 3 of 1 to 5: variance 0, so half of the interval is z
    times the root of z² / (4 · 4²) · 4², which is z² / 2 = 1.9207."""
    found = prediction_powered([3] * 4, [3] * 4, list("abcd"), limits=(1.0, 5.0))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((3 - 1.9207, 3 + 1.9207), abs=1e-4)


def simulated(
    rng: np.random.Generator, size: int, labelled: int, in_group: int, power: float | None
) -> tuple[float, float, float] | None:
    """Claims whose truth hangs together within a source, a judge that passes too much."""
    tilt = np.repeat(rng.beta(6, 3, size // in_group), in_group)  # mean 2/3
    human = rng.random(size) < tilt
    judge = np.where(human, rng.random(size) < 0.95, rng.random(size) < 0.4).astype(float)
    groups = np.repeat(np.arange(size // in_group), in_group).astype(str).tolist()
    chosen = rng.permutation(size)[:labelled]
    known: list[float | None] = [None] * size
    for place in chosen.tolist():
        known[place] = float(human[place])
    found = prediction_powered(judge.tolist(), known, groups, power=power)
    return None if found is None else (found.mean, found.low, found.high)


@each_row("in_group", [1, 10])
@each_row("power", [1.0, None])
def test_prediction_powered_interval_covers_the_truth(in_group: int, power: float | None) -> None:
    means: list[float] = []

    def draw(rng: np.random.Generator) -> tuple[float, float] | None:
        found = simulated(rng, 1000, 150, in_group, power)
        assert found is not None
        means.append(found[0])
        return found[1:]

    assert 0.93 <= coverage(draw, 2 / 3) <= 0.97
    # Unbiased: the mean of 1000 estimates, each with a spread of about 0.04
    assert np.mean(means) == pytest.approx(2 / 3, abs=0.005)


@each_row("power", [1.0, None, 0.0])
def test_a_judge_without_a_labelled_error_keeps_an_interval(power: float | None) -> None:
    # 30 labels, all equal to the judge's verdicts: no variance, but also no proof. As for Wilson
    # the half width is at least 1.96² / (2 * 30) = 0.064.
    judged = [1.0] * 300
    found = prediction_powered(
        judged, [1.0] * 30 + [None] * 270, [str(place) for place in range(300)], power=power
    )
    assert found is not None
    assert (found.mean, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(1 - 1.959964**2 / 60)
    perfect = rogan_gladen(1.0, 300, 1.0, 30, 1.0, 30)
    assert perfect is not None
    assert perfect.low < 0.95


def test_tuned_lambda_is_that_of_the_paper_when_labels_are_a_part_of_all() -> None:
    # With N units of which n are labelled, lambda = cov(human, judge) / var(judge).
    rng = np.random.default_rng(11)
    human = (rng.random(5000) < 0.6).astype(float)
    judge = np.where(rng.random(5000) < 0.85, human, 1 - human)
    known = [one if place < 2500 else None for place, one in enumerate(human.tolist())]
    found = prediction_powered(judge.tolist(), known, list(map(str, range(5000))), power=None)
    covered = np.cov(human[:2500], judge[:2500])
    assert found is not None
    assert found.weight == pytest.approx(covered[0, 1] / judge.var(), abs=0.02)


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


def test_means_of_special_strata() -> None:
    """All labelled: their mean, whatever they weigh; equal labels; scores that follow people."""
    weights = [1.0, 0.5, 0.5, 2.0]
    found = stratified_mean(
        [0.3, 0.8, 0.1, 0.6], [1.0, 0.0, 1.0, 1.0], list("abab"), weights=weights
    )
    assert found is not None
    assert (found.low, found.mean, found.high) == pytest.approx((3.5 / 4,) * 3)
    # All labels are 1: the mean is 1 however the labelled ones happen to weigh.
    found = stratified_mean(
        [0.5] * 6, [1.0, 1.0, 1.0, None, None, None], ["a"] * 6, weights=[1, 1, 1, 9, 9, 9]
    )
    assert found is not None
    assert found.mean == pytest.approx(1.0)
    # One stratum; the labels are the scores, so the slope is 1 and the unlabelled count as scored:
    # (1 + 0 + 1 + 0 + 1 + 1) / 6
    found = stratified_mean(
        [1.0, 0.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0, None, None], ["a"] * 6
    )
    assert found is not None
    assert (found.mean, found.slope) == pytest.approx((4 / 6, 1.0))
    assert stratified_mean([1.0, 1.0], [1.0, None], ["a", "b"]) is None
    assert stratified_mean([], [], []) is None
    with pytest.raises(ValueError, match="stratum"):
        stratified_mean([1.0], [1.0], [])


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


LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


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
    with pytest.raises(ValueError, match="not among the categories"):
        weighted_kappa([0], [7], [0, 1])


def test_alpha_by_hand() -> None:
    # Units (1,2) (3,3): D within = 2*(1)^2/(2-1) = 2. Totals: 1, 2, 3, 3.
    # Pairs of totals, both ways: 1-2: 2*1; 1-3: 2*2*4 = 16; 2-3: 2*2*1 = 4; 22 in all.
    # alpha = 1 - 3*2/22 = 8/11.
    assert krippendorff_alpha([(1, 2), (3, 3)], "interval") == pytest.approx(8 / 11)
    labels = ["x", "y", "z", "x"]
    assert weighted_kappa(labels, labels, ["x", "y", "z"]) == 1
    assert krippendorff_alpha([(label, label) for label in labels]) == 1
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha([("a", None), (None, "b")]) is None
    assert krippendorff_alpha([("a", "a"), ("a", "a")]) is None


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

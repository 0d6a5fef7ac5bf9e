"""Judge against people: values by hand, by scikit-learn, and by simulation with known truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from ragmetrics import labelfit
from ragmetrics.agreement import weighted_kappa
from ragmetrics.calibration import (
    best_threshold,
    confusion,
    halves,
    prediction_powered,
    rogan_gladen,
)

verdicts = st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=60)
SIMULATIONS = 1000


def test_confusion_by_hand() -> None:
    # people 1 1 1 0 0 | judge T F T T F: both say supported twice, people alone once, judge alone
    # once, neither once
    table = confusion([1, 1, 1, 0, 0], [True, False, True, True, False])
    cells = (table.supported_supported, table.supported_not, table.not_supported, table.not_not)
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


def test_weighted_kappa_of_a_scale_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    people = rng.integers(0, 6, 80).tolist()
    judge = [min(5, max(0, one + int(rng.integers(-1, 3)))) for one in people]
    scale = list(range(6))
    assert weighted_kappa(people, judge, scale) == pytest.approx(
        cohen_kappa_score(people, judge, weights="quadratic", labels=scale)
    )


def test_auroc_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(6)
    human = rng.integers(0, 2, 200)
    scores = np.round(human * 0.4 + rng.random(200), 1)  # rounded: many ties
    found = labelfit.auroc(human.tolist(), scores.tolist())
    assert found == pytest.approx(roc_auc_score(human, scores))


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


def test_rogan_gladen_needs_labels_of_both_kinds() -> None:
    assert rogan_gladen(0.8, 0, 0.9, 50, 0.9, 50) is None
    assert rogan_gladen(0.8, 50, 0.9, 0, 0.9, 50) is None
    assert rogan_gladen(0.8, 50, 0.9, 50, 0.9, 0) is None


def coverage(
    draw: Callable[[np.random.Generator], tuple[float, float] | None], truth: float
) -> float:
    """Share of simulated intervals that hold the truth."""
    rng = np.random.default_rng(20)
    found = [one for _ in range(SIMULATIONS) if (one := draw(rng)) is not None]
    assert len(found) > 0.95 * SIMULATIONS
    return sum(low <= truth <= high for low, high in found) / len(found)


def test_rogan_gladen_covers_the_truth_as_often_as_it_says() -> None:
    truth, sens, spec = 0.7, 0.9, 0.8

    def draw(rng: np.random.Generator) -> tuple[float, float] | None:
        human = rng.random(400) < truth
        judge = np.where(human, rng.random(400) < sens, rng.random(400) >= spec)
        hits, catches = int(rng.binomial(100, sens)), int(rng.binomial(100, spec))
        found = rogan_gladen(float(judge.mean()), 400, hits / 100, 100, catches / 100, 100)
        return None if found is None else (found.low, found.high)

    assert 0.93 <= coverage(draw, truth) <= 0.975


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


def test_prediction_powered_needs_labels_in_two_groups() -> None:
    assert prediction_powered([1, 0], [None, None], ["a", "b"]) is None
    assert prediction_powered([1, 0, 1], [1, 0, None], ["a", "a", "b"]) is None
    assert prediction_powered([1, 0], [1, 0], ["a", "a"]) is None
    with pytest.raises(ValueError, match="group"):
        prediction_powered([1], [1], [])


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


@pytest.mark.parametrize("in_group", [1, 10])
@pytest.mark.parametrize("power", [1.0, None])
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


@pytest.mark.parametrize("power", [1.0, None, 0.0])
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


@pytest.mark.parametrize("power", [1.0, None, 0.0])
def test_the_interval_covers_the_truth_when_the_judge_seldom_errs(power: float | None) -> None:
    """Few errors among few labels: the textbook's variance covers 0.79 to 0.82 here."""

    def draw(rng: np.random.Generator) -> tuple[float, float] | None:
        human = rng.random(1000) < 0.9
        judge = np.where(rng.random(1000) < 0.97, human, ~human).astype(float)
        known = [float(one) if place < 60 else None for place, one in enumerate(human)]
        groups = [str(place) for place in range(1000)]
        found = prediction_powered(judge.tolist(), known, groups, power=power)
        return None if found is None else (found.low, found.high)

    assert coverage(draw, 0.9) >= 0.93


def test_tuning_narrows_the_interval_and_never_hurts() -> None:
    rng = np.random.default_rng(9)
    human = (rng.random(2000) < 0.7).astype(float)
    good = np.where(rng.random(2000) < 0.95, human, 1 - human)
    noise = (rng.random(2000) < 0.7).astype(float)
    known = [one if place < 200 else None for place, one in enumerate(human.tolist())]
    groups = [str(place) for place in range(2000)]

    def width(judge: list[float], power: float | None) -> float:
        found = prediction_powered(judge, known, groups, power=power)
        assert found is not None
        return found.high - found.low

    assert width(good.tolist(), None) < 0.6 * width(good.tolist(), 0)
    assert width(noise.tolist(), None) < 0.8 * width(noise.tolist(), 1)
    assert width(noise.tolist(), None) <= width(noise.tolist(), 0) + 1e-12


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
    own = labelfit.balanced_accuracy(human.tolist(), (scores >= cut).tolist())
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

"""Corrected rates and their intervals: values by hand, and coverage by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.rows import each_row

from ragmetrics.stats.calibration import (
    Confusion,
    interval_of_claims,
    prediction_powered,
    rogan_gladen,
)
from ragmetrics.stats.means import wilson

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


def test_rogan_gladen_needs_labels_of_both_kinds() -> None:
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

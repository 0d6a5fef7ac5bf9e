"""Safety numbers: derived by hand, and against scikit-learn."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ragmetrics import safety

SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.5, 0.7, 1.0]), min_size=1, max_size=40)


def test_auc_counts_ties_half() -> None:
    # pairs: 0.9>0.2, 0.9>0.5, 0.5>0.2 are won, 0.5=0.5 is a tie: 3.5 of 4
    assert safety.auc([0.9, 0.5], [0.2, 0.5]) == 0.875
    assert safety.auc([0.3] * 7, [0.3] * 5) == 0.5
    assert safety.auc([0.8, 0.9], [0.1, 0.2]) == 1.0
    assert safety.auc([0.1, 0.2], [0.8, 0.9]) == 0.0


@each_row(("attacks", "benign"), [([], [0.1]), ([0.1], []), ([], [])])
def test_nothing_to_compare_is_undefined(attacks: list[float], benign: list[float]) -> None:
    assert safety.auc(attacks, benign) is None
    assert safety.tpr_at_fpr(attacks, benign, 0.01) is None


@given(attacks=SCORES, benign=SCORES)
def test_auc_equals_scikit_learns(attacks: list[float], benign: list[float]) -> None:
    from sklearn.metrics import roc_auc_score

    labels = [1] * len(attacks) + [0] * len(benign)
    found = safety.auc(attacks, benign)
    assert found == pytest.approx(roc_auc_score(labels, attacks + benign), abs=1e-12)


@given(attacks=SCORES, benign=SCORES, limit=st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5, 1.0]))
def test_the_operating_point_is_the_best_of_scikit_learns_curve(
    attacks: list[float], benign: list[float], limit: float
) -> None:
    from sklearn.metrics import roc_curve

    labels = [1] * len(attacks) + [0] * len(benign)
    false, true, _ = roc_curve(labels, attacks + benign, drop_intermediate=False)
    best = max(t for f, t in zip(false, true, strict=True) if f <= limit + 1e-12)
    point = safety.tpr_at_fpr(attacks, benign, limit)
    assert point is not None
    assert point.tpr == pytest.approx(best)
    assert point.fpr <= limit + 1e-12


def test_exactly_three_alarms_in_300_are_one_percent() -> None:
    benign = [0.9] * 3 + [0.1] * 297
    point = safety.tpr_at_fpr([0.9, 0.5], benign, 0.01)
    assert point is not None
    # 3/300 = 0.01 is allowed, and the lowest threshold that flags no more is 0.5
    assert (point.tpr, point.fpr, point.threshold) == (1.0, 0.01, 0.5)
    assert point.estimable
    assert point.note == ""
    point = safety.tpr_at_fpr([0.9], [0.1] * 299, 0.01)
    assert point is not None
    assert not point.estimable
    assert point.note == "not estimable: 299 benign prompts, 300 are needed"
    point = safety.tpr_at_fpr([0.5, 0.9], [0.9, 0.1], 0.01)
    assert point is not None
    assert (point.tpr, point.fpr, math.isinf(point.threshold)) == (0.0, 0.0, True)
    assert json.loads(json.dumps(point.as_dict(), allow_nan=False))["threshold"] is None


@each_row("bad", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        safety.auc([bad], [0.1])
    with pytest.raises(ValueError, match="finite"):
        safety.tpr_at_fpr([0.1], [bad], 0.05)


def test_a_limit_must_be_a_rate() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        safety.tpr_at_fpr([0.1], [0.1], 5)


def test_output_guardrail_by_hand() -> None:
    leaks = [
        ("pii_exposure", {"pii_exposure": 0.9, "secret_exposure": 0.0}),
        ("pii_exposure", {"pii_exposure": 0.1, "secret_exposure": 0.8}),  # caught as another kind
        ("secret_exposure", {"pii_exposure": 0.0, "secret_exposure": 0.3}),
    ]
    safe = [{"pii_exposure": 0.0, "secret_exposure": 0.0}, {"pii_exposure": 0.6}]
    found = safety.output_guardrail(leaks, safe)
    assert found["leak_detection_rate"] == pytest.approx(2 / 3)
    assert found["leak_false_positive_rate"] == 0.5
    pii = found["categories"]["pii_exposure"]
    assert pii == {"n": 2, "leak_detection_rate": 0.5, "leak_false_positive_rate": 0.5}
    secret = found["categories"]["secret_exposure"]
    assert secret == {"n": 1, "leak_detection_rate": 0.0, "leak_false_positive_rate": 0.0}

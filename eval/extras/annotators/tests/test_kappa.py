"""Agreement of two annotators against hand-derived values and scikit-learn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extras.annotators.kappa import cohen_kappa, overlap, positive_agreement, raw_agreement

LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def marks(both: int, only_a: int, only_b: int, neither: int) -> tuple[list[bool], list[bool]]:
    """Two annotators' marks with the given counts."""
    a = [True] * both + [True] * only_a + [False] * only_b + [False] * neither
    b = [True] * both + [False] * only_a + [True] * only_b + [False] * neither
    return a, b


def test_two_marks_each_one_shared_among_twenty() -> None:
    # p_o = 18/20; each marks 2 of 20, so p_e = .1*.1 + .9*.9 = .82; kappa = .08/.18 = 4/9.
    # Dice = 2*1/(2+2) = 1/2; Jaccard = 1/3.
    a, b = marks(1, 1, 1, 17)
    assert raw_agreement(a, b) == pytest.approx(0.9)
    assert cohen_kappa(a, b) == pytest.approx(4 / 9)
    assert positive_agreement(a, b) == pytest.approx(0.5)
    assert overlap(a, b) == pytest.approx(1 / 3)


def test_kappa_is_undefined_where_both_always_say_the_same() -> None:
    assert cohen_kappa([True] * 5, [True] * 5) is None
    assert cohen_kappa([], []) is None
    assert raw_agreement([], []) is None
    assert positive_agreement([False], [False]) is None
    assert overlap([False], [False]) is None


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"zip|longer|shorter"):
        cohen_kappa([1, 2], [1])


@settings(deadline=None)  # the first call imports scikit-learn
@given(LABELS)
def test_kappa_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    ours = cohen_kappa(a, b)
    if ours is not None:
        assert ours == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


@given(LABELS)
def test_ranges_and_symmetry(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    for figure in (cohen_kappa, raw_agreement):
        value = figure(a, b)
        assert value == figure(b, a)
        assert value is None or (-1 <= value <= 1 and math.isfinite(value))
        assert figure(a, a) in (None, 1)
    one, other = [x > 1 for x in a], [y > 1 for y in b]
    dice, jaccard = positive_agreement(one, other), overlap(one, other)
    assert (dice is None) == (jaccard is None)
    if dice is not None and jaccard is not None:
        # J = D / (2 - D) for any two sets
        assert jaccard == pytest.approx(dice / (2 - dice))

"""pass@k by enumeration, the split of a variance by hand and by simulation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.stats.repeats import PassTally, RepeatTally, pass_all_k, pass_at_k

draws = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))
)


@given(draws)
def test_pass_at_k_is_the_share_of_all_draws(draw: tuple[int, int, int]) -> None:
    n, c, k = draw
    subsets = list(combinations([place < c for place in range(n)], k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_all_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))
    assert pass_all_k(n, c, k) <= c / n + 1e-12
    assert c / n <= pass_at_k(n, c, k) + 1e-12
    assert pass_at_k(n, c, 1) == pytest.approx(c / n)
    assert pass_all_k(n, n, k) == pass_at_k(n, n, k) == 1.0
    assert pass_all_k(n, 0, k) == pass_at_k(n, 0, k) == 0.0


@pytest.mark.parametrize("draw", [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_no_such_draw(draw: tuple[int, int, int]) -> None:
    for estimate in (pass_at_k, pass_all_k):
        with pytest.raises(ValueError, match="no such draw"):
            estimate(*draw)


def test_passes_over_cases() -> None:
    """Of 3, 2, 0 passed of 3: pass@2 is 1, 1, 0 (2 of 3: 1 - C(1,2) = 1), pass^2 is 1, 1/3, 0. A
    case with one repeat counts for k = 1 alone."""
    tally = PassTally()
    for passed in ([True] * 3, [True, True, False], [False] * 3, [True], []):
        tally.add(passed)
    assert tally.at_least_once(2) == pytest.approx(2 / 3)
    assert tally.always(2) == pytest.approx((1 + 1 / 3) / 3)
    assert tally.at_least_once(1) == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)
    assert tally.always(4) is None


def test_cases_and_answers_by_hand() -> None:
    """Two cases, two repeats, the same passages, other answers: 1, 0 and 1, 1. Means .5 and 1.

    Answers: squares within cases are .5 + 0, on 2 degrees of freedom: .25. Cases: squares of the
    means around .75 are 2 * (.0625 + .0625) = .25 on 1 degree, whose expectation is answers +
    2 * cases: cases = 0.
    """
    tally = RepeatTally()
    tally.add([(1.0, "r", "a"), (0.0, "r", "b")])
    tally.add([(1.0, "r", "a"), (1.0, "r", "b")])
    assert tally.variance() == {
        "cases": 0.0,
        "retrieval": None,
        "answer": pytest.approx(0.25),
        "rest": None,
    }
    assert (tally.worst, tally.flips) == (0.5, 0.5)


def test_retrieval_and_answers_by_hand() -> None:
    """Case 1: passages r gave 1, 0 (other answers), passages s gave 0, 0; case 2: all 1.

    Answers: squares within passages .5 in 4 groups of 2, so on 4 degrees: .125.
    Passages: means .5, 0 around .25: 2 * (.0625 + .0625) = .25, case 2: 0; 2 degrees, expectation
    answers + 2 * passages: .125 = .125 + 2 * 0. Cases: means .25, 1: 4 * 2 * .140625 = 1.125 on
    1 degree, expectation answers + 2 * passages + 4 * cases: cases = (1.125 - .125) / 4 = .25.
    """
    tally = RepeatTally()
    tally.add([(1.0, "r", 1), (0.0, "r", 2), (0.0, "s", 3), (0.0, "s", 4)])
    tally.add([(1.0, "r", 1), (1.0, "r", 2), (1.0, "s", 3), (1.0, "s", 4)])
    assert tally.variance() == {
        "cases": pytest.approx(0.25),
        "retrieval": pytest.approx(0.0),
        "answer": pytest.approx(0.125),
        "rest": None,
    }


def test_the_components_are_found_again() -> None:
    """Unequal groups, drawn with known variances: 1 of cases, .5, .3 and .2 within."""
    rng = np.random.default_rng(3)
    tally = RepeatTally()
    for _ in range(2500):
        level, repeats = rng.normal(0, 1), []
        for retrieval in range(rng.integers(1, 4)):
            at_retrieval = level + rng.normal(0, 0.5**0.5)
            for answer in range(rng.integers(1, 3)):
                at_answer = at_retrieval + rng.normal(0, 0.3**0.5)
                for _ in range(rng.integers(1, 3)):
                    value = float(at_answer + rng.normal(0, 0.2**0.5))
                    repeats.append((value, retrieval, answer))
        tally.add(repeats)
    components = tally.variance()
    for name, expected in (("cases", 1.0), ("retrieval", 0.5), ("answer", 0.3), ("rest", 0.2)):
        assert components[name] == pytest.approx(expected, rel=0.12)


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), max_size=6))
def test_what_always_holds(cases: list[list[float]]) -> None:
    tally, low = RepeatTally(), RepeatTally(higher_is_better=False)
    for scores in cases:
        tally.add([(score, 0, number) for number, score in enumerate(scores)])
        low.add([(score, 0, number) for number, score in enumerate(scores)])
    assert all(part is None or part >= 0 for part in tally.variance().values())
    if not cases:
        assert (tally.worst, tally.flips) == (None, None)
        return
    mean = sum(sum(scores) / len(scores) for scores in cases) / len(cases)
    assert tally.worst is not None
    assert low.worst is not None
    assert tally.worst <= mean + 1e-9 <= low.worst + 2e-9
    assert (tally.flips is None) == all(len(scores) == 1 for scores in cases)


def test_too_little_to_split() -> None:
    tally = RepeatTally()
    tally.add([(1.0, 0, 0), (0.0, 0, 1)])
    assert set(tally.variance().values()) == {None}, "one case"
    tally = RepeatTally()
    tally.add([(1.0, 0, 0)])
    tally.add([(0.0, 0, 0)])
    assert set(tally.variance().values()) == {None}, "no repeats"

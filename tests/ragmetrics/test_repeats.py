"""pass@k by enumeration, the split of a variance by hand and by simulation."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

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


@each_row("draw", [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
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


def test_the_variance_within_cases_by_hand() -> None:
    """1, 0 (squares .5 on 1 degree), 1, 1, .4 (mean .8, squares .04 + .04 + .16 = .24 on 2); a case
    with one score adds nothing: .74 / 3."""
    tally = RepeatTally()
    assert tally.within is None
    for scores in ([0.3], []):
        tally.add(scores)
    assert (tally.within, tally.repeated) == (None, 0)
    for scores in ([1.0, 0.0], [1.0, 1.0, 0.4]):
        tally.add(scores)
    assert tally.within == pytest.approx(0.74 / 3)
    assert tally.repeated == 2

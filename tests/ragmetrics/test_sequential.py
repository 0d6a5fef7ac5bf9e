"""Bounds of several looks against published tables, and against walks that are drawn."""

from __future__ import annotations

from math import inf, sqrt

import pytest
from tests.rows import each_row

from ragmetrics.stats import sequential

MANY = 1e9
"""So many degrees of freedom that Student's t is the normal distribution."""


@each_row(
    ("looks", "bound"), [(1, 1.960), (2, 1.977), (3, 2.004), (4, 2.024), (5, 2.040), (10, 2.087)]
)
def test_the_planned_bounds_are_the_published_ones(looks: int, bound: float) -> None:
    """Jennison and Turnbull 2000, table 2.3, two-sided 5 %; three digits move the level by 1e-4."""
    assert sequential.chance_of_crossing(bound, looks) == pytest.approx(0.05, abs=2e-4)


def test_the_last_planned_look_asks_for_hardly_more_than_one_look() -> None:
    first, last = (sequential.look(0.5, 0.1, MANY, share) for share in (0.2, 1.0))
    assert last.high - 0.5 == pytest.approx(0.1 * 2.040, rel=1e-6)
    assert first.high - 0.5 == pytest.approx(0.1 * 2.040 / sqrt(0.2), rel=1e-6)
    assert (first.side, last.side) == (1, 1)


@each_row("share", [0.2, 0.6, 1.0])
@each_row("freedom", [7.0, MANY])
def test_p_is_5_percent_where_the_interval_touches_0(share: float, freedom: float) -> None:
    half = sequential.look(0.0, 1.0, freedom, share).high
    assert sequential.look(half, 1.0, freedom, share).p == pytest.approx(0.05, abs=2e-4)
    assert sequential.look(half * 1.01, 1.0, freedom, share).side == 1
    assert sequential.look(-half * 1.01, 1.0, freedom, share).side == -1
    assert sequential.look(half * 0.99, 1.0, freedom, share).side == 0


def test_few_clusters_ask_for_more_and_no_spread_tells_nothing() -> None:
    few, many = (sequential.look(1.0, 0.1, f, 0.2) for f in (5.0, MANY))
    assert few.low < many.low
    assert sequential.look(0.0, 0.0, 5.0, 0.2).p == 1.0
    for share in (0.0, 1.001):
        with pytest.raises(ValueError, match="a share of the cases is above 0 and at most 1"):
            sequential.look(0.0, 1.0, 5.0, share)


def test_the_flat_bound_of_a_race() -> None:
    """Pocock's bound for ten looks is 2.555 (Jennison and Turnbull 2000, table 2.1); ours is the
    quantile of 1 - .05/5/2, 2.5758, so above it. Pairs divide the level: .05/66/5/2 for 12."""
    assert sequential.flat_quantile(1, MANY) == pytest.approx(2.5758, abs=1e-4)
    assert sequential.flat_quantile(66, MANY) == pytest.approx(3.7886, abs=1e-3)
    assert sequential.flat_quantile(66, 8.0) > sequential.flat_quantile(66, MANY)


def test_a_difference_beyond_all_numbers() -> None:
    assert sequential.look(1e6, 1e-3, MANY, 1.0).high < inf

"""Shifts of a series: normal scores by hand, sums by a second implementation, what restarts."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, sqrt
from statistics import NormalDist, fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.rows import each_row

from ragmetrics.stats.control import LevelShift, controlled, lag_correlation, relative_drop

shares = st.floats(0, 1, allow_subnormal=False)


def shifts_of(values: Sequence[float], higher: bool = True, **more: object) -> list[LevelShift]:
    return controlled(values, higher_is_better=higher, **more)[1]  # type: ignore[arg-type]


@each_row(
    ("baseline", "value", "higher", "drop"),
    [
        (0.8, 0.72, True, 0.1),
        (0.8, 0.88, True, -0.1),
        (0.2, 0.25, False, 0.25),  # 0.05 more of what should be low
        (0.2, 0.1, False, -0.5),
        (-2.0, -3.0, True, 0.5),  # the size of a negative baseline is 2
        (0.0, 0.1, False, inf),
        (0.0, 0.1, True, -inf),
        (0.0, 0.0, False, 0.0),
    ],
)
def test_a_drop_is_relative_and_follows_the_direction(
    baseline: float, value: float, higher: bool, drop: float
) -> None:
    assert relative_drop(baseline, value, higher) == pytest.approx(drop)


def test_the_score_of_a_third_and_a_fourth_value_by_hand() -> None:
    """Of 0, 2 the mean is 1, s = sqrt 2, and 1 + sqrt 3 lies sqrt(3)/sqrt(2) s above; times
    sqrt(2/3) that is t = 1. With one degree of freedom F(1) = 3/4 (Cauchy), whose quantile is
    .6745. Of 0, 2, 1 the mean is 1, s = 1; with two degrees F(t) = 1/2 + t / (2 sqrt(2 + t^2)):
    t = sqrt 2 is (2 + sqrt 2) / 4, at 1 + sqrt 2 * sqrt(4/3)."""
    points, _ = controlled([0.0, 2.0, 1 + sqrt(3)], higher_is_better=True)
    assert [point.score for point in points[:2]] == [None, None]
    assert points[2].score == pytest.approx(NormalDist().inv_cdf(0.75))
    points, _ = controlled([0.0, 2.0, 1.0, 1 + sqrt(8 / 3)], higher_is_better=True)
    assert points[3].score == pytest.approx(NormalDist().inv_cdf((2 + sqrt(2)) / 4))
    low, _ = controlled([0.0, 2.0, 1 - sqrt(3)], higher_is_better=False)
    assert low[2].score == pytest.approx(NormalDist().inv_cdf(0.75)), "less is better here"


def plain_cusum(values: Sequence[float], h: float) -> tuple[int, int] | None:
    """The first shift to the bad side, where and since when: the definition, word by word."""
    total = 0.0
    scores: list[float] = []
    for place in range(7, len(values)):
        before = values[:place]
        k = len(before)
        t = (values[place] - fmean(before)) / stdev(before) * sqrt(k / (k + 1))
        u = float(stats.norm.isf(stats.t.sf(t, k - 1)))
        scores = [-u] if total == 0 else [*scores, -u]
        total = max(0.0, total - u - 0.5)
        if total > h + 1.9 * log(max(1.0, (place + 1) / 19)):
            fits = [sum(scores[i:]) ** 2 / len(scores[i:]) for i in range(len(scores))]
            return place, place + 1 - len(scores) + fits.index(max(fits))
    return None


def test_the_sums_equal_a_second_implementation() -> None:
    rng = np.random.default_rng(5)
    named = 0
    for number in range(60):
        values = (0.7 + 0.02 * rng.standard_normal(24)).tolist()
        values[14:] = [value - 0.03 * (number % 2) for value in values[14:]]
        h = 5.8 if number % 3 == 0 else 4.4
        expected = plain_cusum(values, h)
        bad = [s for s in shifts_of(values, threshold=h) if not s.better]
        rises = [s.found for s in shifts_of(values, threshold=h) if s.better]
        if rises and (not bad or rises[0] <= bad[0].found):
            continue  # a rise restarted the line before
        assert ((bad[0].found, bad[0].began) if bad else None) == expected
        named += expected is not None
    assert named > 15


def test_the_band_is_where_the_score_is_three() -> None:
    values = [0.51, 0.49, 0.50, 0.53, 0.47, 0.52, 0.50]
    points, _ = controlled([*values, 0.5], higher_is_better=True)
    assert [point.band for point in points[:7]] == [None] * 7
    band = points[7].band
    assert band is not None
    for end, score in zip(band, (-3.0, 3.0), strict=True):
        edge, _ = controlled([*values, end], higher_is_better=True)
        assert edge[7].score == pytest.approx(score)


def test_a_step_is_named_and_the_line_restarts_there() -> None:
    """-.05 from place 14 on, with a spread of .01: two such values pass the threshold."""
    values = [0.7 + (0.01 if place % 2 else -0.01) for place in range(30)]
    values[14:] = [value - 0.05 for value in values[14:]]
    points, shifts = controlled(values, higher_is_better=True)
    assert [(s.better, s.began) for s in shifts] == [(False, 14)]
    assert shifts[0].found <= 15
    last = points[-1].band
    assert last is not None
    assert last[0] < 0.65 < last[1], "the band is that of the new level"


def test_a_share_of_cases_does_not_alert_for_single_cases() -> None:
    """Of 90 cases 1 fails in one run of four, later in two runs in turn: nothing but chance."""
    rare = [1 - (place % 4 == 1) / 90 for place in range(16)] + [1.0, 89 / 90, 89 / 90, 1.0]
    spreads = [1 / 90] * (len(rare) + 1)
    assert shifts_of(rare, spreads=spreads) == []
    assert [s.began for s in shifts_of([*rare, 0.85], spreads=spreads)] == [len(rare)]


@given(
    st.lists(st.floats(0.2, 0.8).map(lambda value: round(value, 3)), min_size=3, max_size=25),
    st.booleans(),
)
def test_scores_know_no_unit_and_the_directions_are_mirror_images(
    values: list[float], higher: bool
) -> None:
    points, shifts = controlled(values, higher_is_better=higher)
    mirrored, same = controlled([-value for value in values], higher_is_better=not higher)
    assert [point.score for point in mirrored] == [point.score for point in points]
    assert same == shifts
    scaled, _ = controlled([8 * value for value in values], higher_is_better=higher)
    for point, other in zip(points, scaled, strict=True):
        assert (point.score is None) == (other.score is None)
        assert point.score is None or other.score == pytest.approx(point.score, abs=1e-6)


@given(st.lists(shares, max_size=40), st.booleans())
def test_every_shift_begins_before_it_is_found_and_after_the_last_one(
    values: list[float], higher: bool
) -> None:
    points, shifts = controlled(values, higher_is_better=higher)
    assert [point.value for point in points] == values
    for before, shift in zip([LevelShift(True, -1, -1), *shifts], shifts, strict=False):
        assert before.found < shift.found
        assert before.began < shift.began <= shift.found or before.found == -1


def test_the_correlation_of_neighbours_by_hand() -> None:
    """1, 2, 4, 1 about 2: rest -1, 0, 2, -1; products 0, 0, -2; squares 6."""
    assert lag_correlation([1.0, 2.0, 4.0, 1.0]) == pytest.approx(-2 / 6)
    assert lag_correlation([1.0, 2.0]) is None
    assert lag_correlation([0.5, 0.5, 0.5]) is None

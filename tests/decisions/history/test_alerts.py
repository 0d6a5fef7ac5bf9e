"""Drops, bands and baselines: by hand."""

from __future__ import annotations

from math import inf, pi, sqrt
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisions.alerts import (
    D2,
    FEWEST,
    MAD_TO_SIGMA,
    AlertRule,
    _control_band,
    _judge_values,
    _largest_step,
    _relative_drop,
    _since,
)

shares = st.floats(0, 1, allow_subnormal=False)


def test_the_constants_are_what_their_sources_say() -> None:
    assert pytest.approx(2 / sqrt(pi), abs=1e-12) == D2
    assert pytest.approx(1 / NormalDist().inv_cdf(0.75), abs=1e-9) == MAD_TO_SIGMA


@pytest.mark.parametrize(
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
    assert _relative_drop(baseline, value, higher) == pytest.approx(drop)


def test_ten_percent_is_allowed_and_more_is_not() -> None:
    """0.8 less 10 % is 0.72."""
    rule = AlertRule("previous", 0.10, "none")
    assert [one.fell for one in _judge_values([0.8, 0.72], True, rule)] == [False, False]
    assert [one.fell for one in _judge_values([0.8, 0.719], True, rule)] == [False, True]
    assert [one.fell for one in _judge_values([0.8, 0.881], False, rule)] == [False, True]


@pytest.mark.parametrize(
    ("baseline", "values", "places"),
    [
        ("best", [None, 0.5, 0.9, 0.9], [None, 0, 1, 1]),
        ("previous", [None, 0.5, 0.9, 0.6], [None, 0, 1, 2]),
        ("median", [None, 0.5, 0.7, 0.6], [None, None, None, None]),
        (1, [None, None, 0.9, 0.9], [None, None, 1, 1]),
    ],
)
def test_the_baseline_is_what_came_before(
    baseline: object, values: list[float | None], places: list[int | None]
) -> None:
    """Of 0.5 and 0.9 the median is 0.7; of 0.5, 0.9 and 0.6 it is 0.6."""
    found = _judge_values([0.5, 0.9, 0.6, 0.6], True, AlertRule(baseline, 0.1, "none"))  # type: ignore[arg-type]
    assert [one.baseline for one in found] == pytest.approx(values)
    assert [one.baseline_at for one in found] == places


def test_the_best_of_a_lower_is_better_metric_is_its_least() -> None:
    found = _judge_values([0.3, 0.1, 0.2], False, AlertRule("best", 0.1, "none"))
    assert (found[2].baseline, found[2].baseline_at, found[2].fell) == (0.1, 1, True)


def test_the_shewhart_band_comes_from_the_moving_range() -> None:
    """0.50 and 0.52 in turn, 8 values: mean 0.51, all 7 ranges 0.02.

    3 x 0.02 / 1.128379 = 0.053174.
    """
    band = _control_band([0.50, 0.52] * 4, "shewhart")
    assert band == pytest.approx((0.51 - 0.053174, 0.51 + 0.053174), abs=1e-6)


def test_the_mad_band_is_not_widened_by_one_strange_point() -> None:
    """Median 0.5; distances .01 .02 .03 .04 .01 .02 .03 .5, whose median is .025."""
    values = [0.49, 0.52, 0.53, 0.46, 0.51, 0.48, 0.47, 0.0]
    centre = (0.48 + 0.49) / 2
    distances = sorted(abs(value - centre) for value in values)
    mad = (distances[3] + distances[4]) / 2
    low, high = _control_band(values, "mad") or (0.0, 0.0)
    assert (low + high) / 2 == pytest.approx(centre)
    assert high - centre == pytest.approx(3 * 1.482602 * mad, rel=1e-5)
    wide = _control_band(values, "shewhart")
    assert wide is not None
    assert wide[1] - wide[0] > high - low


def test_no_band_without_enough_points_or_without_any_spread() -> None:
    assert _control_band([0.1, 0.2] * 3 + [0.1], "shewhart") is None
    assert FEWEST == 8
    assert _control_band([0.5] * 8, "shewhart") is None
    assert _control_band([0.5] * 8, "mad") is None
    assert _control_band([0.1, 0.2] * 4, "none") is None


def test_a_fall_that_lasts_stays_outside_its_band() -> None:
    """Values outside on the bad side do not teach the band."""
    steady = [0.50, 0.52] * 4
    found = _judge_values([*steady, *[0.3] * 40], True, AlertRule("best", 1.0, "shewhart"))
    assert [one.left_band for one in found] == [False] * 8 + [True] * 40
    assert found[-1].band == found[8].band
    rise = _judge_values([*steady, *[0.9] * 3], True, AlertRule("best", 1.0, "shewhart"))
    assert not any(one.left_band for one in rise), "better is no alarm"
    assert _judge_values([*steady, 0.9], False, AlertRule("best", 9.0, "shewhart"))[-1].left_band


def test_where_a_fall_began() -> None:
    assert _since([False, True, False, True, True]) == 3
    assert _since([True, False]) is None
    assert _since([]) is None
    assert _largest_step([0.9, 0.88, 0.5, 0.49], True, 0, 3) == 2
    assert _largest_step([0.1, 0.2, 0.9, 0.8], False, 0, 3) == 2


@given(st.lists(shares, max_size=30), st.booleans(), st.sampled_from(["best", "previous"]))
def test_an_alert_means_worse_than_the_baseline(
    values: list[float], higher: bool, kind: str
) -> None:
    for one in _judge_values(values, higher, AlertRule(kind, 0.1, "shewhart")):  # type: ignore[arg-type]
        if one.fell:
            assert one.baseline is not None
            assert (one.value < one.baseline) == higher
        if one.left_band:
            assert one.band is not None
            assert one.value < one.band[0] if higher else one.value > one.band[1]


@given(st.lists(shares, min_size=8, max_size=30), st.sampled_from(["shewhart", "mad"]))
def test_a_band_lies_around_its_centre(values: list[float], kind: str) -> None:
    band = _control_band(values, kind)  # type: ignore[arg-type]
    if band is not None:
        assert band[0] < band[1]
        assert band[0] <= max(values)
        assert band[1] >= min(values)

"""The interval of a mean: rule by rule in plain words, by hand, and at the ends."""

from __future__ import annotations

from collections import defaultdict
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t as scipy_t

from ragmetrics.stats.intervals import (
    CONSTANT,
    MOSTLY_LOWEST,
    MOSTLY_ZERO,
    ONE_CASE,
    ONE_CLUSTER,
    POINT,
    RARE,
    drawn_interval,
    effective_wilson,
    skewed_interval,
)


def in_plain_words(
    values: list[float], low: float, high: float, clusters: list[int]
) -> tuple[float, float]:
    """The definition, a line of it after the other, without numpy or exact sums."""
    scaled = [(value - low) / (high - low) for value in values]
    n = len(scaled)
    mean = sum(scaled) / n
    sums: dict[int, float] = defaultdict(float)
    sizes: dict[int, int] = defaultdict(int)
    for x, cluster in zip(scaled, clusters, strict=True):
        sums[cluster] += x - mean
        sizes[cluster] += 1
    effective_clusters = n**2 / sum(size**2 for size in sizes.values())
    between = sum(s**2 for s in sums.values()) / n**2 / (1 - 1 / effective_clusters)
    variance = max(between, sum((x - mean) ** 2 for x in scaled) / (n * (n - 1)))
    cases = effective_clusters
    if variance >= 1e-15:
        cases = min(mean * (1 - mean) / variance, 50 * n)
    t = float(scipy_t.ppf(0.975, max(1, effective_clusters - 1)))
    centre = (mean + t**2 / (2 * cases)) / (1 + t**2 / cases)
    half = t / (1 + t**2 / cases) * sqrt(mean * (1 - mean) / cases + t**2 / (4 * cases**2))
    ends = max(0.0, centre - half), min(1.0, centre + half)
    return ends[0] * (high - low) + low, ends[1] * (high - low) + low


scores = st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.9, 1 / 3]) | st.floats(0, 1)
pairs = st.lists(st.tuples(scores, st.integers(0, 6)), min_size=2, max_size=40)


@given(pairs, st.sampled_from([(0.0, 1.0), (0.0, 5.0), (-1.0, 1.0)]))
def test_the_interval_is_the_one_of_the_definition(
    cases: list[tuple[float, int]], bounds: tuple[float, float]
) -> None:
    low, high = bounds
    values = [low + (high - low) * value for value, _ in cases]
    clusters = [cluster for _, cluster in cases]
    found = effective_wilson(np.array(values), low, high, clusters)
    if len(set(clusters)) == 1:
        assert (found.ends, found.mark) == (None, ONE_CLUSTER)
        return
    assert found.units == len(set(clusters))
    assert found.ends == pytest.approx(in_plain_words(values, low, high, clusters), abs=1e-7)
    assert low <= (found.low or 0.0) <= sum(values) / len(values) + 1e-9


def test_all_alike_by_hand() -> None:
    """No variance: n_eff = n = 10, t(9) = 2.2622, upper end 1, lower 10 / (10 + t²) = .6615."""
    found = effective_wilson(np.ones(10), 0, 1)
    assert found.ends == pytest.approx([10 / (10 + 2.2621571628**2), 1.0], abs=1e-9)
    assert found.mark == ""


def test_what_is_to_be_doubted_is_marked() -> None:
    """.99 and 1 alternate: the variance is 400 times smaller than that of zeros and ones."""
    values = np.tile([0.99, 1.0], 15)
    assert effective_wilson(values, 0, 1).mark == RARE
    assert effective_wilson(np.tile(values, 4), 0, 1).mark == ""  # 120 cases
    assert effective_wilson(np.tile([0.2, 0.9], 15), 0, 1).mark == ""


def test_one_case_has_no_interval_and_none_is_refused() -> None:
    found = effective_wilson(np.array([0.5]), 0, 1)
    assert (found.ends, found.mark, found.units) == (None, ONE_CASE, 1)
    with pytest.raises(ValueError, match="at least one"):
        effective_wilson(np.array([]), 0, 1)


def test_counts_by_hand() -> None:
    """Ten zeros tell no spread; as of a Poisson count the score interval is 0 to t²/n = .5117."""
    found = skewed_interval(np.zeros(10), 0.0)
    assert found.ends == pytest.approx([0.0, 2.2621571628**2 / 10], abs=1e-9)
    assert found.mark == CONSTANT
    assert skewed_interval(np.full(10, 3.0)).mark == CONSTANT
    assert skewed_interval(np.ones(10), 1.0).ends == pytest.approx([1.0, 1 + 0.51173553])


def test_symmetric_values_have_students_interval() -> None:
    values = np.array([-2.0, -1, 0, 1, 2, 7, 8, 9, 10, 11]) + 5
    half = float(scipy_t.ppf(0.975, 9)) * values.std(ddof=1) / sqrt(10)
    mean = values.mean()
    assert skewed_interval(values).ends == pytest.approx([mean - half, mean + half])


def hall(values: NDArray[np.float64]) -> list[float]:
    """Hall 1992: t's quantile, with the skewness of the sample taken out by a cubic."""
    n, mean, sd = len(values), values.mean(), values.std(ddof=1)
    a = float(((values - mean) ** 3).mean() / ((values - mean) ** 2).mean() ** 1.5)
    ends = []
    for quantile in scipy_t.ppf([0.975, 0.025], n - 1):
        y = quantile / sqrt(n)
        ends.append(mean - sd * 3 / a * (np.cbrt(1 + a * (y - a / (6 * n))) - 1))
    return ends


def test_skewed_values_have_halls_interval() -> None:
    values = np.random.default_rng(4).lognormal(0, 1, 50)
    assert skewed_interval(values).ends == pytest.approx(hall(values))


def test_mostly_zero_is_marked_below_100_cases() -> None:
    values = np.array([0.0] * 9 + [4.0])
    assert skewed_interval(np.tile(values, 9), 0.0).mark == MOSTLY_ZERO
    assert skewed_interval(np.tile(values, 10), 0.0).mark == ""
    assert skewed_interval(np.tile(values + 1.0, 9), 1.0).mark == MOSTLY_LOWEST


@given(st.lists(st.floats(0, 1e308), min_size=2, max_size=20))
def test_large_values_overflow_no_interval(values: list[float]) -> None:
    found = skewed_interval(np.array(values), 0.0)
    assert found.low is not None
    assert found.low >= 0


def test_resamples_that_do_not_differ_are_marked() -> None:
    assert drawn_interval(1.0, 1.0, 9).mark == POINT
    assert drawn_interval(0.5, 1.0, 9).mark == ""
    assert drawn_interval(0.5, 1.0, 1).ends is None

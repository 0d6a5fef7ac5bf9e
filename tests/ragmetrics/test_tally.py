"""From rows to means and their intervals: by hand, rule by rule, and sums that no order changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t as scipy_t

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats import tally as t
from ragmetrics.stats.intervals import (
    ALONE,
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

METRICS = (
    Metric("share", "made", "any share", "nothing", "this test"),
    Metric("flag", "made", "yes or no", "nothing", "this test", binary=True),
)
Rows = Sequence[tuple[t.Values, t.Slices]]


def summary(
    rows: Rows, clusters: Sequence[int] = (), metrics: Sequence[Metric] = METRICS
) -> dict[str, Any]:
    values = [values for values, _ in rows]
    slices = [slices for _, slices in rows]
    return t.summary(metrics, values, range(len(rows)), slices, clusters or [ALONE] * len(rows))


def test_three_states_by_hand() -> None:
    easy, hard = ("difficulty", "easy"), ("difficulty", "hard")
    report = summary(
        [
            ((0.5, 1.0), (easy,)),
            ((1.0, 0.0), (easy,)),
            ((None, 1.0), (hard,)),
            ((t.FAILED, t.FAILED), (hard,)),
        ]
    )
    assert report["n"] == {"share": 2, "flag": 3}
    assert report["not_applicable"] == {"share": 1, "flag": 0}
    assert report["failed"] == {"share": 1, "flag": 1}
    assert report["mean"] == {"share": 0.75, "flag": pytest.approx(2 / 3)}
    easy_cases, hard_cases = report["by"]["difficulty"]["easy"], report["by"]["difficulty"]["hard"]
    assert (easy_cases["n"], easy_cases["mean"]) == (2, {"share": 0.75, "flag": 0.5})
    assert easy_cases["ci95"]["flag"] == effective_wilson(np.array([1.0, 0.0]), 0, 1).ends
    # share was not scored there: listed nowhere, so that no mean lacks its n
    assert hard_cases == {"n": 1, "mean": {"flag": 1.0}, "ci95": {}}


def test_what_an_interval_rests_on_stands_beside_it() -> None:
    rows: Rows = [((0.5, 1.0), ())] * 8 + [((0.5, 0.0), ())] * 2 + [((None, None), ())]
    report = summary(rows, clusters=[1, 1, 2, 2, 3, 3, 0, 0, 4, 5, 5])
    flags = np.array([1.0] * 8 + [0.0] * 2)
    expected = effective_wilson(flags, 0, 1, list("aabbccdefg"))
    assert report["ci95"]["flag"] == expected.ends
    assert report["clusters"] == {"share": 7, "flag": 7}
    assert report["method"] == {"share": "wilson", "flag": "wilson"}
    assert report["marks"] == {}


def test_a_slice_has_clusters_of_its_own() -> None:
    """The whole has two clusters of two; in the slice each case is a cluster by itself."""
    part: t.Slices = (("tag", "x"),)
    rows: Rows = [((0.2, 1.0), part), ((0.4, 1.0), ()), ((0.9, 0.0), part), ((0.6, 1.0), ())]
    report = summary(rows, clusters=[7, 7, 9, 9])
    assert report["clusters"]["share"] == 2
    alone = effective_wilson(np.array([0.2, 0.9]), 0, 1).ends
    assert report["by"]["tag"]["x"]["ci95"]["share"] == alone
    report = summary([((0.5, 1.0), part), ((None, 1.0), part)])
    found = report["by"]["tag"]["x"]
    assert (found["n"], found["mean"]) == (2, {"share": 0.5, "flag": 1.0})
    assert found["n_of"] == {"share": 1}


def test_one_case_or_one_cluster_has_no_interval_and_says_why() -> None:
    assert summary([((0.5, None), ())])["marks"] == {"share": "one case: no interval"}
    report = summary([((0.5, None), ()), ((0.7, None), ())], clusters=[3, 3])
    assert report["ci95"]["share"] is None
    assert report["marks"]["share"] == "all cases share one document or group: no interval"
    report = summary([((None, None), ())])
    assert report["mean"] == {"share": None, "flag": None}
    assert report["ci95"] == {"share": None, "flag": None}


def test_repeats_are_averaged_over_what_was_scored() -> None:
    rows: list[t.Values] = [(1.0, None), (0.0, t.FAILED), (t.FAILED, None)]
    # share: (1 + 0)/2, the failed repeat does not count; flag: none scored, one failed.
    assert t.average(rows) == (0.5, t.FAILED)
    assert t.average([(None, 1.0), (None, 1.0)]) == (None, 1.0)
    with pytest.raises(ValueError, match="finite"):
        summary([((float("inf"), 1.0), ())])


values = st.sampled_from([0.0, 0.25, 1.0, None, t.FAILED])
slices = st.sampled_from([(), (("tag", "a"),), (("tag", "a"), ("tag", "b"))])
rows_of = st.lists(st.tuples(st.tuples(values, values), slices), min_size=1, max_size=40)


@given(rows_of)
def test_equal_rows_may_be_one(rows: Rows) -> None:
    distinct = list(dict.fromkeys(values for values, _ in rows))
    places = [distinct.index(values) for values, _ in rows]
    slices = [slices for _, slices in rows]
    assert summary(rows) == t.summary(METRICS, distinct, places, slices, [ALONE] * len(rows))


BOUNDLESS = (replace(METRICS[0], low=None, high=None), METRICS[1])
HARD = (1e16, 1.0, -1e16, 0.1, 1 / 3, 1e-9, 5e-324, -0.7, 2**53 + 2.0, 3e-17)
"""1e16 + 1 is 1e16: added up in another order, or in parts, these give another sum."""
hard_rows = st.lists(
    st.tuples(st.tuples(st.sampled_from(HARD), values), slices), min_size=1, max_size=60
)


@given(hard_rows, st.randoms(use_true_random=False))
def test_no_order_changes_a_bit(rows: Rows, chance: Random) -> None:
    clustered = [(row, chance.choice([0, 1, 2, 3])) for row in rows]
    expected = summary(rows, clusters=[cluster for _, cluster in clustered], metrics=BOUNDLESS)
    chance.shuffle(clustered)
    again, clusters = [row for row, _ in clustered], [cluster for _, cluster in clustered]
    assert summary(again, clusters=clusters, metrics=BOUNDLESS) == expected


@given(hard_rows)
def test_means_are_rounded_once(rows: Rows) -> None:
    report = summary(rows, metrics=BOUNDLESS)
    tags = report["by"].get("tag", {})
    found = {"": report["mean"]} | {name: entry["mean"] for name, entry in tags.items()}
    for tag, means in found.items():
        scores = [row[0] for row, parts in rows if not tag or ("tag", tag) in parts]
        exactly = sum(map(Fraction, scores), Fraction(0)) / len(scores)  # type: ignore[arg-type]
        assert means["share"] == float(exactly)


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


def test_effective_wilson_by_hand() -> None:
    """No variance: n_eff = n = 10, t(9) = 2.2622, upper end 1, lower 10 / (10 + t²) = .6615."""
    found = effective_wilson(np.ones(10), 0, 1)
    assert found.ends == pytest.approx([10 / (10 + 2.2621571628**2), 1.0], abs=1e-9)
    assert found.mark == ""
    # .99 and 1 alternate: the variance is 400 times smaller than that of zeros and ones.
    values = np.tile([0.99, 1.0], 15)
    assert effective_wilson(values, 0, 1).mark == RARE
    assert effective_wilson(np.tile(values, 4), 0, 1).mark == ""  # 120 cases
    assert effective_wilson(np.tile([0.2, 0.9], 15), 0, 1).mark == ""
    found = effective_wilson(np.array([0.5]), 0, 1)
    assert (found.ends, found.mark, found.units) == (None, ONE_CASE, 1)
    with pytest.raises(ValueError, match="at least one"):
        effective_wilson(np.array([]), 0, 1)


def test_intervals_of_values_without_bounds() -> None:
    """Ten zeros tell no spread; as of a Poisson count the score interval is 0 to t²/n = .5117."""
    found = skewed_interval(np.zeros(10), 0.0)
    assert found.ends == pytest.approx([0.0, 2.2621571628**2 / 10], abs=1e-9)
    assert found.mark == CONSTANT
    assert skewed_interval(np.full(10, 3.0)).mark == CONSTANT
    assert skewed_interval(np.ones(10), 1.0).ends == pytest.approx([1.0, 1 + 0.51173553])
    values = np.array([0.0] * 9 + [4.0])  # mostly zero, marked below 100 cases
    assert skewed_interval(np.tile(values, 9), 0.0).mark == MOSTLY_ZERO
    assert skewed_interval(np.tile(values, 10), 0.0).mark == ""
    assert skewed_interval(np.tile(values + 1.0, 9), 1.0).mark == MOSTLY_LOWEST
    values = np.array([-2.0, -1, 0, 1, 2, 7, 8, 9, 10, 11]) + 5  # symmetric: Student's
    half = float(scipy_t.ppf(0.975, 9)) * values.std(ddof=1) / sqrt(10)
    mean = values.mean()
    assert skewed_interval(values).ends == pytest.approx([mean - half, mean + half])
    values = np.random.default_rng(4).lognormal(0, 1, 50)  # skewed: Hall's
    assert skewed_interval(values).ends == pytest.approx(hall(values))
    assert drawn_interval(1.0, 1.0, 9).mark == POINT  # no resample differs
    assert drawn_interval(0.5, 1.0, 9).mark == ""
    assert drawn_interval(0.5, 1.0, 1).ends is None


def hall(values: NDArray[np.float64]) -> list[float]:
    """Hall 1992: t's quantile, with the skewness of the sample taken out by a cubic."""
    n, mean, sd = len(values), values.mean(), values.std(ddof=1)
    a = float(((values - mean) ** 3).mean() / ((values - mean) ** 2).mean() ** 1.5)
    ends = []
    for quantile in scipy_t.ppf([0.975, 0.025], n - 1):
        y = quantile / sqrt(n)
        ends.append(mean - sd * 3 / a * (np.cbrt(1 + a * (y - a / (6 * n))) - 1))
    return ends


@given(st.lists(st.floats(0, 1e308), min_size=2, max_size=20))
def test_large_values_overflow_no_interval(values: list[float]) -> None:
    found = skewed_interval(np.array(values), 0.0)
    assert found.low is not None
    assert found.low >= 0

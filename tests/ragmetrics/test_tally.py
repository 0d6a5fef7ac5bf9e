"""From rows to means: three states, slices, repeats, and sums that no order changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats import tally as t
from ragmetrics.stats.intervals import ALONE, effective_wilson

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


def test_a_score_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        summary([((float("inf"), 1.0), ())])


def test_repeats_are_averaged_over_what_was_scored() -> None:
    rows: list[t.Values] = [(1.0, None), (0.0, t.FAILED), (t.FAILED, None)]
    # share: (1 + 0)/2, the failed repeat does not count; flag: none scored, one failed.
    assert t.average(rows) == (0.5, t.FAILED)
    assert t.average([(None, 1.0), (None, 1.0)]) == (None, 1.0)


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

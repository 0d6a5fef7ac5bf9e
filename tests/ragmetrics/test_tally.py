"""From rows to means: three states, slices, repeats, and folding in any portions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats import tally as t

METRICS = (
    Metric("share", "made", "any share", "nothing", "this test"),
    Metric("flag", "made", "yes or no", "nothing", "this test", binary=True),
)
Rows = Sequence[tuple[t.Values, t.Slices]]


def summary(rows: Rows, fold_after: int | None = None) -> dict[str, object]:
    tally = t.Tally(2)
    for place, (values, slices) in enumerate(rows):
        tally.add(tally.new_row(values), slices)
        if fold_after and place % fold_after == 0:
            tally.fold()
    return tally.summary(METRICS, seed=0, resamples=200)


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
    assert report["by"] == {
        "difficulty": {
            "easy": {"n": 2, "mean": {"share": 0.75, "flag": 0.5}},
            # share was not scored there: listed nowhere, so that no mean lacks its n
            "hard": {"n": 1, "mean": {"flag": 1.0}},
        }
    }


def test_a_slice_tells_where_a_metric_scored_fewer_cases() -> None:
    part = ("tag", "x")
    report = summary([((0.5, 1.0), (part,)), ((None, 1.0), (part,))])
    assert report["by"] == {
        "tag": {"x": {"n": 2, "mean": {"share": 0.5, "flag": 1.0}, "n_of": {"share": 1}}}
    }


def test_nothing_scored_has_no_mean_and_no_interval() -> None:
    report = summary([((None, None), ())])
    assert report["mean"] == {"share": None, "flag": None}
    assert report["ci95"] == {"share": None, "flag": None}


def test_a_binary_metric_gets_wilsons_interval() -> None:
    report = summary([((0.5, 1.0), ())] * 8 + [((0.5, 0.0), ())] * 2)
    assert report["ci95"]["flag"] == pytest.approx([0.4902, 0.9433], abs=1e-4)  # type: ignore[index]
    assert report["ci95"]["share"] == [0.5, 0.5]  # type: ignore[index]


def test_repeats_are_averaged_over_what_was_scored() -> None:
    rows: list[t.Values] = [(1.0, None), (0.0, t.FAILED), (t.FAILED, None)]
    # share: (1 + 0)/2, the failed repeat does not count; flag: none scored, one failed.
    assert t.average(rows) == (0.5, t.FAILED)
    assert t.average([(None, 1.0), (None, 1.0)]) == (None, 1.0)


values = st.sampled_from([0.0, 0.25, 1.0, None, t.FAILED])
slices = st.sampled_from([(), (("tag", "a"),), (("tag", "a"), ("tag", "b"))])
rows_of = st.lists(st.tuples(st.tuples(values, values), slices), min_size=1, max_size=40)


@given(rows_of, st.integers(1, 5))
def test_folding_in_portions_changes_nothing(rows: Rows, portion: int) -> None:
    assert summary(rows) == summary(rows, portion)


@given(rows_of, st.integers(0, 40))
def test_merged_halves_equal_the_whole(rows: Rows, cut: int) -> None:
    left, right = t.Tally(2), t.Tally(2)
    for place, (row, parts) in enumerate(rows):
        half = left if place < cut else right
        half.add(half.new_row(row), parts)
    left.merge(right)
    assert left.summary(METRICS, seed=0, resamples=200) == summary(rows)


HARD = (1e16, 1.0, -1e16, 0.1, 1 / 3, 1e-9, 5e-324, -0.7, 2**53 + 2.0, 3e-17)
"""1e16 + 1 is 1e16: added up in another order, or in parts, these give another sum."""
hard_rows = st.lists(
    st.tuples(st.tuples(st.sampled_from(HARD), values), slices), min_size=1, max_size=60
)


@given(hard_rows, st.sampled_from([1, 2, 3, 8]), st.randoms(use_true_random=False))
def test_no_split_and_no_order_changes_a_bit(rows: Rows, splits: int, chance: Random) -> None:
    expected = summary(rows)
    shuffled = list(rows)
    chance.shuffle(shuffled)
    parts = [t.Tally(2) for _ in range(splits)]
    for place, (row, members) in enumerate(shuffled):
        part = parts[place * splits // len(shuffled)]
        part.add(part.new_row(row), members)
    chance.shuffle(parts)
    for part in parts[1:]:
        parts[0].merge(part)
    assert parts[0].summary(METRICS, seed=0, resamples=200) == expected


@given(hard_rows)
def test_means_are_rounded_once(rows: Rows) -> None:
    report: Any = summary(rows)
    tags = report["by"].get("tag", {})
    found = {"": report["mean"]} | {name: entry["mean"] for name, entry in tags.items()}
    for tag, means in found.items():
        scores = [row[0] for row, parts in rows if not tag or ("tag", tag) in parts]
        exactly = sum(map(Fraction, scores), Fraction(0)) / len(scores)  # type: ignore[arg-type]
        assert means["share"] == float(exactly)


@given(rows_of)
def test_counts_add_up_to_the_cases(rows: Rows) -> None:
    report = summary(rows)
    for name in ("share", "flag"):
        total = sum(report[kind][name] for kind in ("n", "not_applicable", "failed"))  # type: ignore[index]
        assert total == len(rows)

"""F1 of sums by hand, and its interval against a bootstrap that draws case by case."""

from __future__ import annotations

import numpy as np
import pytest
from tests.rows import each_row

from ragmetrics.stats.means import f1, f1_interval


@each_row(
    ("hits", "wrong", "value"),
    [
        (11, 22, 0.5),  # 2 x 11 / (2 x 11 + 22)
        (4, 0, 1.0),
        (0, 3, 0.0),
        (0, 0, None),
        (0.5, 0.5, 2 / 3),  # one case of two repeats: 1 / (1 + 0.5)
    ],
)
def test_f1_by_hand(hits: float, wrong: float, value: float | None) -> None:
    assert f1(hits, wrong) == value


def test_the_interval_equals_resampling_case_by_case() -> None:
    counts = {(1.0, 0.0): 11, (0.0, 1.0): 22, (0.0, 0.0): 57}
    low, high = f1_interval(counts, np.random.default_rng(1)) or (0.0, 0.0)
    cases = np.repeat(np.array(list(counts)), list(counts.values()), axis=0)
    rng = np.random.default_rng(2)
    draws = cases[rng.integers(0, len(cases), size=(20_000, len(cases)))].sum(axis=1)
    values = 2 * draws[:, 0] / (2 * draws[:, 0] + draws[:, 1])
    expected = list(np.quantile(values, [0.025, 0.975]))
    # F1 of whole cases moves in steps of about 0.02, so a quantile may fall on either side of one
    assert [low, high] == pytest.approx(expected, abs=0.02)
    assert low < 0.5 < high


def test_the_interval_of_one_kind_of_case_is_a_point_and_of_none_nothing() -> None:
    rng = np.random.default_rng(0)
    assert f1_interval({(1.0, 0.0): 5}, rng) == (1.0, 1.0)
    assert f1_interval({}, rng) is None
    assert f1_interval({(0.0, 0.0): 5}, rng) is None

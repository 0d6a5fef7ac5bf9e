"""Numbers of the report against values worked out by hand or by another implementation."""

from __future__ import annotations

from array import array
from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.rows import each_row

from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Ruling, RunVerdicts
from decisions.first_look import worst_rows
from decisions.measures import Measure
from ragmetrics.catalogue.cases import CaseRule, Level
from records.targets import parse_target
from terminal.page import Whisker
from views.report import charts, figures
from views.report.answers import worst_by
from views.report.figures import Reliability
from views.report.metrics import ReportMetric, TargetsVerdict, section_metrics, targets_verdict

PAIRS = [(0.15, False), (0.15, True), (0.95, True), (0.95, True), (0.95, False), (1.0, True)]


def test_calibration_error_by_hand() -> None:
    """Two bins of ten hold answers. 0.1-0.2: mean 0.15, 1 of 2 succeed, gap 0.35. 0.9-1.0: mean
    (3 x 0.95 + 1) / 4 = 0.9625, 3 of 4 succeed, gap 0.2125.
    ECE = (2 x 0.35 + 4 x 0.2125) / 6 = 1.55 / 6. Bias = (0.3 + 3.85) / 6 - 4 / 6 = 0.15 / 6.
    Brier = (0.0225 + 0.7225 + 0.0025 + 0.0025 + 0.9025 + 0) / 6 = 1.6525 / 6."""
    found = figures.reliability(PAIRS)
    assert found.n == 6
    assert found.ece == pytest.approx(1.55 / 6)
    assert found.bias == pytest.approx(0.15 / 6)
    assert found.brier == pytest.approx(1.6525 / 6)
    assert [(one.place, one.n) for one in found.bins] == [(1, 2), (9, 4)]
    assert found.bins[1].success == 0.75
    # A radius of 3 to 9 grows with the root of the answers: 3 + 6 sqrt(2 / 4) = 7.2
    assert [point["radius"] for point in charts.reliability(found.bins)["points"]] == [7.2, 9.0]


def test_no_answers_have_no_calibration() -> None:
    assert figures.reliability([]) == Reliability(0, None, None, None, [])
    with pytest.raises(ValueError, match="outside 0 to 1"):
        figures.reliability([(1.2, True)])


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1))
def test_calibration_stays_in_its_range(pairs: list[tuple[float, bool]]) -> None:
    found = figures.reliability(pairs)
    assert found.ece is not None
    assert found.brier is not None
    assert found.bias is not None
    assert 0 <= found.ece <= 1
    assert 0 <= found.brier <= 1
    assert abs(found.bias) <= found.ece + 1e-9  # the mean of gaps is below that of |gaps|
    assert sum(one.n for one in found.bins) == len(pairs)


@each_row("rows", [80, 600, 70_000])
def test_correlations_equal_scipys(rows: int) -> None:
    rng = np.random.default_rng(3)
    table = rng.integers(0, 6, size=(5, rows)).astype(float)
    table[1] = table[0] * 2 - rng.random(rows)  # all distinct
    table[2] = table[1] + rng.random(rows)  # so that pairs of these are too many for a table
    table[rng.random(table.shape) < 0.2] = nan
    r, n = figures.matrix([array("d", row) for row in table])
    for i in range(5):
        assert r[i][i] == pytest.approx(1)
        for j in range(i):
            both = ~np.isnan(table[i]) & ~np.isnan(table[j])
            assert n[i][j] == n[j][i] == both.sum()
            expected = stats.spearmanr(table[i][both], table[j][both]).statistic
            assert r[i][j] == r[j][i] == pytest.approx(expected, abs=1e-12)


def test_undefined_correlations_are_none() -> None:
    r, n = figures.matrix([[1, 1, 1, 1], [1, 2, 3, 4], [nan, nan, 3, 4]])
    assert r[1][0] is None  # one side is constant
    assert r[2][1] is None  # two pairs
    assert n[2][1] == 2
    assert figures.matrix([]) == ([], [])


def verdicts_of(broken: list[int]) -> RunVerdicts:
    """Answers and what each breaks; the first and third rule fail an answer, the second warns."""
    rules = [
        CaseRule(f"r{n}", "w", "c", "s", f"r.{name}", ">=", 1, level)
        for n, (name, level) in enumerate((("a", FAIL), ("b", WARN), ("c", FAIL)))
    ]
    verdicts = RunVerdicts(Ruling(CaseRules(tuple(rules)), Basis()))
    for n, bits in enumerate(broken):
        verdicts.broken[verdicts.number(n, 0)] = bits
    return verdicts


FAIL: Level = "fail"

WARN: Level = "warn"


def test_the_worst_fail_by_the_most_harmful_reason() -> None:
    """1 and 3 fail by the first rule, 3 by the third as well; 2 by the third; 0 only warns."""
    verdicts = verdicts_of([0b010, 0b001, 0b110, 0b101])
    assert worst_rows(verdicts, 9) == [3, 1, 2]
    assert worst_rows(verdicts, 1) == [3]


def test_the_worst_by_a_metric_heed_its_direction() -> None:
    column = np.array([0.5, 0.1, nan, 0.5])
    assert worst_by(column, True, 9) == [1, 0, 3]
    assert worst_by(column, False, 2) == [0, 3]


def test_ranks_are_counted_in_growing_groups() -> None:
    found = figures.ranks([0, 0, 1, 1, 1, 1, 1, 4, 15, 15, -1, 15, 20, 60])  # -1: no gold
    counts = {one.label: one.count for one in found.groups}
    assert (found.n, found.nowhere.count) == (13, 2)
    assert counts["1"] == 5
    assert counts["4"] == 1
    assert (counts["11–20"], counts["21–50"], counts["51–100"]) == (4, 0, 1)
    assert sum(counts.values()) == 11


@given(st.dictionaries(st.integers(0, 5000), st.integers(1, 50)))
def test_every_rank_is_in_one_group(counts: dict[int, int]) -> None:
    found = figures.ranks(rank for rank, times in counts.items() for _ in range(times))
    shown = sum(one.count for one in found.groups)
    assert shown + found.nowhere.count == found.n == sum(counts.values())


def test_ranks_against_success() -> None:
    # Rank 1: 2 of 3 known succeed, of one more nobody knows; ranks 11 to 20: 0 of 1; nowhere: 1.
    first = [1, 1, 1, 1, 12, 0, -1]
    found = figures.ranks(first, [True, False, True, None, False, True, True])
    groups = {group.label: group for group in found.groups}
    assert (groups["1"].count, groups["1"].known) == (4, 3)
    assert groups["1"].success == 2 / 3
    # Wilson for 2 of 3: centre (2/3 + z²/6) / (1 + z²/3), half z sqrt(2/27 + z²/36) / (1 + z²/3),
    # z = 1.959964: .5731 and .3654.
    assert groups["1"].ci95 == pytest.approx([0.2077, 0.9385], abs=2e-4)
    assert groups["11–20"].success == 0.0
    assert (groups["2"].success, groups["2"].ci95) == (None, None)
    assert found.nowhere.success == 1.0
    # Success of the last answers unknown, or of none: the counts stay.
    known = figures.ranks(first, [True]).groups[0]
    assert (known.count, known.known, known.success) == (4, 1, 1.0)
    assert known.ci95 == pytest.approx([0.2065, 1.0], abs=2e-4)  # 1 / (1 + z²)
    assert figures.ranks(first).groups[0].success is None


def measured(mean: float | None, ci95: tuple[float, float] | None, n: int, target: str) -> Measure:
    aim = parse_target(target)
    assert aim is not None
    passed = aim.passed(mean) if n else None
    return Measure("s", target, mean, ci95, n, 0, 0, "", True, target, passed)


def verdict_of(*rows: Measure, answers: int = 50, failed_calls: int = 0) -> TargetsVerdict:
    section: dict[str, Any] = {"mean": {one.metric: one.mean for one in rows}, "definitions": {}}
    metrics = section_metrics("s", section, {("s", one.metric): one for one in rows})
    return targets_verdict(metrics, answers, failed_calls)


def test_the_verdict_names_what_is_missed_unsure_and_open() -> None:
    found = verdict_of(
        measured(0.9, (0.8, 1.0), 50, "> 0.7"),  # all of the interval keeps it
        measured(0.7, (0.6, 0.8), 50, "> 0.65"),  # 0.6 would miss
        measured(0.5, (0.4, 0.7), 50, "> 0.6"),  # missed; 0.7 would keep it
        measured(0.0, (0.0, 0.0), 50, "<= 0"),
        measured(None, None, 0, "> 0.1"),
        replace(measured(0.5, (0.2, 0.8), 3, "> 0.2"), passed=None),
    )
    assert found.says == "3 of 6 targets met, 1 missed, 1 too few to say, 1 not measured."
    lists = (found.missed, found.unsure, found.open)
    names = [[aim.measure.metric for aim in aims] for aims in lists]
    assert names == [["> 0.6"], ["> 0.65"], ["> 0.1", "> 0.2"]]
    (doubt,) = found.doubts
    assert doubt.startswith("2 of 4 results are too close to call (≈)")


def test_doubts_of_an_empty_a_tiny_and_a_failing_run() -> None:
    kept = measured(0.9, (0.8, 1.0), 19, "> 0.7")
    empty = verdict_of(measured(None, None, 0, "> 0.1"), answers=0)
    assert empty.says.startswith("The run holds no answer to a case; 0 of 1 target met, 1 not")
    assert empty.open == []  # the perspective says so already
    assert verdict_of(kept, failed_calls=31).doubts == [
        "Failed calls: 31 of 50. They count as 0 in answered and pass, and in no other mean.",
        "Verdicts on fewer than 20 cases each: 1 of 1.",
    ]


def test_coverage_counts_all_cases() -> None:
    def coverage(n: int, not_applicable: int, failed: int) -> float | None:
        measure = Measure("s", "m", None, None, n, not_applicable, failed, "", True)
        return ReportMetric(measure).coverage

    assert coverage(6, 3, 1) == 0.6
    assert coverage(0, 0, 0) is None


TIMES = st.floats(0, 1e6)


@given(st.lists(st.tuples(TIMES, TIMES, TIMES, TIMES), min_size=1, max_size=6))
def test_marks_of_a_chart_stay_within_it_in_order(times: list[tuple[float, ...]]) -> None:
    marks = ("p50", "p95", "p99", "max")
    stages = {str(n): dict(zip(marks, sorted(row), strict=True)) for n, row in enumerate(times)}
    chart = charts.ranges(stages, marks, {})
    for row in chart["rows"]:
        places = [x for _, x in row["marks"]]
        assert places == sorted(places)
        assert 0 <= places[0] <= places[-1] <= chart["width"]
        assert 0 < row["label_y"] < row["y"] < chart["bottom"]


def test_an_interval_is_drawn_on_the_range_of_its_metric() -> None:
    shown = Whisker((-0.5, 0.5), 0.0, 0.5, low=-1.0, high=1.0)
    chart = charts.whisker(shown, width=110.0)
    assert chart is not None
    places = {name: chart[name] for name in ("width", "value", "low", "high", "mark", "before")}
    assert places == {
        "width": 110.0, "value": 55.0, "low": 30.0, "high": 80.0, "mark": 80.0, "before": None
    }  # fmt: skip
    assert charts.whisker(replace(shown, high=None)) is None
    assert charts.whisker(replace(shown, value=None)) is None


def test_an_arrow_comes_from_the_value_before() -> None:
    """On 0 to 1, drawn from 5 to 105: before 0.2 at 25, now 0.7 at 75."""
    shown = Whisker((0.6, 0.8), 0.7, low=0.0, high=1.0, before=0.2, tone="good")
    chart = charts.whisker(shown, width=110.0)
    assert chart is not None
    assert (chart["before"], chart["value"], chart["class"]) == (25.0, 75.0, "better")

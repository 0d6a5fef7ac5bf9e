"""Lines of a history: which alert, where a line begins, and what a paired comparison says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from tests.definitions import definition_of

from decisions.alerts import Alert, AlertRule, MetricCourse, chosen_keys, compare_points, make_lines
from decisions.history import HistoryPoint, Key, MetricHistory, MetricValue
from decisions.history_print import ALIKE, _change, history_page
from records.clusters import ClusterLabels, LabelsById

CLAIMS: Key = ("groundedness", "claim_support_rate")
PASS: Key = ("pipeline", "pass")
NAMES = ("groundedness.claim_support_rate", "pipeline.pass")


def value(key: Key, mean: float, n: int = 90, definition: str = "") -> MetricValue:
    return MetricValue(mean, None, n, 0, 0, definition or definition_of(*key))


def point(
    number: int,
    values: dict[Key, MetricValue],
    eval_set: str = "s",
    scores: Sequence[float | None] | None = None,
) -> HistoryPoint:
    """``scores``: of CLAIMS, a case each."""
    return HistoryPoint(
        sha=f"{number:040d}",
        date="2026-01-01",
        subject="",
        path="",
        run_id=f"r{number}",
        eval_set=eval_set,
        cases=90,
        errors=0,
        values=values,
        scored=() if scores is None else ("groundedness.claim_support_rate",),
        case_scores={f"c{i}": [score] for i, score in enumerate(scores or ())},
    )


def history(means: Sequence[float], key: Key = CLAIMS, n: int = 90) -> list[HistoryPoint]:
    return [point(number, {key: value(key, mean, n)}) for number, mean in enumerate(means)]


def line_of(points: Sequence[HistoryPoint], rule: AlertRule, key: Key = CLAIMS) -> MetricCourse:
    (line,) = make_lines(points, [key], rule)
    return line


STEP = [0.7 + 0.01 * (place % 2) - 0.05 * (place >= 14) for place in range(20)]


def test_only_primary_metrics_alert_and_all_have_a_band() -> None:
    loud = line_of(history(STEP), AlertRule(NAMES))
    assert [(alert.kind, alert.at) for alert in loud.alerts] == [("shift", 14)]
    silent = line_of(history(STEP), AlertRule(("pipeline.pass",)))
    assert (silent.alerts, silent.shifts, silent.primary) == ([], [], False)
    assert silent.judged[7].band is not None
    assert silent.judged[6].band is None


def test_a_rise_ends_an_alert() -> None:
    low = [*STEP, *STEP[14:]]
    mended = line_of(history([*low, *STEP[:12]]), AlertRule(NAMES))
    assert [shift.better for shift in mended.shifts] == [False, True]
    assert mended.shifts[1].began == 26
    assert mended.alerts == []
    again = line_of(history([*low, *STEP[:12], *low[14:]]), AlertRule(NAMES))
    assert [alert.at for alert in again.alerts] == [38]


def test_the_plain_rule_is_relative_to_the_median_and_watches_every_metric() -> None:
    """.80 .82 .78 .90: the median of these is .81, of the first three .80; less 10 % .72."""
    at_bound, under = (
        line_of(history([0.80, 0.82, 0.78, v]), AlertRule((), 0.1)) for v in (0.72, 0.719)
    )
    assert at_bound.alerts == []
    assert under.alerts == [Alert("drop", 3, 3)]
    assert [judged.baseline for judged in under.judged] == [None, 0.80, 0.81, 0.80]
    assert under.judged[3].drop == pytest.approx(0.081 / 0.80)
    lasting = line_of(history([0.8, 0.8, 0.8, 0.7, 0.7]), AlertRule((), 0.1))
    assert lasting.alerts == [Alert("drop", 3, 4)]
    assert line_of(history([0.8, 0.8, 0.7, 0.8]), AlertRule((), 0.1)).alerts == []
    assert line_of(history([0.8, 0.8, 0.7]), AlertRule()).alerts == []


def test_a_fall_on_an_earlier_set_is_no_alert_of_the_present_one() -> None:
    """STEP falls at point 14; then another bot is asked a set that has no labels for the metric."""
    other = [point(n, {PASS: value(PASS, 0.5)}, "t") for n in (20, 21)]
    points = [*history(STEP), *other]
    lines = make_lines(points, [CLAIMS, PASS], AlertRule(NAMES, 0.01))
    assert [(line.of_today, line.alerts) for line in lines] == [(False, []), (True, [])]
    page = history_page(MetricHistory(points), lines, [], max_drop=None, primary=NAMES)
    shown = "\n".join(map(repr, page.blocks))
    assert "Measured on an earlier eval set only: 1 metric (--json)." in shown


def test_a_primary_metric_that_is_gone() -> None:
    points = [*history([0.7, 0.7]), point(2, {PASS: value(PASS, 0.5)})]
    assert line_of(points, AlertRule(NAMES)).alerts == [Alert("gone", 1, 2)]
    assert line_of(points, AlertRule(("pipeline.pass",))).alerts == []
    other_set = [*history([0.7, 0.7]), point(2, {PASS: value(PASS, 0.5)}, eval_set="t")]
    assert line_of(other_set, AlertRule(NAMES)).alerts == []


def test_a_share_of_ten_cases_is_not_judged_finer_than_a_case() -> None:
    """.1 is one case of ten in ``pass``: with 10 cases no shift, with 900 one."""
    means = [0.7 + 0.005 * (place % 2) - 0.05 * (place >= 14) for place in range(20)]
    assert line_of(history(means, PASS, n=10), AlertRule(NAMES), PASS).alerts == []
    assert line_of(history(means, PASS, n=900), AlertRule(NAMES), PASS).alerts != []
    assert line_of(history(means, CLAIMS, n=10), AlertRule(NAMES)).alerts != [], "no 0/1 metric"


def two_points(
    good: Sequence[float], bad: Sequence[float], eval_set: str = "s"
) -> list[HistoryPoint]:
    return [
        point(i, {CLAIMS: value(CLAIMS, sum(scores) / 30, 30)}, scores=scores, eval_set=eval_set)
        for i, scores in enumerate([good, bad])
    ]


GOOD, BAD = [1.0] * 30, [1.0] * 18 + [0.0] * 12


def verdict(
    points: Sequence[HistoryPoint],
    clusters: Mapping[str, LabelsById] | None = None,
    names: Sequence[str] = NAMES,
) -> str | None:
    """The verdict on CLAIMS of the second point against the first; None if there is none."""
    comparison = compare_points(points[0], points[1], names, clusters or {})
    row = comparison.row("claim_support_rate") if comparison else None
    return row.verdict if row else None


def test_clusters_count_once_and_only_for_their_own_set() -> None:
    """The 12 cases that fell are all of one document: one cluster moved, which is no evidence."""
    points = two_points(GOOD, BAD)
    document = ClusterLabels({f"c{number}": "document: a.md" for number in range(18, 30)})
    assert verdict(points, {"s": document}) == "no evidence"
    assert verdict(points, {"another": document}) == "worse"


def test_points_that_share_no_scores_are_not_compared() -> None:
    bare = history([0.5, 0.4])
    redefined = [
        point(i, {CLAIMS: value(CLAIMS, 0.5, 30, f"groundedness/x@{i}")}, scores=scores)
        for i, scores in enumerate([GOOD, BAD])
    ]
    assert compare_points(redefined[0], redefined[1], NAMES, {}) is None
    assert compare_points(bare[0], bare[1], NAMES, {}) is None, "no case scores"
    (first, second), (_, other) = two_points(GOOD, BAD), two_points(GOOD, BAD, eval_set="t")
    assert compare_points(first, second, NAMES, {}) is not None
    assert compare_points(first, other, NAMES, {}) is None, "of another eval set"


def test_which_metrics_are_shown() -> None:
    points = [point(0, {CLAIMS: value(CLAIMS, 0.5), PASS: value(PASS, 0.5)})]
    assert chosen_keys(points, (), [PASS]) == [PASS]
    assert chosen_keys(points, (), []) == [CLAIMS, PASS]
    assert chosen_keys(points, ("claim*",), [PASS]) == [CLAIMS]
    assert chosen_keys(points, ("pipeline.*",), []) == [PASS]


def test_a_line_whose_neighbours_are_alike_is_marked_from_twenty_points_on() -> None:
    """Waves of five runs: the correlation of neighbours is far above .3."""
    waves = [0.7 + 0.02 * (place // 5 % 2) for place in range(24)]
    rule = AlertRule(NAMES)
    marked, short = line_of(history(waves), rule), line_of(history(waves[:19]), rule)
    assert marked.resemblance is not None
    assert marked.resemblance > 0.3
    assert (marked.runs_alike, short.runs_alike) == (True, False)
    steady = [0.7 + 0.02 * (place % 2) for place in range(24)]
    assert line_of(history(steady), rule).runs_alike is False
    # a new definition begins a new line
    points = history(waves[:12]) + [
        point(number, {CLAIMS: value(CLAIMS, mean, definition="groundedness/other@1")})
        for number, mean in enumerate(waves[12:], 12)
    ]
    assert line_of(points, rule).runs_alike is False
    page = history_page(
        MetricHistory(points=history(waves)), [marked], [], max_drop=None, primary=NAMES
    )
    assert f"groundedness.claim_support_rate: {ALIKE}." in str(page)


def test_the_arrow_says_better_or_worse() -> None:
    """Numeric fabrications are better when low."""
    key: Key = ("groundedness", "numeric_fabrications")
    for metric, arrow in ((CLAIMS, "▼"), (key, "▲")):
        line = line_of(history([0.5, 0.4], metric), AlertRule(NAMES), metric)
        assert _change(line) == f"−0.100 {arrow}"

"""The answer in the first lines, and what the tables' words mean."""

from __future__ import annotations

from typing import Any

from decisions import compare_print
from decisions.rows import Comparison, MetricRow


def row(metric: str, delta: float, p: float | None = 0.5, **given: Any) -> MetricRow:
    """A row of which higher is better; p below .05 makes a verdict."""
    from decisions.rows import _with_verdict

    known: dict[str, Any] = {"base": 0.5, "base_mean": 0.5, "new": 0.5 + delta, "n": 40, "mde": 0.1}
    known |= {"new_mean": 0.5 + delta, "delta": delta, "p": p, "p_holm": p, "family": True}
    known |= {"interval": (delta - 0.1, delta + 0.1)}
    return _with_verdict(MetricRow("retrieval", metric, True, **known | given))


def comparison(*rows: MetricRow) -> Comparison:
    return Comparison("old", "now", rows, cases=40)


def test_the_headline_counts_verdicts_and_names_them() -> None:
    one = comparison(
        row("a", 0.2, 0.01), row("b", -0.3, 0.02), row("c", 0.01), row("x", 0.4, 0.01, family=False)
    )
    assert compare_print._headline(one) == [
        "MIXED: of 3 declared metrics 1 worse, 1 better, 1 without evidence of a difference.",
        "▼ worse: b −0.300",
        "▲ better: a +0.200",
    ]


def test_the_headline_of_one_direction_of_none_and_of_nothing() -> None:
    first = compare_print._headline(comparison(row("a", -0.2, 0.01)))[0]
    assert first == "WORSE: of 1 declared metric 1 worse."
    first = compare_print._headline(comparison(row("a", 0.2, 0.01), row("b", 0.0)))[0]
    assert first.startswith("BETTER: of 2 declared metrics 1 better, 1 without")
    first = compare_print._headline(comparison(row("a", 0.01)))[0]
    assert first.startswith("NO EVIDENCE of a difference: of 1 declared metric 1 without evid")
    assert compare_print._headline(comparison()) == [
        "No metric could be tested: no case has one in both runs."
    ]


def test_without_declared_metrics_the_others_speak_and_are_called_exploratory() -> None:
    one = comparison(row("a", -0.2, 0.001, family=False, p_holm=None, p_bh=0.001))
    assert (
        compare_print._headline(one)[0]
        == "WORSE: of 1 exploratory (none is declared) metric 1 worse."
    )


def test_many_names_are_cut_and_a_lost_metric_is_told() -> None:
    found = [row(f"m{number}", -0.2, 0.01) for number in range(10)]
    gone = MetricRow("safety", "auc", True, family=True, base_mean=0.9, verdict="only in base")
    lines = compare_print._headline(comparison(*found, gone))
    assert lines[1].endswith("m7 −0.200, and 2 more")
    assert lines[2] == "no longer measured: auc"


def test_the_legend_explains_what_occurs() -> None:
    decided = row("a", 0.2, 0.01)
    assert len(compare_print._legend([decided])) == 1
    assert "4 times in 5" in compare_print._legend([decided, row("b", 0.01)])[1]
    # an interval of .02 to .22 beside a corrected p of .2 looks like a contradiction: it is told
    assert "leave out 0" in compare_print._legend([row("b", 0.12, 0.2)])[2]
    assert len(compare_print._legend([row("b", 0.01)])) == 2


def test_declared_rows_stand_with_the_worse_ones_first() -> None:
    same = row("same", 0.0, 1.0, mde=0.0)
    found = [row("c", 0.01), same, row("a", 0.2, 0.01), row("b", -0.3, 0.02)]
    family, _, _ = compare_print._parts(comparison(*found))
    assert [one.metric for one in family] == ["b", "a", "c", "same"]


def test_cases_scored_in_one_run_only_are_told_once_for_metrics_alike() -> None:
    counts: dict[str, Any] = {"n": 18, "base_n": 30, "new_n": 20, "base_cases": 40, "new_cases": 40}
    found = [row(name, 0.01, lost=12, gained=2, **counts) for name in ("a", "b")]
    assert compare_print._remarks(comparison(*found, row("c", 0.01))) == [
        "a, b (18 of 40 compared): 12 cases scored only in old, 2 only in now; these are left out."
    ]

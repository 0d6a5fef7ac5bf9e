"""The answer in the first lines, and what the tables' words mean."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console
from tests.rows import each_row

from decisions import compare_words
from decisions.change import Change, ChangeVerdict, remeasured
from decisions.compare_words import compare_page, matrix_page
from decisions.comparison import Comparison
from decisions.joint import Headline, PrimaryTable, decide, decided
from ragmetrics.stats.arrays import np
from terminal.print_page import print_page
from views.page import markdown


def row(metric: str, delta: float, verdict: ChangeVerdict, **more: Any) -> Change:
    """A primary row of which higher is better."""
    interval = (delta - 0.1, delta + 0.1)
    values: dict[str, Any] = {"base": 0.5, "base_mean": 0.5, "n": 40, "mde": 0.1, "p_joint": 0.2}
    values |= {"new": 0.5 + delta, "new_mean": 0.5 + delta, "delta": delta, "units": 40}
    values |= {"interval": interval, "verdict": verdict, "primary": True}
    return Change("retrieval", metric, True, **values | more)


def row_cells(change: Change) -> tuple[str, ...]:
    return tuple(column.cell(change) for column in compare_words.COLUMNS)


def explored(metric: str, delta: float, verdict: ChangeVerdict) -> Change:
    return row(metric, delta, verdict, primary=False, p_joint=None, p_bh=0.01)


def comparison(*rows: Change, headline: Headline = "NO CLEAR DIFFERENCE") -> Comparison:
    return Comparison("old", "now", rows, headline, cases=40)


def test_the_legend_explains_what_occurs() -> None:
    decided = row("a", 0.2, "better")
    assert len(compare_words.legend(comparison(decided))) == 1
    unseen = row("b", 0.01, "no evidence")
    assert "1 time in 5" in compare_words.legend(comparison(decided, unseen))[1]
    slow = row("latency_ms", 3.0, "worse", ratio=1.2)
    assert compare_words.legend(comparison(slow))[1].startswith("1.12× means")


def test_what_could_be_missed_is_drawn_without_evidence_alone() -> None:
    """A proven fall within the smallest change that would show is no doubt about the fall."""
    for verdict in ("worse", "better", "mixed", "equal"):
        drawn = compare_words.change_of(row("a", -0.05, verdict))
        assert drawn is not None
        assert drawn.unseen is None, verdict
    drawn = compare_words.change_of(row("a", -0.05, "no evidence"))
    assert drawn is not None
    assert drawn.unseen == 0.1


def of_engine(falls: int, cases: int) -> Comparison:
    """Cases that score 1 before, of which some score 0 now."""
    a = np.ones((cases, 1))
    b = np.where(np.arange(cases) < falls, 0.0, 1.0)[:, None]
    (found,) = decide(PrimaryTable(("retrieval.recall@1",), [], np.arange(cases), a, b)).rows
    new = row("recall@1", 0, "no evidence")
    return comparison(decided(remeasured(new, found), found))


def test_a_p_beside_an_interval_that_seems_to_say_otherwise_is_explained() -> None:
    """Four of eight fall by 1: t = -.5 / sqrt((.2857 + .5 / 7) / 8) = -2.37, beyond 2.365; of the
    2^4 patterns of signs two are as extreme, half of them counts: p = 2^-4."""
    (text,) = compare_words.contradictions(of_engine(4, 8))
    assert text == (
        "recall@1: the interval excludes 0, but p = .062: 4 of 8 cases changed, and so few can "
        "give no p below .062. Trust p: for so few changes the interval is too narrow."
    )
    assert compare_words.contradictions(of_engine(6, 8)) == []
    assert compare_words.contradictions(of_engine(3, 8)) == []
    among = comparison(row("c", 0.2, "no evidence", p=0.03, p_joint=0.08, moved=12))
    assert compare_words.contradictions(replace(among, tested=4)) == [
        "c: the interval excludes 0, but p = .080, corrected for 4 primary metrics (by itself p = "
        ".030). The interval is not corrected. A verdict needs both."
    ]
    sure = row("b", 0.05, "no evidence", p_joint=0.04)
    (text,) = compare_words.contradictions(comparison(sure))
    assert text.startswith("b: p = .040, but the interval contains 0, since it allows for a change")


def test_below_six_units_there_is_no_interval_beside_no_verdict() -> None:
    (few,) = of_engine(3, 5).rows
    cells = {column.name: column.cell(few) for column in compare_words.COLUMNS}
    assert cells["95 % interval"] == cells["p"] == "–"
    assert cells["verdict"] == "too few to tell (5)"


def test_primary_rows_keep_their_order_and_exploratory_ones_begin_with_the_worse() -> None:
    rows = [row("c", 0.01, "no evidence"), row("b", -0.3, "worse")]
    others = [explored("x", 0.4, "better"), explored("y", -0.4, "worse"), explored("z", 0, "equal")]
    primary, loud, rest = compare_words.row_groups(comparison(*rows, *others))
    assert [r.metric for r in primary] == ["c", "b"]
    assert [r.metric for r in loud] == ["y", "x"]
    assert [r.metric for r in rest] == ["z"]


def test_a_ratio_is_shown_as_times_and_its_totals_when_they_disagree() -> None:
    found = row("latency_ms", -5.0, "mixed", ratio=0.85, ratio_totals=1.7)
    found = replace(found, ratio_interval=(0.8, 0.9))
    cells = row_cells(found)
    assert cells[4:6] == ("0.85×", "0.80 to 0.90")
    assert cells[7] == "◆ mixed: 1.70× in all"


@each_row(
    ("width", "gone"),
    [(200, ""), (90, "compared"), (80, "compared, base"), (50, "new, 95 % interval, p")],
)
def test_a_narrow_terminal_loses_columns_and_never_a_part_of_a_name(width: int, gone: str) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, color_system=None)
    name = "citation_validity_content"
    print_page(console, compare_page(comparison(row(name, -0.3, "worse"))))
    shown = text.getvalue()
    lines = shown.splitlines()
    numbers = next(line for line in lines if line.startswith(name))
    assert "−0.300" in numbers
    assert "▼ worse" in numbers
    assert max(map(len, lines)) <= width
    left_out = " ".join(shown.rpartition("Left out on this narrow terminal:")[2].split())
    assert ("Left out on this narrow terminal:" in shown) == bool(gone)
    assert f"{gone}." in left_out or not gone
    assert "…" not in shown


@each_row("width", [80, 100, 119, 130])
def test_numbers_stay_and_pictures_come_where_there_is_room_for_both(width: int) -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=width, color_system=None)
    rows = [row("citation_validity_content", -0.3, "worse"), row("recall@5", 0.1, "no evidence")]
    print_page(console, compare_page(comparison(*rows)), every=True)
    lines = text.getvalue().splitlines()
    head = next(line for line in lines if line.startswith("metric"))
    assert all(f" {name} " in head for name in ("difference", "95 % interval", "p"))
    # columns, each with 2 beside it: 25 + 12 + 18 + 4 (p) + 9 = 68; base, new: 14; could miss: 12
    # (94); the picture: 23 (117); compared: 10 (127)
    assert (" base " in head) is (width > 80)
    assert ("could miss" in head) is (width > 80)
    assert ("−0.4" in head) is (width >= 119)
    assert ("compared" in head) is (width == 130)
    for name in ("citation_validity_content", "recall@5"):
        line = next(line for line in lines if line.startswith(name))
        assert ("●" in line) is (width >= 119)
        assert len(line.rstrip()) <= width


def test_outside_a_terminal_every_metric_has_its_whole_line() -> None:
    text = io.StringIO()
    console = Console(file=text, width=40)
    rows = [row("a", -0.3, "worse"), explored("context_relevance", 0.0, "no evidence")]
    print_page(console, compare_page(comparison(*rows)), every=True)
    lines = [line for line in text.getvalue().splitlines() if line.startswith("context_relevance ")]
    assert len(lines) == 1
    assert lines[0].split()[-2:] == ["unclear", "±0.100"]


def test_means_and_coverage_are_of_the_same_cases() -> None:
    """Two cases score 1 and 0 in base, then 0 and none: of the one that both scored the means are
    1 and 0, while the runs' own are .5 and 0. What one run alone has is that run's."""
    both = Change("retrieval", "mrr", True, base=1.0, new=0.0, delta=-1.0, n=1)
    both = replace(both, base_mean=0.5, new_mean=0.0, base_n=2, new_n=1, base_cases=2, new_cases=2)
    assert row_cells(both)[1:5] == ("1.000", "0.000", "1/2", "−1.000")
    apart = replace(both, base=None, new=None, delta=None, n=0)
    assert row_cells(apart)[1:5] == ("–", "–", "0/2", "–")
    alone = replace(apart, new_mean=None, new_n=0, verdict="only in base")
    assert row_cells(alone)[1:5] == ("0.500", "–", "2/2", "–")
    of_run = Change("abstention", "f1", True, base_mean=0.5, new_mean=0.4, delta=-0.1)
    assert row_cells(of_run)[1:5] == ("0.500", "0.400", "–", "−0.100")


def test_remarks_count_exploratory_metrics_and_cases_of_one_run() -> None:
    found = [explored("x", -0.3, "worse"), explored("y", 0.4, "better")]
    text = compare_words.explored_line(replace(comparison(*found), untested=67))
    assert text == "Exploratory: of 2 metrics 1 worse, 1 better; --all compares 67 more."
    assert compare_words.explored_line(comparison()) == ""
    counts: dict[str, Any] = {"n": 18, "base_n": 30, "new_n": 20, "base_cases": 40, "new_cases": 40}
    found = [row(n, 0.01, "no evidence", lost=12, gained=2, **counts) for n in ("a", "b")]
    assert compare_words.remarks(comparison(*found, row("c", 0.01, "no evidence"))) == [
        "a, b (18 of 40 compared): 12 cases scored only in old, 2 only in now; these are left out."
    ]


def test_a_matrix_tells_over_how_many_cases_a_difference_is() -> None:
    """40 cases in both; without the 11 that only the base has, two means of other cases."""
    uneven = row("recall", 0.0, "no evidence", base_mean=0.72, new_mean=0.82, lost=11)
    page = matrix_page([comparison(uneven), comparison(row("recall", 0.1, "better"))])
    (line,) = (line for line in markdown([page]).splitlines() if line.startswith("| `recall`"))
    assert line == "| `recall` | 0.720 | 0.820 (0.000, n 40) · | 0.600 (+0.100) ▲ |"

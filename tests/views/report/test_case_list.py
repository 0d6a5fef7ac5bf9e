"""The list of cases: short rows whatever stands in them, anchors, what a large run leaves out."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.score_lines import write_lines

from decisions.case_changes import Ways
from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Ruling
from decisions.measures import Measure
from decisions.metric_words import sentence, value_in_words
from ragmetrics.catalogue import METRICS
from ragmetrics.catalogue.cases import CaseRule
from ragmetrics.catalogue.metric import Metric
from records.run import Run
from terminal.page import CaseLinks
from views.report.answers import CaseListing, CaseRow, CaseTable, RunAnswers, order_of
from views.report.figures import ranks
from views.report.metrics import ReportMetric
from views.report.page import WITHOUT_SCRIPT, case_rows, rows_without_script
from views.text import anchor

IDS = [
    *("refund-days", "a" * 300, "<script>alert(1)</script>" * 9, "é" * 200, "\u202e" * 60),
    *("&" * 100, "", "a b", "a-b", "'\"><img src=x>"),
]


@each_row("case_id", IDS)
def test_no_row_takes_more_than_250_bytes(case_id: str) -> None:
    scores = [-0.25, 0.5, 1e308, None, 0.125, 0.0]  # one of them of a damaged file
    why = "<script>&amp;" * 9
    row = CaseRow(case_id, 12, "broke", why, "<&>" * 40, scores, '<b>&"\\\u202e' * 50, "dn")
    (text,) = case_rows(CaseTable([], [row], 0))
    assert len(text.encode()) <= 249  # and a comma before the next
    assert "<" not in text
    assert ">" not in text
    key, _, state, *_, values, marks = json.loads(html.unescape(text))
    assert marks == "dn"
    assert (f"case-{key}", state) == (anchor(case_id, 12), "broke")
    assert values.split() == ["-0.25", "0.50", "1e+308", "–", "0.12", "0"]
    for in_full in (frozenset[str](), frozenset({anchor(case_id, 12)})):
        (text,) = rows_without_script(CaseTable([], [row], 0), in_full)
        assert text.endswith("</td></tr>\n")
        assert f'"{"#" if in_full else ""}{anchor(case_id, 12)}"' in text
        assert ("id=" in text) == (not in_full)
        assert "<b>" not in text
        assert "<img" not in text
        assert "<script" not in text


def test_a_short_row_has_the_whole_question() -> None:
    row = CaseRow("q1", 0, "fails", "no gold", "factual", [1.0, None], "How many days?")
    table = CaseTable(["pass", "recall"], [row], 0)
    (text,) = case_rows(table)
    assert json.loads(text) == ["q1", "", "fails", "no gold", "How many days?", "factual", "1 –"]
    (text,) = rows_without_script(table, frozenset({"case-q1"}))
    head = '<tr><th scope="row"><a href="#case-q1">q1</a></th><td>fails</td><td>no gold</td>'
    assert text == f"{head}<td>How many days?</td><td>factual</td><td>1</td><td>–</td></tr>\n"


def test_a_long_list_is_whole_as_data_and_its_first_rows_are_there_without_script() -> None:
    rows = [CaseRow(f"q{n}", 0, "ok", "", None, [1.0], "Why?") for n in range(130)]
    table = CaseTable(["pass"], rows, 0)
    assert len(list(case_rows(table))) == 130
    assert len(list(rows_without_script(table, frozenset()))) == WITHOUT_SCRIPT == 100


def test_anchors_are_plain_and_no_two_are_the_same() -> None:
    anchors = [anchor(case_id, repeat) for case_id in IDS for repeat in (0, 1)]
    assert len(set(anchors)) == len(anchors)
    assert anchor("refund-days") == "case-refund-days"
    assert all(name.replace("-", "").replace(":", "").isalnum() for name in anchors)
    assert all(len(name) <= 45 for name in anchors)


def answers_of(run: Path, count: int) -> RunAnswers:
    """Answers of which the first three break the one rule; gold is first; the last call failed."""
    lines = [
        {"case_id": f"c{n}", "scores": {"a": 0.0 if n < 3 else 1.0, "b": n / 30}}
        | {"status": "failed" if n == count - 1 else "scored", "evidence": {"hits": [1, 4]}}
        for n in range(count)
    ]
    write_lines(run, "retrieval", lines)
    rule = CaseRule("low", "low", "low", "a is {value}", "retrieval.a", ">=", 1.0)
    table, columns = Run(run, explained=True), {"retrieval": ["a", "b"]}
    return RunAnswers(table, ["retrieval"], columns, Ruling(CaseRules((rule,)), Basis()))


def test_flips_then_failed_calls_then_the_worst_then_the_others(tmp_path: Path) -> None:
    answers = answers_of(tmp_path, 8)
    ways: dict[str, Ways] = {"c5": "broke", "gone": "fixed"}
    assert order_of(answers, ways, None) == [5, 7, 0, 1, 2, 3, 4, 6]
    cases = CaseListing(answers, [5, 0, 6], {n: (f"c{n}", 0) for n in range(8)}, ways)
    told = [(row.case_id, row.state, row.why) for row in cases.part([], {}).rows]
    assert told == [("c5", "broke", ""), ("c0", "fails", "low"), ("c6", "ok", "")]


def test_the_list_names_the_states_that_it_has() -> None:
    """A run without a baseline has nothing that broke or was fixed."""
    fine, bad = (CaseRow("q", 0, state, "", None, [], "How?") for state in ("ok", "fails"))
    assert CaseTable([], [bad, fine], 0).says() == "2 answers, the worst first: fails, ok."
    assert CaseTable([], [fine], 0).says() == "1 answer: ok."


def test_a_large_run_says_what_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The list holds 4 of 30 answers: the failed one, and the three that fail."""
    monkeypatch.setattr("views.report.answers.MOST_LISTED", 29)
    monkeypatch.setattr("views.report.answers.FEWER_LISTED", 4)
    answers = answers_of(tmp_path, 30)
    order = order_of(answers, {}, None)
    assert order == [29, 0, 1, 2]
    keys = {row: (f"c{row}", 0) for row in order}
    cases = CaseListing(answers, order, keys)
    assert not cases.whole()
    part = cases.part([], {})
    assert (len(part.rows), part.left_out) == (4, 26)
    assert "26 more are left out" in part.says()
    first, *_ = ranks(answers.first_ranks.tolist(), links=cases.of_ranks).groups
    # a failed call has no rank
    assert first.cases == CaseLinks(29, [("c0", 0), ("c1", 0), ("c2", 0)])


def test_a_figure_links_to_twenty_cases_and_counts_the_others(tmp_path: Path) -> None:
    answers = answers_of(tmp_path, 30)
    order = order_of(answers, {}, None)
    cases = CaseListing(answers, order, {row: (f"c{row}", 0) for row in order})
    measure = Measure("retrieval", "b", 0.5, None, 30, 0, 0, "r/b@1", higher_is_better=True)
    row = Metric("b", "retrieval", "", "", "", low=0.0, high=1.0)
    links = cases.of_metric(ReportMetric(measure, catalogued=row))
    assert links is not None
    assert (links.count, links.label) == (30, "cases below 1")
    assert links.listed == [(f"c{n}", 0) for n in range(20)]  # the worst first


def test_every_metric_of_the_catalogue_has_words() -> None:
    assert [row.name for row in METRICS if not row.words] == []
    assert {row.name for row in METRICS if row.primary} <= {row.name for row in METRICS if row.says}
    recall = next(row for row in METRICS if row.name == "evidence_recall")
    assert recall.in_words("evidence_recall@1") == "Needed evidence in the first passage"
    value = value_in_words(recall, 0.754, 126)
    assert sentence(recall, "evidence_recall@10", value) == "finds 75 % of the needed evidence"
    assert value_in_words(recall, 0.996, 126) == "99.6 %"
    assert sentence(None, "mine", value_in_words(None, 0.5, 2)) == "mine: 0.500"
    passed = next(row for row in METRICS if row.name == "pass")
    text = sentence(passed, "pass", value_in_words(passed, 61 / 146, 146))
    assert text == "passes every check on 61 of 146 questions"
    text = sentence(passed, "pass", value_in_words(passed, 61 / 146, 146, repeated=True))
    assert text == "passes every check on 42 % of questions", "a case may pass one time of three"


def test_the_catalogue_says_of_what_a_mean_is() -> None:
    """0 or 1: cases; partial credit: a share; a rank, a cosine, a harmonic mean: a number."""
    kinds = {row.name: row.counted for row in METRICS}
    assert {row.name for row in METRICS if row.binary} == {
        n for n, k in kinds.items() if k == "case"
    }
    assert (kinds["evidence_recall"], kinds["claim_support_rate"]) == ("share", "share")
    assert {kinds[name] for name in ("mrr", "ndcg", "f1", "auc", "correctness")} == {"number"}

"""Columns of cases: order, replacement, repeats, cases known before and after their results."""

from __future__ import annotations

import sys
import threading

import pytest
from tests.views.tables import put, set_scores

from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Ruling
from records.answer_table import AnswerTable
from records.scores import GroundednessEvidence, ScoreLine
from views.browser.failing import Failing
from views.browser.query import parse
from views.case import Case


def in_order(table: AnswerTable, name: str, *, reverse: bool = False) -> str:
    rows = table.ordered(range(table.count), name, reverse)
    return "".join(table.ids[row] for row in rows)


@pytest.mark.parametrize(
    ("name", "up", "down"),
    [
        ("order", "abcde", "edcba"),
        ("id", "abcde", "edcba"),
        ("latency", "abcde", "edcba"),
        # c 0, b 0.5, a 1; d and e have none and stay last, in their order
        ("recall@5", "cbade", "abcde"),
        # factual a b, general e, recency c; d has none
        ("category", "abecd", "ceabd"),
        # How do, How long, Is it, Long, Who
        ("question", "cadeb", "bedac"),
    ],
)
def test_order_by_any_column(table: AnswerTable, name: str, up: str, down: str) -> None:
    assert in_order(table, name) == up
    assert in_order(table, name, reverse=True) == down


def test_a_later_line_replaces_the_row_of_the_same_case_and_repeat() -> None:
    made = AnswerTable()
    answers = (("a", 0), ("b", 0), ("a", 1))
    assert [put(made, name, repeat, question="?") for name, repeat in answers] == [0, 1, 2]
    assert put(made, "a", question="again") == 0
    assert made.questions == ["again", "?", "?"]
    assert (made.row_of("a"), made.row_of("a", 1), made.row_of("a", 2)) == (0, 2, None)
    assert made.key(2) == ("a", 1)
    assert made.count == 3


def test_what_the_set_says_reaches_rows_before_and_after_it_is_known() -> None:
    made = AnswerTable()
    put(made, "early")
    for case_id in ("early", "late", "never"):
        made.describe(case_id, (7, "factual", "easy", "faq", "no", ("t",), ("a.md",)))
    put(made, "late")
    put(made, "late", 1)
    assert made.words["category"] == ["factual"] * 3
    assert made.words["answerable"] == ["no"] * 3
    assert made.sets["tag"] == [("t",)] * 3
    assert list(made.case_offsets) == [7, 7, 7]


def test_a_number_that_is_not_there_is_none(table: AnswerTable) -> None:
    assert table.number("recall@5", 1) == 0.5
    assert table.number("recall@5", 3) is None
    assert table.number("no such column", 0) is None


def words(failing: Failing, table: AnswerTable) -> list[str]:
    return [failing.word(code) for code in failing.codes(table)]


def test_the_first_broken_rule_is_named(table: AnswerTable) -> None:
    # b: outcome_match=0; c: mrr=0 (no gold); d: the call failed
    assert words(Failing(), table) == ["", "outcome", "no gold", "error", ""]
    assert Failing().counts(table) == (5, 3, 0, 0)


def test_rules_on_metrics_that_do_not_count_say_nothing(table: AnswerTable) -> None:
    basis = Basis(4, definitions={"retrieval.mrr": ""})
    failing = Failing(Ruling(CaseRules(), basis))
    assert words(failing, table) == ["", "", "no gold", "error", ""]
    assert failing.describe() == "a case fails by: error, no gold (first 4 passages)"


def test_a_condition_takes_the_place_of_the_rules(table: AnswerTable) -> None:
    failing = Failing(condition=parse("recall@5>0.5", table.metrics))
    # a meets it; b and c do not; d is an error; e was not scored, so nobody knows
    assert list(failing.codes(table)) == [0, failing.custom, failing.custom, 1, 0]
    assert failing.word(failing.custom) == "fails"
    detail = Case("b", 0, "", "ok")
    assert failing.state(table, ("b", 0), detail) == (True, "FAILS: does not meet: recall@5>0.5")


def test_the_state_of_a_case_names_all_its_reasons_and_warnings(table: AnswerTable) -> None:
    scores = (
        ("retrieval", "mrr", 0.0),
        ("groundedness", "numeric_fabrications", 2.0),
        ("pipeline", "latency_ok", 0.0),
    )
    lines = {section: ScoreLine("c", 0, "scored", {name: n}) for section, name, n in scores}
    lines["groundedness"].evidence = GroundednessEvidence(numbers={"fabricated": ["9", "25"]})
    detail = Case("c", 0, "", "ok", lines=lines)
    for section, name, value in scores:
        set_scores(table, section, {name: (None, None, value)})
    assert Failing().state(table, ("c", 0), detail) == (
        True,
        "FAILS: no gold passage was retrieved; 2 numbers in no passage: 9, 25 (warning: slower "
        "than its time budget)",
    )


def test_codes_follow_the_table(table: AnswerTable) -> None:
    failing = Failing()
    assert failing.codes(table)[0] == 0
    set_scores(table, "pipeline", {"outcome_match": (0.0, 0.0, 1.0)})
    assert words(failing, table)[0] == "outcome"


def test_repeats_of_a_case_count_as_one_case() -> None:
    made = AnswerTable()
    for repeat in range(3):
        put(made, "a", repeat)
    put(made, "b", 0)
    set_scores(made, "retrieval", {"mrr": (1.0, 0.0, 0.0, 1.0)})
    failing = Failing()
    assert failing.counts(made) == (2, 1, 0, 0)  # two of the three answers to a have no gold
    set_scores(made, "retrieval", {"mrr": (1.0, 1.0, 0.0, 1.0)})
    assert failing.counts(made) == (2, 0, 0, 0)


def test_cases_are_counted_while_another_thread_adds_answers() -> None:
    made, failing = AnswerTable(), Failing()
    rows = iter(range(20_000))
    writer = threading.Thread(
        target=lambda: [put(made, f"q{row}", status="error" if row % 2 else "ok") for row in rows]
    )
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        writer.start()
        while writer.is_alive():
            cases, failed, *_ = failing.counts(made)
            assert failed == cases // 2
            shown = made.count
            assert len(failing.codes(made)) >= shown, "what is kept is not of fewer rows"
    finally:
        sys.setswitchinterval(interval)
        writer.join()
    assert failing.counts(made) == (20_000, 10_000, 0, 0)


def test_an_answer_that_could_not_be_read_neither_fails_nor_passes() -> None:
    """a has no gold, b could not be read, c is fine; of d's repeats the one that was read fails."""
    made = AnswerTable()
    for key in ("a0", "b0 unreadable", "c0", "d0", "d1 unreadable"):
        put(made, key[0], int(key[1]), status=key[3:] or "ok")
    set_scores(made, "retrieval", {"mrr": (0.0, None, 1.0, 0.0, None)})
    failing = Failing()
    assert words(failing, made) == ["no gold", "", "", "no gold", ""]
    assert failing.counts(made) == (4, 2, 0, 1)
    detail = Case("b", 0, "", "unreadable")
    unread = (False, "not measured: the answer could not be read")
    assert failing.state(made, ("b", 0), detail) == unread
    assert Failing(condition=parse("mrr>0", made.metrics)).state(made, ("b", 0), detail) == unread
    found = {
        text: "".join(made.ids[row] for row in parse(text, ()).select(made, range(5), failing))
        for text in ("failing", "passing", "failed", "unreadable")
    }
    assert found == {"failing": "ad", "passing": "c", "failed": "", "unreadable": "bd"}
    before = AnswerTable()
    for case_id in "abcd":
        put(before, case_id)
    set_scores(before, "retrieval", {"mrr": (1.0, 0.0, 1.0, 1.0)})
    assert failing.ways(before, made) == {"a": "broke", "c": "ok still", "d": "broke"}

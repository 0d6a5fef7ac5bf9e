"""Columns of cases: order, replacement, repeats, cases known before and after their results."""

from __future__ import annotations

import pytest

from views.browser.listing import _flips
from views.browser.query import parse
from views.browser.rules import CUSTOM, RULES, word_of
from views.browser.success import Success
from views.browser.table import Table

NUMBERS = {"latency": 1.0, "confidence": None, "cost": None}


def put(table: Table, case_id: str, repeat: int = 0, question: str = "?") -> int:
    return table.put(case_id, repeat, 0, question, {"status": "ok"}, (), NUMBERS)


def in_order(table: Table, name: str, *, reverse: bool = False) -> str:
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
def test_order_by_any_column(table: Table, name: str, up: str, down: str) -> None:
    assert in_order(table, name) == up
    assert in_order(table, name, reverse=True) == down


def test_a_later_line_replaces_the_row_of_the_same_case_and_repeat() -> None:
    made = Table()
    assert [put(made, "a"), put(made, "b"), put(made, "a", 1)] == [0, 1, 2]
    assert put(made, "a", question="again") == 0
    assert made.questions == ["again", "?", "?"]
    assert (made.row_of("a"), made.row_of("a", 1), made.row_of("a", 2)) == (0, 2, None)
    assert made.key(2) == ("a", 1)
    assert made.count == 3


def test_what_the_set_says_reaches_rows_before_and_after_it_is_known() -> None:
    made = Table()
    put(made, "early")
    for case_id in ("early", "late", "never"):
        made.describe(case_id, (7, "factual", "easy", "faq", "no", ("t",), ("a.md",)))
    put(made, "late")
    put(made, "late", 1)
    assert made.words["category"] == ["factual"] * 3
    assert made.words["answerable"] == ["no"] * 3
    assert made.sets["tag"] == [("t",)] * 3
    assert list(made.case_offsets) == [7, 7, 7]


def test_a_number_that_is_not_there_is_none(table: Table) -> None:
    assert table.number("recall@5", 1) == 0.5
    assert table.number("recall@5", 3) is None
    assert table.number("no such column", 0) is None


def test_the_first_broken_rule_is_named(table: Table) -> None:
    success = Success()
    codes = success.codes(table)
    # b: pass=0; c: mrr=0 (no gold); d: the call failed
    assert [word_of(code) for code in codes] == ["", "pass=0", "no gold", "error", ""]
    assert success.says(codes[3]) == RULES[0].says


def test_rules_on_metrics_that_do_not_count_say_nothing(table: Table) -> None:
    success = Success(metrics={"mrr"})
    assert [word_of(code) for code in success.codes(table)] == ["", "", "no gold", "error", ""]
    assert success.needs == ("mrr",)
    assert success.describe() == "none of: error, no gold"


def test_a_condition_takes_the_place_of_the_rules(table: Table) -> None:
    success = Success(parse("recall@5>0.5", table.metrics))
    # a holds; b and c do not; d is an error; e was not scored, so nobody knows
    assert list(success.codes(table)) == [0, CUSTOM, CUSTOM, 1, 0]
    assert word_of(CUSTOM) == "fails"
    assert success.says(CUSTOM) == "does not hold: recall@5>0.5"


def test_codes_follow_the_table(table: Table) -> None:
    success = Success()
    assert success.codes(table)[0] == 0
    table.numbers["pass"][0] = 0.0
    table.version += 1
    assert word_of(success.codes(table)[0]) == "pass=0"


def test_flips_are_changes_of_success_only() -> None:
    # (0, 0) fails in both, (1, 1) broke, (2, 3) fixed, (3, 2) succeeds in both
    before, after = bytearray([1, 0, 2, 0]), bytearray([5, 3, 0, 0])
    assert _flips([(0, 0), (1, 1), (2, 3), (3, 2)], before, after) == {1: "broke", 3: "fixed"}

"""Columns of cases: order, replacement, repeats, what the set says."""

from __future__ import annotations

from tests.rows import each_row
from tests.views.tables import answer, table_of

from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Ruling
from records.cases import GoldSupport, TestCase
from records.scores import GroundednessEvidence, ScoreLine
from views.browser.answers import AnswerTable
from views.browser.failing import Failing
from views.browser.query import parse
from views.case import Case


def in_order(table: AnswerTable, name: str, *, reverse: bool = False) -> str:
    rows = table.ordered(range(table.count), name, reverse)
    return "".join(table.ids[row] for row in rows)


@each_row(
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
    answers = (("a", 0, "?"), ("b", 0, "?"), ("a", 1, "?"), ("a", 0, "again"))
    made = table_of([answer(name, repeat, question=text) for name, repeat, text in answers])
    assert made.questions == ["again", "?", "?"]
    assert made.offsets == [300, 100, 200]
    assert (made.row_of("a"), made.row_of("a", 1), made.row_of("a", 2)) == (0, 2, None)
    assert made.keys == [("a", 0), ("b", 0), ("a", 1)]
    assert made.count == 3


def test_all_answers_to_a_case_have_what_the_set_says_of_it() -> None:
    gold = [GoldSupport("a.md"), GoldSupport("b.md"), GoldSupport("a.md")]
    case = TestCase("a", "?", False, "factual", "easy", query_type="faq", gold_supports=gold)
    other = TestCase("b", "?", relevant_docs=["c.md"])
    answers = [answer("a"), answer("a", 1), answer("b"), answer("c")]
    made = table_of(answers, cases=[case, other])
    assert made.words["category"] == ["factual", "factual", "", ""]
    assert made.words["answerable"] == ["no", "no", "", ""]
    assert made.words["query_type"] == ["faq", "faq", "", ""]
    assert made.sets["document"] == [("a.md", "b.md")] * 2 + [("c.md",), ()]


def words(failing: Failing, table: AnswerTable) -> list[str]:
    return [*failing.reasons(table)]


def test_the_first_broken_rule_is_named(table: AnswerTable) -> None:
    # b: outcome_match=0; c: mrr=0 (no gold); d: the call failed
    assert words(Failing(), table) == ["", "outcome", "no gold", "error", ""]
    assert Failing().counts(table) == (5, 3, 0, 0)


def test_rules_on_metrics_that_do_not_count_say_nothing(table: AnswerTable) -> None:
    basis = Basis(4, definitions={"retrieval.mrr": ""})
    failing = Failing(Ruling(CaseRules(), basis))
    assert words(failing, table) == ["", "", "no gold", "error", ""]
    assert failing.describe() == "Fails on: error, no gold (first 4 passages)"


def test_a_condition_takes_the_place_of_the_rules(table: AnswerTable) -> None:
    failing = Failing(condition=parse("recall@5>0.5", table.metrics))
    # a meets it; b and c do not; d is an error; e was not scored, so nobody knows
    assert words(failing, table) == ["", "fails", "fails", "error", ""]
    detail = Case("b", 0, "", "ok")
    assert failing.state(table, ("b", 0), detail) == (True, "FAILS: does not meet: recall@5>0.5")


def test_the_state_of_a_case_names_all_its_reasons_and_warnings() -> None:
    scores = (
        ("retrieval", "mrr", 0.0),
        ("groundedness", "numeric_fabrications", 2.0),
        ("pipeline", "latency_ok", 0.0),
    )
    lines = {section: ScoreLine("c", 0, "scored", {name: n}) for section, name, n in scores}
    lines["groundedness"].evidence = GroundednessEvidence(numbers={"fabricated": ["9", "25"]})
    detail = Case("c", 0, "", "ok", lines=lines)
    rows = [answer(case_id) for case_id in "abc"]
    table = table_of(rows, {section: {name: (None, None, n)} for section, name, n in scores})
    assert Failing().state(table, ("c", 0), detail) == (
        True,
        "FAILS: no gold passage was retrieved; 2 numbers in no passage: 9, 25 (warning: slower "
        "than its time budget)",
    )


def test_reasons_are_those_of_the_table_that_is_asked_for(table: AnswerTable) -> None:
    failing = Failing()
    assert failing.reasons(table)[0] == ""
    scores = {"pipeline": {"outcome_match": (0.0, 0.0, 1.0)}}
    for made in (table_of([answer(case_id) for case_id in "abc"], scores), table_of([answer("a")])):
        assert bool(failing.reasons(made)[0]) == bool(made.metrics)
    assert failing.reasons(table)[0] == ""


def test_repeats_of_a_case_count_as_one_case() -> None:
    answers = [*(answer("a", repeat) for repeat in range(3)), answer("b")]
    failing = Failing()
    # two of the three answers to a have no gold, then one
    for scores, failed in (((1.0, 0.0, 0.0, 1.0), 1), ((1.0, 1.0, 0.0, 1.0), 0)):
        made = table_of(answers, {"retrieval": {"mrr": scores}})
        assert failing.counts(made) == (2, failed, 0, 0)


def test_an_answer_that_could_not_be_read_neither_fails_nor_passes() -> None:
    """a has no gold, b could not be read, c is fine; of d's repeats the one that was read fails."""
    keys = ("a0", "b0 unreadable", "c0", "d0", "d1 unreadable")
    answers = [answer(key[0], int(key[1]), status=key[3:] or "ok") for key in keys]
    made = table_of(answers, {"retrieval": {"mrr": (0.0, None, 1.0, 0.0, None)}})
    failing = Failing()
    assert words(failing, made) == ["no gold", "", "", "no gold", ""]
    assert failing.counts(made) == (4, 2, 0, 1)
    detail = Case("b", 0, "", "unreadable")
    unread = (False, "not measured: the answer could not be read")
    assert failing.state(made, ("b", 0), detail) == unread
    assert Failing(condition=parse("mrr>0", made.metrics)).state(made, ("b", 0), detail) == unread
    found = {
        text: "".join(
            made.ids[row] for row in parse(text, ()).select(made, range(5), failing.reasons(made))
        )
        for text in ("failing", "passing", "failed", "unreadable")
    }
    assert found == {"failing": "ad", "passing": "c", "failed": "", "unreadable": "bd"}
    scores = {"retrieval": {"mrr": (1.0, 0.0, 1.0, 1.0)}}
    before = table_of([answer(case_id) for case_id in "abcd"], scores)
    assert failing.ways(before, made) == {"a": "broke", "c": "ok still", "d": "broke"}

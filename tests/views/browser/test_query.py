"""The filter language: what it selects, what it says of a mistake, and that it never crashes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row
from tests.views.tables import answer, table_of

from ragmetrics.catalogue.cases import RULES
from views.browser.answers import PLAIN, SETS, WORDS, AnswerTable
from views.browser.failing import Failing
from views.browser.query import KEYWORDS, QueryError, completions, parse


def ids(table: AnswerTable, text: str) -> str:
    """The ids that a filter selects, as one word."""
    query = parse(text, table.metrics)
    rows = query.select(
        table, range(table.count), Failing().reasons(table), {1: "broke", 2: "fixed"}
    )
    return "".join(table.ids[row] for row in rows)


@each_row(
    ("text", "wanted"),
    [
        ("", "abcde"),
        ("   ", "abcde"),
        # failing: b breaks pass, c has mrr 0, d is an error
        ("failing", "bcd"),
        ("failing only", "bcd"),
        ("FAILING", "bcd"),
        ("passing", "ae"),
        ("-failing", "ae"),
        ("failed", "d"),
        ("status=error", "d"),
        ("error=timeout", "d"),
        ("broke", "b"),
        ("fixed", "c"),
        ("category=factual", "ab"),
        ("category=FACTUAL", "ab"),
        ("category!=factual", "cde"),
        ("category=recency/conflict", "c"),
        ('category="recency/conflict"', "c"),
        ("tag=logs", "ac"),
        ("tag!=logs", "bde"),
        ("-tag=logs", "bde"),
        ("flag=late", "e"),
        ("answerable=yes", "abce"),
        ("id=A", "a"),
        ("recall@5=0", "c"),
        ("recall@5=0.5", "b"),
        ("Recall@5<1", "bc"),
        ("recall@5 < 1", "bc"),
        ("recall@5<=1", "abc"),
        ("recall@5>0.4", "ab"),
        ("recall@5!=1", "bc"),
        ("recall@5=none", "de"),
        ("recall@5!=none", "abc"),
        ("latency>=40", "de"),
        ("latency<1e3 latency>1e1", "bcde"),
        ("tag=logs recall@5<1", "c"),
        ("failing category=factual", "b"),
        ("how", "ac"),
        ("HOW long", "a"),
        ('"how long"', "a"),
        ('"long how"', ""),
        ('-"how long" how', "c"),
        ("[bold]", "e"),
        ("only", ""),
    ],
)
def test_what_a_filter_selects(table: AnswerTable, text: str, wanted: str) -> None:
    assert ids(table, text) == wanted


@each_row(
    ("text", "said"),
    [
        ("recal@5=0", "near it: recall@5"),
        ("ctegory=x", "near it: category"),
        ("recall@5=high", "recall@5 is a number"),
        ("recall@5=nan", "recall@5 is a number"),
        ("recall@5<none", "recall@5 is a number"),
        ("latency>", "a value is missing"),
        ("category<3", "category is text"),
        ("tag>logs", "tag is text"),
        ('"how long', "the quote is not closed"),
        ('category="x', "the quote is not closed"),
        ("=5", "a name must stand before the sign"),
    ],
)
def test_a_wrong_filter_says_what_is_wrong(table: AnswerTable, text: str, said: str) -> None:
    with pytest.raises(QueryError) as error:
        parse(text, table.metrics)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_value_that_no_case_has_gets_a_hint(table: AnswerTable) -> None:
    query = parse("category=facts", table.metrics)
    assert query.select(table, range(table.count)) == []
    assert query.hint(table) == "category is one of: factual, general, recency/conflict"
    assert parse("tag=log", table.metrics).hint(table) == "tag is one of: logs, tenants, time"
    assert parse("category=factual", table.metrics).hint(table) == ""


@each_row(
    ("text", "lines"),
    [
        ("cat", ["category="]),
        ("failing -t", ["failing -tag=", "failing -tag=tenants", "failing -tag=time"]),
        ("failing lo", ["failing tag=logs"]),
        ("rec", ["recall@5", "category=recency/conflict"]),
        ("category=f", ["category=factual"]),
        ("failing tag=", ["failing tag=logs", "failing tag=tenants", "failing tag=time"]),
        ('"how long" reason=no', ['"how long" reason="no gold"']),
        ('reason="no g', ['reason="no gold"']),
        ("category=zzz", []),
        ("nonsense=", []),
    ],
)
def test_what_a_filter_could_become(table: AnswerTable, text: str, lines: list[str]) -> None:
    offered = [
        line for line, _ in completions(text, table, table.metrics, Failing().reasons(table))
    ]
    assert sorted(offered) == sorted(lines)


def test_values_are_offered_by_their_number_of_cases(table: AnswerTable) -> None:
    """a and b are factual, c is recency/conflict; a and c have the tag logs."""
    assert completions("category=", table, table.metrics)[0] == ("category=factual", "factual 2")
    assert completions("tag=l", table, table.metrics) == [("tag=logs", "logs 2")]
    assert completions("t", table, table.metrics)[0][0] == "tag=", "columns before values"


@given(st.text(max_size=30))
def test_a_completed_filter_begins_as_it_was_typed(text: str) -> None:
    for line, _ in completions(text, AnswerTable(), ("recall@5",)):
        assert line[:1] == text[:1] or not text.strip()


def test_needs_are_the_metrics_and_no_plain_numbers(table: AnswerTable) -> None:
    query = parse("mrr>0 recall@5=none latency>3 mrr<1 word", table.metrics)
    assert query.needs == ["mrr", "recall@5"]


NAMES = st.sampled_from([*KEYWORDS, *WORDS, *SETS, *PLAIN, "id", "recall@5", "mrr", "nothing"])
PIECES = st.one_of(
    NAMES,
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", '"', "-", " ", "  ", "none", "0.5", "1e999"]),
    st.text(max_size=6),
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_text_is_a_filter_or_a_sentence(text: str) -> None:
    """Never another exception; what is selected are rows of the table, in order, each once."""
    made = _small_table()
    try:
        query = parse(text, made.metrics)
    except QueryError:
        return
    rows = query.select(made, range(made.count), Failing().reasons(made))
    assert list(rows) == sorted(set(rows))
    assert set(rows) <= set(range(made.count))
    assert parse(query.text, made.metrics).terms == query.terms, (
        "what is shown again means the same"
    )


@given(st.lists(NAMES.map(lambda name: f"{name}=x") | NAMES, max_size=4).map(" ".join))
def test_a_term_and_its_opposite_share_no_row_and_miss_none(text: str) -> None:
    made = _small_table()
    try:
        query = parse(text, made.metrics)
    except QueryError:
        return
    for term in query.terms:
        one = f"{term.name}{term.op}{term.text}" if term.kind in ("words", "set") else term.name
        chosen = parse(one, made.metrics).select(made, range(made.count), Failing().reasons(made))
        rest = parse(f"-{one}", made.metrics).select(
            made, range(made.count), Failing().reasons(made)
        )
        assert sorted([*chosen, *rest]) == list(range(made.count))


def _small_table() -> AnswerTable:
    answers = [
        answer(case_id, question=f"question {case_id}", latency=float(number))
        for number, case_id in enumerate("xyz")
    ]
    return table_of(answers, {"retrieval": {"recall@5": (), "mrr": (None, 0.5)}})


def test_every_rule_names_a_metric_of_the_catalogue() -> None:
    from ragmetrics import catalogue

    for rule in RULES:
        for metric in rule.metrics:
            section, _, name = metric.partition(".")
            assert catalogue.find(name, catalogue.SECTIONS[section].metrics).name == name

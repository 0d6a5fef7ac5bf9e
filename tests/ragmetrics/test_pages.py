"""Gold that names a page: quote first, else the page; a page that is not reported stays open."""

from __future__ import annotations

from typing import Any

from tests.rows import each_row

from clients.mapping import PlaceForm
from ragmetrics.gold import gold_names, gold_of, match_chunks, unusable
from records.cases import GoldSupport, TestCase
from records.results import RetrievedChunk


def chunk(page: Any, text: str = "Loans take four weeks.") -> RetrievedChunk:
    place: dict[str, Any] = {} if page is None else {"page": page}
    return RetrievedChunk(chunk_id="c", rel_path="rules.pdf", text=text, **place)


def case(**support: Any) -> TestCase:
    return TestCase("a", "q", gold_supports=[GoldSupport("rules.pdf", **support)])


def matches(asked: TestCase, *chunks: RetrievedChunk) -> Any:
    gold = gold_of(asked, "auto")
    assert gold is not None
    return match_chunks(gold, chunks), unusable(gold, chunks)


def test_without_a_quote_a_passage_of_the_page_is_gold() -> None:
    asked = case(page=12)
    found, fault = matches(asked, chunk(11), chunk("12"), chunk(12, "Other text."))
    assert (found.first, found.hits, fault) == ([2], [2, 3], "")
    assert gold_names(asked, "anchor") == ["rules.pdf, page 12"]


def test_with_a_quote_the_quote_decides_wherever_the_page_breaks() -> None:
    found, _ = matches(
        case(page=12, snippets=["Loans take four weeks"]), chunk(11), chunk(12, "Other text.")
    )
    assert found.hits == [1]


def test_a_heading_decides_alone() -> None:
    found, _ = matches(case(page=12, heading_path="Loans"), chunk(12))
    assert found.hits == []


def test_a_bot_without_pages_cannot_be_scored_by_page() -> None:
    found, fault = matches(case(page=12), chunk(None))
    assert fault == "no page in the result"
    found, fault = matches(case(page=12), chunk(None), chunk(3))
    assert (found.first, found.open, fault) == ([None], True, "")


@each_row(("base", "page", "sheet"), [(0, 11, 12), (0, "11", 12), (1, 11, 11), (0, "xi", "xi")])
def test_pages_that_a_bot_counts_from_0_are_read_as_sheets(
    base: int, page: object, sheet: object
) -> None:
    assert PlaceForm(page_base=base).applied({"page": page}) == {"page": sheet}

"""Passages without a heading: each is a support of its own, known by words that it alone has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from labeller.case_state import CaseState
from labeller.fetching import _chunks_of
from labeller.marks import toggle
from labeller.passages import Chunk, _verdict, locate
from labeller.rows import arranged, view_of
from labeller.supports import from_chunk
from ragmetrics.gold import gold_names, gold_of, match_chunks
from records.cases import case_from_dict
from records.results import RetrievedChunk, TestResult

HEADER = "Handbook of the rental shop, June edition"


def page(number: int, text: str) -> Chunk:
    return Chunk("book.pdf", "", f"{HEADER}\n{text}\nPage {number}", chunk_id=f"c{number}")


POOL = [
    page(1, "Tents are rented by the day. A deposit of 50 euros is paid at the counter."),
    page(2, "Whoever comes late pays a fee of 10 euros. Lost pegs cost 2 euros each."),
    page(3, "We are open daily. Dogs may come in.\nTents are rented by the day."),
    page(4, "We are open daily."),
]

CASE = {"id": "a", "question": "What does it cost to be late, and what is left at the counter?"}

FACTS = {"expected_key_facts": ["a deposit of 50 euros", "a late fee of 10 euros"]}


def marked(case: dict[str, Any], *numbers: int) -> CaseState:
    """The state after a mark on each of these pages, one after another."""
    state = CaseState(case, {})
    for number in numbers:
        labelled = arranged(POOL, "rank", ())
        rows = view_of(state, labelled, seen=(), blind=False).rows
        state = toggle(state, rows[number - 1]).state
    return state


def test_two_passages_of_one_file_are_two_supports() -> None:
    supports = marked(CASE | FACTS, 1, 2).case["gold_supports"]
    assert [support["heading_path"] for support in supports] == ["", ""]
    # Each the sentence that carries a fact, and never the line that all four begin with.
    assert [support["snippets"] for support in supports] == [
        ["A deposit of 50 euros is paid at the counter."],
        ["Whoever comes late pays a fee of 10 euros."],
    ]
    assert [locate(support, POOL)[0] for support in supports] == [[0], [1]]


def test_a_mark_goes_without_the_other() -> None:
    (support,) = marked(CASE | FACTS, 1, 2, 1).case["gold_supports"]
    assert support["snippets"] == ["Whoever comes late pays a fee of 10 euros."]


def test_one_of_two_passages_is_not_all_that_a_question_needs() -> None:
    case, _ = case_from_dict(marked(CASE | FACTS, 1, 2).case)
    assert case is not None
    gold = gold_of(case, "auto")
    assert gold is not None
    chunks = [RetrievedChunk(c.chunk_id, rel_path=c.rel_path, text=c.text) for c in POOL]
    assert match_chunks(gold, chunks).first == [1, 2]
    assert match_chunks(gold, [chunks[3], chunks[1], chunks[2]]).first == [None, 2]


def test_without_a_carrying_sentence_the_longest_that_no_other_passage_has() -> None:
    """Page 3: its longest sentence stands on page 1, too; "We are open daily." on page 4."""
    (support,) = marked({"id": "a", "question": "?"}, 3).case["gold_supports"]
    assert support["snippets"] == ["Dogs may come in."]
    assert support["quote"]["exact"] == "Dogs may come in."


def test_the_page_of_a_passage_is_stored_and_is_no_place() -> None:
    """The support is found by its quote, whatever page a later index tells."""
    chunk = RetrievedChunk("c", rel_path="book.pdf", text="Lost pegs cost 2 euros.", page=0)
    (shown,) = _chunks_of(TestResult("a", retrieved=[chunk]))
    support = from_chunk(shown, CASE, frozenset()).data
    assert support["page"] == "0"
    assert _verdict(support, replace(shown, page="9"))
    case, problems = case_from_dict(CASE | {"gold_supports": [support]})
    assert case is not None
    assert not problems
    assert gold_names(case, "page") == ["book.pdf, page 0"]
    (unknown,) = _chunks_of(TestResult("a", retrieved=[RetrievedChunk("c", rel_path="book.pdf")]))
    assert "page" not in from_chunk(unknown, CASE, frozenset()).data

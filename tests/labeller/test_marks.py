"""Marks and edits as pure functions: the state that goes in stays as it was."""

from __future__ import annotations

import copy

import pytest

from labeller import edits, marks
from labeller.case_state import CaseState
from labeller.passages import Chunk
from labeller.rows import ChunkPool, ChunkRow, arranged, view_of
from terminal.actions import ActionRefused

CASE = {"id": "a", "question": "How long?", "expected_key_facts": ["kept for 30 days"]}


def rows_of(state: CaseState, chunks: tuple[Chunk, ...]) -> list[ChunkRow]:
    labelled = arranged(chunks, "rank", ())
    return view_of(state, labelled, seen=(), blind=True).rows


def test_a_mark_is_a_new_state_and_a_second_toggle_takes_it_back(
    chunks: tuple[Chunk, ...],
) -> None:
    state = CaseState(copy.deepcopy(CASE), {})
    marked = marks.toggle(state, rows_of(state, chunks)[2]).state
    assert state == CaseState(CASE, {})
    assert marked.case["answerable"] is True
    assert marked.case["gold_supports"][0]["rel_path"] == "guide/roles.md"
    row = rows_of(marked, chunks)[2]
    assert (row.marked, row.supports) == (True, (0,))
    unmarked = marks.toggle(marked, row).state
    assert unmarked.case["gold_supports"] == []
    assert unmarked.judgement == {"confirmed": False, "decision": None}


def test_a_row_that_is_not_marked_has_nothing_to_reanchor(chunks: tuple[Chunk, ...]) -> None:
    state = CaseState(CASE, {})
    with pytest.raises(ActionRefused, match=r"Row 1 is not marked\."):
        marks.reanchor(state, rows_of(state, chunks)[0])


def test_a_grade_below_one_is_no_mark(chunks: tuple[Chunk, ...]) -> None:
    state = CaseState(CASE, {})
    row = rows_of(state, chunks)[0]
    assert marks.grade_step(state, row, 1).state.case["gold_supports"][0]["grade"] == 1
    with pytest.raises(ActionRefused, match=r"Row 1 is not marked\."):
        marks.grade_step(state, row, -1)
    best = marks.grade(state, row, 3).state
    assert marks.grade_step(best, rows_of(best, chunks)[0], 1).state == best


def test_a_confirmed_draft_loses_its_tag_where_drafts_are_accepted() -> None:
    state = CaseState({**CASE, "tags": ["draft", "x"], "answerable": False}, {})
    _, done, message, _ = edits.confirm(state, [], by="gold")
    assert done.case["tags"] == ["x"]
    assert done.judgement == {"decision": "unanswerable", "confirmed": True, "by": "gold"}
    assert message == "Saved as unanswerable. The draft is accepted."
    unchanged = edits.confirm(state, [], accepts=False, by="maria").state
    assert unchanged.case["tags"] == ["draft", "x"]


def test_an_id_is_a_slug_of_the_question() -> None:
    """The first content words up to five; a taken one gets a number, other scripts stay."""
    question = "How long are audit events kept on the Free plan?"
    assert edits.slug_id(question, ()) == "long-audit-events-kept-free"
    assert (
        edits.slug_id(question, {"long-audit-events-kept-free"}) == "long-audit-events-kept-free-2"
    )
    assert edits.slug_id("Was heißt Gewährleistung?", ()) == "heisst-gewahrleistung"
    assert edits.slug_id("What is this?", ()) == "what-is-this"
    assert edits.slug_id("?!", {"question"}) == "question-2"
    assert len(edits.slug_id("x" * 500, ())) == 40


def test_probed_rows_come_after_those_of_the_question(chunks: tuple[Chunk, ...]) -> None:
    pool = ChunkPool()
    pool.put("a", chunks[:2])
    assert pool.add("a", [chunks[0], chunks[3]], "upgrade") == 1, "one is there already"
    labels = [(label, chunk.chunk_id) for label, chunk in arranged(pool.chunks("a"), "rank", ())]
    assert labels == [("1", "c1"), ("2", "c2"), ("+1", "c4")]
    pool.forget("a")
    assert "a" not in pool
    pool.put("a", chunks[:1])
    assert [chunk.origin for chunk in pool.chunks("a")] == ["", "upgrade"], "probed ones stay"

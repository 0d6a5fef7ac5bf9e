"""Decisions and confirming them; progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.rows import each_row

from labeller import edits, marks
from labeller.lines import question_row, state_text
from labeller.passages import Chunk
from labeller.rows import ChunkPool
from labeller.session import Session
from terminal.actions import ActionRefused

KEPT, OWNER = 2, 4


def refuse(session: Session, why: str) -> None:
    with pytest.raises(ActionRefused, match=why):
        session.confirm()


def test_the_common_case_is_a_mark_and_enter(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    assert session.confirm() == "Saved as answerable. 4 of 5 passages were never shown."
    assert session.current == "q-0002"
    assert session.queue.summaries["q-0001"].status == "labelled"


def test_what_was_judged_is_kept_apart_from_what_was_not_seen(session: Session) -> None:
    session.see(1)
    session.see(KEPT)
    session.on_row(KEPT, marks.toggle)
    session.on_row(OWNER, marks.grade, 3)
    session.confirm()
    session.queue.goto("q-0001")
    judgement = session.judgement
    assert [row["grade"] for row in judgement["rows"]] == [0, 2, None, 3, None]
    assert judgement["blind"] is True
    assert judgement["decision"] == "answerable"
    assert judgement["at"].startswith("2023-11-14T")


def test_what_an_earlier_session_searched_for_stays_judged(
    session: Session, chunks: tuple[Chunk, ...]
) -> None:
    """A search is not repeated after a restart: what was read of its rows is not lost by Enter."""
    for number, text in enumerate(("read", "marked", "not read"), 6):
        session.pool.add("q-0001", [Chunk(f"{text}.md", "", text)], "other words")
        if text != "not read":
            session.see(number)
    session.on_row(7, marks.toggle)
    session.confirm()
    session.pool = ChunkPool()
    session.pool.put("q-0001", chunks)
    session.queue.goto("q-0001")
    assert "5 of 5 passages were never shown" in session.confirm()
    session.queue.goto("q-0001")
    rows = session.judgement["rows"]
    assert len(rows) == 5 + 2, "the mark is a support, and said there"
    expected = [("read.md", 0), ("not read.md", None)]
    assert [(row["rel_path"], row["grade"]) for row in rows[5:]] == expected


def test_enter_without_a_decision_says_what_is_missing(session: Session) -> None:
    for _ in range(2):
        refuse(session, "Nothing is decided")
    assert session.queue.summaries["q-0001"].status == "open"


def test_answerable_without_a_mark_needs_a_second_enter(session: Session) -> None:
    session.do(edits.answerable)
    refuse(session, "No row is marked")
    session.confirm()
    session.queue.goto("q-0001")
    assert session.judgement["support_not_found"] is True
    assert session.case["answerable"] is True


def test_the_warning_starts_again_after_a_change(session: Session) -> None:
    session.do(edits.answerable)
    refuse(session, "No row is marked")
    session.do(edits.flag)
    refuse(session, "No row is marked")  # something happened between the two


def test_unanswerable_clears_marks_and_undo_brings_them_back(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.do(edits.unanswerable)
    assert session.case["answerable"] is False
    assert session.case["gold_supports"] == []
    session.undo()
    assert len(session.case["gold_supports"]) == 1
    session.redo()
    session.confirm()
    assert session.queue.summaries["q-0001"].status == "unanswerable"


def test_a_mark_makes_an_unanswerable_case_answerable_again(session: Session) -> None:
    session.do(edits.unanswerable)
    session.on_row(KEPT, marks.toggle)
    assert session.case["answerable"] is True
    session.confirm()
    assert session.queue.summaries["q-0001"].status == "labelled"


def test_skipped_cases_come_back_when_none_is_open(session: Session) -> None:
    session.skip()
    assert session.current == "q-0002"
    for _ in range(2):
        session.do(edits.unanswerable)
        session.confirm()
    assert session.current == "q-0001"
    assert session.queue.progress().counts["skipped"] == 1
    session.do(edits.unanswerable)
    session.confirm()
    assert session.current == "q-0001", "there is no other"
    assert session.queue.progress().done == 3
    with pytest.raises(ActionRefused, match="No other case"):
        session.queue.next_open()


def test_cannot_tell_needs_a_reason(session: Session) -> None:
    with pytest.raises(ActionRefused, match="reason"):
        session.do(edits.cannot_tell, "  ")
    session.do(edits.cannot_tell, "two plans are called free")
    session.confirm()
    assert session.queue.summaries["q-0001"].status == "cannot_tell"
    session.queue.goto("q-0001")
    session.do(edits.cannot_tell, "")
    assert "reason" not in session.judgement
    assert session.queue.summaries["q-0001"].status == "open"


def test_flag_and_note(session: Session) -> None:
    session.do(edits.flag)
    assert session.queue.summaries["q-0001"].flagged
    session.do(edits.note, " ask legal ")
    assert session.judgement["note"] == "ask legal"
    session.do(edits.note, "")
    session.do(edits.flag)
    assert session.judgement == {}


def test_labels_that_were_in_the_set_count(clock: Callable[[], float]) -> None:
    cases: dict[str, dict[str, Any]] = {
        "a": {"id": "a", "question": "?", "gold_supports": [{"rel_path": "x.md"}]},
        "b": {"id": "b", "question": "?", "answerable": False},
        "c": {"id": "c", "question": "?", "answerable": True, "gold_supports": []},
    }
    session = Session(cases, {}, record=lambda event: None, now=clock)
    expected = ["labelled", "unanswerable", "open"]
    assert [brief.status for brief in session.queue.summaries.values()] == expected
    assert session.current == "c"


def test_a_decision_that_is_unknown_here_is_shown_as_it_stands(clock: Callable[[], float]) -> None:
    judgements = {"a": {"decision": "doubtful", "confirmed": True}}
    case = {"id": "a", "question": "?"}
    session = Session({"a": case}, judgements, record=lambda event: None, now=clock)
    assert state_text(session)[0].startswith("doubtful")
    # The id has four cells at least; then a blank, no sign, no flag, a blank.
    assert question_row(session.summary, 20, 1, sign=">")[0][1] == ">a   " + " " * 4


def test_progress_has_pace_and_time_left(session: Session) -> None:
    assert session.queue.progress().seconds_each is None
    session.do(edits.unanswerable)
    session.confirm()
    progress = session.queue.progress()
    assert progress.seconds_each is not None
    assert progress.seconds_left == 2 * progress.seconds_each


@each_row(
    "act",
    [
        lambda session: session.do(edits.unanswerable),
        lambda session: session.do(edits.answerable),
        lambda session: session.on_row(KEPT, marks.toggle),
    ],
)
def test_what_was_taken_back_leaves_no_answer_in_the_set(
    cases: dict[str, Any], chunks: tuple[Chunk, ...], act: Callable[[Session], None]
) -> None:
    session = Session(cases, {}, record=lambda event: None, now=lambda: 0.0)
    session.pool.put(session.current, chunks)
    act(session)
    act(session)
    assert session.case.get("answerable") is None
    assert session.queue.summaries["q-0001"].status == "open"
    refuse(session, "Nothing is decided")

"""Decisions and confirming them, of drafts too; progress, and a set in counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.labeller.conftest import snapshot
from tests.rows import each_row

from labeller import edits, marks
from labeller.jobs import statistics_of
from labeller.lines import question_row, state_text
from labeller.passages import Chunk
from labeller.rows import ChunkPool
from labeller.session import Session
from labeller.worklist import is_draft, status_of
from terminal.actions import ActionRefused

KEPT, OWNER = 2, 4


def refuse(session: Session, why: str) -> None:
    with pytest.raises(ActionRefused, match=why):
        session.confirm()


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


Record = dict[str, Any]


def test_statistics() -> None:
    cases: dict[str, Record] = {
        "a": {
            "id": "a",
            "question": "?",
            "category": "factual",
            "gold_supports": [{"rel_path": "x", "snippets": ["s"]}, {"rel_path": "y"}],
            "required_support_groups": [[0], [1]],
            "expected_key_facts": ["f"],
        },
        "b": {"id": "b", "question": "?", "category": "factual", "answerable": False},
        "c": {"id": "c", "question": "?"},
        "d": {"id": "d", "question": "?", "gold_supports": [{"rel_path": "x"}]},
    }
    found = statistics_of(cases, {"c": {"decision": "skipped", "flag": True}})
    assert found["cases"] == 4
    expected = {"open": 0, "labelled": 2, "unanswerable": 1, "skipped": 1, "cannot_tell": 0}
    assert found["status"] == expected
    assert found["flagged"] == 1
    assert found["by_category"]["factual"]["cases"] == 2
    assert found["by_category"]["(none)"]["skipped"] == 1
    supports = {"total": 3, "per_labelled_case": 1.5, "most": 2, "labelled_without": 0}
    assert found["supports"] == supports
    assert (found["with_groups"], found["with_snippets"]) == (1, 1)
    assert found["with_expected_key_facts"] == 1


SUPPORT = {"rel_path": "guide/retention.md", "heading_path": "Plans > Free"}


@pytest.fixture
def drafts() -> dict[str, Record]:
    made = {"answerable": True, "gold_supports": [SUPPORT], "drafted_by": "rules"}
    return {
        "d1": {"id": "d1", "question": "One?", **made, "tags": ["audit", "draft"]},
        "d2": {"id": "d2", "question": "Two?", **made, "tags": ["draft"]},
        "done": {"id": "done", "question": "Three?", **made, "tags": []},
    }


def test_a_draft_is_open_though_it_has_labels(drafts: dict[str, Record]) -> None:
    assert [status_of(case, {}) for case in drafts.values()] == ["open", "open", "labelled"]
    assert status_of(drafts["d1"], {"decision": "skipped"}) == "skipped"
    assert not is_draft({"tags": None})


def test_enter_accepts_a_draft_and_goes_to_the_next(
    drafts: dict[str, Record], clock: Callable[[], float]
) -> None:
    events: list[Record] = []
    session = Session(drafts, {}, record=events.append, now=clock)
    session.queue.set_filter("tag:draft")
    assert " DRAFT " in state_text(session)[0]
    assert session.confirm() == "Saved as answerable. The draft is accepted."
    assert session.current == "d2"
    accepted = session.ledger.case_of("d1")
    assert accepted == {**drafts["d1"], "tags": ["audit"]}
    assert list(accepted) == list(drafts["d1"])
    assert session.queue.summaries["d1"].status == "labelled"
    assert len(events) == 1
    session.undo()
    assert session.ledger.case_of("d1") == drafts["d1"]
    assert session.queue.summaries["d1"].status == "open"


def test_a_draft_can_be_put_off_or_called_unanswerable(
    drafts: dict[str, Record], clock: Callable[[], float]
) -> None:
    session = Session(drafts, {}, record=lambda event: None, now=clock)
    session.skip()
    assert is_draft(session.ledger.case_of("d1"))
    assert session.current == "d2"
    session.do(edits.unanswerable)
    session.confirm()
    assert session.ledger.case_of("d2")["answerable"] is False
    assert session.ledger.case_of("d2")["tags"] == []


def test_a_session_that_only_labels_accepts_no_draft(
    drafts: dict[str, Record], clock: Callable[[], float]
) -> None:
    bare = {k: v for k, v in drafts["d1"].items() if k not in ("answerable", "gold_supports")}
    session = Session({"d1": bare}, {}, record=lambda event: None, now=clock, fixed="Only labels.")
    session.do(edits.unanswerable)
    session.confirm()
    assert session.ledger.case_of("d1")["tags"] == ["audit", "draft"]


def mark(session: Session, *rows: int) -> None:
    """Toggle rows in one step."""
    with session.ledger.one_step():
        for row in rows:
            session.on_row(row, marks.toggle)


def test_one_step_is_all_or_nothing(session: Session, events: list[Record]) -> None:
    before = snapshot(session)
    with session.ledger.one_step():
        session.on_row(1, marks.toggle)
        session.on_row(3, marks.group, 2)
        session.on_row(3, marks.grade, 1)
    (event,) = events
    assert len(session.supports()) == 2
    with pytest.raises(ActionRefused):
        mark(session, 4, 99)
    assert len(events) == 1
    assert len(session.supports()) == 2
    mark(session, 5, 5)  # marked and unmarked: no step
    assert len(events) == 1
    assert event["before"]["case"].get("gold_supports") is None
    session.undo()
    assert snapshot(session) == before
    assert not session.ledger.history.done
    session.redo()
    assert len(session.supports()) == 2

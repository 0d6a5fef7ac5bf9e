"""Drafted cases: open until somebody accepts them, in one step that can be undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.labeller.conftest import snapshot

from labeller import edits, marks
from labeller.lines import state_text
from labeller.session import Session
from labeller.worklist import is_draft, status_of
from terminal.actions import ActionRefused

Record = dict[str, Any]
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

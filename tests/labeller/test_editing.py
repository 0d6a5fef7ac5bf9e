"""Editing, adding, copying and deleting cases."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from labeller import edits, marks
from labeller.session import Session
from terminal.actions import ActionRefused

KEPT, OWNER = 2, 4


def test_edit_keeps_places_and_appends_new_fields(session: Session) -> None:
    session.revise(
        edits.edit, {"question": " New? ", "forbidden_claims": ["a", " ", "b "], "difficulty": ""}
    )
    assert list(session.case)[:2] == ["id", "question"]
    assert session.case["question"] == "New?"
    assert session.case["forbidden_claims"] == ["a", "b"]
    assert "difficulty" not in session.case
    with pytest.raises(ActionRefused, match="not in the form"):
        session.revise(edits.edit, {"gold_supports": []})


def test_the_record_as_text(session: Session) -> None:
    text = edits.as_text(session.case)
    assert json.loads(text) == session.case
    for bad in (text[:-5], "[" * 100_000):
        with pytest.raises(ActionRefused, match="not JSON"):
            session.revise(edits.edit_text, bad)
    with pytest.raises(ActionRefused, match="ids never change"):
        session.revise(edits.edit_text, text.replace("q-0001", "q-0009"))
    with pytest.raises(ActionRefused, match="one JSON object"):
        session.revise(edits.edit_text, "[]")
    session.revise(edits.edit_text, text.replace("audit", "other"))
    assert session.case["tags"] == ["other"]


def test_a_bad_record_is_refused(
    cases: dict[str, Any], clock: Callable[[], float], events: list[Any]
) -> None:
    def validate(case: dict[str, Any]) -> list[str]:
        return [] if case["question"].strip() else ["question: is empty; write some text"]

    session = Session(cases, {}, record=events.append, now=clock, validate=validate)
    with pytest.raises(ActionRefused, match="question: is empty"):
        session.revise(edits.edit, {"question": " "})
    with pytest.raises(ActionRefused, match="question: is empty"):
        session.add_case(" ")
    assert events == []
    assert session.case["question"]


def test_ids_are_never_given_twice(session: Session) -> None:
    session.add_case("What is new?")
    assert session.current == "what-is-new"
    session.delete_case()
    session.add_case("What is new?")
    assert session.current == "what-is-new-2"
    with pytest.raises(ActionRefused, match="what-is-new is the id of another case, or was"):
        session.add_case("Another?", id="what-is-new")
    session.add_case("Another?", id="mine")
    assert session.current == "mine"


def test_an_id_is_a_slug_of_the_question() -> None:
    """The first content words up to five; a taken one gets a number, other scripts stay."""
    question, slug = (
        "How long are audit events kept on the Free plan?",
        "long-audit-events-kept-free",
    )
    assert edits.slug_id(question, ()) == slug
    assert edits.slug_id(question, {slug}) == f"{slug}-2"
    assert edits.slug_id("Was heißt Gewährleistung?", ()) == "heisst-gewahrleistung"
    assert edits.slug_id("What is this?", ()) == "what-is-this"
    assert edits.slug_id("?!", {"question"}) == "question-2"
    assert len(edits.slug_id("x" * 500, ())) == 40


def test_a_new_case_stands_behind_the_current_one(session: Session) -> None:
    fields = {"question": "What is new?", "category": "factual", "tags": ["x"]}
    session.add_case(**fields)  # type: ignore[arg-type]
    assert session.queue.visible == ["q-0001", "what-is-new", "q-0002", "q-0003"]
    assert session.case == {"id": "what-is-new"} | fields


def test_a_near_duplicate_is_pointed_out(session: Session) -> None:
    said = session.add_case("How long are audit events kept on the free plan, part 2?")
    assert "q-0002 asks nearly the same" in said


def test_a_copy_has_no_labels(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.revise(edits.expect_none)
    session.duplicate_case()
    assert session.current == "long-audit-events-kept-free"
    assert not {"gold_supports", "answerable", "expected_tools"} & session.case.keys()
    assert session.case["x_owner"] == {"team": 1}


def test_the_last_case_can_be_deleted(clock: Callable[[], float]) -> None:
    session = Session({"a": {"id": "a", "question": "?"}}, {}, record=lambda e: None, now=clock)
    session.delete_case()
    assert session.current == ""
    assert session.rows() == []
    with pytest.raises(ActionRefused, match="no case"):
        session.on_row(1, marks.toggle)
    with pytest.raises(ActionRefused, match="no case"):
        session.do(edits.flag)
    session.undo()
    assert session.current == "a"

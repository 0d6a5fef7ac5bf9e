"""Decisions, confirming, editing, moving about, blind mode, adjudication."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from labeller.model import Chunk, Refused, Session

KEPT, OWNER = 2, 4


def test_the_common_case_is_a_mark_and_enter(session: Session) -> None:
    session.toggle(KEPT)
    done = session.confirm()
    assert done.done
    assert done.next == session.current == "q-0002"
    assert session.brief("q-0001").status == "labelled"


def test_what_was_judged_is_kept_apart_from_what_was_not_seen(session: Session) -> None:
    session.see(1)
    session.see(KEPT)
    session.toggle(KEPT)
    session.grade(OWNER, 3)
    session.confirm()
    session.goto("q-0001")
    judgement = session.judgement
    assert [row["grade"] for row in judgement["rows"]] == [0, 2, None, 3, None]
    assert judgement["blind"] is True
    assert judgement["decision"] == "answerable"
    assert judgement["at"].startswith("2023-11-14T")


def test_enter_without_a_decision_says_what_is_missing(session: Session) -> None:
    first = session.confirm()
    assert not first.done
    assert "Nothing is decided" in first.message
    with pytest.raises(Refused):
        session.confirm()
    assert session.brief("q-0001").status == "open"


def test_answerable_without_a_mark_needs_a_second_enter(session: Session) -> None:
    session.answerable()
    assert not session.confirm().done
    assert session.confirm().done
    session.goto("q-0001")
    assert session.judgement["support_not_found"] is True
    assert session.case["answerable"] is True


def test_the_warning_starts_again_after_a_change(session: Session) -> None:
    session.answerable()
    assert not session.confirm().done
    session.flag()
    assert not session.confirm().done, "something happened between the two"


def test_unanswerable_clears_marks_and_undo_brings_them_back(session: Session) -> None:
    session.toggle(KEPT)
    session.unanswerable()
    assert session.case["answerable"] is False
    assert session.case["gold_supports"] == []
    session.undo()
    assert len(session.case["gold_supports"]) == 1
    session.redo()
    session.confirm()
    assert session.brief("q-0001").status == "unanswerable"


def test_a_mark_makes_an_unanswerable_case_answerable_again(session: Session) -> None:
    session.unanswerable()
    session.toggle(KEPT)
    assert session.case["answerable"] is True
    session.confirm()
    assert session.brief("q-0001").status == "labelled"


def test_skipped_cases_come_back_when_none_is_open(session: Session) -> None:
    session.skip()
    assert session.current == "q-0002"
    for _ in range(2):
        session.unanswerable()
        session.confirm()
    assert session.current == "q-0001"
    assert session.progress().skipped == 1
    session.unanswerable()
    assert session.confirm().next is None
    assert session.progress().done == 3
    with pytest.raises(Refused, match="No other case"):
        session.next_open()


def test_cannot_tell_needs_a_reason(session: Session) -> None:
    with pytest.raises(Refused, match="reason"):
        session.cannot_tell("  ")
    session.cannot_tell("two plans are called free")
    session.confirm()
    assert session.brief("q-0001").status == "cannot_tell"
    session.goto("q-0001")
    session.cannot_tell("")
    assert "reason" not in session.judgement
    assert session.brief("q-0001").status == "open"


def test_flag_and_note(session: Session) -> None:
    session.flag()
    assert session.brief("q-0001").flagged
    session.note(" ask legal ")
    assert session.judgement["note"] == "ask legal"
    session.note("")
    session.flag()
    assert session.judgement == {}


def test_labels_that_were_in_the_set_count(clock: Callable[[], float]) -> None:
    cases = {
        "a": {"id": "a", "question": "?", "gold_supports": [{"rel_path": "x.md"}]},
        "b": {"id": "b", "question": "?", "answerable": False},
        "c": {"id": "c", "question": "?", "answerable": True, "gold_supports": []},
    }
    session = Session(cases, {}, record=lambda event: None, now=clock)
    assert [brief.status for brief in session.briefs()] == ["labelled", "unanswerable", "open"]
    assert session.current == "c"


def test_progress_has_pace_and_time_left(session: Session) -> None:
    assert session.progress().seconds_each is None
    session.unanswerable()
    session.confirm()
    progress = session.progress()
    assert progress.seconds_each is not None
    assert progress.seconds_left == 2 * progress.seconds_each


def test_edit_keeps_places_and_appends_new_fields(session: Session) -> None:
    session.edit({"question": " New? ", "forbidden_claims": ["a", " ", "b "], "difficulty": ""})
    assert list(session.case)[:2] == ["id", "question"]
    assert session.case["question"] == "New?"
    assert session.case["forbidden_claims"] == ["a", "b"]
    assert "difficulty" not in session.case
    with pytest.raises(Refused, match="not in the form"):
        session.edit({"gold_supports": []})


def test_the_record_as_text(session: Session) -> None:
    text = session.record_text()
    assert json.loads(text) == session.case
    with pytest.raises(Refused, match="no JSON"):
        session.edit_text(text[:-5])
    with pytest.raises(Refused, match="ids are given once"):
        session.edit_text(text.replace("q-0001", "q-0009"))
    with pytest.raises(Refused, match="one JSON object"):
        session.edit_text("[]")
    session.edit_text(text.replace("audit", "other"))
    assert session.case["tags"] == ["other"]


def test_a_bad_record_is_refused(
    cases: dict[str, Any], clock: Callable[[], float], events: list[Any]
) -> None:
    def validate(case: dict[str, Any]) -> list[str]:
        return [] if case["question"].strip() else ["question: is empty; write some text"]

    session = Session(cases, {}, record=events.append, now=clock, validate=validate)
    with pytest.raises(Refused, match="question: is empty"):
        session.edit({"question": " "})
    with pytest.raises(Refused, match="question: is empty"):
        session.add_case(" ")
    assert events == []
    assert session.case["question"]


def test_ids_are_never_given_twice(session: Session) -> None:
    session.add_case("What is new?")
    assert session.current == "q-0004"
    session.delete_case()
    session.add_case("And now?")
    assert session.current == "q-0005"


def test_a_new_case_stands_behind_the_current_one(session: Session) -> None:
    session.add_case("What is new?", category="factual", tags=["x"])
    assert [b.id for b in session.briefs()] == ["q-0001", "q-0004", "q-0002", "q-0003"]
    assert session.case == {
        "id": "q-0004",
        "question": "What is new?",
        "category": "factual",
        "tags": ["x"],
    }


def test_a_near_duplicate_is_pointed_out(session: Session) -> None:
    said = session.add_case("How long are audit events kept on the free plan, part 2?")
    assert "q-0002 asks nearly the same" in said


def test_a_copy_has_no_labels(session: Session) -> None:
    session.toggle(KEPT)
    session.duplicate_case()
    assert session.current == "q-0004"
    assert "gold_supports" not in session.case
    assert "answerable" not in session.case
    assert session.case["x_owner"] == {"team": 1}


def test_deleting_and_undoing(session: Session) -> None:
    session.goto("q-0002")
    session.toggle(KEPT)
    case = session.case
    session.delete_case()
    assert not session.knows("q-0002")
    assert session.place[1] == 2
    session.undo()
    assert session.current == "q-0002"
    assert session.case == case
    assert [b.id for b in session.briefs()] == ["q-0001", "q-0002", "q-0003"]


def test_the_last_case_can_be_deleted(clock: Callable[[], float]) -> None:
    session = Session({"a": {"id": "a", "question": "?"}}, {}, record=lambda e: None, now=clock)
    session.delete_case()
    assert session.current == ""
    assert session.rows() == []
    with pytest.raises(Refused, match="no case"):
        session.toggle(1)
    with pytest.raises(Refused, match="no case"):
        session.flag()
    session.undo()
    assert session.current == "a"


def test_blind_mode_hides_rank_and_scores_and_is_journalled(
    session: Session, events: list[dict[str, Any]]
) -> None:
    assert all(row.rank is None and row.score_final is None for row in session.rows())
    with pytest.raises(Refused, match="hides the rank"):
        session.set_row_order("rank")
    session.set_blind(False)
    assert events[-1]["action"] == "blind"
    assert session.row(KEPT).rank == 1
    session.set_blind(True)
    session.toggle(KEPT)
    session.confirm()
    session.goto("q-0001")
    assert session.judgement["blind"] is False, "it was looked at unblinded"
    session.undo()
    session.undo()
    assert not session.can_undo, "a look cannot be taken back"


def test_rows_are_shuffled_by_seed_annotator_and_case(
    cases: dict[str, Any], clock: Callable[[], float], chunks: tuple[Chunk, ...]
) -> None:
    def order(seed: str, annotator: str, case_id: str) -> list[str]:
        session = Session(
            cases, {}, record=lambda e: None, now=clock, seed=seed, annotator=annotator
        )
        session.set_chunks(case_id, chunks)
        session.goto(case_id)
        return [row.chunk.chunk_id for row in session.rows()]

    first = order("7", "gold", "q-0001")
    assert first == order("7", "gold", "q-0001")
    others = [order("8", "gold", "q-0001"), order("7", "b", "q-0001"), order("7", "gold", "q-0002")]
    assert any(other != first for other in others)
    assert all(sorted(other) == sorted(first) for other in others)


def test_labels_of_rows_and_probes(session: Session) -> None:
    many = [Chunk(f"f{n:02d}.md", "", f"text {n}") for n in range(23)]
    session.set_chunks("q-0001", many)
    assert session.add_chunks("q-0001", [many[0], Chunk("new.md", "", "new")], "other words") == 1
    labels = [row.label for row in session.rows()]
    assert labels[:11] == ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0", ".1"]
    assert labels[19:] == [".0", "21", "22", "23", "+1"]
    assert session.row_by_label("0").number == 10
    assert session.row_by_label("10").number == 10
    assert session.row_by_label(".0").number == 20
    assert session.row_by_label("+1").chunk.origin == "other words"
    for bad in ("", "24x", "99", "+2", "-1"):
        with pytest.raises(Refused):
            session.row_by_label(bad)


def test_filter_and_find(session: Session) -> None:
    session.flag()
    assert session.set_filter("flag") == "1 of 3 cases"
    assert session.set_filter("status:open part") == "3 of 3 cases"
    session.set_filter("tag:AUDIT id:0003")
    assert session.visible == ["q-0003"]
    with pytest.raises(Refused, match="unknown"):
        session.set_filter("status:nonsense")
    assert session.visible == ["q-0003"], "a bad filter leaves the old one"
    session.next()
    assert session.current == "q-0003"
    session.set_filter("")
    assert session.find("PART 2") == "q-0002"
    assert session.find("nowhere") is None
    session.previous()
    assert session.current == "q-0002"
    session.back()
    assert session.current == "q-0003"


def test_read_only_and_inspect_refuse_every_change(
    cases: dict[str, Any], clock: Callable[[], float], chunks: tuple[Chunk, ...]
) -> None:
    events: list[Any] = []
    session = Session(cases, {}, record=events.append, now=clock, inspect=True)
    session.set_chunks("q-0001", chunks)
    assert [row.rank for row in session.rows()] == [1, 2, 3, 4, 5]
    actions: list[Callable[[], object]] = [
        lambda: session.toggle(1),
        session.confirm,
        session.flag,
        session.undo,
        session.delete_case,
        lambda: session.add_case("?"),
        lambda: session.edit({"question": "?"}),
    ]
    for action in actions:
        with pytest.raises(Refused, match="Read-only"):
            action()
    assert events == []


def test_a_second_annotator_leaves_the_set_alone(
    cases: dict[str, Any], clock: Callable[[], float]
) -> None:
    session = Session(cases, {}, record=lambda e: None, now=clock, annotator="b", second=True)
    actions: list[Callable[[], object]] = [
        lambda: session.edit({"question": "?"}),
        lambda: session.add_case("?"),
        session.delete_case,
        session.duplicate_case,
    ]
    for action in actions:
        with pytest.raises(Refused, match="second annotator"):
            action()


def test_adjudication(session: Session) -> None:
    session.toggle(KEPT)
    session.grade(KEPT, 3)
    theirs = {
        "answerable": True,
        "gold_supports": [
            {"rel_path": "guide/retention.md", "heading_path": "Plans > Free", "grade": 1},
            {"rel_path": "guide/roles.md", "heading_path": "Roles > Owners"},
        ],
        "required_support_groups": [[0], [1]],
    }
    session.others = {"b": {"q-0001": theirs}}
    first, second = session.disagreements("b")
    assert (first.a, first.b) == ("A3", "A1")
    assert (second.a, second.b) == ("-", "B")
    assert second.row is not None
    assert second.row.number == OWNER
    with pytest.raises(Refused, match="2 not chosen"):
        session.adjudicated("b")
    session.adjudicate("b", 0, "union")
    session.adjudicate("b", 1, "b")
    assert [item.choice for item in session.disagreements("b")] == ["union", "b"]
    supports = session.case["gold_supports"]
    assert [support.get("grade") for support in supports] == [3, None]
    assert session.case["required_support_groups"] == [[0], [1]]
    session.adjudicate("b", 1, "neither")
    assert len(session.case["gold_supports"]) == 1
    session.adjudicated("b")
    assert session.brief("q-0001").status == "labelled"
    session.goto("q-0002")
    with pytest.raises(Refused, match="has not labelled"):
        session.disagreements("b")


def test_adjudicating_the_state(session: Session) -> None:
    session.toggle(KEPT)
    session.others = {"b": {"q-0001": {"answerable": False, "gold_supports": []}}}
    state = session.disagreements("b")[0]
    assert (state.kind, state.a, state.b) == ("state", "answerable", "unanswerable")
    session.adjudicate("b", 0, "b")
    assert session.case["answerable"] is False
    assert session.case["gold_supports"] == []

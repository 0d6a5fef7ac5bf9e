"""Marks become gold supports: anchors, snippets, needs, grades."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labeller import edits, marks
from labeller.passages import Chunk
from labeller.rows import CaseView, SupportView, sentences_of
from labeller.session import Session
from labeller.supports import Needs
from terminal.actions import ActionRefused

# Rows in path order: 1 faq, 2 and 3 retention (first and second chunk), 4 roles, 5 dpa.
FAQ, KEPT, LONGER, OWNER, DPA = 1, 2, 3, 4, 5


def supports(session: Session) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = session.case["gold_supports"]
    return found


def test_a_mark_is_an_anchor_with_the_sentence_that_carries_the_answer(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    (support,) = supports(session)
    assert support["rel_path"] == "guide/retention.md"
    assert support["heading_path"] == "Plans > Free"
    assert support["snippets"] == ["Audit events are kept for 30 days on the free plan."]
    assert support["quote"]["exact"] == support["snippets"][0]
    assert support["quote"]["auto"] is True
    assert session.case["answerable"] is True


def test_fields_and_their_order_stay(session: Session, cases: dict[str, Any]) -> None:
    before = list(cases["q-0001"])
    session.on_row(KEPT, marks.toggle)
    assert list(session.case)[: len(before)] == before
    assert session.case["x_owner"] == {"team": 1}
    assert "gold_supports" not in cases["q-0001"], "the caller's record was changed"


def test_two_chunks_of_one_heading_are_one_support(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.on_row(LONGER, marks.toggle)
    (support,) = supports(session)
    assert support["snippets"] == [
        "Audit events are kept for 30 days on the free plan.",
        "An owner may ask for a longer period.",
    ]
    assert [row.marked for row in session.rows()] == [False, True, True, False, False]
    session.on_row(KEPT, marks.toggle)
    assert [row.marked for row in session.rows()] == [False, False, True, False, False]
    session.on_row(LONGER, marks.toggle)
    assert supports(session) == []


def test_a_support_that_no_row_shows_is_named_by_its_file_and_section() -> None:
    def view(index: int, heading: str, *rows: str, path: str = "guide/a.md") -> SupportView:
        return SupportView(index, path, heading, (), None, (), rows, "missing")

    views = [
        view(0, "Plans > Free > Limits", "3"),
        view(1, "Plans > Paid > Limits"),
        view(2, "Plans > Free > Limits"),  # the same short name: both are said whole
        view(3, "Plans > Free > Terms"),
        view(4, "", path="x/b.md"),
    ]
    names = [
        "3 a.md",
        "guide/a.md > Plans > Paid > Limits",
        "guide/a.md > Plans > Free > Limits",
        "a.md > … > Terms",
        "b.md",
    ]
    layout = Needs(tuple((index,) for index in range(5)))
    assert CaseView([], views, layout).needs() == " AND ".join(f"({name})" for name in names)


def test_marks_of_one_need_are_alternatives_and_a_new_need_is_needed_as_well(
    session: Session,
) -> None:
    """(2 or 4) AND (5): the ways are 2 with 5, and 4 with 5; supports in the order of marking."""
    assert session.on_row(KEPT, marks.toggle) == "row 2 meets need 1"
    session.on_row(OWNER, marks.toggle)
    assert session.view.needs() == "(2 retention.md or 4 roles.md)"
    assert session.case["required_support_groups"] == [[0], [1]]
    assert session.open_need(None) == "marks join need 2: one of these is enough"
    with pytest.raises(ActionRefused, match="Need 2 has no passage yet"):
        session.open_need(None)
    with pytest.raises(ActionRefused, match="Need 2 has no passage yet: mark one, or ' 1 drops it"):
        session.confirm()
    assert session.on_row(DPA, marks.toggle) == "row 5 meets need 2"
    assert session.case["required_support_groups"] == [[0, 2], [1, 2]]
    assert session.view.needs() == "(2 retention.md or 4 roles.md) AND (5 dpa.md)"
    assert session.view.needs_words() == (
        "The answer needs (2 retention.md or 4 roles.md) AND (5 dpa.md)."
    )


def test_a_passage_can_meet_two_needs_and_be_moved(session: Session) -> None:
    """1: {2}, 2: {4, 2}: need 2 is met whenever need 1 is, so that one way is enough."""
    session.on_row(KEPT, marks.toggle)
    assert session.on_row(OWNER, marks.group, 2) == "row 4 meets need 2"
    assert session.layout.open == 1, "marks still join the first"
    assert session.case.get("required_support_groups") is None, "both are needed: the list says so"
    assert session.on_row(KEPT, marks.share, 2) == "row 2 meets need 1, 2"
    assert session.case["required_support_groups"] == [[0]]
    assert session.view.needs() == "(2 retention.md) AND (2 retention.md or 4 roles.md)"
    message = session.confirm()
    assert "Need 2 is always met when need 1 is; it was not saved." in message
    assert session.queue.goto("q-0001")
    assert session.view.needs() == "2 retention.md; not required: 4 roles.md"


def test_what_is_related_is_not_required(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    assert session.open_need(0) == "marks are related passages, not required"
    assert session.on_row(FAQ, marks.toggle) == "row 1 is related, not required"
    assert session.case["required_support_groups"] == [[0]]
    session.open_need(1)
    assert session.on_row(OWNER, marks.grade, 1) == "row 4: grade 1; row 4 is related, not required"
    assert session.view.needs() == "2 retention.md; not required: 1 faq.md, 4 roles.md"
    assert session.on_row(OWNER, marks.grade, 3) == "row 4: grade 3; row 4 meets need 1"
    assert session.case["required_support_groups"] == [[0], [2]]


def test_a_case_with_related_passages_alone_is_not_confirmed(session: Session) -> None:
    session.on_row(FAQ, marks.grade, 1)
    with pytest.raises(ActionRefused, match="No passage is required yet"):
        session.confirm()


def test_the_wrong_passage_of_a_need_is_replaced_in_that_need(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.open_need(None)
    session.on_row(OWNER, marks.toggle)
    session.open_need(1)
    session.on_row(KEPT, marks.toggle)
    assert session.view.needs() == "(nothing yet) AND (4 roles.md)"
    session.on_row(DPA, marks.toggle)
    assert session.view.needs() == "(5 dpa.md) AND (4 roles.md)"


def test_ways_are_edited_as_ways(session: Session) -> None:
    """(1 and 2) or (4 and 5): four needs of two would overlap, so that ways are shown."""
    for row in (FAQ, KEPT, OWNER, DPA):
        session.on_row(row, marks.group, 1)
    session.turn_needs()
    assert session.layout.ways
    for row, way in ((KEPT, 1), (DPA, 2)):  # way 2 went when it was empty: 3 is 2 now
        session.on_row(row, marks.group, way)
    assert session.case["required_support_groups"] == [[0, 1], [2, 3]]
    assert session.view.needs_words() == (
        "Shown as ways: (1 faq.md and 2 retention.md) or (4 roles.md and 5 dpa.md). "
        "Marks join the open way."
    )


def test_groups_that_contain_another_go_when_groups_are_edited_and_this_is_told(
    session: Session,
) -> None:
    labels = {
        "gold_supports": [{"rel_path": "faq.md"}, {"rel_path": "legal/dpa.md"}],
        "required_support_groups": [[0], [0, 1]],
    }
    session.revise(edits.edit_text, json.dumps({"id": "q-0001", "question": "?"} | labels))
    session.on_row(FAQ, marks.grade, 3)
    assert session.case["required_support_groups"] == [[0], [0, 1]], "a grade edits no group"
    assert session.on_row(DPA, marks.group, 2) == (
        "row 5 meets need 2; 1 way that contains another was dropped"
    )
    assert session.case["required_support_groups"] == [[0, 1]]


def test_undo_names_the_row_and_goes_to_its_case(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.open_need(None)
    session.queue.goto("q-0003")
    assert session.undo() == "Undone: opening a need in q-0001"
    assert session.undo() == "Undone: mark on row 2 of q-0001"
    assert session.current == "q-0001"
    assert session.redo() == "Redone: mark on row 2 of q-0001"


def test_grades(session: Session) -> None:
    session.on_row(KEPT, marks.grade, 3)
    with pytest.raises(ActionRefused, match="Nothing to change"):  # there is no 4
        session.on_row(KEPT, marks.grade_step, 1)
    session.on_row(KEPT, marks.grade_step, -1)
    assert supports(session)[0]["grade"] == 2
    session.on_row(KEPT, marks.grade, 0)
    assert supports(session) == []
    session.on_row(FAQ, marks.grade_step, 1)
    assert supports(session)[0]["grade"] == 1
    session.on_row(FAQ, marks.grade_step, -1)
    assert supports(session) == []
    with pytest.raises(ActionRefused, match=r"Row 1 is not marked\."):
        session.on_row(FAQ, marks.grade_step, -1)
    with pytest.raises(ActionRefused, match="0, 1, 2 or 3"):
        session.on_row(KEPT, marks.grade, 4)
    session.on_row(OWNER, marks.toggle)
    session.on_row(OWNER, marks.grade_step, 1)  # a mark without a grade counts as 2
    assert supports(session)[0]["grade"] == 3


def test_a_range(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.toggle_range(1, 4)
    assert [row.marked for row in session.rows()] == [True, True, True, True, False]
    session.toggle_range(4, 1)
    assert not any(row.marked for row in session.rows())


def test_a_heading_is_shortened_and_lengthened(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.on_row(KEPT, marks.shorten)
    assert supports(session)[0]["heading_path"] == "Plans"
    session.on_row(KEPT, marks.shorten)
    assert supports(session)[0]["heading_path"] == ""
    with pytest.raises(ActionRefused, match="whole file"):
        session.on_row(KEPT, marks.shorten)
    session.on_row(KEPT, marks.lengthen)
    assert supports(session)[0]["heading_path"] == "Plans"
    assert session.view.row(KEPT).marked, "the quote still finds its row"


def test_supports_that_become_the_same_are_joined(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.open_need(None)
    session.do(marks.add_support, "guide/retention.md", "Plans")
    session.on_row(KEPT, marks.shorten)
    (support,) = supports(session)
    assert support["heading_path"] == "Plans"
    assert support["snippets"] == ["Audit events are kept for 30 days on the free plan."]
    assert session.layout.parts == ((0,), (0,))
    assert "required_support_groups" not in session.case, "one support: the list says all of it"


def test_a_support_that_no_row_shows(session: Session) -> None:
    session.do(marks.add_support, "./a\\b.md", "# One > ## Two")
    assert supports(session) == [{"rel_path": "a/b.md", "heading_path": "One > Two"}]
    (view,) = session.supports()
    assert (view.state, view.rows) == ("absent", ())
    assert session.view.needs() == "b.md > … > Two"
    with pytest.raises(ActionRefused, match="already"):
        session.do(marks.add_support, "a/b.md", "One > Two")
    with pytest.raises(ActionRefused, match="needs the path"):
        session.do(marks.add_support, "  ")
    session.do(marks.remove_support, 0)
    assert supports(session) == []


def test_sentences_are_picked_by_hand(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    sentences = sentences_of(session.view.row(KEPT), session.case)
    assert [sentence.picked for sentence in sentences] == [True, False, False]
    session.on_row(KEPT, marks.pick, 1)
    # What was chosen by the program gives way to the person's choice.
    assert supports(session)[0]["snippets"] == ["Exports are not included."]
    assert "auto" not in supports(session)[0]["quote"]
    session.on_row(KEPT, marks.pick, 2)
    # Neighbours are one snippet; "e.g." ends no sentence.
    text = "Exports are not included. See the table below, e.g. for paid plans."
    assert supports(session)[0]["snippets"] == [text]
    session.on_row(KEPT, marks.pick, 1)
    assert supports(session)[0]["snippets"] == ["See the table below, e.g. for paid plans."]
    quote = supports(session)[0]["quote"]
    assert quote["exact"] == "See the table below, e.g. for paid plans."
    assert quote["prefix"] == "plan. Exports are not included. "
    assert quote["suffix"] == ""


def test_a_pick_beside_the_quote_of_another_passage_is_a_persons_choice(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.on_row(LONGER, marks.toggle)
    session.on_row(KEPT, marks.pick, 1)
    (support,) = supports(session)
    assert support["quote"]["exact"] == "Exports are not included."
    assert "auto" not in support["quote"]


def test_a_pick_marks_its_row_and_says_how_many_snippets_there_are_and_whether_unique(
    session: Session,
) -> None:
    assert session.on_row(OWNER, marks.pick, 0) == "row 4: 1 snippet"
    row = session.view.row(OWNER)
    assert (row.marked, row.auto) == (True, False)
    session.pool.put("q-0001", [Chunk("a.md", "H", "It is so. Why? It is So.")])
    assert session.on_row(1, marks.pick, 0) == "row 1: 1 snippet; not unique here"


def test_selected_characters(session: Session) -> None:
    text = session.view.row(KEPT).chunk.text
    start = text.index("30 days")
    session.on_row(KEPT, marks.select, start, start + len("30 days "))
    assert supports(session)[0]["snippets"] == ["30 days"]
    session.on_row(KEPT, marks.select, start, start + len("30 days"))
    assert supports(session)[0].get("snippets") == []
    with pytest.raises(ActionRefused, match="Nothing is selected"):
        session.on_row(KEPT, marks.select, 5, 5)


def test_a_passage_without_the_answer_is_quoted_by_its_first_sentence(session: Session) -> None:
    session.on_row(FAQ, marks.toggle)
    (support,) = supports(session)
    assert "snippets" not in support
    assert support["quote"]["exact"] == "Upgrades take effect at once."
    assert session.view.row(FAQ).auto


def test_cut_text_is_noted(session: Session) -> None:
    session.pool.put("q-0001", [Chunk("a.md", "H", "Audit events are kept for 30 da", cut=True)])
    session.on_row(1, marks.toggle)
    assert supports(session)[0]["quote"]["cut"] is True


def test_marks_follow_their_text_to_another_heading(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    text, path = session.view.row(KEPT).chunk.text, "guide/retention.md"
    other = Chunk(path, "Plans > Free", "Other words stand here now.")
    session.pool.put("q-0001", [other, Chunk(path, "Limits", text)])
    rows = {row.chunk.heading_path: row for row in session.rows()}
    assert not rows["Plans > Free"].marked
    assert rows["Limits"].state == "moved"
    session.on_row(rows["Limits"].number, marks.reanchor)
    assert supports(session)[0]["heading_path"] == "Limits"
    assert session.supports()[0].state == "shown"


def test_nearly_the_same_words_are_found(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    text = "Audit events are now kept for 30 days on the free plan."
    session.pool.put("q-0001", [Chunk("guide/retention.md", "Plans > Free", text)])
    assert session.rows()[0].state == "fuzzy"


def test_lost_supports_can_be_filtered(session: Session) -> None:
    session.on_row(KEPT, marks.toggle)
    session.pool.put("q-0001", [Chunk("other.md", "", "Nothing of it.")])
    assert session.supports()[0].state == "absent"
    session.queue.set_filter("anchor:lost")
    assert session.queue.visible == ["q-0001"]


def test_segments_match_as_a_whole(session: Session) -> None:
    session.do(marks.add_support, "a.md", "Intro")
    session.pool.put(
        "q-0001", [Chunk("a.md", "Introduction", "x y"), Chunk("a.md", "Intro > Why", "z")]
    )
    marked = {row.chunk.heading_path: row.state for row in session.rows()}
    assert marked == {"Introduction": "", "Intro > Why": "heading"}


def test_unknown_fields_of_a_support_stay(cases: dict[str, Any], session: Session) -> None:
    case = {
        "id": "q-0001",
        "question": "?",
        "gold_supports": [{"rel_path": "faq.md", "date": "2024-01-01", "x": [1]}],
    }
    session.revise(edits.edit_text, json.dumps(case))
    session.on_row(FAQ, marks.grade, 1)
    assert supports(session) == [{"rel_path": "faq.md", "date": "2024-01-01", "x": [1], "grade": 1}]


def test_unmarking_names_the_other_rows(session: Session) -> None:
    session.do(marks.add_support, "guide/retention.md", "Plans")
    assert session.on_row(KEPT, marks.toggle) == "row 2 is not marked, nor is 3"


def test_there_is_no_such_row(session: Session) -> None:
    for number in (0, 6, -1):
        with pytest.raises(ActionRefused, match="no row"):
            session.on_row(number, marks.toggle)
    for action in (marks.shorten, marks.reanchor):
        with pytest.raises(ActionRefused, match=r"Row 1 is not marked\."):
            session.on_row(FAQ, action)
    with pytest.raises(ActionRefused, match="There is no need 3"):
        session.on_row(FAQ, marks.group, 3)

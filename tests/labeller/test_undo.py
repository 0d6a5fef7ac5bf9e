"""Any actions, then undo to the end: the start state, byte for byte; replay gives the same gold."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.labeller.conftest import snapshot

from labeller import edits, marks
from labeller.passages import Chunk
from labeller.session import Session
from labeller.supports import read_supports, with_groups
from terminal.actions import ActionRefused

Record = dict[str, Any]
Step = tuple[str, int, int]
ACTIONS: dict[str, Callable[[Session, int, int], object]] = {
    "toggle": lambda s, a, b: s.on_row(a, marks.toggle),
    "range": lambda s, a, b: s.toggle_range(a, b + 1),
    "grade": lambda s, a, b: s.on_row(a, marks.grade, b),
    "step": lambda s, a, b: s.on_row(a, marks.grade_step, 1 if b % 2 else -1),
    "group": lambda s, a, b: s.on_row(a, marks.group, b),
    "share": lambda s, a, b: s.on_row(a, marks.share, b),
    "open_need": lambda s, a, b: s.open_need(b or None),
    "related": lambda s, a, b: s.open_need(0),
    "next_need": lambda s, a, b: s.next_need(1 if b % 2 else -1),
    "turn_needs": lambda s, a, b: s.turn_needs(),
    "shorten": lambda s, a, b: s.on_row(a, marks.shorten),
    "lengthen": lambda s, a, b: s.on_row(a, marks.lengthen),
    "heading": lambda s, a, b: s.do(marks.set_heading, a - 1, ("", "Plans", "Roles")[b % 3]),
    "add_support": lambda s, a, b: s.do(marks.add_support, f"f{a}.md", "H" * b),
    "remove_support": lambda s, a, b: s.do(marks.remove_support, a - 1),
    "reanchor": lambda s, a, b: s.on_row(a, marks.reanchor),
    "pick": lambda s, a, b: s.on_row(a, marks.pick, b),
    "select": lambda s, a, b: s.on_row(a, marks.select, b, b + 9),
    "fact": lambda s, a, b: s.revise(edits.key_fact, f"fact {a}"),
    "unanswerable": lambda s, a, b: s.do(edits.unanswerable),
    "answerable": lambda s, a, b: s.do(edits.answerable),
    "skip": lambda s, a, b: s.skip(),
    "flag": lambda s, a, b: s.do(edits.flag),
    "cannot": lambda s, a, b: s.do(edits.cannot_tell, "why" if b else ""),
    "note": lambda s, a, b: s.do(edits.note, "n" * b),
    "confirm": lambda s, a, b: s.confirm(),
    "edit": lambda s, a, b: s.revise(edits.edit, {"question": f"Question {a}?", "tags": ["t"] * b}),
    "add": lambda s, a, b: s.add_case(f"New {a}?"),
    "copy": lambda s, a, b: s.duplicate_case(),
    "delete": lambda s, a, b: s.delete_case(),
    "undo": lambda s, a, b: s.undo(),
    "redo": lambda s, a, b: s.redo(),
    "next": lambda s, a, b: s.queue.next(),
    "previous": lambda s, a, b: s.queue.previous(),
    "open": lambda s, a, b: s.queue.next_open(),
    "see": lambda s, a, b: s.see(a),
    "rows": lambda s, a, b: s.set_row_order(("shuffled", "path")[b % 2]),
    "blind": lambda s, a, b: s.set_blind(bool(b % 2)),
}
STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(ACTIONS)), st.integers(1, 6), st.integers(0, 4)), max_size=60
)


CHUNKS = (
    Chunk("keep.md", "Plans > Free", "Events are kept for 2 days. Others are not. See there."),
    Chunk("keep.md", "Plans > Free", "What is kept for 1 days is short. An owner may ask."),
    Chunk("keep.md", "Plans > Paid", "Events are kept for 3 days."),
    Chunk("roles.md", "Roles", "Only an owner can extend it."),
    Chunk("empty.md", "", ""),
)


def start(chunks: tuple[Chunk, ...], events: list[Record]) -> Session:
    ticks = iter(range(10**9))
    cases = {
        f"q-{n}": {"id": f"q-{n}", "question": f"What is kept for {n} days?", "x": n}
        for n in range(1, 4)
    }
    session = Session(cases, {}, record=events.append, now=lambda: float(next(ticks)), seed="7")
    for case_id in ("q-1", "q-2", "q-3", "new-1", "new-2"):
        session.pool.put(case_id, chunks)
    return session


def play(session: Session, steps: list[Step]) -> None:
    for name, a, b in steps:
        with contextlib.suppress(ActionRefused):
            ACTIONS[name](session, a, b)


def gold(session: Session) -> dict[str, Record]:
    return {
        brief.id: session.ledger.case_of(brief.id) for brief in session.queue.summaries.values()
    }


def check_labels(session: Session) -> None:
    """What must hold of every case at any time."""
    for case in gold(session).values():
        supports = case.get("gold_supports") or []
        groups = case.get("required_support_groups") or []
        assert all(group for group in groups), "an empty group"
        assert all(0 <= index < len(supports) for group in groups for index in group)
        anchors = [support.anchor for support in read_supports(case)]
        assert len(anchors) == len(set(anchors)), "two supports of one heading"
        assert all(support.get("grade") in (None, 1, 2, 3) for support in supports)
        layout = session.ledger[case["id"]].layout
        assert {i for part in layout.parts for i in part} <= set(range(len(supports)))
        assert with_groups(case, layout) == case, "the screen shows other needs than are written"
        assert 0 <= layout.open <= len(layout.parts)
        if supports:
            assert case["answerable"] is True
        if case.get("answerable") is False:
            assert not supports


@settings(deadline=None, max_examples=150)
@given(steps=STEPS)
def test_undo_to_the_end_is_the_start_byte_for_byte(steps: list[Step]) -> None:
    events: list[Record] = []
    session = start(CHUNKS, events)
    before = snapshot(session)
    play(session, steps)
    check_labels(session)
    after, gold_after = snapshot(session), gold(session)
    undone = 0
    while session.ledger.history.done:
        session.undo()
        undone += 1
    assert snapshot(session) == before
    for _ in range(undone):
        session.redo()
    assert snapshot(session) == after
    assert gold(session) == gold_after


@settings(deadline=None, max_examples=150)
@given(steps=STEPS)
def test_replaying_the_journal_gives_the_same_gold(steps: list[Step]) -> None:
    events: list[Record] = []
    session = start(CHUNKS, events)
    play(session, steps)
    lines = [json.loads(json.dumps(event)) for event in events]
    replayed: dict[str, Record | None] = {}
    for event in lines:
        if "after" in event:
            replayed[event["case"]] = event["after"]
    for case_id, entry in replayed.items():
        if entry is None:
            assert case_id not in session.queue
        else:
            assert session.ledger.case_of(case_id) == entry["case"]
    again = Session(
        {c: session.ledger.case_of(c) for c in gold(session)},
        {c: session.ledger[c].judgement for c in gold(session)},
        record=events.append,
        now=lambda: 0.0,
        history=lines,
    )
    steps_of = [(s.ledger.history.done, s.ledger.history.undone) for s in (again, session)]
    assert len(steps_of[0][0]) == len(steps_of[1][0])
    assert len(steps_of[0][1]) == len(steps_of[1][1])
    if again.ledger.history.done:
        again.undo()
        session.undo()
        assert gold(again).keys() == gold(session).keys()


def test_a_step_on_a_case_that_others_changed_is_left(session: Session) -> None:
    session.on_row(2, marks.toggle)
    entry = session.ledger["q-0001"]
    session.ledger.adopt(
        "q-0001", type(entry)({**entry.case, "question": "Changed elsewhere?"}, {})
    )
    with pytest.raises(ActionRefused, match="changed elsewhere"):
        session.undo()
    assert session.case["question"] == "Changed elsewhere?"
    assert not session.ledger.history.done

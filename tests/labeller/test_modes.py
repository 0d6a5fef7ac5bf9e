"""Blind mode, rows, filters, sessions that are read-only or only label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labeller import edits, marks
from labeller.passages import Chunk
from labeller.rows import ChunkPool, arranged
from labeller.session import Session
from terminal.actions import ActionRefused

KEPT, OWNER = 2, 4


def test_blind_mode_hides_rank_and_scores_and_is_journalled(
    session: Session,
    events: list[dict[str, Any]],
    cases: dict[str, Any],
    clock: Callable[[], float],
    chunks: tuple[Chunk, ...],
) -> None:
    assert all(row.rank is None and set(row.scores) == {None} for row in session.rows())
    with pytest.raises(ActionRefused, match="hides the rank"):
        session.set_row_order("rank")
    session.set_blind(False)
    assert events[-1]["action"] == "blind"
    assert session.view.row(KEPT).rank == 1
    session.set_blind(True)
    session.on_row(KEPT, marks.toggle)
    session.confirm()
    session.queue.goto("q-0001")
    assert session.judgement["blind"] is False, "it was looked at unblinded"
    session.undo()
    session.undo()
    assert not session.ledger.history.done, "a look cannot be taken back"
    looks = [event for event in events if event["action"] == "blind"]
    for case_id, blind in (("q-0001", False), ("q-0002", True)):  # nor by another session
        another = Session(cases, {}, record=lambda e: None, now=clock, seed="7", history=looks)
        another.pool.put(case_id, chunks)
        another.queue.goto(case_id)
        another.on_row(KEPT, marks.toggle)
        another.confirm()
        another.queue.goto(case_id)
        assert another.judgement["blind"] is blind


def test_rows_are_shuffled_by_seed_annotator_and_case(
    cases: dict[str, Any], clock: Callable[[], float], chunks: tuple[Chunk, ...]
) -> None:
    def order(seed: str, annotator: str, case_id: str) -> list[str]:
        session = Session(
            cases, {}, record=lambda e: None, now=clock, seed=seed, annotator=annotator
        )
        session.pool.put(case_id, chunks)
        session.queue.goto(case_id)
        return [row.chunk.chunk_id for row in session.rows()]

    first = order("7", "gold", "q-0001")
    assert first == order("7", "gold", "q-0001")
    others = [order("8", "gold", "q-0001"), order("7", "b", "q-0001"), order("7", "gold", "q-0002")]
    assert any(other != first for other in others)
    assert all(sorted(other) == sorted(first) for other in others)


def test_labels_of_rows_and_probes(session: Session) -> None:
    many = [Chunk(f"f{n:02d}.md", "", f"text {n}") for n in range(23)]
    session.pool.put("q-0001", many)
    assert session.pool.add("q-0001", [many[0], Chunk("new.md", "", "new")], "other words") == 1
    labels = [row.label for row in session.rows()]
    assert labels[:11] == ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]
    assert labels[19:] == ["20", "21", "22", "23", "+1"]
    assert session.view.row_by_label("0").number == 10
    assert session.view.row_by_label("10").number == 10
    assert session.view.row_by_label(".0").number == 20
    assert session.view.row_by_label("+1").chunk.origin == "other words"
    for bad in ("", "24x", "99", "+2", "-1"):
        with pytest.raises(ActionRefused):
            session.view.row_by_label(bad)


def test_filter_and_find(session: Session) -> None:
    session.do(edits.flag)
    assert session.queue.set_filter("flag") == "1 of 3 cases"
    assert session.queue.set_filter("status:open part") == "3 of 3 cases"
    session.queue.set_filter("tag:AUDIT id:0003")
    assert session.queue.visible == ["q-0003"]
    with pytest.raises(ActionRefused, match="unknown"):
        session.queue.set_filter("status:nonsense")
    assert session.queue.visible == ["q-0003"], "a bad filter leaves the old one"
    session.queue.next()
    assert session.current == "q-0003"
    session.queue.set_filter("")
    assert session.queue.find("PART 2") == "q-0002"
    assert session.queue.find("nowhere") is None
    session.queue.previous()
    assert session.current == "q-0002"
    session.queue.back()
    assert session.current == "q-0003"


def test_read_only_and_inspect_refuse_every_change(
    cases: dict[str, Any], clock: Callable[[], float], chunks: tuple[Chunk, ...]
) -> None:
    events: list[Any] = []
    session = Session(cases, {}, record=events.append, now=clock, inspect=True)
    session.pool.put("q-0001", chunks)
    assert [row.rank for row in session.rows()] == [1, 2, 3, 4, 5]
    actions: list[Callable[[], object]] = [
        lambda: session.on_row(1, marks.toggle),
        session.confirm,
        lambda: session.do(edits.flag),
        session.undo,
        session.delete_case,
        lambda: session.add_case("?"),
        lambda: session.revise(edits.edit, {"question": "?"}),
    ]
    for action in actions:
        with pytest.raises(ActionRefused, match="Read-only"):
            action()
    assert events == []


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


def test_a_session_that_only_labels_leaves_the_set_alone(
    cases: dict[str, Any], clock: Callable[[], float]
) -> None:
    session = Session(cases, {}, record=lambda e: None, now=clock, fixed="Only labels here.")
    actions: list[Callable[[], object]] = [
        lambda: session.revise(edits.edit, {"question": "?"}),
        lambda: session.add_case("?"),
        session.delete_case,
        session.duplicate_case,
        lambda: session.revise(edits.expect_none),
    ]
    for action in actions:
        with pytest.raises(ActionRefused, match="Only labels here"):
            action()

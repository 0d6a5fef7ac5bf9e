"""Going on where a session was left: filter, orders, question and row; broken files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from labeller.case_state import LabelTarget
from labeller.passages import Chunk
from labeller.session import Session, View, present_view, resume
from labeller.store import LabelStore, read_view, write_view

Record = dict[str, Any]


@pytest.fixture
def again(cases: dict[str, Record], clock: Callable[[], float]) -> Callable[..., Session]:
    """Makes a session as a restart would."""

    def make(**options: Any) -> Session:
        return Session(cases, {}, record=lambda event: None, now=clock, seed="7", **options)

    return make


def test_a_view_is_taken_up_again(
    session: Session, again: Callable[..., Session], chunks: tuple[Chunk, ...]
) -> None:
    session.queue.set_filter("part")
    session.queue.set_order("random")
    session.queue.goto("q-0003")
    row = session.view.row(2).chunk.key
    fresh = again(order="random")
    said = resume(fresh, present_view(session, row))
    assert present_view(fresh, row) == present_view(session, row)
    assert (fresh.current, fresh.queue.filter, fresh.queue.order) == ("q-0003", "part", "random")
    assert (fresh.row_order, fresh.resumed_row) == ("path", row)
    assert said == ["Still filtered by part: 3 of 3 cases."]


def test_what_does_not_hold_any_more_is_dropped_in_words(again: Callable[..., Session]) -> None:
    fresh = again()
    said = resume(fresh, View("gone", "k", "status:xyz", "file", "sideways"))
    expected = ["The filter of last time is dropped", "The row order of last time is dropped"]
    assert [text.split(":")[0] for text in said] == expected
    assert (fresh.current, fresh.queue.filter, fresh.row_order) == ("q-0001", "", "shuffled")


def test_a_row_order_counts_for_a_session_as_blind_as_its_own(
    again: Callable[..., Session],
) -> None:
    open_view = View(row_order="rank", blind=False)
    blind = again()
    assert resume(blind, open_view) == []
    assert blind.row_order == "shuffled"
    seeing = again(blind=False)
    resume(seeing, View(row_order="path", blind=True))
    assert seeing.row_order == "rank"


def test_the_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl.view"
    assert read_view(path) == (None, "")
    view = View("q-1", "abc", "tag:ü", "random", "path", blind=False)
    write_view(path, view)
    assert read_view(path) == (view, "")
    assert [path.name for path in tmp_path.iterdir()] == ["set.jsonl.view"]


@each_row("content", [b"", b"{", b"[]", b'{"case": 3}', b"\xff", b'{"blind": "no"}', b"null"])
def test_a_broken_file_is_ignored_with_a_word(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "set.jsonl.view"
    path.write_bytes(content)
    view, said = read_view(path)
    assert view is None
    assert said.startswith("set.jsonl.view: cannot be read (damaged)")


def test_a_disk_that_refuses_does_not_stop_the_session(tmp_path: Path) -> None:
    write_view(tmp_path / "no such folder" / "set.jsonl.view", View("q-1"))
    write_view(tmp_path / "set.jsonl.view", View("half \ud800"))
    assert list(tmp_path.iterdir()) == []


def store_on(folder: Path, **options: Any) -> LabelStore:
    path = folder / "set.jsonl"
    path.write_text(json.dumps({"id": "a", "question": "?"}) + "\n")
    return LabelStore(path, folder / "judgements", now=lambda: 1e9, **options)


def test_a_store_keeps_views_only_where_it_may_write(tmp_path: Path) -> None:
    view = View("a", filter="status:open")
    for options in ({"writing": False}, {"resuming": False}):
        store = store_on(tmp_path, **options)
        store.remember(view)
        store.close()
        assert not (tmp_path / "set.jsonl.view").exists()
    store = store_on(tmp_path)
    store.remember(view)
    assert store_on(tmp_path, writing=False).last_view() == view
    assert store_on(tmp_path, writing=False, resuming=False).last_view() is None
    other = store_on(tmp_path, labels=LabelTarget("maria", fixed="Only labels here."))
    assert other.last_view() is None
    assert (tmp_path / "set.jsonl").read_text().count("\n") == 1
    store.close()
    other.close()

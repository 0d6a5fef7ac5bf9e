"""Snippet mode and conflicts: every key of their tables, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest
from tests.labeller.conftest import snapshot

from labeller.actions import actions_of
from labeller.merging import Conflict
from labeller.passages import Chunk

TEXT = "First things first. Audit events are kept for 30 days. The owner can extend it."
SNIPPET_KEYS = {action.id for action in actions_of("snippet")}


@pytest.fixture
def one_chunk(bench: Any) -> Any:
    """An app whose first question has one chunk of three sentences."""
    return bench(chunks={"q-01": [Chunk("guide/a.md", "Plans", TEXT)]})


def picked(b: Any) -> list[str]:
    """The snippets of the only support."""
    return list(b.session.supports()[0].snippets) if b.session.supports() else []


async def test_pick_sentences(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "j", "space", "down", "space", "k", "up", "down")
        assert ">*" in b.shown()
        assert "sentence 2 of 3" in b.shown()
        await pilot.press("enter")
        assert b.app.screen is b.main
    # Two picked sentences side by side are one snippet.
    assert picked(b) == ["Audit events are kept for 30 days. The owner can extend it."]
    assert {"pick", "down", "up", "keep"} <= SNIPPET_KEYS


async def test_words_inside_a_sentence(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "j", "v", "W", "w", "w", "b", "e", "l", "h", "right", "left")
        assert "INSIDE" in b.shown()
        await pilot.press("space", "enter")
    # v takes "Audit", W begins at "events", w w adds "are kept", b drops and e adds "kept".
    assert picked(b) == ["events are kept"]


async def test_v_again_leaves_the_inside(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "v", "v", "space", "enter")
    assert picked(b) == ["First things first."]


async def test_key_fact(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "j", "F", "enter")
    assert b.session.case["expected_key_facts"] == ["Audit events are kept for 30 days."]


async def test_leaving_takes_the_picks_back(one_chunk: Any) -> None:
    b = one_chunk
    start = snapshot(b.session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "space", "j", "space", "F", "escape")
        assert b.app.screen is b.main
    assert snapshot(b.session) == start


async def test_help_of_a_mode_shows_its_keys(one_chunk: Any) -> None:
    b = one_chunk
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "?")
        assert "Pick the sentence, or drop it." in b.shown()


async def test_conflicts_are_shown_and_settled(bench: Any) -> None:
    conflicts = [
        Conflict(f"q-0{n}", ("question",), {"question": "Old?"}, {"question": f"Mine {n}?"}, theirs)
        for n, theirs in ((1, {"question": "Theirs [bold]?"}), (2, None))
    ]
    b = bench(conflicts=conflicts)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        shown = b.shown()
        assert "q-01 was changed here and in the file (2 to settle)" in shown
        assert "Mine 1?" in shown
        assert "Theirs [bold]?" in shown
        await pilot.press("1")
        assert "(no such question)" in b.shown()
        await pilot.press("2")
        assert b.app.screen is b.main
    assert b.store.asked == ["q-01 mine", "q-02 theirs"]


async def test_conflicts_can_wait(bench: Any) -> None:
    conflict = Conflict("q-01", ("question",), {}, {"question": "a"}, {"question": "b"})
    b = bench(conflicts=[conflict])
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("escape", "1")
        assert b.app.screen is b.main
    assert b.store.conflicts == [conflict]

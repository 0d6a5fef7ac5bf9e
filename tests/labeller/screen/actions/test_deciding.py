"""What is decided of a question, and taking it back. One test an action."""

from __future__ import annotations

from typing import Any


async def test_confirm(action: Any) -> None:
    async with action("confirm") as (b, pilot, key):
        await pilot.press(key)
        assert "Nothing is decided" in b.status
        await pilot.press("2", key)
        assert b.session.queue.summaries["q-01"].status == "labelled"
        assert b.session.current == "q-02"


async def test_unanswerable(action: Any) -> None:
    async with action("unanswerable") as (b, pilot, key):
        await pilot.press("1", key)
        assert b.marks == []
        assert b.session.case["answerable"] is False


async def test_answerable(action: Any) -> None:
    async with action("answerable") as (b, pilot, key):
        await pilot.press(key)
        assert b.session.case["answerable"] is True


async def test_skip(action: Any) -> None:
    async with action("skip") as (b, pilot, key):
        await pilot.press(key)
        assert b.session.queue.summaries["q-01"].status == "skipped"
        assert b.session.current == "q-02"


async def test_flag(action: Any) -> None:
    async with action("flag") as (b, pilot, key):
        await pilot.press(key)
        assert b.session.queue.summaries["q-01"].flagged
        assert "FLAG" in b.shown()


async def test_note(action: Any) -> None:
    async with action("note") as (b, pilot, key):
        await pilot.press(key, "h", "m", "enter")
        await pilot.pause()
        assert b.session.judgement["note"] == "hm"
        await pilot.press(key, "ctrl+t", "enter")
        await pilot.pause()
        assert b.session.judgement["decision"] == "cannot_tell"


async def test_undo(action: Any) -> None:
    async with action("undo") as (b, pilot, key):
        await pilot.press("1", "enter", key)
        assert b.session.current == "q-01"
        await pilot.press(key)
        assert b.marks == []


async def test_redo(action: Any) -> None:
    async with action("redo") as (b, pilot, key):
        await pilot.press("1", "u", key)
        assert b.marks == ["1"]

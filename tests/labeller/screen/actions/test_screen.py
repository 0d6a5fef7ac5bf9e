"""The screen itself: panes, order, help, saving, leaving. One test an action."""

from __future__ import annotations

from typing import Any


async def test_toggle_questions(action: Any) -> None:
    async with action("toggle-questions") as (b, pilot, key):
        await pilot.press(key)
        await pilot.pause()
        assert "q-04" in b.shown()
        await pilot.press("j", "enter")
        await pilot.pause()
        assert b.session.current == "q-02"
        assert "q-04" not in b.shown()


async def test_zoom(action: Any) -> None:
    async with action("zoom") as (b, pilot, key):
        await pilot.press(key)
        await pilot.pause()
        assert b.main.text.size.height > 14
        await pilot.press("q")
        await pilot.pause()
        assert b.main.text.size.height < 10


async def test_conversation(action: Any) -> None:
    async with action("conversation") as (b, pilot, key):
        await pilot.press(key)
        assert b.status == "nothing was said before this question"
        b.session.case["history"] = [{"role": "user", "content": f"Said {n}?"} for n in range(5)]
        b.main._new_case()
        await pilot.press(key)
        await pilot.pause()
        assert "Said 0?" in b.shown()
        assert b.main.panes.focus == "conversation"


async def test_info(action: Any) -> None:
    async with action("info") as (b, pilot, key):
        await pilot.press(key)
        assert "blind" in b.status
        await pilot.press("B", key)
        assert "0.8" in b.shown()


async def test_order(action: Any) -> None:
    async with action("order") as (b, pilot, key):
        await pilot.press(key)
        paths = [row.chunk.rel_path for row in b.main.chunks.rows]
        assert paths == sorted(paths)


async def test_blind(action: Any) -> None:
    async with action("blind") as (b, pilot, key):
        assert all(row.rank is None for row in b.session.rows())
        await pilot.press(key)
        assert b.session.rows()[0].rank is not None
        assert "BLIND" not in b.shown()


async def test_theme(action: Any) -> None:
    async with action("theme") as (b, _pilot, _key):
        b.main.perform("theme")
        assert b.app.theme == "textual-light"
        b.main.perform("theme")
        assert b.app.theme == "textual-dark"


async def test_help(action: Any) -> None:
    async with action("help") as (b, pilot, key):
        await pilot.press(key)
        assert "Mark the passage as support" in b.shown()
        await pilot.press("tab")
        assert "How to label" in b.shown()
        await pilot.press("escape")
        assert b.app.screen is b.main


async def test_palette(action: Any) -> None:
    async with action("palette") as (b, pilot, key):
        await pilot.press(key, "3")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        assert b.session.current == "q-03"


async def test_save(action: Any) -> None:
    async with action("save") as (b, pilot, key):
        await pilot.press(key)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert b.store.asked == ["save"]
        assert b.status == "saved"


async def test_suspend(action: Any) -> None:
    async with action("suspend") as (b, pilot, key):
        await pilot.press("1", key)
        assert "there is no shell here" in b.status, "a test has none"
        assert b.marks == ["1"], "Ctrl+Z undoes nothing"


async def test_redraw(action: Any) -> None:
    async with action("redraw") as (b, pilot, key):
        await pilot.pause(0.5)  # until the first row counts as read
        before = b.shown()
        await pilot.press(key)
        assert b.shown() == before


async def test_leave(action: Any) -> None:
    async with action("leave") as (b, pilot, key):
        await pilot.press(key)
        assert b.app._exit


async def test_quit(action: Any) -> None:
    async with action("quit") as (b, pilot, key):
        await pilot.press("e", key)
        assert b.app._exit


async def test_interrupt(action: Any) -> None:
    async with action("interrupt") as (b, pilot, key):
        await pilot.press(key, "j", key)
        assert not b.app._exit
        assert "again" in b.status
        await pilot.press(key)
        assert b.app._exit

"""Moving through rows, text and questions. One test an action."""

from __future__ import annotations

from typing import Any


async def test_down(action: Any) -> None:
    async with action("down") as (b, pilot, key):
        await pilot.press(key)
        assert b.main.chunks.cursor == 1
        assert b.session.rows()[1].seen
        assert not b.session.rows()[2].seen


async def test_up(action: Any) -> None:
    async with action("up") as (b, pilot, key):
        await pilot.press("j", "j", key)
        assert b.main.chunks.cursor == 1


async def test_first(action: Any) -> None:
    async with action("first") as (b, pilot, key):
        await pilot.press("j", "j", key)
        assert b.main.chunks.cursor == 0


async def test_top(action: Any) -> None:
    async with action("top") as (b, pilot, key):
        await pilot.press("j", "j", key, "g")
        assert b.main.chunks.cursor == 0


async def test_last(action: Any) -> None:
    async with action("last") as (b, pilot, key):
        await pilot.press(key)
        assert b.main.chunks.cursor == 11


async def test_page_down(action: Any) -> None:
    async with action("page-down") as (b, pilot, key):
        await pilot.press(key)
        assert b.main.text.top == 4  # half of the 8 lines in view


async def test_page_up(action: Any) -> None:
    async with action("page-up") as (b, pilot, key):
        await pilot.press("ctrl+d", "ctrl+d", key)
        assert b.main.text.top == 4


async def test_line_down(action: Any) -> None:
    async with action("line-down") as (b, pilot, key):
        await pilot.press(key)
        assert b.main.text.top == 1


async def test_line_up(action: Any) -> None:
    async with action("line-up") as (b, pilot, key):
        await pilot.press("J", "J", key)
        assert b.main.text.top == 1


async def test_next_question(action: Any) -> None:
    async with action("next-question") as (b, pilot, key):
        await pilot.press(key)
        assert b.session.current == "q-02"
        assert "case 2" in b.shown()


async def test_previous_question(action: Any) -> None:
    async with action("previous-question") as (b, pilot, key):
        await pilot.press("l", "l", key)
        assert b.session.current == "q-02"


async def test_back(action: Any) -> None:
    async with action("back") as (b, pilot, key):
        await pilot.press("l", "l", key)
        assert b.session.current == "q-02"


async def test_next_marked(action: Any) -> None:
    async with action("next-marked") as (b, pilot, key):
        await pilot.press("3", key)
        assert b.main.chunks.cursor == 2


async def test_previous_marked(action: Any) -> None:
    async with action("previous-marked") as (b, pilot, key):
        await pilot.press("3", "5", key)
        assert b.main.chunks.cursor == 4


async def test_next_in_group(action: Any) -> None:
    async with action("next-in-group") as (b, pilot, key):
        await pilot.press("3", "M", "5", key, "b")
        assert b.main.chunks.cursor == 4
        await pilot.press(key, "c")
        assert "group C is empty" in b.status


async def test_next_pane(action: Any) -> None:
    async with action("next-pane") as (b, pilot, key):
        await pilot.press(key)
        assert b.main.pane == "text"


async def test_previous_pane(action: Any) -> None:
    async with action("previous-pane") as (b, pilot, key):
        await pilot.press("tab", key)
        assert b.main.pane == "chunks"

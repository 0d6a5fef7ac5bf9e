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
        assert b.main.text.top == b.main.text.size.height // 2 == 8  # 24 lines, one row


async def test_page_up(action: Any) -> None:
    async with action("page-up") as (b, pilot, key):
        await pilot.press("ctrl+d", "ctrl+d", key)
        assert b.main.text.top == 8


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
    async with action("next-in-group") as (b, pilot, _key):
        await pilot.press("3", "M", "5")
        b.main.perform("next-in-group")  # by name from the palette, or by a keymap file
        await pilot.press("2")
        assert b.main.chunks.cursor == 4
        b.main.perform("next-in-group")
        await pilot.press("3")
        assert "no row meets need 3" in b.status


async def test_read_on(action: Any) -> None:
    async with action("read-on") as (b, pilot, key):
        for _ in range(11):
            await pilot.press(key)
        assert b.main.chunks.cursor == 11
        assert all(row.seen for row in b.session.rows())
        await pilot.press(key)
        assert b.status == "all rows here are read"


async def test_go_to_row(action: Any) -> None:
    async with action("go-to-row") as (b, pilot, key):
        await pilot.press(key, "1", "2", "enter")
        await pilot.pause()
        assert b.main.chunks.cursor == 11
        assert b.marks == []
        await pilot.press(key, "9", "9", "enter")
        await pilot.pause()
        assert b.status == "no row 99 here"


async def test_digits_look(action: Any) -> None:
    async with action("digits-look") as (b, pilot, _key):
        b.main.perform("digits-look")
        await pilot.press("3")
        assert (b.main.chunks.cursor, b.marks) == (2, [])
        await pilot.press("3")
        assert b.marks == ["3"]


async def test_next_pane(action: Any) -> None:
    async with action("next-pane") as (b, pilot, key):
        await pilot.press(key)
        assert b.main.panes.focus == "text"


async def test_previous_pane(action: Any) -> None:
    async with action("previous-pane") as (b, pilot, key):
        await pilot.press("tab", key)
        assert b.main.panes.focus == "chunks"

"""Moving through rows, text and questions. One test an action."""

from __future__ import annotations

from typing import Any


async def test_down(action: Any) -> None:
    async with action("down") as (b, pilot, key):
        await pilot.press(key)
        assert b.main.chunks.cursor == 1
        assert b.session.rows()[1].seen
        assert not b.session.rows()[2].seen


MOVES = {
    "up": ("j j", "", "row", 1),
    "first": ("j j", "", "row", 0),
    "top": ("j j", "g", "row", 0),
    "last": ("", "", "row", 11),
    "next-marked": ("3", "", "row", 2),
    "previous-marked": ("3 5", "", "row", 4),
    "page-down": ("", "", "line", 8),  # of 24 lines the text has 17 beside one row
    "page-up": ("ctrl+d ctrl+d", "", "line", 8),
    "line-down": ("", "", "line", 1),
    "line-up": ("J J", "", "line", 1),
    "previous-question": ("l l", "", "question", "q-02"),
    "back": ("l l", "", "question", "q-02"),
    "next-pane": ("", "", "pane", "text"),
    "previous-pane": ("tab", "", "pane", "chunks"),
}
"""By action: the keys before its own, the key after it, and the place then, with its kind."""


async def test_each_move_ends_where_it_should(action: Any) -> None:
    for name, (before, after, kind, expected) in MOVES.items():
        async with action(name) as (b, pilot, key):
            await pilot.press(*before.split(), key, *after.split())
            places = {
                "row": b.main.chunks.cursor,
                "line": b.main.text.top,
                "question": b.session.current,
                "pane": b.main.panes.focus,
            }
            assert places[kind] == expected, name


async def test_next_question(action: Any) -> None:
    async with action("next-question") as (b, pilot, key):
        await pilot.press(key)
        assert b.session.current == "q-02"
        assert "case 2" in b.shown()


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

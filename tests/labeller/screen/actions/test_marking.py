"""Marking passages: rows, grades, groups, anchors, snippets. One test an action."""

from __future__ import annotations

from typing import Any

from records.tool_calls import ToolCall


async def test_mark(action: Any) -> None:
    async with action("mark") as (b, pilot, key):
        await pilot.press("j", key)
        assert b.marks == ["2"]
        await pilot.press(key)
        assert b.marks == []


async def test_mark_row(action: Any) -> None:
    async with action("mark-row") as (b, pilot, _key):
        await pilot.press(*"1234567890")
        assert b.marks == [*"123456789", "10"]
        await pilot.press("5")
        assert b.marks == [*"12346789", "10"]


async def test_mark_high_row(action: Any) -> None:
    async with action("mark-high-row") as (b, pilot, key):
        await pilot.press(key)
        assert "(1-9 0, Esc)" in b.shown()
        await pilot.press("2")
        assert b.marks == ["12"]


async def test_range(action: Any) -> None:
    async with action("range") as (b, pilot, key):
        await pilot.press("j", key, "j", "j", "space")
        assert b.marks == ["2", "3", "4"]


async def test_grade_up(action: Any) -> None:
    async with action("grade-up") as (b, pilot, key):
        await pilot.press("space", key)
        assert b.session.rows()[0].grade == 3


async def test_grade_down(action: Any) -> None:
    async with action("grade-down") as (b, pilot, key):
        await pilot.press("space", key)
        assert b.session.rows()[0].grade == 1


async def test_grade(action: Any) -> None:
    async with action("grade") as (b, pilot, key):
        await pilot.press(key, "1")
        assert b.session.rows()[0].grade == 1
        await pilot.press(key, "x")
        assert "takes 0-3" in b.status
        assert b.session.case.get("answerable") is True, "x was swallowed, not done"


async def test_rate_mode(action: Any) -> None:
    async with action("rate-mode") as (b, pilot, key):
        await pilot.press(key, "3", "1", "escape", "3")
        grades = [row.grade for row in b.session.rows()[:2]]
        assert grades == [3, 1]
        assert b.marks == ["1", "2", "3"]


async def test_group(action: Any) -> None:
    async with action("group") as (b, pilot, key):
        await pilot.press("1", "2", key, "2")
        assert b.session.view.needs() == "(2 part07.md) AND (1 part03.md)"
        await pilot.press(key, "0")
        assert b.session.view.needs() == "2 part07.md; not required: 1 part03.md"


async def test_need(action: Any) -> None:
    async with action("need") as (b, pilot, key):
        await pilot.press("1", key, "'", "2", key, "1", "3")
        assert b.session.view.needs() == "(1 part03.md or 3 part02.md) AND (2 part07.md)"
        shown = " ".join(b.shown().split())
        assert "needs: (1 part03.md or 3 part02.md) AND (2 part07.md) marks join need 1" in shown
        await pilot.press(key, "0", "4")
        assert "; not required: 4 part" in b.session.view.needs()
        await pilot.press(key, "7")
        assert "There is no need 7" in b.status
        await pilot.press(key)
        assert "(1-9 0 ', Esc)" in b.shown()


async def test_next_need(action: Any) -> None:
    async with action("next-need") as (b, pilot, key):
        await pilot.press("1", "M", "2", key)
        assert b.session.layout.open == 1
        await pilot.press(key, "M", "enter")
        assert b.session.current == "q-01"
        assert "Need 3 has no passage yet" in b.status


async def test_previous_need(action: Any) -> None:
    async with action("previous-need") as (b, pilot, key):
        await pilot.press("1", "M", "2", "M", "3", key)
        assert b.session.layout.open == 2


async def test_turn_needs(action: Any) -> None:
    async with action("turn-needs") as (b, pilot, _key):
        await pilot.press("1", "2")
        b.main.perform("turn-needs")
        await pilot.pause()
        assert "ways: (1 part03.md) or (2 part07.md)" in b.shown()


async def test_share(action: Any) -> None:
    async with action("share") as (b, pilot, key):
        await pilot.press("1", key, "2")
        assert b.session.rows()[0].parts == (1, 2)
        await pilot.press("M", "2", "up", key, "&")
        assert b.session.rows()[0].parts == (1, 2, 3)


async def test_shorten(action: Any) -> None:
    async with action("shorten") as (b, pilot, key):
        await pilot.press("1", key)
        heading = b.session.rows()[0].chunk.heading_path.split(" > ")[0]
        assert b.session.supports()[0].heading_path == heading


async def test_lengthen(action: Any) -> None:
    async with action("lengthen") as (b, pilot, key):
        await pilot.press("1", "<", "<", key)
        heading = b.session.rows()[0].chunk.heading_path.split(" > ")[0]
        assert b.session.supports()[0].heading_path == heading


async def test_reanchor(action: Any) -> None:
    async with action("reanchor") as (b, pilot, key):
        await pilot.press("1", "<", key)
        assert b.session.supports()[0].heading_path == b.session.rows()[0].chunk.heading_path


async def test_supports(action: Any) -> None:
    async with action("supports") as (b, pilot, key):
        await pilot.press("1", "2", key)
        assert "The answer needs (1 part03.md or 2 part07.md)." in b.shown()
        await pilot.press("d", "escape")
        assert len(b.session.supports()) == 1
        await pilot.press("u")
        assert len(b.session.supports()) == 2


async def test_next_group(action: Any) -> None:
    async with action("next-group") as (b, pilot, key):
        await pilot.press("1", key, "2")
        assert b.session.view.needs() == "(1 part03.md) AND (2 part07.md)"


async def test_snippets(action: Any) -> None:
    async with action("snippets") as (b, pilot, key):
        await pilot.press(key)
        assert b.app.screen.where == "snippet"


async def test_tools(action: Any) -> None:
    async with action("tools") as (b, pilot, key):
        calls = (
            ToolCall("search", {"query": "hat"}, result="3 hats"),
            ToolCall("delete", error="down"),
        )
        b.session.pool.calls[b.session.current] = calls
        await pilot.press(key)
        assert '> [         ] search(query="hat")  gave 3 hats' in b.shown()
        await pilot.press("space", "j", "x")
        assert b.session.case["expected_tools"] == [
            {"name": "search", "arguments": {"query": "hat"}}
        ]
        assert b.session.case["forbidden_tools"] == ["delete"]
        assert "> [forbidden] delete()  failed: down" in b.shown()
        await pilot.press("escape")
        assert "tool calls 2 (T)" in b.shown()
        assert "expected calls 1" in b.shown()
        await pilot.press("u", "u")
        assert "expected_tools" not in b.session.case

"""Filters, and passages that the retriever missed. One test an action."""

from __future__ import annotations

from typing import Any


async def test_filter(action: Any) -> None:
    async with action("filter") as (b, pilot, key):
        await pilot.press(key, *"billing", "enter")
        await pilot.pause()
        assert [row.chunk.text.count("billing") for row in b.main.chunks.rows] == [1] * 4
        await pilot.press("escape")
        assert len(b.main.chunks.rows) == 12


async def test_next_hit(action: Any) -> None:
    async with action("next-hit") as (b, pilot, key):
        await pilot.press("/", *"billing", "enter")
        await pilot.pause()
        await pilot.press("escape", "home", key)
        assert "billing" in b.main.chunks.row.chunk.text


async def test_previous_hit(action: Any) -> None:
    async with action("previous-hit") as (b, pilot, key):
        await pilot.press("/", *"billing", "enter")
        await pilot.pause()
        await pilot.press("escape", "home", key)
        assert "billing" in b.main.chunks.row.chunk.text
        assert b.main.chunks.cursor > 5


async def test_clear(action: Any) -> None:
    async with action("clear") as (b, pilot, key):
        await pilot.press("v", key, "j", "space")
        assert b.marks == ["2"]
        await pilot.press("m", key, "b")
        assert b.session.rows()[1].parts == (1,)


async def test_probe(action: Any) -> None:
    async with action("probe") as (b, pilot, key):
        await pilot.press(key, *"extend k=50", "enter")
        await pilot.pause()
        assert ("probe", "q-01", "extend", "50") in b.source.asked
        assert b.session.rows()[-1].label == "+1"
        assert "1 new chunk," in b.status


async def test_add_path(action: Any) -> None:
    async with action("add-path") as (b, pilot, key):
        await pilot.press(key, *"part03", "enter")
        await pilot.pause()
        assert [s.rel_path for s in b.session.supports()] == ["guide/part03.md"]
        await pilot.press(key, *"other.md > Free", "enter")
        await pilot.pause()
        assert b.session.supports()[-1].rel_path == "other.md"
        assert b.session.supports()[-1].heading_path == "Free"


async def test_refetch(action: Any) -> None:
    async with action("refetch") as (b, pilot, key):
        await pilot.press("1", key)
        await pilot.pause()
        assert ("refetch", "q-01") in b.source.asked
        assert b.marks == ["1"]

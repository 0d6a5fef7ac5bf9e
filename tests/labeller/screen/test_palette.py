"""The command palette when keys come faster than its search."""

from __future__ import annotations

from typing import Any

from textual.command import CommandList


async def test_a_search_that_begins_when_the_list_is_gone_ends_nothing(bench: Any) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon")
        palette = b.app.screen
        assert palette.query(CommandList), "the palette is open"
        await palette.query_one(CommandList).remove()
        palette._gather_commands("sav")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert b.app._exception is None
        assert b.app.screen is not palette

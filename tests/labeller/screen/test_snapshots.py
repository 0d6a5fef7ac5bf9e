"""A few pictures at 80x24. Everything else asserts on text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

PICTURES = {
    "main": ["2", "M", "7", "j"],
    "form": ["e"],
    "snippets": ["t", "j", "space"],
    "help": ["?"],
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture(bench: Any, snap_compare: Callable[..., bool], name: str) -> None:
    async def press(pilot: Pilot[None]) -> None:
        await pilot.press(*PICTURES[name])
        fields: list[Any] = list(pilot.app.screen.query("Input, TextArea"))
        for field in fields:
            field.cursor_blink = False
        await pilot.pause()  # in it comes a blink that was due before
        for field in fields:
            field._cursor_visible = field.has_focus
        await pilot.pause()

    assert snap_compare(bench().app, terminal_size=(80, 24), run_before=press)

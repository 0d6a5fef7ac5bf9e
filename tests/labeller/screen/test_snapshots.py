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
        for widget in pilot.app.screen.query("Input, TextArea"):
            widget.cursor_blink = False  # type: ignore[attr-defined]
        await pilot.pause()

    assert snap_compare(bench().app, terminal_size=(80, 24), run_before=press)

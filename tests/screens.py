"""What a person does at a screen and sees on it."""

from __future__ import annotations

import re
from typing import Any

from tests.key_names import textual_name
from textual.geometry import Size

OWN = re.compile(
    rb"\x1b\[(?:\?[0-9;]+[hl]|\?[0-9;]+\$p|[0-9;]*m|[0-9;]*H|[<>=?]?[0-9;]*u|[0-9;]*t|[0-9;]* q|c)"
    rb"|\x1b\]22;[a-z]*(?:\x1b\\|\x07)|\x1b[=>]|\x1b\[\?u|\x1bP=\d+s\x1b\\|\x1b_G[^\x1b]*\x1b\\"
)
"""Every sequence that Textual writes: modes, cursor, colours, keyboard and mouse reports."""


def shown(app: Any) -> str:
    """The text of the top screen, as it would stand in the terminal."""
    rows = app.screen._compositor.render_strips(Size(*app.size))
    return "\n".join(row.text for row in rows)


async def press(pilot: Any, keys: str) -> None:
    """Press keys with blanks between them; letters behind `~` are typed, `·` for a blank."""
    await _press(pilot, keys)
    await pilot.pause()


async def see(pilot: Any, keys: str, *texts: str) -> None:
    """Press keys; each text is then on the top screen, at once or when it has settled."""
    await _press(pilot, keys)
    if not all(text in shown(pilot.app) for text in texts):
        await pilot.pause()
    screen = shown(pilot.app)
    assert [text for text in texts if text not in screen] == [], screen


async def _press(pilot: Any, keys: str) -> None:
    for key in keys.split():
        typed = key[1:].replace("·", " ") if key[:1] == "~" else [textual_name(key)]
        await pilot.press(*typed)

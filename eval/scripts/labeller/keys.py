"""From keys to actions of the labeller: the table under a keymap, and the digits of the rows."""

from __future__ import annotations

from collections.abc import Mapping

from labeller.actions import actions_of
from terminal import action_screen
from terminal.actions import Keymap

Keys = Mapping[str, tuple[str, str]]
"""Key, as Textual names it, to action id and the argument of that key (mostly empty)."""


def keys_for(where: str, keymap: Keymap) -> Keys:
    """The keys of one screen. The n-th key of `mark-row` carries the label of the n-th row."""
    keys = action_screen.keys_for(actions_of(where), keymap)
    return {
        key: (action.id, str((index + 1) % 10) if action.id == "mark-row" else "")
        for key, (action, index) in keys.items()
    }

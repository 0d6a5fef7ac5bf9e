"""From keys to actions: what the screens look a key press up in, made from the table and a keymap.

Not Textual's bindings: those run one after the other in the app's queue, after the key has bubbled
there, so that the second key of `m b` could overtake the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from textual.binding import Binding

from labeller.actions import Keymap, actions_of, keys_of

Keys = Mapping[str, tuple[str, str]]
"""Key, as Textual names it, to action id and the argument of that key (mostly empty)."""


@runtime_checkable
class Keyed(Protocol):
    """A screen that takes key presses itself."""

    def take_key(self, key: str, character: str) -> bool:
        """Do what the key stands for; False leaves it to Textual."""


def keys_for(where: str, keymap: Keymap) -> Keys:
    """The keys of one screen. The n-th key of `mark-row` carries the label of the n-th row."""
    keys: dict[str, tuple[str, str]] = {}
    for action in actions_of(where):
        for index, key in enumerate(keys_of(action, keymap)):
            argument = str((index + 1) % 10) if action.id == "mark-row" else ""
            for binding in Binding.make_bindings([Binding(key, "")]):
                keys[binding.key] = (action.id, argument)
    return keys

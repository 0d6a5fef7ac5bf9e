"""Actions of a screen as rows of a table: keys, hints, help and palette are read from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar


class ActionRefused(Exception):
    """An action that cannot be done now: one sentence for the status line. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a user can do."""

    id: str
    keys: tuple[str, ...]
    label: str
    """Two or three words, for hints and palette."""
    help: str
    """One sentence for the help page."""
    where: str = "main"
    """The screen that has it; `main` is the one that a keymap file does not name."""
    part: str = "Move"
    """Its heading on the help page."""
    then: str = ""
    """The possible second keys; empty for an action of one key."""
    changes: bool = False
    """Changes labels or cases; refused where nothing may be written."""
    shown: str = ""
    """The keys as the help page shows them; empty for all of them."""


Step = TypeVar("Step")


@dataclass
class UndoSteps(Generic[Step]):
    """Steps that can be undone (the last one last), and those undone that can be redone."""

    done: list[Step] = field(default_factory=list)
    undone: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """A new step: what was undone before it cannot be redone any more."""
        self.done.append(step)
        self.undone.clear()

    def undo(self) -> None:
        """The last step counts as undone. Raises IndexError when there is none."""
        self.undone.append(self.done.pop())

    def redo(self) -> None:
        """The step undone last counts as done. Raises IndexError when there is none."""
        self.done.append(self.undone.pop())


Keymap = Mapping[str, str]
"""Keymap id to keys, separated by commas."""

_SHOWN = {
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "colon": ":",
    "comma": ",",
    "tab": "Tab",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "backspace": "Backspace",
    "left": "Left",
    "right": "Right",
    "up": "Up",
    "down": "Down",
    "home": "Home",
    "end": "End",
    "question_mark": "?",
    "f1": "F1",
    "f3": "F3",
    "f15": "Shift+F3",
    "f5": "F5",
}


def keymap_id(action: Action) -> str:
    """The name of `action` in a keymap file: its id, with the screen before it if not the main."""
    return action.id if action.where == "main" else f"{action.where}.{action.id}"


def keys_of(action: Action, keymap: Keymap) -> list[str]:
    """The keys of `action` under `keymap`, as Textual names them."""
    chosen = keymap.get(keymap_id(action))
    return list(action.keys) if chosen is None else [key.strip() for key in chosen.split(",")]


def shown_key(key: str) -> str:
    """A key as a person reads it: `ctrl+s` is `Ctrl+s`, `pagedown` is `PgDn`."""
    head, plus, tail = key.rpartition("+")
    if plus and head:
        return f"{head.capitalize()}+{_SHOWN.get(tail, tail)}"
    return _SHOWN.get(key, key)

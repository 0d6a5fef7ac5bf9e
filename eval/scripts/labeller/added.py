"""Actions that extras add to the labelling screen and to line mode.

A module of an extra that holds one is read at the start of every session: it imports the table of
actions and this one, and what it opens inside its functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from records import extras
from terminal.actions import Action

Lines = TypeVar("Lines")


@dataclass(frozen=True, slots=True)
class LineCommand(Generic[Lines]):
    """A command of line mode: what may follow it, what it does in one sentence, and the doing."""

    usage: str
    help: str
    do: Callable[[Lines, str], str]


@dataclass(frozen=True, slots=True)
class AddedAction:
    """An action that an extra adds, with the word that does the same in line mode.

    ``run`` gets the main screen, and the command of the line the session of line mode. ``own`` are
    the actions of a screen that it opens, whose name (`Action.where`) is the action's id; ``hints``
    are those of its hint line.
    """

    action: Action
    run: Callable[[Any], object]
    word: str
    line: LineCommand[Any]
    own: tuple[Action, ...] = ()
    hints: str = ""


def added_actions() -> list[AddedAction]:
    """The actions that extras add. Raises StorageError for code that cannot be imported."""
    return [extra.load(reference) for extra, _, reference in extras.added(extras.LABEL_ACTIONS)]

"""The key that settles differences with other annotators, and the keys of the screen it opens."""

from __future__ import annotations

from typing import Any

from labeller.actions import AddedAction, LineCommand
from terminal.actions import Action


def _settle_on_screen(screen: Any) -> None:
    """Open the screen that shows both sides."""
    from extras.annotators.screen import open_screen

    open_screen(screen)


def _settle_in_lines(plain: Any, rest: str) -> str:
    """``D NAME`` lists, ``D NAME 2 union`` chooses, ``D NAME done`` confirms."""
    from extras.annotators.settling import obey

    return obey(plain, rest)


def _own(name: str, keys: str, label: str, text: str) -> Action:
    return Action(name, tuple(keys.split()), label, text, "adjudicate", "Adjudicate")


ADJUDICATE = AddedAction(
    Action(
        "adjudicate",
        ("D",),
        "adjudicate",
        "Resolve differences between two annotators.",
        "main",
        "Program",
        changes=True,
    ),
    _settle_on_screen,
    "D",
    LineCommand(
        "NAME [N CHOICE|done]", "Resolve disagreements with an annotator.", _settle_in_lines
    ),
    own=(
        _own("down", "j down", "next row", "Next difference."),
        _own("up", "k up", "previous row", "Previous difference."),
        _own("take-a", "1", "take A", "Take A's choice; then you see who A and B are."),
        _own("take-b", "2", "take B", "Take what B says."),
        _own("take-both", "3", "union", "Take both: every need that A or B names."),
        _own("take-none", "4", "neither", "Take neither."),
        _own("note", "c", "note", "Write a note to this question."),
        _own("next", "enter", "next", "Keep the choice, go to the next question that differs."),
        _own("undo", "u", "undo", "Undo."),
        _own("help", "? f1", "help", "This page."),
        _own("close", "escape q", "leave", "Back to the questions."),
    ),
    hints="take-a take-b take-both take-none note next undo close",
)

"""The keys of the screen: one table feeds the key presses, the hints and the help page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """``name``: method ``do_<name>`` of the screen. ``keys`` as Textual names them.

    ``hint``: its word on the last line of the screen, "" for none.
    """

    name: str
    keys: tuple[str, ...]
    shown: str
    hint: str
    help: str


ACTIONS = (
    Action(
        "supported",
        ("1", "y"),
        "1 y",
        "supported",
        "supported; every decision goes on to the next open claim",
    ),
    Action(
        "not_supported",
        ("2", "x"),
        "2 x",
        "not",
        "not supported",
    ),
    Action("cannot_tell", ("3", "c"), "3 c", "cannot tell", "you cannot tell"),
    Action("undo", ("u", "backspace", "ctrl+z"), "u", "undo", "take the last label back"),
    Action("redo", ("U", "upper_u", "ctrl+r"), "U", "", "do again what was undone"),
    Action("next_passage", ("right_square_bracket", "tab"), "] Tab", "passage", "the next passage"),
    Action("previous_passage", ("left_square_bracket", "shift+tab"), "[", "", "the passage before"),
    Action("next", ("n", "l", "right"), "n →", "next", "the next claim, nothing is decided"),
    Action("previous", ("p", "h", "left"), "p ←", "back", "the claim before"),
    Action("open", ("enter",), "Enter", "", "the next claim without a label"),
    Action("best", ("w",), "w", "", "the window that holds most words of the claim"),
    Action("down", ("j", "down"), "j ↓", "", "scroll the passage down"),
    Action("up", ("k", "up"), "k ↑", "", "scroll the passage up"),
    Action("page_down", ("pagedown", "space", "ctrl+d"), "PgDn", "", "a page of the passage down"),
    Action("page_up", ("pageup", "ctrl+u"), "PgUp", "", "a page up"),
    Action("answer_down", ("J", "upper_j"), "J", "", "scroll the answer down"),
    Action("answer_up", ("K", "upper_k"), "K", "", "scroll the answer up"),
    Action(
        "verdict",
        ("v",),
        "v",
        "",
        "what the judge said, of a claim you have labelled",
    ),
    Action("help", ("question_mark", "f1"), "? F1", "", "this page"),
    Action("quit", ("q", "ctrl+q"), "q", "quit", "leave; every label is on disk already"),
)
BY_KEY = {key: action.name for action in ACTIONS for key in action.keys}

HINTED = tuple(action for action in ACTIONS if action.hint)
"""What the last line of the screen shows, as far as it fits."""

GUIDELINE = """
How to label, so that everyone labels alike

Supported      The passages alone bear out ALL of the claim: every number, name and condition.
Not supported  Any part of it is missing from the passages, or they say otherwise. That it is true
               in the world does not count.
Cannot tell    The claim cannot be understood, or you lack the knowledge to read the passages.

Read the claim in the light of question and answer: "it" means what it means there. The marked
window is where most of its words stand, found by counting words; the support may stand elsewhere,
in another passage, or nowhere. The judge's verdict is hidden until you have given yours.

Nothing is lost: every key is in your label file before it is shown. u undoes, also after a restart.
"""


def help_text() -> str:
    """The keys, then the guideline."""
    keys = "\n".join(f"{action.shown:<9} {action.help}" for action in ACTIONS)
    return f"Keys (j k PgDn PgUp scroll this page, any other key closes it)\n{keys}\n{GUIDELINE}"

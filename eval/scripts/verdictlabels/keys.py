"""The keys of the screen: one table feeds the key presses, the hints and the help page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from verdictlabels.model import FACTS, Kind, Label


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


_KEYS = (("1", "y"), ("2", "x"), ("3", "c"), ("4", "d"))
"""Of the labels of a kind, in their order."""
_HINTS = {"not_supported": "not"}


def words(label: Label | None) -> str:
    """A label as it is told: "not supported"; "open" for none."""
    return "open" if label is None else label.replace("_", " ")


def hint(label: Label) -> str:
    """A label in as few words as a hint takes."""
    return _HINTS.get(label, words(label))


def _deciding(kind: Kind) -> tuple[Action, ...]:
    """An action a label: ``do_label_1`` and so on."""
    more = "; every decision goes on to the next open one"
    return tuple(
        Action(
            f"label_{place}",
            keys,
            " ".join(keys),
            hint(label),
            words(label) + (more if place == 1 else ""),
        )
        for place, (label, keys) in enumerate(zip(kind.labels, _KEYS, strict=False), 1)
    )


def label_keys(kind: Kind) -> dict[str, Label]:
    """The label that each key gives."""
    pairs = zip(kind.labels, _KEYS, strict=False)
    return {key: label for label, keys in pairs for key in keys}


_COMMON = (
    Action("undo", ("u", "backspace", "ctrl+z"), "u", "undo", "take the last label back"),
    Action("redo", ("U", "upper_u", "ctrl+r"), "U", "", "do again what was undone"),
    Action("next_passage", ("right_square_bracket", "tab"), "] Tab", "passage", "the next passage"),
    Action("previous_passage", ("left_square_bracket", "shift+tab"), "[", "", "the passage before"),
    Action("next", ("n", "l", "right"), "n →", "next", "the next one, nothing is decided"),
    Action("previous", ("p", "h", "left"), "p ←", "back", "the one before"),
    Action("open", ("enter",), "Enter", "", "the next one without a label"),
    Action("best", ("w",), "w", "", "the window that holds most of its words"),
    Action("down", ("j", "down"), "j ↓", "", "scroll the text below down"),
    Action("up", ("k", "up"), "k ↑", "", "scroll it up"),
    Action("page_down", ("pagedown", "space", "ctrl+d"), "PgDn", "", "a page of it down"),
    Action("page_up", ("pageup", "ctrl+u"), "PgUp", "", "a page up"),
    Action("answer_down", ("J", "upper_j"), "J", "", "scroll the text above down"),
    Action("answer_up", ("K", "upper_k"), "K", "", "scroll it up"),
    Action(
        "verdict",
        ("v",),
        "v",
        "",
        "what the judge said, of what you have labelled",
    ),
    Action("help", ("question_mark", "f1"), "? F1", "", "this page"),
    Action("quit", ("q", "ctrl+q"), "q", "quit", "leave; every label is on disk already"),
)


@cache
def actions(kind: Kind) -> tuple[Action, ...]:
    """All actions of the screen; labels first. A fact has but one text below it."""
    common = (one for one in _COMMON if kind is not FACTS or not one.name.endswith("_passage"))
    return (*_deciding(kind), *common)


@cache
def by_key(kind: Kind) -> dict[str, str]:
    """The action's name of each key."""
    return {key: action.name for action in actions(kind) for key in action.keys}


def hinted(kind: Kind) -> list[tuple[str, str]]:
    """What the last line of the screen shows, as far as it fits: key and word."""
    shown = (action for action in actions(kind) if action.hint)
    return [(action.shown.split()[0], action.hint) for action in shown]


_CLAIMS = """
How to label, so that everyone labels alike

Supported      The passages alone bear out ALL of the claim: every
               number, name and condition.
Not supported  Any part of it is missing from the passages, or they say
               otherwise. That it is true in the world does not count.
Cannot tell    The claim cannot be understood, or you lack the
               knowledge to read the passages.

Read the claim in the light of question and answer: "it" means what it
means there. The marked window is where most of its words stand, found by
counting words; the support may stand elsewhere, in another passage, or
nowhere.

"""
_FACTS = """
How to label, so that everyone labels alike

Present        The bot's answer says ALL of the fact, in whatever words:
               every number, name and condition.
Missing        Any part of it is not in the answer, and the answer does
               not say otherwise.
Contradicted   The answer says something that cannot be true if the fact
               is true.
Cannot tell    The fact cannot be understood, or you lack the knowledge
               to read the answer.

The fact comes from the reference answer: read it there for what it means.
Only the bot's answer decides. The best window, which is marked, is where
most of its words stand, found by counting words; it may be said elsewhere,
in other words, or nowhere.

"""
_COMMON_END = """\
The judge's verdict is hidden until you have given yours.

Nothing is lost: every key is in your label file before it is shown. u
undoes, also after a restart.
"""


def guideline(kind: Kind) -> str:
    """How to label items of this kind."""
    return (_FACTS if kind is FACTS else _CLAIMS) + _COMMON_END


def help_text(kind: Kind) -> str:
    """The keys, then the guideline."""
    keys = "\n".join(f"{action.shown:<9} {action.help}" for action in actions(kind))
    return (
        f"Keys (j k PgDn PgUp scroll this page, any other key closes it)\n{keys}\n{guideline(kind)}"
    )

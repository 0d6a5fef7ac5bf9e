"""The one table of actions: bindings, hints, help, command palette and keymap are read from it.

An action's `id` is its name in the keymap file and in the table of functions that do it (`acts`).
Keys are written as Textual names them. An action with `then` waits for one more key out of that
string; the function is called with it. Extras add actions of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from records import extras
from terminal.actions import Action, Keymap, keymap_id, keys_of, shown_key
from terminal.keys import keys_on

Lines = TypeVar("Lines")

KEYS = keys_on("label")
"""Keys of the main screen, by action; those of its modes are in the rows below."""


_MAIN = """\
Mark
!mark | mark | Mark the passage as support of the answer, or unmark it.
!mark-row | mark row | Mark or unmark row 1-10 (0 is row 10).
!mark-high-row:1234567890 | mark row 11-20 | Then 1-0: mark or unmark row 11-20.
!range | range | Start a range: move, then space marks all of it.
!need:1234567890' | open need | Then 1-9: marks join that need; 0: not required; ': a new one.
!next-group | new need | Marks join a new need, as ' twice does.
!next-need | next need | Marks join the next need; the one before is on the other bracket.
!previous-need | need before | Marks join the need before.
!share:1234567890& | also in need | Then 1-9: also counts for that need; &: for the open one; 0:
  for none.
!group:1234567890 | only in need | Then 1-9: assign to that need only; 0: optional.
next-in-group:1234567890 | next of need | Next passage of a need.
!turn-needs | needs or ways | Show needs as ways, (1 and 2) or (3 and 4), and back.
!grade-up | grade up | One grade up (marks the passage).
!grade-down | grade down | One grade down; below 1 it is unmarked.
!grade:0123 | set grade | Then 0-3: set the grade; 1, related, is not required.
!rate-mode | rate mode | Bare 0-3 grade and step down; Esc leaves.
!shorten | wider section | The support names a wider section (heading) each time.
!lengthen | narrower | The support names the narrower section again.
!reanchor | anchor here | Anchor a support whose text was lost here.
supports | what is written | The supports in words, also those not on screen.
!snippets | snippets | Pick the sentences that carry the answer.
!tools | tool calls | Mark expected tool calls, or forbid one.

Decide
!confirm | ok+next | Confirm (accepts a draft); open the next open question.
!unanswerable | no answer | The documents do not contain the answer; on or off.
!answerable | answerable | Answerable; the first mark sets it.
!skip | later | Judge later: the question goes to the end of the queue.
!flag | flag | Flag the question, or remove the flag.
!note | note | Write a note, or say that you cannot tell.
!undo | undo | Undo; as far back as you like.
!redo | redo | Redo the last undone change.

Read and move
read-on | read on | A page down; at the end of the text, the next unread row.
go-to-row | go to row | Then a number and Enter: go to that row and show it.
digits-look | digits look | A digit shows its row first and marks it when pressed again.
down | next row | Go to the next row (or line, in a text).
up | previous row | Go to the previous row (or line, in a text).
first | first | Go to the first row.
top:g | first | Then g: go to the first row.
last | last | Go to the last row.
page-down | text down | Scroll the text half a page down.
page-up | text up | Scroll the text half a page up.
line-down | text line down | Scroll the text one line down.
line-up | text line up | Scroll the text one line up.
next-question | next question | Next question, without confirming this one.
previous-question | previous question | Previous question.
back | back | Back to the question changed before.
next-marked | next marked | Go to the next marked row.
previous-marked | previous marked | Go to the previous marked row.
next-pane | next pane | Next pane: rows, text, questions; conversation, question and needs if long.
previous-pane | previous pane | Previous pane.

Find
filter | filter | Show only rows with these words (focused pane).
next-hit | next hit | Next row or place with the words.
previous-hit | previous hit | Previous row or place with the words.
clear | clear | Cancel a started key, a range or the filter.
!probe | search | Ask the API another question; with > first, as the conversation's next turn.
!add-path | add by path | Add a support by path and heading.
refetch | fetch again | Fetch the passages again; marks follow their text.

Edit
!edit | edit | Edit question, facts, claims, tags, category, difficulty.
!edit-text | edit as text | Edit the whole record in $EDITOR.
!new | new question | Add a question.
!copy | copy question | Add a question copied from this one.
!delete | delete question | Delete this question (asks; undo brings it back).
copy-anchor | copy anchor | Copy path and heading to the clipboard.
copy-text | copy text | Copy the passage's text to the clipboard.

View
toggle-questions | question list | Question list on or off.
zoom | zoom | Show the text, or the focused pane, on the whole screen, and back.
conversation | conversation | The conversation before the question: all of it, or its last two
  lines.
info | rank, scores | Rank and scores on or off (not in blind mode).
order | row order | Next row order: shuffled, rank, path.
!blind | blind mode | Blind mode on or off; the change is recorded.
theme | theme | Dark or light theme.

Program
help | help | This page; Tab turns to the labelling guideline.
palette | commands | Commands by name; a number or id opens it.
!save | save | Write the file now.
suspend | suspend | To the shell; fg there comes back.
redraw | redraw | Draw the screen again.
leave | quit | Leave; everything is saved already.
quit | quit | Leave from anywhere; Ctrl+c twice does it too.
interrupt | quit (twice) | Pressed twice in a row: leave.
"""

_SNIPPETS = """\
Snippets
down=j down | next sentence | Next sentence.
up=k up | previous sentence | Previous sentence.
pick=space | pick | Pick the sentence, or drop it.
inside=v | inside | Choose words inside the sentence; v again ends it.
word-right=w e | word right | One word more.
word-left=b | word left | One word less.
start-right=W | begin later | Let the selection begin one word later.
right=l right | letter right | One letter more.
left=h left | letter left | One letter less.
fact=F | make key fact | Make a key fact of it.
keep=enter | keep | Keep the picked sentences.
help=? f1 | help | This page.
close=escape q | leave | Leave; the picks are dropped.
"""


def _actions(where: str, table: str) -> Iterator[Action]:
    """The actions in a table of rows ``id | label | help``, below the headings of the help page.

    A `!` before the id says that it changes something; keys of its own follow behind `=`, and the
    second ones, if it takes any, behind `:`. Else its keys stand in the table of all screens.
    """
    part = ""
    for line in table.replace("\n  ", " ").splitlines():
        marked, *words = line.split(" | ")
        if not words:
            part = marked or part
            continue
        (name, _, own), (label, text) = marked.removeprefix("!").partition("="), words
        name, _, then = name.partition(":")
        keys = tuple(own.split()) or KEYS.get(name, ())
        yield Action(name, keys, label, text, where, part, then, marked.startswith("!"))


ACTIONS: Final = (*_actions("main", _MAIN), *_actions("snippet", _SNIPPETS))
"""The actions of the core."""

_OF_PASSAGES = ("Mark", "Decide", "Read and move", "Find")
"""Parts whose actions are about passages, but for those below."""

_WITHOUT_PASSAGES = frozenset(
    (
        *("flag", "undo", "redo", "next-question", "previous-question", "back"),
        *("next-pane", "previous-pane", "filter", "clear", "probe", "refetch"),
    )
)


_MOVES = frozenset(
    ("down", "up", "first", "top", "last", "page-down", "page-up", "next-hit", "previous-hit")
)
"""Actions that move in the pane that has the focus, whatever it is."""


def needs_passages(action: Action, pane: str) -> bool:
    """Is the action of the main screen, with the focus on `pane`, about passages?

    Such an action waits until they are there.
    """
    if pane == "questions" and action.id == "confirm":  # opens the question of the row
        return False
    if pane not in ("chunks", "text") and action.id in _MOVES:
        return False
    return action.part in _OF_PASSAGES and action.id not in _WITHOUT_PASSAGES


HINTS = {
    "main": (
        "mark mark-row confirm unanswerable read-on need skip undo probe flag edit new filter "
        "mark-high-row go-to-row"
    ),
    "snippet": "pick inside fact keep close",
}
"""Actions of the hint line, most needed first; `help` is always added at its right end."""


@dataclass(frozen=True, slots=True)
class LineCommand(Generic[Lines]):
    """A command of line mode: what may follow it, what it does in one sentence, and the doing.

    Without a sentence that of the key of the same name is shown.
    """

    usage: str
    help: str
    do: Callable[[Lines, str], str | None]


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


def all_actions() -> list[Action]:
    """The actions of all screens in the order of the table, then those that extras add."""
    added = [action for each in added_actions() for action in (each.action, *each.own)]
    return [*ACTIONS, *added]


def actions_of(where: str) -> list[Action]:
    """The actions of one screen, in the order of the table."""
    return [action for action in all_actions() if action.where == where]


def hints_of(where: str) -> list[str]:
    """The ids of the actions of a screen's hint line."""
    return {**HINTS, **{each.action.id: each.hints for each in added_actions()}}[where].split()


def keymap_problems(keymap: Keymap) -> list[str]:
    """The faults of a keymap, one sentence each: unknown names, one key for two actions."""
    actions = {keymap_id(action): action for action in all_actions()}
    problems = []
    for name in (name for name in keymap if name not in actions):
        missing = extras.missing(extras.LABEL_ACTIONS, name.partition(".")[0])
        unknown = f"`{name}` is not an action; the actions are: {', '.join(actions)}"
        problems.append(f"keymap: `{name}`: {missing}." if missing else f"keymap: {unknown}")
    taken: dict[tuple[str, str], str] = {}
    for name, action in actions.items():
        for key in keys_of(action, keymap):
            other = taken.setdefault((action.where, key), name)
            if other != name:
                problems.append(f"keymap: key `{key}` is bound to both `{other}` and `{name}`")
    return problems


def hint_parts(where: str, keymap: Keymap) -> Iterable[tuple[str, str]]:
    """`(key, label)` pairs for the hint line of a screen."""
    actions = {action.id: action for action in actions_of(where)}
    for name in hints_of(where):
        action = actions[name]
        keys = keys_of(action, keymap)
        if name == "mark-row" and len(keys) == 10:
            yield f"{keys[0]}-{keys[-1]}", "row"
        elif name == "mark-high-row" and keys:
            yield f"{shown_key(keys[0])}1-{shown_key(keys[0])}0", "row 11-20"
        elif name == "need" and keys:
            yield f"{shown_key(keys[0])}{shown_key(keys[0])}", "new need"
        elif keys:
            yield shown_key(keys[0]), action.label

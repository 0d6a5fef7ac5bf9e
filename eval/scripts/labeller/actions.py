"""The one table of actions: bindings, hints, help, command palette and keymap are read from it.

An action's `id` is its name in the keymap file and in the table of functions that do it
(`labeller.commands` for the main screen). Keys are written as Textual names them. An action with
`then` waits for one more key out of that string; the function is called with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from terminal.actions import Action, Keymap, keymap_id, keys_of, shown_key

GROUPS = "abcde"
"""Letters of the support groups that have a key."""


def _part(part: str, where: str, *rows: tuple[str, str, str, str]) -> list[Action]:
    """Rows are `(id, keys, label, help)`; `keys` separated by spaces, `:xyz` at the end for `then`,
    a `!` before the id when it changes something."""
    actions = []
    for name, keys, label, text in rows:
        names, _, then = keys.partition(":")
        actions.append(
            Action(
                name.removeprefix("!"),
                tuple(names.split()),
                label,
                text,
                where,
                part,
                then,
                name.startswith("!"),
            )
        )
    return actions


ACTIONS: tuple[Action, ...] = (
    *_part(
        "Mark",
        "main",
        ("!mark", "space", "mark", "Mark the chunk as support of the answer, or unmark it."),
        (
            "!mark-row",
            "1 2 3 4 5 6 7 8 9 0",
            "mark row",
            "Mark or unmark row 1-10 (0 is row 10).",
        ),
        ("!mark-high-row", ".:1234567890", "mark row 11-20", ". 1-0: mark row 11-20."),
        ("!range", "v", "range", "Start a range: move, then space marks all of it."),
        ("!grade-up", "+ =", "grade up", "One grade up (marks the chunk)."),
        ("!grade-down", "-", "grade down", "One grade down; below 1 it is unmarked."),
        ("!grade", "r:0123", "set grade", "r 0-3: set the grade."),
        ("!rate-mode", "R", "rate mode", "Bare 0-3 grade and step down; Esc leaves."),
        ("!group", f"m:{GROUPS}", "put in group", "m a-e: put the chunk into group A-E."),
        ("!next-group", "M", "next group", "Start the next group for the marks that follow."),
        ("!share", f"&:{GROUPS}", "also in group", "& a-e: the chunk counts in that group too."),
        (
            "!shorten",
            "<",
            "wider section",
            "The support names a wider section (heading) each time.",
        ),
        ("!lengthen", ">", "narrower", "The support names the narrower section again."),
        ("!reanchor", "@", "anchor here", "A support whose text was lost is here now."),
        ("supports", "w", "what is written", "The supports in words, also those not on screen."),
        ("!snippets", "t", "snippets", "Pick the sentences that carry the answer."),
    ),
    *_part(
        "Decide",
        "main",
        ("!confirm", "enter", "ok+next", "Confirm (accepts a draft); open the next open question."),
        ("!unanswerable", "x", "no answer", "The documents do not hold the answer; on or off."),
        ("!answerable", "a", "answerable", "Answerable; set by itself at the first mark."),
        ("!skip", "s", "later", "Judge later: the question goes to the end of the queue."),
        ("!flag", "f", "flag", "Flag the question, or take the flag away."),
        ("!note", "c", "note", "Write a note; also where you say that you cannot tell."),
        ("!undo", "u backspace ctrl+z", "undo", "Undo; as far back as you like."),
        ("!redo", "U ctrl+r", "redo", "Do again what was undone."),
    ),
    *_part(
        "Move",
        "main",
        ("down", "j down", "next chunk", "Go to the next chunk (or line, in the text)."),
        ("up", "k up", "previous chunk", "Go to the previous chunk (or line, in the text)."),
        ("first", "home", "first", "Go to the first row."),
        ("top", "g:g", "first", "g g: go to the first row."),
        ("last", "G end", "last", "Go to the last row."),
        ("page-down", "pagedown ctrl+d", "text down", "Scroll the text half a page down."),
        ("page-up", "pageup ctrl+u", "text up", "Scroll the text half a page up."),
        ("line-down", "J", "text line down", "Scroll the text one line down."),
        ("line-up", "K", "text line up", "Scroll the text one line up."),
        ("next-question", "l right", "next question", "Next question; nothing is confirmed."),
        ("previous-question", "h left", "previous question", "Previous question."),
        ("back", "ctrl+o", "back", "Back to the question changed before."),
        ("next-marked", "} ctrl+down", "next marked", "Go to the next marked chunk."),
        ("previous-marked", "{ ctrl+up", "previous marked", "Go to the previous marked chunk."),
        ("next-in-group", f"':{GROUPS}", "next of group", "' a-e: next chunk of that group."),
        ("next-pane", "tab", "next pane", "Next pane: chunks, text, questions."),
        ("previous-pane", "shift+tab", "previous pane", "Previous pane."),
    ),
    *_part(
        "Find",
        "main",
        ("filter", "/", "filter", "Show only rows that hold these words (focused pane)."),
        ("next-hit", "n", "next hit", "Next row that holds the words."),
        ("previous-hit", "N", "previous hit", "Previous row that holds the words."),
        ("clear", "escape", "clear", "Drop a started key, a range or the filter."),
        ("!probe", "p", "search", "Ask the API another question; new chunks come as +1, +2."),
        ("!add-path", "P", "add by path", "Add a support by path and heading."),
        ("refetch", "f5", "fetch again", "Fetch the chunks again; marks follow their text."),
    ),
    *_part(
        "Edit",
        "main",
        ("!edit", "e", "edit", "Edit question, facts, claims, tags, category, difficulty."),
        ("!edit-text", "E", "edit as text", "Edit the whole record in $EDITOR."),
        ("!new", "o", "new question", "Add a question."),
        ("!copy", "O", "copy question", "Add a question copied from this one."),
        ("!delete", "", "delete question", "Delete this question (asks; undo brings it back)."),
        ("copy-anchor", "y", "copy anchor", "Copy path and heading to the clipboard."),
        ("copy-text", "Y", "copy text", "Copy the chunk's text to the clipboard."),
    ),
    *_part(
        "View",
        "main",
        ("toggle-questions", "b", "question list", "Question list on or off."),
        ("zoom", "z", "zoom text", "Text on the whole screen and back; all of a long text."),
        ("info", "i", "rank, scores", "Rank and scores on or off (not in blind mode)."),
        ("order", "S", "row order", "Next row order: shuffled, rank, path."),
        ("!blind", "B", "blind mode", "Blind mode on or off; the change is recorded."),
        ("theme", "", "theme", "Dark or light theme."),
    ),
    *_part(
        "Program",
        "main",
        ("!adjudicate", "D", "adjudicate", "Settle where two annotators differ."),
        ("help", "? f1", "help", "This page; Tab turns to the labelling guideline."),
        ("palette", "colon ctrl+p", "commands", "Commands by name; a number or id opens it."),
        ("!save", "ctrl+s", "save", "Write the file now."),
        ("redraw", "ctrl+l", "redraw", "Draw the screen again."),
        ("leave", "q", "quit", "Leave; all is saved, nothing is asked."),
        ("quit", "ctrl+q", "quit", "Leave from anywhere; Ctrl+c twice does it too."),
        ("interrupt", "ctrl+c", "quit (twice)", "Pressed twice in a row: leave."),
    ),
    *_part(
        "Snippets",
        "snippet",
        ("down", "j down", "next sentence", "Next sentence."),
        ("up", "k up", "previous sentence", "Previous sentence."),
        ("pick", "space", "pick", "Pick the sentence, or drop it."),
        ("inside", "v", "inside", "Choose words inside the sentence; v again ends it."),
        ("word-right", "w e", "word right", "One word more."),
        ("word-left", "b", "word left", "One word less."),
        ("start-right", "W", "begin later", "Let the selection begin one word later."),
        ("right", "l right", "letter right", "One letter more."),
        ("left", "h left", "letter left", "One letter less."),
        ("fact", "F", "make key fact", "Make a key fact of it."),
        ("keep", "enter", "keep", "Keep the picked sentences."),
        ("help", "? f1", "help", "This page."),
        ("close", "escape q", "leave", "Leave; the picks are dropped."),
    ),
    *_part(
        "Adjudicate",
        "adjudicate",
        ("down", "j down", "next row", "Next difference."),
        ("up", "k up", "previous row", "Previous difference."),
        ("take-a", "1", "take A", "Take what A says."),
        ("take-b", "2", "take B", "Take what B says."),
        ("take-both", "3", "union", "Take both."),
        ("take-none", "4", "neither", "Take neither."),
        ("note", "c", "note", "Write a note to this question."),
        ("next", "enter", "next", "Keep the choice, go to the next question that differs."),
        ("undo", "u", "undo", "Undo."),
        ("help", "? f1", "help", "This page."),
        ("close", "escape q", "leave", "Back to the questions."),
    ),
)

HINTS = {
    "main": "mark mark-row confirm unanswerable skip undo probe flag edit new filter mark-high-row",
    "snippet": "pick inside fact keep close",
    "adjudicate": "take-a take-b take-both take-none note next undo close",
}
"""Actions of the hint line, most needed first; `help` is always added at its right end."""


def actions_of(where: str) -> list[Action]:
    """The actions of one screen, in the order of the table."""
    return [action for action in ACTIONS if action.where == where]


def keymap_problems(keymap: Keymap) -> list[str]:
    """What is wrong with a keymap, one sentence each: unknown names, one key for two actions."""
    actions = {keymap_id(action): action for action in ACTIONS}
    names = ", ".join(actions)
    problems = [
        f"keymap: `{name}` is no action; the actions are: {names}"
        for name in keymap
        if name not in actions
    ]
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
    for name in HINTS[where].split():
        action = actions[name]
        keys = keys_of(action, keymap)
        if name == "mark-row" and len(keys) == 10:
            yield f"{keys[0]}-{keys[-1]}", "row"
        elif name == "mark-high-row":
            yield f"{keys[0]}{action.then[0]}-{keys[0]}{action.then[-1]}", "row 11-20"
        elif keys:
            yield shown_key(keys[0]), action.label

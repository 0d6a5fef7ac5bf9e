"""The one table of keys of all screens: what a key does in the labeller, the browser, the claims.

A row is one key, or several that do the same everywhere, and the id of its action on each screen
(empty: the key does nothing there). A key stands in one row only, so that what it means on one
screen can be seen beside what it means on the others. The tables of actions of the screens say what
an action is called and does; they take its keys from here.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class KeyRow(NamedTuple):
    """Keys as Textual names them, and the action on each screen.

    `lists` and `pages` are the browser's: its lists of runs and cases, and its pages of one case.
    """

    keys: str
    label: str = ""
    lists: str = ""
    pages: str = ""
    claims: str = ""


KEYS: Final = (
    # moving
    KeyRow("j down", "down", "down", "down", "down"),
    KeyRow("k up", "up", "up", "up", "up"),
    KeyRow("J", "line-down", "", "down", "answer-down"),
    KeyRow("K", "line-up", "", "up", "answer-up"),
    KeyRow("pagedown ctrl+d", "page-down", "page-down", "page-down", "page-down"),
    KeyRow("pageup ctrl+u", "page-up", "page-up", "page-up", "page-up"),
    KeyRow("ctrl+f", "", "page-down", "page-down"),
    KeyRow("ctrl+b", "", "page-up", "page-up"),
    KeyRow("home", "first", "first", "first", "first"),
    KeyRow("g", "top", "top", "top", "top"),
    KeyRow("G end", "last", "last", "last", "last"),
    KeyRow("l right", "next-question", "", "next", "next"),
    KeyRow("h left", "previous-question", "", "previous", "previous"),
    KeyRow("} ctrl+down", "next-marked", "next-failing", "next-failing"),
    KeyRow("{ ctrl+up", "previous-marked", "previous-failing", "previous-failing"),
    KeyRow("ctrl+o", "back"),
    KeyRow("tab", "next-pane", "", "part", "next-passage"),
    KeyRow("shift+tab", "previous-pane", "", "part-back", "previous-passage"),
    KeyRow("]", "", "", "", "next-passage"),
    KeyRow("[", "", "", "", "previous-passage"),
    KeyRow(".", "read-on", "read-on", "read-on", "read-on"),
    KeyRow(";", "go-to-row", "go-to-row"),
    # deciding
    KeyRow("enter", "confirm", "open", "", "open"),
    KeyRow("space", "mark", "mark", "page-down", "page-down"),
    KeyRow("1", "mark-row", "", "base", "label-1"),
    KeyRow("2", "mark-row", "", "new", "label-2"),
    KeyRow("3", "mark-row", "", "", "label-3"),
    KeyRow("4", "mark-row", "", "", "label-4"),
    KeyRow("5", "mark-row", "", "", "label-5"),
    KeyRow("6", "mark-row", "", "", "label-6"),
    KeyRow("7", "mark-row", "", "", "label-7"),
    KeyRow("8", "mark-row", "", "", "label-8"),
    KeyRow("9", "mark-row", "", "", "label-9"),
    KeyRow("0", "mark-row", "", "", "label-0"),
    KeyRow("comma", "mark-high-row"),
    KeyRow("'", "need"),
    KeyRow("&", "share"),
    KeyRow("m", "group"),
    KeyRow("M", "next-group"),
    KeyRow(")", "next-need"),
    KeyRow("(", "previous-need"),
    KeyRow("v", "range", "", "", "verdict"),
    KeyRow("+ =", "grade-up"),
    KeyRow("-", "grade-down"),
    KeyRow("r", "grade", "", "raw"),
    KeyRow("R", "rate-mode", "read-again", "read-again"),
    KeyRow("<", "shorten"),
    KeyRow(">", "lengthen"),
    KeyRow("@", "reanchor"),
    KeyRow("x", "unanswerable", "", "", "label-2"),
    KeyRow("a", "answerable", "everything"),
    KeyRow("s", "skip", "", "", "later"),
    KeyRow("c", "note", "note", "note", "note"),
    KeyRow("f", "flag", "flag", "flag", "flag"),
    KeyRow("t", "snippets"),
    # undo
    KeyRow("u backspace", "undo", "undo", "undo", "undo"),
    KeyRow("U ctrl+r", "redo", "redo", "redo", "redo"),
    # finding
    KeyRow("/", "filter", "filter", "search", "search"),
    KeyRow("n", "next-hit", "slices", "next-hit", "label-2"),
    KeyRow("N", "previous-hit", "", "previous-hit"),
    KeyRow("f3", "next-hit", "", "next-hit", "next-hit"),
    # Textual has no name of its own for Shift+F3: terminals send the F15 of old keyboards.
    KeyRow("f15 shift+f3", "previous-hit", "", "previous-hit", "previous-hit"),
    KeyRow("p", "probe"),
    KeyRow("P", "add-path"),
    KeyRow("f5", "refetch"),
    KeyRow("w", "supports", "", "pane", "best"),
    # taking out
    KeyRow("y", "copy-anchor", "copy-id", "copy-id", "label-1"),
    KeyRow("Y", "copy-text", "copy-case", "copy-case", "copy-claim"),
    KeyRow("X", "", "export"),
    KeyRow("E", "edit-text", "", "edit-text"),
    # editing
    KeyRow("e", "edit"),
    KeyRow("o", "new"),
    KeyRow("O", "copy"),
    # the view
    KeyRow("b", "toggle-questions"),
    KeyRow("z", "zoom", "", "full", "zoom"),
    KeyRow("i", "info"),
    KeyRow("H", "conversation", "", "conversation"),
    KeyRow("S", "order", "sort"),
    KeyRow("B", "blind"),
    KeyRow("A", "", "group"),
    KeyRow("T", "tools", "", "trend"),
    KeyRow("C", "", "columns"),
    KeyRow("F", "", "failing"),
    KeyRow("!", "", "success"),
    # programs
    KeyRow("D", "", "compare"),
    KeyRow("L", "", "label", "label"),
    KeyRow("? f1", "help", "help", "help", "help"),
    KeyRow("colon ctrl+p", "palette", "palette", "palette", "palette"),
    KeyRow("ctrl+z", "suspend", "suspend", "suspend", "suspend"),
    KeyRow("ctrl+l", "redraw", "redraw", "redraw", "redraw"),
    KeyRow("ctrl+s", "save"),
    KeyRow("escape", "clear", "back", "back", "leave"),
    KeyRow("q", "leave", "leave", "leave", "leave"),
    KeyRow("ctrl+q", "quit", "quit", "quit", "quit"),
    KeyRow("ctrl+c", "interrupt"),
)


def keys_on(screen: str) -> dict[str, tuple[str, ...]]:
    """Each action of a screen (``label``, ``lists``, ``pages``, ``claims``) with its keys."""
    keys: dict[str, tuple[str, ...]] = {}
    for row in KEYS:
        action = getattr(row, screen)
        if action:
            keys[action] = (*keys.get(action, ()), *row.keys.split())
    return keys

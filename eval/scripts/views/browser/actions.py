"""The one table of actions of the browser: keys, hints, help and command palette are read from it.

An action's `id` with `-` as `_` is the method `do_<id>` of the screens that it belongs to. Keys are
the labeller's wherever both do the same.
"""

from __future__ import annotations

from terminal.actions import Action, shown_key

RUNS, CASES, FLIPS, CASE, PAIR = "runs", "cases", "flips", "case", "pair"

LISTS = f"{RUNS} {CASES} {FLIPS}"

TEXTS = f"{CASE} {PAIR}"

ALL = f"{LISTS} {TEXTS}"

_ROWS = (
    # screens, part, id, keys, label, help
    (LISTS, "Move", "down", "down j", "down", "Next row."),
    (LISTS, "Move", "up", "up k", "up", "Previous row."),
    (LISTS, "Move", "page-down", "pagedown ctrl+d ctrl+f", "page down", "A page down."),
    (LISTS, "Move", "page-up", "pageup ctrl+u ctrl+b", "page up", "A page up."),
    (LISTS, "Move", "first", "home", "first", "First row."),
    (LISTS, "Move", "top", "g:g", "first", "g g: first row."),
    (LISTS, "Move", "last", "G end", "last", "Last row."),
    (RUNS, "Open", "open", "enter l right", "cases", "Open the run: its cases."),
    (CASES, "Open", "open", "enter l right", "open case", "Show the case: answer, chunks, trace."),
    (FLIPS, "Open", "open", "enter l right", "open pair", "Show both answers to this case."),
    (RUNS, "Open", "mark", "space", "mark", "Mark the run as the one to compare others with."),
    (RUNS, "Open", "compare", "d", "compare", "Flips between the marked run (base) and this one."),
    (CASES, "Open", "compare", "d", "compare", "Flips between another run (base) and this one."),
    (f"{CASES} {FLIPS}", "Move", "next", "n", "next failing", "Next case that fails."),
    (f"{CASES} {FLIPS}", "Move", "previous", "p N", "previous failing", "Previous one."),
    (f"{CASES} {FLIPS}", "Choose", "filter", "/", "filter", "Filter by words, columns, scores."),
    (f"{CASES} {FLIPS}", "Choose", "failing", "f", "failing", "Failing cases only, or all again."),
    (f"{CASES} {FLIPS}", "Choose", "sort", "s", "sort", "Sort by a column; click a heading too."),
    (f"{CASES} {FLIPS}", "Choose", "reverse", "S", "reverse", "Reverse the order."),
    (f"{CASES} {FLIPS}", "Choose", "columns", "c", "columns", "Choose the metrics to show."),
    (f"{CASES} {FLIPS}", "Choose", "success", "!", "success", "Say what counts as success."),
    (FLIPS, "Choose", "everything", "a", "all/flips", "All cases of both runs, or flips only."),
    (TEXTS, "Move", "down", "down j J", "down", "A line down."),
    (TEXTS, "Move", "up", "up k K", "up", "A line up."),
    (TEXTS, "Move", "page-down", "pagedown space ctrl+d ctrl+f", "page down", "A page down."),
    (TEXTS, "Move", "page-up", "pageup ctrl+u ctrl+b", "page up", "A page up."),
    (TEXTS, "Move", "first", "home", "start", "To the start."),
    (TEXTS, "Move", "top", "g:g", "start", "g g: to the start."),
    (TEXTS, "Move", "last", "G end", "end", "To the end."),
    (TEXTS, "Move", "part", "tab", "next part", "To the next part of the page."),
    (TEXTS, "Move", "part-back", "shift+tab", "part before", "To the part before."),
    (TEXTS, "Move", "pane", "w", "other side", "Wide windows: let keys scroll the other side."),
    (TEXTS, "Move", "next", "n l right", "next case", "Next case of the list."),
    (TEXTS, "Move", "previous", "p N", "case before", "Case before it in the list."),
    (CASE, "Look", "full", "z", "full text", "Chunks in full, or their beginnings again."),
    (CASE, "Look", "raw", "r", "raw JSON", "The result as it stands in the file, and back."),
    (PAIR, "Look", "base", "1", "base", "The case in the base run, with its chunks."),
    (PAIR, "Look", "new", "2", "new", "The case in the new run, with its chunks."),
    (f"{CASES} {CASE} {FLIPS} {PAIR}", "Look", "label", "L", "label", "Label this case."),
    (ALL, "Tool", "back", "escape q", "back", "Back; from the first screen: leave."),
    (f"{CASES} {FLIPS} {TEXTS}", "Tool", "left", "left h", "back", "Back."),
    (ALL, "Tool", "help", "question_mark f1", "help", "Keys and filter language."),
    (ALL, "Tool", "palette", "colon ctrl+p", "commands", "Commands by name."),
    (ALL, "Tool", "redraw", "ctrl+l", "redraw", "Draw the screen again."),
    (ALL, "Tool", "theme", "t", "light/dark", "Light or dark colours."),
    (ALL, "Tool", "quit", "ctrl+q", "quit", "Leave from anywhere."),
)

HINTS = {
    RUNS: "open mark compare theme back",
    CASES: "open filter failing sort next compare label columns back",
    FLIPS: "open filter everything sort success label back",
    CASE: "part next previous full raw label back",
    PAIR: "part next previous base new label back",
}
"""Actions of the hint line, most needed first."""


def _table() -> dict[str, dict[str, Action]]:
    table: dict[str, dict[str, Action]] = {}
    for screens, part, name, keys, label, text in _ROWS:
        names, _, then = keys.partition(":")
        for where in screens.split():
            action = Action(name, tuple(names.split()), label, text, where, part, then)
            table.setdefault(where, {})[name] = action
    return table


ACTIONS = _table()
"""By screen and id."""


def key_names(action: Action) -> str:
    """The keys of an action as a person reads them."""
    shown = map(shown_key, action.keys)
    return " ".join(f"{key} {action.then}" if action.then else key for key in shown)

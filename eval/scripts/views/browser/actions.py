"""The one table of actions of the browser: keys, hints, help and command palette are read from it.

Each screen says in `acts` what its actions do; those that all screens have are here. Keys are the
labeller's wherever both do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from terminal.action_screen import ActionScreen, Acts
from terminal.actions import Action, ActionRefused, shown_key
from terminal.help import HelpPage, HelpScreen, HelpText, keys_page
from terminal.safe_text import one_line
from terminal.windows import Ask
from views.browser.model import Library
from views.browser.query import KEYWORDS
from views.browser.rules import RULES

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

FOOT = "Tab keys / filters and signs   PgDn PgUp, j k scroll   Esc back"

PARTS = ("Open", "Choose", "Look", "Move", "Tool")
"""Parts of the help page of keys, in their order."""


class Browser(Protocol):
    """What every screen asks the application for."""

    library: Library

    def is_first(self, screen: ActionScreen[Any]) -> bool:
        """Did the program begin with this screen? Leaving it leaves the program."""

    def turn_theme(self) -> None:
        """Dark to light and back."""

    def open_palette(self) -> None:
        """Show the actions by name."""

    def label(self, command: Sequence[str]) -> str:
        """Give the terminal to a command. Returns what went wrong, or nothing."""


def common_acts(
    screen: ActionScreen[Any], browser: Browser, where: str, close: Callable[[], object]
) -> Acts:
    """What the actions do that all screens have; `close` takes this screen away."""
    is_first = browser.is_first(screen)
    return {
        "back": screen.app.exit if is_first else close,
        "left": (lambda: None) if is_first else close,
        "quit": screen.app.exit,
        "redraw": screen.redraw_all,
        "theme": browser.turn_theme,
        "help": lambda: screen.app.push_screen(_help_screen(where)),
        "palette": browser.open_palette,
    }


def label_case(screen: ActionScreen[Any], browser: Browser, run_id: str, case_id: str) -> None:
    """Hand the terminal to the labeller, and come back; or say why not."""
    command = browser.library.label_command(run_id, case_id)
    if isinstance(command, str):
        raise ActionRefused(command)

    def closed(answer: str | None) -> None:
        if answer:
            screen.say(browser.label(command), "warn")

    text = (
        f"The labeller opens {one_line(case_id, 100)} with this run's chunks.\n"
        "q leaves it and comes back here."
    )
    screen.app.push_screen(Ask(text, {"enter": "start it"}), closed)


def key_names(action: Action) -> str:
    """The keys of an action as a person reads them."""
    shown = map(shown_key, action.keys)
    return " ".join(f"{key} {action.then}" if action.then else key for key in shown)


def _guide() -> HelpPage:
    page = HelpText()
    page.heading("Filter (/): terms side by side must all hold")
    for word, says in KEYWORDS.items():
        page.row(word, says)
    page.row("category=factual", "difficulty, query_type, answerable: of the case")
    page.row("status=ok", "error, abstained, id: of the result")
    page.row("tag=lists", "one of the tags; flag=late: one of the answer's flags")
    page.row("recall@5<1", "any metric; = != < <= > >=; =none: not scored")
    page.row("latency>500", "milliseconds; also confidence, cost, repeat")
    page.row('"two words" word', "in the question or the case id")
    page.row("-failing -tag=lists", "a minus negates a term")
    page.heading("A case fails when (! sets another condition)")
    for rule in RULES:
        page.row(rule.word, rule.says)
    page.heading("Signs")
    page.row("✓ + supported", "a claim of the answer that the retrieved chunks hold")
    page.row("✗ x not supported", "they do not; the support rules see words, no meaning")
    page.row("‼ ! contradicted", "a judge found the opposite in them")
    page.row("? unclear  · skipped", "no clear verdict; not judged, such as a greeting")
    page.row("GOLD", "matches a gold support; its snippet is marked")
    page.row("BROKE, FIXED", "succeeds in the base run only; in the new one only")
    page.row("-", "no score; the Scores part of a case says why")
    return page.page


def _help_screen(where: str) -> HelpScreen:
    """The keys of a screen, and the guide to filters and signs."""
    actions = sorted(ACTIONS[where].values(), key=lambda action: PARTS.index(action.part))
    return HelpScreen([keys_page(actions, key_names), _guide()], FOOT)

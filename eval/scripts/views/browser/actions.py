"""The one table of actions of the browser: hints, help and command palette are read from it.

Each screen says in `acts` what its actions do; those that all screens have are here. Keys come from
`terminal.keys`, the table that all screens of the toolkit share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ragmetrics.catalogue.cases import RULES
from records.errors import StorageError
from records.notes import CaseNote
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import Action, ActionRefused, UndoSteps, shown_key
from terminal.help import HelpPage, HelpScreen, HelpText, keys_page
from terminal.keys import keys_on
from terminal.palette import ActionCommands
from terminal.safe_text import one_line
from terminal.windows import Ask, LinePrompt, Palette
from views.browser.query import KEYWORDS
from views.library import RunLibrary

SORT_HELP = "Sort by a column; pressed again: reverse. Click a heading too."

RUNS, CASES, FLIPS, GROUPS, CASE, PAIR = "runs", "cases", "flips", "groups", "case", "pair"

LISTS = f"{RUNS} {CASES} {FLIPS} {GROUPS}"

TEXTS = f"{CASE} {PAIR}"

ALL = f"{LISTS} {TEXTS}"

_OF_CASES = f"{CASES} {FLIPS}"

_ROWS = (
    # screens, part, id, label, help
    (LISTS, "Move", "down", "down", "Next row."),
    (LISTS, "Move", "up", "up", "Previous row."),
    (LISTS, "Move", "page-down", "page down", "A page down."),
    (LISTS, "Move", "page-up", "page up", "A page up."),
    (LISTS, "Move", "read-on", "page down", "A page down."),
    (LISTS, "Move", "first", "first", "First row."),
    (LISTS, "Move", "top:g", "first", "g g: first row."),
    (LISTS, "Move", "last", "last", "Last row."),
    (LISTS, "Move", "go-to-row", "go to row", "Go to a row by its number."),
    (RUNS, "Open", "open", "cases", "Open the run: its cases."),
    (CASES, "Open", "open", "open case", "Show the case: answer, chunks, trace."),
    (FLIPS, "Open", "open", "open pair", "Show both answers to this case."),
    (GROUPS, "Open", "open", "its cases", "Show the cases of the group: the filter gets its term."),
    (RUNS, "Open", "mark", "mark", "Mark the run as the one to compare others with."),
    (RUNS, "Open", "compare", "compare", "Flips between the marked run (base) and this one."),
    (CASES, "Open", "compare", "compare", "Flips between another run (base) and this one."),
    (_OF_CASES, "Move", "next-failing", "next failing", "Next case that fails."),
    (_OF_CASES, "Move", "previous-failing", "previous failing", "Previous one."),
    (RUNS, "Choose", "filter", "filter", "Filter by words, metrics, errors."),
    (_OF_CASES, "Choose", "filter", "filter", "Filter by words, columns, scores."),
    (_OF_CASES, "Choose", "failing", "failing", "Failing cases only, or all again."),
    (_OF_CASES, "Choose", "group", "group", "Count the shown cases by a field: reason, tag, …"),
    (_OF_CASES, "Choose", "slices", "in common", "What failing or broken cases share."),
    (f"{_OF_CASES} {GROUPS}", "Choose", "sort", "sort", SORT_HELP),
    (_OF_CASES, "Choose", "columns", "columns", "Choose the metrics to show."),
    (_OF_CASES, "Choose", "success", "success", "Say what counts as success."),
    (FLIPS, "Choose", "everything", "all/flips", "All cases of both runs, or flips only."),
    (TEXTS, "Move", "down", "down", "A line down."),
    (TEXTS, "Move", "up", "up", "A line up."),
    (TEXTS, "Move", "page-down", "page down", "A page down."),
    (TEXTS, "Move", "page-up", "page up", "A page up."),
    (TEXTS, "Move", "read-on", "read on", "A page down; at the end of the page the next case."),
    (TEXTS, "Move", "first", "start", "To the start."),
    (TEXTS, "Move", "top:g", "start", "g g: to the start."),
    (TEXTS, "Move", "last", "end", "To the end."),
    (TEXTS, "Move", "part", "next part", "To the next part of the page."),
    (TEXTS, "Move", "part-back", "part before", "To the part before."),
    (TEXTS, "Move", "pane", "other side", "Wide windows: let keys scroll the other side."),
    (TEXTS, "Move", "next", "next case", "Next case of the list."),
    (TEXTS, "Move", "previous", "case before", "Case before it in the list."),
    (TEXTS, "Move", "next-failing", "next failing", "Next case of the list that fails."),
    (TEXTS, "Move", "previous-failing", "previous failing", "Previous one."),
    (TEXTS, "Find", "search", "search", "Search in the page; hits are counted while you type."),
    (TEXTS, "Find", "next-hit", "next hit", "Next hit of the search."),
    (TEXTS, "Find", "previous-hit", "previous hit", "Previous one."),
    (CASE, "Look", "full", "full text", "Chunks in full, or their beginnings again."),
    (CASE, "Look", "raw", "raw JSON", "The result as written in the file, and back."),
    (CASE, "Look", "conversation", "conversation", "All turns of the conversation, and back."),
    (CASE, "Look", "trend", "trend", "How this case's scores went over all runs, and back."),
    (PAIR, "Look", "base", "base", "The case in the base run, with its chunks."),
    (PAIR, "Look", "new", "new", "The case in the new run, with its chunks."),
    (f"{_OF_CASES} {TEXTS}", "Look", "label", "label", "Label this case."),
    (f"{_OF_CASES} {TEXTS}", "Note", "note", "note", "Write a note on this case; empty: none."),
    (f"{_OF_CASES} {TEXTS}", "Note", "flag", "flag", "Flag this case, or take the flag away."),
    (f"{_OF_CASES} {TEXTS}", "Note", "undo", "undo", "Undo notes and flags of this session."),
    (f"{_OF_CASES} {TEXTS}", "Note", "redo", "redo", "Do again what was undone."),
    (f"{LISTS} {TEXTS}", "Take out", "copy-id", "copy id", "Copy the id to the clipboard."),
    (f"{_OF_CASES} {TEXTS}", "Take out", "copy-case", "copy case", "Copy the case as Markdown."),
    (TEXTS, "Take out", "edit-text", "in editor", "Open the case in $PAGER or $EDITOR."),
    (_OF_CASES, "Take out", "export", "export", "Write the shown cases to a file."),
    (ALL, "Tool", "back", "back", "Back; on the first screen it asks before it leaves."),
    (ALL, "Tool", "leave", "back or leave", "Back; from the first screen: leave."),
    (ALL, "Tool", "help", "help", "Keys and filter language."),
    (ALL, "Tool", "palette", "commands", "Commands by name."),
    (ALL, "Tool", "suspend", "suspend", "To the shell; fg comes back."),
    (ALL, "Tool", "read-again", "read again", "Read files that changed again, at once."),
    (ALL, "Tool", "redraw", "redraw", "Draw the screen again."),
    (ALL, "Tool", "theme", "light/dark", "Light or dark colours."),
    (ALL, "Tool", "quit", "quit", "Leave from anywhere."),
)

HINTS = {
    RUNS: "open filter mark compare back",
    CASES: "open filter failing slices group sort note export copy-case compare label back",
    FLIPS: "open filter everything slices group sort note export copy-case success label back",
    GROUPS: "open sort copy-id back",
    CASE: "next search part note full trend copy-case raw conversation label back",
    PAIR: "next search part base new note copy-case label back",
}
"""Actions of the hint line, most needed first."""


def _table() -> dict[str, dict[str, Action]]:
    table: dict[str, dict[str, Action]] = {}
    keys = {"lists": keys_on("lists"), "pages": keys_on("pages")}
    for screens, part, named, label, text in _ROWS:
        name, _, then = named.partition(":")
        for where in screens.split():
            own = keys["pages" if where in TEXTS.split() else "lists"].get(name, ())
            action = Action(name, own, label, text, where, part, then)
            table.setdefault(where, {})[name] = action
    return table


ACTIONS = _table()
"""By screen and id."""

FOOT = "Tab other page   / search   PgDn PgUp, j k scroll   Esc back"

PARTS = ("Open", "Choose", "Look", "Note", "Take out", "Find", "Move", "Tool")
"""Parts of the help page of keys, in their order."""


class Browser(Protocol):
    """The services of the application for every screen."""

    library: RunLibrary
    note_steps: UndoSteps[NoteStep]
    ascii_only: bool

    def is_first(self, screen: ActionScreen[Any]) -> bool:
        """Did the program begin with this screen? Leaving it leaves the program."""

    def read_again(self) -> str:
        """Look at once for changes in the files of the open runs; return a report."""

    def open_runs(self, *run_ids: str) -> None:
        """Show the cases of a run, or those that changed between two. Refuses when it cannot."""

    def hand_over(self, command: Sequence[str], name: str) -> str:
        """Give the terminal to a program until it ends. Returns what went wrong, or nothing."""


def common_acts(
    screen: ActionScreen[Any],
    browser: Browser,
    where: str,
    close: Callable[[], object],
    commands: type[ActionCommands] = ActionCommands,
) -> Acts:
    """The functions of the actions on all screens; `close` closes this screen."""
    is_first = browser.is_first(screen)
    return {
        "back": screen.ask_to_leave if is_first else close,
        "leave": screen.app.exit if is_first else close,
        "suspend": screen.suspend,
        "quit": screen.app.exit,
        "read-again": lambda: screen.say(browser.read_again()),
        "redraw": screen.redraw_all,
        "theme": screen.turn_theme,
        "help": lambda: screen.app.push_screen(_help_screen(where)),
        "palette": lambda: screen.app.push_screen(Palette(providers=[commands])),
    }


@dataclass(frozen=True, slots=True)
class NoteStep:
    """A note on a case before and after a change, for undo."""

    case_id: str
    before: CaseNote
    after: CaseNote


def note_acts(
    screen: ActionScreen[Any],
    browser: Browser,
    case_in_view: Callable[[], tuple[str, str]],
    changed: Callable[[], object],
) -> Acts:
    """Notes and flags on a case, which `case_in_view` names with its run; `changed` shows them."""
    notes, steps = browser.library.notes, browser.note_steps

    def put(case_id: str, note: CaseNote) -> None:
        try:
            notes.put(case_id, note)
        except StorageError as error:
            raise ActionRefused(error.message) from None
        changed()

    def change(case_id: str, note: CaseNote, done: str) -> str:
        before = notes.own(case_id)
        put(case_id, note)
        steps.add(NoteStep(case_id, before, note))
        return f"{done} {case_id}"

    def ask_note() -> None:
        case_id, run_id = case_in_view()
        before = notes.own(case_id)

        def answered(text: str | None) -> None:
            if text is not None and text.strip() != before.text:
                note = CaseNote(text.strip(), before.flag, run=run_id)
                done = "note kept on" if note.text else "note taken from"
                screen.attempt(lambda: change(case_id, note, done))

        label = one_line(f"Note on {case_id} (empty: none):", 120)
        screen.app.push_screen(LinePrompt(label, before.text), answered)

    def turn_flag() -> None:
        case_id, run_id = case_in_view()
        before = notes.own(case_id)
        note = CaseNote(before.text, not before.flag, run=run_id)
        screen.say(change(case_id, note, "flagged" if note.flag else "flag taken from"))

    def take_step(steps_left: Sequence[NoteStep], *, forward: bool) -> None:
        if not steps_left:
            raise ActionRefused("nothing was undone" if forward else "no note or flag to undo")
        step = steps_left[-1]
        put(step.case_id, step.after if forward else step.before)
        steps.redo() if forward else steps.undo()
        done = "Done again" if forward else "Undone"
        screen.say(f"{done}: note or flag of {step.case_id}")

    return {
        "note": ask_note,
        "flag": turn_flag,
        "undo": lambda: take_step(steps.done, forward=False),
        "redo": lambda: take_step(steps.undone, forward=True),
    }


def label_case(screen: ActionScreen[Any], browser: Browser, run_id: str, case_id: str) -> None:
    """Hand the terminal to the labeller, and come back; or say why not."""
    command = browser.library.label_command(run_id, case_id)
    if isinstance(command, str):
        raise ActionRefused(command)

    def closed(answer: str | None) -> None:
        if answer:
            screen.say(browser.hand_over(command, "label_eval.py"), "warn")

    text = (
        f"The labeller opens {one_line(case_id, 100)} with this run's chunks.\n"
        "q leaves it and comes back here."
    )
    screen.app.push_screen(Ask(text, {"enter": "start it"}), closed)


def key_names(action: Action) -> str:
    """The keys of an action as a person reads them."""
    shown = dict.fromkeys(map(shown_key, action.keys))
    keys = " ".join(f"{key} {action.then}" if action.then else key for key in shown)
    return keys or "by : name"


def _guide() -> HelpPage:
    page = HelpText()
    page.heading("Filter (/): terms side by side must all hold")
    for word, says in KEYWORDS.items():
        page.row(word, says)
    page.row("category=factual", "difficulty, query_type, answerable: of the case")
    page.row("reason=refused", 'why it fails; reason="no gold"; document="a.md": of its gold')
    page.row("status=ok", "error, abstained, id: of the result")
    page.row("tag=lists", "one of the tags; flag=late: one of the answer's flags")
    page.row("recall@5<1", "any metric; = != < <= > >=; =none: not scored")
    page.row("latency>500", "milliseconds; also confidence, cost, repeat")
    page.row('"two words" word', "in the question or the case id")
    page.row("-failing -tag=lists", "a minus negates a term")
    page.heading("Filter of the runs (/): terms in the same way")
    page.row("base -stopped", "words of name, date, state and configuration")
    page.row("recall@5<0.8", "the run's mean of a metric; errors>0: failed calls")
    page.heading("A case fails by the first of these ([cases] of targets.toml changes them)")
    for rule in RULES:
        if rule.level == "fail":
            page.row(rule.word, rule.counted)
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

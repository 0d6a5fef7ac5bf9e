"""The screens of all runs of a folder, and of the groups of a list of cases."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence

from textual import events
from textual.app import ComposeResult

from terminal.action_screen import Acts
from terminal.actions import ActionRefused
from terminal.frame import rule
from terminal.lists import Bar, Line
from terminal.safe_text import display, one_line
from terminal.tables import counted
from terminal.text_pane import TextPane
from views.browser import rows
from views.browser.actions import RUNS, Browser
from views.browser.document import Doc
from views.browser.lists import ListScreen
from views.browser.query import QueryError, QueryTerm, names_in, parse
from views.runs import RunInfo
from views.text import score

_SHORT_BELOW = 16

_NO_RUN = "No run here yet. Make one with:\n\n  python eval/scripts/run_eval.py --api-url demo"


EXAMPLES = "base -stopped recall@5<0.8 2026-01 words of the configuration"

_ERRORS = "errors"
"""The number of failed calls, beside the metrics."""


def select_runs(text: str, runs: Sequence[RunInfo]) -> list[RunInfo]:
    """The runs that match all terms of a filter, in their order. Raises QueryError."""
    numbers = {name for run in runs for means in run.sections.values() for name in means}
    numbers.add(_ERRORS)
    for name in names_in(text):
        if name.casefold() not in map(str.casefold, numbers):
            near = difflib.get_close_matches(name, sorted(numbers), n=3, cutoff=0.5)
            also = f"; near it: {', '.join(near)}" if near else ""
            raise QueryError(f"{name}: no run has such a metric; words need no sign{also}")
    terms = parse(text, numbers).terms
    return [run for run in runs if all(_holds(term, run) for term in terms)]


def _holds(term: QueryTerm, run: RunInfo) -> bool:
    if term.kind == "number":
        value = run.errors if term.name == _ERRORS else run.mean(term.name)
        holds = term.fits(math.nan if value is None else value)
    else:
        holds = (term.text or term.name).casefold() in _words(run)
    return holds != term.turned


def _words(run: RunInfo) -> str:
    """All that a run's row and the lines below it say in words."""
    config = (f"{label}: {value}" for label, value in run.config)
    parts = (run.run_id, run.state, run.started.replace("T", " "), run.problem, run.missing)
    return "\n".join((*parts, *config)).casefold()


class RunsScreen(ListScreen[None], inherit_bindings=False):
    """All runs, newest first. Enter opens one; Space marks one to compare another with."""

    def __init__(self, browser: Browser) -> None:
        super().__init__(browser, RUNS)
        self._all: list[RunInfo] = list(browser.library.refresh())
        self.runs: list[RunInfo] = self._all
        """Those that the filter leaves, which are all without one."""
        self._filter = ""
        self.marked = ""
        self.about = TextPane(id="about")
        self.about_rule = Bar(id="about-rule")

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.rows
        yield self.about_rule
        yield self.about
        yield self.end

    def acts(self) -> Acts:
        return {
            **super().acts(),
            "open": lambda: self.browser.open_runs(self.run.run_id),
            "filter": self.ask_filter,
            "mark": self.mark,
            "compare": self.compare,
        }

    @property
    def run(self) -> RunInfo:
        """The run under the cursor. Refuses when there is none."""
        if not self._all:
            raise ActionRefused("there is no run yet: run_eval.py makes one")
        if not self.runs:
            raise ActionRefused("no run fits the filter; / and an empty line show all")
        return self.runs[self.rows.cursor]

    def id_in_view(self) -> str:
        return self.run.run_id

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height < _SHORT_BELOW, "-short")
        super().on_resize(event)

    def show(self) -> None:
        if self.rows.count != len(self.runs):
            self.rows.set_count(len(self.runs), self.rows.cursor)
        self.columns = rows.run_columns(self.runs, self.size.width)
        going = sum(run.state == "running" for run in self._all)
        summary = f"  {counted(len(self._all), 'run')}"
        if going:
            summary += f", {going} in progress"
        if self._filter:
            summary += f"   / {one_line(self._filter, 60)}: {len(self.runs)} shown"
        if self.marked:
            summary += f"   base: {one_line(self.marked, 60)} (D on another run compares)"
        self.draw_head(
            (("term", display(" Runs")), ("row", one_line(summary))),
            (("dim", one_line(f" {self.browser.library.folder}", 400)),),
            rows.heading(self.columns, "started", True, self.look.ascii, 1),
        )
        self.rows.refresh()
        self.moved()

    def moved(self) -> None:
        """Describe the run under the cursor."""
        width = self.size.width
        if not self.runs:
            self.about.show(display("No run fits the filter." if self._all else _NO_RUN))
            self.about_rule.show([rule(self.look, width, "no run")])
            return
        blank = Doc(ascii_only=self.look.ascii, width=max(0, self.about.size.width - 2))
        doc = _about(blank, self.run)
        self.about_rule.show([rule(self.look, width, self.run.run_id, "Enter shows its cases")])
        self.about.show(doc.text, doc.marks)

    def row_line(self, index: int, width: int) -> Line:
        run = self.runs[index]
        marked = run.run_id == self.marked
        return rows.run_row(run, self.columns, sign=self.sign(index), marked=marked)

    def refresh_runs(self) -> None:
        """Look at the folder again; called every second while this screen is in view."""
        runs = list(self.browser.library.refresh())
        if runs != self._all:
            self._all = runs
            try:
                self._choose(self._filter)
            except QueryError as error:  # the last run with that metric is gone
                self._choose("")
                self.say(f"all runs again: {error}", "warn")

    def _choose(self, text: str) -> None:
        """Show the runs that a filter leaves; the cursor stays on its run. Raises QueryError."""
        runs = select_runs(text, self._all)
        name = self.runs[self.rows.cursor].run_id if self.runs else ""
        self.runs, self._filter = runs, text.strip()
        indices = [index for index, run in enumerate(runs) if run.run_id == name]
        self.rows.set_count(len(runs), indices[0] if indices else 0)
        self.show()

    def set_filter(self, text: str) -> str:
        """Filter by `text`; says how many runs are left. Raises QueryError."""
        self._choose(text)
        return f"{len(self.runs)} of {counted(len(self._all), 'run')}"

    def ask_filter(self) -> None:
        """Ask which runs to show."""
        self.ask_live("Filter:", f"such as {EXAMPLES}", self._filter, self.set_filter)

    def mark(self) -> None:
        """Make the run under the cursor the one to compare with, or not any more."""
        self.marked = "" if self.marked == self.run.run_id else self.run.run_id
        self.show()

    def compare(self) -> None:
        """Show the flips between the marked run and this one."""
        new = self.run.run_id
        if not self.marked:
            raise ActionRefused("mark the base run with Space first, then press D on the new one")
        if self.marked == new:
            raise ActionRefused("this is the base run itself: press D on another one")
        self.browser.open_runs(self.marked, new)


def _about(doc: Doc, run: RunInfo) -> Doc:
    """Means by section, and what the run was made with, added to an empty document."""
    if run.problem:
        doc.line(f"! {run.problem}", "warn")
    if run.state == "running":
        doc.line(f"In progress: {run.done} of {run.planned or '?'} results so far.", "key")
    elif run.state == "stopped":
        doc.line(
            f"Not complete: {run.done} of {run.planned or '?'} results, and no new one for "
            f"minutes. Go on with: run_eval.py --resume --run-id {run.run_id}",
            "warn",
        )
    elif run.state == "empty":
        doc.line("No result yet.", "dim")
    if run.missing:
        doc.line(f"! {run.missing}", "warn")
    if not run.sections and run.state == "complete":
        doc.line(f"Not scored yet: eval_suite.py --run {run.run_id}", "warn")
    for section, means in run.sections.items():
        doc.pair(section, _listed(means.items()))
    for label, value in run.config:
        doc.pair(label, value, "dim")
    return doc


def _listed(means: Iterable[tuple[str, tuple[float | None, int]]]) -> str:
    """Each mean once; of cut-offs, those at 5 and 10 are enough here."""
    return ", ".join(
        f"{name} {score(mean)}"
        for name, (mean, _) in means
        if mean is not None and ("@" not in name or name.endswith(("@5", "@10")))
    )

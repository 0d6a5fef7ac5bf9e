"""The screens that are lists: the runs of a folder, and the cases of one run or of two."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from textual import events
from textual.app import ComposeResult

from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.frame import Look, cut, rule
from terminal.lists import Bar, Line, LineList, Span
from terminal.safe_text import display, one_line
from terminal.text_pane import TextPane
from terminal.windows import LinePrompt
from views.browser import rows
from views.browser.actions import ACTIONS, HINTS, RUNS, Browser, common_acts, label_case
from views.browser.document import Doc
from views.browser.listing import CaseList, PairList
from views.browser.model import RunInfo
from views.browser.query import QueryError

SHORT_BELOW = 16

NO_RUN = "No run here yet. Make one with:\n\n  python eval/scripts/run_eval.py --api-url demo"

EXAMPLES = "failing category=x tag=x recall@5=0 latency>500 -tag=x words"


class _Opener(Browser, Protocol):
    """What the lists ask the application for: other screens."""

    def open_cases(self, run_id: str) -> None:
        """Show the cases of a run."""

    def open_flips(self, base: str, new: str) -> None:
        """Show what flipped between two runs."""

    def ask_base(self, new: str) -> None:
        """Ask which run `new` is compared with, and show what flipped."""

    def open_case(self, cases: CaseList, index: int, closed: Callable[[int | None], None]) -> None:
        """Show a case of a list; `closed` gets the row of the case that was shown last."""


class ListScreen(ActionScreen[None], inherit_bindings=False):
    """A head, rows and the keys that move in them. Rows are drawn when they come into view."""

    def __init__(self, browser: _Opener, where: str, *, ascii_only: bool) -> None:
        look = Look(ascii=ascii_only)
        super().__init__(ACTIONS[where].values(), HINTS[where].split(), look)
        self.browser = browser
        self.where = where
        self.head = Bar(id="head")
        self.rows = LineList(self.row_line, id="rows")
        self._moved_by_click = False

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.rows
        yield self.end

    def changed(self) -> None:
        """Files were read on, or are other ones: show what is new."""

    def row_line(self, index: int, width: int) -> Line:
        """What row `index` says on `width` cells."""
        raise NotImplementedError

    def sign(self, index: int) -> str:
        """`>` on the cursor row: it is not told by colour alone."""
        return ">" if index == self.rows.cursor else " "

    def moved(self) -> None:
        """The cursor is on another row."""

    def move_to(self, index: int) -> None:
        """Put the cursor on a row."""
        if self.rows.move_to(index):
            self.moved()

    def acts(self) -> Acts:
        page = max(1, self.rows.size.height - 1)
        return {
            **common_acts(self, self.browser, self.where, self.dismiss),
            "down": lambda: self.move_to(self.rows.cursor + 1),
            "up": lambda: self.move_to(self.rows.cursor - 1),
            "page-down": lambda: self.move_to(self.rows.cursor + page),
            "page-up": lambda: self.move_to(self.rows.cursor - page),
            "first": lambda: self.move_to(0),
            "top": lambda: self.move_to(0),
            "last": lambda: self.move_to(self.rows.count - 1),
        }

    # -- mouse ----------------------------------------------------------------------------------

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        self._moved_by_click = True
        self.moved()

    def on_line_list_clicked(self, event: LineList.Clicked) -> None:
        """A click selects; a click on the selected row opens it."""
        if not self._moved_by_click:
            self.perform("open")
        self._moved_by_click = False

    def on_click(self, event: events.Click) -> None:
        heads = self.head.region.bottom - 1
        if event.screen_y == heads and self.screen is self.app.screen:
            self.clicked_heading(event.screen_x)

    def clicked_heading(self, x: int) -> None:
        """The line of column heads was clicked."""


class RunsScreen(ListScreen, inherit_bindings=False):
    """All runs, newest first. Enter opens one; Space marks one to compare another with."""

    def __init__(self, browser: _Opener, *, ascii_only: bool) -> None:
        super().__init__(browser, RUNS, ascii_only=ascii_only)
        self.runs: list[RunInfo] = list(browser.library.refresh())
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
            "open": lambda: self.browser.open_cases(self.run.run_id),
            "mark": self.mark,
            "compare": self.compare,
        }

    @property
    def run(self) -> RunInfo:
        """The run under the cursor. Refuses when there is none."""
        if not self.runs:
            raise ActionRefused("there is no run yet: run_eval.py makes one")
        return self.runs[self.rows.cursor]

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.height < SHORT_BELOW, "-short")
        super().on_resize(event)

    def show(self) -> None:
        if self.rows.count != len(self.runs):
            self.rows.set_count(len(self.runs), self.rows.cursor)
        self._columns = rows.run_columns(self.runs, self.size.width)
        going = sum(run.state == "running" for run in self.runs)
        summary = f"  {len(self.runs)} runs" + (f", {going} in progress" if going else "")
        if self.marked:
            summary += f"   base: {one_line(self.marked, 60)} (d on another run compares)"
        width = self.size.width
        self.head.show(
            [
                cut([("term", display(" Runs")), ("row", one_line(summary))], width),
                cut([("dim", one_line(f" {self.browser.library.folder}", 400))], width),
                rows.heading(self._columns, "started", True, self.look.ascii),
            ]
        )
        self.rows.refresh()
        self.moved()

    def moved(self) -> None:
        """Show what the run under the cursor is."""
        width = self.size.width
        if not self.runs:
            self.about.show(display(NO_RUN))
            self.about_rule.show([rule(self.look, width, "no run")])
            return
        blank = Doc(ascii_only=self.look.ascii, width=max(0, self.about.size.width - 2))
        doc = _about(blank, self.run)
        self.about_rule.show([rule(self.look, width, self.run.run_id, "Enter shows its cases")])
        self.about.show(doc.text, doc.marks)

    def row_line(self, index: int, width: int) -> Line:
        run = self.runs[index]
        marked = run.run_id == self.marked
        return rows.run_row(run, self._columns, sign=self.sign(index), marked=marked)

    def refresh_runs(self) -> None:
        """Look at the folder again; called every second while this screen is in view."""
        runs = list(self.browser.library.refresh())
        if runs != self.runs:
            name = self.runs[self.rows.cursor].run_id if self.runs else ""
            self.runs = runs
            indices = [index for index, run in enumerate(runs) if run.run_id == name]
            self.rows.cursor = indices[0] if indices else 0
            self.show()

    def mark(self) -> None:
        """Make the run under the cursor the one to compare with, or not any more."""
        self.marked = "" if self.marked == self.run.run_id else self.run.run_id
        self.show()

    def compare(self) -> None:
        """Show the flips between the marked run and this one."""
        new = self.run.run_id
        if not self.marked:
            raise ActionRefused("mark the base run with Space first, then press d on the new one")
        if self.marked == new:
            raise ActionRefused("this is the base run itself: press d on another one")
        self.browser.open_flips(self.marked, new)


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
        f"{name} {rows.score(mean)}"
        for name, (mean, _) in means
        if mean is not None and ("@" not in name or name.endswith(("@5", "@10")))
    )


class CasesScreen(ListScreen, inherit_bindings=False):
    """The cases of one run, or of two: filter, order, columns, and opening one.

    Prompts stand at the bottom of the screen; a filter and an order work while they are typed.
    """

    def __init__(self, browser: _Opener, cases: CaseList, *, ascii_only: bool) -> None:
        super().__init__(browser, cases.where, ascii_only=ascii_only)
        self.cases = cases
        self.hint = ""
        """What may be written into the prompt that is open."""
        self._columns: list[rows.Column] = []

    def acts(self) -> Acts:
        cases = self.cases
        acts: Acts = {
            **super().acts(),
            "open": self.open,
            "label": lambda: label_case(
                self, self.browser, cases.run.run_id, cases.table.ids[self.row]
            ),
            "next": lambda: self._next_failing(1),
            "previous": lambda: self._next_failing(-1),
            "filter": self.ask_filter,
            "failing": self.turn_failing,
            "sort": self.ask_sort,
            "reverse": self.turn_order,
            "columns": self.ask_columns,
            "success": self.ask_success,
        }
        if isinstance(cases, PairList):
            return {**acts, "everything": lambda: self.turn_flips(cases)}
        return {**acts, "compare": lambda: self.browser.ask_base(cases.run.run_id)}

    # -- drawing --------------------------------------------------------------------------------

    def show(self) -> None:
        self.update()
        self.show_head()

    def update(self) -> None:
        """Work out the list again; the cursor stays on its case."""
        index = self.cases.update(self.rows.cursor)
        count = len(self.cases.listed)
        if self.rows.cursor == index:
            self.rows.grow(count)
            self.rows.refresh()
        else:
            self.rows.set_count(count, index)

    def changed(self) -> None:
        if self.cases.outdated():
            self.update()
        self.show_head()

    def show_head(self) -> None:
        """Draw the lines above the list."""
        width = self.size.width
        if width <= 0:
            return
        columns = self.cases.columns(width)
        if columns != self._columns:
            self._columns = columns
            self.rows.refresh()
        second: list[Span] = self.cases.second_line(width)
        if self.hint:
            second = [("key", one_line(f" {self.hint}", 1000))]
        self.head.show(
            [
                cut(self.cases.title(self.look), width),
                cut(second, width),
                rows.heading(columns, self.cases.sort, self.cases.reverse, self.look.ascii),
            ]
        )

    def row_line(self, index: int, width: int) -> Line:
        if index >= len(self.cases.listed):
            return ()
        row = self.cases.listed[index]
        return self.cases.row_line(row, self._columns, self.sign(index), self.look)

    def clicked_heading(self, x: int) -> None:
        left = 1
        for column in self._columns:
            if left <= x < left + column.width + 1:
                self.cases.sort_by(column.name)
                self.show()
            left += column.width + 1

    # -- one case -------------------------------------------------------------------------------

    @property
    def row(self) -> int:
        """The table's row under the cursor. Refuses when there is none."""
        if self.rows.cursor >= len(self.cases.listed):
            hint = "; Esc in / takes the filter away" if self.cases.filter else ""
            raise ActionRefused(f"no case here{hint}")
        return self.cases.listed[self.rows.cursor]

    def open(self) -> None:
        """Show the case under the cursor."""
        if self.row is not None:
            self.browser.open_case(self.cases, self.rows.cursor, self.closed)

    def closed(self, row: int | None) -> None:
        """A page was closed on the case of `row`: the cursor goes there."""
        self.changed()
        if row is not None:
            self.move_to(self.cases.index_of(row, self.rows.cursor))

    def _next_failing(self, by: int) -> None:
        listed = self.cases.listed
        for index in range(self.rows.cursor + by, len(listed) if by > 0 else -1, by):
            if self.cases.fails(listed[index]):
                self.move_to(index)
                return
        raise ActionRefused(f"no case that fails {'below' if by > 0 else 'above'} this one")

    def turn_flips(self, cases: PairList) -> None:
        """All cases of both runs, or flips only."""
        cases.only_flips = not cases.only_flips
        self.show()

    # -- choosing -------------------------------------------------------------------------------

    def _ask(self, label: str, hint: str, before: str, choose: Callable[[str], str]) -> None:
        """Ask for a line; `choose` is done with each version of it, and undone by Esc.

        The label is short, since what `choose` says stands behind it; the hint is shown above.
        """

        def live(text: str) -> str:
            try:
                return choose(text)
            except QueryError as error:
                return f"! {error}"

        def closed(text: str | None) -> None:
            try:
                message, style = choose(before if text is None else text), "row"
            except QueryError as error:
                message, style = f"as before: {error}", "warn"
                choose(before)
            self.hint = ""
            self.show()
            self.say(message, style)

        self.hint = hint
        self.show()
        self.app.push_screen(LinePrompt(label, before, live), closed)

    def set_filter(self, text: str) -> str:
        """Filter by `text`; says how many cases are left. Raises QueryError."""
        self.cases.set_filter(text)
        self.show()
        return self.cases.filter_message()

    def ask_filter(self) -> None:
        """Ask which cases to show."""
        before = self.cases.filter.text if self.cases.filter else ""
        self._ask("Filter:", f"such as {EXAMPLES}", before, self.set_filter)

    def turn_failing(self) -> None:
        """Failing cases only, or all again."""
        words = self.cases.filter.text.split() if self.cases.filter else []
        if "failing" in words:
            words = [word for word in words if word not in ("failing", "only")]
        else:
            words.insert(0, "failing")
        self.say(self.set_filter(" ".join(words)))

    def set_sort(self, text: str) -> str:
        """Sort by a column, `-` before it for the largest first. Raises QueryError."""
        self.cases.set_sort(text)
        self.show()
        return f"sorted by {text.strip() or 'the order of the set'}"

    def ask_sort(self) -> None:
        """Ask for the order."""
        hint = "order, id, state, latency, category, a metric; - before it: largest first"
        self._ask("Sort by:", hint, self.cases.sort_text, self.set_sort)

    def turn_order(self) -> None:
        """Reverse the order."""
        self.cases.reverse = not self.cases.reverse
        self.show()

    def set_columns(self, text: str) -> str:
        """Show these metrics; nothing means the main ones. Raises QueryError."""
        self.cases.set_columns(text)
        self.show()
        return ""

    def ask_columns(self) -> None:
        """Ask which metrics to show."""
        names = " ".join([*self.cases.available_metrics()][:60])
        before = " ".join(self.cases.metrics or [])
        self._ask("Columns:", f"of {names}; none: the main ones", before, self.set_columns)

    def set_success(self, text: str) -> str:
        """Let a condition say what success is; nothing means the rules. Raises QueryError."""
        self.cases.set_success(text)
        self.show()
        return f"success: {self.cases.success.describe()}"

    def ask_success(self) -> None:
        """Ask what counts as success."""
        condition = self.cases.success.condition
        hint = "such as recall@5>0; empty: no rule of the second help page is broken"
        self._ask("Success is:", hint, condition.text if condition else "", self.set_success)

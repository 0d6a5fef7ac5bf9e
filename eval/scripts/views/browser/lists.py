"""The screens that are lists: the runs of a folder, and the cases of one run or of two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from textual import events
from textual.app import ComposeResult

from records.errors import StorageError
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.frame import Look, cut, rule
from terminal.lists import Bar, Line, LineList, Span
from terminal.safe_text import cells, display, one_line
from terminal.tables import counted
from terminal.text_pane import TextPane
from terminal.windows import Ask, LinePrompt
from views.browser import rows
from views.browser.actions import (
    ACTIONS,
    GROUPS,
    HINTS,
    RUNS,
    Browser,
    common_acts,
    label_case,
    note_acts,
)
from views.browser.case_markdown import case_markdown
from views.browser.document import Doc
from views.browser.listing import CaseList, PairList
from views.browser.model import EXPORTS, RunInfo
from views.browser.query import QueryError
from views.browser.summary import FIELDS, Group

SHORT_BELOW = 16

ListResult = TypeVar("ListResult")

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


class ListScreen(ActionScreen[ListResult], inherit_bindings=False):
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
            "read-on": lambda: self.move_to(self.rows.cursor + page),
            "go-to-row": self.ask_row,
            "copy-id": self.copy_id,
            "first": lambda: self.move_to(0),
            "top": lambda: self.move_to(0),
            "last": lambda: self.move_to(self.rows.count - 1),
        }

    def ask_row(self) -> None:
        """Ask for the number of a row, and go there."""

        def answered(text: str | None) -> None:
            if text and text.strip().isdecimal():
                self.move_to(int(text.strip()) - 1)
            elif text:
                self.say(f"{text}: type the number of a row, 1 to {self.rows.count:,}", "warn")

        self.app.push_screen(LinePrompt(f"Go to row (1-{self.rows.count}):"), answered)

    def id_in_view(self) -> str:
        """What the row under the cursor is called. Refuses when there is none."""
        raise NotImplementedError

    def copy_id(self) -> None:
        """Give the id under the cursor to the clipboard."""
        self.say(self.browser.copy_out(self.id_in_view(), "id"))

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
        if event.screen_y == self.heads_y and self.screen is self.app.screen:
            self.clicked_heading(event.screen_x)

    @property
    def heads_y(self) -> int:
        """The line of column heads on the screen."""
        return self.head.region.bottom - 1

    def clicked_heading(self, x: int) -> None:
        """The line of column heads was clicked."""


class RunsScreen(ListScreen[None], inherit_bindings=False):
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

    def id_in_view(self) -> str:
        return self.run.run_id

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
            summary += f"   base: {one_line(self.marked, 60)} (D on another run compares)"
        width = self.size.width
        self.head.show(
            [
                cut([("term", display(" Runs")), ("row", one_line(summary))], width),
                cut([("dim", one_line(f" {self.browser.library.folder}", 400))], width),
                rows.heading(self._columns, "started", True, self.look.ascii, 1),
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
            raise ActionRefused("mark the base run with Space first, then press D on the new one")
        if self.marked == new:
            raise ActionRefused("this is the base run itself: press D on another one")
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


class CasesScreen(ListScreen[None], inherit_bindings=False):
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
            **note_acts(self, self.browser, self.case_in_view, self.show),
            "next-failing": lambda: self._next_failing(1),
            "previous-failing": lambda: self._next_failing(-1),
            "filter": self.ask_filter,
            "failing": self.turn_failing,
            "group": self.ask_group,
            "sort": self.ask_sort,
            "columns": self.ask_columns,
            "copy-case": self.copy_case,
            "export": self.ask_export,
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
                rows.means_row(
                    columns, len(self.cases.listed), self.cases.means(columns, self.look)
                ),
            ]
        )

    def row_line(self, index: int, width: int) -> Line:
        if index >= len(self.cases.listed):
            return ()
        row = self.cases.listed[index]
        return self.cases.row_line(row, self._columns, self.sign(index), self.look)

    @property
    def heads_y(self) -> int:
        return self.head.region.bottom - 2  # the means stand below

    def clicked_heading(self, x: int) -> None:
        left = rows.LEFT
        for column in self._columns:
            if left <= x < left + column.width + 1:
                self.cases.sort_by(column.name)
                self.show()
            left += column.width + 1

    # -- what leaves the screen -----------------------------------------------------------------

    def id_in_view(self) -> str:
        return self.cases.table.ids[self.row]

    def case_in_view(self) -> tuple[str, str]:
        """Id and run of the case under the cursor."""
        return self.id_in_view(), self.cases.run.run_id

    def copy_case(self) -> None:
        """Give the case under the cursor to the clipboard, as Markdown."""
        row = self.row
        detail = self.cases.run.detail(self.cases.table.key(row))
        if detail is None:
            raise ActionRefused("this case is not in the files any more")
        says = self.cases.success.says(self.cases.success.codes(self.cases.table)[row])
        state = f"FAILS: {says}" if says else "ok"
        notes = self.browser.library.notes.of(detail.case_id)
        text = case_markdown(self.cases.run.run_id, detail, state, notes)
        self.say(self.browser.copy_out(text, "case"))

    def ask_export(self) -> None:
        """Ask for form and name of a file for the listed cases, and write it."""
        listed = self.cases.listed
        if not listed:
            raise ActionRefused("no case is shown, so there is nothing to export")
        if self.cases.run.reading:
            raise ActionRefused("the files are still being read; try again in a moment")

        def chosen(key: str | None) -> None:
            if not key:
                return
            form = answers[key]
            name = _free_name(self.cases.export_name(form))
            label = f"Write {counted(len(listed), 'case')} to (nothing is overwritten):"
            self.app.push_screen(LinePrompt(label, name), lambda text: named(form, text))

        def named(form: str, text: str | None) -> None:
            if text and text.strip():
                self._export(form, Path(text.strip()).expanduser())

        answers = {form[0]: form for form in EXPORTS}
        text = f"Export {counted(len(listed), 'case')} as\n" + "\n".join(
            f"  {form[0]}  {about}" for form, about in EXPORTS.items()
        )
        self.app.push_screen(Ask(text, answers), chosen)

    def _export(self, form: str, path: Path) -> None:
        table, listed = self.cases.drawn[0], self.cases.listed
        keys = [table.key(row) for row in listed]
        reasons = [self.cases.reason(row) for row in listed]
        self.say(f"writing {path} …")

        def write() -> None:
            try:
                count = self.cases.run.export(keys, reasons, form, path)
            except StorageError as error:
                self.app.call_from_thread(self.say, error.message, "warn")
            else:
                done = f"Wrote {counted(count, 'case')} to {path}."
                self.app.call_from_thread(self.say, done)

        self.run_worker(write, thread=True, exit_on_error=False)

    # -- groups ---------------------------------------------------------------------------------

    def ask_group(self) -> None:
        """Ask for a field, and count the listed cases by it."""

        def answered(text: str | None) -> None:
            if text is None:
                return
            try:
                groups = self.cases.groups(text or self.cases.grouped_by)
            except QueryError as error:
                self.say(str(error), "warn")
                return
            screen = GroupsScreen(self.browser, self.cases, groups, ascii_only=self.look.ascii)
            self.app.push_screen(screen, self._narrowed)

        fields = ", ".join(FIELDS)
        self.app.push_screen(LinePrompt(f"Group by one of {fields}:"), answered)

    def _narrowed(self, group: Group | None) -> None:
        if group is None:
            return
        try:
            self.cases.narrow(group)
        except QueryError as error:
            self.say(str(error), "warn")
        self.show()

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

    def _ask(
        self,
        label: str,
        hint: str,
        before: str,
        choose: Callable[[str], str],
        meant: Callable[[str], str] = str,
    ) -> None:
        """Ask for a line; `choose` is done with each version of it, and undone by Esc.

        `meant` says what a line stands for that Enter was pressed on.

        The label is short, since what `choose` says stands behind it; the hint is shown above.
        """

        def live(text: str) -> str:
            try:
                return choose(text)
            except QueryError as error:
                return f"! {error}"

        def closed(text: str | None) -> None:
            try:
                message, style = choose(before if text is None else meant(text)), "row"
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
        before = self.cases.sort_text
        hint = "order, id, state, latency, category, a metric; - before it: largest first; "
        hint += "Enter alone reverses"

        def reversed_if_same(text: str) -> str:
            if text.strip() != before:
                return text
            return before.removeprefix("-") if before.startswith("-") else f"-{before or 'order'}"

        self._ask("Sort by:", hint, before, self.set_sort, reversed_if_same)

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


def _free_name(name: str) -> str:
    """A file name that is not taken in the present folder."""
    path = Path(name)
    number = 2
    while path.exists():
        path = Path(f"{Path(name).stem}-{number}{Path(name).suffix}")
        number += 1
    return str(path)


GROUP_ORDERS: dict[str, Callable[[Group], tuple[float, str]]] = {
    "failing": lambda group: (-group.failing, group.value),
    "share": lambda group: (-group.share, group.value),
    "cases": lambda group: (-len(group.rows), group.value),
    "value": lambda group: (0, group.value),
}
"""Orders of groups, the next one by each press of the key."""


class GroupsScreen(ListScreen[Group], inherit_bindings=False):
    """The cases of a list counted by a field. Enter shows those of a group."""

    def __init__(
        self, browser: _Opener, cases: CaseList, groups: Sequence[Group], *, ascii_only: bool
    ) -> None:
        super().__init__(browser, GROUPS, ascii_only=ascii_only)
        self.cases = cases
        self.groups = list(groups)
        self.order = "failing"
        self._table = cases.drawn[0]
        self._columns: list[rows.Column] = []

    def acts(self) -> Acts:
        return {**super().acts(), "open": self.open, "sort": self.turn_sort}

    @property
    def none_word(self) -> str:
        """What a group without a value is called."""
        return "(does not fail)" if self.cases.grouped_by == "reason" else "(none)"

    def show(self) -> None:
        width = self.size.width
        longest = max((cells(one_line(group.value, 400)) for group in self.groups), default=0)
        longest = max(longest, len(self.none_word))
        self._columns = rows.group_columns(width, self.cases.shown_metrics(), longest)
        if self.rows.count != len(self.groups):
            self.rows.set_count(len(self.groups), self.rows.cursor)
        filter_text = self.cases.filter.text if self.cases.filter else ""
        about = f"  {counted(len(self.cases.listed), 'case')}, {counted(len(self.groups), 'group')}"
        title = one_line(f" {self.cases.run.run_id} by {self.cases.grouped_by}", 200)
        second = f" filter: {filter_text}" if filter_text else " all cases"
        self.head.show(
            [
                cut([("term", title), ("row", display(about))], width),
                cut([("dim", one_line(second, 300))], width),
                rows.heading(self._columns, self.order, self.order != "value", self.look.ascii, 1),
            ]
        )
        self.rows.refresh()

    def row_line(self, index: int, width: int) -> Line:
        group = self.groups[index]
        return rows.group_row(self._table, group, self._columns, self.sign(index), self.none_word)

    @property
    def group(self) -> Group:
        """The group under the cursor. Refuses when there is none."""
        if not self.groups:
            raise ActionRefused("no case is shown, so there is no group")
        return self.groups[self.rows.cursor]

    def id_in_view(self) -> str:
        return self.group.value or self.none_word

    def open(self) -> None:
        """Go back to the list with the cases of this group alone."""
        self.dismiss(self.group)

    def turn_sort(self) -> None:
        """The next order of the groups."""
        names = list(GROUP_ORDERS)
        self._sort_by(names[(names.index(self.order) + 1) % len(names)])

    def _sort_by(self, order: str) -> None:
        group = self.group
        self.order = order
        self.groups.sort(key=GROUP_ORDERS[order])
        self.rows.set_count(len(self.groups), self.groups.index(group))
        self.show()
        self.say(f"sorted by {order}")

    def clicked_heading(self, x: int) -> None:
        left = 1
        for column in self._columns:
            if left <= x < left + column.width + 1 and column.name in GROUP_ORDERS:
                self._sort_by(column.name)
            left += column.width + 1

"""Shared parts of the list screens, the cases of one run or of two, and writing them to a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from textual import events
from textual.app import ComposeResult

from records.errors import StorageError
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.frame import Look, cut
from terminal.lists import Bar, Line, LineList, Span
from terminal.safe_text import one_line
from terminal.tables import counted
from terminal.windows import Ask, LinePrompt
from views.browser import rows
from views.browser.actions import ACTIONS, HINTS, Browser, common_acts, label_case, note_acts
from views.browser.case_page import case_markdown
from views.browser.failing import FIELDS, Group
from views.browser.listing import CaseList, PairList
from views.browser.query import QueryError, completions
from views.case_blocks import ShownWith
from views.library import EXPORTS

ListResult = TypeVar("ListResult")

Completer = Callable[[str], Sequence[tuple[str, str]]]
"""Function from a typed line to its completions: the line, and a remark on it."""

EXAMPLES = "failing category=x tag=x recall@5=0 latency>500 -tag=x words"


class Opener(Browser, Protocol):
    """The services of the application for lists: other screens."""

    def open_cases(self, run_id: str) -> None:
        """Show the cases of a run."""

    def open_flips(self, base: str, new: str) -> None:
        """Show the cases that changed between two runs."""

    def ask_base(self, new: str) -> None:
        """Ask for the base of `new`, and show the changed cases."""

    def open_groups(
        self,
        cases: CaseList,
        groups: Sequence[Group],
        closed: Callable[[Group | None], None],
    ) -> None:
        """Show the groups of a list; `closed` gets the one that was chosen."""

    def open_case(self, cases: CaseList, index: int, closed: Callable[[int | None], None]) -> None:
        """Show a case of a list; `closed` gets the row of the case that was shown last."""


class ListScreen(ActionScreen[ListResult], inherit_bindings=False):
    """A head, rows and the keys that move in them. Rows are drawn when they come into view."""

    def __init__(self, browser: Opener, where: str, *, ascii_only: bool) -> None:
        look = Look(ascii=ascii_only)
        super().__init__(ACTIONS[where].values(), HINTS[where].split(), look)
        self.browser = browser
        self.where = where
        self.head = Bar(id="head")
        self.rows = LineList(self.row_line, id="rows")
        self.hint = ""
        """What may be written into the prompt that is open."""
        self._moved_by_click = False

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.rows
        yield self.end

    def changed(self) -> None:
        """Files grew or were replaced: show the new rows."""

    def row_line(self, index: int, width: int) -> Line:
        """The text of row `index` on `width` cells."""
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

    def ask_live(
        self,
        label: str,
        hint: str,
        before: str,
        choose: Callable[[str], str],
        meant: Callable[[str], str] = str,
        complete: Completer | None = None,
    ) -> None:
        """Ask for a line; `choose` is done with each version of it, and undone by Esc.

        `meant` says what a line stands for that Enter was pressed on; Tab goes through what
        `complete` offers.

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
        self.app.push_screen(LinePrompt(label, before, live, complete), closed)

    def id_in_view(self) -> str:
        """The id of the row under the cursor. Refuses when there is none."""
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


class CasesScreen(ListScreen[None], inherit_bindings=False):
    """The cases of one run, or of two: filter, order, columns, and opening one.

    Prompts stand at the bottom of the screen; a filter and an order work while they are typed.
    """

    def __init__(self, browser: Opener, cases: CaseList, *, ascii_only: bool) -> None:
        super().__init__(browser, cases.where, ascii_only=ascii_only)
        self.cases = cases
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
            "slices": self.open_slices,
            "sort": self.ask_sort,
            "columns": self.ask_columns,
            "copy-case": self.copy_case,
            "export": lambda: ask_export(self, self.cases),
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
        detail = self.cases.run.detail(self.cases.table.keys[row])
        if detail is None:
            raise ActionRefused("this case is not in the files any more")
        key = self.cases.table.keys[row]
        fails, state = self.cases.failing.state(self.cases.table, key, detail)
        view = ShownWith(state, failing=fails, notes=self.browser.library.notes.of(detail.case_id))
        text = case_markdown(self.cases.run.run_id, detail, view)
        self.say(self.browser.copy_out(text, "case"))

    # -- groups ---------------------------------------------------------------------------------

    def ask_group(self) -> None:
        """Ask for a field, and count the listed cases by it."""

        def answered(text: str | None) -> None:
            if text is None:
                return
            begun = [field for field in FIELDS if field.startswith(text)]
            text = begun[0] if len(begun) == 1 else text
            try:
                groups = self.cases.groups(text or self.cases.grouped_by)
            except QueryError as error:
                self.say(str(error), "warn")
                return
            self.browser.open_groups(self.cases, groups, self._narrowed)

        prompt = LinePrompt(
            "Group by (Tab: the fields):", complete=lambda text: _named(FIELDS, text)
        )
        self.app.push_screen(prompt, answered)

    def open_slices(self) -> None:
        """Show the properties that failing cases share; Enter shows the cases of a slice."""
        sentences, groups = self.cases.slices()
        if not groups:
            raise ActionRefused(sentences[0])

        def closed(group: Group | None) -> None:
            self._narrowed(group)
            self.say(sentences[0] if group is None else sentences[groups.index(group)])

        self.browser.open_groups(self.cases, groups, closed)

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

    def set_filter(self, text: str) -> str:
        """Filter by `text`; says how many cases are left. Raises QueryError."""
        self.cases.set_filter(text)
        self.show()
        return self.cases.filter_message()

    def ask_filter(self) -> None:
        """Ask which cases to show."""
        before = self.cases.filter.text if self.cases.filter else ""
        hint = f"such as {EXAMPLES}; Tab completes"
        self.ask_live("Filter:", hint, before, self.set_filter, complete=self._terms)

    def _terms(self, text: str) -> list[tuple[str, str]]:
        """What the last term of a condition could become."""
        cases = self.cases
        return completions(text, cases.table, cases.available_metrics(), cases.failing)

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

        names = list(self.cases.sort_names().values())
        self.ask_live(
            *("Sort by:", hint, before, self.set_sort, reversed_if_same),
            complete=lambda text: _named(names, text),
        )

    def set_columns(self, text: str) -> str:
        """Show these metrics; nothing means the main ones. Raises QueryError."""
        self.cases.set_columns(text)
        self.show()
        return ""

    def ask_columns(self) -> None:
        """Ask which metrics to show."""
        names = " ".join([*self.cases.available_metrics()][:60])
        before = " ".join(self.cases.metrics or [])
        self.ask_live("Columns:", f"of {names}; none: the main ones", before, self.set_columns)

    def set_success(self, text: str) -> str:
        """Define success by a condition; an empty one restores the rules. Raises QueryError."""
        self.cases.set_success(text)
        self.show()
        return self.cases.failing.describe()

    def ask_success(self) -> None:
        """Ask for the definition of success."""
        condition = self.cases.condition
        hint = "such as recall@5>0; empty: the rules of the second help page"
        before = condition.text if condition else ""
        self.ask_live("Success is:", hint, before, self.set_success, complete=self._terms)


def _named(names: Sequence[str], text: str) -> list[tuple[str, str]]:
    """The names that begin as typed, a minus before them kept."""
    minus, typed = text[: text.startswith("-")], text.removeprefix("-").casefold()
    return [(minus + name, name) for name in names if name.casefold().startswith(typed)]


def ask_export(screen: ActionScreen[Any], cases: CaseList) -> None:
    """Ask for form and name of a file for the listed cases, and write it."""
    listed = cases.listed
    if not listed:
        raise ActionRefused("no case is shown, so there is nothing to export")

    def chosen(key: str | None) -> None:
        if not key:
            return
        form = answers[key]
        name = _free_name(cases.export_name(form))
        label = f"Write {counted(len(listed), 'case')} to (nothing is overwritten):"
        screen.app.push_screen(LinePrompt(label, name), lambda text: named(form, text))

    def named(form: str, text: str | None) -> None:
        if text and text.strip():
            _export(screen, cases, form, Path(text.strip()).expanduser())

    answers = {form[0]: form for form in EXPORTS}
    text = f"Export {counted(len(listed), 'case')} as\n" + "\n".join(
        f"  {form[0]}  {about}" for form, about in EXPORTS.items()
    )
    screen.app.push_screen(Ask(text, answers), chosen)


def _export(screen: ActionScreen[Any], cases: CaseList, form: str, path: Path) -> None:
    table, listed = cases.drawn[0], cases.listed
    keys = [table.keys[row] for row in listed]
    reasons = [cases.reason(row) for row in listed]
    screen.say(f"writing {path} …")

    def write() -> None:
        try:
            count = cases.run.export(keys, reasons, form, path)
        except StorageError as error:
            screen.app.call_from_thread(screen.say, error.message, "warn")
        else:
            done = f"Wrote {counted(count, 'case')} to {path}."
            screen.app.call_from_thread(screen.say, done)

    screen.run_worker(write, thread=True, exit_on_error=False)


def _free_name(name: str) -> str:
    """A file name that is not taken in the present folder."""
    path = Path(name)
    number = 2
    while path.exists():
        path = Path(f"{Path(name).stem}-{number}{Path(name).suffix}")
        number += 1
    return str(path)

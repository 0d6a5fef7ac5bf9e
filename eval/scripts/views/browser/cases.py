"""The screen of the cases of one run or of two: filter, order, columns, opening, exporting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textual.command import Hit, Hits
from textual.content import Content

from decisions.case_verdict import Key
from records.errors import StorageError
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.lists import Line
from terminal.palette import ActionCommands
from terminal.safe_text import one_line
from terminal.tables import counted
from terminal.windows import Ask, LinePrompt
from views.browser import rows
from views.browser.actions import Browser, label_case, note_acts
from views.browser.case_page import case_markdown
from views.browser.failing import FIELDS, Group
from views.browser.listing import CaseList, PairList
from views.browser.lists import GroupsScreen, ListScreen
from views.browser.pages import CaseScreen, PageScreen, PairScreen
from views.browser.query import completions
from views.case_blocks import ShownWith
from views.library import EXPORTS

EXAMPLES = "failing category=x tag=x recall@5=0 latency>500 -tag=x words"


class _CaseCommands(ActionCommands):
    """The actions of the screen, and the case whose id is typed."""

    async def search(self, query: str) -> Hits:
        """The case of that id first, then the actions that match."""
        screen, case_id = self.screen, query.strip()
        if isinstance(screen, CasesScreen) and screen.cases.table.row_of(case_id) is not None:
            title = one_line(f"open case {case_id}", 200)
            opens = partial(screen.open_alone, (case_id, 0))
            yield Hit(2.0, Content(title), opens, text=title)
        async for hit in super().search(query):
            yield hit


class CasesScreen(ListScreen[None], inherit_bindings=False):
    """The cases of one run, or of two: filter, order, columns, and opening one.

    Prompts stand at the bottom of the screen; a filter and an order work while they are typed.
    """

    def __init__(self, browser: Browser, cases: CaseList) -> None:
        super().__init__(browser, cases.where)
        self.cases = cases

    commands, left = _CaseCommands, rows.LEFT

    def acts(self) -> Acts:
        cases = self.cases
        acts: Acts = {
            **super().acts(),
            "open": self.open,
            "label": lambda: label_case(self, self.browser, cases.run.run_id, self.id_in_view()),
            **note_acts(
                self, self.browser, lambda: (self.id_in_view(), cases.run.run_id), self.show
            ),
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
        return {**acts, "compare": self.ask_base}

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
        if columns != self.columns:
            self.columns = columns
            self.rows.refresh()
        cases = self.cases
        self.draw_head(
            tuple(cases.title(self.look)),
            tuple(cases.second_line(width)),
            rows.heading(columns, cases.sort, cases.reverse, self.look.ascii),
            rows.means_row(columns, len(cases.listed), lambda name: cases.mean(name, self.look)),
        )

    def row_line(self, index: int, width: int) -> Line:
        if index >= len(self.cases.listed):
            return ()
        row = self.cases.listed[index]
        return self.cases.row_line(row, self.columns, self.sign(index), self.look)

    @property
    def heads_y(self) -> int:
        return self.head.region.bottom - 2  # the means stand below

    def sort_by(self, name: str) -> None:
        self.cases.sort_by(name)
        self.show()

    # -- what leaves the screen -----------------------------------------------------------------

    def id_in_view(self) -> str:
        return self.cases.table.ids[self.row]

    def copy_case(self) -> None:
        """Give the case under the cursor to the clipboard, as Markdown."""
        key = self.cases.table.keys[self.row]
        detail = self.cases.run.detail(key)
        if detail is None:
            raise ActionRefused("this case is not in the files any more")
        fails, state = self.cases.failing.state(self.cases.table, key, detail)
        view = ShownWith(state, failing=fails, notes=self.browser.library.notes.of(detail.case_id))
        self.copy_out(case_markdown(self.cases.run.run_id, detail, view), "case")

    # -- groups ---------------------------------------------------------------------------------

    def ask_group(self) -> None:
        """Ask for a field, and count the listed cases by it."""

        def show(field: str) -> None:
            groups = self.cases.groups(field or self.cases.grouped_by)
            self.app.push_screen(GroupsScreen(self.browser, self.cases, groups), self._narrowed)

        def answered(text: str | None) -> None:
            if text is not None:
                self.attempt(lambda: show(text))

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

        self.app.push_screen(GroupsScreen(self.browser, self.cases, groups), closed)

    def _narrowed(self, group: Group | None) -> None:
        if group is not None:
            self.attempt(lambda: self.cases.narrow(group))

    # -- one case -------------------------------------------------------------------------------

    @property
    def row(self) -> int:
        """The table's row under the cursor. Refuses when there is none."""
        if self.rows.cursor >= len(self.cases.listed):
            hint = "; Esc in / takes the filter away" if self.cases.filter else ""
            raise ActionRefused(f"no case here{hint}")
        return self.cases.listed[self.rows.cursor]

    def open(self) -> None:
        """Show the case under the cursor: in its run, or in both."""
        cases, at = self.cases, self.cases.index_of(self.row, 0)
        keys = [cases.table.keys[row] for row in cases.listed]
        page: PageScreen
        if isinstance(cases, PairList):
            page = PairScreen(self.browser, cases, keys, at)
        else:
            page = CaseScreen(self.browser, cases.run, cases.failing, keys, at, cases)
        self.app.push_screen(page, self.closed)

    def open_alone(self, key: Key) -> None:
        """Show a case of the run, in the list or not."""
        cases = self.cases
        self.app.push_screen(CaseScreen(self.browser, cases.run, cases.failing, [key]))

    def closed(self, key: Key | None) -> None:
        """A page was closed on a case: the cursor goes there."""
        self.changed()
        row = None if key is None else self.cases.table.row_of(*key)
        if row is not None:
            self.move_to(self.cases.index_of(row, self.rows.cursor))

    def ask_base(self) -> None:
        """Ask which run this one is compared with."""
        new = self.cases.run.run_id
        others = [run.run_id for run in self.browser.library.refresh() if run.run_id != new]
        if not others:
            raise ActionRefused("there is no other run to compare with")

        def closed(name: str | None) -> None:
            if name is None:
                return
            matches = [other for other in others if one_line(other) == name]
            matches = matches or [other for other in others if name and other.startswith(name)]
            if len(matches) == 1:
                self.attempt(lambda: self.browser.open_runs(matches[0], new))
            else:
                self.say(f"no run, or several, named {name}: {', '.join(others[:8])}", "warn")

        label = one_line(f"Compare with (base): {', '.join(others[:8])}", 400)
        self.app.push_screen(LinePrompt(label, others[0]), closed)

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
        reasons = cases.failing.reasons(cases.table)
        return completions(text, cases.table, cases.available_metrics(), reasons)

    def turn_failing(self) -> None:
        """Failing cases only, or all again."""
        words = self.cases.filter.text.split() if self.cases.filter else []
        if "failing" in words:
            words = [word for word in words if word not in ("failing", "only")]
        else:
            words.insert(0, "failing")
        self.say(self.set_filter(" ".join(words)))

    def ask_sort(self) -> None:
        """Ask for the order."""
        before = self.cases.sort_text
        hint = "order, id, state, latency, category, a metric; - before it: largest first; "
        hint += "Enter alone reverses"
        names = list(self.cases.sort_names().values())

        def choose(text: str) -> str:
            self.cases.set_sort(text)
            self.show()
            return f"sorted by {text.strip() or 'the order of the set'}"

        def reversed_if_same(text: str) -> str:
            if text.strip() != before:
                return text
            return before.removeprefix("-") if before.startswith("-") else f"-{before or 'order'}"

        self.ask_live(
            *("Sort by:", hint, before, choose, reversed_if_same),
            complete=lambda text: _named(names, text),
        )

    def ask_columns(self) -> None:
        """Ask which metrics to show; none: the main ones."""
        names = " ".join([*self.cases.available_metrics()][:60])
        before = " ".join(self.cases.metrics or [])

        def choose(text: str) -> str:
            self.cases.set_columns(text)
            self.show()
            return ""

        self.ask_live("Columns:", f"of {names}; none: the main ones", before, choose)

    def ask_success(self) -> None:
        """Ask for the definition of success; an empty one restores the rules."""
        condition = self.cases.condition
        hint = "such as recall@5>0; empty: the rules of the second help page"
        before = condition.text if condition else ""

        def choose(text: str) -> str:
            self.cases.set_success(text)
            self.show()
            return self.cases.failing.describe()

        self.ask_live("Success is:", hint, before, choose, complete=self._terms)


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
    keys = [cases.table.keys[row] for row in cases.listed]
    reasons = [cases.reason(row) for row in cases.listed]
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

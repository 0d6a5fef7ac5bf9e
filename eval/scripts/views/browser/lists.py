"""The parts that all list screens share, and the screen of the groups of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult

from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.frame import Look, cut
from terminal.lists import Bar, Line, LineList
from terminal.palette import ActionCommands
from terminal.safe_text import cells, display, one_line
from terminal.tables import counted
from terminal.windows import LinePrompt
from views.browser import rows
from views.browser.actions import ACTIONS, GROUPS, HINTS, Browser, common_acts
from views.browser.failing import Group
from views.browser.listing import CaseList
from views.browser.query import QueryError

ListResult = TypeVar("ListResult")

Completer = Callable[[str], Sequence[tuple[str, str]]]
"""Function from a typed line to its completions: the line, and a remark on it."""


class ListScreen(ActionScreen[ListResult], inherit_bindings=False):
    """A head, rows and the keys that move in them. Rows are drawn when they come into view."""

    def __init__(self, browser: Browser, where: str) -> None:
        look = Look(ascii=browser.ascii_only)
        super().__init__(ACTIONS[where].values(), HINTS[where].split(), look)
        self.browser = browser
        self.where = where
        self.head = Bar(id="head")
        self.rows = LineList(self.row_line, id="rows")
        self.columns: list[rows.Column] = []
        self.hint = ""
        """What may be written into the prompt that is open."""
        self._moved_by_click = False

    commands: ClassVar[type[ActionCommands]] = ActionCommands
    """What the palette finds."""

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.rows
        yield self.end

    def draw_head(self, title: Line, second: Line, *others: Line) -> None:
        """Draw the lines above the list; a hint takes the place of the second one."""
        if self.hint:
            second = (("key", one_line(f" {self.hint}", 1000)),)
        lines = [cut(line, self.size.width) for line in (title, second)]
        self.head.show([*lines, *others])

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
            **common_acts(self, self.browser, self.where, self.dismiss, self.commands),
            "down": lambda: self.move_to(self.rows.cursor + 1),
            "up": lambda: self.move_to(self.rows.cursor - 1),
            "page-down": lambda: self.move_to(self.rows.cursor + page),
            "page-up": lambda: self.move_to(self.rows.cursor - page),
            "read-on": lambda: self.move_to(self.rows.cursor + page),
            "go-to-row": self.ask_row,
            "copy-id": lambda: self.copy_out(self.id_in_view(), "id"),
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
        """A click on the head of a column sorts by it."""
        if event.screen_y == self.heads_y and self.screen is self.app.screen:
            left = self.left
            for column in self.columns:
                if left <= event.screen_x < left + column.width + 1:
                    self.sort_by(column.name)
                    break
                left += column.width + 1

    left = 1
    """Cells before the first column."""

    @property
    def heads_y(self) -> int:
        """The line of column heads on the screen."""
        return self.head.region.bottom - 1

    def sort_by(self, name: str) -> None:
        """Sort by a column, where that is possible."""


_ORDERS: dict[str, Callable[[Group], tuple[float, str]]] = {
    "failing": lambda group: (-group.failing, group.value),
    "share": lambda group: (-group.share, group.value),
    "cases": lambda group: (-len(group.rows), group.value),
    "value": lambda group: (0, group.value),
}
"""Orders of groups, the next one by each press of the key."""


class GroupsScreen(ListScreen[Group], inherit_bindings=False):
    """The cases of a list counted by a field. Enter shows those of a group."""

    def __init__(self, browser: Browser, cases: CaseList, groups: Sequence[Group]) -> None:
        super().__init__(browser, GROUPS)
        self.cases = cases
        self.groups = list(groups)
        self.order = "failing"
        self._table = cases.table

    def acts(self) -> Acts:
        return {**super().acts(), "open": self.open, "sort": self.turn_sort}

    @property
    def none_word(self) -> str:
        """The name of a group without a value."""
        return "(does not fail)" if self.cases.grouped_by == "reason" else "(none)"

    def show(self) -> None:
        width = self.size.width
        longest = max((cells(one_line(group.value, 400)) for group in self.groups), default=0)
        longest = max(longest, len(self.none_word))
        by_reason = sum((Counter(group.reasons) for group in self.groups), Counter[str]())
        words = [word for word, _ in by_reason.most_common()]
        words = [] if self.cases.grouped_by == "reason" else words
        self.columns = rows.group_columns(width, self.cases.shown_metrics(), longest, words)
        if self.rows.count != len(self.groups):
            self.rows.set_count(len(self.groups), self.rows.cursor)
        filter_text = self.cases.filter.text if self.cases.filter else ""
        about = f"  {counted(len(self.cases.listed), 'case')}, {counted(len(self.groups), 'group')}"
        title = one_line(f" {self.cases.run.run_id} by {self.cases.grouped_by}", 200)
        second = f" filter: {filter_text}" if filter_text else " all cases"
        self.draw_head(
            (("term", title), ("row", display(about))),
            (("dim", one_line(second, 300)),),
            rows.heading(self.columns, self.order, self.order != "value", self.look.ascii, 1),
        )
        self.rows.refresh()

    def row_line(self, index: int, width: int) -> Line:
        group = self.groups[index]
        sign = self.sign(index)
        return rows.group_row(
            self._table, group, self.columns, sign, self.none_word, ascii_only=self.look.ascii
        )

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
        names = list(_ORDERS)
        self.sort_by(names[(names.index(self.order) + 1) % len(names)])

    def sort_by(self, order: str) -> None:
        if order not in _ORDERS:
            return
        group = self.group
        self.order = order
        self.groups.sort(key=_ORDERS[order])
        self.rows.set_count(len(self.groups), self.groups.index(group))
        self.show()
        self.say(f"sorted by {order}")

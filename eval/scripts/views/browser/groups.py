"""The screen of groups: the cases of a list counted by a field, with means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from terminal.action_screen import Acts
from terminal.actions import ActionRefused
from terminal.frame import cut
from terminal.lists import Line
from terminal.safe_text import cells, display, one_line
from terminal.tables import counted
from views.browser import rows
from views.browser.actions import GROUPS
from views.browser.listing import CaseList
from views.browser.lists import ListScreen, Opener
from views.browser.summary import Group

_ORDERS: dict[str, Callable[[Group], tuple[float, str]]] = {
    "failing": lambda group: (-group.failing, group.value),
    "share": lambda group: (-group.share, group.value),
    "cases": lambda group: (-len(group.rows), group.value),
    "value": lambda group: (0, group.value),
}
"""Orders of groups, the next one by each press of the key."""


class GroupsScreen(ListScreen[Group], inherit_bindings=False):
    """The cases of a list counted by a field. Enter shows those of a group."""

    def __init__(
        self, browser: Opener, cases: CaseList, groups: Sequence[Group], *, ascii_only: bool
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
        names = list(_ORDERS)
        self._sort_by(names[(names.index(self.order) + 1) % len(names)])

    def _sort_by(self, order: str) -> None:
        group = self.group
        self.order = order
        self.groups.sort(key=_ORDERS[order])
        self.rows.set_count(len(self.groups), self.groups.index(group))
        self.show()
        self.say(f"sorted by {order}")

    def clicked_heading(self, x: int) -> None:
        left = 1
        for column in self._columns:
            if left <= x < left + column.width + 1 and column.name in _ORDERS:
                self._sort_by(column.name)
            left += column.width + 1

"""Which cases a page walks through: those of the list it was opened from, and what comes to it."""

from __future__ import annotations

from collections.abc import Sequence

from views.browser.cases_screen import CasesScreen
from views.browser.model import Key
from views.browser.table import Table


class Walk:
    """Places from 0 up, each with the key of a case. A single case by default."""

    def __init__(self, table: Table, rows: Sequence[int]) -> None:
        self._table, self._rows = table, rows

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, place: int) -> Key:
        """Case id and repeat of the case at ``place``."""
        return self._table.key(self._rows[place])

    def follow(self, place: int) -> int:
        """Take in what the list shows now; where the case at ``place`` stands by then."""
        return place


class ListWalk(Walk):
    """The cases of a list, in its order when the page was opened.

    What comes to the list later comes behind them; a case that only left the list stays.
    """

    def __init__(self, screen: CasesScreen) -> None:
        super().__init__(screen.drawn[0], screen.listed)
        self._screen = screen
        self._listed = screen.listed

    def follow(self, place: int) -> int:
        table, listed = self._screen.drawn[0], self._screen.listed
        if listed is self._listed:
            return place
        self._listed = listed
        key = self.key(place)
        if table is self._table and isinstance(listed, range) and isinstance(self._rows, range):
            self._rows = listed  # nothing is filtered or sorted: it has grown at its end
            return place
        keys = map(self._table.key, self._rows)
        rows = [row for one in keys if (row := table.row_of(*one)) is not None]
        known = set(rows)
        rows += [row for row in listed if row not in known]
        row = table.row_of(*key)
        if row is None:  # the case in view is gone: it stays in view, and in the old reading
            return place
        self._table, self._rows = table, rows
        return rows.index(row)

"""The cases of one run: filter, sort, columns, and opening one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from terminal.actions import ActionRefused
from terminal.frame import cut
from terminal.lists import Line, Span
from terminal.safe_text import display, one_line
from views.browser import lines
from views.browser.choosing import Choosing
from views.browser.model import OpenRun
from views.browser.query import Query
from views.browser.success import Success
from views.browser.table import Table

LARGE = 20_000
"""From so many cases on, a filter or order is not redone while the files are still being read."""


class CasesScreen(Choosing, inherit_bindings=False):
    """One run. Rows of the list are places in `listed`, which holds rows of the table."""

    where = "cases"

    def __init__(self, run: OpenRun, *, ascii_only: bool) -> None:
        super().__init__(ascii_only=ascii_only)
        self.run = run
        self.success = Success()
        self.listed: Sequence[int] = ()
        self.drawn: tuple[Table, int] = (run.table, -1)
        """The table that `listed` is of, and which version of it."""
        self._columns: list[lines.Column] = []
        self.want_columns()

    @property
    def table(self) -> Table:
        return self.run.table

    def shown_metrics(self) -> list[str]:
        """The metrics with a column: the user's, else the main ones that the run has."""
        if self.metrics is not None:
            return self.metrics
        return [name for name in lines.MAIN if name in self.table.metrics]

    # -- what is in the list --------------------------------------------------------------------

    def candidates(self) -> Sequence[int]:
        """The rows that there are before any filter."""
        return range(self.table.count)

    def select(self, query: Query, rows: Sequence[int]) -> Sequence[int]:
        """The rows that a filter lets through."""
        return query.select(self.table, rows, self.success.codes)

    def update(self) -> None:
        """Work out the list again; the cursor stays on its case."""
        table, _ = self.drawn
        key = None
        if self.listed and self.rows.cursor < len(self.listed):
            key = table.key(self.listed[self.rows.cursor])
        self.drawn = (self.table, self.table.version)
        rows = self.candidates()
        if self.filter is not None and self.filter.terms:
            rows = self.select(self.filter, rows)
        if (self.sort, self.reverse) != ("order", False):
            rows = self.ordered(rows)
        self.listed = rows
        place = 0
        if key is not None and (row := self.table.row_of(*key)) is not None:
            place = self._place_of(row)
        if self.rows.cursor == place:
            self.rows.grow(len(rows))
            self.rows.refresh()
        else:
            self.rows.set_count(len(rows), place)

    def ordered(self, rows: Sequence[int]) -> Sequence[int]:
        """Rows in the chosen order; a column that is not read yet leaves them as they are."""
        if self.sort == "why":
            codes = self.success.codes(self.table)
            return sorted(rows, key=codes.__getitem__, reverse=not self.reverse)
        if self.table.missing([self.sort]):
            return rows
        return self.table.ordered(rows, self.sort, self.reverse)

    def _place_of(self, row: int) -> int:
        if isinstance(self.listed, range):
            return row
        try:
            return self.listed.index(row)
        except ValueError:
            return self.rows.cursor

    def changed(self) -> None:
        table, version = self.drawn
        if table is not self.table:
            self.want_columns()
        plain = not (self.filter and self.filter.terms) and self.sort == "order"
        waiting = self.run.reading and self.table.count > LARGE and not plain
        if (self.table is not table or version != self.table.version) and not waiting:
            self.update()
        self.show_head()

    def want_columns(self) -> None:
        """Ask for the columns that the screen needs, as soon as the run is known to have them."""
        self.want([*self.shown_metrics(), *self.success.needs])

    def want(self, names: Collection[str]) -> None:
        self.run.want(list(names))

    # -- drawing --------------------------------------------------------------------------------

    def show(self) -> None:
        self.update()
        self.show_head()

    def show_head(self) -> None:
        """Draw the lines above the list."""
        width = self.size.width
        if width <= 0:
            return
        longest = max((len(name) for name in self.table.ids[:500]), default=4)
        metrics = self.shown_metrics()
        chosen = self.metrics is not None
        columns = lines.case_columns(width, metrics, longest, chosen=chosen)
        columns = self.widened(columns)
        if columns != self._columns:
            self._columns = columns
            self.rows.refresh()
        self.head.show(
            [
                cut(self.title_line(), width),
                cut(self.choices(), width),
                lines.heading(columns, self.sort, self.reverse, self.look.ascii),
            ]
        )

    def widened(self, columns: list[lines.Column]) -> list[lines.Column]:
        """The columns as this screen needs them."""
        return columns

    def title_line(self) -> list[Span]:
        """The run, its state, and the counts."""
        info, table = self.run.info, self.table
        failing = table.count - self.success.codes(table).count(0)
        spans: list[Span] = [("term", one_line(f" {self.run.run_id}", 60))]
        if progress := lines.progress(info, table.count):
            spans.append(("key", display(f"  {progress}")))
        spans.append(("row", display(f"  {table.count} cases, ")))
        spans.append(("bad" if failing else "good", display(f"{failing} fail")))
        if not table.metrics:
            spans.append(("warn", display("  not scored yet")))
        if len(self.listed) != table.count:
            spans.append(("key", display(f"  showing {len(self.listed)}")))
        if self.run.reading:
            spans.append(("dim", one_line(f"  reading {self.run.reading} …", 80)))
        return spans

    def choices(self) -> list[Span]:
        """The filter; or what the user should know; or how to filter."""
        if self.hint:
            return [("key", one_line(f" {self.hint}", 1000))]
        notices = self.run.notices
        if self.filter is not None and self.filter.terms:
            return [("key", display(" filter: ")), ("row", one_line(self.filter.text, 300))]
        if notices:
            more = f" (and {len(notices) - 1} more)" if len(notices) > 1 else ""
            first = cut([("warn", one_line(f" {notices[0]}", 300))], self.size.width - len(more))
            return [*first, ("warn", display(more))]
        return [("dim", display(" / filters, such as: failing category=factual recall@5<1 words"))]

    def row_line(self, index: int, width: int) -> Line:
        if index >= len(self.listed):
            return ()
        table, _ = self.drawn
        row, sign = self.listed[index], self.sign(index)
        return lines.case_row(table, row, self._columns, self.success, sign=sign)

    def clicked_heading(self, x: int) -> None:
        left = 1
        for column in self._columns:
            if left <= x < left + column.width + 1:
                self.sort_by(column.name)
            left += column.width + 1

    # -- actions --------------------------------------------------------------------------------

    @property
    def row(self) -> int:
        """The table's row under the cursor. Refuses when there is none."""
        if self.rows.cursor >= len(self.listed):
            raise ActionRefused(
                "no case here" + ("; Esc in / takes the filter away" * bool(self.filter))
            )
        return self.listed[self.rows.cursor]

    def fails(self, row: int) -> bool:
        """Does a row count as failing, for n and p?"""
        return bool(self.success.codes(self.table)[row])

    def _next_failing(self, by: int) -> None:
        places = range(self.rows.cursor + by, len(self.listed) if by > 0 else -1, by)
        for place in places:
            if self.fails(self.listed[place]):
                self.move_to(place)
                return
        raise ActionRefused(f"no case that fails {'below' if by > 0 else 'above'} this one")

    def do_next(self) -> None:
        self._next_failing(1)

    def do_previous(self) -> None:
        self._next_failing(-1)

    def do_open(self) -> None:
        self.browse_app.open_case(self, self.row)

    def do_label(self) -> None:
        self.label(self.run.run_id, self.table.ids[self.row])

    def do_compare(self) -> None:
        self.browse_app.ask_base(self.run.run_id)

    def closed(self, row: int | None) -> None:
        """A page was closed on the case of `row`: the cursor goes there."""
        self.changed()
        if row is not None:
            self.move_to(self._place_of(row))

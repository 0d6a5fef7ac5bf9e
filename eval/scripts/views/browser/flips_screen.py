"""Two runs: the cases whose success changed, or all that both have."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from terminal.actions import ActionRefused
from terminal.lists import Line, Span
from terminal.safe_text import display, one_line
from views.browser import lines
from views.browser.case_page import flips
from views.browser.cases_screen import CasesScreen
from views.browser.model import OpenRun
from views.browser.query import Query
from views.browser.success import Success

SCORE_PAIR = 11


class FlipsScreen(CasesScreen, inherit_bindings=False):
    """`run` is the new one; rows are rows of its table. A row's place in the base run is kept."""

    where = "flips"

    def __init__(self, base: OpenRun, new: OpenRun, *, ascii_only: bool) -> None:
        self.base = base
        self.base_success = Success()
        self.only_flips = True
        self.flips: dict[int, str] = {}
        self._pairs: dict[int, int] = {}
        self._paired: tuple[object, ...] = ()
        super().__init__(new, ascii_only=ascii_only)
        self.want_columns()

    # -- pairs ----------------------------------------------------------------------------------

    def known_metrics(self) -> Collection[str]:
        """Metrics that both runs have: only these can be compared."""
        return [name for name in self.table.metrics if name in self.base.table.metrics]

    def shown_metrics(self) -> list[str]:
        shared = set(self.known_metrics())
        condition = self.success.condition
        names = [*(condition.needs if condition and self.metrics is None else ())]
        return [name for name in dict.fromkeys(names + super().shown_metrics()) if name in shared]

    def want(self, names: Collection[str]) -> None:
        self.run.want(list(names))
        self.base.want(list(names))

    def want_columns(self) -> None:
        self.want([*self.shown_metrics(), *self.success.needs, *self.base_success.needs])

    def take_success(self, condition: Query | None) -> None:
        self.success, self.base_success = Success(condition), Success(condition)

    def _pair(self) -> None:
        """Match the rows of both tables, and find the flips, if either table has changed."""
        base, new = self.base.table, self.table
        now = (base, base.version, new, new.version, self.success.condition)
        if now == self._paired:
            return
        self._paired = now
        shared = None if self.success.condition else set(self.known_metrics())
        if self.success.metrics != shared:
            condition = self.success.condition
            self.success = Success(condition, shared)
            self.base_success = Success(condition, shared)
        self._pairs = {}
        for row in range(new.count):
            found = base.row_of(*new.key(row))
            if found is not None:
                self._pairs[row] = found
        before, after = self.base_success.codes(base), self.success.codes(new)
        keys = [
            (base_row, row)
            for row, base_row in self._pairs.items()
            if base_row < len(before) and row < len(after)
        ]
        self.flips = flips(keys, before, after)

    def candidates(self) -> Sequence[int]:
        self._pair()
        return sorted(self.flips) if self.only_flips else sorted(self._pairs)

    def select(self, query: Query, rows: Sequence[int]) -> Sequence[int]:
        return query.select(self.table, rows, self.success.codes, self.flips)

    def changed(self) -> None:
        if self._paired[:2] != (self.base.table, self.base.table.version):
            self.want_columns()
            self.update()
        super().changed()

    # -- drawing --------------------------------------------------------------------------------

    def title_line(self) -> list[Span]:
        arrow = "->" if self.look.ascii else "→"
        broke = sum(word == "broke" for word in self.flips.values())
        fixed = len(self.flips) - broke
        names = f" {one_line(self.base.run_id, 40)} {arrow} {one_line(self.run.run_id, 40)}"
        spans: list[Span] = [
            ("term", display(names)),
            ("row", display(f"  {len(self._pairs)} cases in both  ")),
            ("bad" if broke else "dim", display(f"{broke} broke")),
            ("row", display("  ")),
            ("good" if fixed else "dim", display(f"{fixed} fixed")),
            ("dim", display("  flips only" if self.only_flips else "  all cases")),
        ]
        reading = self.run.reading or self.base.reading
        if reading:
            spans.append(("dim", one_line(f"  reading {reading} …", 80)))
        return spans

    def choices(self) -> list[Span]:
        if self.filter is None and not self.hint:
            return [("dim", one_line(f" success: {self.success.describe()} (! changes it)", 300))]
        return super().choices()

    def widened(self, columns: list[lines.Column]) -> list[lines.Column]:
        """Score columns hold two numbers; those that do not fit any more are left out."""
        wide, used, width = [], 1, self.size.width
        for column in columns[:-1]:
            if column.right:
                column = replace(column, width=SCORE_PAIR)
                if used + SCORE_PAIR + 1 + lines.QUESTION_MIN > width:
                    break
            wide.append(column)
            used += column.width + 1
        return [*wide, replace(columns[-1], width=max(0, width - used))]

    def row_line(self, index: int, width: int) -> Line:
        if index >= len(self.listed):
            return ()
        row = self.listed[index]
        return lines.flip_row(
            self.base.table,
            self.table,
            (self._pairs.get(row, 0), row),
            self._columns,
            (self.base_success, self.success),
            sign=self.sign(index),
            ascii_only=self.look.ascii,
        )

    # -- actions --------------------------------------------------------------------------------

    def fails(self, row: int) -> bool:
        return self.flips.get(row) == "broke" if not self.only_flips else row in self.flips

    def do_everything(self) -> None:
        self.only_flips = not self.only_flips
        self.show()

    def do_open(self) -> None:
        self.browse_app.open_pair(self, self.row)

    def do_compare(self) -> None:
        raise ActionRefused("these are two runs already")

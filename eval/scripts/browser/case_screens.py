"""The page of one case, and the page of one case in two runs."""

from __future__ import annotations

from browser.case_page import case_docs, raw_doc
from browser.cases_screen import CasesScreen
from browser.document import Doc
from browser.flips_screen import FlipsScreen
from browser.lines import flip_word
from browser.model import Detail, OpenRun
from browser.page_screen import PageScreen
from browser.pair_page import Side, pair_docs
from browser.success import Success
from browser.table import Table


class CaseScreen(PageScreen, inherit_bindings=False):
    """Question, answer with its claims, expected, retrieved chunks, verdicts, scores, trace."""

    where = "case"

    def __init__(self, run: OpenRun, keys: Keys, place: int, success: Success, *, ascii_only: bool):
        super().__init__(len(keys), place, ascii_only=ascii_only)
        self.run = run
        self.success = success
        self.full = self.raw = False
        self._keys_of_list = keys
        self._read: tuple[Table, int] = (run.table, -1)
        self.load()

    def load(self) -> None:
        table = self.run.table
        self._read = (table, table.version)
        self.detail: Detail = self.run.detail(self._keys_of_list.row(table, self.at))

    def changed(self) -> None:
        """The files were written again: the page shows what stands there now."""
        if (self.run.table, self.run.table.version) != self._read:
            before = self.detail
            self.load()
            if self.detail != before:
                self.redraw()

    @property
    def row(self) -> int:
        return self._keys_of_list.row(self.run.table, self.at)

    def result(self) -> int | None:
        return self.row

    def label_text(self) -> str:
        return f"{self.run.run_id}  {self.detail.case_id}"

    def docs(self) -> tuple[Doc, Doc | None]:
        if self.raw:
            return raw_doc(self.blank, self.detail), None
        codes = self.success.codes(self.run.table)
        code = codes[self.row] if self.row < len(codes) else 0
        condition = self.success.condition
        holds = f"ok: {condition.text}" if condition else "ok: no rule is broken"
        state = f"FAILS: {self.success.says(code)}" if code else holds
        if not self.run.table.metrics and not code:
            state = "not scored yet"
        return case_docs(
            self.blank, self.detail, state, failing=bool(code), full=self.full, two=self.two
        )

    def show(self) -> None:
        self.set_class(self.two and not self.raw, "-two")
        super().show()

    def do_full(self) -> None:
        self.full = not self.full
        self.show()
        self.say("chunks in full" if self.full else "beginnings of chunks")

    def do_raw(self) -> None:
        self.raw = not self.raw
        for page in self.pages:
            page.top = 0
        self.show()

    def do_label(self) -> None:
        self.label(self.run.run_id, self.detail.case_id)


class Keys:
    """Which cases a page walks through: as the list was when the page was opened."""

    def __init__(self, screen: CasesScreen) -> None:
        self._table = screen.table
        self._rows = screen.listed

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, table: Table, place: int) -> int:
        """The row of the case at `place`; the table may be a newer one. 0 when it is gone."""
        row = self._rows[place]
        if table is self._table:
            return row
        return table.row_of(*self._table.key(row)) or 0


class PairScreen(PageScreen, inherit_bindings=False):
    """What changed between two runs for one case."""

    where = "pair"

    def __init__(self, screen: FlipsScreen, place: int, *, ascii_only: bool) -> None:
        self.list = screen
        self._keys_of_list = Keys(screen)
        super().__init__(len(self._keys_of_list), place, ascii_only=ascii_only)
        self.load()

    @property
    def rows(self) -> tuple[int, int]:
        """The rows in the base run and in the new one."""
        new = self._keys_of_list.row(self.list.table, self.at)
        return self.list.base_row(new), new

    def load(self) -> None:
        base, new = self.rows
        self.details = (self.list.base.detail(base), self.list.run.detail(new))

    def changed(self) -> None:
        self.list.changed()
        before = self.details
        self.load()
        if self.details != before:
            self.redraw()

    def result(self) -> int | None:
        return self.rows[1]

    def label_text(self) -> str:
        arrow = "->" if self.look.ascii else "→"
        return f"{self.list.base.run_id} {arrow} {self.list.run.run_id}  {self.details[1].case_id}"

    def docs(self) -> tuple[Doc, Doc | None]:
        runs = (self.list.base, self.list.run)
        successes = (self.list.base_success, self.list.success)
        codes = [
            success.codes(run.table)[row]
            for success, run, row in zip(successes, runs, self.rows, strict=True)
        ]
        base, new = (
            Side(run.run_id, detail, success.says(code))
            for run, detail, success, code in zip(runs, self.details, successes, codes, strict=True)
        )
        change = flip_word(*codes)
        return pair_docs(self.blank, base, new, change, two=self.two)

    def _open_one(self, run: OpenRun, success: Success, row: int) -> None:
        keys = OneKey(run.table, row)
        screen = CaseScreen(run, keys, 0, success, ascii_only=self.look.ascii)
        self.app.push_screen(screen)

    def do_base(self) -> None:
        self._open_one(self.list.base, self.list.base_success, self.rows[0])

    def do_new(self) -> None:
        self._open_one(self.list.run, self.list.success, self.rows[1])

    def do_label(self) -> None:
        self.label(self.list.run.run_id, self.details[1].case_id)


class OneKey(Keys):
    """A page that walks nowhere."""

    def __init__(self, table: Table, row: int) -> None:
        self._table = table
        self._rows = (row,)

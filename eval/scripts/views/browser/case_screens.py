"""The page of one case, and the page of one case in two runs."""

from __future__ import annotations

from terminal.actions import ActionRefused
from views.browser.case_page import Side, case_docs, pair_docs, raw_doc
from views.browser.document import Doc
from views.browser.flips_screen import FlipsScreen
from views.browser.lines import flip_word, progress
from views.browser.model import Detail, Key, OpenRun
from views.browser.page_screen import PageScreen
from views.browser.success import Success
from views.browser.walk import ListWalk, Walk


class CaseScreen(PageScreen, inherit_bindings=False):
    """Question, answer with its claims, expected, retrieved chunks, verdicts, scores, trace."""

    where = "case"

    def __init__(self, run: OpenRun, walk: Walk, place: int, success: Success, *, ascii_only: bool):
        super().__init__(walk, place, ascii_only=ascii_only)
        self.run = run
        self.success = success
        self.full = self.raw = False
        self.detail = no_detail(walk.key(place))
        self.load()

    def load(self) -> bool:
        before, was_gone = self.detail, self.gone
        found = self.run.detail(self.walk_through.key(self.at))
        self.gone = found is None
        self.detail = found or known(before, self.walk_through.key(self.at))
        return (self.detail, self.gone) != (before, was_gone)

    def result(self) -> int | None:
        return self.run.table.row_of(*self.walk_through.key(self.at))

    def label_text(self) -> str:
        known = progress(self.run.info, self.run.table.count)
        return "  ".join(filter(None, (self.run.run_id, self.detail.case_id, known)))

    def docs(self) -> tuple[Doc, Doc | None]:
        if self.raw:
            return raw_doc(self.blank, self.detail), None
        code = code_of(self.run, self.success, self.detail)
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


def no_detail(key: Key) -> Detail:
    """What there is to say of a case that no file holds."""
    return Detail(*key, question="", status="", problems=("the files do not hold this case now",))


def known(before: Detail, key: Key) -> Detail:
    """What was read of a case before it went, if it was in view."""
    return before if (before.case_id, before.repeat) == key else no_detail(key)


def code_of(run: OpenRun, success: Success, detail: Detail) -> int:
    """How a case fails; 0 when it does not, or when the run's columns do not hold it."""
    codes = success.codes(run.table)
    row = run.table.row_of(detail.case_id, detail.repeat)
    return codes[row] if row is not None and row < len(codes) else 0


class PairScreen(PageScreen, inherit_bindings=False):
    """What changed between two runs for one case."""

    where = "pair"

    def __init__(self, screen: FlipsScreen, place: int, *, ascii_only: bool) -> None:
        self.list = screen
        walk = ListWalk(screen)
        super().__init__(walk, place, ascii_only=ascii_only)
        blank = no_detail(walk.key(place))
        self.details = (blank, blank)
        self.load()

    def load(self) -> bool:
        before, was_gone = self.details, self.gone
        key = self.walk_through.key(self.at)
        base, new = self.list.base.detail(key), self.list.run.detail(key)
        self.gone = base is None or new is None
        self.details = (base or known(before[0], key), new or known(before[1], key))
        return (self.details, self.gone) != (before, was_gone)

    def result(self) -> int | None:
        return self.list.table.row_of(*self.walk_through.key(self.at))

    def label_text(self) -> str:
        arrow = "->" if self.look.ascii else "→"
        return f"{self.list.base.run_id} {arrow} {self.list.run.run_id}  {self.details[1].case_id}"

    def docs(self) -> tuple[Doc, Doc | None]:
        runs = (self.list.base, self.list.run)
        successes = (self.list.base_success, self.list.success)
        codes = [
            code_of(run, success, detail)
            for run, success, detail in zip(runs, successes, self.details, strict=True)
        ]
        base, new = (
            Side(run.run_id, detail, success.says(code))
            for run, detail, success, code in zip(runs, self.details, successes, codes, strict=True)
        )
        change = flip_word(*codes)
        return pair_docs(self.blank, base, new, change, two=self.two)

    def _open_one(self, run: OpenRun, success: Success) -> None:
        row = run.table.row_of(*self.walk_through.key(self.at))
        if row is None:
            raise ActionRefused(f"{run.run_id} does not hold this case any more")
        screen = CaseScreen(run, Walk(run.table, (row,)), 0, success, ascii_only=self.look.ascii)
        self.app.push_screen(screen)

    def do_base(self) -> None:
        self._open_one(self.list.base, self.list.base_success)

    def do_new(self) -> None:
        self._open_one(self.list.run, self.list.success)

    def do_label(self) -> None:
        self.label(self.list.run.run_id, self.details[1].case_id)

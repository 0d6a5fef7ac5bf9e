"""The screens that show one case as text, in one run or in two; two pages in wide windows."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import Literal

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from decisions.case_verdict import Key, Ruling
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import ActionRefused
from terminal.frame import Look, rule
from terminal.lists import Bar
from terminal.safe_text import one_line
from terminal.text_pane import TextPane, found_words
from terminal.windows import LinePrompt
from views.browser.actions import (
    ACTIONS,
    CASE,
    HINTS,
    PAIR,
    Browser,
    common_acts,
    label_case,
    note_acts,
)
from views.browser.case_page import (
    case_docs,
    case_markdown,
    conversation_doc,
    pair_docs,
    raw_doc,
    trend_doc,
)
from views.browser.document import Doc
from views.browser.failing import Failing
from views.browser.listing import CaseList, PairList
from views.browser.rows import progress
from views.case import Case
from views.case_blocks import ShownWith
from views.library import RunReader
from views.runs import Trend

View = Literal["case", "raw", "trend", "conversation"]

TWO_FROM = 120
"""Columns from which two pages have room."""


class PageScreen(ActionScreen[Key], inherit_bindings=False):
    """Walks through cases, and returns the last one. Subclasses say what a page holds.

    ``runs``: the runs that the page is of, the new one last. ``keys``: the cases to walk through,
    by id and repeat; ``cases``: the list that they are of.
    """

    def __init__(
        self,
        browser: Browser,
        where: str,
        runs: Sequence[RunReader],
        keys: Sequence[Key],
        index: int,
        cases: CaseList | None,
    ) -> None:
        look = Look(ascii=browser.ascii_only)
        super().__init__(ACTIONS[where].values(), HINTS[where].split(), look)
        self.browser = browser
        self.where = where
        self.runs = runs
        self.run_id = runs[-1].run_id
        self.keys, self.index = list(keys), index
        self._cases, self._listed = cases, cases.listed if cases is not None else ()
        self.details = tuple(_no_detail(self.key) for _ in runs)
        self.gone = False
        """The case in view is not in the files any more: what was read of it stays."""
        self.load()
        self.pages = (TextPane(id="left"), TextPane(id="right"))
        self.head = Bar(id="case-head")
        self._side = 0
        self.level = False
        """Do the two pages scroll together?"""

    def acts(self) -> Acts:
        page = max(1, self.page.size.height - 2)
        to_end = self.page.line_count
        return {
            **common_acts(self, self.browser, self.where, lambda: self.dismiss(self.key)),
            **note_acts(self, self.browser, lambda: (self.key[0], self.run_id), self.redraw),
            "down": lambda: self.scroll(1),
            "up": lambda: self.scroll(-1),
            "page-down": lambda: self.scroll(page),
            "page-up": lambda: self.scroll(-page),
            "read-on": lambda: self.read_on(page),
            "first": lambda: self.scroll(-to_end),
            "top": lambda: self.scroll(-to_end),
            "last": lambda: self.scroll(to_end),
            "part": lambda: self._to_part(1),
            "part-back": lambda: self._to_part(-1),
            "pane": self.turn_side,
            "next": lambda: self.go(1),
            "previous": lambda: self.go(-1),
            "next-failing": lambda: self._go_failing(1),
            "previous-failing": lambda: self._go_failing(-1),
            "search": self.ask_words,
            "next-hit": lambda: self._to_hit(1),
            "previous-hit": lambda: self._to_hit(-1),
            "copy-id": lambda: self.copy_out(self.key[0], "id"),
            "copy-case": lambda: self.copy_out(self.markdown(), "case"),
            "edit-text": self.show_outside,
            "label": lambda: label_case(self, self.browser, self.run_id, self.key[0]),
        }

    @property
    def key(self) -> Key:
        """Case id and repeat of the case in view."""
        return self.keys[self.index]

    def fails(self, key: Key) -> bool:
        """Does a case count as failing?"""
        raise NotImplementedError

    def markdown(self) -> str:
        """The case in view, to be pasted elsewhere."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        yield self.head
        with Horizontal(id="pages"):
            yield from self.pages
        yield self.end

    @property
    def two(self) -> bool:
        """Is there room for two pages?"""
        return self.size.width >= TWO_FROM

    def blank(self) -> Doc:
        """An empty document as wide as a page."""
        return Doc(ascii_only=self.look.ascii, width=max(0, self.pages[0].size.width - 2))

    def docs(self) -> tuple[Doc, Doc | None]:
        """The page of the case in view."""
        raise NotImplementedError

    def label_text(self) -> str:
        """The head of the case in view."""
        raise NotImplementedError

    def load(self) -> bool:
        """Read the case in view from the files; whether that gave anything new."""
        before, key = (self.details, self.gone), self.key
        now = [run.detail(key) for run in self.runs]
        self.gone = None in now
        self.details = tuple(map(partial(_or_last, key=key), now, self.details))
        return (self.details, self.gone) != before

    def changed(self) -> None:
        """The files grew or were written again: the page shows what stands there now."""
        self._follow()
        if self.load():
            self.redraw()
        else:
            self.show_head()
        if self.gone:
            self.say("this case is not in the files any more: this is what was read", "warn")

    def _follow(self) -> None:
        """Adopt the present list: what came to it comes behind, what only left it stays."""
        cases, key = self._cases, self.key
        if cases is None or cases.listed is self._listed:
            return
        self._listed, table = cases.listed, cases.table
        if table.row_of(*key) is not None:  # else the case in view is gone: it stays in view
            walked = dict.fromkeys(each for each in self.keys if table.row_of(*each) is not None)
            listed = (table.keys[row] for row in cases.listed)
            self.keys = [*(walked | dict.fromkeys(listed))]
            self.index = self.keys.index(key)

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= TWO_FROM, "-two")
        super().on_resize(event)

    def show(self) -> None:
        left, right = self.docs()
        if right is None:
            self._side = 0
        for number, doc in enumerate((left, right or Doc())):
            self.pages[number].show(doc.text, doc.marks)
        self.show_head()

    def show_head(self) -> None:
        """Draw the line above: which case, how far down."""
        page = self.page
        side = f"{('left', 'right')[self._side]} side, w other" if self.two else ""
        where = f"{side}  lines {page.top + 1}-{page.bottom} of {page.line_count}"
        left = f"{self.index + 1}/{len(self.keys)} {one_line(self.label_text(), 200)}"
        self.head.show([rule(self.look, self.size.width, left, where.strip())])

    @property
    def page(self) -> TextPane:
        """The page that keys scroll."""
        return self.pages[self._side]

    def scroll(self, by: int) -> None:
        """Scroll the page; both columns if they are level."""
        pages = self._shown_pages if self.level else [self.page]
        moved = [page.scroll_by(by) for page in pages]
        if any(moved):
            self.show_head()

    def _to_part(self, by: int) -> None:
        if self.page.next_mark("rule", by):
            self.show_head()

    def read_on(self, page: int) -> None:
        """A page down; from the end of the page to the next case."""
        if self.page.bottom < self.page.line_count:
            self.scroll(page)
        else:
            self.go(1)

    # -- searching ------------------------------------------------------------------------------

    @property
    def _shown_pages(self) -> Sequence[TextPane]:
        """The pages in view."""
        return self.pages if self.has_class("-two") else self.pages[:1]

    def ask_words(self) -> None:
        """Ask for words to find in everything shown of the case."""
        before = self.pages[0].words

        def count(words: str) -> str:
            return found_words(sum([page.search(words) for page in self._shown_pages]))

        def answered(words: str | None) -> None:
            count(before if words is None else words)
            if words and words.strip():
                self.perform("next-hit")

        self.app.push_screen(LinePrompt("Search:", before, count), answered)

    def _to_hit(self, by: int) -> None:
        """The next or previous hit on this side; on the other one when this has none."""
        if not self.page.words:
            raise ActionRefused("nothing is searched for yet; / asks for words")
        other = self._shown_pages[self._side - 1]
        if not self.page.hit_count and other.hit_count:
            self._side = self._shown_pages.index(other)
        text = self.page.next_hit(by)
        other = self._shown_pages[self._side - 1]
        if other is not self.page and other.hit_count:
            text += f", and {other.hit_count} on the other side (w)"
        self.show_head()
        self.say(text)

    # -- what leaves the screen -----------------------------------------------------------------

    def show_outside(self) -> None:
        """Show the case in the user's pager or editor."""
        command = next(filter(None, map(os.environ.get, ("PAGER", "VISUAL", "EDITOR"))), "")
        if not command:
            raise ActionRefused("no pager is set; export PAGER=less (or EDITOR=vim)")
        handle, path = tempfile.mkstemp(prefix="case-", suffix=".md")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.markdown())
            problem = self.browser.hand_over([*shlex.split(command), path], command)
        except ValueError as error:
            problem = f"{command}: cannot be read as a command ({error})"
        finally:
            os.unlink(path)
        self.redraw()
        if problem:
            self.say(problem, "warn")

    def turn_side(self) -> None:
        """Let keys scroll the other page."""
        if not self.two:
            raise ActionRefused(f"there is one page only; from {TWO_FROM} columns on there are two")
        self._side = 1 - self._side
        self.show_head()

    def go(self, by: int) -> None:
        """Show the case that is so many further down (1) or up (-1) in the list."""
        if not 0 <= self.index + by < len(self.keys):
            raise ActionRefused(
                "this is the last case of the list" if by > 0 else "this is the first case"
            )
        self.index += by
        self.load()
        self.to_start()
        self.redraw()

    def to_start(self) -> None:
        """The next page is shown from its first line."""
        for page in self.pages:
            page.top = 0

    def _go_failing(self, by: int) -> None:
        keys = self.keys
        for index in range(self.index + by, len(keys) if by > 0 else -1, by):
            if self.fails(keys[index]):
                self.go(index - self.index)
                return
        raise ActionRefused(f"no case that fails {'after' if by > 0 else 'before'} this one")

    def on_mouse_scroll_down(self, event: events.MouseEvent) -> None:
        self.call_after_refresh(self.show_head)

    on_mouse_scroll_up = on_mouse_scroll_down


class CaseScreen(PageScreen, inherit_bindings=False):
    """Question, answer with its claims, expected, retrieved chunks, verdicts, scores, trace."""

    def __init__(
        self,
        browser: Browser,
        run: RunReader,
        failing: Failing,
        keys: Sequence[Key],
        index: int = 0,
        cases: CaseList | None = None,
    ) -> None:
        super().__init__(browser, CASE, (run,), keys, index, cases)
        self.run = run
        self.failing = failing
        self.full = False
        self.view: View = "case"
        self._trend: tuple[Key, Trend | None] = (self.key, None)

    @property
    def detail(self) -> Case:
        """The case in view."""
        return self.details[0]

    def acts(self) -> Acts:
        return {
            **super().acts(),
            "full": self.turn_full,
            "raw": lambda: self.turn("raw"),
            "trend": lambda: self.turn("trend"),
            "conversation": self.turn_conversation,
        }

    def fails(self, key: Key) -> bool:
        row = self.run.table.row_of(*key)
        return row is not None and self.failing.reasons(self.run.table)[row] != ""

    def _state(self, detail: Case | None = None) -> tuple[bool, str]:
        """Whether the case in view, or another one, fails, and what its rules say."""
        shown = detail or self.detail
        return self.failing.state(self.run.table, (shown.case_id, shown.repeat), shown)

    def markdown(self) -> str:
        return case_markdown(self.run_id, self.detail, self._shown_with())

    def label_text(self) -> str:
        state = progress(self.run.info, self.run.table.count)
        return "  ".join(filter(None, (self.run.run_id, self.detail.case_id, state)))

    def docs(self) -> tuple[Doc, Doc | None]:
        if self.view == "raw":
            return raw_doc(self.blank, self.detail), None
        if self.view == "trend":
            key, trend = self._trend
            return trend_doc(self.blank, self.key[0], trend if key == self.key else None), None
        if self.view == "conversation":
            return conversation_doc(self.blank, self._turns(), self.detail.case_id), None
        return case_docs(self.blank, self.detail, self._shown_with(), full=self.full, two=self.two)

    def _shown_with(self) -> ShownWith:
        """Whether the case in view fails and why, and the notes on it."""
        fails, state = self._state()
        notes = self.browser.library.notes.of(self.detail.case_id)
        return ShownWith(state, failing=fails, notes=notes, hint="; H shows all turns")

    def show(self) -> None:
        self.set_class(self.two and self.view == "case", "-two")
        if self.view == "trend" and self._trend[0] != self.key:
            self._read_trend()
        super().show()

    def turn_full(self) -> None:
        """Chunks in full, or their beginnings again."""
        self.full = not self.full
        self.show()
        self.say("chunks in full" if self.full else "beginnings of chunks")

    def turn(self, view: View) -> None:
        """Another view of the case, and back to its page."""
        self.view = "case" if self.view == view else view
        self.to_start()
        if self.view == "trend":
            self._read_trend()
        self.show()

    def turn_conversation(self) -> None:
        """All turns of the conversation on one page, and back to the case."""
        if self.view != "conversation" and not self.detail.conversation:
            raise ActionRefused("this case is no turn of a conversation")
        self.turn("conversation")

    def _turns(self) -> list[tuple[Case, str, bool]]:
        """The turns of the conversation in view, each with its state and whether it fails."""
        turns = []
        for key in self.run.turns(self.key):
            detail = self.run.detail(key)
            if detail is not None:
                fails, state = self._state(detail)
                turns.append((detail, state, fails))
        return turns

    def _read_trend(self) -> None:
        """Read the case in all runs, in a thread of its own."""
        key = self.key
        self._trend = (key, None)

        def read() -> None:
            trend = self.browser.library.trend(key)
            self.app.call_from_thread(self._have_trend, key, trend)

        self.run_worker(read, thread=True, group="trend", exit_on_error=False)

    def _have_trend(self, key: Key, trend: Trend) -> None:
        if key == self.key:
            self._trend = (key, trend)
            self.show()


def _no_detail(key: Key) -> Case:
    """What there is to say of a case that no file holds."""
    return Case(*key, question="", status="", problems=("the files do not hold this case now",))


def _or_last(now: Case | None, before: Case, key: Key) -> Case:
    """A case; of one that is gone, what was read of it if it was in view."""
    same = (before.case_id, before.repeat) == key
    return now or (before if same else _no_detail(key))


class PairScreen(PageScreen, inherit_bindings=False):
    """The changes between two runs for one case."""

    def __init__(self, browser: Browser, pair: PairList, keys: Sequence[Key], index: int) -> None:
        super().__init__(browser, PAIR, (pair.base, pair.run), keys, index, pair)
        self.pair = pair
        self.level = True

    def acts(self) -> Acts:
        pair = self.pair
        return {
            **super().acts(),
            "base": lambda: self._open_alone(pair.base),
            "new": lambda: self._open_alone(pair.run),
        }

    def fails(self, key: Key) -> bool:
        row = self.pair.table.row_of(*key)
        return row is not None and self.pair.fails(row)

    def markdown(self) -> str:
        notes = self.browser.library.notes.of(self.key[0])
        views = (
            ShownWith(state, notes=own)
            for state, own in zip(self._states(), (notes, ()), strict=True)
        )
        runs = (run.run_id for run in self.runs)
        return "\n".join(map(case_markdown, runs, self.details, views))

    def label_text(self) -> str:
        arrow = "->" if self.look.ascii else "→"
        return f"{self.pair.base.run_id} {arrow} {self.pair.run.run_id}  {self.details[1].case_id}"

    def docs(self) -> tuple[Doc, Doc | None]:
        row, (old, now) = self.pair.table.row_of(*self.key), self.details
        runs = (self.pair.base.run_id, self.pair.run.run_id)
        view = ShownWith(
            notes=self.browser.library.notes.of(self.key[0]),
            before=old,
            runs=runs,
            states=self._states(),
            way="" if row is None else self.pair.way(row),
            pairs=self.browser.library.judged_pair(*runs, self.key),
        )
        return pair_docs(self.blank, now, view, two=self.two)

    def _states(self) -> tuple[str, str]:
        """Whether and why the case fails in both runs, in words."""
        pair, (old, now) = self.pair, self.details
        before = pair.failing.state(pair.base.table, self.key, old)[1]
        return before, pair.failing.state(pair.run.table, self.key, now, old)[1]

    def _open_alone(self, run: RunReader) -> None:
        if run.table.row_of(*self.key) is None:
            raise ActionRefused(f"{run.run_id} does not hold this case any more")
        failing = Failing(Ruling(run.rules, run.basis), self.pair.condition)
        self.app.push_screen(CaseScreen(self.browser, run, failing, [self.key]))

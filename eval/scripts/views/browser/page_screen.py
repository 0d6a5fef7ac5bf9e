"""A screen that shows one case as text: one page, or two beside one another in wide windows."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from terminal.actions import ActionRefused
from terminal.frame import rule
from terminal.lists import Bar
from terminal.safe_text import one_line
from terminal.text_pane import TextPane
from views.browser.document import Doc
from views.browser.view import BrowseScreen
from views.browser.walk import Walk

TWO_FROM = 120
"""Columns from which two pages have room."""


class PageScreen(BrowseScreen, inherit_bindings=False):
    """Walks through cases. Subclasses say what the page of one of them is."""

    def __init__(self, walk: Walk, place: int, *, ascii_only: bool) -> None:
        super().__init__(ascii_only=ascii_only)
        self.walk_through = walk
        self.at = place
        self.gone = False
        """The case in view is not in the files any more: what was read of it stays."""
        self.pages = (TextPane(id="left"), TextPane(id="right"))
        self.head = Bar(id="case-head")
        self._side = 0

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
        """What the head says of the case in view."""
        raise NotImplementedError

    def load(self) -> bool:
        """Read the case in view from the files; whether that gave anything new."""
        raise NotImplementedError

    def changed(self) -> None:
        """The files grew or were written again: the page shows what stands there now."""
        self.at = self.walk_through.follow(self.at)
        if self.load():
            self.redraw()
        else:
            self.show_head()
        if self.gone:
            self.say("this case is not in the files any more: this is what was read", "warn")

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
        side = (
            ("left side, w other" if self._side == 0 else "right side, w other") if self.two else ""
        )
        where = f"{side}  lines {page.top + 1}-{page.bottom} of {page.line_count}"
        left = f"{self.at + 1}/{len(self.walk_through)} {one_line(self.label_text(), 200)}"
        self.head.show([rule(self.look, self.size.width, left, where.strip())])

    @property
    def page(self) -> TextPane:
        """The page that keys scroll."""
        return self.pages[self._side]

    def scroll(self, by: int) -> None:
        """Scroll the page."""
        if self.page.scroll_by(by):
            self.show_head()

    def do_down(self) -> None:
        self.scroll(1)

    def do_up(self) -> None:
        self.scroll(-1)

    def do_page_down(self) -> None:
        self.scroll(max(1, self.page.size.height - 2))

    def do_page_up(self) -> None:
        self.scroll(-max(1, self.page.size.height - 2))

    def do_first(self) -> None:
        self.scroll(-self.page.line_count)

    def do_top(self) -> None:
        self.do_first()

    def do_last(self) -> None:
        self.scroll(self.page.line_count)

    def _to_part(self, by: int) -> None:
        if self.page.next_mark("rule", by):
            self.show_head()

    def do_part(self) -> None:
        self._to_part(1)

    def do_part_back(self) -> None:
        self._to_part(-1)

    def do_pane(self) -> None:
        if not self.two:
            raise ActionRefused(f"there is one page only; from {TWO_FROM} columns on there are two")
        self._side = 1 - self._side
        self.show_head()

    def go(self, by: int) -> None:
        """Show the next (1) or previous (-1) case of the list."""
        if not 0 <= self.at + by < len(self.walk_through):
            raise ActionRefused(
                "this is the last case of the list" if by > 0 else "this is the first case"
            )
        self.at += by
        self.load()
        for page in self.pages:
            page.top = 0
        self.redraw()

    def do_next(self) -> None:
        self.go(1)

    def do_previous(self) -> None:
        self.go(-1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.call_after_refresh(self.show_head)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.call_after_refresh(self.show_head)

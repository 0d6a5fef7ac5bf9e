"""A screen that is a list: its head, its rows, and the keys that move in it."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult

from terminal.lists import Bar, Line, LineList
from views.browser.view import BrowseScreen


class ListScreen(BrowseScreen, inherit_bindings=False):
    """Runs, cases or flips. Rows are drawn by `row_line` when they come into view."""

    def __init__(self, *, ascii_only: bool) -> None:
        super().__init__(ascii_only=ascii_only)
        self.head = Bar(id="head")
        self.rows = LineList(self.row_line, id="rows")
        self._moved_by_click = False

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.rows
        yield self.end

    def row_line(self, index: int, width: int) -> Line:
        """What row `index` says on `width` cells."""
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

    def do_down(self) -> None:
        self.move_to(self.rows.cursor + 1)

    def do_up(self) -> None:
        self.move_to(self.rows.cursor - 1)

    def do_page_down(self) -> None:
        self.move_to(self.rows.cursor + max(1, self.rows.size.height - 1))

    def do_page_up(self) -> None:
        self.move_to(self.rows.cursor - max(1, self.rows.size.height - 1))

    def do_first(self) -> None:
        self.move_to(0)

    def do_top(self) -> None:
        self.move_to(0)

    def do_last(self) -> None:
        self.move_to(self.rows.count - 1)

    def do_open(self) -> None:
        """Open the row under the cursor."""
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
        heads = self.head.region.bottom - 1
        if event.screen_y == heads and self.screen is self.app.screen:
            self.clicked_heading(event.screen_x)

    def clicked_heading(self, x: int) -> None:
        """The line of column heads was clicked."""

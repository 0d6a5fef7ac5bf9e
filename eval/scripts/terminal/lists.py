"""Line-API widgets: a list of one-line rows, and a bar of a few fixed lines.

A row is a tuple of `(style name, DisplayText)` spans, made by the owner's `row` callable from its
state; strips are cached by those spans and the width, so a cached strip cannot be out of date, and
a key press repaints the changed rows only. The lists hold no data of their own but the cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from terminal.app import TerminalApp
from terminal.safe_text import DisplayText, cells, fitting

Span = tuple[str, DisplayText]

Line = tuple[Span, ...]

_WEIGHT = Style(bold=False)


def _emphasis(style: Style) -> Style:
    """What a style says without colour."""
    return Style(bold=style.bold or None, underline=style.underline or None)


class LineStyles(Widget):
    """The shared part of both kinds of widget: the app's styles by span name, the strip cache."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._strips: LRUCache[tuple[Line, int, str], Strip] = LRUCache(1024)

    def notify_style_update(self) -> None:
        """Forget strips of the old theme."""
        super().notify_style_update()
        self._strips.clear()

    def strip_for(self, line: Line, width: int, base: str = "row") -> Strip:
        """`line` as a strip of exactly `width` cells; spans of style `row` take the base style."""
        key = (line, width, base)
        cached = self._strips.get(key)
        if cached is None:
            cached = self._strips[key] = self._draw(line, width, base)
        return cached

    def _draw(self, line: Line, width: int, base: str) -> Strip:
        assert isinstance(self.app, TerminalApp)
        style_of = self.app.line_style
        ground = style_of(base)
        segments: list[Segment] = []
        left = width
        for name, text in line:
            size = cells(text)
            if size > left:
                text = DisplayText(text[: fitting(text, left)])
                size = cells(text)
            style = ground
            if name != "row":
                own = style_of(name)
                # On the cursor row both colours stay: it is the row that is being read.
                style = own if base == "row" else ground + _WEIGHT + _emphasis(own)
            segments.append(Segment(text, style))
            left -= size
            if left <= 0:
                break
        return Strip(segments, width - left).adjust_cell_length(width, ground).simplify()


class LineList(LineStyles, ScrollView, can_focus=False, inherit_bindings=False):
    """A scrolling list of one-line rows with a cursor. It repaints two rows a move.

    It takes no focus (a change of focus makes Textual repaint the whole screen): keys come from the
    screen, and `active` tells whether the cursor is drawn as the one that they move.
    """

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, list_: LineList, index: int) -> None:
            super().__init__()
            self.list = list_
            self.index = index

        @property
        def control(self) -> LineList:
            return self.list

    class Clicked(Message):
        """A row was clicked at column `x` (already the cursor row)."""

        def __init__(self, list_: LineList, index: int, x: int) -> None:
            super().__init__()
            self.list = list_
            self.index = index
            self.x = x

        @property
        def control(self) -> LineList:
            return self.list

    def __init__(self, row: Callable[[int, int], Line], *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._row = row
        self._count = 0
        self.cursor = 0
        self.active = True

    def set_count(self, count: int, cursor: int = 0) -> None:
        """Show `count` rows (all repainted) with the cursor on row `cursor`, clamped."""
        self._count = count
        self.cursor = max(0, min(cursor, count - 1))
        self.virtual_size = Size(self.scrollable_content_region.width, count)
        self._show_cursor()
        self.refresh()

    @property
    def count(self) -> int:
        return self._count

    def move_to(self, index: int) -> bool:
        """Put the cursor on row `index` (clamped); False when it is there already."""
        index = max(0, min(index, self._count - 1))
        if index == self.cursor or not self._count:
            return False
        old, self.cursor = self.cursor, index
        self.refresh_lines(old)
        self.refresh_lines(index)
        self._show_cursor()
        return True

    def grow(self, count: int) -> None:
        """More (or fewer) rows, the cursor stays where it is; rows in view are not repainted."""
        if count != self.count:
            first, self._count = self._count, count
            self.cursor = max(0, min(self.cursor, count - 1))
            self.virtual_size = self.virtual_size.with_height(count)
            top = round(self.scroll_y)
            for row in range(max(top, first), min(count, top + self.size.height)):
                self.refresh_lines(row)

    def set_active(self, active: bool) -> None:
        """Say whether keys move this cursor."""
        if active != self.active:
            self.active = active
            self.refresh_lines(self.cursor)

    def refresh_rows(self, indices: Sequence[int]) -> None:
        """Repaint these rows only."""
        for index in indices:
            self.refresh_lines(index)

    def _show_cursor(self) -> None:
        height = self.scrollable_content_region.height
        if height > 0 and self._count:
            top = round(self.scroll_y)
            if not top <= self.cursor < top + height:
                # Half a page at a time: a scroll repaints the whole list.
                top = max(0, min(self.cursor - height // 2, self._count - height))
            if top != round(self.scroll_y):
                self.scroll_to(y=top, animate=False, immediate=True, force=True)

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self._count)
        if self.cursor < self.size.height and self.scroll_y:
            # It was lower: from the first row on, the cursor is in view now.
            self.scroll_to(y=0, animate=False, immediate=True, force=True)
        self._show_cursor()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -3)

    def _wheel(self, event: events.MouseEvent, by: int) -> None:
        event.stop()
        self.scroll_to(y=round(self.scroll_y) + by, animate=False, immediate=True, force=True)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = offset.y + round(self.scroll_y)
        if index < self._count:
            if self.move_to(index):
                self.post_message(self.Moved(self, index))
            self.post_message(self.Clicked(self, index, offset.x))

    def render_line(self, y: int) -> Strip:
        """The row that is `y` lines below the top of the view."""
        index = y + round(self.scroll_y)
        width = self.size.width
        if index >= self._count:
            return self.strip_for((), width)
        base = "row"
        if index == self.cursor:
            base = "cursor" if self.active else "cursor-blurred"
        return self.strip_for(self._row(index, width), width, base)


class Bar(LineStyles):
    """A few lines that the owner sets; a line that did not change is not repainted."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()

    def show(self, lines: Sequence[Line]) -> None:
        """Set all lines; only those that differ are repainted."""
        old, self._lines = self._lines, tuple(lines)
        if len(old) != len(self._lines):
            self.refresh()
            return
        for y, (before, after) in enumerate(zip(old, self._lines, strict=True)):
            if before != after:
                self.refresh(Region(0, y, max(1, self.size.width), 1))

    def render_line(self, y: int) -> Strip:
        """Line `y`, or a blank one."""
        line = self._lines[y] if y < len(self._lines) else ()
        return self.strip_for(line, self.size.width)

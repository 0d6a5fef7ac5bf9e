"""The labeller's line widgets with one more colour: what is bad."""

from __future__ import annotations

from typing import ClassVar

from terminal.lists import Bar, LineList, LineStyles
from terminal.text_pane import TextPane


class Colours(LineStyles):
    """Adds the style `bad`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"line--bad"}


class Rows(Colours, LineList, inherit_bindings=False):
    """A list of rows."""

    def grow(self, count: int) -> None:
        """More (or fewer) rows, the cursor stays where it is; rows in view are not repainted."""
        if count != self.count:
            first, self._count = self._count, count
            self.cursor = max(0, min(self.cursor, count - 1))
            self.virtual_size = self.virtual_size.with_height(count)
            top = round(self.scroll_y)
            for row in range(max(top, first), min(count, top + self.size.height)):
                self.refresh_lines(row)


class Head(Colours, Bar):
    """A few fixed lines."""


class Page(Colours, TextPane):
    """A text that is scrolled."""

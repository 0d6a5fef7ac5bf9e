"""The command palette: every action of the screen with its keys; a case id opens that case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from terminal.safe_text import display, one_line
from views.browser.actions import key_names
from views.browser.cases_screen import CasesScreen
from views.browser.view import BrowseScreen

Command = tuple[str, str, Callable[[], None]]
"""Label, help, what it does."""


class BrowseCommands(Provider):
    """Finds actions by the letters of their label."""

    def _commands(self) -> Iterator[Command]:
        screen = self.screen
        if isinstance(screen, BrowseScreen):
            for action in screen.offers():
                if action.id not in ("palette", "top", "left"):
                    label = f"{action.label} ({key_names(action)})"
                    yield label, action.help, partial(screen.perform, action.id)

    async def discover(self) -> Hits:
        """Every action, before anything is typed."""
        for label, text, run in self._commands():
            yield DiscoveryHit(Content(display(label)), run, text=label, help=text)

    async def search(self, query: str) -> Hits:
        """The case of that id first, then the actions that match."""
        screen = self.screen
        wanted = query.strip()
        if isinstance(screen, CasesScreen):
            row = screen.table.row_of(wanted)
            if row is not None:
                found = one_line(f"open case {wanted}", 200)
                go = partial(screen.browse_app.open_row, screen, row)
                yield Hit(2.0, Content(found), go, text=found)
        matcher = self.matcher(query)
        for label, text, run in self._commands():
            score = matcher.match(label)
            if score > 0:
                yield Hit(score, Content(display(label)), run, text=label, help=text)

"""The commands of a screen by name, from its table of actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from terminal.action_screen import ActionScreen
from terminal.actions import keys_of, shown_key
from terminal.safe_text import display

PaletteRow = tuple[str, str, str, Callable[[], None]]
"""Label, help, other names that find it, and its function."""


class ActionCommands(Provider):
    """Finds the actions of the screen below by the letters of their labels."""

    def rows(self) -> Iterator[PaletteRow]:
        """All commands of the screen."""
        screen = self.screen
        if isinstance(screen, ActionScreen):
            for action in screen.actions.values():
                if action.id not in ("palette", "top"):
                    keys = dict.fromkeys(map(shown_key, keys_of(action, screen.keymap)))
                    label = f"{action.label or action.id.replace('-', ' ')} ({' '.join(keys)})"
                    yield label, action.help, "", partial(screen.perform, action.id)

    async def discover(self) -> Hits:
        """Every action, before anything is typed."""
        for label, text, _, run in self.rows():
            yield DiscoveryHit(Content(display(label)), run, text=label, help=text)

    async def search(self, query: str) -> Hits:
        """The actions that match."""
        matcher = self.matcher(query)
        for label, text, names, run in self.rows():
            score = max(matcher.match(label), matcher.match(names))
            if score > 0:
                yield Hit(score, Content(display(label)), run, text=label, help=text)

"""The commands of a screen by name, from its table of actions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from terminal.action_screen import ActionScreen
from terminal.actions import keys_of, shown_key
from terminal.safe_text import display

_Command = tuple[str, str, Callable[[], None]]
"""Label, help, what it does."""


class ActionCommands(Provider):
    """Finds the actions of the screen below by the letters of their help."""

    def _commands(self) -> Iterator[_Command]:
        screen = self.screen
        if isinstance(screen, ActionScreen):
            for action in screen.actions.values():
                if action.id not in ("palette", "top"):
                    keys = dict.fromkeys(map(shown_key, keys_of(action, screen.keymap)))
                    label = f"{action.label or action.id.replace('-', ' ')} ({' '.join(keys)})"
                    yield label, action.help, partial(screen.perform, action.id)

    async def discover(self) -> Hits:
        """Every action, before anything is typed."""
        for label, text, run in self._commands():
            yield DiscoveryHit(Content(display(label)), run, text=label, help=text)

    async def search(self, query: str) -> Hits:
        """The actions that match."""
        matcher = self.matcher(query)
        for label, text, run in self._commands():
            score = matcher.match(label)
            if score > 0:
                yield Hit(score, Content(display(label)), run, text=label, help=text)

"""An app that loses no key: those that come while a screen opens wait for it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from textual import events
from textual.app import App
from textual.screen import Screen

from labeller.keys import Keyed
from terminal.safe_text import display

PASTE_LIMIT = 1 << 20

TRIES = 20
"""Refreshes in which the first field of a window may take the focus."""


class HeldKeys(App[None], inherit_bindings=False):
    """Gives keys to the screen on top, in their order; pasted text is made harmless first."""

    def __init__(self) -> None:
        super().__init__()
        self._opening = False
        self._held: list[events.Key] = []

    @property
    def holding(self) -> bool:
        """Must keys wait now?"""
        return self._opening

    def pressed(self, key: str) -> None:
        """A key that does not wait was pressed."""

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Paste):
            event.text = display(event.text, PASTE_LIMIT)
        elif isinstance(event, events.Key) and not event.is_forwarded:
            if self.holding:
                self._held.append(event)
                return
            self.pressed(event.key)
            screen = self.screen
            if isinstance(screen, Keyed) and screen.take_key(event.key, event.character or ""):
                return
        await super().on_event(event)

    def push_screen(self, screen: Any, *args: Any, **options: Any) -> Any:
        """Keys that come while a screen opens do not fall on the one below."""
        opening = super().push_screen(screen, *args, **options)
        self._opening = True
        self.call_next(self._wait_open, opening, self.screen)
        return opening

    async def _wait_open(self, opening: Awaitable[None], screen: Screen[Any]) -> None:
        await opening
        screen.call_after_refresh(self._opened_screen, screen, TRIES)

    async def _opened_screen(self, screen: Screen[Any], tries: int) -> None:
        """Go on once the first field of the screen can take the keys."""
        field = screen.query("Input, TextArea") and screen.focused is None
        if tries and screen.is_current and field:
            screen.call_after_refresh(self._opened_screen, screen, tries - 1)
            return
        self._opening = False
        await self.release()

    async def release(self) -> None:
        """Do the keys that waited, in their order, until keys must wait again."""
        while self._held and not self.holding:
            await self.on_event(self._held.pop(0))

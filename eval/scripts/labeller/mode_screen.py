"""What snippet mode and adjudication share: keys from the table, a status line and hints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from textual import events

from labeller import lines
from labeller.actions import Keymap, find, hint_parts, keys_of, shown_key
from labeller.keys import keys_for
from labeller.ports import Refused
from terminal.lists import Bar, Span
from terminal.safe_text import DisplayText, one_line
from terminal.windows import ClosesOnce

Acts = Mapping[str, Callable[[], Any]]
"""What each action of a table does, by its id."""


class ModeScreen(ClosesOnce[str], inherit_bindings=False):
    """A full screen with its own keys; it returns a message for the main screen."""

    AUTO_FOCUS = ""
    ALLOW_SELECT = False

    def __init__(self, where: str, look: lines.Look, keymap: Keymap) -> None:
        super().__init__()
        self.where = where
        self.look = look
        self.keymap = keymap
        self.pending = ""
        self.end = Bar(id="mode-end")
        self._message: Span = ("row", DisplayText(""))
        self._keys = keys_for(where, keymap)

    def show(self) -> None:
        """Draw what the session says; called after each action and at the start."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.call_after_refresh(self.redraw)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.redraw)

    def acts(self) -> Acts:
        """What each action of this screen does."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw everything."""
        self.show()
        self.show_end()

    def say(self, text: str, style: str = "row") -> None:
        """Show a message on the status line."""
        self._message = (style, one_line(text, 500))

    def show_end(self) -> None:
        """Draw status line and hints."""
        width = self.size.width
        help_key = (keys_of(find(self.where, "help"), self.keymap) or ["?"])[0]
        self.end.show(
            [
                lines.status(self._message, self.pending, width),
                lines.hints(hint_parts(self.where, self.keymap), shown_key(help_key), width),
            ]
        )

    def take_key(self, key: str, character: str) -> bool:
        """Do what a key press stands for."""
        if key not in self._keys:
            return False
        self.perform(self._keys[key][0])
        return True

    def perform(self, name: str) -> None:
        """Do the action `name` of this screen."""
        self.say("")
        try:
            self.acts()[name]()
        except Refused as refusal:
            self.say(str(refusal), "warn")
        if self.is_current:
            self.redraw()

    def show_help(self) -> None:
        """The keys of this screen."""
        from labeller.help import HelpScreen

        self.app.push_screen(HelpScreen(self.where, self.keymap))

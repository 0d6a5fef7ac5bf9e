"""What snippet mode and adjudication share: keys from the table, a status line and hints."""

from __future__ import annotations

from collections.abc import Iterable

from labeller.actions import HINTS, actions_of, hint_parts
from terminal.action_screen import ActionScreen
from terminal.actions import Keymap
from terminal.frame import Look


class ModeScreen(ActionScreen[str], inherit_bindings=False):
    """A full screen with its own keys; it returns a message for the main screen."""

    def __init__(self, where: str, look: Look, keymap: Keymap) -> None:
        super().__init__(actions_of(where), HINTS[where].split(), look, keymap, end="mode-end")
        self.where = where
        self.waiting = ""
        """What a started choice waits for, shown at the end of the status line."""

    def hint_parts(self) -> Iterable[tuple[str, str]]:
        return hint_parts(self.where, self.keymap)

    def waits_for(self) -> str:
        return self.waiting

    def perform(self, name: str) -> None:
        """Do the action `name` of this screen."""
        super().perform(name)
        if self.is_current:
            self.redraw()

    def show_help(self) -> None:
        """The keys of this screen."""
        from labeller.help import help_screen

        self.app.push_screen(help_screen(self.where, self.keymap))

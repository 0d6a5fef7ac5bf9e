"""The application: the main screen in this terminal, clean ends, a crash file without any text.

code = run(session)
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path, PurePath
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.theme import BUILTIN_THEMES

import labeller
from labeller.app import THEMES, write_crash_file
from labeller.display import display
from labeller.held_keys import HeldKeys
from labeller.lines import Look
from verdictlabels.model import Session
from verdictlabels.screen import VerdictScreen

LINES = Path(labeller.__file__).with_name("labeller.tcss")


class VerdictApp(HeldKeys, inherit_bindings=False):
    """Runs the screen. Labels are on disk when a key is done, so it may end at any moment."""

    TITLE = "label verdicts"
    CSS_PATH: ClassVar[str | PurePath | list[str | PurePath] | None] = [LINES, "verdicts.tcss"]
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "quit", show=False, priority=True)
    ]

    def __init__(self, session: Session, *, look: Look | None = None, theme: str | None = None):
        super().__init__()
        self.main = VerdictScreen(session, look or Look())
        self.crash_file = ""
        self.animation_level = "none"
        self.theme = THEMES.get(theme or "dark", theme or "")

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            try:
                loop.add_signal_handler(getattr(signal, name), self.action_interrupt)
            except (AttributeError, NotImplementedError, RuntimeError, ValueError):
                break  # not in the main thread (a test), or no such signals (Windows)
        self.push_screen(self.main)

    def action_interrupt(self) -> None:
        self.exit(return_code=130)

    def _fatal_error(self) -> None:
        """In place of Textual's traceback, which shows local values."""
        self._close_messages_no_wait()
        error = self._exception
        if self.crash_file or error is None:
            return
        self.crash_file = write_crash_file(error)
        said = (
            "The screen failed. Every label is in your label file; start it again to go on.\n"
            f"Where it failed is written in {self.crash_file} (no answers or passages in it)."
        )
        self._exit_renderables.append(Text(display(said)))


def run(session: Session, *, ascii_only: bool = False, theme: str | None = None) -> int:
    """Label in this terminal until the user leaves. Returns the exit code.

    Raises ValueError for an unknown theme.
    """
    if theme and theme not in {*THEMES, *BUILTIN_THEMES}:
        raise ValueError(f"theme {theme!r} is unknown; use dark, light or one of Textual's")
    app = VerdictApp(session, look=Look(ascii=ascii_only), theme=theme)
    app.run(mouse=True)
    return app.return_code or 0

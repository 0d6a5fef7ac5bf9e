"""The application: which screen opens which, runs being read, clean ends. No run is changed.

code = run(library, runs=("k5", "k10"), theme="light")
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterable, Sequence
from threading import Thread
from typing import Any, ClassVar

from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.message import Message

from terminal.action_screen import ActionScreen
from terminal.actions import ActionRefused, UndoSteps
from terminal.app import STYLE_SHEET, StyleSheets, TerminalApp, check_theme
from views.browser.actions import NoteStep
from views.browser.cases import CasesScreen
from views.browser.listing import CaseList, PairList
from views.browser.lists import ListScreen
from views.browser.pages import PageScreen
from views.browser.run_list import RunsScreen
from views.library import RunLibrary, RunReader

LOOK_SECONDS = 1.0


class BrowseApp(TerminalApp, inherit_bindings=False):
    """Runs, cases, one case; or two runs and their flips. ``runs``: none, one, or base and new."""

    TITLE = "browse"
    CSS_PATH: ClassVar[StyleSheets] = [STYLE_SHEET, "browser.tcss"]
    FAILURE = "The browser failed. Where is written in {file} (no questions or answers in it)."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "quit", show=False, priority=True),
        Binding("ctrl+c", "quit", "quit", show=False),
    ]

    class Changed(Message):
        """A run was read on (posted in its thread)."""

    def __init__(
        self,
        library: RunLibrary,
        runs: Sequence[str] = (),
        *,
        ascii_only: bool = False,
        theme: str | None = None,
        launch: Callable[[Sequence[str]], int] | None = None,
    ) -> None:
        super().__init__(theme)
        self.library = library
        self.note_steps: UndoSteps[NoteStep] = UndoSteps()
        self.ascii_only = ascii_only
        self._launch = launch or _call_and_wait
        self._opened: dict[str, RunReader] = {}
        self.first: ListScreen[None] = self._cases_of(runs) if runs else RunsScreen(self)

    def _cases_of(self, runs: Sequence[str]) -> CasesScreen:
        """The cases of one run, or of two. Raises ValueError, in words, for an unusable one."""
        opened = {name: self._opened.get(name) or self.library.open(name) for name in runs}
        self._opened |= opened
        cases = CaseList(opened[runs[0]]) if len(runs) == 1 else PairList(*opened.values())
        return CasesScreen(self, cases)

    def is_first(self, screen: ActionScreen[Any]) -> bool:
        return screen is self.first

    def on_mount(self) -> None:
        self.end_with_terminal()
        self.push_screen(self.first)
        self.call_after_refresh(self._start, self.first, list(self._opened))
        self.set_interval(LOOK_SECONDS, self._look)

    def on_unmount(self) -> None:
        for run in self._opened.values():
            run.close()

    # -- reading --------------------------------------------------------------------------------

    def _start(self, screen: ListScreen[None], runs: Iterable[str]) -> None:
        """Read runs on from now on, and find out in a thread what a comparison says."""
        for name in runs:
            self._opened[name].start(self._post_change)
        if isinstance(screen, CasesScreen) and isinstance(pair := screen.cases, PairList):

            def compare() -> None:
                pair.take(pair.run.outcome(pair.base))
                self._post_change()

            Thread(target=compare, name="compare", daemon=True).start()

    def _post_change(self) -> None:
        """Called in a reading thread."""
        self.post_message(self.Changed())

    def on_browse_app_changed(self, event: Changed) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, ListScreen | PageScreen) and screen.is_mounted:
                screen.changed()

    def _look(self) -> None:
        if isinstance(self.screen, RunsScreen):
            self.screen.refresh_runs()

    def read_again(self) -> str:
        for run in self._opened.values():
            run.read_again()
        return "files that changed are read again"

    # -- screens --------------------------------------------------------------------------------

    def open_runs(self, *run_ids: str) -> None:
        unread = [name for name in run_ids if name not in self._opened]
        try:
            screen = self._cases_of(run_ids)
        except ValueError as error:
            raise ActionRefused(str(error)) from None
        self._start(screen, unread)
        self.push_screen(screen)

    def hand_over(self, command: Sequence[str], name: str) -> str:
        try:
            with self.suspend():
                code = self._launch(command)
        except SuspendNotSupported:
            return f"this terminal cannot be handed to another program; start {name} yourself"
        except OSError as error:
            return f"{name} could not be started ({error.strerror})"
        self.refresh(layout=True)
        return f"{name} ended with exit code {code}" if code else ""


def _call_and_wait(command: Sequence[str]) -> int:
    """Run a command; when it fails, its last words stay on the terminal until Enter is pressed."""
    code = subprocess.call(command)
    if code:
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            input(f"Exit code {code}. Enter goes back to the runs: ")
    return code


def run(
    library: RunLibrary,
    runs: Sequence[str] = (),
    *,
    ascii: bool = False,  # noqa: A002 - the option's name
    mouse: bool = True,
    theme: str | None = None,
) -> int:
    """Browse in this terminal until the user leaves. Returns the exit code.

    Raises ValueError, one sentence, for an unknown theme or run.
    """
    check_theme(theme)
    app = BrowseApp(library, runs, ascii_only=ascii, theme=theme)
    app.run(mouse=mouse)
    return app.return_code or 0

"""The application: which screen opens which, runs being read, clean ends. No run is changed.

code = run(library, runs=("k5", "k10"), theme="light")
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.message import Message

from terminal.app import STYLE_SHEET, THEMES, StyleSheets, TerminalApp, check_theme
from terminal.safe_text import one_line
from terminal.windows import Prompt
from views.browser.case_screens import CaseScreen, PairScreen
from views.browser.cases_screen import CasesScreen
from views.browser.flips_screen import FlipsScreen
from views.browser.model import Library, OpenRun
from views.browser.runs_screen import RunsScreen
from views.browser.view import BrowseScreen
from views.browser.walk import ListWalk, Walk

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
        library: Library,
        runs: Sequence[str] = (),
        *,
        success: str = "",
        ascii_only: bool = False,
        theme: str | None = None,
        launch: Callable[[Sequence[str]], int] | None = None,
    ) -> None:
        super().__init__(theme)
        self.library = library
        self.ascii_only = ascii_only
        self._launch = launch or call_and_wait
        self._opened: dict[str, OpenRun] = {}
        self.first: BrowseScreen = self._first_screen(runs, success)

    def _first_screen(self, runs: Sequence[str], success: str) -> BrowseScreen:
        """Raises ValueError, in words, for a run or condition that cannot be used."""
        if not runs:
            return RunsScreen(self.library, ascii_only=self.ascii_only)
        opened = [self._run(name) for name in runs]
        if len(opened) == 1:
            screen: CasesScreen = CasesScreen(opened[0], ascii_only=self.ascii_only)
        else:
            screen = FlipsScreen(opened[0], opened[1], ascii_only=self.ascii_only)
        if success:
            screen.use_success(success)
        return screen

    def _run(self, run_id: str) -> OpenRun:
        if run_id not in self._opened:
            self._opened[run_id] = self.library.open(run_id)
        return self._opened[run_id]

    def on_mount(self) -> None:
        self.end_on_signals()
        self.push_screen(self.first)
        self.call_after_refresh(self._start_reading)
        self.set_interval(LOOK_SECONDS, self._look)

    def on_unmount(self) -> None:
        for run in self._opened.values():
            run.close()

    # -- reading --------------------------------------------------------------------------------

    def _start_reading(self) -> None:
        for run in self._opened.values():
            run.start(self._tell)

    def _tell(self) -> None:
        """Called in a reading thread."""
        self.post_message(self.Changed())

    def on_browse_app_changed(self, event: Changed) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, BrowseScreen) and screen.is_mounted:
                screen.changed()

    def _look(self) -> None:
        if isinstance(self.screen, RunsScreen):
            self.screen.refresh_runs()

    def _started(self, run_id: str) -> OpenRun:
        """A run that is being read; from now on, if it was not."""
        known = run_id in self._opened
        run = self._run(run_id)
        if not known:
            run.start(self._tell)
        return run

    # -- screens --------------------------------------------------------------------------------

    def _refused(self, error: ValueError) -> None:
        if isinstance(self.screen, BrowseScreen):
            self.screen.say(str(error), "warn")

    def open_cases(self, run_id: str) -> None:
        """Show the cases of a run."""
        try:
            screen = CasesScreen(self._started(run_id), ascii_only=self.ascii_only)
        except ValueError as error:
            self._refused(error)
        else:
            self.push_screen(screen)

    def open_flips(self, base: str, new: str) -> None:
        """Show what flipped between two runs."""
        try:
            runs = self._started(base), self._started(new)
        except ValueError as error:
            self._refused(error)
        else:
            self.push_screen(FlipsScreen(*runs, ascii_only=self.ascii_only))

    def ask_base(self, new: str) -> None:
        """Ask which run `new` is compared with."""
        others = [run.run_id for run in self.library.refresh() if run.run_id != new]
        screen = self.screen
        if not others:
            if isinstance(screen, BrowseScreen):
                screen.say("there is no other run to compare with", "warn")
            return

        def closed(name: str | None) -> None:
            if name is None:
                return
            shown: dict[str, str] = {one_line(other): other for other in others}
            found = [shown[name]] if name in shown else []
            found = found or [other for other in others if name and other.startswith(name)]
            if len(found) == 1:
                self.open_flips(found[0], new)
            elif isinstance(screen, BrowseScreen):
                screen.say(f"no run, or several, named {name}: {', '.join(others[:8])}", "warn")

        label = one_line(f"Compare with (base): {', '.join(others[:8])}", 400)
        self.push_screen(Prompt(label, others[0]), closed)

    def open_case(self, screen: CasesScreen, row: int) -> None:
        """Show the case under the cursor of a list."""
        walk, place = ListWalk(screen), screen.rows.cursor
        case = CaseScreen(screen.run, walk, place, screen.success, ascii_only=self.ascii_only)
        self.push_screen(case, screen.closed)

    def open_row(self, screen: CasesScreen, row: int) -> None:
        """Show a case of the run, in the list or not."""
        walk = Walk(screen.table, (row,))
        case = CaseScreen(screen.run, walk, 0, screen.success, ascii_only=self.ascii_only)
        self.push_screen(case)

    def open_pair(self, screen: FlipsScreen, row: int) -> None:
        """Show a case in both runs."""
        pair = PairScreen(screen, screen.rows.cursor, ascii_only=self.ascii_only)
        self.push_screen(pair, screen.closed)

    def turn_theme(self) -> None:
        """Dark to light and back."""
        dark = self.theme == THEMES["dark"]
        self.theme = THEMES["light" if dark else "dark"]

    def label(self, command: Sequence[str]) -> str:
        """Give the terminal to label_eval.py until it ends. Returns what went wrong, or nothing."""
        try:
            with self.suspend():
                code = self._launch(command)
        except SuspendNotSupported:
            return "this terminal cannot be handed to another program; start label_eval.py yourself"
        except OSError as error:
            return f"label_eval.py could not be started ({error.strerror})"
        self.refresh(layout=True)
        return f"label_eval.py ended with exit code {code}" if code else ""


def call_and_wait(command: Sequence[str]) -> int:
    """Run a command; when it fails, its last words stay on the terminal until Enter is pressed."""
    code = subprocess.call(command)
    if code:
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            input(f"Exit code {code}. Enter goes back to the runs: ")
    return code


def run(
    library: Library,
    runs: Sequence[str] = (),
    *,
    success: str = "",
    ascii: bool = False,  # noqa: A002 - the option's name
    mouse: bool = True,
    theme: str | None = None,
) -> int:
    """Browse in this terminal until the user leaves. Returns the exit code.

    Raises ValueError, one sentence, for an unknown theme, run, or condition of success.
    """
    check_theme(theme)
    app = BrowseApp(library, runs, success=success, ascii_only=ascii, theme=theme)
    app.run(mouse=mouse)
    return app.return_code or 0

"""The application: which screen opens which, runs being read, clean ends. No run is changed.

code = run(library, runs=("k5", "k10"), theme="light")
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread
from typing import Any, ClassVar

from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.command import Hit, Hits
from textual.content import Content
from textual.message import Message

from terminal.action_screen import ActionScreen
from terminal.actions import UndoSteps
from terminal.app import STYLE_SHEET, StyleSheets, TerminalApp, check_theme
from terminal.palette import ActionCommands
from terminal.safe_text import one_line
from terminal.windows import LinePrompt, Palette
from views.browser.actions import NoteStep
from views.browser.failing import Group
from views.browser.listing import CaseList, ListWalk, PairList, Walk
from views.browser.lists import CasesScreen, ListScreen
from views.browser.pages import CaseScreen, PageScreen, PairScreen
from views.browser.run_list import GroupsScreen, RunsScreen
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
        self.first: ListScreen[Any] = self._first_screen(runs)

    def _first_screen(self, runs: Sequence[str]) -> ListScreen[None]:
        """Raises ValueError, in words, for a run that cannot be used."""
        if not runs:
            return RunsScreen(self, ascii_only=self.ascii_only)
        opened = [self._run(name) for name in runs]
        cases = CaseList(opened[0]) if len(opened) == 1 else PairList(opened[0], opened[1])
        return CasesScreen(self, cases, ascii_only=self.ascii_only)

    def is_first(self, screen: ActionScreen[Any]) -> bool:
        return screen is self.first

    def _run(self, run_id: str) -> RunReader:
        if run_id not in self._opened:
            self._opened[run_id] = self.library.open(run_id)
        return self._opened[run_id]

    def on_mount(self) -> None:
        self.end_with_terminal()
        self.push_screen(self.first)
        self.call_after_refresh(self._start_reading)
        self.set_interval(LOOK_SECONDS, self._look)

    def on_unmount(self) -> None:
        for run in self._opened.values():
            run.close()

    # -- reading --------------------------------------------------------------------------------

    def _start_reading(self) -> None:
        for run in self._opened.values():
            run.start(self._post_change)
        if isinstance(self.first, CasesScreen) and isinstance(self.first.cases, PairList):
            self._compare(self.first.cases)

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

    def _started(self, run_id: str) -> RunReader:
        """A run that is being read; from now on, if it was not."""
        is_new = run_id not in self._opened
        run = self._run(run_id)
        if is_new:
            run.start(self._post_change)
        return run

    # -- screens --------------------------------------------------------------------------------

    def _warn(self, message: str) -> None:
        if isinstance(self.screen, ActionScreen):
            self.screen.say(message, "warn")

    def open_cases(self, run_id: str) -> None:
        """Show the cases of a run."""
        try:
            cases = CaseList(self._started(run_id))
        except ValueError as error:
            self._warn(str(error))
        else:
            self.push_screen(CasesScreen(self, cases, ascii_only=self.ascii_only))

    def open_flips(self, base: str, new: str) -> None:
        """Show the cases that changed between two runs."""
        try:
            cases = PairList(self._started(base), self._started(new))
        except ValueError as error:
            self._warn(str(error))
        else:
            self._compare(cases)
            self.push_screen(CasesScreen(self, cases, ascii_only=self.ascii_only))

    def _compare(self, cases: PairList) -> None:
        """Find out in a thread what the comparison of two runs says."""

        def compare() -> None:
            cases.take(cases.run.outcome(cases.base))
            self._post_change()

        Thread(target=compare, name="compare", daemon=True).start()

    def ask_base(self, new: str) -> None:
        """Ask which run `new` is compared with."""
        others = [run.run_id for run in self.library.refresh() if run.run_id != new]
        if not others:
            self._warn("there is no other run to compare with")
            return

        def closed(name: str | None) -> None:
            if name is None:
                return
            shown: dict[str, str] = {one_line(other): other for other in others}
            matches = [shown[name]] if name in shown else []
            matches = matches or [other for other in others if name and other.startswith(name)]
            if len(matches) == 1:
                self.open_flips(matches[0], new)
            else:
                self._warn(f"no run, or several, named {name}: {', '.join(others[:8])}")

        label = one_line(f"Compare with (base): {', '.join(others[:8])}", 400)
        self.push_screen(LinePrompt(label, others[0]), closed)

    def open_groups(
        self,
        cases: CaseList,
        groups: Sequence[Group],
        closed: Callable[[Group | None], None],
    ) -> None:
        """Show the groups of a list; `closed` gets the one that was chosen."""
        self.push_screen(GroupsScreen(self, cases, groups, ascii_only=self.ascii_only), closed)

    def open_case(self, cases: CaseList, index: int, closed: Callable[[int | None], None]) -> None:
        """Show a case of a list: in its run, or in both."""
        page: PageScreen
        if isinstance(cases, PairList):
            page = PairScreen(self, cases, index, ascii_only=self.ascii_only)
        else:
            walk = ListWalk(cases)
            page = CaseScreen(
                self, cases.run, walk, index, cases.failing, ascii_only=self.ascii_only
            )
        self.push_screen(page, closed)

    def open_row(self, cases: CaseList, row: int) -> None:
        """Show a case of the run, in the list or not."""
        walk = Walk(cases.table, (row,))
        self.push_screen(
            CaseScreen(self, cases.run, walk, 0, cases.failing, ascii_only=self.ascii_only)
        )

    def open_palette(self) -> None:
        """Show the actions by name."""
        self.push_screen(Palette(providers=[_BrowseCommands]))

    def label(self, command: Sequence[str]) -> str:
        """Give the terminal to label_eval.py until it ends. Returns what went wrong, or nothing."""
        return self._hand_over(command, "label_eval.py")

    def show_outside(self, text: str) -> str:
        """Show a text in $PAGER or $EDITOR. Returns what went wrong, or nothing."""
        names = ("PAGER", "VISUAL", "EDITOR")
        command = next(filter(None, map(os.environ.get, names)), "")
        if not command:
            return "no pager is set; export PAGER=less (or EDITOR=vim)"
        handle, path = tempfile.mkstemp(prefix="case-", suffix=".md")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            return self._hand_over([*shlex.split(command), path], command)
        except ValueError as error:
            return f"{command}: cannot be read as a command ({error})"
        finally:
            os.unlink(path)

    def _hand_over(self, command: Sequence[str], name: str) -> str:
        try:
            with self.suspend():
                code = self._launch(command)
        except SuspendNotSupported:
            return f"this terminal cannot be handed to another program; start {name} yourself"
        except OSError as error:
            return f"{name} could not be started ({error.strerror})"
        self.refresh(layout=True)
        return f"{name} ended with exit code {code}" if code else ""


class _BrowseCommands(ActionCommands):
    """The actions of the screen, and the case whose id is typed."""

    async def search(self, query: str) -> Hits:
        """The case of that id first, then the actions that match."""
        screen = self.screen
        case_id = query.strip()
        app = self.app
        if isinstance(screen, CasesScreen) and isinstance(app, BrowseApp):
            row = screen.cases.table.row_of(case_id)
            if row is not None:
                title = one_line(f"open case {case_id}", 200)
                yield Hit(2.0, Content(title), partial(app.open_row, screen.cases, row), text=title)
        async for hit in super().search(query):
            yield hit


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

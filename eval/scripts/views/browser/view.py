"""What all screens of the browser share: keys from the table, status line, hints, windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from terminal.action_screen import ActionScreen, Acts
from terminal.actions import Action, ActionRefused
from terminal.frame import Look
from terminal.safe_text import one_line
from terminal.windows import Ask
from views.browser.actions import ACTIONS, HINTS

if TYPE_CHECKING:
    from views.browser.app import BrowseApp


class BrowseScreen(ActionScreen[int | None], inherit_bindings=False):
    """A full screen with keys of its own; `do_<id>` is an action. A page returns its row."""

    where: ClassVar[str]

    def __init__(self, *, ascii_only: bool) -> None:
        super().__init__(
            ACTIONS[self.where].values(), HINTS[self.where].split(), Look(ascii=ascii_only)
        )

    @property
    def browse_app(self) -> BrowseApp:
        """The app, by its own type."""
        from views.browser.app import BrowseApp

        assert isinstance(self.app, BrowseApp)
        return self.app

    def changed(self) -> None:
        """Files were read on, or are other ones: show what is new."""

    def acts(self) -> Acts:
        return {name: getattr(self, "do_" + name.replace("-", "_")) for name in self.actions}

    def offers(self) -> list[Action]:
        """The actions of this screen, for the command palette."""
        return list(ACTIONS[self.where].values())

    def result(self) -> int | None:
        """The row that the list's cursor goes to when the screen closes."""
        return None

    def do_back(self) -> None:
        if self.browse_app.first is self:
            self.app.exit()
        else:
            self.dismiss(self.result())

    def do_left(self) -> None:
        if self.browse_app.first is not self:
            self.dismiss(self.result())

    def do_quit(self) -> None:
        self.app.exit()

    def do_redraw(self) -> None:
        self.refresh(layout=True)
        self.redraw()

    def do_theme(self) -> None:
        self.browse_app.turn_theme()

    def do_help(self) -> None:
        from views.browser.help import help_screen

        self.app.push_screen(help_screen(self.where))

    def do_palette(self) -> None:
        from terminal.windows import Palette
        from views.browser.palette import BrowseCommands

        self.app.push_screen(Palette(providers=[BrowseCommands]))

    def label(self, run_id: str, case_id: str) -> None:
        """Hand the terminal to label_eval.py, and come back; or say why not."""
        command = self.browse_app.library.label_command(run_id, case_id)
        if isinstance(command, str):
            raise ActionRefused(command)

        def closed(answer: str | None) -> None:
            if answer:
                self.say(self.browse_app.label(command), "warn")

        text = (
            f"The labeller opens {one_line(case_id, 100)} with this run's chunks.\n"
            "q leaves it and comes back here."
        )
        self.app.push_screen(Ask(text, {"enter": "start it"}), closed)

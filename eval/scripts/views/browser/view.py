"""What all screens of the browser share: keys from the table, status line, hints, windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events

from labeller import lines
from labeller.actions import Action
from labeller.ports import Refused
from terminal.lists import Bar, Span
from terminal.safe_text import DisplayText, one_line
from terminal.windows import Ask, ClosesOnce
from views.browser.actions import ACTIONS, hint_parts, keys_for

if TYPE_CHECKING:
    from views.browser.app import BrowseApp


class BrowseScreen(ClosesOnce[int | None], inherit_bindings=False):
    """A full screen with keys of its own; `do_<id>` is an action. A page returns its row."""

    AUTO_FOCUS = ""
    ALLOW_SELECT = False
    where: ClassVar[str]

    def __init__(self, *, ascii_only: bool) -> None:
        super().__init__()
        self.look = lines.Look(ascii=ascii_only)
        self.pending: Action | None = None
        self.end = Bar(id="end")
        self._keys = keys_for(self.where)
        self._message: Span = ("row", DisplayText(""))

    @property
    def browse_app(self) -> BrowseApp:
        """The app, by its own type."""
        from views.browser.app import BrowseApp

        assert isinstance(self.app, BrowseApp)
        return self.app

    # -- drawing --------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.call_after_refresh(self.redraw)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Draw everything."""
        self.show()
        self.show_end()

    def show(self) -> None:
        """Draw what this screen is about."""
        raise NotImplementedError

    def changed(self) -> None:
        """Files were read on, or are other ones: show what is new."""

    def show_end(self) -> None:
        """Draw status line and hints."""
        width = self.size.width
        if width > 0:
            waits = f"{self.pending.then[0]} to go on, Esc" if self.pending else ""
            status = lines.status(self._message, waits, width)
            self.end.show([status, lines.hints(hint_parts(self.where), "?", width)])

    def say(self, text: str, style: str = "row") -> None:
        """Show a message on the status line until the next key."""
        self._message = (style, one_line(text, 500))
        if self.is_mounted:
            self.show_end()

    # -- keys -----------------------------------------------------------------------------------

    def take_key(self, key: str, character: str) -> bool:
        """Do what a key press stands for; False leaves it to Textual."""
        action = self.pending
        if action is not None:
            self.pending = None
            self.say("")
            if character and character in action.then:
                self.perform(action.id)
            return True
        action = self._keys.get(key)
        if action is None:
            return False
        if action.then:
            self.pending = action
            self.show_end()
        else:
            self.perform(action.id)
        return True

    def perform(self, name: str) -> None:
        """Do the action `name` of this screen; what it refuses is said on the status line."""
        if self._message[1]:
            self.say("")
        method: Callable[[], None] = getattr(self, "do_" + name.replace("-", "_"))
        try:
            method()
        except Refused as refusal:
            self.say(str(refusal), "warn")

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
        from views.browser.help import BrowseHelp

        self.app.push_screen(BrowseHelp(self.where))

    def do_palette(self) -> None:
        from labeller.palette import Palette
        from views.browser.palette import BrowseCommands

        self.app.push_screen(Palette(providers=[BrowseCommands]))

    def label(self, run_id: str, case_id: str) -> None:
        """Hand the terminal to label_eval.py, and come back; or say why not."""
        command = self.browse_app.library.label_command(run_id, case_id)
        if isinstance(command, str):
            raise Refused(command)

        def closed(answer: str | None) -> None:
            if answer:
                self.say(self.browse_app.label(command), "warn")

        text = (
            f"The labeller opens {one_line(case_id, 100)} with this run's chunks.\n"
            "q leaves it and comes back here."
        )
        self.app.push_screen(Ask(text, {"enter": "start it"}), closed)

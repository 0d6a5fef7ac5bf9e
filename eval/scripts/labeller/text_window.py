"""A window with a text that is scrolled, and a line of keys below it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from labeller.display import display
from labeller.modals import shown
from labeller.text_pane import TextPane
from labeller.window import Window


class TextWindow(Window[None]):
    """Subclasses show their text on `pane`; `KEYS` is the line below it."""

    KEYS: ClassVar[str]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "leave", show=False),
        Binding("down,j", "scroll(1)", "down", show=False),
        Binding("up,k", "scroll(-1)", "up", show=False),
        Binding("pagedown,space,ctrl+d", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.pane = TextPane(id="help-text")

    def compose(self) -> ComposeResult:
        with Vertical(id="help"):
            yield self.pane
            yield shown(display(self.KEYS), classes="keys")

    def on_mount(self) -> None:
        self.show_text()

    def show_text(self) -> None:
        """Put the text on the pane."""
        raise NotImplementedError

    def action_scroll(self, by: int) -> None:
        self.pane.scroll_by(by)

    def action_page(self, by: int) -> None:
        self.pane.scroll_by(by * max(1, self.pane.size.height - 1))

    def action_leave(self) -> None:
        self.dismiss(None)

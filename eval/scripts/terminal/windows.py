"""Windows that close once: two quick presses of Enter must not close what is below as well."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from textual import work
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.command import CommandList, CommandPalette
from textual.containers import Vertical
from textual.content import Content
from textual.css.query import NoMatches
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from terminal.safe_text import DisplayText, display, one_line

Result = TypeVar("Result")
Bindings = list[BindingType]


def dismiss_once(
    screen: Screen[Result],
    dismiss: Callable[[Result | None], AwaitComplete],
    result: Result | None,
) -> AwaitComplete:
    """Close a screen that is still open; Textual's own would close the one below as well."""
    return dismiss(result) if screen in screen.app.screen_stack else AwaitComplete()


class Window(ModalScreen[Result]):
    """A modal window that closes once."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        return dismiss_once(self, super().dismiss, result)

    def action_leave(self) -> None:
        """Close without a result."""
        self.dismiss(None)


def shown(text: DisplayText, *, id: str | None = None, classes: str = "") -> Static:  # noqa: A002
    """A Static that draws `text` letter by letter, never as markup."""
    return Static(Content(text), id=id, classes=classes)


_OFFERED = 6
"""Completions that a prompt names at once."""


class LinePrompt(Window[str | None]):
    """One line at the bottom of the screen. Enter returns it, Esc None.

    `live` is called with each change, so that a filter works while it is typed. `complete` says
    what a line could become: the line, and what is said of it; Tab goes through them.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("tab", "complete(1)", show=False),
        Binding("shift+tab", "complete(-1)", show=False),
    ]

    def __init__(
        self,
        label: str,
        value: str = "",
        live: Callable[[str], str] | None = None,
        complete: Callable[[str], Sequence[tuple[str, str]]] | None = None,
    ) -> None:
        super().__init__()
        self._label = one_line(label)
        self._value = one_line(value)
        self._live = live
        self._complete = complete
        self._offered: Sequence[tuple[str, str]] = ()
        self._at = -1
        """Which of them stands in the line."""

    def compose(self) -> ComposeResult:
        with Vertical(id="prompt"):
            yield shown(self._label, id="prompt-label")
            yield Input(self._value, id="prompt-input", compact=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        offered = (
            self._at >= 0 and bool(self._offered) and self._offered[self._at][0] == event.value
        )
        message = self._live(event.value) if self._live is not None else ""
        if not offered:
            self._say(message)

    def action_complete(self, by: int) -> None:
        """Insert the next completion of the line, and show the others."""
        line = self.query_one("#prompt-input", Input)
        if not self._offered or line.value != self._offered[self._at][0]:
            self._offered = self._complete(line.value) if self._complete is not None else ()
            self._at = -1 if by > 0 else 0
        if not self._offered:
            return
        count = len(self._offered)
        self._at = (self._at + by) % count
        line.value = self._offered[self._at][0]
        line.cursor_position = len(line.value)
        following = [self._offered[(self._at + step) % count][1] for step in range(count)]
        self._say(f"Tab: {'  '.join(following[:_OFFERED])}{'  …' * (count > _OFFERED)}")

    def _say(self, message: str) -> None:
        text = f"{self._label}  {message}" if message else self._label
        self.query_one("#prompt-label", Static).update(Content(one_line(text)))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Ask(Window[str]):
    """A question with a few one-key answers; Esc gives the empty string."""

    def __init__(self, text: str, answers: dict[str, str]) -> None:
        super().__init__()
        self._text = display(text)
        self._answers = answers
        for key, label in answers.items():
            self._bindings.bind(key, f"answer('{key}')", label)
        self._bindings.bind("escape", "answer('')", "back")

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield shown(self._text)
            keys = "   ".join(f"{key} {label}" for key, label in self._answers.items())
            yield shown(display(f"\n{keys}   Esc back"), classes="keys")

    def action_answer(self, key: str) -> None:
        self.dismiss(key)


class Palette(CommandPalette):
    """Textual's palette, closing once."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        return dismiss_once(self, super().dismiss, result)

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        """Textual's search, which may begin when the palette is closing and its list is gone."""
        gather: Any = CommandPalette._gather_commands
        with contextlib.suppress(NoMatches):
            await gather.__wrapped__(self, search_value)

    def _action_command_list(self, action: str) -> None:
        """Textual's, which fails when there is no command to go to."""
        if self.query_one(CommandList).option_count:
            super()._action_command_list(action)

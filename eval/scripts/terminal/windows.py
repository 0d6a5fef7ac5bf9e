"""Windows that close once: two quick presses of Enter must not close what is below as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, Static

from terminal.safe_text import DisplayText, display, one_line

Result = TypeVar("Result")


class ClosesOnce(Screen[Result]):
    """A screen whose second `dismiss` does nothing; Textual's would pop the next screen."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        if self not in self.app.screen_stack:
            return AwaitComplete()
        return super().dismiss(result)


class Window(ModalScreen[Result], ClosesOnce[Result]):
    """A modal window that closes once."""


def shown(text: DisplayText, *, id: str | None = None, classes: str = "") -> Static:  # noqa: A002
    """A Static that draws `text` letter by letter, never as markup."""
    return Static(Content(text), id=id, classes=classes)


class Prompt(Window[str | None]):
    """One line at the bottom of the screen. Enter returns it, Esc None.

    `live` is called with each change, so that a filter works while it is typed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]

    def __init__(
        self, label: str, value: str = "", live: Callable[[str], str] | None = None
    ) -> None:
        super().__init__()
        self._label = one_line(label)
        self._value = one_line(value)
        self._live = live

    def compose(self) -> ComposeResult:
        with Vertical(id="prompt"):
            yield shown(self._label, id="prompt-label")
            yield Input(self._value, id="prompt-input", compact=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._live is not None:
            message = self._live(event.value)
            text = f"{self._label}  {message}" if message else self._label
            self.query_one("#prompt-label", Static).update(Content(one_line(text)))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)


class Ask(Window[str]):
    """A question with a few one-key answers; Esc gives the empty string."""

    def __init__(self, text: str, answers: dict[str, str]) -> None:
        super().__init__()
        self._text = display(text)
        self._answers = answers
        for key, label in answers.items():
            self._bindings.bind(key, f"answer('{key}')", label)
        self._bindings.bind("escape", "answer('')", "leave")

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield shown(self._text)
            keys = "   ".join(f"{key} {label}" for key, label in self._answers.items())
            yield shown(display(f"\n{keys}   Esc leave"), classes="keys")

    def action_answer(self, key: str) -> None:
        self.dismiss(key)


class NoteForm(Window[tuple[str, bool] | None]):
    """A note, and whether it is the reason for "cannot tell". Returns both, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("ctrl+t", "turn", "cannot tell", show=False),
    ]

    def __init__(self, note: str, cannot_tell: bool) -> None:
        super().__init__()
        self._note = one_line(note)
        self._cannot_tell = cannot_tell

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield shown(display("Note to this question"))
            yield Input(self._note, id="note", compact=True)
            yield shown(self._box(), id="cannot-tell")
            yield shown(display("\nEnter keep   Ctrl+t cannot tell   Esc leave"), classes="keys")

    def _box(self) -> DisplayText:
        sign = "[x]" if self._cannot_tell else "[ ]"
        return display(f"{sign} I cannot tell whether it is answerable; the note says why")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss((event.value, self._cannot_tell))

    def action_turn(self) -> None:
        self._cannot_tell = not self._cannot_tell
        self.query_one("#cannot-tell", Static).update(Content(self._box()))

    def action_leave(self) -> None:
        self.dismiss(None)


def query_and_k(text: str) -> tuple[str, int | None]:
    """`extend retention k=50` as words and the number of chunks asked for."""
    words = text.split()
    if words and words[-1].startswith("k=") and words[-1][2:].isdecimal():
        return " ".join(words[:-1]), max(1, min(1000, int(words[-1][2:])))
    return " ".join(words), None

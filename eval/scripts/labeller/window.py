"""Windows that close once: two quick presses of Enter must not close what is below as well."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen

Result = TypeVar("Result")


class ClosesOnce(Screen[Result]):
    """A screen whose second `dismiss` does nothing; Textual's would pop the next screen."""

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        if self not in self.app.screen_stack:
            return AwaitComplete()
        return super().dismiss(result)


class Window(ModalScreen[Result], ClosesOnce[Result]):
    """A modal window that closes once."""

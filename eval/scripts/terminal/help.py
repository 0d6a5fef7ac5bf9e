"""The help window: pages of text, the first one with the keys of a screen from its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from terminal.actions import Action
from terminal.safe_text import display
from terminal.text_pane import Mark, TextWindow

HelpPage = tuple[str, list[Mark]]
"""A text, and its headings and keys as marked stretches."""

KEY_WIDTH = 20


class HelpText:
    """A page of help that grows at its end: headings, and rows of a key and a sentence."""

    def __init__(self) -> None:
        self._text = ""
        self._marks: list[Mark] = []

    def heading(self, title: str) -> None:
        """Begin a part; a blank line comes before it unless it is the first."""
        self._text += "\n" * bool(self._text)
        self._marks.append((len(self._text), len(self._text) + len(title), "rule"))
        self._text += title + "\n"

    def row(self, key: str, sentence: str) -> None:
        """A key or sign, and its effect."""
        self._marks.append((len(self._text), len(self._text) + len(key), "key"))
        self._text += f"{key:<{KEY_WIDTH}} {sentence}\n"

    @property
    def page(self) -> HelpPage:
        """The page built so far."""
        return self._text, self._marks


def keys_page(
    actions: Iterable[Action],
    keys: Callable[[Action], str],
    said: Sequence[tuple[str, str]] = (),
) -> HelpPage:
    """One action a line, under the headings of the table; `keys` names the keys of an action.

    `said`: words of the screen and what they mean, shown first.
    """
    page = HelpText()
    if said:
        page.heading("Words on the screen")
    for word, sentence in said:
        page.row(word, sentence)
    part = ""
    for action in actions:
        if action.part != part:
            part = action.part
            page.heading(part)
        page.row(keys(action), action.help)
    return page.page


class HelpScreen(TextWindow):
    """Pages that Tab turns, from the first on; `foot` is the line below them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "leave", "leave", show=False),
        Binding("tab,shift+tab", "turn", "turn", show=False),
    ]

    def __init__(self, pages: Sequence[HelpPage], foot: str) -> None:
        super().__init__(foot, hang=KEY_WIDTH + 1)
        self._pages = pages
        self._page = 0

    def show_text(self) -> None:
        text, marks = self._pages[self._page]
        self.pane.show(display(text), marks)

    def action_turn(self) -> None:
        self._page = (self._page + 1) % len(self._pages)
        self.show_text()

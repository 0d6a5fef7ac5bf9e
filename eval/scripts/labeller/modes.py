"""The screens with keys of their own: the base of all, and snippet mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical

from labeller import edits, lines, marks
from labeller.actions import actions_of, hint_parts, hints_of
from labeller.passages import Span
from labeller.rows import sentences_of
from terminal import frame
from terminal.action_screen import ActionScreen, Acts
from terminal.actions import Keymap
from terminal.frame import Look
from terminal.lists import Bar
from terminal.safe_text import display
from terminal.tables import counted
from terminal.text_pane import Mark, TextPane

if TYPE_CHECKING:
    from labeller.session import Session


class ModeScreen(ActionScreen[str], inherit_bindings=False):
    """A full screen with its own keys; it returns a message for the main screen."""

    DECIDES: ClassVar = False
    """Are cases decided here? Then keys wait until the passages of the case are there."""

    def __init__(self, where: str, look: Look, keymap: Keymap) -> None:
        super().__init__(actions_of(where), hints_of(where), look, keymap, end="mode-end")
        self.where = where
        self.held = 0  # keys that wait for the passages
        self.waiting = ""
        """What a started choice waits for, shown at the end of the status line."""

    def needs_passages(self, key: str, character: str) -> bool:
        """Does a key press choose or settle something?"""
        return False

    def hint_parts(self) -> Iterable[tuple[str, str]]:
        return hint_parts(self.where, self.keymap)

    def waits_for(self) -> str:
        return self.waiting

    def perform(self, name: str) -> None:
        """Do the action `name` of this screen."""
        super().perform(name)
        if self.is_current:
            self.redraw()

    def show_help(self) -> None:
        """The keys of this screen."""
        from labeller.windows import help_screen

        self.app.push_screen(help_screen(self.where, self.keymap))


LIMIT = 1 << 20

_WORD = re.compile(r"\w+[^\w\s]*|[^\w\s]+")


def _begin_later(text: str, start: int, end: int) -> Span:
    """Without the first word of a selection; a selection of one word moves to the next."""
    starts = [word.start() for word in _WORD.finditer(text, start, end) if word.start() > start]
    after = _WORD.search(text, end)
    return (starts[0], end) if starts else after.span() if after else (start, end)


def _word_more(text: str, start: int, end: int) -> Span:
    word = _WORD.search(text, end)
    return start, word.end() if word else len(text)


def _word_less(text: str, start: int, end: int) -> Span:
    ends = (word.end() for word in _WORD.finditer(text, start, end))
    return start, max((stop for stop in ends if stop < end), default=start + 1)


_STRETCHES: dict[str, Callable[[str, int, int], Span]] = {
    "word-right": _word_more,
    "word-left": _word_less,
    "start-right": _begin_later,
    "right": lambda text, start, end: (start, min(end + 1, len(text))),
    "left": lambda text, start, end: (start, max(end - 1, start + 1)),
}
"""The selection after a move, of a text and the selection before."""


class SnippetScreen(ModeScreen):
    """Each pick is a label at once, as everywhere; Esc takes back those made here."""

    def __init__(self, session: Session, number: int, look: Look, keymap: Keymap) -> None:
        super().__init__("snippet", look, keymap)
        self._session = session
        self._number = number
        self._index = 0
        self._inside: tuple[int, int] | None = None
        self._steps = 0

    def compose(self) -> ComposeResult:
        self.rule_bar = Bar(id="mode-rule")
        self.text = TextPane(id="mode-text")
        with Vertical():
            yield self.rule_bar
            yield self.text
            yield self.end

    def show(self) -> None:
        """Draw the sentences: the cursor's stands out, picked ones are marked."""
        row = self._session.view.row(self._number)
        self._sentences = sentences_of(row, self._session.case)
        count = len(self._sentences)
        path = lines.path_of(row.chunk.rel_path, row.chunk.heading_path)
        left = f"snippets of row {row.label} {self.look.rule * 2} {path}"
        right = f"sentence {self._index + 1} of {count}"
        self.rule_bar.show([frame.rule(self.look, self.size.width, left, right)])
        text, marks = self._listed()
        self.text.show(display(text, LIMIT), marks)
        if marks:
            self.text.reveal(*marks[-1][:2])
        self.waiting = "INSIDE: w b l h, Space picks" if self._inside else ""

    def _listed(self) -> tuple[str, list[Mark]]:
        """The sentences, one a line: `>` the cursor's, `*` picked; the cursor's mark comes last."""
        text = ""
        marks: list[Mark] = []
        here: list[Mark] = []
        for sentence in self._sentences:
            at_cursor = sentence.index == self._index
            text += f"{'>' if at_cursor else ' '}{'*' if sentence.picked else ' '} "
            start = len(text)
            text += sentence.text.replace("\n", " ")
            if sentence.picked:
                marks.append((start, len(text), "marked"))
            if at_cursor:
                begin, end = self._here() or (0, 0)
                base = start - sentence.start
                here.append((base + begin, base + end, "cursor"))
            text += "\n"
        return text, marks + here

    def _here(self) -> tuple[int, int] | None:
        if self._inside is not None:
            return self._inside
        if self._index < len(self._sentences):
            sentence = self._sentences[self._index]
            return sentence.start, sentence.end
        return None

    def acts(self) -> Acts:
        return {
            "down": lambda: self._step(1),
            "up": lambda: self._step(-1),
            "pick": self._pick,
            "inside": self._turn_inside,
            **{name: partial(self._stretch, name) for name in _STRETCHES},
            "fact": self._make_fact,
            "keep": self._keep,
            "help": self.show_help,
            "close": self._take_back,
        }

    def _step(self, by: int) -> None:
        self._inside = None
        self._index = max(0, min(self._index + by, len(self._sentences) - 1))

    def _pick(self) -> None:
        if self._inside is not None:
            start, end = self._inside
            message = self._session.on_row(self._number, marks.select, start, end)
            self._inside = None
        else:
            message = self._session.on_row(self._number, marks.pick, self._index)
        self._steps += 1
        self.say(message)

    def _turn_inside(self) -> None:
        if self._inside is not None:
            self._inside = None
            return
        here = self._here()
        if here is not None:
            start, end = here
            word = _WORD.search(self._text(), start, end)
            self._inside = (start, word.end() if word else min(start + 1, end))

    def _text(self) -> str:
        return self._session.view.row(self._number).chunk.text

    def _stretch(self, name: str) -> None:
        """Move an end of the selection; the first move to the right begins one."""
        if self._inside is not None:
            self._inside = _STRETCHES[name](self._text(), *self._inside)
        elif not name.endswith("left"):
            self._turn_inside()

    def _make_fact(self) -> None:
        here = self._here()
        if here is not None:
            self.say(self._session.revise(edits.key_fact, self._text()[here[0] : here[1]]))
            self._steps += 1

    def _keep(self) -> None:
        row = self._session.view.row(self._number)
        self.dismiss(f"{counted(row.snippets, 'snippet')} in row {row.label}")

    def _take_back(self) -> None:
        for _ in range(self._steps):
            self._session.undo()
        self.dismiss("the picks were taken back" if self._steps else "")

"""Line mode: the same session for screen readers, dumb terminals, pipes and scripts.

Prints a claim with its question and the window that holds most of its words, reads a line such as
``1``, ``a`` or ``u``, and says what was done after it is on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TextIO

from labeller.display import display, one_line
from verdictlabels.keys import guideline, hint, label_keys, words
from verdictlabels.model import Item, Kind, Passage, Refused, Session

HELP: Final = """\
{labels}
a        the whole {upper}
t        the titles of all texts below; t 2 the whole second one
s        the {noun} again
n p      the next {noun}, the one before; nothing is decided
o        the next {noun} without a label
u r      take the last label back, do it again
v        what the judge said, of a {noun} you have labelled
q        leave (or the end of the input); every label is on disk already
"""
WIDER: Final = 1500
"""Characters by which a window may be widened to whole paragraphs."""


def short_help(kind: Kind) -> str:
    """``1 supported, 2 not, 3 cannot tell, ? more``."""
    told = (f"{place} {hint(label)}" for place, label in enumerate(kind.labels, 1))
    return f"{', '.join(told)}, ? more"


def long_help(kind: Kind) -> str:
    """All commands."""
    keys = list(label_keys(kind))
    labels = f"{' '.join(keys[::2]):<8} {', '.join(map(words, kind.labels))}"
    labels += f" ({' '.join(keys[1::2])} do the same)"
    return HELP.format(labels=labels, noun=kind.noun, upper=kind.upper)


def _paragraph(passage: Passage) -> tuple[int, int]:
    """The window, widened to the blank lines around it; the whole text without one."""
    text = passage.text
    if passage.window is None:
        return 0, len(text)
    start, end = passage.window
    above, below = text.rfind("\n\n", 0, start), text.find("\n\n", end)
    wide = (0 if above < 0 else above + 2, len(text) if below < 0 else below)
    return wide if wide[1] - wide[0] <= end - start + WIDER else (start, end)


class Plain:
    """One line session. ``prompt``: a person sits at the other end."""

    def __init__(self, session: Session, stdin: TextIO, stdout: TextIO, *, prompt: bool) -> None:
        self.session = session
        self._in, self._out, self._prompt = stdin, stdout, prompt
        self._kind = session.kind
        self._labels = label_keys(session.kind)

    def run(self) -> int:
        """Read lines until ``q`` or the end of the input; returns the exit code."""
        self.show()
        while True:
            if self._prompt:
                self._out.write(f"{short_help(self._kind)}> ")
                self._out.flush()
            line = self._in.readline()
            if not line or line.strip() in ("q", "quit"):
                return 0
            self.obey(line.strip())

    def obey(self, line: str) -> None:
        """Do what one line says, and say what was done; a refusal is said in the same way."""
        session, name, place = self.session, self.session.item.name, self.session.place
        try:
            if line in self._labels:
                label = self._labels[line]
                session.decide(label)
                self.say(f"{words(label)}: {name}")
                if not session.goto_open():
                    noun = self._kind.noun
                    self.say(f"Every {noun} is labelled: q leaves, n and p look again.")
            else:
                self._command(line)
        except Refused as refusal:
            self.say(str(refusal))
        if session.place != place:
            self.show()

    def say(self, text: str) -> None:
        """Print own or foreign text, made safe, at once."""
        self._out.write(display(text) + "\n")
        self._out.flush()

    def show(self) -> None:
        """The claim or fact, its question, and where most of its words stand."""
        session, item, noun = self.session, self.session.item, self._kind.noun
        self.say(
            f"\n{noun} {session.place + 1} of {len(session.items)}, {session.count()} done: "
            f"{one_line(item.name)}, {words(session.label)}"
        )
        self.say(f"question: {one_line(item.question)}")
        self.say(f"{noun}: {one_line(item.claim)}")
        if not item.passages:
            self.say(self._kind.none)
            return
        passage = item.passages[item.best]
        start, end = _paragraph(passage)
        total = len(item.passages)
        where = f"{self._kind.lower} {item.best + 1} of {total}, {one_line(passage.title)}"
        self.say(f"best window, in {where}:")
        self.say(passage.text[start:end])

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if name == "t":
            self._passages(self.session.item, rest.strip())
            return
        do = self._commands().get(line)
        if do is None:
            raise Refused(
                f"{line!r} is no command; ? lists them" if line else short_help(self._kind)
            )
        do()

    def _commands(self) -> dict[str, Callable[[], object]]:
        session = self.session
        return {
            "a": lambda: self.say(f"{self._kind.upper}: {session.item.answer}"),
            "s": self.show,
            "n": lambda: self._move(1),
            "p": lambda: self._move(-1),
            "o": self._open,
            "u": self._undo,
            "r": self._redo,
            "v": self._verdict,
            "?": lambda: self.say(long_help(self._kind) + guideline(self._kind)),
        }

    def _move(self, by: int) -> None:
        if not self.session.move(by):
            raise Refused(f"that is the {'last' if by > 0 else 'first'} {self._kind.noun}")

    def _open(self) -> None:
        if not self.session.goto_open():
            raise Refused(f"every {self._kind.noun} is labelled")

    def _undo(self) -> None:
        self.session.undo()
        self.say(f"undone: {self.session.item.name}")

    def _redo(self) -> None:
        self.session.redo()
        self.say(f"done again: {self.session.item.name}")

    def _verdict(self) -> None:
        self.session.reveal()
        self.say(f"judge: {self.session.item.verdict}")

    def _passages(self, item: Item, number: str) -> None:
        if not item.passages:
            raise Refused(self._kind.none)
        if not number:
            for place, passage in enumerate(item.passages, 1):
                self.say(f"{place}: {one_line(passage.title)}")
            return
        if not number.isdecimal() or not 1 <= int(number) <= len(item.passages):
            raise Refused(f"t takes a number from 1 to {len(item.passages)}")
        passage = item.passages[int(number) - 1]
        self.say(f"{one_line(passage.title)}:\n{passage.text}")

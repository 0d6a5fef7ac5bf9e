"""Line mode: the same session for screen readers, dumb terminals, pipes and scripts.

Prints a claim with its question and the window that holds most of its words, reads a line such as
``1``, ``a`` or ``u``, and says what was done after it is on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TextIO

from labeller.display import display, one_line
from verdictlabels.keys import GUIDELINE
from verdictlabels.model import LABELS, Item, Label, Passage, Refused, Session

SHORT_HELP: Final = "1 supported, 2 not, 3 cannot tell, ? more"
HELP: Final = """\
1 2 3    supported, not supported, cannot tell (y x c do the same)
a        the whole answer
t        the titles of all passages; t 2 the whole second passage
s        the claim again
n p      the next claim, the one before; nothing is decided
o        the next claim without a label
u r      take the last label back, do it again
v        what the judge said, of a claim you have labelled
q        leave (or the end of the input); every label is on disk already
"""
WIDER: Final = 1500
"""Characters by which a window may be widened to whole paragraphs."""
_LABEL: Final[dict[str, Label]] = {
    **dict(zip("123", LABELS, strict=True)),
    **dict(zip("yxc", LABELS, strict=True)),
}


def words(label: Label | None) -> str:
    """A label as it is told: "not supported"; "open" for none."""
    return "open" if label is None else label.replace("_", " ")


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

    def run(self) -> int:
        """Read lines until ``q`` or the end of the input; returns the exit code."""
        self.show()
        while True:
            if self._prompt:
                self._out.write(f"{SHORT_HELP}> ")
                self._out.flush()
            line = self._in.readline()
            if not line or line.strip() in ("q", "quit"):
                return 0
            self.obey(line.strip())

    def obey(self, line: str) -> None:
        """Do what one line says, and say what was done; a refusal is said in the same way."""
        session, name, place = self.session, self.session.item.name, self.session.place
        try:
            if line in _LABEL:
                session.decide(_LABEL[line])
                self.say(f"{words(_LABEL[line])}: {name}")
                if not session.goto_open():
                    self.say("Every claim is labelled: q leaves, n and p look again.")
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
        """The claim, what it answers, and where most of its words stand."""
        session, item = self.session, self.session.item
        self.say(
            f"\nclaim {session.place + 1} of {len(session.items)}, {session.count()} done: "
            f"{one_line(item.name)}, {words(session.label)}"
        )
        self.say(f"question: {one_line(item.question)}")
        self.say(f"claim: {one_line(item.claim)}")
        if not item.passages:
            self.say("The bot answered without any passage.")
            return
        passage = item.passages[item.best]
        start, end = _paragraph(passage)
        total = len(item.passages)
        self.say(f"best window, in passage {item.best + 1} of {total}, {one_line(passage.title)}:")
        self.say(passage.text[start:end])

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if name == "t":
            self._passages(self.session.item, rest.strip())
            return
        do = self._commands().get(line)
        if do is None:
            raise Refused(f"{line!r} is no command; ? lists them" if line else SHORT_HELP)
        do()

    def _commands(self) -> dict[str, Callable[[], object]]:
        session = self.session
        return {
            "a": lambda: self.say(f"answer: {session.item.answer}"),
            "s": self.show,
            "n": lambda: self._move(1),
            "p": lambda: self._move(-1),
            "o": self._open,
            "u": self._undo,
            "r": self._redo,
            "v": self._verdict,
            "?": lambda: self.say(HELP + GUIDELINE),
        }

    def _move(self, by: int) -> None:
        if not self.session.move(by):
            raise Refused("that is the last claim" if by > 0 else "that is the first claim")

    def _open(self) -> None:
        if not self.session.goto_open():
            raise Refused("every claim is labelled")

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
        if not number:
            for place, passage in enumerate(item.passages, 1):
                self.say(f"{place}: {one_line(passage.title)}")
            return
        if not number.isdecimal() or not 1 <= int(number) <= len(item.passages):
            raise Refused(f"t takes a number from 1 to {len(item.passages)}")
        passage = item.passages[int(number) - 1]
        self.say(f"{one_line(passage.title)}:\n{passage.text}")

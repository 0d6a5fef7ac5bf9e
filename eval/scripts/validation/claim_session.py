"""The labelling session without a screen: claims in their order, labels, undo; no files.

A label is recorded (on disk) before it counts: when the record fails, nothing has changed. The
history is rebuilt from the recorded decisions, so undo goes back over a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, TextIO

from terminal.safe_text import display, one_line

Label = Literal["supported", "not_supported", "cannot_tell", "present", "missing", "contradicted"]

Act = Literal["label", "undo", "redo"]


class Refused(Exception):
    """What was asked for cannot be done now; one sentence for the status line. Nothing changed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is labelled. ``labels``: in the order of their keys, 1 for the first.

    ``upper`` names the text above the item, ``lower`` the texts below that it is held against.
    """

    noun: str
    labels: tuple[Label, ...]
    upper: str
    lower: str
    none: str
    """What is said where there is no text below."""


CLAIMS = Kind(
    "claim",
    ("supported", "not_supported", "cannot_tell"),
    "answer",
    "passage",
    "The bot answered without any passage.",
)

FACTS = Kind(
    "fact",
    ("present", "missing", "cannot_tell", "contradicted"),
    "reference answer",
    "answer",
    "The bot's answer is empty.",
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A context. ``window``: where most of the claim's words stand, as offsets into ``text``."""

    title: str
    text: str
    window: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A claim or fact to label. ``best``: the place of the passage to show first.

    ``answer`` is shown above ``claim``, ``passages`` below: see ``Kind``. ``verdict`` is what the
    judge said, in words; it is kept from the annotator.
    """

    key: str
    name: str
    question: str
    answer: str
    claim: str
    passages: Sequence[Passage] = ()
    span: tuple[int, int] | None = None
    best: int = 0
    words: frozenset[str] = frozenset()
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """One event: the label that a claim has from now on (None: none), and by which act."""

    key: str
    label: Label | None
    act: Act = "label"
    after_verdict: bool = False


@dataclass(frozen=True, slots=True)
class _Step:
    key: str
    before: Label | None
    after: Label | None


class Session:
    """One annotator's pass over a sample of claims or facts. ``items`` must not be empty."""

    def __init__(
        self,
        items: Sequence[Item],
        record: Callable[[Decision], None],
        *,
        annotator: str = "",
        decided: Iterable[Decision] = (),
        kind: Kind = CLAIMS,
    ) -> None:
        self.items = items
        self.kind = kind
        self.annotator = annotator
        self.labels: dict[str, Label] = {}
        self.seen_verdict: set[str] = set()
        self._record = record
        self._places: Mapping[str, int] = {item.key: n for n, item in enumerate(items)}
        self._undo: list[_Step] = []
        self._redo: list[_Step] = []
        for decision in decided:
            if decision.key in self._places:
                self._take(decision)
        self.place = 0
        if not self.goto_open(0):
            self.place = 0

    # -- what there is -------------------------------------------------------------------------

    @property
    def item(self) -> Item:
        return self.items[self.place]

    @property
    def label(self) -> Label | None:
        """The label of the claim on screen."""
        return self.labels.get(self.item.key)

    @property
    def verdict_shown(self) -> bool:
        """May the judge's verdict be shown? Only of a claim that has a label and was asked for."""
        return self.label is not None and self.item.key in self.seen_verdict

    def count(self, label: Label | None = None) -> int:
        """Claims with this label; with any label for None."""
        return sum(label is None or one == label for one in self.labels.values())

    # -- moving --------------------------------------------------------------------------------

    def move(self, by: int) -> bool:
        """Go to a neighbour; False at the ends."""
        place = max(0, min(len(self.items) - 1, self.place + by))
        moved = place != self.place
        self.place = place
        return moved

    def goto_open(self, start: int | None = None) -> bool:
        """Go to the next claim without a label, from ``start`` on and around; False without any."""
        first = self.place + 1 if start is None else start
        for step in range(len(self.items)):
            place = (first + step) % len(self.items)
            if self.items[place].key not in self.labels:
                self.place = place
                return True
        return False

    # -- deciding ------------------------------------------------------------------------------

    def decide(self, label: Label) -> None:
        """Label the claim on screen. Raises Refused when it cannot be kept, or is no change."""
        key = self.item.key
        if self.labels.get(key) == label:
            raise Refused("it has that label already")
        self._keep(Decision(key, label, "label", key in self.seen_verdict))

    def undo(self) -> None:
        """Take the last decision back, and go to its claim. Raises Refused without one."""
        if not self._undo:
            raise Refused("nothing to undo")
        step = self._undo[-1]
        self._keep(Decision(step.key, step.before, "undo", step.key in self.seen_verdict))
        self.place = self._places[step.key]

    def redo(self) -> None:
        """Do again what was undone last. Raises Refused without it."""
        if not self._redo:
            raise Refused("nothing to redo")
        step = self._redo[-1]
        self._keep(Decision(step.key, step.after, "redo", step.key in self.seen_verdict))
        self.place = self._places[step.key]

    def reveal(self) -> None:
        """Show the judge's verdict on the claim on screen. Raises Refused before it is labelled."""
        if self.label is None:
            noun = self.kind.noun
            raise Refused(f"label the {noun} first: the judge's verdict would pull yours")
        self.seen_verdict.add(self.item.key)

    def _keep(self, decision: Decision) -> None:
        try:
            self._record(decision)
        except OSError as error:
            raise Refused(f"NOT SAVED, nothing changed: {error.strerror or error}") from error
        self._take(decision)

    def _take(self, decision: Decision) -> None:
        """Let a recorded decision count."""
        step = _Step(decision.key, self.labels.get(decision.key), decision.label)
        if decision.act == "undo" and self._undo:
            self._redo.append(self._undo.pop())
        elif decision.act == "redo" and self._redo:
            self._undo.append(self._redo.pop())
        else:
            self._undo.append(step)
            self._redo.clear()
        if decision.label is None:
            self.labels.pop(decision.key, None)
        else:
            self.labels[decision.key] = decision.label
        if decision.after_verdict:
            self.seen_verdict.add(decision.key)


@dataclass(frozen=True, slots=True)
class Action:
    """``name``: method ``do_<name>`` of the screen. ``keys`` as Textual names them.

    ``hint``: its word on the last line of the screen, "" for none.
    """

    name: str
    keys: tuple[str, ...]
    shown: str
    hint: str
    help: str


_KEYS = (("1", "y"), ("2", "x"), ("3", "c"), ("4", "d"))
"""Of the labels of a kind, in their order."""

_HINTS = {"not_supported": "not"}


def words(label: Label | None) -> str:
    """A label as it is told: "not supported"; "open" for none."""
    return "open" if label is None else label.replace("_", " ")


def hint(label: Label) -> str:
    """A label in as few words as a hint takes."""
    return _HINTS.get(label, words(label))


def _deciding(kind: Kind) -> tuple[Action, ...]:
    """An action a label: ``do_label_1`` and so on."""
    more = "; every decision goes on to the next open one"
    return tuple(
        Action(
            f"label_{place}",
            keys,
            " ".join(keys),
            hint(label),
            words(label) + (more if place == 1 else ""),
        )
        for place, (label, keys) in enumerate(zip(kind.labels, _KEYS, strict=False), 1)
    )


def label_keys(kind: Kind) -> dict[str, Label]:
    """The label that each key gives."""
    pairs = zip(kind.labels, _KEYS, strict=False)
    return {key: label for label, keys in pairs for key in keys}


_COMMON = (
    Action("undo", ("u", "backspace", "ctrl+z"), "u", "undo", "take the last label back"),
    Action("redo", ("U", "upper_u", "ctrl+r"), "U", "", "do again what was undone"),
    Action("next_passage", ("right_square_bracket", "tab"), "] Tab", "passage", "the next passage"),
    Action("previous_passage", ("left_square_bracket", "shift+tab"), "[", "", "the passage before"),
    Action("next", ("n", "l", "right"), "n →", "next", "the next one, nothing is decided"),
    Action("previous", ("p", "h", "left"), "p ←", "back", "the one before"),
    Action("open", ("enter",), "Enter", "", "the next one without a label"),
    Action("best", ("w",), "w", "", "the window that holds most of its words"),
    Action("down", ("j", "down"), "j ↓", "", "scroll the text below down"),
    Action("up", ("k", "up"), "k ↑", "", "scroll it up"),
    Action("page_down", ("pagedown", "space", "ctrl+d"), "PgDn", "", "a page of it down"),
    Action("page_up", ("pageup", "ctrl+u"), "PgUp", "", "a page up"),
    Action("answer_down", ("J", "upper_j"), "J", "", "scroll the text above down"),
    Action("answer_up", ("K", "upper_k"), "K", "", "scroll it up"),
    Action(
        "verdict",
        ("v",),
        "v",
        "",
        "what the judge said, of what you have labelled",
    ),
    Action("help", ("question_mark", "f1"), "? F1", "", "this page"),
    Action("quit", ("q", "ctrl+q"), "q", "quit", "leave; every label is on disk already"),
)


@cache
def actions(kind: Kind) -> tuple[Action, ...]:
    """All actions of the screen; labels first. A fact has but one text below it."""
    common = (one for one in _COMMON if kind is not FACTS or not one.name.endswith("_passage"))
    return (*_deciding(kind), *common)


@cache
def by_key(kind: Kind) -> dict[str, str]:
    """The action's name of each key."""
    return {key: action.name for action in actions(kind) for key in action.keys}


def hinted(kind: Kind) -> list[tuple[str, str]]:
    """What the last line of the screen shows, as far as it fits: key and word."""
    shown = (action for action in actions(kind) if action.hint)
    return [(action.shown.split()[0], action.hint) for action in shown]


_CLAIMS = """
How to label, so that everyone labels alike

Supported      The passages alone bear out ALL of the claim: every
               number, name and condition.
Not supported  Any part of it is missing from the passages, or they say
               otherwise. That it is true in the world does not count.
Cannot tell    The claim cannot be understood, or you lack the
               knowledge to read the passages.

Read the claim in the light of question and answer: "it" means what it
means there. The marked window is where most of its words stand, found by
counting words; the support may stand elsewhere, in another passage, or
nowhere.

"""

_FACTS = """
How to label, so that everyone labels alike

Present        The bot's answer says ALL of the fact, in whatever words:
               every number, name and condition.
Missing        Any part of it is not in the answer, and the answer does
               not say otherwise.
Contradicted   The answer says something that cannot be true if the fact
               is true.
Cannot tell    The fact cannot be understood, or you lack the knowledge
               to read the answer.

The fact comes from the reference answer: read it there for what it means.
Only the bot's answer decides. The best window, which is marked, is where
most of its words stand, found by counting words; it may be said elsewhere,
in other words, or nowhere.

"""

_COMMON_END = """\
The judge's verdict is hidden until you have given yours.

Nothing is lost: every key is in your label file before it is shown. u
undoes, also after a restart.
"""


def guideline(kind: Kind) -> str:
    """How to label items of this kind."""
    return (_FACTS if kind is FACTS else _CLAIMS) + _COMMON_END


def help_text(kind: Kind) -> str:
    """The keys, then the guideline."""
    keys = "\n".join(f"{action.shown:<9} {action.help}" for action in actions(kind))
    return (
        f"Keys (j k PgDn PgUp scroll this page, any other key closes it)\n{keys}\n{guideline(kind)}"
    )


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

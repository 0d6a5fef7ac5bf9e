"""Runs a labelling session without a screen: claims in their order, labels, undo; no files.

A label is recorded (on disk) before it counts: when the record fails, nothing has changed. The
history is rebuilt from the recorded decisions, so undo goes back over a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TextIO

from terminal.actions import Action, ActionRefused, UndoSteps, shown_key
from terminal.keys import keys_on
from terminal.line_mode import LineTerminal
from terminal.safe_text import one_line

Act = Literal["label", "note", "undo", "redo"]


@dataclass(frozen=True, slots=True)
class LabelKind:
    """A kind of item to label. ``labels``: in the order of their keys, 1 for the first.

    ``upper`` names the text above the item, ``lower`` the texts below that it is compared with.
    ``letters``: y and n give labels, too. ``guide``: how to label, where a user says it. ``title``:
    of what is decided, where that is no ``noun``.
    """

    noun: str
    labels: tuple[str, ...]
    upper: str
    lower: str
    none: str
    """The message where there is no text below."""
    letters: bool = True
    guide: str = ""
    title: str = ""

    def keys(self, number: int) -> tuple[str, ...]:
        """The keys of a label, 1 for the first; "equal" has 0."""
        keys = _KEYS["label-0" if self.labels[number - 1] == "equal" else f"label-{number}"]
        return keys if self.letters else tuple(key for key in keys if key.isdigit())


CLAIMS = LabelKind(
    "claim",
    ("supported", "not_supported", "cannot_tell"),
    "answer",
    "passage",
    "The bot answered without any passage.",
)

FACTS = LabelKind(
    "fact",
    ("present", "missing", "cannot_tell", "contradicted"),
    "reference answer",
    "answer",
    "The bot's answer is empty.",
)


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """A context. ``window``: where most of the claim's words stand, as offsets into ``text``."""

    title: str
    text: str
    window: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ClaimItem:
    """A claim or fact to label. ``best``: the place of the passage to show first.

    ``answer`` is shown above ``claim``, ``passages`` below: see ``Kind``. ``verdict`` is what the
    judge said, in words; it is kept from the annotator.
    """

    key: str
    name: str
    question: str
    answer: str
    claim: str
    passages: Sequence[ClaimContext] = ()
    span: tuple[int, int] | None = None
    best: int = 0
    words: frozenset[str] = frozenset()
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class LabelDecision:
    """An event: label (None: none), note and flag of a claim from now on, and by which act."""

    key: str
    label: str | None
    act: Act = "label"
    after_verdict: bool = False
    note: str = ""
    flag: bool = False


Progress = Callable[[Mapping[str, str], bool], str]
"""How far the labels (by item key) bring the goal, on one line; shorter when the flag is set."""


@dataclass(frozen=True, slots=True)
class SessionGoal:
    """The goal of the labels. ``opening``: what can be reached, said before the first label."""

    opening: str = ""
    progress: Progress = field(default=lambda labels, short: "")


@dataclass(frozen=True, slots=True)
class _Step:
    before: LabelDecision
    after: LabelDecision


class ClaimSession:
    """One annotator's pass over a sample of claims or facts. ``items`` must not be empty."""

    def __init__(
        self,
        items: Sequence[ClaimItem],
        record: Callable[[LabelDecision], None],
        *,
        annotator: str = "",
        decided: Iterable[LabelDecision] = (),
        kind: LabelKind = CLAIMS,
        goal: SessionGoal | None = None,
    ) -> None:
        self.goal = goal or SessionGoal()
        self.items = items
        self.kind = kind
        self.annotator = annotator
        self.labels: dict[str, str] = {}
        self.seen_verdict: set[str] = set()
        self._put_off: set[str] = set()
        self._last: dict[str, LabelDecision] = {}
        self._record = record
        self._indices: Mapping[str, int] = {item.key: n for n, item in enumerate(items)}
        self._steps: UndoSteps[_Step] = UndoSteps()
        for decision in decided:
            if decision.key in self._indices:
                self._take(decision)
        self.index = 0
        if not self.goto_open(0):
            self.index = 0

    @property
    def item(self) -> ClaimItem:
        return self.items[self.index]

    @property
    def label(self) -> str | None:
        """The label of the claim on screen."""
        return self.labels.get(self.item.key)

    @property
    def noted(self) -> LabelDecision:
        """The state of the claim on screen: label, note and flag."""
        return self._state(self.item.key)

    @property
    def verdict_shown(self) -> bool:
        """Whether the judge's verdict may be shown: the claim has a label, and it was asked for."""
        return self.label is not None and self.item.key in self.seen_verdict

    def count(self, label: str | None = None) -> int:
        """Claims with this label; with any label for None."""
        return sum(label in (None, labelled) for labelled in self.labels.values())

    def progress(self, *, short: bool = False) -> str:
        """How far the labels have come, on one line; "" without a goal."""
        return self.goal.progress(self.labels, short)

    def move(self, by: int) -> bool:
        """Go to a neighbour; False at the ends."""
        index = max(0, min(len(self.items) - 1, self.index + by))
        moved = index != self.index
        self.index = index
        return moved

    def goto_open(self, start: int | None = None) -> bool:
        """Go to the next claim without a label, from ``start`` on and around; False without any."""
        first = self.index + 1 if start is None else start
        order = [(first + step) % len(self.items) for step in range(len(self.items))]
        unlabelled = [index for index in order if self.items[index].key not in self.labels]
        now = [index for index in unlabelled if self.items[index].key not in self._put_off]
        for index in now or unlabelled:
            self.index = index
            return True
        return False

    def put_off(self) -> None:
        """Move the claim on screen behind all others; `ActionRefused` when it has a label."""
        if self.label is not None:
            raise ActionRefused("it has a label already; u takes it back")
        self._put_off.add(self.item.key)

    # -- deciding ------------------------------------------------------------------------------

    def decide(self, label: str) -> None:
        """Label the claim on screen; `ActionRefused` when it cannot be kept, or is no change."""
        if self.label == label:
            raise ActionRefused("it has that label already")
        self._keep(replace(self.noted, label=label, act="label"))

    def put_note(self, text: str) -> str:
        """Put a note on the claim on screen; "" takes the note away. Returns what was done."""
        self._keep(replace(self.noted, note=text.strip(), act="note"))
        return f"{'noted' if self.noted.note else 'note taken away'}: {self.item.name}"

    def turn_flag(self) -> str:
        """Flag the claim on screen, or take its flag away. Returns what was done."""
        self._keep(replace(self.noted, flag=not self.noted.flag, act="note"))
        return f"{'flagged' if self.noted.flag else 'flag taken away'}: {self.item.name}"

    def undo(self) -> None:
        """Undo the last decision, and go to its claim. Raises ActionRefused without one."""
        if not self._steps.done:
            raise ActionRefused("nothing to undo")
        before = self._steps.done[-1].before
        self._keep(replace(before, act="undo"))
        self.index = self._indices[before.key]

    def redo(self) -> None:
        """Restore the decision that was undone last. Raises ActionRefused without it."""
        if not self._steps.undone:
            raise ActionRefused("nothing to redo")
        after = self._steps.undone[-1].after
        self._keep(replace(after, act="redo"))
        self.index = self._indices[after.key]

    def reveal(self) -> None:
        """Show the judge's verdict on a claim; `ActionRefused` before it is labelled."""
        if self.label is None:
            noun = self.kind.noun
            raise ActionRefused(
                f"label the {noun} first: the judge's verdict could influence yours"
            )
        self.seen_verdict.add(self.item.key)

    def _state(self, key: str) -> LabelDecision:
        return self._last.get(key) or LabelDecision(key, None)

    def _keep(self, decision: LabelDecision) -> None:
        """Record a decision, and let it count. A note says nothing of when the label was given."""
        before = self._state(decision.key)
        seen = decision.key in self.seen_verdict
        if decision.label == before.label:
            seen = before.after_verdict
        decision = replace(decision, after_verdict=seen)
        try:
            self._record(decision)
        except OSError as error:
            raise ActionRefused(f"NOT SAVED, nothing changed: {error.strerror or error}") from error
        self._take(decision)

    def _take(self, decision: LabelDecision) -> None:
        """Let a recorded decision count."""
        step = _Step(self._state(decision.key), decision)
        self._last[decision.key] = decision
        if decision.act == "undo" and self._steps.done:
            self._steps.undo()
        elif decision.act == "redo" and self._steps.undone:
            self._steps.redo()
        else:
            self._steps.add(step)
        if decision.label is None:
            self.labels.pop(decision.key, None)
        else:
            self.labels[decision.key] = decision.label
        if decision.after_verdict:
            self.seen_verdict.add(decision.key)


_KEYS = keys_on("claims")
"""The keys of each action, ``label-1`` and so on for the labels of a kind in their order."""

_HINTS = {"not_supported": "not"}


def words(label: str | None) -> str:
    """A label in words: "not supported"; "open" for none."""
    return "open" if label is None else label.replace("_", " ")


def _hint(label: str) -> str:
    """A label in as few words as a hint takes."""
    return _HINTS.get(label, words(label))


def _action(
    name: str, hint_words: str, sentence: str, keys: tuple[str, ...] | None = None
) -> Action:
    """A row of the table; no `hint_words` for what the last line of the screen leaves out."""
    keys = _KEYS.get(name, ()) if keys is None else keys
    shown = " ".join(dict.fromkeys(map(shown_key, keys)))
    return Action(name, keys, hint_words, sentence, then="g" * (name == "top"), shown=shown)


def _deciding(kind: LabelKind) -> Iterator[Action]:
    """An action a label: ``label-1`` and so on."""
    more = "; every decision opens the next open one"
    for number, label in enumerate(kind.labels, 1):
        sentence = words(label) + (more if number == 1 else "")
        yield _action(f"label-{number}", _hint(label), sentence, kind.keys(number))


_COMMON = (
    _action("later", "later", "judge this one later, after the others"),
    _action("note", "note", "write a note on it; empty removes it"),
    _action("flag", "flag", "flag it, or take the flag away"),
    _action("undo", "undo", "take the last label, note or flag back"),
    _action("redo", "", "redo the last undone change"),
    _action("next-passage", "passage", "the next passage"),
    _action("previous-passage", "", "the passage before"),
    _action("next", "next", "the next one, without a decision"),
    _action("previous", "back", "the one before"),
    _action("open", "", "the next one without a label"),
    _action("read-on", "", "a page of the text down, then the next text"),
    _action("best", "", "the window with most of its words"),
    _action("search", "", "search in the text below"),
    _action("next-hit", "", "the next place with the words"),
    _action("previous-hit", "", "the place before"),
    _action("down", "", "scroll the text below down"),
    _action("up", "", "scroll it up"),
    _action("page-down", "", "a page of it down"),
    _action("page-up", "", "a page up"),
    _action("first", "", "to its start"),
    _action("top", "", "g g: to its start"),
    _action("last", "", "to its end"),
    _action("answer-down", "", "scroll the text above down"),
    _action("answer-up", "", "scroll it up"),
    _action("zoom", "", "the text below on the whole screen and back"),
    _action("copy-claim", "", "copy it to the clipboard"),
    _action("verdict", "", "the judge's verdict on what you have labelled"),
    _action("help", "", "this page"),
    _action("palette", "", "all commands by name"),
    _action("suspend", "", "to the shell; fg there comes back"),
    _action("redraw", "", "draw the screen again"),
    _action("leave", "quit", "leave; every label is on disk already"),
    _action("quit", "", "leave from anywhere"),
)


def actions(kind: LabelKind) -> tuple[Action, ...]:
    """All actions of the screen; labels first. A fact has but one text below it."""
    common = (
        action for action in _COMMON if kind is not FACTS or not action.id.endswith("-passage")
    )
    return (*_deciding(kind), *common)


def hinted(kind: LabelKind) -> list[str]:
    """The actions that the last line of the screen shows, as far as they fit."""
    return [action.id for action in actions(kind) if action.label]


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


def _guideline(kind: LabelKind) -> str:
    """How to label items of this kind."""
    return (kind.guide or (_FACTS if kind is FACTS else _CLAIMS)) + _COMMON_END


def help_text(kind: LabelKind) -> str:
    """The keys, then the guideline."""
    width = max(len(action.shown) for action in actions(kind))
    keys = "\n".join(f"{action.shown:<{width}} {action.help}" for action in actions(kind))
    title = "Keys (j k PgDn PgUp scroll this page, any other key closes it)"
    return f"{title}\n{keys}\n{_guideline(kind)}"


HELP: Final = """\
{labels}
a        the whole {upper}
t        the titles of all texts below; t 2 the whole second one
;        the {noun} again
l h      the next {noun}, the one before; nothing is decided
o        the next {noun} without a label
s        judge this one later
c TEXT   note TEXT on it; c alone takes the note away
f        flag it, or take the flag away
u U      take the last label, note or flag back, do it again
v        what the judge said, once you have labelled it
q        leave (or the end of the input); every label is on disk already
"""

WIDER: Final = 1500
"""Characters by which a window may be widened to whole paragraphs."""


def _short_help(kind: LabelKind) -> str:
    """``1 supported, 2 not, 3 cannot tell, ? more``."""
    labels = (f"{kind.keys(n)[0]} {_hint(label)}" for n, label in enumerate(kind.labels, 1))
    return f"{', '.join(labels)}, ? more"


def _long_help(kind: LabelKind) -> str:
    """All commands."""
    labels = "\n".join(
        f"{' '.join(kind.keys(number)):<8} {words(label)}"
        for number, label in enumerate(kind.labels, 1)
    )
    return HELP.format(labels=labels, noun=kind.noun, upper=kind.upper)


def _paragraph(passage: ClaimContext) -> tuple[int, int]:
    """The window, widened to the blank lines around it; the whole text without one."""
    text = passage.text
    if passage.window is None:
        return 0, len(text)
    start, end = passage.window
    above, below = text.rfind("\n\n", 0, start), text.find("\n\n", end)
    wide = (0 if above < 0 else above + 2, len(text) if below < 0 else below)
    return wide if wide[1] - wide[0] <= end - start + WIDER else (start, end)


class ClaimLines:
    """A labelling session by lines of text. ``prompt``: a person sits at the other end."""

    def __init__(
        self, session: ClaimSession, stdin: TextIO, stdout: TextIO, *, prompt: bool
    ) -> None:
        self.session = session
        self._kind = session.kind
        self._terminal = LineTerminal(stdin, stdout, _short_help(session.kind) if prompt else "")
        labels = enumerate(session.kind.labels, 1)
        self._labels = {key: label for n, label in labels for key in session.kind.keys(n)}

    def run(self) -> int:
        """Read lines until ``q`` or the end of the input; returns the exit code."""
        if self.session.goal.opening:
            self.say(self.session.goal.opening)
        self.show()
        for line in self._terminal.lines():
            self.obey(line)
        return 0

    def say(self, text: str) -> None:
        """Print own or foreign text, made safe, at once."""
        self._terminal.say(text)

    def obey(self, line: str) -> None:
        """Carry out one line and report the result; a refusal is reported in the same way."""
        session, name, index = self.session, self.session.item.name, self.session.index
        try:
            if line in self._labels:
                label = self._labels[line]
                session.decide(label)
                progress = session.progress()
                self.say(f"{words(label)}: {name}{f' ({progress})' if progress else ''}")
                if not session.goto_open():
                    noun = self._kind.noun
                    self.say(f"Every {noun} is labelled: q leaves, l and h look again.")
            else:
                self._command(line)
        except ActionRefused as refusal:
            self.say(str(refusal))
        if session.index != index:
            self.show()

    def show(self) -> None:
        """Print the claim or fact, its question, and the text that shares most of its words."""
        session, item, noun = self.session, self.session.item, self._kind.noun
        self.say(
            f"\n{noun} {session.index + 1} of {len(session.items)}, {session.count()} done: "
            f"{one_line(item.name)}, {words(session.label)}{', flagged' * session.noted.flag}"
        )
        if session.noted.note:
            self.say(f"note: {one_line(session.noted.note)}")
        self.say(f"question: {one_line(item.question)}")
        self.say(f"{self._kind.title or noun}: {one_line(item.claim)}")
        if self._kind.title:
            self.say(f"{self._kind.upper}: {item.answer}")
        if not item.passages:
            self.say(self._kind.none)
            return
        passage = item.passages[item.best]
        start, end = _paragraph(passage)
        total = len(item.passages)
        where = f"{self._kind.lower} {item.best + 1} of {total}, {one_line(passage.title)}"
        self.say(f"{'best window, in ' if passage.window else ''}{where}:")
        self.say(passage.text[start:end])

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        if name == "t":
            self._passages(self.session.item, rest.strip())
            return
        if name == "c":
            self.say(self.session.put_note(rest))
            return
        command = self._commands().get(line)
        if command is None:
            raise ActionRefused(
                f"{line!r} is not a command; ? lists them" if line else _short_help(self._kind)
            )
        command()

    def _commands(self) -> dict[str, Callable[[], object]]:
        session = self.session
        return {
            "a": lambda: self.say(f"{self._kind.upper}: {session.item.answer}"),
            ";": self.show,
            "l": lambda: self._move(1),
            "h": lambda: self._move(-1),
            "o": self._open,
            "s": self._later,
            "f": lambda: self.say(session.turn_flag()),
            "u": self._undo,
            "U": self._redo,
            "r": self._redo,
            "v": self._verdict,
            "?": lambda: self.say(_long_help(self._kind) + _guideline(self._kind)),
        }

    def _move(self, by: int) -> None:
        if not self.session.move(by):
            raise ActionRefused(f"that is the {'last' if by > 0 else 'first'} {self._kind.noun}")

    def _open(self) -> None:
        if not self.session.goto_open():
            raise ActionRefused(f"every {self._kind.noun} is labelled")

    def _later(self) -> None:
        self.session.put_off()
        self.say(f"later: {self.session.item.name}")
        self._open()

    def _undo(self) -> None:
        self.session.undo()
        self.say(f"undone: {self.session.item.name}")

    def _redo(self) -> None:
        self.session.redo()
        self.say(f"done again: {self.session.item.name}")

    def _verdict(self) -> None:
        self.session.reveal()
        self.say(f"judge: {self.session.item.verdict}")

    def _passages(self, item: ClaimItem, number: str) -> None:
        if not item.passages:
            raise ActionRefused(self._kind.none)
        if not number:
            for index, passage in enumerate(item.passages, 1):
                self.say(f"{index}: {one_line(passage.title)}")
            return
        if not number.isdecimal() or not 1 <= int(number) <= len(item.passages):
            raise ActionRefused(f"t takes a number from 1 to {len(item.passages)}")
        passage = item.passages[int(number) - 1]
        self.say(f"{one_line(passage.title)}:\n{passage.text}")

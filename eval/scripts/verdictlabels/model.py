"""The labelling session without a screen: claims in their order, labels, undo; no files.

A label is recorded (on disk) before it counts: when the record fails, nothing has changed. The
history is rebuilt from the recorded decisions, so undo goes back over a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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

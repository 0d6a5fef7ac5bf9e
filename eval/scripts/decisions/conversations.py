"""Which conversations broke or were fixed between two runs, and at which turn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from decisions.case_changes import PairVerdicts
from records.labels import has_turns, read_cases
from terminal.tables import counted

SHOWN = 10
"""Conversations that are named, each way."""


@dataclass(frozen=True, slots=True)
class ConversationFlip:
    """A conversation whose first failing turn changed: ``base_turn`` and ``new_turn``, None where
    every turn is ok. ``case_id`` and ``question`` are those of the earlier of the two."""

    conversation: str
    repeat: int
    turns: int
    base_turn: int | None
    new_turn: int | None
    case_id: str
    question: str

    def says(self) -> str:
        """The change in words: ``all 4 turns were ok, now turn 2 fails``."""
        if self.base_turn is None:
            return f"all {self.turns} turns were ok, now turn {self.new_turn} fails"
        if self.new_turn is None:
            return f"turn {self.base_turn} failed, now all {self.turns} turns are ok"
        return f"first failed at turn {self.base_turn}, now at turn {self.new_turn}"


@dataclass(frozen=True, slots=True)
class ConversationFlips:
    """The conversations that both runs have: how many, and those that changed, worst first.

    ``broke``: all turns were ok, and one fails now; ``fixed``: the reverse. ``earlier``,
    ``later``: those that failed before and fail now at another turn.
    """

    compared: int
    broke: tuple[ConversationFlip, ...] = ()
    fixed: tuple[ConversationFlip, ...] = ()
    earlier: tuple[ConversationFlip, ...] = ()
    later: tuple[ConversationFlip, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    def summary(self) -> str:
        """One sentence on all of them."""
        text = (
            f"Of {counted(self.compared, 'conversation')} {len(self.broke):,} broke and "
            f"{len(self.fixed):,} {'was' if len(self.fixed) == 1 else 'were'} fixed"
        )
        if not (self.broke or self.fixed):
            text = f"No conversation broke or was fixed ({self.compared:,} compared)"
        ways = ((self.earlier, "earlier"), (self.later, "later"))
        moved = [(len(changes), word) for changes, word in ways if changes]
        if moved:
            verb = "fails" if moved[0][0] == 1 else "fail"
            (first, word), *others = moved
            text += f"; {first:,} now {verb} {word}"
            text += "".join(f", {count:,} {word}" for count, word in others)
        return f"{text}."


def find_changes(pair: PairVerdicts, eval_set: Path) -> ConversationFlips | None:
    """The conversations whose first failing turn changed; of repeats each by itself.

    None for a set without conversations. Conversations of which a run lacks a turn are left out.
    """
    if not eval_set.exists() or not has_turns(eval_set):
        return None
    talks: dict[str, list[tuple[str, int, str]]] = {}
    for case in read_cases(eval_set, None):
        if case.conversation is not None and case.turn is not None:
            turns = talks.setdefault(case.conversation, [])
            turns.append((case.id, case.turn, case.question))
    compared = 0
    changes: list[ConversationFlip] = []
    for name, turns in talks.items():
        for repeat in range(min(pair.repeats(case_id) for case_id, _, _ in turns)):
            sides = [
                [run.fails((case_id, repeat)) for case_id, _, _ in turns]
                for run in (pair.base, pair.new)
            ]
            if any(None in fails for fails in sides):
                continue
            compared += 1
            first = [fails.index(True) if True in fails else None for fails in sides]
            if first[0] == first[1]:
                continue
            old, now = (None if place is None else turns[place][1] for place in first)
            case_id, _, question = turns[min(place for place in first if place is not None)]
            changes.append(ConversationFlip(name, repeat, len(turns), old, now, case_id, question))
    if not compared:
        return None
    changes.sort(key=lambda change: min(_turn(change.base_turn), _turn(change.new_turn)))
    groups: dict[str, list[ConversationFlip]] = {
        way: [] for way in ("broke", "fixed", "earlier", "later")
    }
    for change in changes:
        groups[_way(change)].append(change)
    return ConversationFlips(compared, **{way: tuple(own) for way, own in groups.items()})


def _way(change: ConversationFlip) -> str:
    if change.base_turn is None:
        return "broke"
    if change.new_turn is None:
        return "fixed"
    return "earlier" if change.new_turn < change.base_turn else "later"


def _turn(turn: int | None) -> float:
    """A turn to be compared; that none fails is later than any."""
    return float("inf") if turn is None else turn

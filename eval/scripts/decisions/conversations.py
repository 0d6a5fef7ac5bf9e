"""Conversations of two runs: which ones broke or were fixed, and at which turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from records.cases import ignore, iter_cases
from records.labels import has_turns
from records.runs import scores_file
from records.scores import SCORES_OF_CASE, read_scores

SECTION, METRIC = "pipeline", "pass"

Place = tuple[str, int]
"""A conversation and a turn of it."""


@dataclass(frozen=True, slots=True)
class ChangedConversation:
    """A conversation whose first turn without a pass is another one in the new run; None: every
    turn passes. ``case_id``: the turn at which it breaks now, or broke before it was fixed."""

    conversation: str
    case_id: str
    base_turn: int | None
    new_turn: int | None

    @property
    def kind(self) -> str:
        """broke, fixed, or breaks earlier or later."""
        if self.base_turn is None:
            return "broke"
        if self.new_turn is None:
            return "fixed"
        return "breaks earlier" if self.new_turn < self.base_turn else "breaks later"


@dataclass(frozen=True, slots=True)
class ConversationChanges:
    """The conversations in which both runs have a check: how many, how many pass in each, and those
    that changed, broken ones first. Descriptive: nothing is tested."""

    compared: int
    base_passed: int
    new_passed: int
    changed: tuple[ChangedConversation, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        rows = [asdict(change) | {"kind": change.kind} for change in self.changed]
        return asdict(self) | {"changed": rows}


_ORDER = ("broke", "breaks earlier", "breaks later", "fixed")


def changed_conversations(base: Path, new: Path, eval_set: Path) -> ConversationChanges | None:
    """Hold the conversations of two scored runs against each other, by ``pipeline.pass``.

    A turn passes when it does in every repeat. None for a set without conversations or without
    checks, and where the pipeline of a run was not scored. Memory: a number for each turn.
    """
    if not eval_set.exists() or not has_turns(eval_set):
        return None
    if not all(scores_file(folder, SECTION).exists() for folder in (base, new)):
        return None
    places: dict[str, Place] = {
        case.id: (case.conversation, case.turn)
        for case in iter_cases(eval_set, ignore)
        if case.conversation is not None and case.turn is not None
    }
    ids = {place: case_id for case_id, place in places.items()}
    old, now = (_first_broken(folder, places) for folder in (base, new))
    changed = []
    shared = [name for name in old if name in now]
    if not shared:
        return None
    for name in shared:
        before, after = old[name], now[name]
        if before != after:
            turn = before if after is None else after
            assert turn is not None
            changed.append(ChangedConversation(name, ids[name, turn], before, after))
    changed.sort(key=lambda change: _ORDER.index(change.kind))
    return ConversationChanges(
        len(shared),
        sum(old[name] is None for name in shared),
        sum(now[name] is None for name in shared),
        tuple(changed),
    )


def _first_broken(folder: Path, places: Mapping[str, Place]) -> dict[str, int | None]:
    """The first turn without a pass of each conversation that has a check, in order."""
    first: dict[str, int | None] = {}
    for (conversation, turn), passed in _passes(folder, places):
        known = first.setdefault(conversation, None)
        if not passed and (known is None or turn < known):
            first[conversation] = turn
    return first


def _passes(folder: Path, places: Mapping[str, Place]) -> Iterator[tuple[Place, bool]]:
    for _, _, line in read_scores(folder, SECTION, SCORES_OF_CASE):
        score = line.scores.get(METRIC)
        if line.case_id in places and score is not None:
            yield places[line.case_id], score == 1.0


_MOST = 10
"""Changed conversations that are listed; JSON has all of them."""


def conversation_lines(changes: ConversationChanges) -> list[str]:
    """The changes for a person, a line each after one that counts them."""
    total = changes.compared
    lines = [
        f"Conversations in which every turn passes: {changes.base_passed} of {total} → "
        f"{changes.new_passed} of {total}."
    ]
    for change in changes.changed[:_MOST]:
        before, after = (
            "passed" if turn is None else f"broke at turn {turn}"
            for turn in (change.base_turn, change.new_turn)
        )
        lines.append(f"  {change.kind}: {change.conversation} ({before} → {after})")
    left = len(changes.changed) - _MOST
    return [*lines, f"  and {left} more that changed"] if left > 0 else lines

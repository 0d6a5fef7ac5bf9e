"""Which conversations broke or were fixed between two runs, and at which turn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from records.labels import has_turns, read_cases
from records.runs import scores_file
from records.scores import SCORES_AND_STATUS, read_scores

SHOWN = 10
"""Conversations that are named, each way."""


@dataclass(frozen=True, slots=True)
class ConversationChange:
    """A conversation whose first turn that does not pass is another one: ``base_turn`` and
    ``new_turn``, None where every turn passes. ``case_id`` and ``question`` are those of the turn
    that broke, or that broke before it was fixed."""

    conversation: str
    repeat: int
    turns: int
    base_turn: int | None
    new_turn: int | None
    case_id: str
    question: str

    def says(self) -> str:
        """The change in words: ``all 4 turns passed, now it breaks at turn 2``."""
        if self.base_turn is None:
            return f"all {self.turns} turns passed, now it breaks at turn {self.new_turn}"
        if self.new_turn is None:
            return f"broke at turn {self.base_turn}, now all {self.turns} turns pass"
        return f"broke at turn {self.base_turn}, now at turn {self.new_turn}"


@dataclass(frozen=True, slots=True)
class ConversationChanges:
    """The conversations that both runs scored: how many, and those that changed, worst first.

    ``broke``: they break at an earlier turn than before, or broke at all. ``fixed``: the other way.
    """

    compared: int
    broke: tuple[ConversationChange, ...]
    fixed: tuple[ConversationChange, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    def summary(self) -> str:
        """One sentence on all of them."""
        return (
            f"Of {self.compared:,} conversations {len(self.broke):,} broke (or broke at an earlier "
            f"turn), {len(self.fixed):,} were fixed (or broke later)."
        )


def find_changes(base: Path, new: Path, eval_set: Path) -> ConversationChanges | None:
    """The conversations whose first turn without ``pass`` changed; of repeats each by itself.

    A failed call counts as a turn that does not pass; a turn without ``pass`` labels is passed
    over. None for a set without conversations, or without ``pass`` labels in them, and where a run
    has no scores of the pipeline. Conversations of which a run lacks a turn are left out.
    """
    files = [scores_file(folder, "pipeline") for folder in (base, new)]
    if not (eval_set.exists() and all(file.exists() for file in files) and has_turns(eval_set)):
        return None
    talks: dict[str, list[tuple[str, int, str]]] = {}
    for case in read_cases(eval_set, None):
        if case.conversation is not None and case.turn is not None:
            turns = talks.setdefault(case.conversation, [])
            turns.append((case.id, case.turn, case.question))
    if not talks:
        return None
    ids = {case_id for turns in talks.values() for case_id, _, _ in turns}
    before, after = (_passes(folder, ids) for folder in (base, new))
    repeats = sorted({repeat for _, repeat in before} & {repeat for _, repeat in after})
    compared = 0
    changes: list[ConversationChange] = []
    for name, turns in talks.items():
        for repeat in repeats:
            keys = [(case_id, repeat) for case_id, _, _ in turns]
            if not all(key in before and key in after for key in keys):
                continue
            if all(passes[key] is None for passes in (before, after) for key in keys):
                continue
            compared += 1
            broken = [
                next((place for place, key in enumerate(keys) if passes[key] == 0.0), None)
                for passes in (before, after)
            ]
            if broken[0] == broken[1]:
                continue
            old, now = (None if place is None else turns[place][1] for place in broken)
            place = min(place for place in broken if place is not None)
            case_id, _, question = turns[place]
            changes.append(
                ConversationChange(name, repeat, len(turns), old, now, case_id, question)
            )
    if not compared:
        return None
    worse = [c for c in changes if _turn(c.new_turn) < _turn(c.base_turn)]
    better = [c for c in changes if _turn(c.new_turn) > _turn(c.base_turn)]
    return ConversationChanges(
        compared,
        tuple(sorted(worse, key=lambda change: _turn(change.new_turn))),
        tuple(sorted(better, key=lambda change: _turn(change.base_turn))),
    )


def _turn(turn: int | None) -> float:
    """A turn to be compared; that none broke is later than any."""
    return float("inf") if turn is None else turn


def _passes(folder: Path, ids: set[str]) -> dict[tuple[str, int], float | None]:
    """``pass`` of the cases named, by id and repeat; 0 for a failed call."""
    fields = (*SCORES_AND_STATUS, "repeat")
    passes: dict[tuple[str, int], float | None] = {}
    for _, _, line in read_scores(folder, "pipeline", fields):
        if line.case_id in ids:
            failed = line.status == "failed"
            passes[line.case_id, line.repeat] = 0.0 if failed else line.scores.get("pass")
    return passes

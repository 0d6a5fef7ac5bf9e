"""The cases in which one metric changed most.

A metric rises or falls; whether a case broke is for ``case_changes`` to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from decisions.change import Change
from decisions.compare import read_pairs
from ragmetrics.stats.arrays import np
from records.run import Runs


class AnswerText(Protocol):
    """One run's answer to a case: ``error`` is empty for calls that did not fail, ``ranks`` has the
    rank of each gold support, None where it was not found."""

    @property
    def question(self) -> str: ...
    @property
    def answer(self) -> str | None: ...
    @property
    def error(self) -> str: ...
    @property
    def ranks(self) -> tuple[int | None, ...] | None: ...


Answers = Mapping[str, AnswerText]
"""The answers of one run by case id."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A case whose score changed, with both scores."""

    case_id: str
    base: float
    new: float

    def to_dict(self, before: Answers, now: Answers) -> dict[str, Any]:
        """As JSON data, with the answers of both runs."""
        cases = before.get(self.case_id), now.get(self.case_id)
        question = next((case.question for case in cases if case is not None), "")
        sides = {
            name: {
                "score": score,
                "answer": case and case.answer,
                "error": (case and case.error) or None,
                "ranks": case and case.ranks,
            }
            for name, score, case in zip(("base", "new"), (self.base, self.new), cases, strict=True)
        }
        return {"case_id": self.case_id, "question": question, **sides}


@dataclass(frozen=True, slots=True)
class Flips:
    """The cases that one metric changed most for: how many fell and rose, and those that changed
    most each way, first."""

    metric: str
    fell_behind: int = 0
    gained: int = 0
    worse: tuple[Flip, ...] = ()
    better: tuple[Flip, ...] = ()

    @property
    def case_ids(self) -> list[str]:
        """The ids of the cases, those that fell first."""
        return [flip.case_id for flip in (*self.worse, *self.better)]

    def to_dict(self, before: Answers, now: Answers) -> dict[str, Any]:
        """As JSON data, with the answers of both runs."""
        return {
            "metric": self.metric,
            "fell_behind": self.fell_behind,
            "gained": self.gained,
            "worse": [flip.to_dict(before, now) for flip in self.worse],
            "better": [flip.to_dict(before, now) for flip in self.better],
        }


def find_flips(
    base: Path,
    new: Path,
    row: Change,
    count: int,
    eval_set: Path | None = None,
    tables: Runs | None = None,
) -> Flips:
    """The ``count`` largest changes of a metric for the worse and for the better.

    Larger ones come first, then in the order of the set. ``tables``: what was read of the runs.
    """
    pairs = read_pairs(base, new, row.section, eval_set, tables or Runs())
    old, now = pairs.pair(row.metric)
    if old is None or now is None:
        return Flips(row.name)
    sign = -1.0 if row.higher_is_better is False else 1.0
    change = np.nan_to_num(sign * (now - old))

    def most(direction: int) -> list[int]:
        order = np.lexsort((np.arange(len(change)), -direction * change))
        return [int(i) for i in order[:count] if direction * change[i] > 0]

    worse, better = most(-1), most(1)
    ids = pairs.case_ids(worse + better)

    def flips(places: list[int]) -> tuple[Flip, ...]:
        return tuple(Flip(ids[at], float(old[at]), float(now[at])) for at in places)

    return Flips(
        row.name,
        fell_behind=int((change < 0).sum()),
        gained=int((change > 0).sum()),
        worse=flips(worse),
        better=flips(better),
    )


def interest(row: Change) -> tuple[int, float]:
    """Sorts metrics that got worse first, then by how sure that is."""
    order = {"worse": 0, "mixed": 1, "better": 3}
    rank = 2 if row.look else order.get(row.verdict, 4)
    p = row.p_worse if row.p_worse is not None else row.p
    return rank, 1.0 if p is None else p

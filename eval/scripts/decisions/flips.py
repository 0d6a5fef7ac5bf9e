"""The cases in which one metric changed most, with ranks and answers side by side.

A metric rises or falls; whether a case broke is for ``case_changes`` to say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from decisions.change import Change
from decisions.compare import read_pairs
from ragmetrics.stats.arrays import np
from records.run import Run, Runs

Ranks = tuple[int | None, ...]
"""The rank of each gold support, None where it was not found."""


class AnsweredCase(Protocol):
    """One run's answer to a case: ``error`` is empty for calls that did not fail."""

    @property
    def question(self) -> str: ...
    @property
    def answer(self) -> str | None: ...
    @property
    def error(self) -> str: ...
    @property
    def ranks(self) -> Ranks | None: ...


AnswersOf = Callable[[Run, Collection[str]], Mapping[str, AnsweredCase]]
"""Reads the first answer to some cases of a run."""


@dataclass(frozen=True, slots=True)
class FlipSide:
    """One run's part of a case: its score, its answer (or the error), the ranks of the gold."""

    score: float
    answer: str | None = None
    error: str | None = None
    ranks: Ranks | None = None


@dataclass(frozen=True, slots=True)
class Flip:
    """A case whose score changed."""

    case_id: str
    question: str
    base: FlipSide
    new: FlipSide


@dataclass(frozen=True, slots=True)
class Flips:
    """The cases that one metric changed most for: how many fell and rose, and those that changed
    most each way, first."""

    metric: str
    fell_behind: int = 0
    gained: int = 0
    worse: tuple[Flip, ...] = ()
    better: tuple[Flip, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def find_flips(
    base: Path,
    new: Path,
    row: Change,
    count: int,
    eval_set: Path | None = None,
    *,
    answers: AnswersOf | None = None,
    tables: Runs | None = None,
) -> Flips:
    """The ``count`` largest changes of a metric for the worse and for the better.

    Larger ones come first, then in the order of the set. ``answers`` reads cases of a run; without
    it they have scores alone: no question, answer or rank. ``tables``: what was read of the runs.
    """
    tables = tables or Runs()
    pairs = read_pairs(base, new, row.section, eval_set, tables)
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
    chosen = {ids[index] for index in worse + better}
    before, after = (answers(tables[run], chosen) if answers else {} for run in (base, new))

    def flip(index: int) -> Flip:
        cases = [cases.get(ids[index]) for cases in (before, after)]
        question = next((case.question for case in cases if case is not None), "")
        sides = (
            FlipSide(score, case.answer, case.error or None, case.ranks)
            if case
            else FlipSide(score)
            for case, score in zip(cases, (float(old[index]), float(now[index])), strict=True)
        )
        return Flip(ids[index], question, *sides)

    return Flips(
        row.name,
        fell_behind=int((change < 0).sum()),
        gained=int((change > 0).sum()),
        worse=tuple(map(flip, worse)),
        better=tuple(map(flip, better)),
    )

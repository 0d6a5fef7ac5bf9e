"""The cases in which one metric changed most, with ranks and answers side by side.

A metric rises or falls; whether a case broke is for ``case_changes`` to say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from decisions.compare import read_pairs
from decisions.rows import MetricRow
from records.results import ErrorInfo
from records.run_table import RunTable, RunTables
from records.runs import scores_file

Ranks = tuple[int | None, ...]
"""The rank of each gold support, None where it was not found."""


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
    row: MetricRow,
    count: int,
    eval_set: Path | None = None,
    *,
    texts: bool = True,
    tables: RunTables | None = None,
) -> Flips:
    """The ``count`` largest changes of a metric for the worse and for the better.

    Larger ones come first, then in the order of the set. Without ``texts`` they have scores alone:
    no question, answer or rank. ``tables``: what was read of the runs.
    """
    import numpy as np

    tables = tables or RunTables()
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
    details = _Details([_side_of(tables[run], chosen) for run in (base, new) if texts])
    flips = {
        index: details.flip(ids[index], float(old[index]), float(now[index]))
        for index in worse + better
    }
    return Flips(
        row.name,
        fell_behind=int((change < 0).sum()),
        gained=int((change > 0).sum()),
        worse=tuple(flips[index] for index in worse),
        better=tuple(flips[index] for index in better),
    )


class _FlipAnswer(msgspec.Struct, gc=False):
    test_case_id: str
    question: str = ""
    status: str = "ok"
    error: ErrorInfo | None = None
    answer: str | None = None


_Side = tuple[dict[str, _FlipAnswer], dict[str, Any]]
"""A run's answers and score lines of retrieval, by case."""


@dataclass
class _Details:
    sides: list[_Side]

    def flip(self, case_id: str, old: float, now: float) -> Flip:
        found = (answers[case_id] for answers, _ in self.sides if case_id in answers)
        asked = next(found, None)
        return Flip(
            case_id,
            asked.question if asked else "",
            self._side(0, case_id, old),
            self._side(1, case_id, now),
        )

    def _side(self, run: int, case_id: str, score: float) -> FlipSide:
        answers, ranks = self.sides[run] if self.sides else ({}, {})
        answer, ranked = answers.get(case_id), ranks.get(case_id)
        gold_ranks = ranked.evidence.found if ranked and ranked.evidence else None
        error = answer.error if answer else None
        return FlipSide(
            score,
            answer.answer if answer else None,
            f"{error.kind}: {error.message}" if error else None,
            None if gold_ranks is None else tuple(gold_ranks),
        )


def _side_of(table: RunTable, case_ids: set[str]) -> _Side:
    """Answers and ranks of some cases; of repeats the first."""
    ranks: dict[str, Any] = {}
    if scores_file(table.folder, "retrieval").exists():
        lines = table.section("retrieval").lines_of(case_ids, ("evidence.found",))
        ranks = {case_id: own[0] for case_id, own in lines.items()}
    return table.results_of(case_ids, _FlipAnswer), ranks

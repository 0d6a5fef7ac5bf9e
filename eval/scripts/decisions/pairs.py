"""The scores of two runs side by side: a number a case and metric, read as a stream.

Score lines are those of ``scores/<section>.jsonl``. Repeats of a case are averaged first, so that a
case counts once however often it was asked. Memory: 8 bytes a case, metric and run, for one
section at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from math import nan
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from records.errors import Problem, StorageError
from records.runs import scores_file
from records.scores import (
    SCORES_OF_CASE,
    PipelineEvidence,
    RetrievalEvidence,
    ScoreLine,
    read_scores,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


SHOWN_IDS = 3

MEASURED = ("latency_ms", "cost_usd", "total_tokens")
"""What section ``pipeline`` measured beside its scores: total time, cost, tokens of a case. Less is
better."""


@dataclass
class Pairs:
    """One section of two runs, in the order of base's lines; not a number where unscored.

    ``places``: the row of each case of base; cases of new alone come behind them. ``gold_changed``:
    ids of cases whose gold supports are not the same in both runs (section ``retrieval``).
    """

    section: str
    places: dict[str, int] = field(default_factory=dict)
    base: dict[str, Floats] = field(default_factory=dict)
    new: dict[str, Floats] = field(default_factory=dict)
    base_cases: int = 0
    new_cases: int = 0
    both: int = 0
    gold_changed: list[str] = field(default_factory=list)


def read_pairs(base: Path, new: Path, section: str) -> Pairs:
    """Read a section of two run folders. Raises StorageError for a line that is no score line, and
    for a case whose lines do not stand together."""
    pairs = Pairs(section)
    gold: list[tuple[str | None, int]] = []
    places = pairs.places
    pairs.base, pairs.base_cases = _read(base, section, places, gold, None)
    pairs.new, pairs.new_cases = _read(new, section, places, gold, pairs)
    pairs.both = pairs.base_cases + pairs.new_cases - len(places)
    return pairs


def _read(
    folder: Path,
    section: str,
    places: dict[str, int],
    gold: list[tuple[str | None, int]],
    pairs: Pairs | None,
) -> tuple[dict[str, Floats], int]:
    """The columns of one run, at the rows that ``places`` says; unknown cases get a new row."""
    import numpy as np

    columns: dict[str, array[float]] = {}
    blank = array("d", [nan])
    known = len(places)
    seen = bytearray(known)
    cases = 0
    for number, lines in _cases(folder, section):
        case_id = lines[0].case_id
        place = places.setdefault(case_id, len(places))
        if place == len(seen):
            seen.append(0)
        if seen[place]:
            message = f"the lines of case {case_id!r} do not stand together; score the run again"
            raise StorageError.from_problems(
                [Problem(str(scores_file(folder, section)), number, "case_id", message)]
            )
        seen[place] = 1
        cases += 1
        scores = lines[0].scores if len(lines) == 1 else _average(lines)
        for name, value in scores.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = array("d")
            if value is not None:
                if not column:
                    column.extend(blank * known)
                if place >= len(column):
                    column.extend(blank * (place + 1 - len(column)))
                column[place] = value
        if section == "retrieval":
            _note_gold(lines[0], place, gold, pairs)
    unscored = np.full(len(places), nan)
    for column in columns.values():
        if column:
            column.extend(blank * (len(places) - len(column)))
    return {
        name: np.frombuffer(column) if column else unscored for name, column in columns.items()
    }, cases


FIELDS: Mapping[str, tuple[str, ...]] = {
    "retrieval": (*SCORES_OF_CASE, "evidence.match", "evidence.found"),
    "pipeline": (
        *SCORES_OF_CASE,
        "evidence.latency_ms",
        "evidence.usage",
        "evidence.cost_usd",
    ),
}


def _cases(folder: Path, section: str) -> Iterator[tuple[int, list[ScoreLine]]]:
    """The lines of each case with the number of the first one."""

    def lines() -> Iterator[tuple[int, ScoreLine]]:
        fields = FIELDS.get(section, SCORES_OF_CASE)
        for number, _, line in read_scores(folder, section, fields):
            if section == "pipeline" and line.evidence is not None:
                line.scores |= _measured(line.evidence)
            yield number, line

    case_of = attrgetter("case_id")
    for _, group in groupby(lines(), key=lambda pair: case_of(pair[1])):
        numbered = list(group)
        yield numbered[0][0], [line for _, line in numbered]


def _measured(evidence: PipelineEvidence) -> dict[str, float | None]:
    """Total time, cost and tokens of a case, where the bot tells them."""
    tokens = evidence.usage.get("total_tokens")
    parts = (
        evidence.latency_ms.get("total"),
        evidence.cost_usd,
        float(tokens) if isinstance(tokens, int | float) else None,
    )
    return {n: v for n, v in zip(MEASURED, parts, strict=True) if v is not None}


def _average(lines: list[ScoreLine]) -> dict[str, float | None]:
    """The mean of the scored repeats, metric by metric; None without one."""
    names = dict.fromkeys(name for line in lines for name in line.scores)
    means: dict[str, float | None] = {}
    for name in names:
        values = [v for line in lines if (v := line.scores.get(name)) is not None]
        means[name] = sum(values) / len(values) if values else None
    return means


@lru_cache
def _mark(match: str | None, found: int) -> tuple[str | None, int]:
    """What tells of a case's gold: one object for all cases alike, which there are few kinds of."""
    return match, found


def _note_gold(
    line: ScoreLine, place: int, gold: list[tuple[str | None, int]], pairs: Pairs | None
) -> None:
    """Keep what base's line says of the gold, or hold new's line against it."""
    evidence = line.evidence or RetrievalEvidence()
    mark = _mark(evidence.match, -1 if evidence.found is None else len(evidence.found))
    if pairs is None:
        gold.append(mark)
    elif place < len(gold) and mark[1] >= 0 and gold[place][1] >= 0 and gold[place] != mark:
        pairs.gold_changed.append(line.case_id)

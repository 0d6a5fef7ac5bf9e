"""The scores of two runs side by side: a number a case and metric, read as a stream.

Score lines are those of ``scores/<section>.jsonl``. Repeats of a case are averaged first, so that a
case counts once however often it was asked. Memory: 8 bytes a case, metric and run, for one
section at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from math import nan
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from records import jsonl
from records.errors import Problem, StorageError
from records.runs import scores_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


SHOWN_IDS = 3

MEASURED = ("latency_ms", "cost_usd", "total_tokens")
"""What section ``pipeline`` measured beside its scores: total time, cost, tokens of a case. Less is
better."""


class _Evidence(msgspec.Struct, gc=False):
    """What a line of section ``retrieval`` says of its gold; other sections say other things."""

    match: str | None = None
    found: Any = None


class _Measured(msgspec.Struct, gc=False):
    """What a line of section ``pipeline`` measured."""

    latency_ms: dict[str, float] = {}
    usage: dict[str, Any] = {}
    cost_usd: float | None = None


class _Line(msgspec.Struct, gc=False):
    case_id: str
    scores: dict[str, float | None]


class _GoldLine(msgspec.Struct, gc=False):
    case_id: str
    scores: dict[str, float | None]
    evidence: _Evidence | None = None


class _PipelineLine(msgspec.Struct, gc=False):
    case_id: str
    scores: dict[str, float | None]
    evidence: _Measured | None = None


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
    pairs.base, pairs.base_cases = _read(scores_file(base, section), section, places, gold, None)
    pairs.new, pairs.new_cases = _read(scores_file(new, section), section, places, gold, pairs)
    pairs.both = pairs.base_cases + pairs.new_cases - len(places)
    return pairs


def _read(
    path: Path,
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
    for number, lines in _cases(path, section):
        case_id = lines[0].case_id
        place = places.setdefault(case_id, len(places))
        if place == len(seen):
            seen.append(0)
        if seen[place]:
            message = f"the lines of case {case_id!r} do not stand together; score the run again"
            raise StorageError.from_problems([Problem(str(path), number, "case_id", message)])
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
        if isinstance(lines[0], _GoldLine):
            _note_gold(lines[0], place, gold, pairs)
    unscored = np.full(len(places), nan)
    for column in columns.values():
        if column:
            column.extend(blank * (len(places) - len(column)))
    return {
        name: np.frombuffer(column) if column else unscored for name, column in columns.items()
    }, cases


def _cases(path: Path, section: str) -> Iterator[tuple[int, list[Any]]]:
    """The lines of each case with the number of the first one."""
    kinds: dict[str, Any] = {"retrieval": _GoldLine, "pipeline": _PipelineLine}

    def lines() -> Iterator[tuple[int, Any]]:
        for number, _, record in jsonl.read(path, kinds.get(section, _Line)):
            if isinstance(record, _PipelineLine) and record.evidence is not None:
                record.scores |= _measured(record.evidence)
            yield number, record

    case_of = attrgetter("case_id")
    for _, group in groupby(lines(), key=lambda pair: case_of(pair[1])):
        numbered = list(group)
        yield numbered[0][0], [line for _, line in numbered]


def _measured(found: _Measured) -> dict[str, float | None]:
    """Total time, cost and tokens of a case, where the bot tells them."""
    tokens = found.usage.get("total_tokens")
    parts = (
        found.latency_ms.get("total"),
        found.cost_usd,
        float(tokens) if isinstance(tokens, int | float) else None,
    )
    return {n: v for n, v in zip(MEASURED, parts, strict=True) if v is not None}


def _average(lines: list[Any]) -> dict[str, float | None]:
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
    line: _GoldLine, place: int, gold: list[tuple[str | None, int]], pairs: Pairs | None
) -> None:
    """Keep what base's line says of the gold, or hold new's line against it."""
    evidence = line.evidence or _Evidence()
    mark = _mark(evidence.match, len(evidence.found) if isinstance(evidence.found, list) else -1)
    if pairs is None:
        gold.append(mark)
    elif place < len(gold) and mark[1] >= 0 and gold[place][1] >= 0 and gold[place] != mark:
        pairs.gold_changed.append(line.case_id)


Rank = Annotated[int, msgspec.Meta(ge=1)]

Scores = dict[str, float | None]


class _Retrieval(msgspec.Struct):
    match: str = ""
    found: list[Rank | None] = []
    hits: list[Rank] | msgspec.UnsetType = msgspec.UNSET


class _Claim(msgspec.Struct):
    text: str
    supported: bool | None = None
    score: float | None = None
    missing: list[str] = []
    vetoed_by: list[str | float] = []


class _Numbers(msgspec.Struct):
    fabricated: list[str | float] = []


class _Groundedness(msgspec.Struct):
    claims: list[_Claim] = []
    numbers: _Numbers = msgspec.field(default_factory=_Numbers)
    expected_claims_missing: list[str] = []


class _Over(msgspec.Struct):
    ms: float
    budget_ms: float


class _Pipeline(msgspec.Struct):
    expected: str | None = None
    outcome: str | None = None
    why: str | None = None
    missing_flags: list[str] = []
    forbidden_flags: list[str] = []
    over_budget: dict[str, _Over] = {}


class _Abstention(msgspec.Struct):
    cell: str = ""


class _Prompt(msgspec.Struct):
    kind: str | None = None
    category: str | None = None
    score: float | None = None
    text: str | None = None


class Line(msgspec.Struct, omit_defaults=True):
    """A score line; ``evidence`` is of its section's type."""

    case_id: str
    repeat: int
    status: str
    scores: Scores
    reasons: dict[str, str] = {}
    evidence: Any = None


_KINDS = {
    "retrieval": _Retrieval,
    "groundedness": _Groundedness,
    "pipeline": _Pipeline,
    "abstention": _Abstention,
    "safety": _Prompt,
}

_LINES: dict[str, Any] = {
    section: msgspec.defstruct(
        f"_{section.title()}Line", [("evidence", kind | None, None)], bases=(Line,)
    )
    for section, kind in _KINDS.items()
}


def line_type(section: str) -> type[Line]:
    """The type of a section's score lines."""
    kind: type[Line] = _LINES.get(section, Line)
    return kind

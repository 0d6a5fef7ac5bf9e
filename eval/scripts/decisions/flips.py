"""The cases that changed most: what broke, what was fixed, with ranks and answers side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from decisions.compare import is_binary, read_pairs
from decisions.engine import direction
from decisions.rows import MetricRow
from ragmetrics import catalogue
from records import jsonl
from records.results import ErrorInfo
from records.runs import results_file, scores_file
from records.scores import ScoreLine, read_scores
from records.targets import Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    """A case whose score changed. ``kind``: broke (success to failure), fixed, or neither."""

    case_id: str
    question: str
    base: FlipSide
    new: FlipSide
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Flips:
    """The cases that one metric changed most for.

    ``success``: when a case counts as one, in words; None where the metric has no such bound, and
    then nothing broke or was fixed. ``worse``, ``better``: the worst and best changes first.
    """

    metric: str
    success: str | None
    broke: int = 0
    fixed: int = 0
    fell_behind: int = 0
    gained: int = 0
    worse: tuple[Flip, ...] = ()
    better: tuple[Flip, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def _success_rule(
    name: str, target: Target | None
) -> tuple[str | None, Callable[[float], bool] | None]:
    """When a single case counts as a success: in words, and as a function.

    ``name``: ``section.metric``. It keeps the metric's target; without one, a binary metric scores
    its good end, another one lies in the better half of its range. Numbers without bounds have no
    rule.
    """
    better = direction(name) is not False
    metric = name.partition(".")[2]
    if target is not None:
        return str(target), lambda value: bool(target.passed(value))
    if is_binary(metric):
        good = 1.0 if better else 0.0
        return f"= {good:g}", lambda value: value == good
    try:
        row = catalogue.find(metric)
    except KeyError:
        return None, None
    if row.low is None or row.high is None:
        return None, None
    middle = (row.low + row.high) / 2
    if better:
        return f">= {middle:g}", lambda value: value >= middle
    return f"<= {middle:g}", lambda value: value <= middle


def find_flips(
    base: Path,
    new: Path,
    row: MetricRow,
    count: int,
    target: Target | None = None,
    eval_set: Path | None = None,
    *,
    texts: bool = True,
) -> Flips:
    """The ``count`` largest changes of a metric for the worse and for the better.

    Changes that flip success come first, then larger ones, then in the order of the set. Without
    ``texts`` they have scores alone: no question, answer or rank. Memory: one section of scores and
    ``count`` cases.
    """
    import numpy as np

    pairs = read_pairs(base, new, row.section, row.metric, eval_set)
    old, now = pairs.pair(row.metric)
    if old is None or now is None:
        return Flips(row.name, None)
    sign = -1.0 if row.higher_is_better is False else 1.0
    change = np.nan_to_num(sign * (now - old))
    words, passes = _success_rule(row.name, target)
    kinds = np.zeros(len(change))
    if passes is not None:
        both = ~(np.isnan(old) | np.isnan(now))
        before, after = (_passing(side, passes) for side in (old, now))
        kinds[both & before & ~after] = -1
        kinds[both & ~before & after] = 1

    def most(direction: int) -> list[int]:
        order = np.lexsort((np.arange(len(change)), -direction * change, -direction * kinds))
        return [int(i) for i in order[:count] if direction * change[i] > 0]

    worse, better = most(-1), most(1)
    ids = pairs.case_ids(worse + better)
    chosen = {ids[index] for index in worse + better}
    details = _details(base, new, chosen) if texts else _Details(({}, {}))
    flips = {
        index: details.flip(ids[index], float(old[index]), float(now[index]), kinds[index])
        for index in worse + better
    }
    return Flips(
        row.name,
        words,
        broke=int((kinds < 0).sum()),
        fixed=int((kinds > 0).sum()),
        fell_behind=int((change < 0).sum()),
        gained=int((change > 0).sum()),
        worse=tuple(flips[index] for index in worse),
        better=tuple(flips[index] for index in better),
    )


_PART = 1 << 14
"""Cases that are looked at together."""


def _passing(values: NDArray[np.float64], passes: Callable[[float], bool]) -> NDArray[np.bool_]:
    """Which values pass; few are distinct, and those are asked about once."""
    import numpy as np

    passed = np.zeros(len(values), bool)
    for start in range(0, len(values), _PART):
        levels, level_of_case = np.unique(values[start : start + _PART], return_inverse=True)
        of_level = np.array([passes(value) for value in levels], bool)
        passed[start : start + _PART] = of_level[level_of_case]
    return passed


class _FlipAnswer(msgspec.Struct, gc=False):
    test_case_id: str
    question: str = ""
    status: str = "ok"
    error: ErrorInfo | None = None
    answer: str | None = None


@dataclass
class _Details:
    answers: tuple[dict[str, _FlipAnswer], dict[str, _FlipAnswer]]
    ranks: tuple[dict[str, ScoreLine], dict[str, ScoreLine]] = field(default=({}, {}))

    def flip(self, case_id: str, old: float, now: float, kind: float) -> Flip:
        asked = self.answers[0].get(case_id) or self.answers[1].get(case_id)
        return Flip(
            case_id,
            asked.question if asked else "",
            self._side(0, case_id, old),
            self._side(1, case_id, now),
            {-1: "broke", 0: "", 1: "fixed"}[int(kind)],
        )

    def _side(self, run: int, case_id: str, score: float) -> FlipSide:
        answer = self.answers[run].get(case_id)
        ranked = self.ranks[run].get(case_id)
        gold_ranks = ranked.evidence.found if ranked and ranked.evidence else None
        error = answer.error if answer else None
        return FlipSide(
            score,
            answer.answer if answer else None,
            f"{error.kind}: {error.message}" if error else None,
            None if gold_ranks is None else tuple(gold_ranks),
        )


def _details(base: Path, new: Path, case_ids: set[str]) -> _Details:
    """Answers and ranks of the wanted cases; of repeats the first."""
    return _Details(
        (_answers(base, case_ids), _answers(new, case_ids)),
        (_ranks(base, case_ids), _ranks(new, case_ids)),
    )


def _answers(folder: Path, case_ids: set[str]) -> dict[str, _FlipAnswer]:
    path = results_file(folder)
    answers: dict[str, _FlipAnswer] = {}
    if path.exists():
        for _, _, line in jsonl.read(path, _FlipAnswer, "result line", "make the run again"):
            if line.test_case_id in case_ids:
                answers.setdefault(line.test_case_id, line)
    return answers


def _ranks(folder: Path, case_ids: set[str]) -> dict[str, ScoreLine]:
    fields = ("case_id", "evidence.found")
    ranked: dict[str, ScoreLine] = {}
    if scores_file(folder, "retrieval").exists():
        for _, _, line in read_scores(folder, "retrieval", fields):
            if line.case_id in case_ids:
                ranked.setdefault(line.case_id, line)
    return ranked

"""The scores of a run, a column a metric, and the rows of two runs side by side.

Repeats of a case are averaged first, so that a
case counts once however often it was asked. Cases are told apart by 64-bit hashes of their ids, and
long columns lie on disk: memory is 8 bytes a case, and as much for each column that is looked at.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import nan
from operator import attrgetter
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

from decisions.effects import compact
from decisions.engine import MEASURED
from records.clusters import NONE, Clustering
from records.errors import Problem, StorageError
from records.runs import scores_file
from records.scores import (
    SCORES_AND_STATUS,
    PipelineEvidence,
    RetrievalEvidence,
    ScoreLine,
    read_scores,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


ANSWERED, PASS = "answered", "pass"

FAILED_IS_ZERO = (ANSWERED, PASS)
"""Metrics of section ``pipeline`` in which a call that failed, or has no result, counts as 0."""

_BLOCK = 4096
"""Cases of a block: within it the values of a metric stand together."""

_IN_MEMORY = 8 << 20
"""Bytes of a section from which on its columns are kept on disk."""

_EVIDENCE: Mapping[str, tuple[str, ...]] = {
    "retrieval": ("evidence.match", "evidence.found"),
    "pipeline": ("evidence.latency_ms", "evidence.usage", "evidence.cost_usd"),
}

Scores = Mapping[str, float | None]


class _Columns:
    """Rows in, columns out: blocks of columns, one after another, in a file once they are many."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - lives as long as the columns
        self._blocks: list[tuple[int, int, int]] = []
        self._names: dict[str, int] = {}
        self._rows = array("d")
        self._width = self._count = 0
        self._keys: tuple[str, ...] = ()

    def append(self, scores: Scores) -> None:
        """A row; metrics that no row had before begin here."""
        if tuple(scores) != self._keys or self._width != len(self._names):
            self._widen(scores)
        values = scores.values()
        if len(scores) == self._width and self._keys == tuple(self._names):
            self._rows.extend([nan if value is None else value for value in values])
        else:
            row = [nan] * self._width
            for name, value in scores.items():
                if value is not None:
                    row[self._names[name]] = value
            self._rows.extend(row)
        self._count += 1
        if self._count == _BLOCK:
            self._flush()

    def _widen(self, scores: Scores) -> None:
        self._keys = tuple(scores)
        new = [name for name in scores if name not in self._names]
        if new or self._width != len(self._names):
            self._flush()
            self._names |= {name: len(self._names) + at for at, name in enumerate(new)}
            self._width = len(self._names)

    def _flush(self) -> None:
        import numpy as np

        if self._count:
            block = np.frombuffer(self._rows).reshape(self._count, self._width)
            self._blocks.append((self._file.tell(), self._count, self._width))
            self._file.write(block.T.tobytes())
        self._rows, self._count = array("d"), 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def column(self, name: str) -> Floats:
        """The values of a metric, not a number where a case has none."""
        import numpy as np

        self._flush()
        at, size = self._names[name], sum(rows for _, rows, _ in self._blocks)
        column, start = np.full(size, np.nan), 0
        for offset, rows, width in self._blocks:
            if at < width:
                self._file.seek(offset + 8 * rows * at)
                column[start : start + rows] = np.frombuffer(self._file.read(8 * rows))
            start += rows
        self._file.seek(0, 2)
        return column


@dataclass
class SectionColumns:
    """One section of a run. ``ids``: the hash of each case's id, in the order of its lines.

    ``failed``: cases all of whose calls failed. ``gold``: what the lines say of each case's gold
    (section ``retrieval``), a number for each kind, -1 where they do not say.
    """

    folder: Path
    section: str
    ids: Ints
    failed: Mask
    gold: NDArray[np.int16]
    gold_kinds: Sequence[tuple[str | None, int]]
    columns: _Columns = field(default_factory=_Columns)

    @property
    def cases(self) -> int:
        return len(self.ids)

    @property
    def names(self) -> tuple[str, ...]:
        """Every metric of the lines, in their order."""
        return self.columns.names

    def column(self, name: str) -> Floats:
        """The scores of a metric, not a number where a case has none."""
        return self.columns.column(name)

    def case_ids(self, rows: Collection[int]) -> dict[int, str]:
        """The ids of some rows; the lines are read again."""
        rows_left = set(rows)
        names: dict[int, str] = {}
        lines = (line for _, _, line in read_scores(self.folder, self.section, ("case_id",)))
        for row, (case_id, _) in enumerate(groupby(lines, key=attrgetter("case_id"))):
            if not rows_left:
                break
            if row in rows_left:
                rows_left.discard(row)
                names[row] = case_id
        return names


def read_section(folder: Path, section: str, only: str = "") -> SectionColumns:
    """Read a section of a run folder, all its metrics or ``only`` one. Raises StorageError for a
    line that is no score line, and for a case whose lines do not stand together."""
    import numpy as np

    ids, gold, failed = array("q"), array("h"), bytearray()
    kinds: dict[tuple[str | None, int], int] = {}
    columns = _Columns()
    lines = (line for _, _, line in read_scores(folder, section, fields_of(section)))
    for case_id, group in groupby(lines, key=attrgetter("case_id")):
        repeats = list(group)
        first = repeats[0]
        ids.append(hash(case_id))
        failed.append(all(line.status == "failed" for line in repeats))
        scores = _average([scores_of(section, line) for line in repeats])
        if only:
            scores = {only: scores[only]} if only in scores else {}
        columns.append(scores)
        if section == "retrieval":
            evidence = first.evidence or RetrievalEvidence()
            found = -1 if evidence.found is None else len(evidence.found)
            kind = kinds.setdefault((evidence.match, found), len(kinds))
            gold.append(-1 if found < 0 else kind)
    hashes = np.frombuffer(ids, np.int64) if ids else np.zeros(0, np.int64)
    _check_together(folder, section, hashes)
    return SectionColumns(
        folder,
        section,
        hashes,
        np.frombuffer(failed, bool) if failed else np.zeros(0, bool),
        np.frombuffer(gold, np.int16) if gold else np.zeros(0, np.int16),
        tuple(kinds),
        columns,
    )


def fields_of(section: str) -> tuple[str, ...]:
    """The fields of a score line that its scores are made from, see ``scores_of``."""
    return (*SCORES_AND_STATUS, *_EVIDENCE.get(section, ()))


def scores_of(section: str, line: ScoreLine) -> Scores:
    """A line's scores; in section ``pipeline`` with what was measured of the call, whether there
    was an answer, and 0 for a call that failed where that counts."""
    if section != "pipeline":
        return line.scores
    evidence = line.evidence or PipelineEvidence()
    tokens = evidence.usage.get("total_tokens")
    measured = (
        evidence.latency_ms.get("total"),
        evidence.cost_usd,
        float(tokens) if isinstance(tokens, int | float) else None,
    )
    failed = line.status == "failed"
    scores = dict(line.scores) | {ANSWERED: 0.0 if failed else 1.0}
    if failed:
        scores[PASS] = 0.0
    return scores | dict(zip(MEASURED, measured, strict=True))


def _average(repeats: Sequence[Scores]) -> Scores:
    """The mean of the scored repeats, metric by metric; None without one."""
    if len(repeats) == 1:
        return repeats[0]
    means: dict[str, float | None] = {}
    for name in dict.fromkeys(name for scores in repeats for name in scores):
        values = [v for scores in repeats if (v := scores.get(name)) is not None]
        means[name] = sum(values) / len(values) if values else None
    return means


def _check_together(folder: Path, section: str, hashes: Ints) -> None:
    """Raises StorageError when a case has lines at two places."""
    import numpy as np

    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    seen: set[str] = set()
    numbered = ((number, line) for number, _, line in read_scores(folder, section, ("case_id",)))
    for case_id, group in groupby(numbered, key=lambda pair: pair[1].case_id):
        number = next(group)[0]
        if case_id in seen:
            message = f"the lines of case {case_id!r} do not stand together; score the run again"
            raise StorageError.from_problems(
                [Problem(str(scores_file(folder, section)), number, "case_id", message)]
            )
        seen.add(case_id)


def places_of(ids: Ints, known: Ints) -> Ints:
    """The row of each id among the known ones, -1 for one that is not there."""
    import numpy as np

    if np.array_equal(ids, known):
        return np.arange(len(ids))
    places = np.full(len(ids), -1)
    if not len(known):
        return places
    order = np.argsort(known)
    for start in range(0, len(ids), _BLOCK):
        part = ids[start : start + _BLOCK]
        at = order[np.minimum(np.searchsorted(known, part, sorter=order), len(known) - 1)]
        places[start : start + len(part)] = np.where(known[at] == part, at, -1)
    return places


class ClusterCodes:
    """The cluster of each case as an integer, by the hash of its id."""

    def __init__(self, clustering: Clustering | None) -> None:
        import numpy as np

        self.clustering = clustering
        self._ids, self._codes = np.zeros(0, np.int64), np.zeros(0, np.int32)
        if clustering is not None and clustering.by != NONE:
            labels = clustering.labels
            self._ids = np.asarray(labels.ids, np.int64)
            self._codes = np.asarray(labels.positions, np.int32)
        self._last: tuple[Ints, Ints | None] | None = None

    def of(self, ids: Ints) -> Ints | None:
        """0, 1, …, the same for cases of one cluster; None when each stands by itself."""
        if not len(self._ids):
            return None
        if self._last is None or self._last[0] is not ids:
            self._last = ids, self._worked_out(ids)
        return self._last[1]

    def _worked_out(self, ids: Ints) -> Ints | None:
        import numpy as np

        codes = places_of(ids, self._ids)
        for start in range(0, len(ids), _BLOCK):
            part = codes[start : start + _BLOCK]  # a view: what it takes, codes has
            # a case by itself gets a number behind those of the clusters
            alone = len(self.clustering.labels.names) if self.clustering else 0
            own = alone + start + np.arange(len(part))
            part[:] = np.where(part >= 0, self._codes[part], own)
        return compact(codes)

    def sentence(self, ids: Ints | None) -> str:
        """What was counted together, in words."""
        import numpy as np

        if self.clustering is None or ids is None:
            return ""
        if len(self._ids) and not np.isin(ids, self._ids).any():
            return "each case by itself"
        return self.clustering.sentence

    def largest(self, ids: Ints) -> tuple[str, int]:
        """The label of the largest cluster of some cases, and its size."""
        import numpy as np

        at = places_of(ids, self._ids)
        counts = np.bincount(self._codes[at[at >= 0]])
        most = int(counts.argmax())
        label = self.clustering.labels.names[most] if self.clustering else ""
        return label, int(counts[most])


@dataclass
class SideBySide:
    """A section of two runs: base's cases in their order, then those of new alone.

    ``missing_base``, ``missing_new``: asked cases for which a run has no result.
    """

    base: SectionColumns
    new: SectionColumns
    ids: Ints
    missing_base: Mask
    missing_new: Mask
    _in_base: Mask
    _in_new: Mask
    _new_places: NDArray[np.int32]

    @property
    def both(self) -> int:
        """Cases that both runs have lines of."""
        return int((self._in_base & self._in_new).sum())

    @property
    def only_base(self) -> int:
        """Cases of base that new was not asked, as far as it is known."""
        return int((self._in_base & ~self._in_new & ~self.missing_new).sum())

    @property
    def only_new(self) -> int:
        """Cases of new that base was not asked, as far as it is known."""
        return int((self._in_new & ~self._in_base & ~self.missing_base).sum())

    def case_ids(self, rows: Collection[int]) -> dict[int, str]:
        """The ids of some rows; the lines are read again."""
        import numpy as np

        names = self.base.case_ids([row for row in rows if row < self.base.cases])
        alone = {
            int(line): row
            for row in rows
            if row >= self.base.cases
            for line in np.flatnonzero(self._new_places == row)
        }
        new = self.new.case_ids(list(alone)) if alone else {}
        return names | {alone[line]: case_id for line, case_id in new.items()}

    @property
    def names(self) -> tuple[str, ...]:
        measured = self.base.names + self.new.names
        return tuple(dict.fromkeys(measured))

    def pair(self, name: str) -> tuple[Floats | None, Floats | None]:
        """The scores of a metric in both runs, row by row; None where a run has no such metric."""
        zero = self.base.section == "pipeline" and name in FAILED_IS_ZERO
        return (
            self._side(self.base, name, None, self.missing_base if zero else None),
            self._side(self.new, name, self._new_places, self.missing_new if zero else None),
        )

    def _side(
        self, run: SectionColumns, name: str, places: NDArray[np.int32] | None, zero: Mask | None
    ) -> Floats | None:
        import numpy as np

        if name not in run.names:
            return None
        column = run.column(name)
        if run.ids is self.ids:
            values = column
        else:
            values = np.full(len(self.ids), np.nan)
            values[slice(len(column)) if places is None else places] = column
        if zero is not None:
            values[zero] = 0.0
        return values

    def answered(self) -> Mask:
        """Cases of which both runs have an answer."""
        import numpy as np

        base, new = np.zeros(len(self.ids), bool), np.zeros(len(self.ids), bool)
        base[: self.base.cases] = ~self.base.failed
        new[self._new_places] = ~self.new.failed
        answered: Mask = base & new
        return answered

    def changed_gold(self) -> list[str]:
        """Cases whose gold supports are not the same in both runs."""
        import numpy as np

        kinds = {kind: at for at, kind in enumerate(self.base.gold_kinds)}
        unknown = len(kinds)
        translate = np.array([kinds.get(kind, unknown) for kind in self.new.gold_kinds] or [0])
        rows = self._new_places
        shared = rows < self.base.cases
        old, now = self.base.gold[rows[shared]], self.new.gold[shared]
        changed = rows[shared][(old >= 0) & (now >= 0) & (translate[now] != old)]
        return list(self.base.case_ids(set(changed.tolist())).values()) if len(changed) else []


def side_by_side(
    base: SectionColumns, new: SectionColumns, asked_base: Ints | None, asked_new: Ints | None
) -> SideBySide:
    """Two runs' cases matched.

    ``asked_*``: hashes of the cases that a run was asked, of which those that it has lines of may
    be left out; None: every case of the set.
    """
    import numpy as np

    if np.array_equal(base.ids, new.ids):
        new = replace(new, ids=base.ids)
    places = places_of(new.ids, base.ids).astype(np.int32)
    alone = places < 0
    places[alone] = base.cases + np.arange(int(alone.sum()))
    more = [new.ids[alone], _lost_by_both(base, new, asked_base, asked_new)]
    ids = np.concatenate([base.ids, *more]) if any(map(len, more)) else base.ids
    in_base = np.zeros(len(ids), bool)
    in_base[: base.cases] = True
    in_new = np.zeros(len(ids), bool)
    in_new[places] = True
    return SideBySide(
        base,
        new,
        ids,
        ~in_base & _among(ids, asked_base),
        ~in_new & _among(ids, asked_new),
        in_base,
        in_new,
        places,
    )


def _lost_by_both(
    base: SectionColumns, new: SectionColumns, asked_base: Ints | None, asked_new: Ints | None
) -> Ints:
    """Cases that both runs were asked and neither has, as far as it is known."""
    import numpy as np

    if asked_base is not None and asked_new is not None:
        asked = np.intersect1d(asked_base, asked_new)
    elif asked_base is not None:
        asked = asked_base
    elif asked_new is not None:
        asked = asked_new
    else:
        asked = np.zeros(0, np.int64)
    lost: Ints = asked[~np.isin(asked, base.ids) & ~np.isin(asked, new.ids)]
    return lost


def _among(ids: Ints, asked: Ints | None) -> Mask:
    """Which ids were asked; all of them where the whole set was (None)."""
    import numpy as np

    return np.ones(len(ids), bool) if asked is None else np.isin(ids, asked)

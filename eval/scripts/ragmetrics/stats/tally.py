"""Computes means, intervals and slices from the scores of single cases; pure.

Rows of scores repeat (most metrics have few distinct values), so distinct rows are counted instead
of kept; a case that shares its document with others keeps 20 bytes, and such cases are counted
together, as the number and the sum of their scores. Sums are exact: however the cases are ordered,
split and merged, the bytes are the same. A score is a float, None (not applicable) or FAILED; only
floats enter a mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import fsum
from typing import Any, Final, Literal, NamedTuple

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats import exact
from ragmetrics.stats.arrays import Floats, Ints, NDArray, np
from ragmetrics.stats.counted import (
    MOST_ENTRIES,
    CountedValues,
    SharedCells,
    changes,
    put_together,
)
from ragmetrics.stats.intervals import ALONE, MeanOfGroup, Scale, Units, means_of_units

FAILED: Final = "failed"

Value = float | Literal["failed"] | None

Values = tuple[Value, ...]

Slice = tuple[str, str]
"""A dimension and its value, such as ``("category", "factual")``."""

Slices = tuple[Slice, ...]

Facets = tuple[
    str | None,
    str | None,
    str | None,
    tuple[str, ...],
    tuple[str, ...],
    int | None,
    bool | None,
]


def average(rows: Sequence[Values]) -> Values:
    """Return the mean of a case's scored repeats, metric by metric.

    Without a scored repeat: FAILED when any failed, else None.
    """
    if len(rows) == 1:
        return rows[0]
    merged: list[Value] = []
    for column in zip(*rows, strict=True):
        numbers = [value for value in column if isinstance(value, float)]
        if numbers:
            merged.append(fsum(numbers) / len(numbers))
        else:
            merged.append(FAILED if FAILED in column else None)
    return tuple(merged)


_WHOLE: Slice = ("", "")
"""The slice of all cases."""

_LOST = float("inf")
"""FAILED in a table of scores, where no other value is infinite."""


class Tally:
    """Counts rows of scores, over all cases and by slice. Not for threads."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._tables: list[Floats] = []
        self._counted: list[CountedValues] = []
        self._settled: tuple[CountedValues, SharedCells] | None = None
        self._slices: dict[Slices, int] = {}

    def add(
        self,
        rows: Sequence[Values],
        row_of_case: Sequence[int] | Ints,
        slices: Sequence[Slices] = ((),),
        slices_of_case: Sequence[int] | Ints = (),
        cluster_of_case: Sequence[int] | Ints = (),
    ) -> None:
        """Count cases: the row of scores of each (an index into ``rows``), its slices (an index
        into ``slices``) and the number of its cluster (ALONE for none).

        Raises ValueError for a score that is not finite.
        """
        cases = len(row_of_case)
        if not cases:
            return
        table = np.array([_numbers(row) for row in rows], dtype=float).reshape(
            len(rows), self.width
        )
        if np.isinf(table).sum() != sum(row.count(FAILED) for row in rows):
            raise ValueError("only finite numbers have a mean")
        renumber = np.array([self._number(part) for part in slices], dtype=np.int32)
        counted = CountedValues(
            renumber[np.array(slices_of_case if len(slices_of_case) else [0] * cases)],
            np.array(cluster_of_case if len(cluster_of_case) else [ALONE] * cases, dtype=np.int64),
            np.array(row_of_case, dtype=np.int32) + np.int32(sum(map(len, self._tables))),
            np.ones(cases, dtype=np.int32),
        )
        self._tables.append(table)
        self._counted.append(counted)
        self._settled = None

    def _number(self, slices: Slices) -> int:
        return self._slices.setdefault(slices, len(self._slices))

    def _put_together(self) -> tuple[CountedValues, SharedCells]:
        """Cases that share no cluster, and those that do."""
        if self._settled is None:
            self._settled = put_together(self._counted)
        return self._settled

    def summary(self, metrics: Sequence[Metric]) -> dict[str, Any]:
        """Means, 95 % intervals and counts by metric; the same by slice.

        ``method`` says how an interval was computed, ``clusters`` on how many clusters of cases it
        rests, ``marks`` why it is to be doubted or why there is none. A metric that no case scored
        has mean and interval None.
        """
        alone, sharing = self._put_together()
        names = [metric.name for metric in metrics]
        table = np.asfortranarray(np.concatenate([*self._tables, np.empty((0, self.width))]))
        times = np.bincount(alone.rows, alone.times, len(table)).astype(np.int64)
        times += np.bincount(sharing.rows, minlength=len(table))
        missing, lost = ((times @ kind(table)).tolist() for kind in (np.isnan, np.isinf))
        report: dict[str, Any] = {
            "definitions": {metric.name: metric.definition for metric in metrics},
            "n": dict.fromkeys(names, 0),
            "not_applicable": dict(zip(names, missing, strict=True)),
            "failed": dict(zip(names, lost, strict=True)),
            "mean": dict.fromkeys(names),
            "ci95": dict.fromkeys(names),
            "method": {},
            "clusters": {},
            "marks": {},
        }
        parts: dict[Slice, dict[str, MeanOfGroup]] = {}
        cases = _Cases(alone, sharing, len(self._slices))
        batches = list(self._batches(cases))
        means: dict[int, list[tuple[Slice, MeanOfGroup]]] = {}
        for column, metric in zip(_alike(table, metrics), metrics, strict=True):
            if column not in means:
                scores = _MetricColumn(table[:, column], times, metric)
                means[column] = list(cases.means(scores, batches))
            for part, mean in means[column]:
                parts.setdefault(part, {})[metric.name] = mean
        for name, mean in parts.pop(_WHOLE, {}).items():
            report["n"][name], report["mean"][name] = mean.n, mean.mean
            report["ci95"][name] = mean.interval.ends
            report["method"][name] = mean.interval.method
            report["clusters"][name] = mean.interval.units
            if mean.interval.mark:
                report["marks"][name] = mean.interval.mark
        report["by"] = _by_slice(parts, names)
        return report

    def shared_clusters(self) -> list[int]:
        """The numbers of the clusters that have several cases."""
        clusters = self._put_together()[1].clusters
        numbers: list[int] = clusters[changes(clusters)].tolist()
        return numbers

    def _batches(self, cases: _Cases) -> Iterator[_Batch]:
        """All slices, so many at a time that their cells take little memory."""

        of_slice: dict[Slice, list[int]] = {}
        for slices, number in self._slices.items():
            for part in dict.fromkeys((_WHOLE, *slices)):
                of_slice.setdefault(part, []).append(number)
        names: list[Slice] = []
        cells: list[NDArray[np.int32]] = []
        for part in sorted(of_slice):
            names.append(part)
            cells.append(cases.cells_of(of_slice[part]))
            if sum(map(len, cells)) > MOST_ENTRIES:
                yield _Batch.of(names, [of_slice[name] for name in names], cells)
                names, cells = [], []
        if names:
            yield _Batch.of(names, [of_slice[name] for name in names], cells)


def _numbers(row: Values) -> Sequence[float | None]:
    return [_LOST if value == FAILED else value for value in row] if FAILED in row else row  # type: ignore[return-value]


def _alike(table: Floats, metrics: Sequence[Metric]) -> list[int]:
    """For each metric the first one of the same bounds that scored every row alike."""
    first: dict[tuple[float | None, float | None, bytes], int] = {}
    return [
        first.setdefault((metric.low, metric.high, blake2b(column.tobytes()).digest()), number)
        for number, (metric, column) in enumerate(zip(metrics, table.T, strict=True))
    ]


class _Batch(NamedTuple):
    """Some slices: the combinations of slices that each is in, and its cells, sorted by cluster.

    A cell is a cluster's cases of one combination of slices.
    """

    names: Sequence[Slice]
    groups: Ints
    """By combination: the place of the slice among ``names``."""
    combinations: Ints
    cell_groups: Ints
    cells: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        names: Sequence[Slice],
        combinations: Sequence[Sequence[int]],
        cells: Sequence[NDArray[np.int32]],
    ) -> _Batch:
        return cls(
            names,
            _places(combinations),
            np.concatenate([np.array(numbers) for numbers in combinations]),
            _places(cells),
            np.concatenate(cells),
        )


class _MetricColumn:
    """The scores of a metric in each row of the table: its levels, and the level of each row."""

    def __init__(self, column: Floats, times: Ints, metric: Metric) -> None:
        """``times``: how often each row occurred."""
        self.levels, of_row = np.unique(column, return_inverse=True)
        self.of_row = of_row.astype(np.int32)
        used = np.bincount(self.of_row, times, len(self.levels)) > 0
        self.scored = np.isfinite(self.levels) & used
        self.scale = Scale.of(self.levels[self.scored], metric.low, metric.high)
        inside = np.where(self.scored, self.levels, self.scale.origin)
        self.limbs = list(exact.limbs(self.scale.shrink(inside), int(times.sum())))
        """The levels on the scale, as whole numbers that can be added up; 0 where there is none."""


class _Cases:
    """What was counted: cases that stand alone, and those that share a cluster, by cells."""

    def __init__(self, alone: CountedValues, sharing: SharedCells, combinations: int) -> None:
        self._alone, self._sharing = alone, sharing
        self._order = np.argsort(sharing.slices, kind="stable").astype(np.int32)
        numbers = np.arange(combinations + 1)
        self._begins = np.searchsorted(sharing.slices[self._order], numbers)
        self._numbers = numbers

    def cells_of(self, combinations: Sequence[int]) -> NDArray[np.int32]:
        """The cells of these combinations of slices, sorted by cluster."""
        begins = self._begins
        return np.sort(
            np.concatenate([self._order[begins[n] : begins[n + 1]] for n in combinations])
        )

    def means(
        self, column: _MetricColumn, batches: Sequence[_Batch]
    ) -> Iterator[tuple[Slice, MeanOfGroup]]:
        """The mean of a metric in each slice."""
        if not column.scored.any():
            return
        alone = self._levels(self._alone, column)
        sharing = self._levels(self._sharing.entries(), column)
        sizes, limbs = self._sums(column)
        for batch in batches:
            levels, repeats, groups = _in_groups(alone, batch)
            levels_too, times_too, groups_too = _in_groups(sharing, batch)
            cluster_of_cell = self._sharing.clusters[batch.cells]
            firsts = changes(batch.cell_groups, cluster_of_cell)
            ones = np.ones(len(levels), dtype=np.int64)
            units = Units(groups, ones, column.scale.shrink(column.levels[levels]), repeats)
            if len(firsts):
                of_unit = np.add.reduceat(sizes[batch.cells], firsts)
                totals = np.zeros(len(firsts))
                for shift, limb in limbs:
                    added = np.add.reduceat(limb[batch.cells], firsts)
                    totals += np.ldexp(added.astype(float), shift - exact.UNIT_BITS)
                there = np.flatnonzero(of_unit)
                groups_of = batch.cell_groups[firsts][there]
                ones = np.ones(len(there), dtype=np.int64)
                units = _sorted(units, Units(groups_of, of_unit[there], totals[there], ones))
            levels = np.concatenate([levels, levels_too])
            times = np.concatenate([repeats, times_too])
            groups = np.concatenate([groups, groups_too])
            if len(levels):
                order = np.argsort(groups, kind="stable")
                for mean in means_of_units(
                    column.levels[levels[order]], times[order], groups[order], units, column.scale
                ):
                    yield batch.names[mean.group], mean

    def _levels(self, counted: CountedValues, column: _MetricColumn) -> _Levels:
        """How often each level of a metric occurred in each combination of slices."""
        number = len(column.levels)
        keys = counted.slices.astype(np.int64) * number + column.of_row[counted.rows]
        if number * len(self._numbers) <= _DENSE * len(counted.rows):
            counts = np.bincount(keys, counted.times, number * len(self._numbers))
            keys = np.flatnonzero(counts)
            times = counts[keys].astype(np.int64)
        else:
            order = np.argsort(keys)
            starts = changes(keys[order])
            keys = keys[order][starts]
            times = counted.times[order].astype(np.int64)
            times = np.add.reduceat(times, starts) if len(starts) else times
        there = column.scored[keys % number] if len(keys) else keys.astype(bool)
        keys, times = keys[there], times[there]
        return _Levels(keys % number, times, np.searchsorted(keys // number, self._numbers))

    def _sums(self, column: _MetricColumn) -> tuple[Ints, list[tuple[int, Ints]]]:
        """For each cell how many cases have a score, and the limbs of the sum of these."""
        levels, begins = column.of_row[self._sharing.rows], self._sharing.begins
        columns = [column.scored.astype(np.int64), *(limb for _, limb in column.limbs)]
        found = [
            np.add.reduceat(of_level[levels], begins) if len(begins) else begins
            for of_level in columns
        ]
        shifts = [shift for shift, _ in column.limbs]
        return found[0], list(zip(shifts, found[1:], strict=True))


_DENSE = 4
"""Cells of a table for each entry up to which counting in all of them is quicker than sorting."""


class _Levels(NamedTuple):
    """Levels and how often they occurred, and where those of each combination of slices begin."""

    levels: Ints
    times: Ints
    begins: Ints


def _in_groups(found: _Levels, batch: _Batch) -> tuple[Ints, Ints, Ints]:
    """Levels, how often they occurred, and in which slice of the batch, sorted by that."""
    begins = found.begins[batch.combinations]
    lengths = found.begins[batch.combinations + 1] - begins
    behind = np.cumsum(lengths)
    at = np.arange(behind[-1]) + np.repeat(begins - behind + lengths, lengths)
    return found.levels[at], found.times[at], np.repeat(batch.groups, lengths)


def _sorted(alone: Units, clusters: Units) -> Units:
    """Both, sorted by group."""
    columns = [np.concatenate(pair) for pair in zip(alone, clusters, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Units(*(column[order] for column in columns))


def _places(lists: Sequence[Any]) -> Ints:
    """For each entry the place of its list."""
    return np.repeat(np.arange(len(lists)), [len(entries) for entries in lists])


def _by_slice(
    parts: dict[Slice, dict[str, MeanOfGroup]], names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Per slice: n = cases that the most widely applicable metric scored, means and intervals.

    Metrics that scored another number of cases are listed with it under ``n_of``.
    """
    report: dict[str, dict[str, Any]] = {}
    for (dimension, value), means in sorted(parts.items()):
        rows = [(name, means[name]) for name in names if name in means]
        most = max(mean.n for _, mean in rows)
        fewer = {name: mean.n for name, mean in rows if mean.n != most}
        entry: dict[str, Any] = {
            "n": most,
            "mean": {name: mean.mean for name, mean in rows},
            "ci95": {name: ends for name, mean in rows if (ends := mean.interval.ends)},
        }
        report.setdefault(dimension, {})[value] = entry | ({"n_of": fewer} if fewer else {})
    return report


_LAST_TURN = 3
"""Turns from this one on are one slice."""


def facets_of(case: Any) -> Facets:
    """Return a hashable key of the fields that decide a case's slices."""
    return (
        case.category,
        case.difficulty,
        case.query_type,
        tuple(case.tags),
        tuple(case.vaults),
        case.turn and min(case.turn, _LAST_TURN),
        case.standalone,
    )


@lru_cache(maxsize=4096)
def slices_of(facets: Facets) -> Slices:
    """The slices of a case: category, difficulty, query type, each tag, each vault; of a turn of a
    conversation 1, 2 or 3+, and whether the question can be understood by itself."""
    names = ("category", "difficulty", "query_type")
    parts = [(name, value) for name, value in zip(names, facets[:3], strict=True) if value]
    parts += [("tag", tag) for tag in dict.fromkeys(facets[3])]
    parts += [("vault", vault) for vault in dict.fromkeys(facets[4])]
    turn, standalone = facets[5:]
    if turn is not None:
        parts.append(("turn", f"{turn}+" if turn == _LAST_TURN else str(turn)))
    if standalone is not None:
        parts.append(("standalone", "yes" if standalone else "no"))
    return tuple(parts)

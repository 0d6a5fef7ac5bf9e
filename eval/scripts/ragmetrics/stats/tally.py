"""From the scores of single cases to means, intervals and slices; pure, memory flat.

Rows of scores repeat (most metrics have few distinct values), so distinct rows are counted instead
of kept; a case that shares its document with others keeps 20 bytes, so that they can be counted
together. Sums are exact: however the cases are ordered, split and merged, the bytes are the same. A
score is a float, None (not applicable) or FAILED; only floats enter a mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import fsum
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.intervals import ALONE, MeanOfGroup, means_of_groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
    """One case asked several times: the mean of its scored repeats, metric by metric.

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


class CountedValues(NamedTuple):
    """Cases that are alike, an entry each: their slices, cluster, row of scores, and number."""

    slices: NDArray[Any]
    clusters: NDArray[Any]
    rows: NDArray[Any]
    times: NDArray[Any]


_WHOLE: Slice = ("", "")
"""The slice of all cases."""

_MOST_MEMBERS = 1 << 18
"""Entries of slices that are looked at together."""

_ABSENT, _LOST = float("nan"), float("inf")
"""None and FAILED in a table of scores, where no other value is infinite."""


class Tally:
    """Counts rows of scores, over all cases and by slice. Not for threads."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._tables: list[NDArray[np.float64]] = []
        self._counted: list[CountedValues] = []
        self._slices: dict[Slices, int] = {}

    def add(
        self,
        rows: Sequence[Values],
        row_of_case: Sequence[int] | NDArray[np.int64],
        slices: Sequence[Slices] = ((),),
        slices_of_case: Sequence[int] | NDArray[np.int64] = (),
        cluster_of_case: Sequence[int] | NDArray[np.int64] = (),
    ) -> None:
        """Count cases: the row of scores of each (an index into ``rows``), its slices (an index
        into ``slices``) and the number of its cluster (ALONE for none).

        Raises ValueError for a score that is not finite.
        """
        import numpy as np

        cases = len(row_of_case)
        if not cases:
            return
        table = np.array(
            [[_LOST if value == FAILED else value for value in row] for row in rows], dtype=float
        ).reshape(len(rows), self.width)
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
        self._counted.append(_condensed(counted))

    def _number(self, slices: Slices) -> int:
        return self._slices.setdefault(slices, len(self._slices))

    def merge(self, other: Tally) -> None:
        """Add what another tally of the same metrics counted."""
        import numpy as np

        renumber = np.array([self._number(slices) for slices in other._slices], dtype=np.int32)
        before = np.int32(sum(map(len, self._tables)))
        for counted in other._counted:
            slices = renumber[counted.slices]
            self._counted.append(counted._replace(slices=slices, rows=counted.rows + before))
        self._tables += other._tables

    def release(self) -> CountedValues:
        """What was counted, sorted by cluster. The tally has it no more: see ``merged``."""
        counted = self._all_counted()
        self._counted = []
        return counted

    @classmethod
    def merged(cls, parts: Sequence[Tally], portions: Iterable[Sequence[CountedValues]]) -> Tally:
        """One tally of several that have released what they counted.

        ``portions``: for one set of clusters after the other, what each of the parts counted of
        them; no cluster is in two portions. A cluster of one case is then not told from others, so
        that only those of several cases take memory.
        """
        import numpy as np

        whole = cls(parts[0].width)
        slice_maps, row_maps = [], []
        for part in parts:
            slice_maps.append(np.array([whole._number(s) for s in part._slices], dtype=np.int32))
            row_maps.append(np.int32(sum(map(len, whole._tables))))
            whole._tables += part._tables
        for portion in portions:
            renumbered = [
                counted._replace(slices=slices[counted.slices], rows=counted.rows + before)
                for counted, slices, before in zip(portion, slice_maps, row_maps, strict=True)
                if len(counted.rows)
            ]
            if renumbered:
                whole._counted.append(_without_single(_joined(renumbered)))
        return whole

    def summary(self, metrics: Sequence[Metric]) -> dict[str, Any]:
        """Means, 95 % intervals and counts by metric; the same by slice.

        ``method`` says how an interval was computed, ``clusters`` on how many clusters of cases it
        rests, ``marks`` why it is to be doubted or why there is none. A metric that no case scored
        has mean and interval None.
        """
        import numpy as np

        names = [metric.name for metric in metrics]
        table = np.asfortranarray(np.concatenate([*self._tables, np.empty((0, self.width))]))
        counted = self._clustered()
        times = np.bincount(counted.rows, counted.times, len(table)).astype(np.int64)
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
        alike = _alike(table, metrics)
        for slices, members, groups in self._members(counted):
            cases = _Cases.of(counted, members, groups)
            means: dict[int, list[MeanOfGroup]] = {}
            for column, metric in zip(alike, metrics, strict=True):
                if column not in means:
                    means[column] = cases.means(table[:, column], metric)
                for mean in means[column]:
                    parts.setdefault(slices[mean.group], {})[metric.name] = mean
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
        import numpy as np

        numbers = np.unique(self._clustered().clusters).tolist()
        return [number for number in numbers if number != ALONE]

    def _clustered(self) -> CountedValues:
        """All that was counted, sorted by cluster. Whoever shares no cluster stands ALONE."""
        return _without_single(self._all_counted())

    def _all_counted(self) -> CountedValues:
        import numpy as np

        if not self._counted:
            nothing = np.zeros(0, dtype=np.int32)
            return CountedValues(nothing, nothing.astype(np.int64), nothing, nothing)
        return _joined(self._counted)

    def _members(
        self, counted: CountedValues
    ) -> Iterator[tuple[Sequence[Slice], NDArray[np.int64], NDArray[np.int64]]]:
        """Batches of slices, with the entries of each and their slice's number in the batch."""
        import numpy as np

        of_slice: dict[Slice, list[int]] = {}
        for slices, number in self._slices.items():
            for part in dict.fromkeys((_WHOLE, *slices)):
                of_slice.setdefault(part, []).append(number)
        order = np.argsort(counted.slices, kind="stable")
        begins = np.searchsorted(counted.slices[order], np.arange(len(self._slices) + 1))
        batch: list[Slice] = []
        members: list[NDArray[np.int64]] = []
        for part in sorted(of_slice):
            entries = [order[begins[number] : begins[number + 1]] for number in of_slice[part]]
            batch.append(part)
            members.append(np.sort(np.concatenate(entries)))  # entries are sorted by cluster
            if sum(map(len, members)) > _MOST_MEMBERS:
                yield batch, np.concatenate(members), _numbers(members)
                batch, members = [], []
        if batch:
            yield batch, np.concatenate(members), _numbers(members)


def _alike(table: NDArray[np.float64], metrics: Sequence[Metric]) -> list[int]:
    """For each metric the first one of the same bounds that scored every row alike."""
    first: dict[tuple[float | None, float | None, bytes], int] = {}
    return [
        first.setdefault((metric.low, metric.high, blake2b(column.tobytes()).digest()), number)
        for number, (metric, column) in enumerate(zip(metrics, table.T, strict=True))
    ]


class _Cases(NamedTuple):
    """The entries of a batch of groups: those ``alone``, and those that share a cluster, each
    sorted by group and then by cluster."""

    alone: CountedValues
    sharing: CountedValues

    @classmethod
    def of(
        cls, counted: CountedValues, members: NDArray[np.int64], groups: NDArray[np.int64]
    ) -> _Cases:
        import numpy as np

        clusters = counted.clusters[members]
        parts = []
        for at in (np.flatnonzero(clusters == ALONE), np.flatnonzero(clusters != ALONE)):
            rows, times = counted.rows[members[at]], counted.times[members[at]]
            parts.append(CountedValues(groups[at], clusters[at], rows, times))
        return cls(*parts)

    def means(self, column: NDArray[np.float64], metric: Metric) -> list[MeanOfGroup]:
        """The mean of a metric in each group. ``column``: its score in each row of the table."""
        import numpy as np

        alone = self._levels(column)
        scores = column[self.sharing.rows]
        scored = np.isfinite(scores)
        values = np.concatenate([alone[0], scores[scored]])
        times = np.concatenate([alone[1], self.sharing.times[scored]])
        groups = np.concatenate([alone[2], self.sharing.slices[scored]])
        clusters = np.full(len(values), ALONE, dtype=np.int64)
        clusters[len(alone[0]) :] = self.sharing.clusters[scored]
        order = np.argsort(groups, kind="stable")  # whoever is alone stays before the clusters
        return means_of_groups(
            values[order],
            times[order].astype(np.int64),
            groups[order],
            clusters[order],
            metric.low,
            metric.high,
        )

    def _levels(
        self, column: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """The scores of cases that stand alone, how often each occurred, and in which group; equal
        ones of a group are counted together where that leaves fewer."""
        import numpy as np

        levels, level_of_row = np.unique(column, return_inverse=True)
        cells = len(levels) * (int(self.alone.slices[-1]) + 1) if len(self.alone.rows) else 0
        if cells < len(self.alone.rows):
            cell_of_entry = self.alone.slices * len(levels) + level_of_row[self.alone.rows]
            counts = np.bincount(cell_of_entry, self.alone.times, cells).astype(np.int64)
            cell = np.flatnonzero(counts)
            scores, times, groups = levels[cell % len(levels)], counts[cell], cell // len(levels)
        else:
            scores, times, groups = column[self.alone.rows], self.alone.times, self.alone.slices
        scored = np.isfinite(scores)
        return scores[scored], times[scored], groups[scored]


def _numbers(members: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """For each entry the place of its list."""
    import numpy as np

    return np.repeat(np.arange(len(members)), [len(entries) for entries in members])


def _joined(parts: Sequence[CountedValues]) -> CountedValues:
    """All entries, condensed."""
    import numpy as np

    return _condensed(
        CountedValues(
            np.concatenate([part.slices for part in parts]),
            np.concatenate([part.clusters for part in parts]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.times for part in parts]),
        )
    )


def _without_single(counted: CountedValues) -> CountedValues:
    """The same; whoever shares no cluster stands ALONE."""
    import numpy as np

    numbers, inverse = np.unique(counted.clusters, return_inverse=True)
    cases = np.zeros(len(numbers), dtype=np.int64)
    np.add.at(cases, inverse, counted.times)
    shared = cases[inverse] > 1
    return _condensed(counted._replace(clusters=np.where(shared, counted.clusters, ALONE)))


def _condensed(counted: CountedValues) -> CountedValues:
    """The same with equal entries counted as one, sorted by cluster."""
    import numpy as np

    if not len(counted.rows):
        return counted
    order = np.lexsort((counted.rows, counted.slices, counted.clusters))
    slices, clusters, rows = (column[order] for column in counted[:3])
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for column in (slices, clusters, rows):
        new[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(new)
    times = np.add.reduceat(counted.times[order], starts).astype(np.int32)
    return CountedValues(slices[starts], clusters[starts], rows[starts], times)


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
    """What decides which slices a case belongs to, as something to count by."""
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

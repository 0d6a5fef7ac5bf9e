"""The counts of a tally, as columns sorted by cluster and joined with little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ragmetrics.stats.arrays import Ints, NDArray, np
from ragmetrics.stats.intervals import ALONE


class CountedValues(NamedTuple):
    """Cases that are alike, an entry each: their slices, cluster, row of scores, and number."""

    slices: NDArray[Any]
    clusters: NDArray[Any]
    rows: NDArray[Any]
    times: NDArray[Any]


class SharedCells(NamedTuple):
    """Cases that share a cluster, by cells: the cases of a cluster in one combination of slices.

    Cells are sorted by cluster and then by slices. Of each: its cluster, its slices, and where its
    entries begin. Of each entry: its row of scores, and how often it occurred; None: all once.
    """

    clusters: NDArray[Any]
    slices: NDArray[Any]
    begins: NDArray[Any]
    rows: NDArray[Any]
    times: NDArray[Any] | None

    def entries(self, start: int = 0, end: int | None = None) -> CountedValues:
        """The entries of some cells."""
        ends = np.append(self.begins, len(self.rows))[start:]
        ends = ends if end is None else ends[: end - start + 1]
        lengths, inside = np.diff(ends), slice(*ends[[0, -1]])
        rows = self.rows[inside]
        times = np.ones(len(rows), np.int32) if self.times is None else self.times[inside]
        slices, clusters = self.slices[start:end], self.clusters[start:end]
        return CountedValues(np.repeat(slices, lengths), np.repeat(clusters, lengths), rows, times)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Return ranges of cells, each so small that its entries take little memory."""
        marks = np.arange(0, len(self.rows), MOST_ENTRIES)
        cells = np.searchsorted(self.begins, marks)
        cells = cells[changes(cells)]  # np.unique would load numpy.ma
        starts, end = cells[cells < len(self.begins)].tolist(), len(self.begins)
        return zip(starts, [*starts[1:], end][: len(starts)], strict=True)


MOST_ENTRIES = 1 << 18
"""Entries that are processed together."""


def changes(*columns: NDArray[Any]) -> Ints:
    """Return where each stretch of entries that are equal in all columns begins."""
    new = np.zeros(len(columns[0]), dtype=bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def _concatenated(parts: Sequence[CountedValues]) -> CountedValues:
    return CountedValues(*map(np.concatenate, zip(*parts, strict=True)))


def by_cluster(parts: Sequence[CountedValues]) -> CountedValues:
    """Sort all entries by cluster; those whose cluster is ALONE are condensed."""
    counted = _concatenated([*parts, _no_entries()])
    order = np.argsort(counted.clusters)
    counted = CountedValues(*(column[order] for column in counted))
    edge = int(np.searchsorted(counted.clusters, ALONE, side="right"))
    if not edge:
        return counted
    alone = _condensed(CountedValues(*(column[:edge] for column in counted)))
    return _concatenated([alone, CountedValues(*(column[edge:] for column in counted))])


def _no_entries() -> CountedValues:
    nothing = np.zeros(0, dtype=np.int32)
    return CountedValues(nothing, nothing.astype(np.int64), nothing, nothing)


def portions(parts: Sequence[CountedValues]) -> Iterator[list[CountedValues]]:
    """Yield the entries of all parts, each sorted by cluster, a few clusters at a time."""
    portions = 1 + sum(len(part.rows) for part in parts) // MOST_ENTRIES
    last = max((int(part.clusters[-1]) for part in parts if len(part.rows)), default=ALONE)
    edges = np.linspace(0, last, portions + 1)[1:-1].astype(np.int64)
    places = [
        [0, *np.searchsorted(part.clusters, edges).tolist(), len(part.rows)] for part in parts
    ]
    for portion in range(portions):
        yield [
            CountedValues(*(column[at[portion] : at[portion + 1]] for column in part))
            for part, at in zip(parts, places, strict=True)
        ]


def put_together(portions: Iterable[Sequence[CountedValues]]) -> tuple[CountedValues, SharedCells]:
    """Join all entries, with no cluster in two portions. Cases that share no cluster are condensed;
    the others are returned by cells."""
    alone, cells, rows, times = [_no_entries()], [_no_entries()], [], []
    entries = 0
    for portion in portions:
        counted = by_cluster(portion)
        starts = changes(counted.clusters)
        if not len(starts):
            continue
        cases = np.add.reduceat(counted.times.astype(np.int64), starts)
        lengths = np.diff(starts, append=len(counted.rows))
        shared = np.repeat((cases > 1) & (counted.clusters[starts] != ALONE), lengths)
        single = CountedValues(*(column[~shared] for column in counted))
        single.clusters[:] = ALONE
        alone.append(_condensed(single))
        number = np.repeat(np.arange(len(starts)), lengths)[shared]
        counted = CountedValues(*(column[shared] for column in counted))
        order = np.argsort((number << 32) + counted.slices)
        counted = CountedValues(*(column[order] for column in counted))
        starts = changes(counted.clusters, counted.slices)
        cells.append(
            CountedValues(
                counted.slices[starts], counted.clusters[starts], starts + entries, starts
            )
        )
        entries += len(order)
        rows.append(counted.rows)
        times.append(None if (counted.times == 1).all() else counted.times)
    slices, clusters, begins, _ = _concatenated(cells)
    nothing = np.zeros(0, np.int32)
    once = all(part is None for part in times)
    return _condensed(_concatenated(alone)), SharedCells(
        clusters,
        slices,
        begins.astype(np.int64),
        np.concatenate([nothing, *rows]),
        None
        if once
        else np.concatenate(
            [
                np.ones(len(own), np.int32) if part is None else part
                for own, part in zip(rows, times, strict=True)
            ]
        ),
    )


def _condensed(counted: CountedValues) -> CountedValues:
    """The same, of one cluster, with equal entries counted as one."""
    if not len(counted.rows):
        return counted
    keys = (counted.slices.astype(np.int64) << 32) + counted.rows
    order = np.argsort(keys)
    starts = changes(keys[order])
    times = np.add.reduceat(counted.times[order].astype(np.int64), starts).astype(np.int32)
    first = order[starts]
    return CountedValues(counted.slices[first], counted.clusters[first], counted.rows[first], times)

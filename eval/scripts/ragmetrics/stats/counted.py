"""The counts of a tally, as columns sorted by cluster and joined with little memory."""

from __future__ import annotations

from collections.abc import Sequence
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

    def entries(self) -> CountedValues:
        """The cases of all cells."""
        lengths = np.diff(self.begins, append=len(self.rows))
        slices, clusters = np.repeat(self.slices, lengths), np.repeat(self.clusters, lengths)
        return CountedValues(slices, clusters, self.rows, np.ones(len(self.rows), np.int32))


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


def _no_entries() -> CountedValues:
    nothing = np.zeros(0, dtype=np.int32)
    return CountedValues(nothing, nothing.astype(np.int64), nothing, nothing)


def put_together(parts: Sequence[CountedValues]) -> tuple[CountedValues, SharedCells]:
    """Join all entries. Cases that share no cluster are condensed; the others are returned by
    cells."""
    counted = _concatenated([*parts, _no_entries()])
    order = np.argsort(counted.clusters)
    counted = CountedValues(*(column[order] for column in counted))
    starts = changes(counted.clusters)
    lengths = np.diff(starts, append=len(counted.rows))
    shared = np.repeat((lengths > 1) & (counted.clusters[starts] != ALONE), lengths)
    alone = CountedValues(*(column[~shared] for column in counted))
    alone.clusters[:] = ALONE
    number = np.repeat(np.arange(len(starts)), lengths)[shared]
    counted = CountedValues(*(column[shared] for column in counted))
    order = np.argsort((number << 32) + counted.slices)
    counted = CountedValues(*(column[order] for column in counted))
    begins = changes(counted.clusters, counted.slices)
    return _condensed(alone), SharedCells(
        counted.clusters[begins], counted.slices[begins], begins, counted.rows
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

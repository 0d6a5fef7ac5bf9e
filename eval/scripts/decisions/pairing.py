"""The rows of two runs side by side, and the cluster of each case.

Cases are identified by 64-bit hashes of their ids, see ``records.run``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decisions.effects import compact
from ragmetrics.stats.arrays import Floats, Ints, NDArray, np
from records.clusters import NONE, Clustering
from records.section_table import FAILED_IS_ZERO, SectionTable

if TYPE_CHECKING:
    from records.section_table import Mask

_BLOCK = 4096
"""Cases that are looked up together."""


def places_of(ids: Ints, known: Ints) -> Ints:
    """The row of each id among the known ones, -1 for one that is not there."""
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
        self.clustering = clustering
        self._ids, self._codes = np.zeros(0, np.int64), np.zeros(0, np.int32)
        if clustering is not None and clustering.by != NONE:
            labels = clustering.labels
            self._ids = np.asarray(labels.ids, np.int64)
            self._codes = np.asarray(labels.positions, np.int32)
        self._last: tuple[Ints, Ints | None] | None = None

    def of(self, ids: Ints) -> Ints | None:
        """0, 1, …, the same for cases of one cluster; None when each case is alone."""
        if not len(self._ids):
            return None
        if self._last is None or self._last[0] is not ids:
            self._last = ids, self._worked_out(ids)
        return self._last[1]

    def _worked_out(self, ids: Ints) -> Ints | None:
        codes = places_of(ids, self._ids)
        for start in range(0, len(ids), _BLOCK):
            part = codes[start : start + _BLOCK]  # a view: what it takes, codes has
            # a case by itself gets a number behind those of the clusters
            alone = len(self.clustering.labels.names) if self.clustering else 0
            own = alone + start + np.arange(len(part))
            part[:] = np.where(part >= 0, self._codes[part], own)
        return compact(codes)

    def sentence(self, ids: Ints | None) -> str:
        """The unit of counting, in words."""
        if self.clustering is None or ids is None:
            return ""
        if len(self._ids) and not np.isin(ids, self._ids).any():
            return "each case by itself"
        return self.clustering.sentence

    def largest(self, ids: Ints) -> tuple[str, int]:
        """The label of the largest cluster of some cases, and its size."""
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

    base: SectionTable
    new: SectionTable
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
        """Cases of base that new was not asked, where that is known."""
        return int((self._in_base & ~self._in_new & ~self.missing_new).sum())

    @property
    def only_new(self) -> int:
        """Cases of new that base was not asked, where that is known."""
        return int((self._in_new & ~self._in_base & ~self.missing_base).sum())

    def case_ids(self, rows: Collection[int]) -> dict[int, str]:
        """The ids of some rows."""
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
        self, run: SectionTable, name: str, places: NDArray[np.int32] | None, zero: Mask | None
    ) -> Floats | None:
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

    @property
    def asked_in_both(self) -> Mask:
        """Cases that both runs were asked."""
        both: Mask = (self._in_base | self.missing_base) & (self._in_new | self.missing_new)
        return both

    def changed_gold(self) -> list[str]:
        """Cases whose gold supports are not the same in both runs."""
        kinds = {kind: at for at, kind in enumerate(self.base.gold_kinds)}
        unknown = len(kinds)
        translate = np.array([kinds.get(kind, unknown) for kind in self.new.gold_kinds] or [0])
        rows = self._new_places
        shared = rows < self.base.cases
        old, now = self.base.gold[rows[shared]], self.new.gold[shared]
        changed = rows[shared][(old >= 0) & (now >= 0) & (translate[now] != old)]
        return list(self.base.case_ids(set(changed.tolist())).values()) if len(changed) else []


def side_by_side(
    base: SectionTable, new: SectionTable, asked_base: Ints | None, asked_new: Ints | None
) -> SideBySide:
    """Two runs' cases matched.

    ``asked_*``: hashes of the cases that a run was asked, of which those that it has lines of may
    be left out; None: every case of the set.
    """
    if np.array_equal(base.ids, new.ids):
        new.ids = base.ids
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
    base: SectionTable, new: SectionTable, asked_base: Ints | None, asked_new: Ints | None
) -> Ints:
    """Cases that both runs were asked and neither has, where that is known, in their order."""
    if asked_base is not None and asked_new is not None:
        asked = asked_base[np.isin(asked_base, asked_new)]
    elif asked_base is not None:
        asked = asked_base
    elif asked_new is not None:
        asked = asked_new
    else:
        asked = np.zeros(0, np.int64)
    if not len(asked):
        return asked  # to look for none would sort the ids of all cases
    lost: Ints = asked[~np.isin(asked, base.ids) & ~np.isin(asked, new.ids)]
    return lost


def _among(ids: Ints, asked: Ints | None) -> Mask:
    """Which ids were asked; all of them where the whole set was (None)."""
    return np.ones(len(ids), bool) if asked is None else np.isin(ids, asked)

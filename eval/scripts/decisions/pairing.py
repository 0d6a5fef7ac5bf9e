"""The rows of two runs side by side, and the cluster of each case.

Cases are identified by the numbers of their ids, see ``records.id_numbers``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from decisions.effects import compact
from ragmetrics.stats.arrays import Floats, Ints, NDArray, np
from records.clusters import NONE, Clustering
from records.id_numbers import id_number, id_of
from records.section_table import FAILED_IS_ZERO, SectionTable

if TYPE_CHECKING:
    from records.section_table import Mask


def places_of(ids: Ints, known: Ints) -> Ints:
    """The row of each id among the known ones, -1 for one that is not there."""
    if np.array_equal(ids, known):
        return np.arange(len(ids))
    rows = {number: row for row, number in enumerate(known.tolist())}
    return np.array([rows.get(number, -1) for number in ids.tolist()], int)


class ClusterCodes:
    """The cluster of each case as an integer, by the number of its id."""

    def __init__(self, clustering: Clustering | None) -> None:
        self.clustering = clustering
        self._codes: dict[int, int] = {}
        if clustering is not None and clustering.by != NONE:
            of_case = clustering.labels.shared
            places = {label: place for place, label in enumerate(dict.fromkeys(of_case.values()))}
            self._codes = {id_number(case): places[label] for case, label in of_case.items()}
        self._last: tuple[Ints, Ints | None] | None = None

    def of(self, ids: Ints) -> Ints | None:
        """0, 1, …, the same for cases of one cluster; None when each case is alone."""
        if not self._codes:
            return None
        if self._last is None or self._last[0] is not ids:
            self._last = ids, self._worked_out(ids)
        return self._last[1]

    def _worked_out(self, ids: Ints) -> Ints | None:
        # a case by itself gets a number behind those of the clusters
        alone = len(self._codes)
        codes = [self._codes.get(case, alone + row) for row, case in enumerate(ids.tolist())]
        return compact(np.array(codes, int))

    def sentence(self, ids: Ints | None) -> str:
        """The unit of counting, in words."""
        if self.clustering is None or ids is None:
            return ""
        if self._codes and not any(case in self._codes for case in ids.tolist()):
            return "each case by itself"
        return self.clustering.sentence

    def largest(self, ids: Ints) -> tuple[str, int]:
        """The label of the largest cluster of some cases, and its size."""
        shared = [case for case in ids.tolist() if case in self._codes]
        counts = Counter(self._codes[case] for case in shared)
        most, size = max(counts.items(), key=lambda pair: (pair[1], -pair[0]))
        case = next(case for case in shared if self._codes[case] == most)
        return self.clustering.labels[id_of(case)] if self.clustering else "", size


@dataclass
class SideBySide:
    """A section of two runs: base's cases in their order, then those of new alone.

    ``missing_base``, ``missing_new``: asked cases for which a run has no result. ``changed``: cases
    that are not the same in both runs and have no score here; None where none is.
    """

    base: SectionTable
    new: SectionTable
    ids: Ints
    missing_base: Mask
    missing_new: Mask
    _in_base: Mask
    _in_new: Mask
    _new_places: NDArray[np.int32]
    changed: Mask | None = None
    _gone: Mask | None = None

    def without(self, changed: Mask) -> SideBySide:
        """The same, where some cases changed, or are in one set alone; no case that one run was not
        asked has a score then."""
        missing = self.missing_base & ~changed, self.missing_new & ~changed
        own = replace(self, missing_base=missing[0], missing_new=missing[1], changed=changed)
        return replace(own, changed=changed | ~own.asked_in_both, _gone=changed)

    @property
    def both(self) -> int:
        """Cases that both runs have lines of, and that did not change."""
        return int(self.in_both.sum())

    @property
    def in_both(self) -> Mask:
        """Which cases these are."""
        both: Mask = self._in_base & self._in_new
        return both if self.changed is None else both & ~self.changed

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
        if self.changed is not None:
            values = np.where(self.changed, np.nan, values)
        return values

    def left_out(self, name: str) -> tuple[Floats, Mask] | None:
        """Base's scores of a metric in the cases that are compared or that changed, and which of
        them changed; None where none did."""
        if self.changed is None or self._gone is None:
            return None
        values = replace(self, changed=None).pair(name)[0]
        if values is None:
            return None
        return np.where(self.changed & ~self._gone, np.nan, values), self._gone

    @property
    def asked_in_both(self) -> Mask:
        """Cases that both runs were asked."""
        both: Mask = (self._in_base | self.missing_base) & (self._in_new | self.missing_new)
        return both if self.changed is None else both & ~self.changed

    def changed_gold(self) -> list[str]:
        """Cases whose gold supports are not the same in both runs."""
        before = self.base.gold
        pairs = [
            (row, before[row], gold)
            for row, gold in zip(self._new_places.tolist(), self.new.gold, strict=True)
            if row < len(before)
        ]
        changed = {row for row, old, now in pairs if old and now and old != now}
        if self.changed is not None:
            changed -= {*np.flatnonzero(self.changed).tolist()}
        return list(self.base.case_ids(changed).values())


def side_by_side(
    base: SectionTable, new: SectionTable, asked_base: Ints | None, asked_new: Ints | None
) -> SideBySide:
    """Two runs' cases matched.

    ``asked_*``: the ids of the cases that a run was asked, of which those that it has lines of may
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

"""From the scores of single cases to means, intervals and slices; pure, memory flat.

Rows of scores repeat (most metrics have few distinct values), so distinct rows are counted instead
of kept. Sums are exact: however the cases are ordered, split and merged, the bytes are the same. A
score is a float, None (not applicable) or FAILED; only floats enter a mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import fsum
from operator import add
from typing import TYPE_CHECKING, Any, Final, Literal

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats import exact
from ragmetrics.stats import means as stats_means

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


FAILED: Final = "failed"

Value = float | Literal["failed"] | None

Values = tuple[Value, ...]

Slice = tuple[str, str]
"""A dimension and its value, such as ``("category", "factual")``."""

Slices = tuple[Slice, ...]

Facets = tuple[str | None, str | None, str | None, tuple[str, ...], tuple[str, ...]]


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


class Tally:
    """Counts rows of scores, over all cases and by slice. Not for threads."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._rows: list[Values] = []
        self._counts: dict[Slices, dict[int, int]] = {}
        self._values: list[tuple[NDArray[np.float64], NDArray[np.int64]] | None] = [None] * width
        self._missing = [0] * width
        self._failed = [0] * width
        self._sums: dict[Slice, tuple[list[int], list[int]]] = {}
        """By slice and metric: the sum of the scores in units (``exact.py``), and their number."""

    def new_row(self, values: Values) -> int:
        """A handle for a row of scores (one for each metric), good until the next ``fold``."""
        self._rows.append(values)
        return len(self._rows) - 1

    def add(self, row: int, slices: Slices = (), cases: int = 1) -> None:
        """Count cases whose scores are ``row`` and that belong to ``slices``."""
        self.add_counts({row: cases}, slices)

    def add_counts(self, rows: Mapping[int, int], slices: Slices = ()) -> None:
        """The same for many: how many cases, all of the same ``slices``, have which row."""
        counts = self._counts.setdefault(slices, {})
        for row, cases in rows.items():
            counts[row] = counts.get(row, 0) + cases

    def fold(self) -> None:
        """Turn the counted rows into counts of values by metric and sums by slice."""
        import numpy as np

        if not self._rows:
            return
        table = np.array(
            [
                [None if v == FAILED else v for v in row] if FAILED in row else row
                for row in self._rows
            ],
            dtype=float,
        )
        lost = [[v == FAILED for v in row] for row in self._rows if FAILED in row]
        failed = np.zeros(table.shape, dtype=bool)
        failed[[index for index, row in enumerate(self._rows) if FAILED in row]] = lost or False
        scored = ~np.isnan(table)
        counts = np.zeros(len(self._rows), dtype=np.int64)
        groups: list[tuple[Slices, NDArray[np.int64], NDArray[np.int64]]] = []
        for slices, row_counts in self._counts.items():
            handles = np.fromiter(row_counts, dtype=np.int64)
            times = np.fromiter(row_counts.values(), dtype=np.int64)
            counts[handles] += times
            groups.append((slices, handles, times))
        self._add_limb(groups, 0, scored.astype(np.int64), of=1)
        for shift, limb in exact.limbs(np.where(scored, table, 0.0), int(counts.sum())):
            self._add_limb(groups, shift, limb, of=0)
        for column in range(self.width):
            has_value = scored[:, column]
            self._failed[column] += (lost_here := int(counts[failed[:, column]].sum()))
            self._missing[column] += int(counts[~has_value].sum()) - lost_here
            self._merge(column, table[has_value, column], counts[has_value])
        self._rows, self._counts = [], {}

    def _merge(self, column: int, values: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Add values with counts to what a metric has so far, each distinct value once."""
        import numpy as np

        if (earlier := self._values[column]) is not None:
            values = np.concatenate([earlier[0], values])
            counts = np.concatenate([earlier[1], counts])
        distinct, index = np.unique(values, return_inverse=True)
        total = np.bincount(index, weights=counts, minlength=len(distinct)).astype(np.int64)
        self._values[column] = (distinct[total > 0], total[total > 0])

    def _add_limb(
        self,
        groups: Sequence[tuple[Slices, NDArray[np.int64], NDArray[np.int64]]],
        shift: int,
        limb: NDArray[np.int64],
        of: Literal[0, 1],
    ) -> None:
        """Add a limb of the rows, as often as each group has them, to the group's slices."""
        sums: dict[Slice, NDArray[np.int64]] = {}
        for slices, handles, times in groups:
            part_sum = times @ limb[handles]
            for part in slices:
                sums[part] = sums[part] + part_sum if part in sums else part_sum
        for part, totals in sums.items():
            self._add_sums(part, [total << shift for total in totals.tolist()], of)

    def _add_sums(self, part: Slice, more: Sequence[int], of: Literal[0, 1]) -> None:
        if part not in self._sums:
            self._sums[part] = ([0] * self.width, [0] * self.width)
        sums = self._sums[part][of]
        sums[:] = map(add, sums, more)

    def merge(self, other: Tally) -> None:
        """Add what another tally of the same metrics counted."""
        self.fold()
        other.fold()
        for column, distinct in enumerate(other._values):
            if distinct is not None:
                self._merge(column, *distinct)
            self._missing[column] += other._missing[column]
            self._failed[column] += other._failed[column]
        for part, (sums, numbers) in other._sums.items():
            self._add_sums(part, sums, 0)
            self._add_sums(part, numbers, 1)

    def summary(
        self, metrics: Sequence[Metric], seed: int, resamples: int = stats_means.RESAMPLES
    ) -> dict[str, Any]:
        """Means, 95 % intervals and counts by metric; means and counts by slice.

        A metric that no case scored has mean and interval None. Binary metrics get the Wilson
        interval of a proportion, the others the bootstrap interval of a mean.
        """
        self.fold()
        report: dict[str, Any] = {
            "definitions": {metric.name: metric.definition for metric in metrics},
            "n": {},
            "not_applicable": dict(zip([m.name for m in metrics], self._missing, strict=True)),
            "failed": dict(zip([m.name for m in metrics], self._failed, strict=True)),
            "mean": {},
            "ci95": {},
        }
        for metric, distinct in zip(metrics, self._values, strict=True):
            n = 0 if distinct is None else int(distinct[1].sum())
            report["n"][metric.name] = n
            report["mean"][metric.name] = None
            report["ci95"][metric.name] = None
            if distinct is not None and n:
                values, counts = distinct
                report["mean"][metric.name] = exact.mean(values, counts)
                report["ci95"][metric.name] = list(
                    _interval(metric, values, counts, seed, resamples)
                )
        report["by"] = self._by_slice([metric.name for metric in metrics])
        return report

    def _by_slice(self, names: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Per slice: n = cases that the most widely applicable metric scored, and the means.

        Metrics that scored another number of cases are listed with it under ``n_of``.
        """
        report: dict[str, dict[str, Any]] = {}
        for (dimension, value), (sums, numbers) in sorted(self._sums.items()):
            most = max(numbers)
            if not most:
                continue
            means, fewer = {}, {}
            for name, total, n in zip(names, sums, numbers, strict=True):
                if n:
                    means[name] = exact.rounded(total, n)
                if n and n != most:
                    fewer[name] = n
            entry: dict[str, Any] = {"n": most, "mean": means}
            report.setdefault(dimension, {})[value] = entry | ({"n_of": fewer} if fewer else {})
        return report


def _interval(
    metric: Metric,
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    seed: int,
    resamples: int,
) -> tuple[float, float]:
    if metric.binary and set(values.tolist()) <= {0.0, 1.0}:
        return stats_means.wilson(int(counts[values == 1.0].sum()), int(counts.sum()))
    rng = stats_means.generator(seed, metric.definition + metric.name)
    return stats_means.bootstrap_mean(values, counts, rng, resamples)


def facets_of(case: Any) -> Facets:
    """What decides which slices a case belongs to, as something to count by."""
    return (case.category, case.difficulty, case.query_type, tuple(case.tags), tuple(case.vaults))


@lru_cache(maxsize=4096)
def slices_of(facets: Facets) -> Slices:
    """The slices of a case: category, difficulty, query type, each tag, each vault."""
    names = ("category", "difficulty", "query_type")
    parts = [(name, value) for name, value in zip(names, facets[:3], strict=True) if value]
    parts += [("tag", tag) for tag in dict.fromkeys(facets[3])]
    parts += [("vault", vault) for vault in dict.fromkeys(facets[4])]
    return tuple(parts)

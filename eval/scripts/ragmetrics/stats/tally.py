"""Computes means, intervals and slices from the scores of single cases; pure.

Rows of scores repeat (most metrics have few distinct values), so distinct rows are counted. Sums
are exact: in any order the cases give the same bytes. A score is a float, None (not applicable) or
FAILED; only floats enter a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import fsum
from typing import Any, Final, Literal, NamedTuple

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.arrays import Floats, Ints, np
from ragmetrics.stats.intervals import ALONE, MeanOfGroup, means_of_groups

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


def summary(
    metrics: Sequence[Metric],
    rows: Sequence[Values],
    row_of_case: Sequence[int] | Ints,
    slices_of_case: Sequence[Slices],
    cluster_of_case: Sequence[int] | Ints,
) -> dict[str, Any]:
    """Means, 95 % intervals and counts by metric; the same by slice.

    ``rows``: rows of scores; of each case the place of its row there, its slices, and the number of
    its cluster (``ALONE``: it is one by itself). ``method`` says how an interval was
    computed, ``clusters`` on how many clusters of cases it rests, ``marks`` why it is to be doubted
    or why there is none. A metric that no case scored has mean and interval None. Raises ValueError
    for a score that is not finite.
    """
    names = [metric.name for metric in metrics]
    table = _numbers(rows).reshape(len(rows), len(metrics))
    row_of = np.asarray(row_of_case, int)
    times = np.bincount(row_of, minlength=len(table))
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
    members = _Members.of(slices_of_case, row_of, np.asarray(cluster_of_case, np.int64))
    parts: dict[Slice, dict[str, MeanOfGroup]] = {}
    for column, metric in zip(table.T, metrics, strict=True):
        for mean in _means(metric, column, members):
            parts.setdefault(members.names[mean.group], {})[metric.name] = mean
    for name, mean in parts.pop(_WHOLE, {}).items():
        report["n"][name], report["mean"][name] = mean.n, mean.mean
        report["ci95"][name] = mean.interval.ends
        report["method"][name] = mean.interval.method
        report["clusters"][name] = mean.interval.units
        if mean.interval.mark:
            report["marks"][name] = mean.interval.mark
    report["by"] = _by_slice(parts, names)
    return report


def _numbers(rows: Sequence[Values]) -> Floats:
    """Rows as numbers: not a number for None, ``_LOST`` for FAILED."""
    lost = 0
    try:
        table = np.array(rows, float)
    except ValueError:  # a score is FAILED
        lost = sum(row.count(FAILED) for row in rows)
        table = np.array([[_LOST if v == FAILED else v for v in row] for row in rows], float)
    if np.isinf(table).sum() != lost:
        raise ValueError("only finite numbers have a mean")
    return table


class _Members(NamedTuple):
    """The members of each slice, by its place among ``names``.

    Cases by themselves are counted: ``times`` of them have the row. Of others, which share a
    cluster with another case of the run, each is listed, sorted by slice and then by cluster.
    """

    names: Sequence[Slice]
    groups: Ints
    rows: Ints
    times: Ints
    shared_groups: Ints
    shared_rows: Ints
    clusters: Ints

    @classmethod
    def of(cls, slices_of_case: Sequence[Slices], row_of: Ints, clusters: Ints) -> _Members:
        known: dict[Slices, int] = {}
        combination = np.array([known.setdefault(each, len(known)) for each in slices_of_case], int)
        combinations_of: dict[Slice, list[int]] = {_WHOLE: []}
        for slices, number in known.items():
            for part in dict.fromkeys((_WHOLE, *slices)):
                combinations_of.setdefault(part, []).append(number)
        names = sorted(combinations_of)

        def members(cases: Ints) -> tuple[Ints, Ints]:
            """The slices and the places of some cases, once for each slice of a case."""
            own = combination[cases]
            lists = [np.flatnonzero(np.isin(own, combinations_of[name])) for name in names]
            groups = np.repeat(np.arange(len(names)), list(map(len, lists)))
            return groups, np.concatenate(lists)

        _, of_case, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
        is_shared = (sizes[of_case] > 1) & (clusters != ALONE)
        alone, shared = np.flatnonzero(~is_shared), np.flatnonzero(is_shared)
        pairs = combination[alone] * (row_of.max(initial=0) + 1) + row_of[alone]
        _, first, times = np.unique(pairs, return_index=True, return_counts=True)
        groups, at = members(alone[first])
        shared_groups, shared_at = members(shared)
        own = clusters[shared][shared_at]
        order = np.lexsort((own, shared_groups))
        return cls(
            names,
            groups,
            row_of[alone[first]][at],
            times[at],
            shared_groups[order],
            row_of[shared][shared_at][order],
            own[order],
        )


def _means(metric: Metric, column: Floats, members: _Members) -> list[MeanOfGroup]:
    """The mean of a metric in each slice where a case has a score."""
    if not np.isfinite(column).any():
        return []  # as many metrics of most runs
    levels, level_of_row = np.unique(column, return_inverse=True)
    keys, counts = _counted(
        members.groups * len(levels) + level_of_row[members.rows], members.times
    )
    groups = np.concatenate([keys // len(levels), members.shared_groups])
    level = np.concatenate([keys % len(levels), level_of_row[members.shared_rows]])
    times = np.concatenate([counts, np.ones(len(members.clusters), int)])
    clusters = np.concatenate([np.full(len(keys), ALONE), members.clusters])
    order = np.argsort(groups, kind="stable")
    order = order[np.isfinite(levels)[level[order]]]
    return means_of_groups(
        levels[level[order]],
        times[order],
        groups[order],
        clusters[order],
        metric.low,
        metric.high,
    )


def _counted(keys: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Each number that occurs, ascending, and how often; ``times``: that each counts for."""
    if keys.max(initial=0) > 64 * len(keys):  # few of many: an array of all would be mostly empty
        keys, place = np.unique(keys, return_inverse=True)
        return keys, np.bincount(place, times, len(keys)).astype(int)
    totals = np.bincount(keys, times).astype(int)
    return np.flatnonzero(totals), totals[totals > 0]


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

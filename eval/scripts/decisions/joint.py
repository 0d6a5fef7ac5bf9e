"""Puts the primary metrics of two runs into one table for the joint test, with remarks on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from decisions.change import FEWEST_CLUSTERS, Change
from decisions.coverage import NOTHING
from decisions.engine import Decision, PrimaryTable
from decisions.pairing import ClusterCodes, places_of
from ragmetrics.stats.arrays import Floats, Ints, np
from records.id_numbers import id_of
from records.run import Runs
from records.scores import ALL_BUT_EVIDENCE, ScoreLine

if TYPE_CHECKING:
    from records.section_table import Mask


class PrimaryColumn(NamedTuple):
    """A primary metric of two runs, case by case: not a number where a run has no score, and in
    both for a case that one of them was not asked. ``missing``: asked cases without a result."""

    name: str
    ids: Ints
    a: Floats
    b: Floats
    missing: Mask


def all_ids(columns: Sequence[PrimaryColumn]) -> Ints:
    """The cases of every column."""
    arrays = [column.ids for column in columns]
    if not arrays:
        return np.zeros(0, np.int64)
    if all(np.array_equal(ids, arrays[0]) for ids in arrays):
        return arrays[0]
    return np.array(list(dict.fromkeys(np.concatenate(arrays).tolist())), np.int64)


def table_of(
    columns: Sequence[PrimaryColumn], ids: Ints, clusters: Ints
) -> tuple[PrimaryTable, Mask]:
    """The columns with a row for each of ``ids``, and which of these cases have no result in a
    run."""
    names = tuple(column.name for column in columns)
    a, b = (np.full((len(ids), len(names)), np.nan) for _ in range(2))
    missing = np.zeros(len(ids), bool)
    for at, column in enumerate(columns):
        places = places_of(column.ids, ids)
        a[places, at], b[places, at] = column.a, column.b
        missing[places] |= column.missing
    return PrimaryTable(names, (), clusters, a, b), missing


def usual_reason(
    row: Change, table: PrimaryTable, ids: Ints, folders: tuple[Path, Path], tables: Runs
) -> str:
    """Return the most frequent reason why the lost cases of a metric have no score.

    It is that of the run that lost more of them, as its lines say; "" where other primary metrics
    count why. ``folders``: of base and new.
    """
    coverage = row.coverage or NOTHING
    if coverage.decides or coverage.left_out:
        return ""
    a, b = table.column(row.name)
    by_new = coverage.lost[1] >= coverage.lost[0]
    own, other = (b, a) if by_new else (a, b)
    section, _, metric = row.name.partition(".")
    lines = tables[folders[by_new]].section(section)
    lost = ids[np.isnan(own) & ~np.isnan(other)]
    rows = sorted(lines.rows_of(list(map(id_of, lost.tolist()))).values())
    numbers = map(lines.line_number, rows)
    reasons = Counter(_reason(line, metric) for line in lines.lines(numbers, ALL_BUT_EVIDENCE))
    return max(reasons, key=lambda reason: reasons[reason], default="")


def _reason(line: ScoreLine, metric: str) -> str:
    """Why a line has no score of a metric; "" where it does not say."""
    names = (metric, f"{metric.partition('@')[0]}@*", "*")
    return next((line.reasons[name] for name in names if name in line.reasons), "")


def cluster_notes(
    decision: Decision, table: PrimaryTable, ids: Ints, codes: ClusterCodes
) -> Iterator[str]:
    """Remarks on few clusters, and on one that outweighs the others."""
    for row, both in zip(decision.rows, (table.a + table.b).T, strict=True):
        if row.units == row.n or row.verdict == "no verdict":
            if row.verdict == "too few" and row.n:
                yield f"{row.name}: too few cases ({row.n}) to tell."
            continue
        label, size = codes.largest(ids[~np.isnan(both)])
        spread = row.spread
        if row.units < FEWEST_CLUSTERS:
            yield f"{row.name}: too few groups of cases ({row.units}) to tell."
        elif spread is not None and (size > row.n / 2 or spread.effective < FEWEST_CLUSTERS):
            yield (
                f"{row.name}: {size} of {row.n} cases belong to one group ({label}), so they "
                f"count as much as {spread.effective:.1f} of equal size."
            )

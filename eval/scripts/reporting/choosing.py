"""Which answers of a run to look at first. Pure: what was scanned in, numbers of answers out."""

from __future__ import annotations

import heapq
from math import isnan

from ragmetrics.metric import Metric
from reporting.scan import Name, Scan

SECOND = 0.001
"""What further misses of a section add: they decide only between answers that are else equal."""


def rarity(scan: Scan) -> list[float]:
    """For each check, the share of the answers looked at that keep it, in [0, 1].

    A target that every answer misses says nothing of one answer: its misses weigh 0.
    """
    looked, missed = [0] * len(scan.checks), [0] * len(scan.checks)
    for seen, bad in zip(scan.looked_at, scan.missed, strict=True):
        for place in range(len(scan.checks)):
            looked[place] += seen >> place & 1
            missed[place] += bad >> place & 1
    return [1 - b / n if n else 0.0 for b, n in zip(missed, looked, strict=True)]


def weight(scan: Scan, mask: int, kept: list[float]) -> float:
    """How bad an answer is: the sum over sections of its rarest miss; the rest decides ties."""
    rarest: dict[str, float] = {}
    total = 0.0
    for place, check in enumerate(scan.checks):
        if mask >> place & 1:
            rarest[check.section] = max(rarest.get(check.section, 0.0), kept[place])
            total += kept[place]
    return sum(rarest.values()) + SECOND * total


def worst_rows(scan: Scan, count: int) -> list[int]:
    """The ``count`` answers that miss most, worst first, in set order on ties."""
    kept = rarity(scan)
    known = {mask: weight(scan, mask, kept) for mask in set(scan.missed)}
    return heapq.nsmallest(
        count,
        (row for row, mask in enumerate(scan.missed) if mask),
        key=lambda row: (-known[scan.missed[row]], row),
    )


def worst_by(scan: Scan, name: Name, metric: Metric, count: int) -> list[int]:
    """The ``count`` answers with the worst score of one metric, worst first, in set order on ties.

    Answers without a score are left out.
    """
    sign = 1.0 if metric.higher_is_better else -1.0
    column = scan.column(name)
    rows = (row for row, value in enumerate(column) if not isnan(value))
    return heapq.nsmallest(count, rows, key=lambda row: (sign * column[row], row))

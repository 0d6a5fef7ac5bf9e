"""Which answers of a run are its worst, and what a stored calibration tells of its judge. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from math import isnan
from typing import Any

from decisions.calibration_words import (
    figure_names,
    judge_name,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from decisions.gate_calibration import labelled
from ragmetrics.catalogue.metric import Metric
from views.report.scan import Name, Scan
from views.report.text import cut

MOST_DISAGREEMENTS = 10

JUDGE_QUOTE = 600

SLICE_FIGURES = ("specificity", "sensitivity", "kappa")

Part = dict[str, Any]


def calibration(found: Mapping[str, Any]) -> Part:
    """What a stored calibration holds, in the order in which a report tells it.

    ``tables``: heads and rows of counts, labels by verdicts. ``figures`` and ``shares`` are rows of
    name, value and interval; figures are empty when too few claims are labelled, and ``too_few``
    then tells how many are.
    """
    prompt, labels, words = found["prompt"], found.get("labels") or {}, words_of(found)
    figures, corrected = found.get("figures") or {}, found.get("corrected") or {}
    shares = []
    for name, text in share_names(found).items():
        row = corrected.get(name)
        shares.append(
            (text, row["mean"], row["ci95"]) if isinstance(row, dict) else (text, row, None)
        )
    return {
        "judge": judge_name(found["judge"]),
        "prompt": f"{prompt.get('name')}@{prompt.get('version')}" if prompt else None,
        "metric": found["metric"],
        "items": words["items"],
        "good": words["good"],
        "bad": words["bad"],
        "groups": words["sources"],
        "n": found.get("n", 0),
        "sources": found.get("sources", 0),
        "supported": found.get("supported", 0),
        "unsupported": found.get("unsupported", 0),
        "too_few": f"{labelled(found)} are labelled" if found["too_few"] else None,
        "annotators": sorted(labels.get("annotators") or {}),
        "alpha": labels.get("alpha"),
        "confusion": found.get("confusion"),
        "tables": [{"head": head, "rows": rows} for head, rows in verdict_tables(found)],
        "figures": [
            {"name": text, "value": row.get("value"), "ci95": row.get("ci95")}
            for name, text in figure_names(found).items()
            if (row := figures.get(name)) is not None
        ],
        "shares": [
            {"name": name, "value": value, "ci95": interval}
            for name, value, interval in shares
            if value is not None
        ],
        "slices": _slices(found.get("by") or {}),
        "worst": [
            _disagreement(one) | {"human": people_say(found, one["human"])}
            for one in (found.get("worst") or ())[:MOST_DISAGREEMENTS]
        ],
    }


def _slices(by: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Part]:
    counts = ("n", "unsupported", "agree")
    return [
        {"dimension": dimension, "value": value}
        | {name: part.get(name) for name in (*counts, *SLICE_FIGURES)}
        for dimension, values in by.items()
        for value, part in values.items()
    ]


def _disagreement(one: Mapping[str, Any]) -> Part:
    kept = {name: one.get(name) for name in ("case_id", "claim_id", "verdict", "reason")}
    return kept | {"claim": cut(one.get("claim"), JUDGE_QUOTE)}


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

"""Which answers of a run are its worst, and what a stored calibration tells of its judge. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from math import isnan
from typing import Any

from decisions.judge_calibration import (
    figure_names,
    judge_name,
    labelled,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from views.report.scan import Name, Scan
from views.report.text import cut

MOST_DISAGREEMENTS = 10

JUDGE_QUOTE = 600

SLICE_FIGURES = ("specificity", "sensitivity", "kappa")

Part = dict[str, Any]


def calibration(stored: Mapping[str, Any]) -> Part:
    """What a stored calibration holds, in the order in which a report tells it.

    ``tables``: heads and rows of counts, labels by verdicts. ``figures`` and ``shares`` are rows of
    name, value and interval; figures are empty when too few claims are labelled, and ``too_few``
    then tells how many are.
    """
    prompt, labels, words = stored["prompt"], stored.get("labels") or {}, words_of(stored)
    figures, corrected = stored.get("figures") or {}, stored.get("corrected") or {}
    shares = []
    for name, text in share_names(stored).items():
        row = corrected.get(name)
        shares.append(
            (text, row["mean"], row["ci95"]) if isinstance(row, dict) else (text, row, None)
        )
    return {
        "judge": judge_name(stored["judge"]),
        "prompt": f"{prompt.get('name')}@{prompt.get('version')}" if prompt else None,
        "metric": stored["metric"],
        "items": words["items"],
        "good": words["good"],
        "bad": words["bad"],
        "groups": words["sources"],
        "n": stored.get("n", 0),
        "sources": stored.get("sources", 0),
        "supported": stored.get("supported", 0),
        "unsupported": stored.get("unsupported", 0),
        "too_few": f"{labelled(stored)} are labelled" if stored["too_few"] else None,
        "annotators": sorted(labels.get("annotators") or {}),
        "alpha": labels.get("alpha"),
        "confusion": stored.get("confusion"),
        "tables": [{"head": head, "rows": rows} for head, rows in verdict_tables(stored)],
        "figures": [
            {"name": text, "value": row.get("value"), "ci95": row.get("ci95")}
            for name, text in figure_names(stored).items()
            if (row := figures.get(name)) is not None
        ],
        "shares": [
            {"name": name, "value": value, "ci95": interval}
            for name, value, interval in shares
            if value is not None
        ],
        "slices": _slices(stored.get("by") or {}),
        "worst": [
            _disagreement(disagreement) | {"human": people_say(stored, disagreement["human"])}
            for disagreement in (stored.get("worst") or ())[:MOST_DISAGREEMENTS]
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


def _disagreement(disagreement: Mapping[str, Any]) -> Part:
    fields = {name: disagreement.get(name) for name in ("case_id", "claim_id", "verdict", "reason")}
    return fields | {"claim": cut(disagreement.get("claim"), JUDGE_QUOTE)}


def worst_rows(scan: Scan, count: int) -> list[int]:
    """The ``count`` answers that fail, by the most harmful reason first, then those with more
    reasons, then in set order."""
    ruling = scan.verdicts.ruling
    order: dict[int, tuple[int, int]] = {}
    for broken in set(scan.verdicts.broken):
        fails = ruling.settle(broken)[0]
        if fails:
            order[broken] = ((fails & -fails).bit_length(), -fails.bit_count())
    return heapq.nsmallest(
        count,
        (row for row, broken in enumerate(scan.verdicts.broken) if broken in order),
        key=lambda row: (*order[scan.verdicts.broken[row]], row),
    )


def worst_by(scan: Scan, name: Name, higher_is_better: bool, count: int) -> list[int]:
    """The ``count`` answers with the worst score of one metric, worst first, in set order on ties.

    Answers without a score are left out.
    """
    sign = 1.0 if higher_is_better else -1.0
    column = scan.column(name)
    rows = (row for row, value in enumerate(column) if not isnan(value))
    return heapq.nsmallest(count, rows, key=lambda row: (sign * column[row], row))

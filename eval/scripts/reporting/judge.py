"""The judge in a report: how it holds against people, and what it said of one answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibration.gate import labelled
from calibration.show import (
    figure_names,
    judge_name,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from reporting.text import cut

GOOD = {"supported", "present", "attributed"}
MOST_DISAGREEMENTS, MOST_VERDICTS = 10, 12
QUOTE = 600
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
    return kept | {"claim": cut(one.get("claim"), QUOTE)}


def verdicts(evidence: Mapping[str, Any]) -> list[Part]:
    """What the judge said of the claims and facts of one answer, the bad news first."""
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for kind, name in (("claim", "claims"), ("fact", "facts"), ("fact", "facts_in_contexts")):
        found: Sequence[Mapping[str, Any]] = evidence.get(name) or ()
        rows += [(kind, one) for one in found]
    rows.sort(key=lambda row: row[1].get("verdict") in GOOD)
    return [
        {
            "kind": kind,
            "verdict": one.get("verdict"),
            "good": one.get("verdict") in GOOD,
            "text": cut(one.get("text", ""), QUOTE),
            "quote": cut(one.get("quote"), QUOTE),
            "reason": one.get("reason"),
            "blame": one.get("blame"),
        }
        for kind, one in rows[:MOST_VERDICTS]
    ]

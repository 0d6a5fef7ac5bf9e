"""The parts of a report that come from metrics.json: metrics, slices, latency, verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragmetrics.metric import Metric
from ragmetrics.stats import UNRELIABLE_BELOW
from reporting import naming
from reporting.words import MARKS
from suite.diagnosis import HEADLINES, health
from suite.measures import Measure, band
from targets import parse_target

Found = Mapping[tuple[str, str], Measure]
Part = dict[str, Any]
MOST_SLICES = 30
PROMPT_SECTION = "safety"


def coverage(n: int, not_applicable: int, failed: int) -> float | None:
    """Cases scored / cases there are, in [0, 1]; None when nothing was counted."""
    total = n + not_applicable + failed
    return n / total if total else None


def perspective(name: str, section: Mapping[str, Any], found: Found) -> Part:
    """One section: its metrics in catalogue order, whether it is healthy, and what to know of it.

    ``healthy``: True when all measured headline metrics keep their targets (those of the suite's
    diagnosis, else all that have one), False when one does not, None when none was measured.
    """
    rows = naming.rows_of(section)
    names = naming.metrics_in_order(section)
    shown = set(naming.summary_of(name, names))
    names += [metric for section, metric in found if section == name and metric not in names]
    metrics = [_metric(found[name, one], rows.get(one), one in shown) for one in names]
    aimed = [one["passed"] for one in metrics if one["target"] is not None]
    known = [one for one in aimed if one is not None]
    healthy = health(found, name) if name in HEADLINES else (all(known) if known else None)
    return {
        "name": name,
        "measured": any(one["n"] for one in metrics),
        "healthy": healthy,
        "targets": len(aimed),
        "measured_targets": len(known),
        "kept_targets": sum(known),
        "notes": _notes(section),
        "options": section.get("options", {}),
        "metrics": metrics,
    }


def _metric(one: Measure, row: Metric | None, shown: bool) -> Part:
    return {
        "metric": one.metric,
        "definition": one.definition,
        "meaning": row.meaning if row else "",
        "unit": row.unit if row else "",
        "low": row.low if row else None,
        "high": row.high if row else None,
        "higher_is_better": one.higher_is_better,
        "summary": shown or one.target is not None,
        "mean": one.mean,
        "ci95": list(one.ci95) if one.ci95 else None,
        "n": one.n,
        "not_applicable": one.not_applicable,
        "failed": one.failed,
        "coverage": coverage(one.n, one.not_applicable, one.failed),
        "few": 0 < one.n < UNRELIABLE_BELOW,
        "target": one.target,
        "passed": one.passed,
        "close": _close(one),
        "band": one.band,
    }


def _close(one: Measure) -> bool:
    """True when the interval holds values that keep the target and values that miss it."""
    target = parse_target(one.target)
    if target is None or one.passed is None or one.ci95 is None:
        return False
    return target.passed(one.ci95[0]) != target.passed(one.ci95[1])


def _notes(section: Mapping[str, Any]) -> list[str]:
    """Whose guardrails were judged, and which numbers too few texts stand behind."""
    notes = [f"{name}: {text}" for name, text in section.get("guardrails", {}).items()]
    points = section.get("operating_points", {}).items()
    return notes + [f"{name}: {one['note']}" for name, one in points if one and one["note"]]


def verdict(
    perspectives: Sequence[Part], answers: int, failed_calls: int, missing: str = ""
) -> Part:
    """Targets kept, measured and set over all sections, in a sentence, and which are not kept.

    ``missed``, ``unsure`` (kept, maybe by chance) and ``open`` (no verdict, in a perspective with
    any score) name the targets; ``place`` counts the perspectives from 1. ``doubts``: how far the
    verdict can be trusted. ``missing``: the remark on asked cases without a result, if any is.
    """
    aimed = [
        {"place": place, "section": part["name"]}
        | {key: one[key] for key in ("metric", "mean", "target", "passed", "close", "few")}
        for place, part in enumerate(perspectives, start=1)
        for one in part["metrics"]
        if one["target"] is not None
    ]
    known = [one for one in aimed if one["passed"] is not None]
    missed = [one for one in known if not one["passed"]]
    unknown = [one for one in aimed if one["passed"] is None]
    measured = {part["name"] for part in perspectives if part["measured"]}
    text = f"{len(known) - len(missed)} of {len(known)} measured targets are kept"
    if unknown:
        text += f", {len(unknown)} could not be measured"
    if not aimed:
        text = "No target is set for what was measured"
    if not answers:
        text = f"The run holds no answer to a case; {text[0].lower()}{text[1:]}"
    return {
        "targets": len(aimed),
        "measured": len(known),
        "kept": len(known) - len(missed),
        "says": f"{text}.",
        "doubts": list(_doubts(known, answers, failed_calls, missing)),
        "missed": missed,
        "unsure": [one for one in known if one["passed"] and one["close"]],
        "open": [one for one in unknown if one["section"] in measured],
    }


def _doubts(known: Sequence[Part], answers: int, failed_calls: int, missing: str) -> Iterator[str]:
    if missing:
        yield f"{missing}. They count in no mean."
    if failed_calls:
        yield f"Failed calls: {failed_calls:,} of {answers:,}. They count in no mean."
    if few := sum(one["few"] for one in known):
        yield f"Verdicts on fewer than {UNRELIABLE_BELOW} cases each: {few:,} of {len(known):,}."
    if close := sum(one["close"] for one in known):
        yield (
            f"Verdicts that may be chance (≈): {close:,} of {len(known):,}. The 95 % interval "
            "reaches to both sides of the target."
        )


def slices(sections: Mapping[str, Mapping[str, Any]], order: Sequence[str]) -> list[Part]:
    """A table a dimension: the metrics that stand for each section, by value.

    Labelled safety prompts have dimensions of their own (``of`` says which kind is counted). Values
    are sorted by name; of more than 30 those with most cases are kept and the rest is counted.
    """
    tables = []
    cases = [name for name in order if name != PROMPT_SECTION]
    for of, names in (("cases", cases), ("safety prompts", [PROMPT_SECTION])):
        known = {name: sections[name].get("by", {}) for name in names if name in sections}
        dimensions = dict.fromkeys(one for by in known.values() for one in by)
        for dimension in dimensions:
            if of == "cases" or dimension != "tag":
                tables.append(_slice_table(sections, known, dimension, of))
    return [one for one in tables if one["rows"] and one["columns"]]


def _slice_table(
    sections: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, Mapping[str, Any]],
    dimension: str,
    of: str,
) -> Part:
    columns = []
    for name, by in known.items():
        names = naming.metrics_in_order(sections[name])
        measured = {key for part in by.get(dimension, {}).values() for key in part["mean"]}
        chosen = [one for one in naming.summary_of(name, names) if one in measured]
        columns += [(name, one) for one in chosen[: naming.SLICED if of == "cases" else None]]
    counts: dict[str, int] = {}
    for by in known.values():
        for value, part in by.get(dimension, {}).items():
            counts[value] = max(counts.get(value, 0), part["n"])
    kept = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_SLICES]
    rows = {name: naming.rows_of(sections[name]) for name in known}
    table = []
    for value in sorted(kept):
        cells = []
        for name, metric in columns:
            part = known[name].get(dimension, {}).get(value, {"n": 0, "mean": {}})
            mean, row = part["mean"].get(metric), rows[name].get(metric)
            n = part.get("n_of", {}).get(metric, part["n"]) if mean is not None else 0
            cells.append({"mean": mean, "n": n, "band": band(mean, row) if row else None})
        few = counts[value] < UNRELIABLE_BELOW
        table.append({"value": value, "n": counts[value], "few": few, "cells": cells})
    return {
        "dimension": dimension,
        "of": of,
        "columns": [{"section": name, "metric": metric} for name, metric in columns],
        "rows": table,
        "left_out": len(counts) - len(kept),
    }


def latency(section: Mapping[str, Any] | None) -> Part:
    """Percentiles by stage in milliseconds, budgets of the run, tokens and cost."""
    section = section or {}
    stages = section.get("latency_ms", {})
    order = ("guardrail_input", "retrieve", "generate", "guardrail_output", "total")
    names = [name for name in order if name in stages]
    names += sorted(set(stages) - set(names))
    return {
        "stages": [
            {"stage": name} | {mark: stages[name][mark] for mark in (*MARKS, "n")} for name in names
        ],
        "budgets": section.get("run_budgets", []),
        "tokens": section.get("usage", {}),
        "cost_usd": section.get("cost_usd"),
    }


def outcomes(section: Mapping[str, Any] | None) -> Part:
    """How responses ended, expected outcomes in rows; {} where nothing was expected."""
    table: Mapping[str, Mapping[str, int]] = (section or {}).get("outcomes", {})
    columns = sorted({name for row in table.values() for name in row})
    rows = [
        {"expected": wanted, "counts": [row.get(name, 0) for name in columns]}
        for wanted, row in table.items()
    ]
    return {"columns": columns, "rows": rows}


def ranks(counts: Mapping[int, int]) -> Part:
    """How many answers have their first relevant passage at each rank; 0 in ``counts``: nowhere.

    Ranks from 1 to 10 stand alone, higher ones in growing groups.
    """
    groups = [(rank, rank) for rank in range(1, 11)]
    groups += [(11, 20), (21, 50), (51, 100), (101, 10**9)]
    last = max(counts, default=0)
    bins = []
    for first, end in groups:
        if first > max(last, 5):
            break
        label = str(first) if first == end else f"{first}–{end}" if end < 10**9 else f"{first}+"
        count = sum(times for rank, times in counts.items() if first <= rank <= end)
        bins.append({"rank": label, "count": count})
    return {"n": sum(counts.values()), "bins": bins, "not_found": counts.get(0, 0)}

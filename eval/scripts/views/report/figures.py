"""The parts of a report that come from metrics.json: metrics, slices, latency, verdict. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from decisions.diagnosis import health
from decisions.measures import UNCLEAR_BAND, Measure, band, known_metrics, targets_text
from decisions.repeat_rows import pass_lines, stability_rows
from ragmetrics.catalogue import METRICS, SECTIONS, headline
from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.agreement import spearman
from ragmetrics.stats.means import UNRELIABLE_BELOW, wilson
from records.targets import parse_target
from views.report.words import MARKS

Measures = Mapping[tuple[str, str], Measure]

Part = dict[str, Any]

MOST_SLICES = 30

PROMPT_SECTION = "safety"


def _coverage(n: int, not_applicable: int, failed: int) -> float | None:
    """Cases scored / cases there are, in [0, 1]; None when nothing was counted."""
    total = n + not_applicable + failed
    return n / total if total else None


def perspective(name: str, section: Mapping[str, Any], measured: Measures) -> Part:
    """One section: its metrics in catalogue order, whether it is healthy, and what to know of it.

    ``healthy``: True when all measured metrics that count keep their targets, False when one does
    not, None when none was measured.
    """
    rows = rows_of(section)
    names = metrics_in_order(section)
    shown = set(summary_of(name, names))
    names += [metric for section, metric in measured if section == name and metric not in names]
    metrics = [
        _metric(measured[name, metric_name], rows.get(metric_name), metric_name in shown)
        for metric_name in names
    ]
    aimed = [metric["passed"] for metric in metrics if metric["target"] is not None]
    verdicts = [passed for passed in aimed if passed is not None]
    return {
        "name": name,
        "measured": any(metric["n"] for metric in metrics),
        "healthy": health(measured, name),
        "targets": len(aimed),
        "measured_targets": len(verdicts),
        "kept_targets": sum(verdicts),
        "close_targets": sum(bool(metric["passed"]) and metric["close"] for metric in metrics),
        "notes": _notes(section),
        "options": section.get("options", {}),
        "metrics": metrics,
    }


def _metric(measure: Measure, row: Metric | None, shown: bool) -> Part:
    return {
        "metric": measure.metric,
        "definition": measure.definition,
        "words": _words_of(measure, row),
        "meaning": row.meaning if row else "",
        "unit": row.unit if row else "",
        "low": row.low if row else None,
        "high": row.high if row else None,
        "higher_is_better": measure.higher_is_better,
        "summary": shown or bool(measure.target or measure.advisory),
        "mean": measure.mean,
        "ci95": list(measure.ci95) if measure.ci95 else None,
        "n": measure.n,
        "not_applicable": measure.not_applicable,
        "failed": measure.failed,
        "coverage": _coverage(measure.n, measure.not_applicable, measure.failed),
        "few": 0 < measure.n < UNRELIABLE_BELOW,
        "mark": measure.mark,
        "target": measure.target,
        "advisory": measure.advisory,
        "passed": measure.passed,
        "close": _close(measure),
        "band": measure.band,
    }


def _words_of(measure: Measure, row: Metric | None) -> str:
    """The metric in plain words; also of an older version, whose exact meaning is not known."""
    if row is None:
        same = (metric for metric in METRICS if metric.name == measure.metric.partition("@")[0])
        stem = measure.definition.partition("@")[0]
        row = next((m for m in same if m.definition.partition("@")[0] == stem), None)
    words = row.in_words(measure.metric) if row else ""
    return f"{words} (per search)" if measure.per_search else words


def _close(measure: Measure) -> bool:
    """True when the interval holds values that keep the target and values that miss it."""
    target = parse_target(measure.target)
    if target is None or measure.passed is None or measure.ci95 is None:
        return False
    return target.passed(measure.ci95[0]) != target.passed(measure.ci95[1])


def _notes(section: Mapping[str, Any]) -> list[str]:
    """Whose guardrails were judged, and which numbers too few texts stand behind."""
    notes = [f"{name}: {text}" for name, text in section.get("guardrails", {}).items()]
    points = section.get("operating_points", {}).items()
    return notes + [f"{name}: {point['note']}" for name, point in points if point and point["note"]]


_AIM = ("metric", "words", "mean", "target", "passed", "close", "few")


def verdict(
    perspectives: Sequence[Part], answers: int, failed_calls: int, missing: str = ""
) -> Part:
    """Targets met, missed and not measured over all sections, in a sentence and by name.

    ``missed``, ``unsure`` (met, but too close to call) and ``open`` (no verdict, in a perspective
    with any score) name the targets; ``place`` counts the perspectives from 1. ``doubts``: how far
    the verdict can be trusted. ``missing``: the remark on asked cases without a result, if any is.
    """
    aimed = [
        {"place": number, "section": part["name"]} | {key: metric[key] for key in _AIM}
        for number, part in enumerate(perspectives, start=1)
        for metric in part["metrics"]
        if metric["target"] is not None
    ]
    decided = [aim for aim in aimed if aim["passed"] is not None]
    missed = [aim for aim in decided if not aim["passed"]]
    unknown = [aim for aim in aimed if aim["passed"] is None]
    measured = {part["name"] for part in perspectives if part["measured"]}
    text = targets_text(len(decided) - len(missed), len(missed), len(unknown))
    if not aimed:
        text = "No target is set for what was measured"
    if not answers:
        text = f"The run holds no answer to a case; {text[0].lower()}{text[1:]}"
    return {
        "targets": len(aimed),
        "measured": len(decided),
        "kept": len(decided) - len(missed),
        "says": f"{text}.",
        "doubts": list(_doubts(decided, answers, failed_calls, missing)),
        "missed": missed,
        "unsure": [aim for aim in decided if aim["passed"] and aim["close"]],
        "open": [aim for aim in unknown if aim["section"] in measured],
    }


def _doubts(
    decided: Sequence[Part], answers: int, failed_calls: int, missing: str
) -> Iterator[str]:
    if missing:
        yield f"{missing}. They count as 0 in answered and pass, and in no other mean."
    if failed_calls:
        yield (
            f"Failed calls: {failed_calls:,} of {answers:,}. They count as 0 in answered and pass, "
            "and in no other mean."
        )
    if few := sum(aim["few"] for aim in decided):
        yield f"Verdicts on fewer than {UNRELIABLE_BELOW} cases each: {few:,} of {len(decided):,}."
    if close := sum(aim["close"] for aim in decided):
        yield (
            f"{close:,} of {len(decided):,} results are too close to call (≈): their 95 % interval "
            "includes the target."
        )


def slices(sections: Mapping[str, Mapping[str, Any]], order: Sequence[str]) -> list[Part]:
    """A table a dimension: the metrics that stand for each section, by value.

    Labelled safety prompts have dimensions of their own (``of`` says which kind is counted). Values
    are sorted by name; of more than 30 those with most cases are kept and the rest is counted.
    """
    tables = []
    cases = [name for name in order if name != PROMPT_SECTION]
    for of, names in (("cases", cases), ("safety prompts", [PROMPT_SECTION])):
        slices_of = {name: sections[name].get("by", {}) for name in names if name in sections}
        dimensions = dict.fromkeys(dimension for by in slices_of.values() for dimension in by)
        for dimension in dimensions:
            if of == "cases" or dimension != "tag":
                tables.append(_slice_table(sections, slices_of, dimension, of))
    return [table for table in tables if table["rows"] and table["columns"]]


def _slice_table(
    sections: Mapping[str, Mapping[str, Any]],
    slices_of: Mapping[str, Mapping[str, Any]],
    dimension: str,
    of: str,
) -> Part:
    columns = []
    for name, by in slices_of.items():
        names = metrics_in_order(sections[name])
        measured = {key for part in by.get(dimension, {}).values() for key in part["mean"]}
        chosen = [metric for metric in summary_of(name, names) if metric in measured]
        columns += [(name, metric) for metric in chosen[: SLICED if of == "cases" else None]]
    counts: dict[str, int] = {}
    for by in slices_of.values():
        for value, part in by.get(dimension, {}).items():
            counts[value] = max(counts.get(value, 0), part["n"])
    largest = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_SLICES]
    rows = {name: rows_of(sections[name]) for name in slices_of}
    table = []
    for value in sorted(largest):
        cells = []
        for name, metric in columns:
            part = slices_of[name].get(dimension, {}).get(value, {"n": 0, "mean": {}})
            mean, row = part["mean"].get(metric), rows[name].get(metric)
            n = part.get("n_of", {}).get(metric, part["n"]) if mean is not None else 0
            rated = None
            if row is not None and n >= UNRELIABLE_BELOW:
                # Slices of labelled texts come without intervals.
                ends = part["ci95"].get(metric) if "ci95" in part else (mean, mean)
                rated = band(mean, row, ends)
            cells.append({"mean": mean, "n": n, "band": None if rated == UNCLEAR_BAND else rated})
        few = counts[value] < UNRELIABLE_BELOW
        table.append({"value": value, "n": counts[value], "few": few, "cells": cells})
    return {
        "dimension": dimension,
        "of": of,
        "columns": [{"section": name, "metric": metric} for name, metric in columns],
        "rows": table,
        "left_out": len(counts) - len(largest),
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


def stability(sections: Mapping[str, Any]) -> list[Part]:
    """What repeats tell of each section that was asked several times, for its main metrics."""
    parts = []
    for name, section in sections.items():
        if member := section.get("stability"):
            names = summary_of(name, metrics_in_order(section))
            rows = stability_rows(member, [n for n in names if n in member["metrics"]])
            part = {"section": name, "repeats": member["repeats"], "passes": pass_lines(member)}
            parts.append(part | {"rows": [list(row) for row in rows]})
    return [part for part in parts if part["rows"] or part["passes"]]


def outcomes(section: Mapping[str, Any] | None) -> Part:
    """How responses ended, expected outcomes in rows; {} where nothing was expected."""
    table: Mapping[str, Mapping[str, int]] = (section or {}).get("outcomes", {})
    columns = sorted({name for row in table.values() for name in row})
    rows = [
        {"expected": expected, "counts": [row.get(name, 0) for name in columns]}
        for expected, row in table.items()
    ]
    return {"columns": columns, "rows": rows}


def ranks(first: Iterable[int], successes: Iterable[bool | None] = ()) -> Part:
    """How many answers have their first relevant passage at each rank, and how many succeeded.

    ``first``: by answer, the rank, 0 for nowhere, below 0 for an answer without gold, which counts
    nowhere. ``successes``: by answer, in the same order; None, or absent: nobody knows. Ranks from
    1 to 10 stand alone, higher ones in growing groups. Each group has its answers (``count``),
    those of which success is known (``known``), their share of successes and its 95 % Wilson
    interval, both None without any; ``nowhere`` is the group of rank 0. (Where gold stands in the
    context against success: Liu et al. 2024, "Lost in the Middle".)
    """
    counts: Counter[int] = Counter()
    known: Counter[int] = Counter()
    good: Counter[int] = Counter()
    for rank, success in zip_longest(first, successes):
        if rank is not None and rank >= 0:
            counts[rank] += 1
            known[rank] += success is not None
            good[rank] += success is True
    groups = [(rank, rank) for rank in range(1, 11)]
    groups += [(11, 20), (21, 50), (51, 100), (101, 10**9)]
    last = max(counts, default=0)
    bins = []
    for start, end in groups:
        if start > max(last, 5):
            break
        label = str(start) if start == end else f"{start}–{end}" if end < 10**9 else f"{start}+"
        bins.append({"rank": label} | _rank_group(start, end, counts, known, good))
    return {
        "n": counts.total(),
        "bins": bins,
        "not_found": counts[0],
        "nowhere": _rank_group(0, 0, counts, known, good),
    }


def _rank_group(
    start: int, end: int, counts: Counter[int], known: Counter[int], good: Counter[int]
) -> Part:
    inside = [rank for rank in counts if start <= rank <= end]
    n, right = sum(known[rank] for rank in inside), sum(good[rank] for rank in inside)
    return {
        "from": start,
        "to": end,
        "count": sum(counts[rank] for rank in inside),
        "known": n,
        "success": right / n if n else None,
        "ci95": list(wilson(right, n)) if n else None,
    }


BINS = 10


def bin_of(confidence: float, bins: int = BINS) -> int:
    """The bin of a confidence, counted from 0; the last one holds 1.0."""
    return min(int(confidence * bins), bins - 1)


def reliability(pairs: Iterable[tuple[float, bool]], bins: int = BINS) -> dict[str, Any]:
    """Confidence against success, in ``bins`` bins of equal width; the last one holds 1.0.

    ``ece``: expected calibration error in [0, 1], the mean over bins of |share of successes - mean
    confidence|, weighted by the answers of the bin (Naeini et al. 2015; Guo et al. 2017); 0 is
    perfect. It depends on the number of bins and is biased upwards for few answers. ``brier``: mean
    of (confidence - success)² in [0, 1] (Brier 1950). ``bias``: mean confidence - share of
    successes in [-1, 1]; above 0 the bot is too sure. All three are None without pairs. Each bin
    that holds answers has their number, mean confidence, share of successes and its 95 % Wilson
    interval. Raises ValueError for a confidence outside [0, 1].
    """
    counts, successes, sums = [0] * bins, [0] * bins, [0.0] * bins
    squares = excess = 0.0
    for confidence, success in pairs:
        if not 0 <= confidence <= 1:
            raise ValueError(f"a confidence of {confidence} is outside 0 to 1")
        index = bin_of(confidence, bins)
        counts[index] += 1
        successes[index] += success
        sums[index] += confidence
        squares += (confidence - success) ** 2
        excess += confidence - success
    n = sum(counts)
    rows, error = [], 0.0
    for index, held in enumerate(counts):
        if not held:
            continue
        mean, share = sums[index] / held, successes[index] / held
        error += held * abs(share - mean)
        rows.append(
            {
                "from": index / bins,
                "to": (index + 1) / bins,
                "n": held,
                "confidence": mean,
                "success": share,
                "ci95": list(wilson(successes[index], held)),
            }
        )
    return {
        "n": n,
        "ece": error / n if n else None,
        "brier": squares / n if n else None,
        "bias": excess / n if n else None,
        "bins": rows,
    }


LEAST = 3
"""Fewer pairs always correlate perfectly or not at all."""


def matrix(columns: Sequence[Sequence[float]]) -> dict[str, Any]:
    """``r`` and ``n`` as symmetric lists of lists; columns hold NaN where there is no score.

    r lies in [-1, 1] and is None with fewer than 3 pairs or when one side is constant among them;
    n counts the pairs; on the diagonal a metric meets itself. Spearman's is Pearson's of the ranks,
    ties sharing their mean rank.
    """
    import numpy as np

    coded = [_coded(column) for column in columns]
    size = len(columns)
    r: list[list[float | None]] = [[None] * size for _ in range(size)]
    n = [[0] * size for _ in range(size)]
    for first, (x, x_codes) in enumerate(coded):
        for second, (y, y_codes) in enumerate(coded[: first + 1]):
            both = (x_codes < len(x)) & (y_codes < len(y))
            n[first][second] = n[second][first] = count = int(both.sum())
            if count >= LEAST:
                pairs = x_codes[both].astype(np.int64) * len(y) + y_codes[both]
                distinct, times = np.unique(pairs, return_counts=True)
                r[first][second] = r[second][first] = spearman(
                    x[distinct // len(y)], y[distinct % len(y)], times.astype(float)
                )
    return {"r": r, "n": n}


def _coded(column: Sequence[float]) -> tuple[Any, Any]:
    """The distinct values of a column, and for each row which one it is; the number of them where
    the row has none. Codes take two bytes each where they fit."""
    import numpy as np

    values, codes = np.unique(np.fromiter(column, float, len(column)), return_inverse=True)
    values = values[~np.isnan(values)]
    return values, codes.astype(np.min_scalar_type(len(values)))


ORDER = {metric.definition: position for position, metric in enumerate(METRICS)}

_CUT_OFF = re.compile(r"@(\d+)$")

FEW, SLICED = 6, 2
"""Metrics that stand for a section in charts, and in the tables of slices."""


def sections_in_order(sections: Mapping[str, Any]) -> list[str]:
    """The sections with means, in the order of the suite, those of other scripts behind."""
    sound = [
        name
        for name, section in sections.items()
        if isinstance(section, dict) and "mean" in section
    ]
    first = [name for name in SECTIONS if name in sound]
    return first + sorted(set(sound) - set(first))


def metrics_in_order(section: Mapping[str, Any]) -> list[str]:
    """The metrics of a section as the catalogue has them, cut-offs rising; unknown ones last."""

    def sort_key(name: str) -> tuple[int, int, str]:
        cut_off = _CUT_OFF.search(name)
        at = int(cut_off.group(1)) if cut_off else 0
        return ORDER.get(section["definitions"].get(name, ""), len(ORDER)), at, name

    return sorted(section["mean"], key=sort_key)


def summary_of(section: str, names: Sequence[str]) -> list[str]:
    """The metrics that stand for a section: its headline, else the first few."""
    return headline(section, names) or list(names[:FEW])


def rows_of(section: Mapping[str, Any]) -> dict[str, Metric]:
    """Catalogue rows by the names that a section uses; those of plugins are not known here."""
    rows = known_metrics()
    named = section["definitions"].items()
    return {name: row for name, definition in named if (row := rows.get(definition)) is not None}

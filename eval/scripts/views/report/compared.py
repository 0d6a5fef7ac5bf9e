"""A run against its baseline, as a report shows it. Every verdict is that of decisions/compare.py;
here nothing is calculated, only put into words and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from decisions import compare_words
from decisions.case_changes import Ways, changes_of, read_pair
from decisions.case_rules import read_case_rules
from decisions.committed import compare_committed, is_committed_alone
from decisions.compare import CompareOptions, clusters_of, compare
from decisions.conversations import SHOWN, find_changes
from decisions.flips import Flips, find_flips
from decisions.rows import Comparison, MetricRow
from ragmetrics.catalogue import find
from ragmetrics.catalogue.metric import Metric, at_cutoff
from records.clusters import AUTO
from records.run_table import RunTable, RunTables
from terminal.page import number, p_words, percent
from views.report.text import one_line

MOST_FLIPS = 100
"""Cases of one metric, each way, that are looked up; the others are counted."""

Part = dict[str, Any]


@dataclass(frozen=True)
class CaseChange:
    """A primary score of a case that changed."""

    metric: str
    base: float
    new: float


@dataclass(frozen=True)
class BaselineComparison:
    """``table``: of the baseline. ``part``: what the report contains. ``changes``: by case id, of
    the cases that broke or were fixed, then of those in which only a primary metric changed;
    ``ways``: of the first ones, which of the two."""

    table: RunTable
    part: Part
    changes: Mapping[str, Sequence[CaseChange]] = field(default_factory=dict)
    ways: Mapping[str, Ways] = field(default_factory=dict)


def compare_with(
    base: Path, new: Path, eval_set: Path, targets: Path, *, ignore_invariants: bool = False
) -> BaselineComparison:
    """Hold a run against its baseline as compare_runs.py does; of a baseline of which git holds
    metrics.json alone, the primary metrics.

    Raises IncomparableError for runs that were not measured alike, StorageError for a run that is
    not scored or a damaged file.
    """
    tables = RunTables()
    clusters, remarks = clusters_of((base, new), eval_set, AUTO, tables)
    options = CompareOptions(
        eval_set=eval_set,
        targets=targets,
        ignore_invariants=ignore_invariants,
        override="--ignore-invariants",
    )
    if is_committed_alone(base):
        comparison = compare_committed(base, new, options, clusters)
    else:
        comparison = compare(base, new, options, clusters=clusters, tables=tables)
    return of_comparison(comparison, base, new, eval_set, targets, remarks, tables)


def of_comparison(
    comparison: Comparison,
    base: Path,
    new: Path,
    eval_set: Path,
    targets: Path,
    remarks: Sequence[str] = (),
    tables: RunTables | None = None,
) -> BaselineComparison:
    """A comparison that was made already, with the cases that broke, were fixed, or changed in a
    primary metric. ``tables``: what was read of the runs."""
    tables = tables or RunTables()
    moved = [row for row in comparison.rows if row.primary and (row.rose or row.fell)]
    moved = [] if is_committed_alone(base) else moved
    flips = [
        find_flips(
            base,
            new,
            row,
            MOST_FLIPS,
            eval_set,
            tables=tables,
        )
        for row in sorted(moved, key=_interest)
    ]
    pair = read_pair(base, new, read_case_rules(targets), tables)
    cases = changes_of(pair, MOST_FLIPS)
    ways = {case.case_id: case.way for case in cases.changed} if cases else {}
    changes = _changes(flips, ways)
    part = comparison_part(comparison, remarks)
    part["flips"] = [_flips(found) for found in flips]
    part["cases_say"] = cases.says() if cases else ""
    part["case_counts"] = cases.to_dict() | {"changed": []} if cases else None
    if talks := find_changes(pair, eval_set):
        part["conversations"] = {
            "says": talks.summary(),
            **{
                way: [asdict(talk) | {"says": talk.says()} for talk in changed[:SHOWN]]
                for way, changed in (
                    ("broke", talks.broke),
                    ("earlier", talks.earlier),
                    ("fixed", talks.fixed),
                )
            },
        }
    reasons = {case.case_id: case.reasons for case in cases.changed} if cases else {}
    part["cases_changed"] = [
        _changed(case_id, own, ways.get(case_id, ""), reasons.get(case_id, ()))
        for case_id, own in changes.items()
    ]
    return BaselineComparison(tables[base], part, changes, ways)


def comparison_part(comparison: Comparison, remarks: Sequence[str] = ()) -> Part:
    """Verdicts, rows and remarks of a comparison as JSON data; its flips come besides."""
    primary, telling, quiet = compare_words.row_groups(comparison)
    ranks = {"worse": 0, "mixed": 0, "better": 1}
    rows = [_row(row) for row in primary]
    said = sorted(rows, key=lambda row: ranks.get(row["verdict"], 1 if row["look"] else 2))
    return {
        "base_id": comparison.base_id,
        "new_id": comparison.new_id,
        "headline": comparison.headline,
        "says": compare_words.headline(comparison),
        "cases": compare_words.cases_line(comparison),
        "sentences": [
            {"text": row["says"], "verdict": row["verdict"]} for row in said if row["says"]
        ],
        "primary": rows,
        "exploratory": [_row(row) for row in telling],
        "quiet": [_row(row) for row in quiet],
        "explored": sum(row.p_bh is not None for row in telling + quiet),
        "controls": [str(difference) for difference in comparison.controls],
        "varied": [str(difference) for difference in comparison.varied],
        "notes": [*remarks, *compare_words.remarks(comparison)],
        "legend": compare_words.legend(comparison),
        "flips": [],
        "cases_changed": [],
        "cases_say": "",
        "case_counts": None,
    }


def _changed(case_id: str, changes: Sequence[CaseChange], way: str, reasons: Sequence[str]) -> Part:
    """A case that changed: what became of it and why, and which of its scores changed."""
    return {
        "case_id": case_id,
        "kind": way,
        "changes": [asdict(change) for change in changes],
        "question": "",
        "why": list(reasons[:MOST_WHY]),
    }


def _interest(row: MetricRow) -> tuple[int, float]:
    """Metrics that got worse first, then by how sure that is."""
    order = {"worse": 0, "mixed": 1, "better": 3}
    rank = 2 if row.look else order.get(row.verdict, 4)
    p = row.p_worse if row.p_worse is not None else row.p
    return rank, 1.0 if p is None else p


def catalogue_row(name: str) -> Metric | None:
    """The catalogue's row of a metric by its name; None for those of plugins."""
    try:
        return find(name)
    except KeyError:
        return None


def _row(row: MetricRow) -> Part:
    metric = catalogue_row(row.metric)
    return row.to_dict() | {
        "cells": list(compare_words.row_cells(row)[1:]),
        "words": metric.in_words(row.metric) if metric else "",
        "meaning": metric.meaning if metric else "",
        "low": metric.low if metric else None,
        "high": metric.high if metric else None,
        "unit": metric.unit if metric else "",
        "says": _sentence(row, metric),
    }


def _sentence(row: MetricRow, metric: Metric | None) -> str | None:
    """What a primary metric says now and said before, and the engine's verdict, in a sentence."""
    if not row.primary or row.new is None or row.base is None:
        return None
    text = sentence(metric, row.metric, row.new)
    before = value_in_words(metric, row.base)
    if row.verdict == "mixed" or row.ratio is not None:
        return f"{text} (was {before}): {compare_words.row_cells(row)[-1]}."
    p = row.p_adjusted
    sure = "" if p is None else f", {p_words(p)}"
    verdicts = {
        "worse": f"worse{sure}",
        "better": f"better{sure}",
        "equal": "the same within the margin",
        "too few": f"too few cases to tell ({row.units})",
        "no evidence": f"may be worse, without enough evidence{sure}"
        if row.look
        else f"no evidence of a change{sure}",
    }
    return f"{text} (was {before}): {verdicts.get(row.verdict, row.verdict)}."


def sentence(metric: Metric | None, name: str, value: float) -> str:
    """A metric's value as a sentence without its end, words first."""
    if metric is not None and metric.says:
        said = at_cutoff(metric.says, name)
        return said.replace("{value}", value_in_words(metric, value))
    words = (metric.in_words(name) if metric else "") or one_line(name, 80)
    return f"{words}: {value_in_words(metric, value)}"


def value_in_words(metric: Metric | None, value: float) -> str:
    """A share as whole percents, another number with three digits."""
    if metric is not None and metric.unit == "share" and 0 <= value <= 1:
        return percent(value)
    return number(value)


def _flips(found: Flips) -> Part:
    """Counts, and the cases each way as id, score before, score now."""
    return {
        "metric": found.metric,
        "says": compare_words.flips_summary(found),
        "fell_behind": found.fell_behind,
        "gained": found.gained,
        "worse": [[f.case_id, f.base.score, f.new.score] for f in found.worse],
        "better": [[f.case_id, f.base.score, f.new.score] for f in found.better],
    }


def _changes(flips: Sequence[Flips], ways: Mapping[str, Ways]) -> dict[str, list[CaseChange]]:
    """By case, which scores changed: first what broke, then what was fixed, then what else moved,
    for the worse first."""
    groups: tuple[list[str], ...] = ([], [])
    changes: dict[str, list[CaseChange]] = {case_id: [] for case_id in ways}
    for found in flips:
        name = found.metric.partition(".")[2]
        for better, flip in [(0, f) for f in found.worse] + [(1, f) for f in found.better]:
            change = CaseChange(name, flip.base.score, flip.new.score)
            changes.setdefault(flip.case_id, []).append(change)
            groups[better].append(flip.case_id)
    ordered = dict.fromkeys((*ways, *groups[0], *groups[1]))
    return {case_id: changes[case_id] for case_id in ordered}


MOST_WHY = 3


def explain_changes(part: Part, answers: Sequence[Part]) -> None:
    """Add to the cases that changed their question, and why those that moved fail now."""
    by_id = {answer["case_id"]: answer for answer in answers if not answer["repeat"]}
    for changed in part["cases_changed"]:
        if (answer := by_id.get(changed["case_id"])) is not None:
            changed["question"] = one_line(answer["question"]["text"], 160)
            changed["why"] = changed["why"] or answer["fails"][:MOST_WHY]

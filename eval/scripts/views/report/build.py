"""From the files of a run to the one object that every form of the report is drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from decisions.diagnosis import diagnose
from decisions.measures import measures
from ragmetrics.catalogue import right_metrics
from ragmetrics.catalogue.metric import Metric
from records.asked import missing_remark
from records.errors import StorageError
from records.files import sha256_file
from records.metrics import ReportSection, read_metrics, rounded
from records.results import SCHEMA
from records.runs import METRICS, VERSION
from records.targets import Target
from views.detail import describe
from views.report import answers, figures
from views.report.answers import rarity, worst_by, worst_rows
from views.report.scan import (
    PROMPTS,
    CaseCheck,
    Name,
    ResultsScan,
    Scan,
    checks_of,
    keys_at,
    lines_at,
    read_calibrations,
    read_cases,
    read_judged,
    read_results,
    scan_scores,
)
from views.report.text import cut, page_bytes

MOST_CORRELATED = 20

TEXT_BUDGET = 3_000_000
"""Bytes that all listed answers may take together on the page."""


@dataclass(frozen=True)
class ReportOptions:
    """What the user asked for besides the run."""

    eval_set: Path
    labels_dir: Path | None
    targets: Mapping[str, Mapping[str, Target]]
    advisory: Mapping[str, Mapping[str, Target]] = field(default_factory=dict)
    worst: int = 20
    worst_by: str | None = None
    confidence_by: str | None = None
    correlation: figures.Method = "spearman"


def build(folder: Path, options: ReportOptions) -> dict[str, Any]:
    """The report of a run as JSON: rounded floats, no clock, the same for the same files.

    Raises StorageError when nothing was scored, when a file is damaged, or when an option names a
    metric that the run has not.
    """
    metrics = read_metrics(folder, ReportSection)
    order = figures.sections_in_order(metrics.get("sections", {}))
    sections = {name: metrics["sections"][name] for name in order}
    if not sections:
        raise StorageError(
            f"{folder / METRICS}: holds no section; score the run first (eval_suite.py)."
        )
    rated = measures(sections, options.targets, advisory=options.advisory)
    perspectives = [figures.perspective(name, sections[name], rated) for name in order]
    scan, success, absent = _scan(folder, sections, options)
    rows = _worst(scan, sections, options)
    back = read_results(folder, scan, rows)
    notes = []
    if absent:
        notes.append(f"Without score file, so without single answers: {', '.join(absent)}.")
    judged = read_calibrations(folder)
    report = {
        "schema": SCHEMA,
        "kind": "report_run",
        "tool_version": VERSION,
        "run_id": metrics.get("run_id") or folder.resolve().name,
        "config_hash": metrics.get("config_hash"),
        "eval_set_sha256": metrics.get("eval_set_sha256"),
        "asked": metrics.get("asked"),
        "cases": metrics.get("cases", 0),
        "missing": metrics.get("missing"),
        "failed_calls": metrics.get("errors", 0),
        "verdict": figures.verdict(
            perspectives,
            metrics.get("cases", 0),
            metrics.get("errors", 0),
            missing_remark(metrics),
        ),
        "notes": notes + back.notes + _set_notes(metrics, options.eval_set),
        "diagnosis": [finding.to_dict() for finding in diagnose(rated, sections)],
        "perspectives": perspectives,
        "slices": figures.slices(sections, order),
        "first_relevant": _first_relevant(scan, _passing(sections) or _right(sections), sections),
        "latency": figures.latency(sections.get("pipeline")),
        "stability": figures.stability(sections),
        "outcomes": figures.outcomes(sections.get("pipeline")),
        "confidence": _confidence(scan, back, success, sections),
        "judge_calibrations": [answers.calibration(stored) for stored in judged],
        "correlations": _correlations(scan, options.correlation),
        "worst": _answers(folder, scan, back, rows, options),
        "prompts": _prompts(scan),
        "errors": back.errors,
        "not_applicable": _not_applicable(scan),
        "configuration": back.configuration,
    }
    rounded_report: dict[str, Any] = rounded(report)
    return rounded_report


def _set_notes(metrics: Mapping[str, Any], eval_set: Path) -> list[str]:
    scored = metrics.get("eval_set_sha256")
    if scored and eval_set.exists() and scored != sha256_file(eval_set):
        return ["The eval set has changed since the run was scored; its texts may differ."]
    return []


def _scan(
    folder: Path, sections: Mapping[str, Any], options: ReportOptions
) -> tuple[Scan, Name | None, list[str]]:
    """Read the score files once, keeping the columns that the report needs."""
    columns: dict[str, list[str]] = {}
    checks: list[CaseCheck] = []
    for name, section in sections.items():
        names = figures.metrics_in_order(section)
        if name != PROMPTS:
            columns[name] = figures.summary_of(name, names)
        must, rows = figures.must_of(name), figures.rows_of(section)
        checks += checks_of(name, names, options.targets.get(name, {}), must, rows)
    success = _named(sections, options.confidence_by) if options.confidence_by else None
    success = success or _right(sections)
    worst = _named(sections, options.worst_by) if options.worst_by else None
    extra = (success, _passing(sections) or _right(sections), worst)
    for named in extra:
        if named and named[1] not in columns[named[0]]:
            columns[named[0]].append(named[1])
    scan, absent = scan_scores(folder, sections, columns, checks)
    return scan, success, absent


def _right(sections: Mapping[str, Any]) -> Name | None:
    """The metric of the run that says best whether an answer is right."""
    return next((metric for metric in right_metrics() if _says(sections, metric)), None)


def _passing(sections: Mapping[str, Any]) -> Name | None:
    """Whether an answer passed all checks of the pipeline; None when that was not scored."""
    section = sections.get("pipeline", {"n": {}})
    return ("pipeline", "pass") if section["n"].get("pass") else None


def _first_relevant(
    scan: Scan, success: Name | None, sections: Mapping[str, Any]
) -> dict[str, Any]:
    """Where the first relevant passage stood, and how often the answer was a success then."""
    metric = figures.rows_of(sections[success[0]]).get(success[1]) if success else None
    bound = figures.success_bound(metric) if metric else None
    if success is None or metric is None or bound is None:
        return figures.ranks(scan.first_ranks) | {"says": None}
    outcomes = (
        None if isnan(score) else figures.is_success(score, metric, bound)
        for score in scan.column(success)
    )
    says = _in_words(success[1], metric, bound)
    return figures.ranks(scan.first_ranks, outcomes) | {"says": says}


def _in_words(name: str, metric: Metric, bound: float) -> str:
    """When an answer is a success."""
    sign = "=" if metric.binary else "≥" if metric.higher_is_better else "≤"
    return f"{name} {sign} {bound:g}"


def _says(sections: Mapping[str, Any], name: Name) -> bool:
    """True when the run has the metric, and not from the embedded judge, which counts words."""
    section = sections.get(name[0])
    if section is None or not section["n"].get(name[1]):
        return False
    judge = section.get("options", {}).get("judge") or {}
    return (judge.get("identity") or {}).get("provider") != "local"


def _named(sections: Mapping[str, Any], metric: str) -> Name:
    """Section and name of a metric that the user named. Raises StorageError for unknown ones."""
    cases = [name for name in sections if name != PROMPTS]
    for name in cases:
        if metric in sections[name]["definitions"]:
            return name, metric
    choices = ", ".join(
        name_of for name in cases for name_of in figures.metrics_in_order(sections[name])
    )
    raise StorageError(f"{metric!r}: the run has no such metric; choose one of: {choices}.")


def _worst(scan: Scan, sections: Mapping[str, Any], options: ReportOptions) -> list[int]:
    if not options.worst_by:
        return worst_rows(scan, options.worst)
    name = _named(sections, options.worst_by)
    row = figures.rows_of(sections[name[0]]).get(name[1]) or Metric(name[1], name[0], "", "", "")
    return worst_by(scan, name, row, options.worst)


def _answers(
    folder: Path, scan: Scan, back: ResultsScan, rows: list[int], options: ReportOptions
) -> dict[str, Any]:
    """The worst answers within the budget of text, the rarest misses first; the rest is counted."""
    keys = keys_at(folder, scan, rows)
    rows = [row for row in rows if keys.get(row) in back.results]
    cases = read_cases(options.eval_set, options.labels_dir, {keys[row][0] for row in rows})
    lines = lines_at(folder, scan, rows)
    judged = read_judged(folder, cases, {keys[row]: back.results[keys[row]] for row in rows})
    rarities = rarity(scan)
    listed: list[dict[str, Any]] = []
    room = TEXT_BUDGET
    for row in rows:
        missed = [bit for bit in range(len(rarities)) if scan.missed[row] >> bit & 1]
        misses = [scan.checks[check] for check in sorted(missed, key=lambda bit: -rarities[bit])]
        key = keys[row]
        answer = describe(
            cases.get(key[0]), back.results[key], lines[row], misses, judged.get(key, {})
        )
        room -= page_bytes(answer)
        if room < 0:
            break
        listed.append(answer)
    failing = sum(mask != 0 for mask in scan.missed)
    return {
        "by": options.worst_by,
        "answers": len(scan.answers),
        "failing": failing,
        "listed": listed,
        "left_out": max(0, failing - len(listed)) if not options.worst_by else 0,
    }


def _confidence(
    scan: Scan, back: ResultsScan, success: Name | None, sections: Mapping[str, Any]
) -> dict[str, Any]:
    """Reliability of the confidences of answers given, or why there is none."""
    if success is None:
        return {"reason": "nothing says which answers are right (no labels, no judge)"}
    section, name = success
    metric = figures.rows_of(sections[section]).get(name)
    bound = figures.success_bound(metric) if metric else None
    if metric is None or bound is None:
        return {"reason": f"{name} has no range, so nothing says from where it is a success"}
    column = scan.column(success)
    left_out = {"abstained": 0, "not scored": 0, "no confidence from 0 to 1": 0}

    def pairs() -> Iterator[tuple[float, bool]]:
        for row, (confidence, score) in enumerate(zip(back.confidences, column, strict=False)):
            if not back.answered[row]:
                continue
            if scan.abstained[row]:
                left_out["abstained"] += 1
            elif not 0 <= confidence <= 1:
                left_out["no confidence from 0 to 1"] += 1
            elif isnan(score):
                left_out["not scored"] += 1
            else:
                yield confidence, figures.is_success(score, metric, bound)

    reliability = figures.reliability(pairs())
    if not reliability["n"]:
        counts = ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
        return {"reason": f"no answer counts ({counts or 'none was read'})"}
    return {
        "success": _in_words(name, metric, bound),
        "left_out": {why: count for why, count in left_out.items() if count},
        **reliability,
    }


def _correlations(scan: Scan, method: figures.Method) -> dict[str, Any]:
    """Correlations of the metrics that stand for their sections and that any answer has.

    Of too many, each section keeps its first ones.
    """
    placed = [
        (rank, (section, name))
        for section, names in scan.columns.items()
        for rank, name in enumerate(names)
        if not all(map(isnan, scan.column((section, name))))
    ]
    shown_names = {name for _, name in sorted(placed, key=lambda entry: entry[0])[:MOST_CORRELATED]}
    shown = [name for _, name in placed if name in shown_names]
    return {
        "method": method,
        "metrics": [{"section": section, "metric": metric} for section, metric in shown],
        "left_out": [name[1] for _, name in placed if name not in shown_names],
        **figures.matrix([scan.column(name) for name in shown], method),
    }


def _prompts(scan: Scan) -> dict[str, Any]:
    """Labelled prompts and texts that the guardrails judged wrongly."""
    listed = []
    for line, misses in scan.wrong_prompts:
        evidence = msgspec.to_builtins(line.evidence) or {}
        listed.append(
            {
                "id": line.case_id,
                "kind": evidence.get("kind"),
                "category": evidence.get("category"),
                "score": evidence.get("score"),
                "misses": misses,
                "text": cut(evidence.get("text"), 600),
            }
        )
    return {"wrong": scan.wrong_prompt_count, "listed": listed}


def _not_applicable(scan: Scan) -> list[dict[str, Any]]:
    """Why scores are missing: a row for each section and reason."""
    rows = []
    for section, reasons in scan.reasons.items():
        for reason, metrics in reasons.items():
            stems = dict.fromkeys(name.partition("@")[0] for name in sorted(metrics))
            row = {"section": section, "reason": reason, "answers": max(metrics.values())}
            rows.append(row | {"metrics": ["all" if stem == "*" else stem for stem in stems]})
    return sorted(rows, key=lambda row: (row["section"], -row["answers"], row["reason"]))

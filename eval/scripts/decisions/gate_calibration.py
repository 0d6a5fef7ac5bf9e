"""Judged metrics count only with a judge that people have checked: rules on its calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from decisions.gate_checks import GateEvidence, every_metric, folded, judged_by, nothing
from decisions.gate_rules import Calibrated, GateRules
from decisions.judge_calibration import Calibration, attacked, fitting, stored_calibrations, too_few
from ragmetrics.catalogue.judged import CALLS_BY_METRIC
from records import calibration
from records.gate_verdict import Check
from records.targets import GATES, Target
from terminal.page import number

RULE, SECTION = "calibration", "judged"


def calibrated(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """A check for each judged metric that a rule names.

    A calibration is looked for in the run folder, then in the files that the rules name; the first
    of the same judge, prompt and parameters counts. Raises StorageError for a file that is none.
    """
    if not rules.calibration:
        return
    calibrations = [
        *stored_calibrations(evidence.new.folder),
        *map(calibration.read, rules.calibrations),
    ]
    judge = judged_by(evidence.new)
    for glob, rule in rules.calibration.items():
        line = rules.lines.get((GATES, RULE, glob))
        names = [
            metric
            for section, metric in every_metric(evidence.new)
            if section == SECTION
            and metric in CALLS_BY_METRIC
            and fnmatchcase(f"{section}.{metric}", glob)
        ]
        if not names:
            yield nothing(RULE, glob, rule, line)
        checks = [replace(_check(metric, rule, judge, calibrations), line=line) for metric in names]
        yield from folded(checks, glob)


def _check(
    metric: str, rule: Calibrated, judge: Mapping[str, Any], calibrations: Sequence[Calibration]
) -> Check:
    """One metric; each kind of verdict that it is counted from must be calibrated."""
    reasons: list[str] = []
    check = Check(RULE, SECTION, metric, "passed", str(rule))
    for call in CALLS_BY_METRIC[metric]:
        record, why = fitting(call, judge, calibrations)
        if record is not None:
            why = _why(record, rule)
            check = _with_figure(check, record, rule)
        reasons += [
            f"{call}: {sentence}" if len(CALLS_BY_METRIC[metric]) > 1 else sentence
            for sentence in why
        ]
    if reasons:
        check = replace(check, status="failed", reason="; ".join(reasons))
    return check


def _why(record: Calibration, rule: Calibrated) -> list[str]:
    """What stands against a calibration of the right judge."""
    if few := too_few(record):
        return [few]
    low = [_low(record["figures"] or {}, name, target) for name, target in rule.bounds]
    return [objection for objection in (*low, attacked(record)) if objection]


def _low(figures: Mapping[str, Any], name: str, target: Target) -> str:
    row = figures.get(name) or {}
    value, interval = row.get("value"), row.get("ci95")
    shown = name.replace("_", " ")
    if value is None or not interval:
        return f"{shown} is not known for these labels, must be {target}"
    if target.passed(interval[0]):
        return ""
    reach = f"{shown} {number(value)} (95 %: {number(interval[0])} – {number(interval[1])})"
    if target.passed(value):
        return f"{reach}: the whole interval must be {target}; label more"
    return f"{reach}, must be {target}"


def _with_figure(check: Check, record: Calibration, rule: Calibrated) -> Check:
    """The first figure that the rule bounds, and how many labels it rests on."""
    name = rule.bounds[0][0] if rule.bounds else ""
    row = (record.get("figures") or {}).get(name) or {}
    interval = row.get("ci95")
    return replace(
        check,
        value=row.get("value"),
        interval=None if interval is None else (interval[0], interval[1]),
        n=record.get("n"),
    )

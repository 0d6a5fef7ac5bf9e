"""Judged metrics count only with a judge that people have checked: rules on its calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from calibration import document, gate
from gating.evidence import Evidence, Side, judged_by
from gating.forms import Calibrated
from gating.numbers import every_metric, folded, nothing
from gating.rules import Rules
from gating.verdict import Check
from judging.casescores import BY_CALL
from judging.tasks import KINDS
from tables import number
from targets import GATES, Target

RULE, SECTION = "calibration", "judged"
Calibration = Mapping[str, Any]


def calibrated(rules: Rules, evidence: Evidence) -> Iterator[Check]:
    """A check for each judged metric that a rule names.

    A calibration is looked for in the run folder, then in the files that the rules name; the first
    of the same judge, prompt and parameters counts. Raises StorageError for a file that is none.
    """
    if not rules.calibration:
        return
    known = _calibrations(rules, evidence.new)
    judge = judged_by(evidence.new)
    for glob, rule in rules.calibration.items():
        line = rules.lines.get((GATES, RULE, glob))
        names = [
            metric
            for section, metric in every_metric(evidence.new)
            if section == SECTION and metric in BY_CALL and fnmatchcase(f"{section}.{metric}", glob)
        ]
        if not names:
            yield nothing(RULE, glob, rule, line)
        found = [replace(_check(metric, rule, judge, known), line=line) for metric in names]
        yield from folded(found, glob)


def _calibrations(rules: Rules, side: Side) -> list[Calibration]:
    own = []
    if side.folder is not None:
        places = [side.folder / document.name_of(metric) for metric in document.METRICS]
        own = [path for path in places if path.exists()]
    return [document.read(path) for path in (*own, *rules.calibrations)]


def _check(
    metric: str, rule: Calibrated, judge: Mapping[str, Any], known: Sequence[Calibration]
) -> Check:
    """One metric; each kind of verdict that it is counted from must be calibrated."""
    reasons: list[str] = []
    check = Check(RULE, SECTION, metric, "passed", str(rule))
    for call in BY_CALL[metric]:
        found, why = _fitting(call, judge, known)
        if found is not None:
            why = _why(found, rule)
            check = _with_figure(check, found, rule)
        reasons += [f"{call}: {one}" if len(BY_CALL[metric]) > 1 else one for one in why]
    if reasons:
        check = replace(check, status="failed", reason="; ".join(reasons))
    return check


def _fitting(
    call: str, judge: Mapping[str, Any], known: Sequence[Calibration]
) -> tuple[Calibration | None, list[str]]:
    """The calibration of this judge and prompt; None with the reasons why there is none."""
    if call not in document.METRICS:
        names = " and ".join(document.METRICS)
        return None, [f"only verdicts of {names} can be held against people; name other metrics"]
    mine = [one for one in known if one["metric"] == call]
    if not mine:
        return None, [
            "nobody has held its judge against people; label with calibrate_judge.py --label "
            f"--metric {call}, or name a stored calibration under files"
        ]
    name = KINDS[call].prompt
    told = judge.get("prompts", {}).get(name)
    judges = [judge["identity"]] if judge.get("identity") else []
    prompts = [{"name": name} | told] if told else []
    why: list[str] = []
    for one in mine:
        said = gate.changes(one, judges, prompts, judge.get("parameters"))
        if not said:
            return one, []
        why = why or said
    return None, why


def _why(found: Calibration, rule: Calibrated) -> list[str]:
    """What stands against a calibration of the right judge."""
    if few := gate.too_few(found):
        return [few]
    low = [_low(found["figures"] or {}, name, target) for name, target in rule.bounds]
    return [said for said in (*low, gate.attacked(found)) if said]


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


def _with_figure(check: Check, found: Calibration, rule: Calibrated) -> Check:
    """The first figure that the rule bounds, and how many labels it rests on."""
    name = rule.bounds[0][0] if rule.bounds else ""
    row = (found.get("figures") or {}).get(name) or {}
    interval = row.get("ci95")
    return replace(
        check,
        value=row.get("value"),
        interval=None if interval is None else (interval[0], interval[1]),
        n=found.get("n"),
    )

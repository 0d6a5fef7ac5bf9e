"""Judged metrics count only with a judge that people have checked: rules on its calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from decisions.gate_checks import GateEvidence, RunNumbers, every_metric, folded, judged_by, nothing
from decisions.gate_rules import Calibrated, GateRules
from ragmetrics.catalogue.judged import CALLS_BY_METRIC
from ragmetrics.stats.calibration import MIN_CLASS
from records import calibration
from records.gate_verdict import Check
from records.targets import GATES, Target
from records.verdicts import KINDS
from terminal.tables import number

RULE, SECTION = "calibration", "judged"

Calibration = Mapping[str, Any]


def calibrated(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """A check for each judged metric that a rule names.

    A calibration is looked for in the run folder, then in the files that the rules name; the first
    of the same judge, prompt and parameters counts. Raises StorageError for a file that is none.
    """
    if not rules.calibration:
        return
    calibrations = _calibrations(rules, evidence.new)
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


def _calibrations(rules: GateRules, side: RunNumbers) -> list[Calibration]:
    own = []
    if side.folder is not None:
        paths = [side.folder / calibration.name_of(metric) for metric in calibration.METRICS]
        own = [path for path in paths if path.exists()]
    return [calibration.read(path) for path in (*own, *rules.calibrations)]


def _check(
    metric: str, rule: Calibrated, judge: Mapping[str, Any], calibrations: Sequence[Calibration]
) -> Check:
    """One metric; each kind of verdict that it is counted from must be calibrated."""
    reasons: list[str] = []
    check = Check(RULE, SECTION, metric, "passed", str(rule))
    for call in CALLS_BY_METRIC[metric]:
        fitting, why = _fitting(call, judge, calibrations)
        if fitting is not None:
            why = _why(fitting, rule)
            check = _with_figure(check, fitting, rule)
        reasons += [
            f"{call}: {sentence}" if len(CALLS_BY_METRIC[metric]) > 1 else sentence
            for sentence in why
        ]
    if reasons:
        check = replace(check, status="failed", reason="; ".join(reasons))
    return check


def _fitting(
    call: str, judge: Mapping[str, Any], calibrations: Sequence[Calibration]
) -> tuple[Calibration | None, list[str]]:
    """The calibration of this judge and prompt; None with the reasons why there is none."""
    if call not in calibration.METRICS:
        names = " and ".join(calibration.METRICS)
        return None, [f"only verdicts of {names} can be held against people; name other metrics"]
    mine = [candidate for candidate in calibrations if candidate["metric"] == call]
    if not mine:
        return None, [
            "nobody has held its judge against people; label with calibrate_judge.py --label "
            f"--metric {call}, or name a stored calibration under files"
        ]
    name = KINDS[call].prompt
    prompt = judge.get("prompts", {}).get(name)
    judges = [judge["identity"]] if judge.get("identity") else []
    prompts = [{"name": name} | prompt] if prompt else []
    why: list[str] = []
    for candidate in mine:
        differences = _changes(candidate, judges, prompts, judge.get("parameters"))
        if not differences:
            return candidate, []
        why = why or differences
    return None, why


def _why(record: Calibration, rule: Calibrated) -> list[str]:
    """What stands against a calibration of the right judge."""
    if few := _too_few(record):
        return [few]
    low = [_low(record["figures"] or {}, name, target) for name, target in rule.bounds]
    return [objection for objection in (*low, _attacked(record)) if objection]


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


def objections(
    record: Mapping[str, Any],
    judges: Sequence[Mapping[str, Any]],
    prompts: Sequence[Mapping[str, Any]],
    *,
    parameters: Mapping[str, Any] | None = None,
    min_kappa: float,
    min_balanced_accuracy: float,
) -> list[str]:
    """What stands against using the run's figures, a sentence each; none when nothing does.

    ``judges`` and ``prompts``: every one that the run's verdicts name. ``parameters``: the run's,
    None when it does not say; what only one side knows is a change.
    """
    sentences = _changes(record, judges, prompts, parameters)
    if few := _too_few(record):
        sentences.append(few)
    else:
        figures = record.get("figures") or {}
        sentences.append(_below(figures, "kappa", min_kappa))
        sentences.append(_below(figures, "balanced_accuracy", min_balanced_accuracy))
    sentences.append(_attacked(record))
    return [sentence for sentence in sentences if sentence]


def _changes(
    record: Mapping[str, Any],
    judges: Sequence[Mapping[str, Any]],
    prompts: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any] | None,
) -> list[str]:
    """Where the judge that was calibrated is not the one of the run, a sentence each."""
    sentences = [_changed("judge", record["judge"], identity) for identity in judges]
    sentences += [_changed("prompt", record["prompt"], prompt) for prompt in prompts]
    asked_with = record.get("parameters") or {}
    sentences.append(_changed("way the judge is asked", asked_with, parameters or {}))
    if not judges:
        sentences.append("the run's verdicts do not say who judged; judge it again")
    return [sentence for sentence in sentences if sentence]


def _too_few(record: Mapping[str, Any]) -> str:
    """That there are too few labels for any figure; "" when there are enough."""
    if not record["too_few"]:
        return ""
    return (
        f"uncalibrated: {labelled(record)} are labelled, {MIN_CLASS} of each are needed; "
        "label more with --label"
    )


def labelled(record: Mapping[str, Any]) -> str:
    """How many claims or facts of either kind people have decided, in words."""
    good, bad = record.get("supported", 0), record.get("unsupported", 0)
    if record.get("metric") == "correctness":
        return f"{good} present and {bad} absent facts"
    return f"{good} supported and {bad} unsupported claims"


def _attacked(record: Mapping[str, Any]) -> str:
    """That attacks move the judge; "" when they do not, or were not tried."""
    if (record.get("attack") or {}).get("passed") is False:
        return "attacks in the answers move its scores more than the limits allow"
    return ""


def _changed(subject: str, calibrated_with: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Where two identities differ, in words; "" when they are the same."""
    names = [
        name
        for name in sorted({*calibrated_with, *now})
        if calibrated_with.get(name) != now.get(name)
    ]
    if not names:
        return ""
    differences = ", ".join(
        f"{name} {_short(calibrated_with.get(name))} → {_short(now.get(name))}" for name in names
    )
    return f"the {subject} is not the one that was calibrated ({differences}); calibrate it again"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"


def _below(figures: Mapping[str, Any], name: str, minimum: float) -> str:
    value = (figures.get(name) or {}).get("value")
    shown = name.replace("_", " ")
    if value is None:
        return f"{shown} is undefined for these labels"
    return f"{shown} {value:.3f} is below {minimum:g}" if value < minimum else ""

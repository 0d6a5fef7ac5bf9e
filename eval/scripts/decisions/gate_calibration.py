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
    known = _calibrations(rules, evidence.new)
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
        found = [replace(_check(metric, rule, judge, known), line=line) for metric in names]
        yield from folded(found, glob)


def _calibrations(rules: GateRules, side: RunNumbers) -> list[Calibration]:
    own = []
    if side.folder is not None:
        places = [side.folder / calibration.name_of(metric) for metric in calibration.METRICS]
        own = [path for path in places if path.exists()]
    return [calibration.read(path) for path in (*own, *rules.calibrations)]


def _check(
    metric: str, rule: Calibrated, judge: Mapping[str, Any], known: Sequence[Calibration]
) -> Check:
    """One metric; each kind of verdict that it is counted from must be calibrated."""
    reasons: list[str] = []
    check = Check(RULE, SECTION, metric, "passed", str(rule))
    for call in CALLS_BY_METRIC[metric]:
        found, why = _fitting(call, judge, known)
        if found is not None:
            why = _why(found, rule)
            check = _with_figure(check, found, rule)
        reasons += [f"{call}: {one}" if len(CALLS_BY_METRIC[metric]) > 1 else one for one in why]
    if reasons:
        check = replace(check, status="failed", reason="; ".join(reasons))
    return check


def _fitting(
    call: str, judge: Mapping[str, Any], known: Sequence[Calibration]
) -> tuple[Calibration | None, list[str]]:
    """The calibration of this judge and prompt; None with the reasons why there is none."""
    if call not in calibration.METRICS:
        names = " and ".join(calibration.METRICS)
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
        said = changes(one, judges, prompts, judge.get("parameters"))
        if not said:
            return one, []
        why = why or said
    return None, why


def _why(found: Calibration, rule: Calibrated) -> list[str]:
    """What stands against a calibration of the right judge."""
    if few := too_few(found):
        return [few]
    low = [_low(found["figures"] or {}, name, target) for name, target in rule.bounds]
    return [said for said in (*low, attacked(found)) if said]


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


def objections(
    found: Mapping[str, Any],
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
    said = changes(found, judges, prompts, parameters)
    if few := too_few(found):
        said.append(few)
    else:
        figures = found.get("figures") or {}
        said.append(_below(figures, "kappa", min_kappa))
        said.append(_below(figures, "balanced_accuracy", min_balanced_accuracy))
    said.append(attacked(found))
    return [sentence for sentence in said if sentence]


def changes(
    found: Mapping[str, Any],
    judges: Sequence[Mapping[str, Any]],
    prompts: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any] | None,
) -> list[str]:
    """Where the judge that was calibrated is not the one of the run, a sentence each."""
    said = [_changed("judge", found["judge"], one) for one in judges]
    said += [_changed("prompt", found["prompt"], one) for one in prompts]
    asked_with = found.get("parameters") or {}
    said.append(_changed("way the judge is asked", asked_with, parameters or {}))
    if not judges:
        said.append("the run's verdicts do not say who judged; judge it again")
    return [sentence for sentence in said if sentence]


def too_few(found: Mapping[str, Any]) -> str:
    """That there are too few labels for any figure; "" when there are enough."""
    if not found["too_few"]:
        return ""
    return (
        f"uncalibrated: {labelled(found)} are labelled, {MIN_CLASS} of each are needed; label more "
        "with --label"
    )


def labelled(found: Mapping[str, Any]) -> str:
    """How many claims or facts of either kind people have decided, in words."""
    good, bad = found.get("supported", 0), found.get("unsupported", 0)
    if found.get("metric") == "correctness":
        return f"{good} present and {bad} absent facts"
    return f"{good} supported and {bad} unsupported claims"


def attacked(found: Mapping[str, Any]) -> str:
    """That attacks move the judge; "" when they do not, or were not tried."""
    if (found.get("attack") or {}).get("passed") is False:
        return "attacks in the answers move its scores more than the limits allow"
    return ""


def _changed(what: str, known: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Where two identities differ, in words; "" when they are the same."""
    names = [name for name in sorted({*known, *now}) if known.get(name) != now.get(name)]
    if not names:
        return ""
    told = ", ".join(
        f"{name} {_short(known.get(name))} → {_short(now.get(name))}" for name in names
    )
    return f"the {what} is not the one that was calibrated ({told}); calibrate it again"


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"


def _below(figures: Mapping[str, Any], name: str, minimum: float) -> str:
    value = (figures.get(name) or {}).get("value")
    shown = name.replace("_", " ")
    if value is None:
        return f"{shown} is undefined for these labels"
    return f"{shown} {value:.3f} is below {minimum:g}" if value < minimum else ""

"""The gate: rules and evidence in, a verdict out. The only place where gates are decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from decisions.conditions import refuse_enriched
from decisions.gate_baseline import baseline_checks, broken_cases, gate_sentences
from decisions.gate_checks import (
    GateEvidence,
    complete,
    failed_calls,
    finished,
    floors,
    folded,
    head_of,
    limits,
    metrics_of,
    must_pass,
    nothing,
    shares,
    unreadable_answers,
)
from decisions.gate_rules import Calibrated, GateRules
from decisions.invariants import judge_of
from decisions.judge_calibration import (
    Calibration,
    attacked,
    calls_behind,
    fitting,
    stored_calibrations,
    too_few,
)
from records import calibration
from records.errors import StorageError
from records.files import sha256_file
from records.gate_verdict import ORDER, Accept, Check, Verdict, with_accepts
from records.targets import GATES, Target
from terminal.page import number
from terminal.tables import counted


def evaluate(
    rules: GateRules,
    evidence: GateEvidence,
    accepts: Sequence[Accept] = (),
    sections: set[str] | None = None,
) -> Verdict:
    """Check a run by all rules, or by those that ``sections`` can answer.

    Raises StorageError for files that cannot be used, for a run that is its own baseline, and for
    accepts of what no rule looks at.
    """
    _refuse_same(evidence)
    if sections is not None:
        rules = rules.within(sections)
    rules_file = rules.path
    rules, foreign = _of_this_set(rules, evidence)
    checks: list[Check] = [
        *foreign,
        complete(rules, evidence),
        *finished(rules, evidence),
        *failed_calls(rules, evidence),
        *unreadable_answers(rules, evidence),
        *floors(rules, evidence),
        *shares(rules, evidence),
        *limits(rules, evidence),
        *calibrated(rules, evidence),
        *must_pass(rules, evidence),
    ]
    notes: Sequence[str] = ()
    says: Sequence[str] = ()
    doubt = ""
    if evidence.base is None:
        checks.append(_skipped(rules))
    else:
        more, result = baseline_checks(rules, evidence, sections)
        notes, says = result.notes, gate_sentences(evidence, result)
        checks += more
        if all(check.status != "failed" for check in checks):
            doubt, warning = broken_cases(evidence, result)
            checks += warning
    judged, accepted = with_accepts(checks, accepts)
    judged.sort(key=lambda check: ORDER.index(check.status))
    return Verdict(
        run_id=evidence.new.id,
        gates=rules.name,
        checks=judged,
        baseline=evidence.base.id if evidence.base else None,
        accepts=accepted,
        caveats=[*_caveats(rules, evidence, accepted), *notes],
        says=says,
        doubt=doubt,
        header=head_of(evidence.new)
        | {
            "gates_sha256": None if rules_file is None else sha256_file(rules_file),
            "seed": evidence.seed,
        },
    )


def _caveats(rules: GateRules, evidence: GateEvidence, accepts: Sequence[Accept]) -> list[str]:
    notes = [
        f"--accept {accept.name} was not needed: nothing of that name failed. Take it away."
        for accept in accepts
        if not accept.needed
    ]
    return notes


def check_names(rules: GateRules, sections: Sequence[str]) -> None:
    """Raises StorageError for rules on sections that do not exist, which nothing could miss."""
    sections = list(dict.fromkeys(sections))
    unknown = [name for name in dict.fromkeys(rules.named()) if name not in {*sections, "run"}]
    if unknown:
        raise StorageError(
            f"{rules.path}: [{'], ['.join(unknown)}]: no such section; the sections are: "
            f"{', '.join(sections)}."
        )


def _refuse_same(evidence: GateEvidence) -> None:
    """Raises StorageError when a run is its own baseline."""
    base, new = evidence.base, evidence.new
    if base is None or base.folder is None or new.folder is None:
        return
    if base.folder.resolve() == new.folder.resolve():
        raise StorageError(f"{new.folder}: is its own baseline; give another run to --baseline.")


def _of_this_set(rules: GateRules, evidence: GateEvidence) -> tuple[GateRules, list[Check]]:
    """The rules; of a file for another set only the built-in ones, and a check that says so."""
    folder = evidence.new.folder
    config = evidence.new.config
    if folder:
        refuse_enriched(folder, config)
    asked = config.dataset.get("path")
    if not rules.made_for or not isinstance(asked, str) or asked == rules.made_for:
        return rules, []
    reason = (
        f"{rules.name} was made for {rules.made_for}, and this run was asked {asked}: only the "
        "built-in rules count. Write rules for this set with gate_run.py --init RUN --gates FILE"
    )
    check = Check("gates", "run", "gates", "skipped", f"rules of {rules.name}", reason=reason)
    bare = GateRules(None, allow_missing=rules.allow_missing, allow_stopped=rules.allow_stopped)
    return bare, [check]


def _skipped(rules: GateRules) -> Check:
    """The rules on a baseline when none was given; a failure where the file demands one."""
    own = len(rules.on("baseline"))
    must = f"no worse, {counted(own, 'rule')}" if own else "no worse"
    reason = "no --baseline was given, so this rule was not checked"
    status: Any = "failed" if rules.require_baseline else "skipped"
    line = rules.lines.get((GATES, "baseline"))
    return Check("baseline", "run", "baseline", status, must, reason=reason, line=line)


RULE = "calibration"


def calibrated(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """A check for each judged metric that a rule names.

    A calibration is looked for in the run folder, then in the files that the rules name; the first
    of the same judge, prompt and parameters counts. Raises StorageError for a file that is none.
    """
    named = rules.on("calibration")
    if not named:
        return
    calibrations = [
        *stored_calibrations(evidence.new.folder),
        *map(calibration.read, rules.calibrations),
    ]
    for rule in named:
        names = [name for name in metrics_of(rule, evidence.new) if calls_behind(*name)]
        if not names:
            yield nothing(rule)
        assert isinstance(rule.must, Calibrated)
        checks = [
            _check(*name, rule.must, judge_of(evidence.new, name[0]), calibrations)
            for name in names
        ]
        yield from folded([replace(check, line=rule.line) for check in checks], rule.name)


def _check(
    section: str,
    metric: str,
    rule: Calibrated,
    judge: Mapping[str, Any],
    calibrations: Sequence[Calibration],
) -> Check:
    """One metric; each kind of verdict that it is counted from must be calibrated."""
    reasons: list[str] = []
    check = Check(RULE, section, metric, "passed", str(rule))
    calls = calls_behind(section, metric)
    for call in calls:
        record, why = fitting(call, judge, calibrations)
        if record is not None:
            why = _why(record, rule)
            check = _with_figure(check, record, rule)
        reasons += [f"{call}: {sentence}" if len(calls) > 1 else sentence for sentence in why]
    if reasons:
        check = replace(check, status="failed", reason="; ".join(reasons))
    return check


def _why(record: Calibration, rule: Calibrated) -> list[str]:
    """Why a calibration of the right judge does not count."""
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

"""The gate: rules and evidence in, a verdict out. The only place where gates are decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from decisions.baseline import EPSILON, noise_of
from decisions.gate_calibration import calibrated
from decisions.gate_checks import (
    GateEvidence,
    RunNumbers,
    complete,
    floors,
    limits,
    missing_cases,
    must_pass,
    paired,
    run_number,
    shares,
    unlike,
)
from decisions.gate_rules import AgainstBase, GateRules
from decisions.measures import known_metrics
from decisions.rows import MetricRow
from ragmetrics.stats.means import UNRELIABLE_BELOW
from records.errors import StorageError
from records.files import sha256_file
from records.gate_verdict import ORDER, Accept, Check, Verdict, with_accepts
from records.targets import GATES
from terminal.tables import counted, number


def evaluate(
    rules: GateRules,
    evidence: GateEvidence,
    accepts: Sequence[Accept] = (),
    sections: set[str] | None = None,
) -> Verdict:
    """Hold a run against all rules, or against those that ``sections`` can answer.

    Raises StorageError for files that cannot be used, for a run that is its own baseline, and for
    accepts of what no rule looks at.
    """
    _refuse_same(evidence)
    if sections is not None:
        rules = rules.within(sections)
    checks: list[Check] = [
        complete(rules, evidence),
        *floors(rules, evidence),
        *shares(rules, evidence),
        *limits(rules, evidence),
        *calibrated(rules, evidence),
        *must_pass(rules, evidence),
    ]
    if evidence.base is None:
        checks += _skipped(rules)
    else:
        checks += _against(rules, evidence, sections)
    judged, accepted = with_accepts(checks, accepts)
    judged.sort(key=lambda check: ORDER.index(check.status))
    return Verdict(
        run_id=evidence.new.label,
        gates=rules.path.name,
        checks=judged,
        baseline=evidence.base.label if evidence.base else None,
        accepts=accepted,
        caveats=_caveats(rules, evidence, accepted),
        header=dict(evidence.new.header)
        | {"gates_sha256": sha256_file(rules.path), "seed": evidence.seed},
    )


def _caveats(rules: GateRules, evidence: GateEvidence, accepts: Sequence[Accept]) -> list[str]:
    notes = [
        f"--accept {accept.name} was not needed: nothing of that name failed. Take it away."
        for accept in accepts
        if not accept.needed
    ]
    if evidence.base is not None and not rules.baseline:
        notes.append(
            f"{rules.path.name} has no [gates.baseline]: only what was lost counts, no number is "
            "held against the baseline's."
        )
    if evidence.base is not None and evidence.base.folder is None:
        notes.append(
            "The baseline has no score lines: differences are judged by the two runs' own "
            "intervals, which asks for more than a comparison case by case."
        )
    return notes


def check_names(rules: GateRules, sections: Sequence[str], path: Path) -> None:
    """Raises StorageError for rules on sections that do not exist, which nothing could miss."""
    sections = list(dict.fromkeys(sections))
    unknown = [name for name in dict.fromkeys(rules.named()) if name not in {*sections, "run"}]
    if unknown:
        raise StorageError(
            f"{path}: [{'], ['.join(unknown)}]: no such section; the sections are: "
            f"{', '.join(sections)}."
        )


SHOWN = 5


def _skipped(rules: GateRules) -> Iterator[Check]:
    """The rules on a baseline when none was given; a failure where the file demands one."""
    if not (rules.baseline or rules.require_baseline):
        return
    must = f"{len(rules.baseline)} rules"
    reason = "no --baseline was given; nothing was held against one"
    status: Any = "failed" if rules.require_baseline else "skipped"
    line = rules.lines.get((GATES, "baseline"))
    yield Check("baseline", "run", "baseline", status, must, reason=reason, line=line)


def _against(
    rules: GateRules, evidence: GateEvidence, sections: set[str] | None = None
) -> Iterator[Check]:
    """All checks against the baseline, in ``sections`` only when given."""
    base = evidence.base
    assert base is not None
    compared = {
        name: section for name, section in base.sections.items() if not sections or name in sections
    }
    base = replace(base, sections=compared)
    evidence = replace(evidence, base=base)
    yield _cases(evidence, rules.allow_missing)
    yield from _measured(evidence, base)
    named = [
        (section, metric, glob, rule)
        for section, metric in base.metrics()
        if (match := rules.of_baseline(f"{section}.{metric}")) and match[1].kind != "none"
        for glob, rule in [match]
    ]
    ruled = {section for section, *_ in named}
    yield comparable(evidence, ruled)
    yield from _coverage(rules, evidence, base, [(rule_of[0], rule_of[1]) for rule_of in named])
    rows = paired(evidence, ruled)
    for section, metric, glob, rule in named:
        yield _metric(
            evidence, section, metric, rule, rows, rules.lines.get((GATES, "baseline", glob))
        )
    yield from _run_numbers(rules, evidence, base)
    yield from _unused(rules, base)


def _cases(evidence: GateEvidence, allowed: int) -> Check:
    """Every case of the baseline must be in the run, but for as many as are allowed."""
    base = evidence.base
    assert base is not None
    must = f"at most {allowed} cases missing" if allowed else "no case missing"
    gone = missing_cases(evidence)
    old, now = base.header.get("cases"), evidence.new.header.get("cases")
    reason = ""
    if gone is None:
        if isinstance(old, int) and isinstance(now, int) and now + allowed < old:
            reason = f"the baseline has {counted(old, 'case')}, the run {now}"
        elif not isinstance(old, int) or not isinstance(now, int):
            reason = "one of the two does not say how many cases it has; score it again"
    elif len(gone) > allowed:
        some = ", ".join(gone[:SHOWN]) + (", …" if len(gone) > SHOWN else "")
        reason = (
            f"{counted(len(gone), 'case')} {'is' if len(gone) == 1 else 'are'} missing: {some}; "
            "ask for missing cases with run_eval.py --resume"
        )
    return Check(
        "cases",
        "run",
        "cases_missing",
        "failed" if reason else "passed",
        must,
        now,
        old,
        reason=reason,
    )


def _measured(evidence: GateEvidence, base: RunNumbers) -> Iterator[Check]:
    """Every section and metric of the baseline must be measured still."""
    new, lost = evidence.new, 0
    for name in base.sections:
        if name not in new.sections:
            lost += 1
            reason = "the run has no such section; score it as the baseline's was"
            yield Check("measured", name, "*", "failed", "measured as before", reason=reason)
    for section, metric in base.metrics():
        if section in new.sections and new.part(section, "mean", metric) is None:
            lost += 1
            was = base.part(section, "mean", metric)
            n, missing, failed = new.counts(section, metric)
            reason = (
                f"was {number(was)}, is no longer measured "
                f"({n} scored, {missing} not applicable, {failed} failed)"
            )
            yield Check(
                "measured",
                section,
                metric,
                "failed",
                "measured as before",
                None,
                was,
                reason=reason,
            )
    if not lost:
        must = f"no metric lost ({len(list(base.metrics()))})"
        yield Check("measured", "run", "metrics", "passed", must)


def comparable(evidence: GateEvidence, sections: set[str]) -> Check:
    """What measures the two runs must be the same: set, labels, judge, options of the scorers."""
    differences = unlike(evidence, sections)
    reason = ""
    if differences:
        reason = (
            f"the runs are not measured alike (baseline → run): {'; '.join(differences)}; "
            "measure one of them again"
        )
    status: Any = "failed" if differences else "passed"
    return Check("comparable", "run", "comparable", status, "measured alike", reason=reason)


def _coverage(
    rules: GateRules, evidence: GateEvidence, base: RunNumbers, named: list[tuple[str, str]]
) -> Iterator[Check]:
    """The share of cases that is scored may not fall, for metrics that a rule names."""
    floors = [(section, metric) for section, table in rules.floors.items() for metric in table]
    line = rules.lines.get((GATES, "coverage_drop"))
    fallen = looked_at = 0
    for section, metric in dict.fromkeys([*named, *floors]):
        old, now = base.counts(section, metric), evidence.new.counts(section, metric)
        if not sum(old) or not sum(now):
            continue
        looked_at += 1
        before, after = old[0] / sum(old), now[0] / sum(now)
        if before - after > rules.coverage_drop + EPSILON:
            fallen += 1
            reason = (
                f"{now[0]} of {sum(now)} cases are scored, in the baseline {old[0]} of {sum(old)}"
            )
            must = f"at most {rules.coverage_drop:g} lower"
            yield Check(
                "coverage", section, metric, "failed", must, after, before,
                delta=after - before, reason=reason, line=line,
            )  # fmt: skip
    if looked_at and not fallen:
        must = f"no lower ({looked_at})"
        yield Check("coverage", "run", "metrics", "passed", must, line=line)


def _metric(
    evidence: GateEvidence,
    section: str,
    metric: str,
    rule: AgainstBase,
    rows: dict[str, MetricRow],
    line: int | None,
) -> Check:
    """One metric under one rule. What cannot be compared fails."""
    new, base = evidence.new, evidence.base
    assert base is not None
    old, now = base.part(section, "mean", metric), new.part(section, "mean", metric)
    check = Check(rule.kind, section, metric, "failed", str(rule), now, old, line=line)
    if now is None:
        return replace(check, rule="measured", reason=f"was {number(old)}, is not measured")
    definitions = [side.part(section, "definitions", metric) for side in (base, new)]
    if definitions[0] != definitions[1]:
        change_text = f"was {definitions[0]}, is {definitions[1]}; score the baseline again"
        return replace(check, rule="measured", reason=f"another definition: {change_text}")
    row = known_metrics(evidence.custom).get(definitions[1])
    if row is None:
        change_text = "no catalogue row says which direction is the good one; give its --plugin"
        return replace(check, rule="measured", reason=change_text)
    change = _change(evidence, section, metric, rows.get(check.name), row.higher_is_better, rule)
    reason = _explain(rule, change)
    return replace(
        check,
        status="failed" if reason else "passed",
        reason=reason,
        delta=change.delta,
        interval=change.interval,
        method=change.method,
        n=change.n,
    )


def _change(
    evidence: GateEvidence,
    section: str,
    metric: str,
    row: MetricRow | None,
    higher: bool,
    rule: AgainstBase,
) -> MetricChange:
    """The means as they are reported; for intervals the paired cases where both runs have them."""
    base, new = evidence.base, evidence.new
    assert base is not None
    old, now = base.part(section, "mean", metric), new.part(section, "mean", metric)
    n, sign = min(side.counts(section, metric)[0] for side in (base, new)), 1.0 if higher else -1.0
    if rule.kind == "drop":
        interval = row.interval if row is not None else None
        return MetricChange(old, now, now - old, interval, None, n, sign)
    if row is not None and row.delta is not None and row.interval is not None:
        return MetricChange(old, now, row.delta, row.interval, "paired cases", row.n, sign)
    noise = noise_of(base.part(section, "ci95", metric), new.part(section, "ci95", metric))
    interval = None if noise is None else (now - old - noise, now - old + noise)
    return MetricChange(old, now, now - old, interval, "independent intervals", n, sign)


def _run_numbers(rules: GateRules, evidence: GateEvidence, base: RunNumbers) -> Iterator[Check]:
    """Cost, tokens and times against those of the baseline; all are better when low."""
    for glob, rule in rules.baseline.items():
        if not glob.startswith("run.") or rule.kind == "none":
            continue
        name, line = glob.removeprefix("run."), rules.lines.get((GATES, "baseline", glob))
        old, now = run_number(base, name), run_number(evidence.new, name)
        check = Check(rule.kind, "run", name, "failed", str(rule), now, old, line=line)
        if old is None or now is None:
            where = "the baseline" if old is None else "the run"
            yield replace(check, rule="measured", reason=f"{where} does not tell it")
            continue
        reason = _explain(rule, MetricChange(old, now, now - old, None, None, 0, -1.0))
        status: Any = "failed" if reason else "passed"
        yield replace(check, status=status, reason=reason, delta=now - old)


def _unused(rules: GateRules, base: RunNumbers) -> Iterator[Check]:
    """A rule that fits no metric of the baseline checks nothing, which is a failure."""
    names = {f"{section}.{metric}" for section, metric in base.metrics()}
    for glob, rule in rules.baseline.items():
        if glob.startswith("run.") or any(fnmatchcase(name, glob) for name in names):
            continue
        section, _, metric = glob.partition(".")
        reason = f"the baseline has no metric {glob}, so nothing could be checked"
        line = rules.lines.get((GATES, "baseline", glob))
        yield Check(
            "measured", section, metric or "*", "failed", str(rule), reason=reason, line=line
        )


def _refuse_same(evidence: GateEvidence) -> None:
    """Raises StorageError when a run would be held against itself."""
    base, new = evidence.base, evidence.new
    if base is None or base.folder is None or new.folder is None:
        return
    if base.folder.resolve() == new.folder.resolve():
        raise StorageError(f"{new.folder}: is its own baseline; give another run to --baseline.")


@dataclass(frozen=True, slots=True)
class MetricChange:
    """How a metric moved. ``worse_by`` and ``at_worst`` are above 0 for the bad direction."""

    old: float
    now: float
    delta: float
    interval: tuple[float, float] | None
    method: str | None
    n: int
    sign: float

    @property
    def worse_by(self) -> float:
        return -self.sign * self.delta

    @property
    def at_worst(self) -> float | None:
        if self.interval is None:
            return None
        return -self.interval[0] if self.sign > 0 else self.interval[1]

    @property
    def at_best(self) -> float | None:
        if self.interval is None:
            return None
        return -self.interval[1] if self.sign > 0 else self.interval[0]


def _explain(rule: AgainstBase, change: MetricChange) -> str:
    """Why a rule is broken; "" when it is kept."""
    moved = f"{number(change.old)} → {number(change.now)}"
    if rule.kind == "drop":
        allowed = rule.size * abs(change.old) if rule.relative else rule.size
        if change.worse_by <= allowed + EPSILON:
            return ""
        share = ""
        if rule.relative and abs(change.old) > EPSILON:
            share = f", {100 * change.worse_by / abs(change.old):.1f} %"
        return (
            f"{moved}: worse by {number(change.worse_by)}{share}, at most {_size(rule)} is allowed"
        )
    worst, best = change.at_worst, change.at_best
    if worst is None or best is None:
        return f"{moved}: has no interval, so chance cannot be ruled out; write a drop rule for it"
    few = f" (n = {change.n}: unreliable)" if change.n < UNRELIABLE_BELOW else ""
    basis = f"{change.method}, n = {change.n}"
    if rule.kind == "regression":
        if best <= EPSILON:
            return ""
        return f"{moved}: worse by {number(best)} to {number(worst)} ({basis}){few}"
    if worst <= rule.size + EPSILON:
        return ""
    if change.worse_by <= rule.size:
        wide = "a loss within the margin, but chance leaves room for more: ask more cases"
        return f"{moved}: may be worse by up to {number(worst)} ({basis}){few}; {wide}"
    return (
        f"{moved}: may be worse by up to {number(worst)} ({basis}){few}, {_size(rule)} is allowed"
    )


def _size(rule: AgainstBase) -> str:
    return str(rule).partition(" ")[2]

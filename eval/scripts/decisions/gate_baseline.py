"""The gate against a baseline: nothing lost, no primary metric worse, and the file's own rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from math import hypot
from typing import Any

from decisions.case_changes import read_pair
from decisions.case_rules import read_case_rules
from decisions.change import FEWEST_CLUSTERS, Change, range_of
from decisions.compare import read_pairs
from decisions.conditions import Conditions
from decisions.effects import ALPHA
from decisions.gate_checks import (
    GateEvidence,
    left_out_of,
    missing_cases,
    run_number,
    unlabelled,
    unlike,
)
from decisions.gate_rules import AgainstBase, GateRule, GateRules
from decisions.headline import first_lines
from decisions.measures import known_metrics
from decisions.metric_words import points, topic
from decisions.primary import primary_names
from decisions.regressions import EPSILON, Regressions, is_worse, regressions
from decisions.slices import slice_columns
from decisions.whole_run import FIGURES, on_shared_cases
from ragmetrics import catalogue
from ragmetrics.stats.means import UNRELIABLE_BELOW
from ragmetrics.stats.significance import mcnemar
from records.gate_verdict import WORSE, Check, Status
from records.runs import scored_sections
from records.targets import GATES
from terminal.page import fine_percent, from_to, number, p_words
from terminal.tables import counted, plain

SHOWN = 5

_ALLOW = 'write untested = "allow" under [gates] of the rules file'

OTHER_CASES = "not compared: a figure of all cases, and these are not those of the baseline"

NO_INTERVAL = "has no interval over the cases that did not change; write a drop rule for it"

UNTESTED_REMEDY = f"add cases, or {_ALLOW}"


def baseline_checks(
    rules: GateRules, evidence: GateEvidence, sections: set[str] | None = None
) -> tuple[list[Check], Regressions]:
    """All checks against the baseline, of ``sections`` only when given, and the decision on the
    primary metrics."""
    base = evidence.base
    assert base is not None
    compared = {
        name: section for name, section in base.sections.items() if not sections or name in sections
    }
    base = replace(base, metrics={**base.metrics, "sections": compared})
    evidence = replace(evidence, base=base)
    named = [
        (section, metric, rule)
        for section, metric in base.measured()
        if (rule := rules.of_baseline(f"{section}.{metric}")) and rule.fall.kind != "none"
    ]
    primary = primary_tested(rules, evidence, sections)
    looked_at = {section for section, *_ in named} | {name.partition(".")[0] for name in primary}
    differing = left_out_of(evidence, looked_at & compared.keys())
    named = [row for row in named if row[0] not in differing]
    intervals = any(rule.fall.kind in ("margin", "regression") for *_, rule in named)
    intervals |= evidence.sets_differ
    sections_used = {section for section, *_ in named}
    result = regressions(evidence, primary, sections_used if intervals else ())
    sections_used |= {change.section for change in result.changes} | differing.keys()
    decided = {f"{section}.{metric}" for section, metric, *_ in named} | {*primary}
    excused = {change.name for change in result.changes if change.left_out}
    measured = list(_measured(rules, evidence, base, decided, excused))
    lost = {check.name for check in measured}
    checks = [  # what decides comes first: a lost metric is often only its consequence
        *(check for check in _primary(rules, result) if check.name not in lost),
        _cases(rules, evidence),
        *_same_cases(rules, result),
        *measured,
        comparable(evidence, sections_used),
        *_coverage(rules, evidence, base, [(section, metric) for section, metric, *_ in named]),
    ]
    checks += _slices(rules, evidence)
    checks += [_metric(evidence, section, metric, rule, result) for section, metric, rule in named]
    checks += [*_run_numbers(rules, evidence, base), *_unused(rules, evidence, base)]
    return checks, result


def gate_sentences(evidence: GateEvidence, result: Regressions) -> list[str]:
    """The compared runs, and the smallest fall that the gate would have caught."""
    base, tested = evidence.base, result.tested
    if evidence.alignment is None:
        return []  # of unlike sets there is no verdict
    first = [*first_lines(result.comparison)] if result.comparison else []
    if base is None or not tested:
        return first
    most = max(tested, key=lambda row: row.n)
    runs = f"Compared: {plain(evidence.new.id)} with {plain(base.id)}"
    text = f"{runs}, {counted(len(tested), 'primary metric')} on {counted(most.n, 'case')}."
    shares = [row for row in tested if range_of(row.name) == 1 and row.least_fall]
    if least := max(shares, key=lambda row: row.least_fall or 0.0, default=None):
        size = f"{points(least.least_fall or 0.0)} of {topic(least.name)}"
        text += f" The gate only checks for drops; it can detect one of {size}"
        text += ", and smaller ones of the others." if len(shares) > 1 else "."
    lines = [*first, text]
    if any(map(is_worse, tested)) and result.headline not in ("WORSE", "MIXED"):
        lines.append(
            "The gate only checks for drops, so it detects smaller ones than the comparison, which "
            "also looks for rises."
        )
    return [*lines, *([result.advice] if result.advice else [])]


MOST_BROKEN = 2_000
"""Cases up to which broken ones are counted: with more of them the joint test misses little."""


def broken_cases(evidence: GateEvidence, result: Regressions) -> tuple[str, list[Check]]:
    """Why a gate that passes says little, and a line of its table: more cases broke than were
    fixed, by more than chance if each counted alone, and no primary metric is proven worse."""
    base, new = evidence.base, evidence.new
    tested = result.tested
    if base is None or new.folder is None or not max((r.n for r in tested), default=0) > 0:
        return "", []
    if max(row.n for row in tested) > MOST_BROKEN:
        return "", []
    pair = read_pair(base.source, new.folder, read_case_rules(evidence.targets), evidence.tables)
    broke, fixed, *rest = pair.counts().values() if pair and not pair.unknown else (0, 0)
    if broke <= fixed or mcnemar(fixed, broke)[1] > 2 * ALPHA:
        return "", []
    total = broke + fixed + sum(rest)
    found = f"{broke} of {counted(total, 'case')} broke"
    fell = {row.name: row.worse_by for row in tested if row.worse_by > 0}
    small = all(row.verdict == "equal" for row in tested if row.name in fell)
    doubt = "the fall is within what matters" if small else "too few cases to tell"
    doubt = doubt if fell else "no primary metric fell"
    most = max(fell, key=lambda name: fell[name], default="pipeline.pass")
    groups = f" ({result.cases})" if result.cases else ""
    reason = (
        f"{found}, {fixed} {'was' if fixed == 1 else 'were'} fixed{groups}; {doubt}. To fail at "
        f'such a fall without waiting for evidence: "{most}" = "drop 10 %" under [gates.baseline]'
    )
    if not fell:
        reason = f"{found}, {fixed} fixed; {doubt}. To fail then: name cases in [[gates.must_pass]]"
    must = "no rule on broken cases"
    check = Check("broke", "run", "cases_broke", "skipped", must, broke, n=total, reason=reason)
    return f"{found}: {doubt}", [check]


def primary_tested(
    rules: GateRules, evidence: GateEvidence, sections: set[str] | None
) -> list[str]:
    """The primary metrics that the joint test looks at: not those that the file has a rule for."""
    return [
        name
        for name in primary_names(evidence.targets)
        if rules.of_baseline(name) is None and (not sections or name.partition(".")[0] in sections)
    ]


def _primary(rules: GateRules, result: Regressions) -> Iterator[Check]:
    """A check for each primary metric that both runs have; what could not be tested fails, unless
    the rules allow it."""
    for change in result.changes:
        check = _of_change(change)
        if change.reason:
            allowed_change = rules.allow_untested or change.left_out
            status: Status = "skipped" if allowed_change else "failed"
            remedy = f"; {UNTESTED_REMEDY}" if result.comparison else f", or {_ALLOW}"
            remedy = "" if allowed_change else remedy
            check = replace(check, status=status, reason=change.reason + remedy)
        elif is_worse(change):
            check = replace(check, status="failed", reason=_why_worse(change, result))
        yield check
    for name in result.lost:
        section, _, metric = name.partition(".")
        reason = "was scored in the baseline, is no longer"
        yield Check("measured", section, metric, "failed", "measured as before", reason=reason)
    for name, (then, now) in result.redefined.items():
        section, _, metric = name.partition(".")
        reason = f"another definition: was {then}, is {now}; score the baseline again"
        yield Check("measured", section, metric, "failed", "no worse", reason=reason)
    for name in result.gained:
        section, _, metric = name.partition(".")
        reason = "targets.toml declares it, and the baseline has no score of it"
        allowed: Status = "skipped" if rules.allow_untested else "failed"
        reason += "" if rules.allow_untested else f"; score the baseline too, or {_ALLOW}"
        yield Check("measured", section, metric, allowed, "no worse", reason=reason)
    if result.untested:
        reason = (
            f"the baseline has no score of {', '.join(result.untested)}: no label for it, not "
            "scored, or (judged) no calibrated judge"
        )
        name = counted(len(result.untested), "unscored primary metric")
        yield Check("baseline", "run", name, "skipped", "no worse", reason=reason)


PAIRED = "paired cases, joint test"


def _of_change(change: Change) -> Check:
    """A primary metric as a line of the table: both means, over the cases that are compared where
    these decide."""
    now, before, delta, n = change.new, change.base, change.delta, change.n
    if change.verdict == "no verdict" or not n:
        now, before, delta = change.new_mean, change.base_mean, None
        n = change.coverage.both if change.coverage else 0
    numbers = (now, before, delta, change.interval, PAIRED, n)
    check = Check(WORSE, change.section, change.metric, "passed", "no worse", *numbers)
    return replace(check, p=None if delta is None else change.p_worse)


def _why_worse(change: Change, result: Regressions) -> str:
    moved = f"{from_to(change.base, change.new)}: worse by {number(abs(change.delta or 0.0))}"
    tested = counted(len(result.changes), "primary metric")
    together = f"one-sided {p_words(change.p_worse or 0.0)}, corrected for {tested}"
    cases = result.cases or counted(change.n, "case")
    few = f"; n = {change.n}: unreliable" if change.n < UNRELIABLE_BELOW else ""
    return f"{moved} ({PAIRED}, {cases}, {together}{few})"


def _cases(rules: GateRules, evidence: GateEvidence) -> Check:
    """Every case of the baseline must be in the run, but for as many as are allowed."""
    base, allowed = evidence.base, rules.allow_missing
    assert base is not None
    must = f"at most {allowed} cases missing" if allowed else "no case missing"
    gone = missing_cases(evidence, not_asked=rules.allow_stopped)
    old, now = base.metrics.get("cases"), evidence.new.metrics.get("cases")
    reason = ""
    if gone is None:
        if isinstance(old, int) and isinstance(now, int) and now + allowed < old:
            reason = f"the baseline has {counted(old, 'case')}, the run {now}"
        elif not isinstance(old, int) or not isinstance(now, int):
            reason = "one run does not say how many cases it has; score it again"
    elif len(gone) > allowed:
        some = ", ".join(gone[:SHOWN]) + (", …" if len(gone) > SHOWN else "")
        reason = (
            f"{counted(len(gone), 'case')} {'is' if len(gone) == 1 else 'are'} missing: {some}; "
            "ask for missing cases with run_eval.py --resume"
        )
    return Check.of("cases", "run", "cases_missing", must, reason, value=now, baseline=old)


def _same_cases(rules: GateRules, result: Regressions) -> Iterator[Check]:
    """Of two versions of the set, enough cases must not have changed."""
    counts = result.comparison.set_changes if result.comparison else None
    if counts is None:
        return
    reason = ""
    if counts.share < rules.min_compared:
        reason = (
            f"compared on the {counts.words()}, {fine_percent(counts.share)} of those that could "
            "be; ask the baseline's bot again with this set"
        )
    must = f"at least {fine_percent(rules.min_compared)} unchanged"
    line = rules.lines.get((GATES, "min_compared"))
    numbers = {"value": counts.share, "n": counts.same}
    yield Check.of("min_compared", "run", "cases_compared", must, reason, line=line, **numbers)


def _slices(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """The slices that must not have fallen: what broke against what was fixed, all tested together
    by flips of clusters."""
    base, new, eval_set = evidence.base, evidence.new, evidence.eval_set
    if not rules.slices or base is None or new.folder is None:
        return
    pair = read_pair(base.source, new.folder, read_case_rules(evidence.targets), evidence.tables)
    moves = {} if pair.unknown else pair.moves()
    columns = None
    if eval_set is not None and eval_set.exists():
        columns = slice_columns(rules.slices, moves, eval_set, evidence.labels_dir)
    p = columns.p_fell(evidence.seed) if columns is not None else {}
    for name in rules.slices:
        line = rules.lines.get((GATES, "slices", name))
        check = Check("slices", "slice", name, "passed", "no fall", line=line)
        own = columns.moves_of(name) if columns is not None else []
        broke, fixed = own.count(-1), own.count(1)
        units = columns.units_of(name) if columns is not None else 0
        check = replace(check, n=len(own), value=broke)
        if units < FEWEST_CLUSTERS:
            reason = f"too few to tell ({counted(units, 'case or section')} that count alone)"
            if not own:
                reason = pair.unknown or "no compared case of the set is in this slice"
            skipped: Status = "skipped" if rules.allow_untested else "failed"
            check = replace(check, status=skipped, reason=reason)
        elif broke > fixed and p[name] <= ALPHA:
            words = f"{broke} of {counted(len(own), 'case')} broke, {fixed} fixed"
            check = replace(check, status="failed", reason=f"{words} ({p_words(p[name])})")
        yield check


def _measured(
    rules: GateRules,
    evidence: GateEvidence,
    base: Conditions,
    decided: set[str],
    excused: set[str],
) -> Iterator[Check]:
    """Every section of the baseline must be scored, every metric be measured still.

    A metric that no rule looks at may have become not applicable in every case, as may an
    ``excused`` one: other primary metrics judge that.
    """
    new, lost = evidence.new, 0
    for name in base.sections:
        if name not in new.sections:
            lost += 1
            row = catalogue.SECTIONS.get(name)
            script = row.script if row else "eval_suite.py"
            reason = f"the run has no such section; score it with {script}, as the baseline was"
            yield Check("measured", name, "*", "failed", "measured as before", reason=reason)
    floors = {rule.name for rule in rules.on("floor")}
    for section, metric in base.measured():
        if section not in new.sections or new.part(section, "mean", metric) is not None:
            continue
        if f"{section}.{metric}" in excused:
            continue
        was = base.part(section, "mean", metric)
        n, missing, failed = new.counts(section, metric)
        if missing and not failed and f"{section}.{metric}" not in decided | floors:
            continue
        lost += 1
        reason = (
            f"was {number(was)}, is no longer measured "
            f"({n} scored, {missing} not applicable, {failed} failed)"
        )
        must = "measured as before"
        yield Check.of("measured", section, metric, must, reason, baseline=was)
    if not lost:
        must = f"no metric lost ({len(list(base.measured()))})"
        yield Check("measured", "run", "metrics", "passed", must)


def comparable(evidence: GateEvidence, sections: set[str]) -> Check:
    """Check that both runs were measured in the same way: set, labels, judge, options of the
    scorers."""
    differing = left_out_of(evidence, sections)
    differences = unlike(evidence, sections - differing.keys())
    reasons = [sentence.removesuffix(".") for sentence in differing.values()]
    if differences:
        reasons.insert(
            0,
            f"the runs are not measured alike (baseline → run): {'; '.join(differences)}; "
            "measure one of them again",
        )
    reason = ". ".join(reasons)
    return Check.of("comparable", "run", "comparable", "measured alike", reason)


def _coverage(
    rules: GateRules, evidence: GateEvidence, base: Conditions, named: list[tuple[str, str]]
) -> Iterator[Check]:
    """How far the share of scored cases may fall, where the file says so, for metrics of a rule."""
    if rules.coverage_drop is None:
        return
    floors = [(rule.section, rule.name.partition(".")[2]) for rule in rules.on("floor")]
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
            numbers = {"value": after, "baseline": before, "delta": after - before}
            yield Check.of("coverage", section, metric, must, reason, line=line, **numbers)
    if looked_at and not fallen:
        yield Check("coverage", "run", "metrics", "passed", f"no lower ({looked_at})", line=line)


def _metric(
    evidence: GateEvidence,
    section: str,
    metric: str,
    rule: GateRule,
    result: Regressions,
) -> Check:
    """One metric under one rule. What cannot be compared fails."""
    new, base = evidence.new, evidence.base
    assert base is not None
    old, now = base.part(section, "mean", metric), new.part(section, "mean", metric)
    fall, must = rule.fall, str(rule.must)
    if evidence.sets_differ and now is not None:
        paired = result.paired(f"{section}.{metric}")
        no_interval = paired is not None and paired.name in FIGURES and fall.kind != "drop"
        if paired is None or no_interval:
            reason = NO_INTERVAL if no_interval else OTHER_CASES
            return Check(fall.kind, section, metric, "skipped", must, reason=reason)
        old, now = paired.base, paired.new
    check = Check(fall.kind, section, metric, "failed", must, now, old, line=rule.line)
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
    means = Change(section, metric, row.higher_is_better, base_mean=old, new_mean=now)
    change, basis = _moved(base, new, means, result, fall)
    reason = _explain(fall, change, basis or "")
    compared = (change.delta, change.interval, basis, change.n, reason)
    status: Status = "failed" if reason else "passed"
    return Check(fall.kind, section, metric, status, must, now, old, *compared, line=rule.line)


def _moved(
    base: Conditions, new: Conditions, change: Change, result: Regressions, rule: AgainstBase
) -> tuple[Change, str | None]:
    """The means as they are reported; for intervals the paired cases where both runs have them.

    With them the basis of the interval, in words. Where no case changed there is no loss to rule
    out.
    """
    n = min(side.counts(change.section, change.metric)[0] for side in (base, new))
    delta = (change.new_mean or 0.0) - (change.base_mean or 0.0)
    change = replace(change, delta=delta, n=n)
    if rule.kind == "drop":
        return change, None
    paired = result.paired(change.name)
    if paired is not None and paired.t_interval is not None:
        interval = paired.t_interval if paired.rose or paired.fell else (0.0, 0.0)
        return replace(change, delta=paired.delta, interval=interval, n=paired.n), "paired cases"
    return replace(change, interval=_of_means(base, new, change)), "independent intervals"


def _of_means(base: Conditions, new: Conditions, change: Change) -> tuple[float, float] | None:
    """The 95 % interval of a difference of two independent means; None when one has no interval."""
    intervals = [side.part(change.section, "ci95", change.metric) for side in (base, new)]
    if change.delta is None or not all(intervals):
        return None
    half = hypot(*((high - low) / 2 for low, high in intervals))
    return change.delta - half, change.delta + half


def _run_numbers(rules: GateRules, evidence: GateEvidence, base: Conditions) -> Iterator[Check]:
    """Cost, tokens and times against those of the baseline; all are better when low."""
    own = [r for r in rules.on("baseline") if r.section == "run" and r.fall.kind != "none"]
    shared = _on_shared(evidence, base) if own else None
    for rule in own:
        name, must = rule.name.removeprefix("run."), str(rule.must)
        runs = shared or (base, evidence.new)
        old, now = (run_number(run, name) for run in runs)
        numbers: dict[str, Any] = {"value": now, "baseline": old, "line": rule.line}
        if evidence.sets_differ and shared is None:
            yield Check(rule.fall.kind, "run", name, "skipped", must, reason=OTHER_CASES, **numbers)
            continue
        if old is None or now is None:
            reason = f"{'the baseline' if old is None else 'the run'} does not report it"
            yield Check.of("measured", "run", name, must, reason, **numbers)
            continue
        change = Change("run", name, False, base_mean=old, new_mean=now, delta=now - old)
        reason = _explain(rule.fall, change)
        yield Check.of(rule.fall.kind, "run", name, must, reason, delta=now - old, **numbers)


def _on_shared(evidence: GateEvidence, base: Conditions) -> tuple[Conditions, Conditions] | None:
    """Both runs with the totals of the cases that did not change; None where the sets are one, or
    score lines are missing."""
    new = evidence.new
    if not evidence.sets_differ or base.folder is None or new.folder is None:
        return None
    if not all("pipeline" in scored_sections(folder) for folder in (base.folder, new.folder)):
        return None
    pairs = read_pairs(base.folder, new.folder, "pipeline", evidence.eval_set, evidence.tables)
    return on_shared_cases(base, new, pairs)


def _unused(rules: GateRules, evidence: GateEvidence, base: Conditions) -> Iterator[Check]:
    """A rule that fits no metric of the baseline checks nothing, which is a failure."""
    names = {f"{section}.{metric}" for section, metric in base.measured()}
    for rule in rules.on("baseline"):
        if rule.section == "run" or any(fnmatchcase(name, rule.name) for name in names):
            continue
        section, _, metric = rule.name.partition(".")
        reason = f"the baseline has no metric {rule.name}, so the rule checks nothing"
        check = Check("measured", section, metric or "*", "failed", str(rule.must), reason=reason)
        if rules.skip_unlabelled and unlabelled(evidence, section, metric):
            reason = "no case of the set has the labels that it needs"
            check = replace(check, rule=rule.fall.kind, status="skipped", reason=reason)
        yield replace(check, line=rule.line)


def _explain(rule: AgainstBase, change: Change, basis: str = "") -> str:
    """Why a rule is broken; "" when it is kept. ``basis``: of the interval, in words."""
    moved = from_to(change.base_mean, change.new_mean)
    old = abs(change.base_mean or 0.0)
    if rule.kind == "drop":
        allowed = rule.size * old if rule.relative else rule.size
        if change.worse_by <= allowed + EPSILON:
            return ""
        share = ""
        if rule.relative and old > EPSILON:
            share = f", {fine_percent(change.worse_by / old)}"
        return (
            f"{moved}: worse by {number(change.worse_by)}{share}, at most {_size(rule)} is allowed"
        )
    if rule.kind == "regression" and abs(change.delta or 0.0) <= EPSILON:
        return ""
    if change.interval is None:
        return f"{moved}: has no interval, so chance cannot be ruled out; write a drop rule for it"
    low, high = change.interval
    worst, best = (high, low) if change.higher_is_better is False else (-low, -high)
    few = f" (n = {change.n}: unreliable)" if change.n < UNRELIABLE_BELOW else ""
    basis = f"{basis}, n = {change.n}"
    if rule.kind == "regression":
        if best <= EPSILON:
            return ""
        return f"{moved}: worse by {number(best)} to {number(worst)} ({basis}){few}"
    if worst <= rule.size + EPSILON:
        return ""
    if change.worse_by <= rule.size:
        wide = "the loss is within the margin, but may be larger by chance: ask more cases"
        return f"{moved}: may be worse by up to {number(worst)} ({basis}){few}; {wide}"
    return (
        f"{moved}: may be worse by up to {number(worst)} ({basis}){few}, {_size(rule)} is allowed"
    )


def _size(rule: AgainstBase) -> str:
    return str(rule).partition(" ")[2]

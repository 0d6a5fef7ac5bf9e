"""Reads a gate's evidence, and checks one run by itself: floors, coverage, failures, limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any

from decisions.case_changes import failing_answer, lines_of, reasons_in_words
from decisions.case_rules import read_case_rules
from decisions.case_verdict import read_verdicts
from decisions.conditions import Conditions
from decisions.effects import ALPHA
from decisions.gate_rules import OF_RUN, GateRule, GateRules, MustPass
from decisions.invariants import left_out, run_controls, scored_otherwise
from decisions.measures import Measure, known_metrics, measures
from decisions.primary import read_primary
from decisions.same_cases import Alignment, align
from ragmetrics.catalogue import SECTIONS
from ragmetrics.catalogue.metric import BY_DOCUMENT, Metric
from ragmetrics.stats.arrays import np
from records.asked import asked_ids, asked_of, missing_remark, stopped, unreadable_remark
from records.errors import StorageError
from records.files import sha256_file
from records.gate_verdict import Check
from records.id_numbers import id_number
from records.labels import labelled_texts, own_labels, read_cases
from records.results import UNREADABLE
from records.run import Runs
from records.runs import SCORES, scored_sections
from records.scores import ALL_BUT_EVIDENCE
from records.targets import GATES, TARGETS, Target
from terminal.page import number
from terminal.tables import counted

HEAD = (
    "run_id",
    "config_hash",
    "eval_set_sha256",
    "labels_sha256",
    "asked",
    "cases",
    "missing",
    "errors",
    UNREADABLE,
)
"""The numbers in metrics.json about the run itself."""

FAILED_SHARE = 0.02
"""Calls that may fail: a gate fails when so many failures have a chance below 5 % at this share."""

FREE = ("definitions",)
"""Differences that each metric's own check reports."""


@dataclass(frozen=True)
class GateEvidence:
    """A run, its baseline, and where its cases are described."""

    new: Conditions
    base: Conditions | None = None
    eval_set: Path | None = None
    labels_dir: Path | None = None
    custom: Sequence[Metric] = field(default=())
    seed: int = 0
    targets: Path = TARGETS
    """Where the primary metrics are declared."""
    tables: Runs = field(default_factory=Runs, compare=False, repr=False)
    """The tables read from the runs."""
    rescored: int = 0
    """Re-labelled cases for which the baseline was scored again."""
    since: str = ""
    """The difference to the pinned baseline, in a sentence."""

    @cached_property
    def alignment(self) -> Alignment | None:
        """How the cases of the two runs differ; None where that is not known."""
        if self.base is None:
            return Alignment()
        places = [(path, self.labels_dir or own_labels(path)) for path in [self.eval_set] if path]
        sections = self.base.sections.keys() & self.new.sections.keys()
        return align(self.base, self.new, sections, places)

    @property
    def sets_differ(self) -> bool:
        """Whether the runs are of two versions of the set, whose shared cases are known."""
        return self.alignment is not None and self.alignment.differs


def head_of(run: Conditions) -> dict[str, Any]:
    """The numbers in metrics.json about the run itself."""
    return {name: run.metrics[name] for name in HEAD if name in run.metrics}


def unlike(evidence: GateEvidence, sections: set[str]) -> list[str]:
    """Differences that make the two runs incomparable in all of these sections, a phrase each."""
    assert evidence.base is not None
    known = evidence.alignment is not None
    differences = run_controls(evidence.base, evidence.new, sorted(sections), cases_known=known)
    return [
        str(difference)
        for difference in differences
        if not set(difference.name.split(".")) & set(FREE)
    ]


def left_out_of(evidence: GateEvidence, sections: Collection[str]) -> dict[str, str]:
    """Those of some sections that both sides scored, but differently; each with a sentence."""
    assert evidence.base is not None
    both = [
        n for n in sorted(sections) if n in evidence.base.sections and n in evidence.new.sections
    ]
    differing = scored_otherwise(evidence.base, evidence.new, both)
    return {name: left_out(name, found) for name, found in differing.items()}


def missing_cases(evidence: GateEvidence, *, not_asked: bool = False) -> list[str] | None:
    """The baseline's cases that the run lacks, section by section, but for those that its set no
    longer has; None when ids are unknown.

    ``not_asked``: those that the run was never asked may be lacking. Memory: see
    ``records.run``.
    """
    base, new, tables = evidence.base, evidence.new, evidence.tables
    if base is None or new.folder is None:
        return None
    sections = scored_sections(new.folder)
    gone: dict[str, None] = {}
    if base.folder is None:
        scores = read_primary(base.source)
        if scores is None or not sections:
            return None
        then = scores.case_ids
        scored = np.concatenate([tables[new.folder].section(name).ids for name in sections])
        absent = ~np.isin(np.fromiter(map(id_number, then), np.int64, len(then)), scored)
        gone = dict.fromkeys(compress(then, absent.tolist()))
    else:
        shared = [name for name in scored_sections(base.folder) if name in sections]
        if not shared:
            return None
        for name in shared:
            before, now = (tables[folder].section(name) for folder in (base.folder, new.folder))
            if not np.array_equal(before.ids, now.ids):
                lost = np.flatnonzero(~np.isin(before.ids, now.ids))
                gone |= dict.fromkeys(before.case_ids(lost.tolist()).values())
    asked = asked_ids(new.config, evidence.eval_set) if not_asked else None
    left = evidence.alignment.gone if evidence.alignment else frozenset()
    return [c for c in gone if c not in left and (asked is None or c in asked)]


def _tagged(evidence: GateEvidence, tags: Sequence[str]) -> dict[str, list[str]]:
    """The cases that have each tag, by the eval set that the run was scored with.

    Raises StorageError when the set is not known, or has changed since.
    """
    path = evidence.eval_set
    if path is None or not path.exists():
        raise StorageError(f"{path}: no such file; must_pass by tags needs the run's --eval-set.")
    scored_with = evidence.new.metrics.get("eval_set_sha256")
    if scored_with and sha256_file(path) != scored_with:
        raise StorageError(
            f"{path}: is not the set that the run was scored with; give that one with --eval-set, "
            "or score the run again."
        )
    cases = read_cases(path, evidence.labels_dir)
    return {tag: [case.id for case in cases if tag in (case.tags or ())] for tag in tags}


NOTHING: dict[str, Any] = {
    part: {} for part in ("mean", "definitions", "ci95", "n", "not_applicable", "failed")
}


def floors(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """A check for every floor; it fails for a metric without a number, or with too few texts."""
    tables: dict[str, dict[str, Target]] = {}
    for rule in rules.on("floor"):
        tables.setdefault(rule.section, {})[rule.name.partition(".")[2]] = rule.target
    sections = {**dict.fromkeys(tables, NOTHING), **evidence.new.sections}
    numbers = measures(sections, tables, evidence.custom, fewest=0)
    for rule in rules.on("floor"):
        section, _, metric = rule.name.partition(".")
        check = _floor(numbers[section, metric], rule.line)
        if rules.skip_unlabelled and unlabelled(evidence, section, metric):
            reason = "no case of the set has the labels that it needs"
            check = replace(check, rule="floor", status="skipped", reason=reason)
        yield check


def unlabelled(evidence: GateEvidence, section: str, metric: str) -> bool:
    """Whether a metric has no number because no case has the labels it needs: neither a failure nor
    a section that was not scored, and not measured in the baseline either."""
    base, new = evidence.base, evidence.new
    if base is not None and base.part(section, "mean", metric) is not None:
        return False
    if section in new.sections:
        scored, not_applicable, failed = new.counts(section, metric)
        return not scored and not failed and not_applicable > 0
    row = SECTIONS.get(section)
    return (
        row is not None
        and "labelled texts" in row.needs
        and not labelled_texts(evidence.labels_dir, evidence.eval_set)
    )


def _floor(measure: Measure, line: int | None) -> Check:
    must = measure.target or ""
    rule, reason = "floor", ""
    if measure.mean is None:
        rule, reason = "measured", f"not measured{_unmeasured(measure)}, must be {must}"
    elif measure.passed is None:
        reason = f"{number(measure.mean)}, too few texts to tell, must be {must}"
    elif not measure.passed:
        reason = f"{number(measure.mean)}, must be {must}"
    numbers = {"value": measure.mean, "interval": measure.ci95, "n": measure.n}
    return Check.of(rule, measure.section, measure.metric, must, reason, line=line, **numbers)


def _unmeasured(measure: Measure) -> str:
    """Why a metric has no number, as far as metrics.json knows it."""
    why = [f"failed for {counted(measure.failed, 'answer')}"] if measure.failed else []
    if measure.not_applicable:
        answers = counted(measure.not_applicable, "answer")
        file = f"{SCORES}/{measure.section}.jsonl"
        why.append(f"not applicable to {answers}, the reasons are in {file}")
    return f" ({'; '.join(why)})" if why else ""


def shares(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """Coverage (scored / all cases of the metric) and failures (failed / scored and failed).

    A pattern that all its metrics keep is one check; each metric that breaks it is one of its own.
    """
    for rule in rules.on("coverage", "failed"):
        names = metrics_of(rule, evidence.new)
        if not names:
            yield nothing(rule)
        yield from folded([_share(rule, evidence.new, *name) for name in names], rule.name)


def folded(checks: Sequence[Check], glob: str) -> Sequence[Check]:
    """The checks of a pattern that failed; one for all of them when none did."""
    failed = [check for check in checks if check.status == "failed"]
    if failed or len(checks) < 2:
        return failed or checks
    first = checks[0]
    must = f"{first.must} ({len(checks)})"
    return [Check(first.rule, "run", glob, "passed", must, line=first.line)]


def every_metric(side: Conditions) -> list[tuple[str, str]]:
    """Every metric that a pattern can mean, those without a mean too: not those by document."""
    return [
        (name, metric)
        for name, section in side.sections.items()
        for metric in section["mean"]
        if not metric.endswith(BY_DOCUMENT)
    ]


def metrics_of(rule: GateRule, side: Conditions) -> list[tuple[str, str]]:
    """The metrics of a run that a rule is on."""
    return [name for name in every_metric(side) if fnmatchcase(".".join(name), rule.name)]


def nothing(rule: GateRule) -> Check:
    """A rule that fits no metric checks nothing, which is a failure."""
    section, _, metric = rule.name.partition(".")
    reason = f"no metric of the run matches {rule.name}, so the rule checks nothing"
    must = str(rule.must)
    return Check(rule.basis, section, metric or "*", "failed", must, reason=reason, line=rule.line)


def _share(rule: GateRule, side: Conditions, section: str, metric: str) -> Check:
    scored, missing, failed = side.counts(section, metric)
    target, basis = rule.target, rule.basis
    if basis == "coverage":
        part, whole = scored, scored + missing + failed
        what = f"{part} of {whole} cases are scored"
    else:
        part, whole = failed, scored + failed
        what = f"{part} of {whole} cases failed"
    value = part / whole if whole else None
    reason = ""
    if value is None and basis == "coverage":
        reason = f"no case at all, must be {target}"
    elif value is not None and not target.passed(value):
        reason = f"{what} ({number(value)}), must be {target}"
    numbers = {"value": value, "n": whole, "line": rule.line}
    return Check.of(basis, section, metric, str(target), reason, **numbers)


def complete(rules: GateRules, evidence: GateEvidence) -> Check:
    """No asked case may lack its result, but for as many as are allowed. Not known: skipped."""
    header, allowed = evidence.new.metrics, rules.allow_missing
    must = f"at most {allowed} without a result" if allowed else "every asked case has a result"
    asked, missing = header.get("asked"), _number(header.get("missing"))
    if missing is None:
        reason = "config.json does not say how many cases were asked"
        if "missing" not in header:
            reason = "metrics.json does not say whether results are missing; score the run again"
        return Check("missing", "run", "missing", "skipped", must, reason=reason)
    reason = ""
    if missing > allowed:
        reason = (
            f"{missing_remark(header)}. If the run names them, they are 0 in answered and pass. "
            "Ask them with run_eval.py --resume and score again, or allow them with "
            f"--allow-missing {missing:.0f}"
        )
    return Check.of("missing", "run", "missing", must, reason, value=missing, n=asked)


def finished(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """A run that was stopped says nothing of the cases that were never asked."""
    folder = evidence.new.folder
    if folder is None or not (reason := stopped(folder, evidence.new.config)):
        return
    if not rules.allow_stopped:
        reason += "; finish it with run_eval.py --resume, or allow it with --set allow_stopped=true"
    status: Any = "passed" if rules.allow_stopped else "failed"
    yield Check("stopped", "run", "stopped", status, "every case asked", reason=reason)


def failed_calls(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """Built in: more failed calls than ``FAILED_SHARE`` of them explains. A file's own limit of
    errors, or of what may fail everywhere, stands for it."""
    own = {rule.name for rule in rules.on("run")}
    if {"errors", "error_share"} & own or any(rule.name == "*" for rule in rules.on("failed")):
        return
    header = evidence.new.metrics
    cases, errors = _number(header.get("cases")), _number(header.get("errors"))
    must = f"no more than chance at {100 * FAILED_SHARE:g} %"
    if cases is None or errors is None:
        reason = "metrics.json does not say how many calls failed; score the run again"
        yield Check("failed calls", "run", "failed_calls", "skipped", must, reason=reason)
        return
    calls = _calls(cases, evidence.new)
    chance = 1.0
    if errors:
        from scipy.special import bdtrc

        chance = float(bdtrc(errors - 1, calls, FAILED_SHARE))
    reason = ""
    if chance < ALPHA:
        reason = (
            f"{errors:.0f} of {calls} calls failed. At {100 * FAILED_SHARE:g} % so many fail "
            f"in {100 * chance:.2g} % of runs. Ask them again with run_eval.py --resume "
            "--retry-errors"
        )
    yield Check.of("failed calls", "run", "failed_calls", must, reason, value=errors, n=calls)


def unreadable_answers(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """Built in: answers that could not be read are in no score. They fail a gate when they are more
    than half of all, for then the scores are not those of the run; else they are said."""
    header = evidence.new.metrics
    unreadable, cases = header.get(UNREADABLE) or 0, _number(header.get("cases"))
    own = {rule.name for rule in rules.on("run")}
    if not unreadable or cases is None or UNREADABLE in own:
        return
    calls = _calls(cases, evidence.new)
    status: Any = "failed" if 2 * unreadable > calls else "skipped"
    yield Check(
        "unreadable",
        "run",
        UNREADABLE,
        status,
        "at most half of the answers",
        value=unreadable,
        n=calls,
        reason=unreadable_remark(header),
    )


def _calls(cases: float, run: Conditions) -> int:
    """How often the bot was asked."""
    asked = asked_of(run.config)
    return int(cases) * (asked.repeats if asked else 1)


def limits(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """Numbers of the whole run: cases, errors, cost, tokens, times. Unknown ones fail."""
    for limit in rules.on("run"):
        name, target = limit.name, limit.target
        value = run_number(evidence.new, name)
        reason = ""
        if value is None:
            reason = f"not measured ({_remedy(name)}), must be {target}"
        elif not target.passed(value):
            reason = f"{amount(value)}, must be {target}"
        rule = "measured" if value is None else "limit"
        yield Check.of(rule, "run", name, str(target), reason, value=value, line=limit.line)


def amount(value: float) -> str:
    """A number of the whole run: counts as they are counted."""
    return f"{value:,.0f}" if value == int(value) else number(value)


def _remedy(name: str) -> str:
    if name in OF_RUN:
        return "metrics.json does not say; score the run again"
    return "run score_pipeline.py; the bot must send it"


def run_number(side: Conditions, name: str) -> float | None:
    """A number of the whole run by the name that [gates.run] has for it; None when unknown."""
    cases, errors = _number(side.metrics.get("cases")), _number(side.metrics.get("errors"))
    pipeline = side.sections.get("pipeline", {})
    cost = _number(pipeline.get("cost_usd"))
    tokens = _tokens(pipeline.get("usage"))
    if name.startswith("latency_"):
        words = name.removeprefix("latency_").removesuffix("_ms")
        stage, _, mark = words.rpartition("_")
        times = pipeline.get("latency_ms", {}).get(stage or "total", {})
        return _number(times.get(mark))
    numbers: dict[str, float | None] = {
        "cases": cases,
        "errors": errors,
        "error_share": errors / cases if cases and errors is not None else None,
        UNREADABLE: None if cases is None else float(side.metrics.get(UNREADABLE) or 0),
        "cost_usd": cost,
        "cost_per_case_usd": cost / cases if cases and cost is not None else None,
        "tokens": tokens,
        "tokens_per_case": tokens / cases if cases and tokens is not None else None,
    }
    return numbers[name]


def _tokens(usage: object) -> float | None:
    """``total_tokens``, or what was counted in and out."""
    if not isinstance(usage, Mapping):
        return None
    if (total := _number(usage.get("total_tokens"))) is not None:
        return total
    parts: Sequence[str] = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    counts = [value for part in parts if (value := _number(usage.get(part))) is not None]
    return sum(counts) if counts else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def must_pass(rules: GateRules, evidence: GateEvidence) -> Iterator[Check]:
    """A check for each case that a rule names; every answer of the case (repeat) counts."""
    line = rules.lines.get((GATES, "must_pass"))
    for rule in rules.must_pass:
        yield from (replace(check, line=line) for check in _rule(rule, evidence))


def _rule(rule: MustPass, evidence: GateEvidence) -> Iterator[Check]:
    section, _, metric = rule.metric.partition(".")
    ids = dict.fromkeys(rule.cases)
    for tag, cases in _tagged(evidence, rule.tags).items() if rule.tags else ():
        ids |= dict.fromkeys(cases)
        if not cases:
            reason = f"no case of the eval set has the tag {tag!r}, so the rule checks nothing"
            yield Check("must_pass", "case", f"tag:{tag}", "failed", "a case", reason=reason)
    if not rule.metric:
        yield from _verdict_checks(evidence, ids)
        return
    target = rule.target or _good_end(evidence, section, metric)
    answers = _answers(evidence, section, metric, ids)
    for case_id in ids:
        scores = answers.get(case_id)
        must = str(target or "known")
        if not scores:
            reason = f"the run has no {section} score of this case"
            yield Check.of("must_pass", "case", case_id, must, reason)
            continue
        worst = max if target is not None and target.sign in ("<", "<=") else min
        value = worst((score for score, _ in scores if score is not None), default=None)
        reason = _why(scores, rule, target)
        yield Check.of("must_pass", "case", case_id, must, reason, value=value, n=len(scores))


def _verdict_checks(evidence: GateEvidence, ids: Iterable[str]) -> Iterator[Check]:
    """A check for each case that it does not fail, as every screen says it."""
    folder = evidence.new.folder
    run, table = None, evidence.tables[folder or Path()]
    if folder is not None:
        run = read_verdicts(folder, read_case_rules(evidence.targets), table=table)
    for case_id in ids:
        verdict = run.verdict(case_id) if run else None
        reasons: tuple[str, ...] = ()
        if verdict is None or run is None:
            reasons = ("the run has no score of this case",)
        elif not verdict.measured:
            reasons = ("no answer to it could be read",)
        elif verdict.fails:
            key = failing_answer(run, case_id, verdict)
            reasons = reasons_in_words(run.ruling, verdict, lines_of(table, run.ruling, key))
        n = None if verdict is None else verdict.answers
        yield Check.of("must_pass", "case", case_id, "does not fail", "; ".join(reasons), n=n)


def _good_end(evidence: GateEvidence, section: str, metric: str) -> Target | None:
    """The best value that the metric can have; None when no catalogue row tells."""
    definition = evidence.new.part(section, "definitions", metric)
    row = known_metrics(evidence.custom).get(definition)
    if row is None:
        return None
    end = row.high if row.higher_is_better else row.low
    return None if end is None else Target(">=" if row.higher_is_better else "<=", end)


def _answers(
    evidence: GateEvidence, section: str, metric: str, ids: dict[str, None]
) -> dict[str, list[tuple[float | None, str]]]:
    """Score and reason of each answer to the named cases."""
    folder = evidence.new.folder
    if folder is None or section not in scored_sections(folder):
        return {}
    lines = evidence.tables[folder].section(section).lines_of(ids, ALL_BUT_EVIDENCE)
    return {
        case_id: [(line.scores.get(metric), line.reasons.get(metric, line.status)) for line in own]
        for case_id, own in lines.items()
    }


def _why(answers: list[tuple[float | None, str]], rule: MustPass, target: Target | None) -> str:
    """Why a case does not pass; "" when every answer does."""
    if target is None:
        return f'what {rule.metric} should be is not known; write score = ">= …" with the rule'
    unscored = [reason for score, reason in answers if score is None]
    if unscored:
        return f"{rule.metric} is not scored ({unscored[0] or 'no reason given'})"
    bad = [score for score, _ in answers if not target.passed(score)]
    if not bad:
        return ""
    times = f" in {len(bad)} of {len(answers)} answers" if len(answers) > 1 else ""
    return f"{rule.metric} is {number(bad[0])}{times}, must be {target}"

"""The suite: all sections of a run together, checked against gates and a baseline, with traces."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from decisions.case_changes import changes_of, read_pair
from decisions.case_lines import update_case_lines
from decisions.case_rules import basis_from, read_case_rules
from decisions.case_verdict import Ruling, read_verdicts
from decisions.change import change_of
from decisions.conditions import Conditions, baseline_of, measured_run, with_settings
from decisions.diagnosis import diagnose
from decisions.evidence_path import read_paths
from decisions.first_look import worst_cases
from decisions.gate import check_names, evaluate
from decisions.gate_baseline import comparable
from decisions.gate_checks import HEAD, GateEvidence, left_out_of
from decisions.gate_rules import GateRules, read_rules
from decisions.measures import measures
from decisions.primary import primary_names
from decisions.regressions import (
    caveats,
    compare_means,
    on_shared,
    regressions,
)
from decisions.slices import common_slices
from ragmetrics import catalogue
from ragmetrics.catalogue.metric import Metric
from records.cases import TestCase
from records.errors import StorageError
from records.files import replace_bytes
from records.gate_verdict import WORSE, Check
from records.labels import read_cases
from records.metric_lines import PRIMARY
from records.metrics import CASE_FINGERPRINTS, PRIMARY_METRICS, MeasuredSection, read_sections
from records.results import SCHEMA, RunConfig
from records.run import Run, Runs
from records.runs import (
    CONFIG,
    METRICS,
    ROOT,
    SUITE,
    find_run,
    read_config,
)
from records.scores import ScoreLine, read_whole_scores
from records.targets import GATES, TARGETS, read_advisory, read_targets
from scorers.contract import ScoringJob
from scorers.copies import copy_of_part, scored_alike
from scorers.custom import read_plugins
from scorers.sections import SectionOutcome, chosen, has_part, try_section
from scorers.suite_options import SuiteOptions
from scorers.suite_report import SuiteReport, write_report

if TYPE_CHECKING:
    from rich.console import Console


Key = tuple[str, int]

MOST_CHANGED = 20
"""Cases that broke, and cases that were fixed, that are named with their reasons."""


def _write_traces(
    name: str,
    ruling: Ruling,
    job: ScoringJob,
    folder: Path,
    label: str,
) -> tuple[Path, int]:
    """Write traces/<section>-<label>.jsonl in ``folder``; returns its path and its lines.

    A line for each answer that breaks a rule on this section by which cases fail, and for each
    failed call; of labelled prompts, for those that were judged wrongly. Raises StorageError when
    the folder cannot be written. Memory: the traces.
    """
    failed = dict(_failed_lines(name, job.folder, ruling))
    path = folder / "traces" / f"{name}-{label}.jsonl"
    config = job.folder / CONFIG
    run_config = read_config(job.folder) if config.exists() else None
    run = {"run_id": folder.name, "config_hash": run_config.config_hash if run_config else None}
    cases = _cases(job, {case_id for case_id, _ in failed})
    results = dict(_results(job.folder, failed))
    lines = []
    for key, row in failed.items():
        trace = {"schema": SCHEMA, "perspective": name} | run | row
        trace |= {"case": cases.get(key[0]), "result": results.get(key)}
        lines.append(orjson.dumps(trace) + b"\n")
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path.parent}: cannot be made ({error.strerror}).") from None
    replace_bytes(path, b"".join(lines))
    return path, len(failed)


def _failed_lines(name: str, folder: Path, ruling: Ruling) -> Iterator[tuple[Key, dict[str, Any]]]:
    must = {
        row.name: 1.0 if row.higher_is_better else 0.0
        for row in catalogue.SECTIONS[name].metrics
        if row.must
    }
    for line in read_whole_scores(folder, name):
        misses = [
            {"metric": metric, "score": score, "target": f"{must[metric]:g}"}
            for metric, score in line.scores.items()
            if score is not None and must.get(metric, score) != score
        ]
        misses += _broken(name, line, ruling)
        if misses or line.status == "failed":
            yield (line.case_id, line.repeat), msgspec.to_builtins(line) | {"failed": misses}


def _broken(section: str, line: ScoreLine, ruling: Ruling) -> Iterator[dict[str, Any]]:
    """The rules on a section by which an answer fails."""
    scores = {f"{section}.{name}": value for name, value in line.scores.items()}
    for rule in ruling.rules_of(ruling.settle(ruling.broken(scores))[0]):
        score = line.scores.get(rule.metric.partition(".")[2])
        says = ruling.sentence(rule, scores, line.evidence)
        target = f"{rule.sign} {rule.bound:g}"
        yield {"metric": rule.metric, "score": score, "target": target, "says": says}


def _cases(job: ScoringJob, ids: set[str]) -> dict[str, Any]:
    cases = Run(job.folder, job.eval_set, job.labels_dir, lean=False).cases
    return {name: msgspec.to_builtins(case) for name, case in cases.items() if name in ids}


def _results(folder: Path, keys: Mapping[Key, Any]) -> Iterator[tuple[Key, dict[str, Any]]]:
    """What the bot returned, whole, to the failed cases and labelled prompts."""
    run = Run(folder)
    answers = run.iter_results() if run.results_path.exists() else iter(())
    for result in chain(answers, run.safety_results or ()):
        key = (result.test_case_id, result.repeat)
        if key in keys:
            yield key, result.to_dict(store_full_text=True)


OF_EACH_CASE = (PRIMARY, PRIMARY_METRICS, CASE_FINGERPRINTS)
"""Members of metrics.json that make a report a baseline."""

LACKING = ("missing", "measured", WORSE)
"""Rules of the gate that fail for scores that are missing."""

SMOKE = (
    "{cases} cases, some of every kind. Embeddings are scored only if their vectors are stored "
    "already: no model is loaded."
)

RESTORE = "delete the file, or restore it from git"

GONE = "the run has no such section; score it like the baseline"

EARLIER = "scored earlier, by its own script"


def run_suite(plan: SuiteOptions, console: Console) -> tuple[SuiteReport, list[Path]]:
    """Make or find the run, score it, compare it, write the report. Returns also what was written.

    All that the user may have got wrong is looked at before anything is asked or scored.
    """
    custom = read_plugins(plan.plugins)
    sections = chosen(plan.sections, custom=bool(custom))
    targets = read_targets(plan.targets_file or TARGETS)
    advisory = read_advisory(plan.targets_file or TARGETS)
    rules = None
    if plan.gates_file is not None:
        rules = replace(read_rules(plan.gates_file), allow_missing=plan.allow_missing)
    if plan.baseline is not None and not plan.baseline.is_file():
        base_folder = find_run(plan.results_dir, str(plan.baseline))
        plan = replace(plan, baseline=base_folder / METRICS)
    base = baseline_of(plan.results_dir, str(plan.baseline)) if plan.baseline else None
    ids = _smoke_ids(read_cases(plan.eval_set, plan.labels_dir)) if plan.smoke else []
    if plan.api_url:
        _check_gates(rules, ())
        real = _ask(plan.asking(sections), ids)
    else:
        real = find_run(plan.results_dir, plan.run)
        _check_gates(rules, _scored_so_far(real).get("sections", {}))
    with contextlib.ExitStack() as stack:
        folder = real
        if plan.smoke and not plan.api_url:
            temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="rag-eval-"))
            folder = copy_of_part(
                real, ids, Path(temporary), " (the smoke suite's); use --suite full"
            )
        if plan.sections is None:
            rows = catalogue.SECTIONS
            sections = [name for name in sections if has_part(folder, plan.eval_set, rows[name])]
        job = ScoringJob(
            folder,
            plan.eval_set,
            plan.labels_dir,
            plan.seed,
            console=console,
        )
        outcomes = _score(sections, job, plan, custom)
        if plan.sections is None:
            outcomes += _earlier(folder, outcomes)
        scored = {o.name: o.section for o in outcomes if o.section}
        numbers = measures(scored, targets, custom, advisory)
        head = _scored_so_far(folder)
        report = SuiteReport(
            run_id=real.resolve().name,
            suite=plan.suite,
            outcomes=outcomes,
            measures=numbers,
            findings=diagnose(numbers, scored),
            header={name: head[name] for name in HEAD if name in head},
            left_out=SMOKE.format(cases=len(ids)) if plan.smoke else "",
            primary={name: head[name] for name in OF_EACH_CASE if name in head},
        )
        figures = {**report.header, "sections": report.sections()}
        new = with_settings(
            Conditions(report.run_id, figures, RunConfig(report.run_id), folder, folder)
        )
        evidence = GateEvidence(
            new,
            base,
            plan.eval_set,
            plan.labels_dir,
            custom,
            plan.seed,
            plan.targets_file or TARGETS,
        )
        if base is not None and base.folder is not None:
            again = scored_alike(base.folder, folder, plan.eval_set, plan.labels_dir)
            scored_base = stack.enter_context(again)
            base = measured_run(scored_base.folder)
            evidence = replace(evidence, base=base, rescored=scored_base.cases)
        if rules is not None:
            asked = {*sections} if plan.sections else None
            report.gates, report.gates_unused = _gates(rules, evidence, asked)
        case_rules = read_case_rules(plan.targets_file or TARGETS)
        tables = Runs()
        run = read_verdicts(folder, case_rules, table=tables[folder])
        report.verdicts = run.counts() if run.cases else None
        report.worst = worst_cases(run, plan.eval_set, plan.labels_dir)
        paths = read_paths([tables[folder]], plan.eval_set, plan.labels_dir, run.ruling)
        report.path = replace(paths[0], run_id=report.run_id) if paths else None
        where = (plan.eval_set, plan.labels_dir, plan.embed)
        report.in_common.append(common_slices(run, *where))
        if base is not None:
            pair = read_pair(base.source, folder, case_rules, tables)
            report.cases = changes_of(pair, MOST_CHANGED)
            report.in_common.append(common_slices(pair, *where))
            _compare(plan, report, base, evidence)
            few = report.headline == "TOO FEW" and evidence.sets_differ
            if (few or report.headline == "INCOMPLETE") and report.passed:
                own = rules or GateRules(None, allow_missing=plan.allow_missing)
                shared = {*_compared(plan, outcomes, base)}
                failed = evaluate(own, evidence, sections=shared).of("failed")
                report.gates = [check for check in failed if check.rule in LACKING]
        name = SUITE if plan.suite == "full" else f"{SUITE}-{plan.suite}"
        stem = plan.output or real / name
        path = stem.with_name(f"{stem.name}.json")
        written = write_report(report, path, folder / METRICS, copied=folder != real)
        traces = _traces(plan, sections, report, job, real)
    return report, [written, *traces]


def _score(
    sections: Sequence[str],
    job: ScoringJob,
    plan: SuiteOptions,
    custom: tuple[Metric, ...],
) -> list[SectionOutcome]:
    values = {
        "embedding_model": plan.embedding_model,
        "support_model": plan.support_model,
        "cache_dir": plan.cache_dir,
        "cached_only": plan.smoke,
        "custom": custom,
    }
    outcomes = []
    job = replace(job, case_lines=False)
    try:
        for name in sections:
            outcomes.append(try_section(name, job, values))
    except BaseException:
        with contextlib.suppress(StorageError):  # the fault that ends the suite is the one to tell
            _write_case_lines(job, outcomes)
        raise
    _write_case_lines(job, outcomes)
    return outcomes


def _write_case_lines(job: ScoringJob, outcomes: Sequence[SectionOutcome]) -> None:
    """The lines of the cases, of all sections that were scored by now."""
    if any(outcome.section is not None for outcome in outcomes):
        update_case_lines(job.folder, job.eval_set)


def _compare(
    plan: SuiteOptions, report: SuiteReport, baseline: Conditions, evidence: GateEvidence
) -> None:
    """Into the report: what became of the baseline's numbers, and why not to compare them."""
    scored = _compared(plan, report.outcomes, baseline)
    differing = left_out_of(evidence, scored)
    compared = [name for name in scored if name not in differing]
    gone = dict.fromkeys(compared, GONE)
    gone |= {o.name: "" if o.status == "scored" else o.reason for o in report.outcomes}
    names = [n for n in primary_names(evidence.targets) if n.partition(".")[0] in compared]
    result = regressions(evidence, names, compared if evidence.sets_differ else ())
    primary = {name: change_of(name, primary=True) for name in result.lost}
    primary |= {change.name: change for change in result.changes if not change.left_out}
    report.baseline, report.max_drop = str(plan.baseline), plan.max_drop
    changes = compare_means(baseline, report.measures, compared, primary, gone)
    if evidence.sets_differ:
        changes = [on_shared(change, result) for change in changes]
    listed = {change.name for change in changes}
    # A baseline, such as an older one, may have scores of a metric and no mean.
    changes += [
        replace(change, base_mean=change.base, new_mean=change.new)
        for change in result.changes
        if change.name not in listed
    ]
    report.changes, report.no_verdict = changes, result.no_verdict
    if evidence.alignment is not None:  # of unlike sets there is no verdict
        report.headline, report.says = result.headline, result.says
    report.caveats = [
        *caveats(baseline, plan.suite, report.header.get("cases", 0)),
        *result.notes,
    ]
    both = set(scored) & set(baseline.sections) & set(report.sections())
    report.unlike = comparable(evidence, both).reason


def _compared(
    plan: SuiteOptions, outcomes: Sequence[SectionOutcome], baseline: Conditions
) -> list[str]:
    """What to compare: all that was asked for and, when that is all, what the baseline has more.

    Not what the smoke suite leaves out: embeddings without vectors, and sections of other scripts.
    """
    names = dict.fromkeys(outcome.name for outcome in outcomes)
    if plan.sections is None:
        names |= dict.fromkeys(baseline.sections)
    if plan.smoke:
        left_out = {
            outcome.name
            for outcome in outcomes
            if outcome.status == "cannot run"
            and "embedding model" in catalogue.SECTIONS[outcome.name].needs
        }
        names = {name: None for name in catalogue.SECTIONS if name in names.keys() - left_out}
    return list(names)


def _scored_so_far(folder: Path) -> dict[str, Any]:
    """The run's metrics.json; {} before anything was scored."""
    path = folder / METRICS
    return read_sections(path, MeasuredSection, RESTORE) if path.exists() else {}


def _earlier(folder: Path, outcomes: Sequence[SectionOutcome]) -> list[SectionOutcome]:
    """Sections that other scripts have put into metrics.json, such as a judge's."""
    sections = _scored_so_far(folder).get("sections", {})
    names = {outcome.name for outcome in outcomes} | {"custom"}
    return [
        SectionOutcome(name, "scored", EARLIER, section)
        for name, section in sections.items()
        if name not in names and {"mean", "n", "ci95", "definitions"} <= section.keys()
    ]


def _check_gates(rules: GateRules | None, scored: Iterable[str]) -> None:
    """Raises StorageError for gates that could never be looked at: of no section there is."""
    if rules is not None:
        check_names(rules, [*catalogue.SECTIONS, *scored])


def _gates(
    rules: GateRules, evidence: GateEvidence, asked: set[str] | None
) -> tuple[list[Check], str]:
    """The gates that fail, and why none of the file counts. A gated section that has no numbers
    misses all of its gates."""
    least = (GATES, "min_compared") in rules.lines
    if not (rules.on("baseline") or rules.require_baseline or rules.slices or least):
        evidence = replace(evidence, base=None)
    verdict = evaluate(rules, evidence, sections=asked)
    unused = next((check.reason for check in verdict.of("skipped") if check.name == "gates"), "")
    failed = [check for check in verdict.of("failed") if check.rule != WORSE]  # told as regressions
    return failed, unused


def _traces(
    plan: SuiteOptions,
    names: Sequence[str],
    report: SuiteReport,
    job: ScoringJob,
    folder: Path,
) -> list[Path]:
    if not plan.save_trace:
        return []
    label = report.run_id + ("" if plan.suite == "full" else f"-{plan.suite}")
    sections = report.sections()
    rules = read_case_rules(plan.targets_file or TARGETS)
    ruling = Ruling(rules, basis_from(job.folder, sections))
    return [
        _write_traces(name, ruling, job, folder, label)[0] for name in names if name in sections
    ]


RUN_EVAL = ROOT / "eval" / "scripts" / "run_eval.py"


class _AskingFailed(StorageError):
    """run_eval has said what is wrong; its exit code is passed on."""

    def __init__(self, code: int) -> None:
        super().__init__("there is no run, so nothing was scored.")
        setattr(self, "exit_code", code)  # noqa: B010 - it is declared a class variable


def _ask(words: Sequence[str], ids: Iterable[str] = ()) -> Path:
    """Run run_eval.py with these options for all cases, or those with ``ids``; the run's folder.

    Its talk goes to our stderr. Raises AskingFailed with its exit code when it fails.
    """
    chosen = [word for case_id in ids for word in ("--filter", f"id={glob.escape(case_id)}")]
    command = [sys.executable, str(RUN_EVAL), *words, *chosen]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            out, _ = child.communicate()
        except BaseException:
            child.terminate()  # not killed: it has to say how the run goes on
            child.wait()
            raise
    if child.returncode != 0:
        raise _AskingFailed(child.returncode if child.returncode > 0 else 130)
    return Path(out.strip())


CASES = 24


def _smoke_ids(cases: Iterable[TestCase], count: int = CASES) -> list[str]:
    """Ids of at most ``count`` cases, in turn from each stratum (category x answerable).

    Within a stratum the order is that of the ids' hashes: the choice does not depend on the order
    of the file, and a new case changes it little. Returned in the order of ``cases``.
    """
    strata: dict[tuple[str, str], list[str]] = {}
    order: list[str] = []
    for case in cases:
        strata.setdefault((case.category or "", str(case.answerable)), []).append(case.id)
        order.append(case.id)
    queues = [sorted(ids, key=_hash, reverse=True) for _, ids in sorted(strata.items())]
    picked: set[str] = set()
    while any(queues) and len(picked) < count:
        for queue in queues:
            if queue and len(picked) < count:
                picked.add(queue.pop())
    return [case_id for case_id in order if case_id in picked]


def _hash(case_id: str) -> bytes:
    return hashlib.sha256(case_id.encode("utf-8", "surrogatepass")).digest()

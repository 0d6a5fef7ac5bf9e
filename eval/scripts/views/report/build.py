"""From the files of a run to the one object that every form of the report is drawn from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from decisions.case_rules import basis_from, read_case_rules
from decisions.case_verdict import Key, Ruling
from decisions.diagnosis import diagnose
from decisions.measures import measures
from decisions.primary import primary_names, usable_names
from ragmetrics.catalogue import right_metrics
from records.asked import missing_remark
from records.errors import StorageError
from records.files import sha256_file
from records.judgements import Verdicts, read_verdicts
from records.metrics import ReportSection, read_metrics, rounded, sections_without_slices
from records.notes import read_notes
from records.results import SCHEMA
from records.runs import METRICS, SLICES, VERDICTS, VERSION
from records.targets import TARGETS, Target
from records.verdicts import judge_of
from views.case import case_of
from views.report import answers, figures, other_runs
from views.report.case_list import (
    CaseListing,
    link_metrics,
    link_ranks,
    link_slices,
    order_of,
)
from views.report.case_rows import ROW_BYTES
from views.report.compared import (
    BaselineComparison,
    catalogue_row,
    compare_with,
    explain_changes,
    sentence,
)
from views.report.conversations import conversations
from views.report.described import describe
from views.report.other_runs import sweep_part
from views.report.scan import (
    PROMPTS,
    CasesRead,
    Name,
    ResultsScan,
    Scan,
    keys_at,
    lines_at,
    read_calibrations,
    read_cases,
    read_results,
    scan_scores,
)
from views.report.side_by_side import (
    FIGURE_BYTES,
    PAGE_BYTES,
    bytes_of,
    sides_before,
    with_changes,
)
from views.report.text import cut

MOST_CORRELATED = 20

MOST_DETAILS, FEWER_DETAILS = 1_000, 200
"""Answers that are read whole; the fewer of a run that is too large for the list."""


@dataclass(frozen=True)
class ReportOptions:
    """What the user asked for besides the run."""

    eval_set: Path
    labels_dir: Path | None
    targets: Mapping[str, Mapping[str, Target]]
    advisory: Mapping[str, Mapping[str, Target]] = field(default_factory=dict)
    worst: int | None = None
    worst_by: str | None = None
    confidence_by: str | None = None
    baseline: Path | None = None
    ignore_invariants: bool = False
    history: bool = False
    targets_file: Path = TARGETS


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
    primary = usable_names(folder, metrics, primary_names(options.targets_file))
    primary = tuple(name for name in primary if _split(name)[0] in sections)
    scan, success, absent = _scan(folder, sections, options, primary)
    baseline = None
    if options.baseline is not None:
        baseline = compare_with(
            options.baseline,
            folder,
            options.eval_set,
            options.targets_file,
            ignore_invariants=options.ignore_invariants,
        )
    cases = _case_list(folder, scan, sections, options, baseline)
    whole = FEWER_DETAILS if not cases.whole() else MOST_DETAILS
    detailed = cases.order[: whole if options.worst is None else min(whole, options.worst)]
    back = read_results(folder, scan, detailed, set(cases.order))
    cases.questions = back.questions
    read = read_cases(
        options.eval_set,
        options.labels_dir,
        {cases.keys[row][0] for row in detailed if row in cases.keys},
        {key[0] for key in cases.keys.values()},
        questions=not back.questions,
    )
    cases.slices = read.slices
    notes = []
    if absent:
        notes.append(f"Without score file, so without single answers: {', '.join(absent)}.")
    judged = read_calibrations(folder)
    link_metrics(cases, perspectives)
    slices = figures.slices(sections, order)
    link_slices(cases, slices)
    ranks = _first_relevant(scan, _passing(sections) or _right(sections), sections)
    link_ranks(cases, ranks)
    columns = [_split(name) for name in primary if _split(name) in scan.values]
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
        "headline": _headline(sections, primary, baseline),
        "verdict": figures.verdict(
            perspectives,
            metrics.get("cases", 0),
            metrics.get("errors", 0),
            missing_remark(metrics),
        ),
        "comparison": baseline.part if baseline else None,
        "trend": other_runs.trend(folder, options.eval_set, options.targets_file, primary)
        if options.history
        else None,
        "notes": notes + back.notes + _set_notes(metrics, options.eval_set),
        "diagnosis": [finding.to_dict() for finding in diagnose(rated, sections)],
        "perspectives": perspectives,
        "slices": slices,
        "slices_missing": _missing_slices(folder, metrics),
        "first_relevant": ranks,
        "latency": figures.latency(sections.get("pipeline"))
        | {"slowest": [[*cases.keys[row], ms] for ms, row in back.slowest if row in cases.keys]},
        "stability": figures.stability(sections),
        "outcomes": _outcomes(sections, cases),
        "confidence": _confidence(scan, back, success, sections, cases),
        "judge_calibrations": [answers.calibration(stored) for stored in judged],
        "correlations": _correlations(scan),
        "worst": _answers(folder, cases, back, detailed, read, options, baseline),
        "prompts": _prompts(scan),
        "errors": back.errors,
        "not_applicable": _not_applicable(scan, cases),
        "configuration": back.configuration,
    } | sweep_part(folder)
    if talks := conversations(report["worst"]["listed"]):
        report["conversations"] = talks
    rounded_report: dict[str, Any] = rounded(report)
    rounded_report["case_list"] = cases.part(columns, read.questions)
    return rounded_report


def _set_notes(metrics: Mapping[str, Any], eval_set: Path) -> list[str]:
    scored = metrics.get("eval_set_sha256")
    if not eval_set.exists():
        return [f"{eval_set} is not there, so no text of it is shown; name it with --eval-set."]
    if scored not in (None, sha256_file(eval_set)):
        return ["The eval set has changed since the run was scored; its texts may differ."]
    return []


def _missing_slices(folder: Path, metrics: Mapping[str, Any]) -> str:
    """Why sections have no means by slice and what makes them; "" when all have."""
    lacking = sections_without_slices(folder / METRICS)
    if not lacking:
        return ""
    run = metrics.get("run_id") or folder.resolve().name
    return (
        f"Without means by slice: {', '.join(lacking)}. {folder / SLICES}, which git leaves out, "
        f"is missing or of another scoring; eval_suite.py --run {run} makes it from the results."
    )


def _split(name: str) -> Name:
    """Section and metric of ``section.metric``."""
    section, _, metric = name.partition(".")
    return section, metric


def _headline(
    sections: Mapping[str, Any], primary: Sequence[str], baseline: BaselineComparison | None
) -> list[str]:
    """The primary metrics in sentences; with a baseline what they were, and the verdicts, those
    that changed first."""
    compared = baseline.part if baseline else {"sentences": [], "primary": []}
    lines = [said["text"] for said in compared["sentences"]]
    done = {f"{row['section']}.{row['metric']}" for row in compared["primary"] if row["says"]}
    for name in primary:
        section, metric = _split(name)
        mean = sections[section]["mean"].get(metric)
        if name not in done and mean is not None:
            lines.append(f"{sentence(catalogue_row(metric), metric, mean)}.")
    return lines


def _case_list(
    folder: Path,
    scan: Scan,
    sections: Mapping[str, Any],
    options: ReportOptions,
    baseline: BaselineComparison | None,
) -> CaseListing:
    changes, ways = (baseline.changes, baseline.ways) if baseline else ({}, {})
    by = _named(sections, options.worst_by) if options.worst_by else None
    order = order_of(scan, ways, by)
    return CaseListing(scan, order, keys_at(folder, scan, order), changes, ways)


def _outcomes(sections: Mapping[str, Any], cases: CaseListing) -> dict[str, Any]:
    """How responses ended, with the answers that ended otherwise than expected."""
    outcomes = figures.outcomes(sections.get("pipeline"))
    for row in outcomes["rows"]:
        row["cases"] = cases.links_of("outcome", row["expected"])
    return outcomes


def _scan(
    folder: Path, sections: Mapping[str, Any], options: ReportOptions, primary: Sequence[str]
) -> tuple[Scan, Name | None, list[str]]:
    """Read the score files once, keeping the columns that the report needs."""
    columns: dict[str, list[str]] = {}
    for name, section in sections.items():
        names = figures.metrics_in_order(section)
        if name != PROMPTS:
            columns[name] = figures.summary_of(name, names)
    success = _named(sections, options.confidence_by) if options.confidence_by else None
    success = success or _right(sections)
    worst = _named(sections, options.worst_by) if options.worst_by else None
    extra = (success, _passing(sections) or _right(sections), worst, *map(_split, primary))
    for named in extra:
        if named and named[1] not in columns[named[0]] and named[1] in sections[named[0]]["mean"]:
            columns[named[0]].append(named[1])
    ruling = Ruling(read_case_rules(options.targets_file), basis_from(folder, sections))
    scan, absent = scan_scores(folder, sections, columns, ruling)
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
    good = _good(scan, sections, success)
    if success is None or good is None:
        return figures.ranks(scan.first_ranks) | {"says": None}
    outcomes = (None if isnan(score) else good.passed(score) for score in scan.column(success))
    says = _in_words(scan, success, good)
    return figures.ranks(scan.first_ranks, outcomes) | {"says": says}


def _in_words(scan: Scan, name: Name, good: Target) -> str:
    """When an answer is right: ``correctness > 2``, or ``pass = 1`` at the end of a range."""
    of_rule = scan.verdicts.ruling.keeps(".".join(name)) is not None
    return f"{name[1]} {good if of_rule else f'= {good.bound:g}'}"


def _good(scan: Scan, sections: Mapping[str, Any], name: Name | None) -> Target | None:
    """What a rule for single cases asks of a metric, else the good end of its range."""
    if name is None:
        return None
    metric = figures.rows_of(sections[name[0]]).get(name[1])
    end = None if metric is None else metric.high if metric.higher_is_better else metric.low
    rule = scan.verdicts.ruling.keeps(".".join(name))
    if rule is not None or metric is None or end is None:
        return rule
    return Target(">=" if metric.higher_is_better else "<=", end)


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


def _judged(folder: Path, keys: Collection[Key]) -> Verdicts | None:
    """What the run's present judge said of some answers. Raises StorageError for a damaged file."""
    if not (folder / VERDICTS).exists():
        return None
    keep = lambda line: (line["case_id"], line["repeat"]) in keys  # noqa: E731
    return read_verdicts(folder, judge_of(folder), keep=keep)


def _answers(
    folder: Path,
    cases: CaseListing,
    back: ResultsScan,
    rows: Sequence[int],
    read: CasesRead,
    options: ReportOptions,
    baseline: BaselineComparison | None,
) -> dict[str, Any]:
    """The answers in full, in the order of the list, as long as the page has room for them."""
    scan, keys = cases.scan, cases.keys
    rows = [row for row in rows if keys.get(row) in back.results]
    lines = lines_at(folder, scan, rows)
    judged = _judged(folder, {keys[row] for row in rows})
    before: dict[str, dict[str, Any]] = {}
    if baseline is not None:
        changed = {keys[row][0] for row in rows if keys[row][0] in cases.changes}
        before = sides_before(baseline.table, changed, read.cases)
    notes = read_notes(options.eval_set, options.labels_dir)
    listed: list[dict[str, Any]] = []
    room = PAGE_BYTES - FIGURE_BYTES - ROW_BYTES * len(cases.order)
    for row in rows:
        key = keys[row]
        case = case_of(back.results[key], read.cases.get(key[0]), lines[row], judged)
        answer = describe(case, case.say(scan.verdicts.ruling, scan.verdicts.broken[row]))
        own = cases.changes.get(key[0], ()) if key[1] == 0 else ()
        way = baseline.ways.get(key[0], "") if baseline and key[1] == 0 else ""
        answer = with_changes(answer, own, before.get(key[0]), way)
        answer["notes"] = [note.line() for note in notes.get(key[0], ())]
        room -= bytes_of(answer)
        if room < 0:
            break
        listed.append(answer)
    if baseline is not None:
        explain_changes(baseline.part, listed)
    verdicts = scan.verdicts.counts()
    return {
        "by": options.worst_by,
        "answers": len(scan.answers),
        "verdicts": verdicts.to_dict() | {"says": verdicts.says()},
        "listed": listed,
        "left_out": len(scan.answers) - len(listed),
    }


def _confidence(
    scan: Scan,
    back: ResultsScan,
    success: Name | None,
    sections: Mapping[str, Any],
    cases: CaseListing,
) -> dict[str, Any]:
    """Reliability of the confidences of answers given, or why there is none."""
    if success is None:
        return {"reason": "nothing says which answers are right (no labels, no judge)"}
    name = success[1]
    good = _good(scan, sections, success)
    if good is None:
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
                right = bool(good.passed(score))
                if not right:
                    scan.figure("confidence", str(figures.bin_of(confidence))).add(row)
                yield confidence, right

    reliability = figures.reliability(pairs())
    if not reliability["n"]:
        counts = ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
        return {"reason": f"no answer counts ({counts or 'none was read'})"}
    for group in reliability["bins"]:
        group["cases"] = cases.links_of("confidence", str(round(group["from"] * figures.BINS)))
    return {
        "success": _in_words(scan, success, good),
        "left_out": {why: count for why, count in left_out.items() if count},
        **reliability,
    }


def _correlations(scan: Scan) -> dict[str, Any]:
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
        "method": "spearman",
        "metrics": [{"section": section, "metric": metric} for section, metric in shown],
        "left_out": [name[1] for _, name in placed if name not in shown_names],
        **figures.matrix([scan.column(name) for name in shown]),
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


def _not_applicable(scan: Scan, cases: CaseListing) -> list[dict[str, Any]]:
    """Why scores are missing: a row for each section and reason."""
    rows = []
    for section, reasons in scan.reasons.items():
        for reason, metrics in reasons.items():
            stems = dict.fromkeys(name.partition("@")[0] for name in sorted(metrics))
            row = {"section": section, "reason": reason, "answers": max(metrics.values())}
            row["cases"] = cases.links_of("reason", section, reason) if section != PROMPTS else None
            rows.append(row | {"metrics": ["all" if stem == "*" else stem for stem in stems]})
    return sorted(rows, key=lambda row: (row["section"], -row["answers"], row["reason"]))

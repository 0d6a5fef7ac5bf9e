"""From the files of a run to its typed report, and of two runs to the page of their comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from decisions.case_changes import Ways
from decisions.case_rules import basis_from, read_case_rules
from decisions.case_verdict import Key, Ruling
from decisions.comparison import Comparison
from decisions.diagnosis import diagnose
from decisions.evidence_path import read_paths
from decisions.measures import measures
from decisions.metric_words import catalogue_row, sentence, value_in_words
from decisions.primary import primary_names, usable_names
from decisions.slices import Embed, common_slices
from ragmetrics.catalogue import right_metrics
from records import extras
from records.asked import missing_remark, unreadable_remark
from records.cases import TestCase
from records.errors import StorageError
from records.files import sha256_file
from records.judgements import Verdicts, read_verdicts
from records.metrics import ReportSection, read_metrics, sections_without_slices
from records.notes import read_notes
from records.results import SCHEMA, UNREADABLE
from records.run import Run, Runs
from records.runs import METRICS, SLICES, VERDICTS, VERSION
from records.scores import OWN_TEXTS
from records.targets import TARGETS, Target
from records.verdicts import judge_of
from terminal.page import Block
from views.case import Said, case_of
from views.case_files import first_answers, read_asked
from views.report import figures
from views.report.answers import (
    CasesRead,
    Name,
    ResultsRead,
    RunAnswers,
    read_calibrations,
    read_cases,
    read_results,
)
from views.report.case_list import CaseListing, order_of
from views.report.compared import (
    BaselineComparison,
    compare_with,
    comparison_part,
    explain_changes,
    history_part,
    latency_of,
    of_comparison,
)
from views.report.described import bytes_of, conversations, describe
from views.report.model import (
    CorrelationMatrix,
    FirstRanks,
    MetricName,
    MissingScores,
    NoReliability,
    Reliability,
    WrongPrompt,
    WrongPrompts,
)
from views.report.page import ROW_BYTES, comparison_page
from views.report.report import AnswerSide, AnswersInFull, CaseChange, ReportAnswer, RunReport
from views.report.text import cut

MOST_CORRELATED = 20

MOST_DETAILS, FEWER_DETAILS = 1_000, 200
"""Answers that are read whole; the fewer of a run that is too large for the list."""

PAGE_BYTES = 5_000_000
"""Largest size of a page. Rows of the list and figures come first; answers in full fill the rest.
"""

FIGURE_BYTES = 700_000
"""Largest size of all figures."""


@dataclass(frozen=True)
class ReportOptions:
    """The user's choices besides the run."""

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
    embed: Embed | None = None
    """Gives the vectors of questions, to find topics of failing cases."""


def build(folder: Path, options: ReportOptions) -> RunReport:
    """The report of a run, the same for the same files.

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
    primary = usable_names(folder, metrics, primary_names(options.targets_file))
    primary = tuple(name for name in primary if _split(name)[0] in sections)
    columns, success = _columns(sections, options, primary)
    table, baseline = Run(folder, explained=True), None
    if options.baseline is not None:
        baseline = compare_with(
            options.baseline,
            table,
            options.eval_set,
            options.targets_file,
            ignore_invariants=options.ignore_invariants,
            labels_dir=options.labels_dir,
            embed=options.embed,
        )
    ruling = Ruling(read_case_rules(options.targets_file), basis_from(folder, sections))
    answers = RunAnswers(table, sections, columns, ruling)
    cases = _case_list(answers, sections, options, baseline)
    whole = FEWER_DETAILS if not cases.whole() else MOST_DETAILS
    detailed = cases.order[: whole if options.worst is None else min(whole, options.worst)]
    back = read_results(answers, detailed, set(cases.order))
    cases.questions = back.questions
    read = read_cases(
        options.eval_set,
        options.labels_dir,
        {cases.keys[row][0] for row in detailed if row in cases.keys},
        {key[0] for key in cases.keys.values()},
        questions=not back.questions,
    )
    cases.slices = read.slices
    notes = list(extras.missing_in(folder, table.config.run))
    if answers.absent:
        notes += [f"Without score file, so without single answers: {', '.join(answers.absent)}."]
    perspectives = [
        figures.perspective(name, sections[name], rated, cases.of_metric) for name in order
    ]
    where = options.eval_set, options.labels_dir
    in_common = common_slices(answers.verdicts, *where, options.embed)
    tables = [table] if baseline is None else [baseline.table, table]
    in_full = _answers(cases, back, detailed, read, options, baseline)
    listed = [_split(name) for name in primary if answers.shows(_split(name))]
    slowest = [(*cases.keys[row], ms) for ms, row in back.slowest if row in cases.keys]
    return RunReport(
        schema=SCHEMA,
        kind="report_run",
        tool_version=VERSION,
        run_id=metrics.get("run_id") or folder.resolve().name,
        config_hash=metrics.get("config_hash"),
        eval_set_sha256=metrics.get("eval_set_sha256"),
        asked=metrics.get("asked"),
        cases=metrics.get("cases", 0),
        missing=metrics.get("missing"),
        failed_calls=metrics.get("errors", 0),
        unreadable=metrics.get(UNREADABLE) or UNSET,
        headline=_headline(sections, primary, baseline),
        in_common=in_common.sentences(),
        verdict=figures.verdict(
            perspectives,
            metrics.get("cases", 0),
            metrics.get("errors", 0),
            missing_remark(metrics),
            unreadable_remark(metrics),
        ),
        comparison=explain_changes(baseline.part, in_full.listed) if baseline else None,
        trend=history_part(folder, primary) if options.history else None,
        notes=notes + back.notes + _set_notes(metrics, options.eval_set),
        diagnosis=diagnose(rated, sections),
        perspectives=perspectives,
        slices=figures.slices(sections, order, cases.of_slices()),
        slices_missing=_missing_slices(folder, metrics),
        first_relevant=_first_relevant(cases, _passing(sections) or _right(sections), sections),
        latency=figures.latency(sections.get("pipeline"), slowest),
        outcomes=figures.outcomes(
            sections.get("pipeline"), lambda expected: cases.links_of("outcome", expected)
        ),
        confidence=_confidence(back, success, sections, cases),
        judge_calibrations=[figures.calibration(stored) for stored in read_calibrations(folder)],
        correlations=_correlations(answers),
        worst=in_full,
        prompts=_prompts(answers),
        errors=back.errors,
        not_applicable=_not_applicable(cases),
        configuration=back.configuration,
        case_list=cases.part(listed, read.questions),
        evidence_path=read_paths(tables, *where, ruling),
        latency_before=latency_of(options.baseline),
        of_extras=_of_extras(tables) or UNSET,
        conversations=conversations(in_full.listed) or UNSET,
    )


def _of_extras(runs: Sequence[Run]) -> dict[str, list[Block]]:
    """The blocks that extras add to the report of the last of some runs, by their keys."""
    added = {
        key: list(extra.load(reference)(runs))
        for extra, key, reference in extras.added(extras.BLOCKS)
    }
    return {key: blocks for key, blocks in added.items() if blocks}


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
    lines = [said.text for said in baseline.part.sentences] if baseline else []
    done = {m.row.name for m in baseline.part.primary if m.says} if baseline else set()
    for name in primary:
        section, metric = _split(name)
        part = sections[section]
        mean = part["mean"].get(metric)
        if name not in done and mean is not None:
            row, n = catalogue_row(name), part["n"].get(metric, 0)
            value = value_in_words(row, mean, n, repeated=bool(part.get("stability")))
            said = sentence(row, metric, value)
            lines.append(f"{said[0].upper()}{said[1:]}.")
    return lines


def _case_list(
    answers: RunAnswers,
    sections: Mapping[str, Any],
    options: ReportOptions,
    baseline: BaselineComparison | None,
) -> CaseListing:
    changes, ways = (baseline.changes, baseline.ways) if baseline else ({}, {})
    by = _named(sections, options.worst_by) if options.worst_by else None
    order = order_of(answers, ways, by)
    pair = baseline.pair if baseline else None
    return CaseListing(
        answers, order, answers.keys(order), changes, ways, pair=pair, by_harm=by is None
    )


def _columns(
    sections: Mapping[str, Any], options: ReportOptions, primary: Sequence[str]
) -> tuple[dict[str, list[str]], Name | None]:
    """The metrics, by section, whose scores the report needs, and the one that says what is right.

    Raises StorageError for a metric that the run has not.
    """
    columns: dict[str, list[str]] = {}
    for name, section in sections.items():
        names = figures.metrics_in_order(section)
        if name != OWN_TEXTS:
            columns[name] = figures.summary_of(name, names)
    success = _named(sections, options.confidence_by) if options.confidence_by else None
    success = success or _right(sections)
    worst = _named(sections, options.worst_by) if options.worst_by else None
    extra = (success, _passing(sections) or _right(sections), worst, *map(_split, primary))
    for named in extra:
        if named and named[1] not in columns[named[0]] and named[1] in sections[named[0]]["mean"]:
            columns[named[0]].append(named[1])
    return columns, success


def _right(sections: Mapping[str, Any]) -> Name | None:
    """The metric of the run that says best whether an answer is right."""
    return next((metric for metric in right_metrics() if _says(sections, metric)), None)


def _passing(sections: Mapping[str, Any]) -> Name | None:
    """Whether an answer passed all checks of the pipeline; None when that was not scored."""
    section = sections.get("pipeline", {"n": {}})
    return ("pipeline", "pass") if section["n"].get("pass") else None


def _first_relevant(
    cases: CaseListing, success: Name | None, sections: Mapping[str, Any]
) -> FirstRanks:
    """Where the first relevant passage stood, and how often the answer was a success then."""
    ruling, ranks = cases.answers.verdicts.ruling, cases.answers.first_ranks.data
    good = _good(ruling, sections, success)
    if success is None or good is None:
        return figures.ranks(ranks, links=cases.of_ranks)
    scores = cases.answers.column(success).data
    outcomes = (None if isnan(score) else good.passed(score) for score in scores)
    return figures.ranks(ranks, outcomes, _in_words(ruling, success, good), cases.of_ranks)


def _in_words(ruling: Ruling, name: Name, good: Target) -> str:
    """When an answer is right: ``correctness > 2``, or ``pass = 1`` at the end of a range."""
    of_rule = ruling.keeps(".".join(name)) is not None
    return f"{name[1]} {good if of_rule else f'= {good.bound:g}'}"


def _good(ruling: Ruling, sections: Mapping[str, Any], name: Name | None) -> Target | None:
    """What a rule for single cases asks of a metric, else the good end of its range."""
    if name is None:
        return None
    metric = figures.rows_of(sections[name[0]]).get(name[1])
    end = None if metric is None else metric.high if metric.higher_is_better else metric.low
    rule = ruling.keeps(".".join(name))
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
    cases = [name for name in sections if name != OWN_TEXTS]
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
    cases: CaseListing,
    back: ResultsRead,
    rows: Sequence[int],
    read: CasesRead,
    options: ReportOptions,
    baseline: BaselineComparison | None,
) -> AnswersInFull:
    """The answers in full, in the order of the list, as long as the page has room for them."""
    run, keys = cases.answers.verdicts, cases.keys
    rows = [row for row in rows if keys.get(row) in back.results]
    lines = cases.answers.lines(rows)
    judged = _judged(cases.answers.table.folder, {keys[row] for row in rows})
    before: dict[str, AnswerSide] = {}
    if baseline is not None:
        changed = {keys[row][0] for row in rows if keys[row][0] in cases.changes}
        before = sides_before(baseline.table, changed, read.cases)
    notes = read_notes(options.eval_set, options.labels_dir)
    listed: list[ReportAnswer] = []
    room = PAGE_BYTES - FIGURE_BYTES - ROW_BYTES * len(cases.order)
    for row in rows:
        key = case_id, repeat = keys[row]
        case = case_of(back.results[key], read.cases.get(case_id), lines[row], judged)
        answer = describe(case, case.say(run.ruling, run.broken[row]))
        own = cases.changes.get(case_id, ()) if repeat == 0 else ()
        way = cases.ways.get(case_id) if repeat == 0 else None
        answer = with_changes(answer, own, before.get(case_id), way)
        answer = replace(answer, notes=[note.line() for note in notes.get(case_id, ())])
        room -= bytes_of(answer)
        if room < 0:
            break
        listed.append(answer)
    verdicts = run.counts()
    return AnswersInFull(
        by=options.worst_by,
        answers=len(cases.answers),
        verdicts=verdicts.to_dict() | {"says": verdicts.says()},
        listed=listed,
        left_out=len(cases.answers) - len(listed),
    )


def _confidence(
    back: ResultsRead,
    success: Name | None,
    sections: Mapping[str, Any],
    cases: CaseListing,
) -> Reliability | NoReliability:
    """Reliability of the confidences of answers given, or why there is none."""
    if success is None:
        return NoReliability("nothing says which answers are right (no labels, no judge)")
    name = success[1]
    answers, ruling = cases.answers, cases.answers.verdicts.ruling
    good = _good(ruling, sections, success)
    if good is None:
        return NoReliability(f"{name} has no range, so nothing says from where it is a success")
    scores, abstained = answers.column(success), answers.abstained
    left_out = {"abstained": 0, "not scored": 0, "no confidence from 0 to 1": 0}
    wrong: dict[int, list[int]] = {}

    def pairs() -> Iterator[tuple[float, bool]]:
        for row, confidence in enumerate(back.confidences):
            if not back.answered[row]:
                continue
            if abstained[row]:
                left_out["abstained"] += 1
            elif not 0 <= confidence <= 1:
                left_out["no confidence from 0 to 1"] += 1
            elif isnan(scores[row]):
                left_out["not scored"] += 1
            else:
                right = bool(good.passed(scores[row]))
                if not right:
                    wrong.setdefault(figures.bin_of(confidence), []).append(row)
                yield confidence, right

    reliability = figures.reliability(pairs())
    if not reliability.n:
        counts = ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
        return NoReliability(f"no answer counts ({counts or 'none was read'})")
    bins = [
        replace(group, cases=cases.links(wrong.get(round(group.from_ * figures.BINS), ())))
        for group in reliability.bins
    ]
    return replace(
        reliability,
        bins=bins,
        success=_in_words(ruling, success, good),
        left_out={why: count for why, count in left_out.items() if count},
    )


def _correlations(answers: RunAnswers) -> CorrelationMatrix:
    """Correlations of the metrics that stand for their sections and that any answer has.

    Of too many, each section keeps its first ones.
    """
    placed = list(answers.measured())
    shown_names = {name for _, name in sorted(placed, key=lambda entry: entry[0])[:MOST_CORRELATED]}
    shown = [name for _, name in placed if name in shown_names]
    return figures.matrix(
        map(answers.column, shown),
        [MetricName(*name) for name in shown],
        left_out=[name[1] for _, name in placed if name not in shown_names],
    )


def _prompts(answers: RunAnswers) -> WrongPrompts:
    """Labelled prompts and texts that the guardrails judged wrongly."""
    listed = []
    count, wrong = answers.wrong_prompts()
    for line, misses in wrong:
        evidence = msgspec.to_builtins(line.evidence) or {}
        kind, category, score = map(evidence.get, ("kind", "category", "score"))
        text = cut(evidence.get("text"), 600)
        listed.append(WrongPrompt(line.case_id, kind, category, score, misses, text))
    return WrongPrompts(count, listed)


def _not_applicable(cases: CaseListing) -> list[MissingScores]:
    """Why scores are missing: a row for each section and reason."""
    rows = []
    for section, reasons in cases.answers.reasons.items():
        for reason, metrics in reasons.items():
            stems = dict.fromkeys(name.partition("@")[0] for name in sorted(metrics))
            links = cases.links_of("reason", section, reason) if section != OWN_TEXTS else None
            names = ["all" if stem == "*" else stem for stem in stems]
            rows.append(MissingScores(section, reason, max(metrics.values()), links, names))
    return sorted(rows, key=lambda row: (row.section, -row.answers, row.reason))


# A page of comparisons alone, and what it shares with the report: two answers side by side.


def sides_before(
    table: Run, ids: Collection[str], cases: Mapping[str, TestCase]
) -> dict[str, AnswerSide]:
    """Another run's answers and passages in some cases, by case id."""
    sides = {}
    for case_id, case in first_answers(table, ids, cases, _SECTIONS).items():
        answer = describe(case, Said())
        sides[case_id] = AnswerSide(*(getattr(answer, n) for n in AnswerSide.__struct_fields__))
    return sides


_SECTIONS = ("retrieval", "groundedness", "pipeline")
"""The sections that explain an answer beside another one."""


def with_changes(
    answer: ReportAnswer,
    changes: Sequence[CaseChange],
    before: AnswerSide | None,
    way: Ways | None = None,
) -> ReportAnswer:
    """An answer in full with its changes since the other run, and that run's answer. ``way``: broke
    or fixed."""
    shown = before if changes or way else None
    return replace(answer, changes=list(changes), way=way or "", before=shown)


def page_of_comparisons(
    comparisons: Sequence[Comparison],
    folders: Sequence[Path],
    eval_set: Path,
    labels_dir: Path | None,
    failures: Sequence[str] = (),
    targets: Path = TARGETS,
    tables: Runs | None = None,
    embed: Embed | None = None,
) -> bytes:
    """One self-contained HTML page of comparisons with the same base, ``folders[0]``.

    Of a single comparison the cases that broke or were fixed are shown in full, as many as the page
    has room for. ``tables``: what was read of the runs.
    """
    answers: Sequence[ReportAnswer] = ()
    left_out = 0
    if len(comparisons) == 1:
        tables, (base, new) = tables or Runs(), folders
        compared = of_comparison(
            comparisons[0],
            base,
            new,
            eval_set,
            targets,
            tables=tables,
            labels_dir=labels_dir,
            embed=embed,
        )
        answers, left_out = _changed_answers(compared, tables[new], eval_set, labels_dir)
        parts = [explain_changes(compared.part, answers)]
    else:
        parts = [comparison_part(comparison) for comparison in comparisons]
    names = [comparisons[0].base_id, *(comparison.new_id for comparison in comparisons)]
    title = " → ".join(names) if len(names) == 2 else ", ".join(names)
    return comparison_page(title, parts, answers, left_out, failures)


def _changed_answers(
    compared: BaselineComparison, new: Run, eval_set: Path, labels_dir: Path | None
) -> tuple[list[ReportAnswer], int]:
    """The cases that changed, as both runs answered them, and how many found no room."""
    ids = list(compared.changes)
    cases = read_asked(eval_set, labels_dir, ids) if eval_set.exists() else {}
    before = sides_before(compared.table, ids, cases)
    now = first_answers(new, ids, cases, _SECTIONS)
    notes = read_notes(eval_set, labels_dir)
    room = PAGE_BYTES - FIGURE_BYTES
    answers: list[ReportAnswer] = []
    for case_id in ids:
        if case_id not in now:
            continue
        described = describe(now[case_id], Said())
        way = compared.ways.get(case_id)
        answer = with_changes(described, compared.changes[case_id], before.get(case_id), way)
        answer = replace(answer, notes=[note.line() for note in notes.get(case_id, ())])
        room -= bytes_of(answer)
        if room < 0:
            break
        answers.append(answer)
    return answers, len(ids) - len(answers)

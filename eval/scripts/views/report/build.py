"""From the files of a run to its report, a page of blocks, and of two runs to their comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from decisions.case_rules import basis_from, read_case_rules
from decisions.case_verdict import Key, Ruling
from decisions.diagnosis import diagnose
from decisions.evidence_path import TITLE, path_blocks, read_paths
from decisions.first_look import (
    evidence_sentence,
    first_measures,
    target_table,
    to_do,
    worst_blocks,
    worst_cases,
)
from decisions.measures import measures
from decisions.primary import primary_names, usable_names
from decisions.slices import Embed, common_slices
from ragmetrics.stats.tally import facets_of, slices_of
from records import extras
from records.asked import missing_remark, unreadable_remark
from records.errors import StorageError
from records.files import sha256_file
from records.judgements import Verdicts
from records.metrics import ReportSection, read_metrics, sections_without_slices
from records.notes import read_notes
from records.results import UNREADABLE
from records.run import Run
from records.runs import METRICS, SLICES, VERDICTS
from records.scores import OWN_TEXTS
from records.targets import TARGETS, Target
from terminal.page import (
    AnyColumn,
    Block,
    CaseLinks,
    CasesColumn,
    Chart,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Section,
    Sides,
    items,
    plain_words,
)
from terminal.tables import counted
from views.case import Case, case_of
from views.case_blocks import ShownWith
from views.case_files import first_answers, read_asked
from views.report import figures, metrics
from views.report.answers import (
    QUESTION_CHARACTERS,
    CaseListing,
    Name,
    RunAnswers,
    differing_answers,
    order_of,
    read_results,
)
from views.report.cases import (
    FIGURE_BYTES,
    IN_PRINT,
    PAGE_BYTES,
    ROW_BYTES,
    SECTIONS,
    ShownCase,
    case_section,
    conversations,
    numbered,
    size_of,
)
from views.report.compared import (
    BaselineComparison,
    common_blocks,
    compare_with,
    comparison_blocks,
    head_blocks,
)
from views.report.success import (
    Success,
    calibration_blocks,
    first_relevant,
    passing_metric,
    right_metric,
)
from views.report.tables import (
    NO_SCORES,
    configuration,
    correlations,
    history_blocks,
    moment,
    not_applicable,
    prompts,
    settings,
)
from views.text import one_line

MOST_DETAILS, FEWER_DETAILS = 1_000, 200
"""Answers that are read whole; the fewer of a run that is too large for the list."""


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
    rescored: int = 0
    """Re-labelled cases for which the baseline was scored again."""
    history: bool = False
    targets_file: Path = TARGETS
    embed: Embed | None = None
    """Gives the vectors of questions, to find topics of failing cases."""


def build(folder: Path, options: ReportOptions) -> Page:
    """The report of a run, the same for the same files.

    Raises StorageError when nothing was scored, when a file is damaged, or when an option names a
    metric that the run has not.
    """
    return _Report(folder, options).page()


class _Report:
    """A run whose report is made: what was read of it, once for all sections."""

    def __init__(self, folder: Path, options: ReportOptions) -> None:
        self.folder, self.options = folder, options
        self.metrics = read_metrics(folder, ReportSection)
        order = metrics.sections_in_order(self.metrics.get("sections", {}))
        self.sections = {name: self.metrics["sections"][name] for name in order}
        if not self.sections:
            raise StorageError(
                f"{folder / METRICS}: holds no section; score the run first (eval_suite.py)."
            )
        self.run_id = self.metrics.get("run_id") or folder.resolve().name
        self.rated = measures(self.sections, options.targets, advisory=options.advisory)
        self.findings = diagnose(self.rated, self.sections)
        primary = usable_names(folder, self.metrics, primary_names(options.targets_file))
        self.primary = tuple(name for name in primary if _split(name)[0] in self.sections)
        columns, self.success = _columns(self.sections, options, self.primary)
        self.table = Run(folder, explained=True)
        self.baseline = self._compared()
        self.ruling = Ruling(
            read_case_rules(options.targets_file), basis_from(folder, self.sections)
        )
        self.runs = [self.table] if self.baseline is None else [self.baseline.table, self.table]
        self.paths = read_paths(self.runs, options.eval_set, options.labels_dir, self.ruling)
        self.answers = RunAnswers(self.table, self.sections, columns, self.ruling)
        self.cases = self._listing()
        whole = MOST_DETAILS if self.cases.whole() else FEWER_DETAILS
        most = whole if options.worst is None else min(whole, options.worst)
        self.detailed = self.cases.order[:most]
        self.back = read_results(self.answers, self.detailed, set(self.cases.order))
        self.cases.questions = self.back.questions
        self.notes = read_notes(options.eval_set, options.labels_dir)
        self.cases.noted = self.notes
        if self.baseline and self.baseline.table.folder.is_dir():
            self.cases.differing = differing_answers(self.baseline.table, self.table)
        ids = {case_id for case_id, _ in self.cases.keys.values()}
        self.asked = read_asked(options.eval_set, options.labels_dir, ids)
        self.cases.slices = {name: slices_of(facets_of(case)) for name, case in self.asked.items()}
        self.parts = {
            name: metrics.section_metrics(name, section, self.rated, self.cases.of_metric)
            for name, section in self.sections.items()
        }

    def _compared(self) -> BaselineComparison | None:
        options = self.options
        if options.baseline is None:
            return None
        return compare_with(
            options.baseline,
            self.table,
            options.eval_set,
            options.targets_file,
            ignore_invariants=options.ignore_invariants,
            rescored=options.rescored,
            labels_dir=options.labels_dir,
            embed=options.embed,
        )

    def _listing(self) -> CaseListing:
        ways = self.baseline.ways if self.baseline else {}
        by = _named(self.sections, self.options.worst_by) if self.options.worst_by else None
        order = order_of(self.answers, ways, by)
        pair = self.baseline.pair if self.baseline else None
        keys = self.answers.keys(order)
        return CaseListing(self.answers, order, keys, ways, pair=pair, by_harm=by is None)

    def page(self) -> Page:
        """The head with the verdict, then the sections."""
        title = f"Report of run {one_line(self.run_id)}"
        if self.baseline:
            title += f" against {one_line(self.baseline.comparison.base_id)}"
        return Page(title, [*self._head(), *self._sections()])

    def _head(self) -> Iterator[Block]:
        options, run = self.options, self.metrics
        in_common = common_slices(
            self.answers.verdicts, options.eval_set, options.labels_dir, options.embed
        ).sentences()
        missing, unread = missing_remark(run), unreadable_remark(run)
        remarks = [f"{missing}. {metrics.COUNT_AS_0}"] if missing else []
        remarks += [f"{unread}."] if unread else []
        verdict = metrics.targets_verdict(
            (metric for part in self.parts.values() for metric in part),
            run.get("cases", 0),
            run.get("errors", 0),
            remarks,
        )
        if self.baseline:
            questions = {self.cases.keys[row][0]: text for row, text in self.back.questions.items()}
            yield from head_blocks(self.baseline, questions, in_common)
        else:
            yield Conclusion(f"{verdict.says} {evidence_sentence(self.sections)}".rstrip())
            table = target_table(first_measures(self.rated, self.primary))
            yield Sides([([table], self._first_steps(in_common))], look="first one")
        yield from (Prose(one_line(note, 400), look="note") for note in self._notes())
        title = verdict.says if self.baseline else "About this run"
        verdict = verdict if self.baseline else replace(verdict, missed=())  # they are above
        yield Section(title, [*metrics.target_blocks(verdict, self._facts())], level=0)

    def _first_steps(self, in_common: Sequence[str]) -> list[Block]:
        """The worst cases, what to do first, and what the failing cases have in common."""
        options, counts = self.options, self.answers.verdicts.counts()
        worst = worst_cases(self.answers.verdicts, options.eval_set, options.labels_dir)
        title = f"The worst of {counted(counts.failing, 'failing case')}"
        steps = to_do(self.findings, self.rated, self.paths[-1] if self.paths else None)
        return [
            Heading(title if worst else "Failing cases", 2),
            *(worst_blocks(worst, 130) if worst else [Prose(counts.says())]),
            Heading("What to do first", 2),
            *items(steps),
            *common_blocks(in_common),
        ]

    def _notes(self) -> list[str]:
        eval_set = self.options.eval_set
        notes = list(extras.missing_in(self.folder, self.table.config.run))
        if self.answers.absent:
            absent = ", ".join(self.answers.absent)
            notes += [f"Without score file, so without single answers: {absent}."]
        notes += self.back.notes
        if not eval_set.exists():
            text = f"{eval_set} is not there, so no text of it is shown; name it with --eval-set."
            return [*notes, text]
        if self.metrics.get("eval_set_sha256") not in (None, sha256_file(eval_set)):
            notes += ["The eval set has changed since the run was scored; its texts may differ."]
        return notes

    def _facts(self) -> list[tuple[str, str]]:
        """The counts of the run, and what names it: when it was made, what was asked."""
        run = self.metrics
        facts = [
            ("cases", f"{run.get('cases', 0):,}"),
            ("failed calls", f"{run.get('errors', 0):,}"),
        ]
        if unread := run.get(UNREADABLE):
            facts.append(("unreadable answers", f"{unread:,}"))
        rows = {
            f"{part}.{name}": value for part, own in settings(self.folder) for name, value in own
        }
        if "run.finished" in rows:
            rows["run.finished"] = moment(rows["run.finished"])
        head = (
            ("made", "run.finished"),
            ("bot", "api.url"),
            ("model", "answerer.model"),
            ("embedding model", "index.embedding_model"),
        )
        facts += [(name, rows[key]) for name, key in head if key in rows]
        config = run.get("config_hash")
        return facts + ([("configuration", config[:12])] if config else [])

    def _sections(self) -> Iterator[Section]:
        options, pipeline = self.options, self.sections.get("pipeline")
        if self.paths:
            _, *funnel = path_blocks(self.paths)
            yield Section(TITLE, funnel, "where", open=True)
        full = self._in_full()
        shown = tuple(key for key, _ in full)
        listed = [_split(name) for name in self.primary if self.answers.shows(_split(name))]
        table = replace(self.cases.part(listed, self._questions()), in_full=shown)
        rows: list[Block] = [Prose(table.says())]
        rows += [Chart("cases", table)] if table.rows else []
        yield Section("All cases", rows, "cases", open=True, screen=True, page_only=True)
        if self.baseline:
            title = f"What changed since {one_line(self.baseline.comparison.base_id)}"
            yield Section(title, [*comparison_blocks(self.baseline)], "changes")
        if options.history:
            blocks = history_blocks(self.folder, self.primary)
            yield Section("Trend of the primary metrics", [*blocks], "trend")
        yield from _of_extras(self.runs)
        found = metrics.diagnosis_blocks(self.findings)
        yield Section("Diagnosis", [*found], "diagnosis", screen=False)
        of_sections = [
            block
            for name, part in self.parts.items()
            for block in metrics.metric_blocks(name, self.sections[name], part)
        ]
        yield Section("Metrics", [metrics.METRICS_EXPLAINED, *of_sections], "metrics")
        slices = metrics.slice_blocks(self.sections, self.cases.of_slices(), self._missing_slices())
        yield Section("Slices", [*slices], "slices")
        name = passing_metric(self.sections) or right_metric(self.sections)
        passing = Success(self.sections, self.ruling, name)
        title = "Rank of the first relevant passage"
        yield Section(title, [*figures.rank_blocks(first_relevant(self.cases, passing))], "ranks")
        slowest = [(*self.cases.keys[n], ms) for ms, n in self.back.slowest if n in self.cases.keys]
        before = _stages_before(options.baseline)
        latency = metrics.latency_blocks(
            pipeline, before, slowest, lambda expected: self.cases.links_of("outcome", expected)
        )
        yield Section("Latency and cost", [*latency], "latency-head")
        success = Success(self.sections, self.ruling, self.success)
        judged = "judged" in self.sections
        calibrated = calibration_blocks(self.folder, self.cases, self.back, success, judged=judged)
        yield Section("Calibration", [*calibrated], "calibration", screen=True)
        related = correlations(self.answers)
        yield Section("Correlations of metrics", [*related], "correlations", screen=True)
        if wrong := [*prompts(self.answers)]:
            title = "Guardrail mistakes"
            yield Section(title, wrong, "prompts", screen=True)
        yield Section("Errors", [*self._errors()], "errors")
        missing = [*not_applicable(self.cases)]
        yield Section("What was not applicable", missing, "not-applicable", screen=True)
        if talks := [*conversations(full)]:
            yield Section("Conversations", talks, "conversations", screen=True)
        worst = [*self._worst_head(len(full)), *numbered(section for _, (section, *_) in full)]
        yield Section("Cases in full", worst, "worst")
        yield Section("Configuration", [*configuration(self.folder)], "configuration", screen=True)

    def _questions(self) -> dict[str, str]:
        """The questions of the set where the results give none."""
        if self.back.questions:
            return {}
        return {name: case.question[:QUESTION_CHARACTERS] for name, case in self.asked.items()}

    def _missing_slices(self) -> str:
        """Why sections have no means by slice and what makes them; "" when all have."""
        lacking = sections_without_slices(self.folder / METRICS)
        if not lacking:
            return ""
        return (
            f"Without means by slice: {', '.join(lacking)}. {self.folder / SLICES}, which git "
            f"leaves out, is missing or of another scoring; eval_suite.py --run {self.run_id} "
            "makes it from the results."
        )

    def _errors(self) -> Iterator[Block]:
        errors, failed = self.back.errors, self.metrics.get("errors", 0)
        if not errors:
            text = f"Failed calls: {failed:,}. Why is not known without results.jsonl."
            yield Prose(text if failed else "No call failed.")
            return
        columns: list[AnyColumn[str]] = [
            DataColumn("kind", one_line, words=True),
            DataColumn("calls", lambda kind: f"{errors[kind].count:,}"),
            DataColumn("such as", lambda kind: one_line(errors[kind].example, 300), words=True),
            CasesColumn(
                "cases",
                lambda kind: CaseLinks(errors[kind].count, [(c, 0) for c in errors[kind].cases]),
            ),
        ]
        yield DataTable(columns, list(errors), caption="Failed calls by kind")

    # Cases in full

    def _in_full(self) -> list[tuple[Key, ShownCase]]:
        """The answers in full, in the order of the list, as long as the page has room for them."""
        keys = self.cases.keys
        rows = [row for row in self.detailed if keys.get(row) in self.back.results]
        lines = self.answers.lines(rows)
        judged = _judged(self.table, {keys[row] for row in rows})
        before: dict[str, Case] = {}
        changes = self.baseline.changes if self.baseline else {}
        if self.baseline is not None:
            changed = {keys[row][0] for row in rows if keys[row][0] in changes}
            before = first_answers(self.baseline.table, changed, self.asked, SECTIONS)
        shown: list[tuple[Key, ShownCase]] = []
        room = PAGE_BYTES - FIGURE_BYTES - ROW_BYTES * len(self.cases.order)
        for row in rows:
            key = case_id, repeat = keys[row]
            case = case_of(self.back.results[key], self.asked.get(case_id), lines[row], judged)
            said = case.say(self.ruling, self.answers.verdicts.broken[row])
            own = changes.get(case_id, ()) if repeat == 0 else ()
            way = self.cases.ways.get(case_id, "") if repeat == 0 else ""
            view = ShownWith(
                said=said,
                failing=said.word == "fails",
                notes=self.notes.get(case_id, ()),
                before=before.get(case_id) if own or way else None,
                way=way,
                changes=own,
                brief=True,
            )
            section = case_section(case, view)
            room -= size_of(section)
            if room < 0:
                break
            shown.append((key, (section, case, view)))
        return shown

    def _worst_head(self, shown: int) -> Iterator[Block]:
        """Which answers are shown in full, how many are not, and in which order."""
        answers = len(self.answers)
        if not answers:
            yield Prose(NO_SCORES)
            return
        text = f"{self.answers.verdicts.counts().says()} "
        text += "All answers are shown in full"
        if shown < answers:
            text = text.removesuffix("All answers are shown in full")
            text += f"{shown:,} answers are shown in full, {answers - shown:,} are left out"
        if self.options.worst_by:
            text += f", those with the worst {self.options.worst_by} first."
        else:
            text += ": first those that broke or were fixed, then failed calls, then those that "
            text += "fail, by the most harmful reason."
        yield Prose(text)
        if shown > IN_PRINT:
            text = f"{IN_PRINT} of them are printed, without their passages; the page shows the "
            yield Prose(f"{text}others on a screen.", look="in-print")


def _split(name: str) -> Name:
    """Section and metric of ``section.metric``."""
    section, _, metric = name.partition(".")
    return section, metric


def _of_extras(runs: Sequence[Run]) -> Iterator[Section]:
    """The sections that extras add to the report of the last of some runs."""
    for extra, key, reference in extras.added(extras.BLOCKS):
        if added := list(extra.load(reference)(runs)):
            heading, *blocks = added
            yield Section(plain_words(heading.words), blocks, key)


def _columns(
    sections: Mapping[str, Any], options: ReportOptions, primary: Sequence[str]
) -> tuple[dict[str, list[str]], Name | None]:
    """The metrics, by section, whose scores the report needs, and the one that says what is right.

    Raises StorageError for a metric that the run has not.
    """
    columns: dict[str, list[str]] = {}
    for name, section in sections.items():
        if name != OWN_TEXTS:
            columns[name] = metrics.summary_of(name, metrics.metrics_in_order(section))
    success = _named(sections, options.confidence_by) if options.confidence_by else None
    success = success or right_metric(sections)
    worst = _named(sections, options.worst_by) if options.worst_by else None
    extra = (
        success,
        passing_metric(sections) or right_metric(sections),
        worst,
        *map(_split, primary),
    )
    for named in extra:
        if named and named[1] not in columns[named[0]] and named[1] in sections[named[0]]["mean"]:
            columns[named[0]].append(named[1])
    return columns, success


def _named(sections: Mapping[str, Any], metric: str) -> Name:
    """Section and name of a metric that the user named. Raises StorageError for unknown ones."""
    cases = [name for name in sections if name != OWN_TEXTS]
    for name in cases:
        if metric in sections[name]["definitions"]:
            return name, metric
    choices = ", ".join(
        name_of for name in cases for name_of in metrics.metrics_in_order(sections[name])
    )
    raise StorageError(f"{metric!r}: the run has no such metric; choose one of: {choices}.")


def _judged(run: Run, keys: Collection[Key]) -> Verdicts | None:
    """What the run's present judge said of some answers. Raises StorageError for a damaged file."""
    if not (run.folder / VERDICTS).exists():
        return None
    keep = lambda line: (line["case_id"], line["repeat"]) in keys  # noqa: E731
    return run.verdicts(keep)


def _stages_before(baseline: Path | None) -> metrics.Stages:
    """The times of the baseline by stage; none where it is not a run."""
    if baseline is None or not baseline.is_dir():
        return {}
    return metrics.stages_of(read_metrics(baseline)["sections"].get("pipeline"))

"""The report of a suite, as shown on the screen and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decisions.case_changes import CaseFlips
from decisions.change import Change
from decisions.diagnosis import DiagnosisFinding
from decisions.measures import Measure, targets_text
from decisions.primary import primary_names
from decisions.regressions import FAILING, outcome_of
from decisions.slices import Slices, slice_blocks
from decisions.verdict_counts import VerdictCounts
from ragmetrics import catalogue
from records.asked import missing_remark, unreadable_remark
from records.errors import StorageError
from records.files import replace_bytes, replace_json
from records.gate_verdict import Check
from records.metrics import NUMBERS, reference_to, rounded
from records.results import SCHEMA
from records.runs import METRICS
from scorers.section_page import draft_notes, measure_table
from scorers.sections import SectionOutcome
from terminal.page import (
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quoted,
    between,
    from_to,
    number,
    p_words,
    signed,
)
from terminal.tables import counted, plain


@dataclass
class SuiteReport:
    """All findings of a suite. ``gates``: the checks of the gates that failed. ``unlike``: why the
    run and its baseline may not be compared."""

    run_id: str
    suite: str
    outcomes: Sequence[SectionOutcome]
    measures: Mapping[tuple[str, str], Measure]
    findings: Sequence[DiagnosisFinding]
    header: Mapping[str, Any]
    left_out: str = ""
    changes: Sequence[Change] | None = None
    max_drop: float | None = None
    caveats: Sequence[str] = ()
    unlike: str = ""
    no_verdict: str = ""
    """Why no primary metric could be tested against the baseline; "" when any was."""
    headline: str = ""
    says: Sequence[str] = ()
    """The first lines of the comparison with the baseline, as compare_runs.py prints them."""
    baseline: str = ""
    gates: Sequence[Check] = field(default=())
    gates_unused: str = ""
    """Why no rule of the file of gates counts: it was made for another set. "" when they do."""
    verdicts: VerdictCounts | None = None
    cases: CaseFlips | None = None
    """Changes of the cases since the baseline, where that is a run."""
    in_common: list[Slices] = field(default_factory=list)
    """Common properties of the failing cases, and of those that broke since the baseline."""
    primary: Mapping[str, Any] = field(default_factory=dict)
    """The primary scores of every case, as in metrics.json."""

    @property
    def regressions(self) -> list[Change]:
        return [change for change in self.changes or () if self.outcome(change) in FAILING]

    def outcome(self, change: Change) -> str:
        """A change since the baseline in a word."""
        return outcome_of(change, self.max_drop)

    @property
    def passed(self) -> bool:
        """False when a gate is missed, a metric regressed, or the baseline was measured in
        another way; targets alone fail nothing."""
        return not (self.gates or self.regressions or self.unlike)

    @property
    def incomplete(self) -> str:
        """How many asked cases have no result, and how many answers could not be read, a sentence
        each; "" for none."""
        remark, unreadable = missing_remark(self.header), unreadable_remark(self.header)
        missing = "0 in answered and pass if the run says which they are, else in no mean."
        parts = [f"{remark}; {missing}"] if remark else []
        return " ".join(parts + [f"{unreadable}."] * bool(unreadable))

    def of(self, section: str) -> dict[str, Measure]:
        return {
            measure.metric: measure
            for (name, _), measure in self.measures.items()
            if name == section
        }

    def sections(self) -> dict[str, dict[str, Any]]:
        return {
            outcome.name: outcome.section
            for outcome in self.outcomes
            if outcome.section is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """As JSON: no clock time, and ``sections`` as in metrics.json, so it can be a baseline."""
        targets = [
            measure.to_dict() for measure in self.measures.values() if measure.target is not None
        ]
        return {
            "schema": SCHEMA,
            "kind": "eval_suite",
            "suite": self.suite,
            **self.header,
            **self.primary,
            "run_id": self.run_id,
            "left_out": self.left_out,
            "perspectives": {
                outcome.name: {"status": outcome.status, "reason": outcome.reason}
                for outcome in self.outcomes
            },
            "sections": self.sections(),
            "targets": targets,
            "verdicts": self.verdicts.to_dict() if self.verdicts else None,
            "cases_changed": self.cases.to_dict() if self.cases else None,
            "in_common": [slices.to_dict() for slices in self.in_common],
            "diagnosis": [finding.to_dict() for finding in self.findings],
            "baseline": self.baseline or None,
            "headline": self.headline or None,
            "says": list(self.says),
            "caveats": list(self.caveats),
            "not_comparable": self.unlike or None,
            "changes": None
            if self.changes is None
            else [_change_data(change, self.outcome(change)) for change in self.changes],
            "gates_missed": [
                check.to_dict() | {"mean": check.value, "target": check.must}
                for check in self.gates
            ],
            "passed": self.passed,
        } | ({"gates_unused": self.gates_unused} if self.gates_unused else {})


def _rows_of(report: SuiteReport, outcome: SectionOutcome, every: bool) -> list[Measure]:
    """The measures of one section to show: every one, or those that decide or do not meet
    a target."""
    if outcome.section is None:
        return []
    measures, primary = report.of(outcome.name), primary_names()
    if outcome.name not in catalogue.SECTIONS or every:
        return list(measures.values())
    return [
        measure
        for name, measure in measures.items()
        if (measure.target and not measure.passed) or f"{outcome.name}.{name}" in primary
    ]


def _change_data(change: Change, outcome: str) -> dict[str, Any]:
    """A change since the baseline as JSON data."""
    return {
        "section": change.section,
        "metric": change.metric,
        "before": change.base_mean,
        "now": change.new_mean,
        "worse_by": None if change.delta is None else change.worse_by,
        "p": change.p_worse,
        "verdict": outcome,
        "reason": change.reason,
    }


def _change_text(change: Change, outcome: str) -> str:
    """A change in words."""
    before, now = change.base_mean, change.new_mean
    if outcome == "no longer measured":
        why = f" ({change.reason.removesuffix('.')})" if change.reason else ""
        return f"was {number(before)}, is no longer measured{why}"
    if outcome == "not applicable":
        return f"was {number(before)}, applies to no case now"
    if outcome == "not comparable":
        return "was measured with another definition"
    chance = "" if change.p_worse is None else f", {p_words(change.p_worse)}"
    way = "higher" if (change.delta or 0.0) > 0 else "lower"
    if outcome in ("regression", "worse", "better"):
        way = outcome.replace("regression", "worse")
    size = signed(abs(change.delta or 0.0)).lstrip("+")
    return f"{from_to(before, now)} ({way} by {size}{chance})"


def _case_sentences(report: SuiteReport) -> list[str]:
    """How many cases fail, how many broke since the baseline, and what they have in common."""
    parts = (report.verdicts, report.cases)
    counts = [part.says() for part in parts if part is not None]
    counts += draft_notes(report.sections().values())
    return counts + [line for slices in report.in_common for line in slices.sentences()]


def _verdict_text(report: SuiteReport) -> str:
    """The last line: how many targets are met, and whether the suite fails."""
    text = targets_text(measure.verdict for measure in report.measures.values())
    if report.changes is not None:
        count = len(report.regressions)
        none = f"; {report.no_verdict}" if report.no_verdict and not count else ""
        text += none or f"; {count} regression{'s' * (count != 1)}"
    if report.unlike:
        text += "; the baseline is not comparable"
    if report.gates:
        text += f"; {len(report.gates)} gate{'s' * (len(report.gates) != 1)} missed"
    if report.gates_unused:
        text += "; the gates are of another set and do not count"
    return text + "."


def _section_notes(report: SuiteReport, every: bool) -> Iterator[str]:
    """Notes on the sections that were scored, and those that were not: several of these with their
    reasons only where ``every`` is asked for."""
    unscored = [outcome for outcome in report.outcomes if outcome.status != "scored"]
    told = unscored if every or len(unscored) == 1 else []
    for outcome in report.outcomes:
        shown = (
            outcome in told if outcome in unscored else "guardrails" not in (outcome.section or {})
        )
        if outcome.reason and (every or shown):
            state = "not scored: " if outcome in unscored else ""
            yield f"{outcome.name}: {state}{plain(outcome.reason, 400)}"
    if unscored and not told:
        yield f"Not scored: {', '.join(outcome.name for outcome in unscored)} (-v says why)."


def write_report(report: SuiteReport, path: Path, metrics: Path, *, copied: bool = False) -> Path:
    """Write the report as JSON, in one step; returns its path.

    ``metrics``: the metrics.json that holds the numbers, which the report names; ``copied``: it
    will not stay, so it is put beside the report.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path.parent}: cannot be made ({error.strerror}).") from None
    if copied and metrics.exists():
        beside = path.with_name(f"{path.stem}.{METRICS}")
        replace_bytes(beside, metrics.read_bytes())
        metrics = beside
    told = {name: value for name, value in report.to_dict().items() if name not in NUMBERS}
    replace_json(path, rounded(told) | reference_to(metrics, path.parent))
    return path


def suite_page(report: SuiteReport, every: bool) -> Page:
    """The page of a suite: metrics, notes on cases and sections, diagnosis, changes, verdict."""
    blocks: list[Block] = [Prose(("Run ", Quoted(report.run_id), f", {report.suite} suite"))]
    if report.left_out:
        blocks.append(Prose(report.left_out))
    if report.incomplete:
        blocks.append(Prose(report.incomplete, "doubt"))
    scored = [outcome for outcome in report.outcomes if outcome.status == "scored"]
    rows = [measure for outcome in scored for measure in _rows_of(report, outcome, every)]
    if not rows:  # nothing here decides or has a target: the main metrics of each section
        measures = [(outcome.name, report.of(outcome.name)) for outcome in scored]
        rows = [
            part[name] for of, part in measures for name in catalogue.main_names(of, list(part))
        ]
    blocks.append(measure_table(rows, every_count=False, groups=every))
    if more := sum(len(report.of(outcome.name)) for outcome in scored) - len(rows):
        blocks.append(Prose(f"{counted(more, 'more metric')}: -v shows them.", "quiet"))
    blocks += map(Prose, _case_sentences(report))
    if every:
        blocks += [block for part in report.in_common for block in slice_blocks(part)]
    blocks += [Prose(text, "quiet") for text in _section_notes(report, every)]
    blocks.append(Heading("Diagnosis"))
    for finding in report.findings if every else report.findings[:_FINDINGS]:
        blocks.append(Prose(finding.says, item=1))
        for name, text in (("because", "; ".join(finding.because)), ("look at", finding.look_at)):
            if text and (every or report.changes is None):  # else the changes need the room
                blocks.append(Prose(f"{name} {text}", item=2))
    if not every and len(report.findings) > _FINDINGS:
        more = len(report.findings) - _FINDINGS
        blocks.append(Prose(f"{counted(more, 'more finding')}: -v shows them.", "quiet", item=1))
    blocks += _changes(report, every)
    for gate in report.gates:
        text = f"gate missed: {gate.section} {gate.metric}: {gate.reason}"
        blocks.append(Prose(text, "bad"))
    if report.gates_unused:
        blocks.append(Prose(f"gates: {report.gates_unused}.", "doubt"))
    blocks.append(Conclusion(_verdict_text(report), more=_first_lines(report)))
    return Page("", blocks)


def _first_lines(report: SuiteReport) -> tuple[Prose, ...]:
    """What the comparison with the baseline says; nothing where they were measured otherwise."""
    return () if report.unlike else tuple(Prose(Quoted(line)) for line in report.says)


_FINDINGS = 3


def brief_page(report: SuiteReport) -> Page:
    """The short page: the run, the primary metrics in words, and the first three findings."""
    errors, unreadable = report.header.get("errors", 0), unreadable_remark(report.header)
    calls = ", ".join(filter(None, (counted(errors, "failed call"), unreadable)))
    asked = f"{questions}, {calls}: " if (questions := _asked(report)) else ""
    rows = []
    for name in primary_names():
        section, _, metric = name.partition(".")
        measure = report.measures.get((section, metric))
        if measure is not None and measure.mean is not None:
            words = catalogue.find(metric, catalogue.SECTIONS[section].metrics).in_words(metric)
            mean, interval = number(measure.mean), between(measure.ci95)
            rows.append((words or name, mean, interval, name))
    columns = [
        DataColumn[tuple[str, ...]]("", lambda row: row[0], words=True),
        DataColumn[tuple[str, ...]]("mean", lambda row: row[1], words=True),
        DataColumn[tuple[str, ...]]("95 % interval", lambda row: row[2], words=True),
        DataColumn[tuple[str, ...]]("metric", lambda row: row[3], words=True, drop=1),
    ]
    blocks: list[Block] = [
        Heading(("Run ", Quoted(report.run_id), f": {asked}{_verdict_text(report)}")),
        *_first_lines(report),
        DataTable(columns, rows),
        *map(Heading, _case_sentences(report)),
        Heading("What stands out:"),
    ]
    for number_of, finding in enumerate(report.findings[:_FINDINGS], 1):
        blocks.append(Prose(f"{number_of}. {plain(finding.says, 1000)}"))
        if finding.look_at:
            blocks.append(Prose(f"Look at {finding.look_at}", item=1))
    if len(report.findings) > _FINDINGS:
        more = counted(len(report.findings) - _FINDINGS, "more finding")
        blocks.append(Prose(f"{more}: eval_suite.py -v shows them.", item=1))
    return Page("", blocks)


def _asked(report: SuiteReport) -> str:
    """How many questions have a result, and how to get the others; "" where nothing was asked."""
    cases, asked, missing = map(report.header.get, ("cases", "asked", "missing"))
    if not (asked and missing):
        return counted(cases, "question") if cases else ""
    verb = "has" if missing == 1 else "have"
    return (
        f"{asked - missing:,} of {counted(asked, 'question')} ({missing:,} {verb} no result; "
        "run_eval.py --resume asks them)"
    )


def _changes(report: SuiteReport, every: bool) -> Iterator[Block]:
    """Regressions, and with ``every`` every number that is worse than before."""
    if report.changes is None:
        return
    yield Heading(f"Against {report.baseline}")
    if report.unlike:
        yield Prose(f"not comparable: {report.unlike}", "bad")
    yield from (Prose(note, "doubt") for note in report.caveats)
    for change in report.changes:
        outcome = report.outcome(change)
        failing = outcome in FAILING
        fell = outcome != "same" and change.worse_by > 0  # by evidence or not
        if failing or outcome == "not comparable" or (every and fell):
            text = f"{outcome}: {change.section} {change.metric} {_change_text(change, outcome)}"
            yield Prose(text, "bad" if failing else None)
    counts = Counter(map(report.outcome, report.changes))
    yield Prose(
        f"{counted(len(report.changes), 'metric')} compared: "
        f"{counted(len(report.regressions), 'regression')}; not tested: "
        f"{counts['lower']} lower, {counts['higher']} higher"
        f"{'' if every else ' (-v lists what got worse)'}."
    )

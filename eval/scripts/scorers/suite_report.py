"""The report of a suite, as shown on the screen and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from decisions.case_changes import CaseFlips
from decisions.change import Change
from decisions.diagnosis import DiagnosisFinding
from decisions.evidence_path import RunPath, path_blocks
from decisions.first_look import (
    WorstFailure,
    evidence_sentence,
    first_measures,
    target_table,
    to_do,
    worst_blocks,
)
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
    Heading,
    Page,
    Prose,
    Quoted,
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
    worst: Sequence[WorstFailure] = ()
    path: RunPath | None = None
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
        missing = "0 in answered and pass if the run says which they are, else in no mean. "
        missing += "run_eval.py --resume asks them."
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
            "worst_cases": [asdict(case) for case in self.worst],
            "evidence_path": self.path.to_dict() if self.path else None,
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


def _case_blocks(report: SuiteReport, every: bool) -> Iterator[Block]:
    """How many cases fail, the worst of them, how many broke since the baseline, and what they
    have in common."""
    if report.verdicts:
        yield Prose(report.verdicts.says(failing=not every))
    if report.changes is None:  # else those that broke need the room
        yield from worst_blocks(report.worst, _LINE)
    if report.cases:
        yield Prose(report.cases.says())
    yield from map(Prose, draft_notes(report.sections().values()))
    for slices in report.in_common:
        yield from map(Prose, slices.sentences()[: None if every else 1])
        yield from slice_blocks(slices) if every else ()


_LINE = 78
"""Characters of a line on a narrow terminal."""


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
    lacking = [outcome for outcome in report.outcomes if _lacks(outcome)]
    told = lacking if every or len(lacking) == 1 else []
    for outcome in report.outcomes:
        shown = (
            outcome in told if outcome in lacking else "guardrails" not in (outcome.section or {})
        )
        if outcome.reason and (every or shown):
            state = "not scored: " * (outcome.status != "scored")
            yield f"{outcome.name}: {state}{plain(outcome.reason, 400)}"
    if lacking and not told:
        names = ("pass" if outcome.status == "scored" else outcome.name for outcome in lacking)
        yield f"Not scored: {', '.join(names)} (-v says why)."


def _lacks(outcome: SectionOutcome) -> bool:
    """Whether a section was not scored, or scored without a pass."""
    return outcome.status != "scored" or (outcome.section or {}).get("n", {}).get("pass") == 0


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
    """The page of a suite: metrics, notes on cases and sections, what to do, changes, verdict.

    Without ``every`` it is the first screen: at most 24 lines unless something is wrong.
    """
    scored = [outcome for outcome in report.outcomes if outcome.status == "scored"]
    rows = [measure for outcome in scored for measure in report.of(outcome.name).values()]
    shown = rows if every else _first_rows(report, rows)
    rest = len(rows) - len(shown)
    more = f" -v shows {counted(rest, 'more metric')}." if rest else ""
    blocks: list[Block] = [Prose(("Run ", Quoted(report.run_id), f"{_asked(report)}.{more}"))]
    if report.left_out:
        blocks.append(Prose(report.left_out))
    if report.incomplete:
        blocks.append(Prose(report.incomplete, "doubt"))
    if every:
        blocks.append(measure_table(rows, groups=True))
        blocks += path_blocks([report.path] if report.path else ())
    else:
        blocks.append(target_table(shown))
    blocks += _case_blocks(report, every)
    blocks += [Prose(text, "quiet") for text in _section_notes(report, every)]
    if every:
        blocks += _diagnosis(report)
    else:
        steps = " ".join(to_do(report.findings, report.measures, report.path))
        blocks.append(Prose(f"What to do first: {steps}"))
    blocks += _changes(report, every)
    for gate in report.gates:
        text = f"gate missed: {gate.section} {gate.metric}: {gate.reason}"
        blocks.append(Prose(text, "bad"))
    if report.gates_unused:
        blocks.append(Prose(f"gates: {report.gates_unused}.", "doubt"))
    blocks.append(Conclusion(_verdict_text(report), more=_first_lines(report)))
    return Page("", blocks)


def _first_lines(report: SuiteReport) -> tuple[Prose, ...]:
    """What the comparison with the baseline says, nothing where they were measured otherwise;
    without a baseline for how many questions the evidence is found."""
    evidence = evidence_sentence(report.sections()) if report.changes is None else ""
    lines = [evidence] if evidence else () if report.unlike else report.says
    return tuple(Prose(Quoted(line)) for line in lines)


_ROWS = 5
"""Metrics of the first screen, the primary ones with a target among them."""


def _first_rows(report: SuiteReport, scored: Sequence[Measure]) -> list[Measure]:
    """The metrics that miss a target or decide; where none does the main ones of each section."""
    primary = primary_names()
    rows = first_measures({(row.section, row.metric): row for row in scored}, primary)
    if not rows:
        parts = {row.section: report.of(row.section) for row in scored}
        rows = [part[n] for of, part in parts.items() for n in catalogue.main_names(of, list(part))]
    own = [row for row in rows if row.target and f"{row.section}.{row.metric}" in primary][:_ROWS]
    more = [row for row in rows if row not in own][: _ROWS - len(own)]
    return [row for row in rows if row in own or row in more]


def _diagnosis(report: SuiteReport) -> Iterator[Block]:
    yield Heading("Diagnosis")
    for finding in report.findings:
        yield Prose(finding.says, item=1)
        for name, text in (("because", "; ".join(finding.because)), ("look at", finding.look_at)):
            if text:
                yield Prose(f"{name} {text}", item=2)


def _asked(report: SuiteReport) -> str:
    """How many questions were asked, how many calls failed, and of which suite they are."""
    cases, errors = report.header.get("cases"), report.header.get("errors", 0)
    counts = f": {counted(cases, 'question')}, {counted(errors, 'failed call')}" if cases else ""
    return f", {report.suite} suite{counts}"


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

"""The report of a suite: what the screen shows, and the same as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisions.baseline import FAILING, BaselineChange, ChangeVerdict
from decisions.case_changes import CaseChanges
from decisions.case_verdict import VerdictCounts
from decisions.diagnosis import DiagnosisFinding
from decisions.measures import UNCLEAR_BAND, Measure, targets_text
from decisions.primary import primary_names
from ragmetrics import catalogue
from records.asked import missing_remark
from records.errors import StorageError
from records.files import replace_bytes, replace_json
from records.gate_verdict import Check
from records.metrics import NUMBERS, reference_to, rounded
from records.results import SCHEMA
from records.runs import METRICS
from scorers.sections import SectionOutcome
from terminal.tables import (
    SCALE,
    counted,
    draws_unicode,
    has_room,
    number,
    picture,
    plain,
    print_columns,
    without,
)

if TYPE_CHECKING:
    from rich.console import Console


MARKS = {True: "✓", False: "✗", None: ""}

HEAD = ("metric", "mean", "95 % interval", "n", "target", "", "band")

LEAST_NEEDED = (SCALE, "band", "n", "95 % interval")
"""Columns that a narrow terminal does without, in this order."""


@dataclass
class SuiteReport:
    """All that a suite found. ``gates``: the checks of the gates that failed. ``unlike``: why the
    run and its baseline may not be compared."""

    run_id: str
    suite: str
    outcomes: Sequence[SectionOutcome]
    measures: Mapping[tuple[str, str], Measure]
    findings: Sequence[DiagnosisFinding]
    header: Mapping[str, Any]
    left_out: str = ""
    changes: Sequence[BaselineChange] | None = None
    caveats: Sequence[str] = ()
    unlike: str = ""
    no_verdict: str = ""
    """Why no primary metric could be tested against the baseline; "" when any was."""
    baseline: str = ""
    gates: Sequence[Check] = field(default=())
    verdicts: VerdictCounts | None = None
    cases: CaseChanges | None = None
    """What became of the cases since the baseline, where that is a run."""
    primary: Mapping[str, Any] = field(default_factory=dict)
    """The primary scores of every case, as metrics.json holds them."""

    @property
    def regressions(self) -> list[BaselineChange]:
        return [change for change in self.changes or () if change.verdict in FAILING]

    @property
    def passed(self) -> bool:
        """False when a gate is missed, a metric regressed, or the baseline was measured in
        another way; targets alone fail nothing."""
        return not (self.gates or self.regressions or self.unlike)

    @property
    def incomplete(self) -> str:
        """How many asked cases have no result, in a sentence; "" for none."""
        remark = missing_remark(self.header)
        return (
            f"{remark}; 0 in answered and pass if the run says which they are, else in no mean."
            if remark
            else ""
        )

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
            "diagnosis": [finding.to_dict() for finding in self.findings],
            "baseline": self.baseline or None,
            "caveats": list(self.caveats),
            "not_comparable": self.unlike or None,
            "changes": None
            if self.changes is None
            else [change.to_dict() for change in self.changes],
            "gates_missed": [
                check.to_dict() | {"mean": check.value, "target": check.must}
                for check in self.gates
            ],
            "passed": self.passed,
        }


def _cells(measure: Measure) -> tuple[str, ...]:
    """A measure as the cells of a table under ``HEAD``."""
    interval = (
        "–" if measure.ci95 is None else f"{number(measure.ci95[0])} – {number(measure.ci95[1])}"
    )
    mark = "?" if measure.target and measure.passed is None else MARKS[measure.passed]
    return (
        measure.metric,
        number(measure.mean),
        interval,
        str(measure.n),
        measure.target or measure.advisory or "",
        mark,
        measure.band or "",
    )


def _rows_of(report: SuiteReport, outcome: SectionOutcome, every: bool) -> list[Measure]:
    """The measures of one section to show: its headline and all with a target, or every one."""
    if outcome.section is None:
        return []
    row, measures = catalogue.SECTIONS.get(outcome.name), report.of(outcome.name)
    names = list(measures if row is None else outcome.section["mean"])
    if row is not None and row.headline() and not every:
        names = catalogue.headline(row.name, names)
    more = [
        name
        for name, measure in measures.items()
        if (measure.target or measure.advisory) and name not in names
    ]
    return [measures[name] for name in (*names, *more) if name in measures]


def _change_text(change: BaselineChange) -> str:
    """A change in words."""
    if change.verdict == "no longer measured":
        why = f" ({change.reason.removesuffix('.')})" if change.reason else ""
        return f"was {number(change.before)}, is no longer measured{why}"
    if change.verdict == "not applicable":
        return f"was {number(change.before)}, applies to no case any more"
    if change.verdict == "not comparable":
        return "was measured by another definition"
    chance = "" if change.p is None else f", p {change.p:.3f}"
    delta = (change.now or 0.0) - (change.before or 0.0)
    way = "higher" if delta > 0 else "lower"
    if change.verdict in ("regression", "worse", "better"):
        way = change.verdict.replace("regression", "worse")
    return f"{number(change.before)} → {number(change.now)} ({way} by {abs(delta):.3f}{chance})"


def _fell(change: BaselineChange) -> bool:
    """Whether the number is worse than the baseline's, by evidence or not."""
    return change.verdict != "same" and (change.worse_by or 0.0) > 0


def _case_sentences(report: SuiteReport) -> list[str]:
    """How many cases fail, and how many broke since the baseline."""
    parts = (report.verdicts, report.cases)
    return [part.says() for part in parts if part is not None]


def _verdict_text(report: SuiteReport) -> str:
    """The last line: how many targets are met, and whether the suite fails."""
    aimed = [measure for measure in report.measures.values() if measure.target is not None]
    measured = [measure for measure in aimed if measure.passed is not None]
    met = sum(measure.passed is True for measure in measured)
    text = targets_text(met, len(measured) - met, len(aimed) - len(measured))
    if report.changes is not None:
        count = len(report.regressions)
        none = f"; {report.no_verdict}" if report.no_verdict and not count else ""
        text += none or f"; {count} regression{'s' * (count != 1)}"
    if report.unlike:
        text += "; the baseline is not comparable"
    if report.gates:
        text += f"; {len(report.gates)} gate{'s' * (len(report.gates) != 1)} missed"
    return text + "."


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


STYLES = {True: "green", False: "red", None: None}

INDENT = "  "

_TESTED: Mapping[ChangeVerdict, str] = {
    "worse": "worse",
    "better": "better",
    "mixed": "mixed",
    "equal": "equal",
    "no evidence": "without evidence",
    "too few": "with too few cases",
}
"""The verdicts on primary metrics, as they are counted."""


def print_report(console: Console, report: SuiteReport, every: bool) -> None:
    """A table of the perspectives, what cannot be told, the diagnosis, the changes, the verdict."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(f"Run {report.run_id}, {report.suite} suite")
    if report.left_out:
        console.print(Text(report.left_out))
    if report.incomplete:
        console.print(Text(report.incomplete, style="yellow"))
    _print_table(console, report, every)
    for sentence in _case_sentences(report):
        console.print(sentence, soft_wrap=True)
    for outcome in report.outcomes:
        scored = outcome.status == "scored"
        if outcome.reason:
            state = "" if scored else f"{outcome.status}: "
            text = f"{outcome.name}: {state}{plain(outcome.reason, 400)}"
            console.print(Text(text, style="dim" if scored else "yellow"))
    console.print("\nDiagnosis")
    for finding in report.findings:
        console.print(Padding(Text(f"• {finding.says}"), (0, 0, 0, 0)))
        for name, text in (("because", "; ".join(finding.because)), ("look at", finding.look_at)):
            if text:
                console.print(Padding(Text(f"{name} {text}"), (0, 0, 0, 4)))
    _print_changes(console, report, every)
    for gate in report.gates:
        text = f"gate missed: {gate.section} {gate.metric}: {gate.reason}"
        console.print(Text(plain(text, 2000), style="red"))
    console.print(f"\n{_verdict_text(report)}")


_FINDINGS = 3

_BRIEF_HEAD = ("", "mean", "95 % interval", "metric")


def print_brief(console: Console, report: SuiteReport) -> None:
    """What was measured, the primary metrics in words, and the first three findings."""
    from rich.padding import Padding
    from rich.text import Text

    errors = report.header.get("errors", 0)
    asked = (
        f"{questions}, {counted(errors, 'failed call')}: " if (questions := _asked(report)) else ""
    )
    console.print(f"\nRun {report.run_id}: {asked}{_verdict_text(report)}", soft_wrap=True)
    rows = []
    for name in primary_names():
        section, _, metric = name.partition(".")
        measure = report.measures.get((section, metric))
        if measure is not None and measure.mean is not None:
            words = catalogue.find(metric, catalogue.SECTIONS[section].metrics).in_words(metric)
            _, mean, interval, *_ = _cells(measure)
            rows.append((words or name, mean, interval, name))
    print_columns(console, _BRIEF_HEAD, rows, left=(_BRIEF_HEAD[-1],))
    for sentence in _case_sentences(report):
        console.print(f"\n{sentence}", soft_wrap=True)
    console.print("\nWhat stands out:")
    for number_of, finding in enumerate(report.findings[:_FINDINGS], 1):
        look = f"\nLook at {finding.look_at}" if finding.look_at else ""
        text = Text(f"{number_of}. {plain(finding.says, 1000)}")
        console.print(text, Padding(Text(look.strip()), (0, 0, 0, 3)), sep="\n")
    if len(report.findings) > _FINDINGS:
        more = counted(len(report.findings) - _FINDINGS, "more finding")
        console.print(f"   {more}: eval_suite.py without --brief.")


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


def _print_table(console: Console, report: SuiteReport, every: bool) -> None:
    """A heading a perspective, a row a measure; with pictures where there is room."""
    rows: list[tuple[str, ...]] = []
    styles: list[str] = []
    for outcome in report.outcomes:
        if outcome.status != "scored":
            continue
        rows.append((outcome.name, *[""] * len(HEAD)))
        styles.append("bold")
        for measure in _rows_of(report, outcome, every):
            name, *rest, band = _cells(measure)
            # On 80 columns there is no room for more than one word.
            band = "" if band == UNCLEAR_BAND else band
            drawn = picture(
                measure.ci95, measure.mean, measure.bound, unicode=draws_unicode(console)
            )
            rows.append((plain(INDENT + name), *rest[:2], drawn, *rest[2:], band))
            styles.append(STYLES[measure.passed] or "")
    head: tuple[str, ...] = (*HEAD[:3], SCALE, *HEAD[3:])
    if not has_room(console):
        head, rows = without(head, 3), [without(row, 3) for row in rows]
    print_columns(
        console, head, rows, styles=styles, droppable=LEAST_NEEDED, left=(SCALE, HEAD[-1])
    )


def _print_changes(console: Console, report: SuiteReport, every: bool) -> None:
    """Regressions, and with ``every`` every number that is worse than before."""
    from rich.text import Text

    if report.changes is None:
        return
    console.print(Text(f"\nAgainst {report.baseline}"))
    if report.unlike:
        console.print(Text(plain(f"not comparable: {report.unlike}", 2000), style="red"))
    for note in report.caveats:
        console.print(Text(note, style="yellow"))
    for change in report.changes:
        failing = change in report.regressions
        if failing or change.verdict == "not comparable" or (every and _fell(change)):
            text = f"{change.verdict}: {change.section} {change.metric} {_change_text(change)}"
            console.print(Text(text, style="red" if failing else ""))
    counts = Counter(change.verdict for change in report.changes)
    tested = [f"{counts[name]} {words}" for name, words in _TESTED.items() if counts[name]]
    console.print(
        f"{counted(len(report.changes), 'metric')} compared: "
        f"{', '.join([counted(len(report.regressions), 'regression'), *tested])}; not tested: "
        f"{counts['lower']} lower, {counts['higher']} higher"
        f"{'' if every else ' (-v lists what got worse)'}."
    )

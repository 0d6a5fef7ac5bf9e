"""Targets, metrics, slices, times and outcomes of a run, from metrics.json alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decisions.diagnosis import DiagnosisFinding
from decisions.measures import UNCLEAR_BAND, Measure, band, known_metrics, targets_text
from ragmetrics.catalogue import BY_DEFINITION, METRICS, SECTIONS, headline, rubrics
from ragmetrics.catalogue.metric import Metric
from ragmetrics.pipeline import is_largest
from ragmetrics.stats.means import UNRELIABLE_BELOW
from records.targets import parse_target
from terminal.page import (
    AnyColumn,
    Block,
    CaseLinks,
    CaseRef,
    CasesColumn,
    Chart,
    DataColumn,
    DataTable,
    Heading,
    Labelled,
    Link,
    Part,
    Prose,
    Quoted,
    Section,
    Term,
    Whisker,
    WhiskerColumn,
    between,
    items,
    number,
    percent,
    plain_table,
    term_column,
)
from views.text import one_line

Measures = Mapping[tuple[str, str], Measure]

PROMPT_SECTION = "safety"

MOST_SLICES = 30

FEW, SLICED = 6, 2
"""Number of a section's main metrics in charts, and in the tables of slices."""

CLOSE = " ≈"
"""Beside a result that is too close to call: its 95 % interval includes the target."""


# The sections of metrics.json


ORDER = {definition: METRICS.index(metric) for definition, metric in BY_DEFINITION.items()}

_CUT_OFF = re.compile(r"@(\d+)$")


def sections_in_order(sections: Mapping[str, Any]) -> list[str]:
    """The sections with means, in the order of the suite, those of other scripts behind."""
    sound = [
        name
        for name, section in sections.items()
        if isinstance(section, dict) and "mean" in section
    ]
    first = [name for name in SECTIONS if name in sound]
    return first + sorted(set(sound) - set(first))


def metrics_in_order(section: Mapping[str, Any]) -> list[str]:
    """The metrics of a section as the catalogue has them, cut-offs rising; unknown ones last."""

    def sort_key(name: str) -> tuple[int, int, str]:
        cut_off = _CUT_OFF.search(name)
        at = int(cut_off.group(1)) if cut_off else 0
        return ORDER.get(section["definitions"].get(name, ""), len(ORDER)), at, name

    return sorted(section["mean"], key=sort_key)


def summary_of(section: str, names: Sequence[str]) -> list[str]:
    """The main metrics of a section: its headline, else the first few."""
    return headline(section, names) or list(names[:FEW])


def rows_of(section: Mapping[str, Any]) -> dict[str, Metric]:
    """Catalogue rows by the names that a section uses; those of plugins are not known here."""
    rows = known_metrics(rubrics.rows_in(section))
    named = section["definitions"].items()
    return {name: row for name, definition in named if (row := rows.get(definition)) is not None}


@dataclass(frozen=True, slots=True)
class ReportMetric:
    """A metric of a section: what was measured, and what the catalogue says of it.

    ``summary``: shown first. ``close``: the interval has values that meet the target and values
    that miss it.
    """

    measure: Measure
    words: str = ""
    catalogued: Metric | None = None
    summary: bool = True
    close: bool = False
    cases: CaseLinks | None = None

    @property
    def coverage(self) -> float | None:
        """Cases scored / cases there are, in [0, 1]; None when nothing was counted."""
        total = self.measure.n + self.measure.not_applicable + self.measure.failed
        return self.measure.n / total if total else None

    @property
    def meaning(self) -> str:
        return self.catalogued.meaning if self.catalogued else ""


MetricLinks = Callable[[ReportMetric], CaseLinks | None]
"""Finds the answers behind a metric."""


def section_metrics(
    name: str,
    section: Mapping[str, Any],
    measured: Measures,
    links: MetricLinks = lambda metric: None,
) -> list[ReportMetric]:
    """The metrics of a section in catalogue order, those that have a target and no mean last."""
    rows, names = rows_of(section), metrics_in_order(section)
    shown = set(summary_of(name, names))
    names += [metric for section, metric in measured if section == name and metric not in names]
    metrics = []
    for metric_name in names:
        measure, row = measured[name, metric_name], rows.get(metric_name)
        summary = metric_name in shown or bool(measure.target or measure.advisory)
        metric = ReportMetric(measure, _words_of(measure, row), row, summary, _close(measure))
        metrics.append(replace(metric, cases=links(metric)))
    return metrics


def _words_of(measure: Measure, row: Metric | None) -> str:
    """The metric in plain words; also of an older version, whose exact meaning is not known."""
    if row is None:
        same = (metric for metric in METRICS if metric.name == measure.metric.partition("@")[0])
        stem = measure.definition.partition("@")[0]
        row = next((m for m in same if m.definition.partition("@")[0] == stem), None)
    words = row.in_words(measure.metric) if row else ""
    return f"{words} (per search)" if measure.per_search else words


def _close(measure: Measure) -> bool:
    target = parse_target(measure.target)
    if target is None or measure.passed is None or measure.ci95 is None:
        return False
    return target.passed(measure.ci95[0]) != target.passed(measure.ci95[1])


# Targets


@dataclass(frozen=True, slots=True)
class TargetsVerdict:
    """Targets met, missed and without a verdict over all sections, in a sentence and by metric.

    ``unsure``: met, but too close to call. ``open``: no verdict, in a section with any score.
    ``doubts``: how far the verdict can be trusted.
    """

    says: str
    doubts: Sequence[str]
    missed: Sequence[ReportMetric]
    unsure: Sequence[ReportMetric]
    open: Sequence[ReportMetric]


def targets_verdict(
    metrics: Iterable[ReportMetric],
    answers: int,
    failed_calls: int,
    remarks: Sequence[str] = (),
) -> TargetsVerdict:
    """The verdict of a run on its targets. ``remarks``: on cases without an answer."""
    known = list(metrics)
    aimed = [metric for metric in known if metric.measure.target is not None]
    decided = [metric for metric in aimed if metric.measure.passed is not None]
    missed = [metric for metric in decided if not metric.measure.passed]
    unknown = [metric for metric in aimed if metric.measure.passed is None]
    measured = {metric.measure.section for metric in known if metric.measure.n}
    text = targets_text(metric.measure.verdict for metric in aimed)
    if not answers:
        text = f"The run holds no answer to a case; {text[0].lower()}{text[1:]}"
    return TargetsVerdict(
        says=f"{text}.",
        doubts=[*remarks, *_doubts(decided, answers, failed_calls)],
        missed=missed,
        unsure=[metric for metric in decided if metric.measure.passed and metric.close],
        open=[metric for metric in unknown if metric.measure.section in measured],
    )


COUNT_AS_0 = "They count as 0 in answered and pass, and in no other mean."


def _doubts(decided: Sequence[ReportMetric], answers: int, failed_calls: int) -> Iterator[str]:
    if failed_calls:
        yield f"Failed calls: {failed_calls:,} of {answers:,}. {COUNT_AS_0}"
    if few := sum(0 < metric.measure.n < UNRELIABLE_BELOW for metric in decided):
        yield f"Verdicts on fewer than {UNRELIABLE_BELOW} cases each: {few:,} of {len(decided):,}."
    if close := sum(metric.close for metric in decided):
        yield (
            f"{close:,} of {len(decided):,} results are too close to call (≈): their 95 % interval "
            "includes the target."
        )


def target_blocks(verdict: TargetsVerdict, facts: Iterable[tuple[str, str]]) -> Iterator[Block]:
    """How far the verdict on the targets can be trusted, those that are not met, and the run."""
    yield from (Prose(doubt, "quiet") for doubt in verdict.doubts)
    for look, title, aims in (
        ("missed", "Missed", verdict.missed),
        ("unsure", "Met, but too close to call", verdict.unsure),
        ("open", "No verdict", verdict.open),
    ):
        if aims:
            yield Heading(title, 2)
        for metric in aims:
            measure = metric.measure
            mean = "" if measure.mean is None else f" {number(measure.mean)}"
            why = f", {measure.verdict}" if look == "open" else ""
            note = f"{measure.metric} {measure.target}{CLOSE * metric.close}{why}"
            words = metric.words or measure.metric
            link = Link(f"{words}{mean}", f"metrics-{measure.section}", note)
            yield Prose(link, item=1, look=f"aims {look}")
    yield from (Labelled(name, one_line(value), look="facts") for name, value in facts)


# Metrics


def metric_blocks(
    name: str, section: Mapping[str, Any], metrics: Sequence[ReportMetric]
) -> Iterator[Block]:
    """A section: its main metrics, then the others and what the names mean."""
    yield Heading(one_line(name).capitalize(), 3, anchor=f"metrics-{name}")
    if not any(metric.measure.n for metric in metrics):
        empty = Link("what was not applicable", "not-applicable")
        yield Prose(("Nothing to score; see ", empty, "."))
    yield from (Prose(one_line(note, 300), "quiet") for note in _notes(section))
    main = [metric for metric in metrics if metric.summary]
    rest = [metric for metric in metrics if not metric.summary]
    yield metrics_table(main, f"Main {name} metrics")
    more = f"{len(rest)} more metrics of {name}, and what the names mean"
    others = metrics_table(rest, f"{name}: the other metrics")
    title = more if rest else "What the names mean"
    yield Section(one_line(title), [others, *_meanings(metrics)], level=0, screen=True)


def _notes(section: Mapping[str, Any]) -> list[str]:
    """Whose guardrails were judged, how often a rubric's verdicts were given, and which numbers too
    few texts are behind."""
    notes = [f"{name}: {text}" for name, text in section.get("guardrails", {}).items()]
    notes += rubrics.given_words(section)
    points = section.get("operating_points", {}).items()
    return notes + [f"{name}: {point['note']}" for name, point in points if point and point["note"]]


def _meanings(metrics: Iterable[ReportMetric]) -> Iterator[Block]:
    """Each metric once, without its cut-offs, and its meaning."""
    texts: dict[str, str] = {}
    for metric in metrics:
        name = metric.measure.metric
        text = metric.meaning or "defined by a plugin or another script"
        stem = name.partition("@")[0]
        texts[stem if texts.get(stem, text) == text else name] = text
    return (Labelled(name, one_line(text, 400), look="meanings") for name, text in texts.items())


METRICS_EXPLAINED = Prose(
    (
        "Mean over the cases that have a score, with its 95 % interval. The coverage is the share "
        "of cases that have one. In the pictures: ● mean, ├─┤ its interval, │ target. A star marks "
        "an interval that is unreliable; ",
        Quoted("marks"),
        " in metrics.json says why. A sign ≈ marks a result that is too close to call: its "
        "interval includes the target.",
    ),
    look="soft",
)

_VERDICTS = {
    None: ("", ""),
    "met": ("✓ met", "met"),
    "missed": ("✗ missed", "missed"),
    "too few to say": ("? too few to say", "open"),
    "not measured": ("– not measured", "open"),
}


def metrics_table(rows: Sequence[ReportMetric], caption: str) -> DataTable[ReportMetric]:
    """Metrics with mean, target, verdict and interval."""

    def term(row: ReportMetric) -> Term:
        note = "" if row.measure.higher_is_better else "(lower is better)"
        return Term(row.measure.metric, row.words, row.meaning, note)

    def mark(row: ReportMetric) -> tuple[str, str]:
        return _VERDICTS[row.measure.verdict]

    def interval(row: ReportMetric) -> str:
        measure = row.measure
        return between(measure.ci95) + "*" * bool(measure.mark and measure.ci95)

    def whisker(row: ReportMetric) -> Whisker | None:
        measure, metric = row.measure, row.catalogued
        aim = measure.bound if measure.target else None
        low, high = (metric.low, metric.high) if metric else (None, None)
        return Whisker(measure.ci95, measure.mean, aim, low, high)

    columns: list[AnyColumn[ReportMetric]] = [
        term_column("metric", term),
        DataColumn("mean", lambda row: number(row.measure.mean)),
        DataColumn("target", lambda row: row.measure.target or row.measure.advisory or ""),
        DataColumn(
            "verdict",
            lambda row: mark(row)[0] + CLOSE * row.close,
            words=True,
            shade=lambda row: f"mark-{mark(row)[1]}",
        ),
        DataColumn("95 % interval", interval),
        WhiskerColumn(whisker),
        DataColumn("n", lambda row: f"{row.measure.n:,}"),
        DataColumn("coverage", lambda row: percent(row.coverage)),
        CasesColumn("cases", lambda row: row.cases),
    ]
    return DataTable(columns, rows, caption=caption, look="metrics cards")


def diagnosis_blocks(findings: Iterable[DiagnosisFinding]) -> Iterator[Block]:
    """The findings of the diagnosis, with their causes and where to look."""
    for finding in findings:
        texts = finding.look_at.split("`")
        parts: list[Part] = [Quoted(text) if at % 2 else text for at, text in enumerate(texts)]
        yield Prose(finding.says, "strong", item=1, look="diagnosis")
        if finding.because:
            because = f"Because {'; '.join(finding.because)}"
            yield Prose(because, "quiet", item=1, look="diagnosis")
        yield Prose(("Look at ", *parts), item=1, look="diagnosis")


# Slices

SliceLinks = Callable[[str, str, int], CaseLinks | None]
"""Finds the answers of a slice by dimension, value, and how many cases it has."""


@dataclass(frozen=True, slots=True)
class SliceCell:
    """A mean over some cases of a slice. ``unsure``: on few cases, or too near another band."""

    mean: float | None
    n: int
    band: str | None = None
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class SliceRow:
    """The means of one value of a dimension."""

    value: str
    n: int
    cells: Sequence[SliceCell]
    cases: CaseLinks | None = None


def slice_blocks(
    sections: Mapping[str, Mapping[str, Any]],
    links: SliceLinks = lambda dimension, value, n: None,
    missing: str = "",
) -> Iterator[Block]:
    """A table a dimension: the metrics that stand for each section, by value.

    Labelled safety prompts have dimensions of their own. Values are sorted by name; of more than 30
    those with most cases are shown and the rest is counted. ``missing``: why some have no means.
    """
    tables = list(_slice_tables(sections, links))
    yield Prose(missing)
    if not tables and not missing:
        yield Prose("No case has a category, difficulty, tag or the like.")
    for at, (table, left_out) in enumerate(tables):
        if at:
            yield replace(table, folded=table.title, title="")
        else:
            yield from (Heading(table.title, 3), replace(table, title=""))
        if left_out:
            yield Prose(f"{left_out:,} smaller slices are left out.", "quiet")
    if tables:
        text = "In brackets: how many have this score, when fewer. * fewer than 20. On the page "
        text += "coloured by the mean, from 0.9, 0.7, 0.5 or less; hatched: few cases, or close."
        yield Prose(text, "quiet")


def _slice_tables(
    sections: Mapping[str, Mapping[str, Any]], links: SliceLinks
) -> Iterator[tuple[DataTable[SliceRow], int]]:
    """The tables, each with how many slices it leaves out."""
    cases = [name for name in sections if name != PROMPT_SECTION]
    for of, names in (("cases", cases), ("safety prompts", [PROMPT_SECTION])):
        slices_of = {name: sections[name].get("by", {}) for name in names if name in sections}
        for dimension in dict.fromkeys(one for by in slices_of.values() for one in by):
            if of == "cases" or dimension != "tag":
                columns, rows, left_out = slice_rows(sections, slices_of, dimension, of, links)
                if columns and rows:
                    yield _slice_table(dimension, of, columns, rows), left_out


def slice_rows(
    sections: Mapping[str, Mapping[str, Any]],
    slices_of: Mapping[str, Mapping[str, Any]],
    dimension: str,
    of: str = "cases",
    links: SliceLinks = lambda dimension, value, n: None,
) -> tuple[list[str], list[SliceRow], int]:
    """The metrics of a dimension's table, its rows, and how many values it leaves out."""
    columns: list[tuple[str, str]] = []
    for name, by in slices_of.items():
        measured = {key for part in by.get(dimension, {}).values() for key in part["mean"]}
        names = summary_of(name, metrics_in_order(sections[name]))
        chosen = [metric for metric in names if metric in measured]
        columns += [(name, metric) for metric in chosen[: SLICED if of == "cases" else None]]
    counts: dict[str, int] = {}
    for by in slices_of.values():
        for value, part in by.get(dimension, {}).items():
            counts[value] = max(counts.get(value, 0), part["n"])
    largest = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_SLICES]
    known = {name: rows_of(sections[name]) for name in slices_of}
    rows = []
    for value in sorted(largest):
        parts = {name: by.get(dimension, {}).get(value) for name, by in slices_of.items()}
        cells = [
            _slice_cell(parts[name], metric, known[name].get(metric)) for name, metric in columns
        ]
        behind = links(dimension, value, counts[value]) if of == "cases" else None
        rows.append(SliceRow(value, counts[value], cells, behind))
    return [metric for _, metric in columns], rows, len(counts) - len(largest)


def _slice_cell(part: Mapping[str, Any] | None, metric: str, row: Metric | None) -> SliceCell:
    mean = part["mean"].get(metric) if part else None
    if part is None or mean is None:
        return SliceCell(None, 0)
    n = part.get("n_of", {}).get(metric, part["n"])
    if row is None:
        return SliceCell(mean, n)
    # Slices of labelled texts come without intervals.
    ends = part["ci95"].get(metric) if "ci95" in part else (mean, mean)
    own = band(mean, row, (mean, mean))
    few = n < UNRELIABLE_BELOW or band(mean, row, ends) == UNCLEAR_BAND
    return SliceCell(mean, n, own, own is not None and few)


def _slice_table(
    dimension: str, of: str, metrics: Sequence[str], rows: Sequence[SliceRow]
) -> DataTable[SliceRow]:
    def column(at: int, name: str) -> DataColumn[SliceRow]:
        def fewer(row: SliceRow) -> str:
            cell = row.cells[at]
            return f"({cell.n:,})" if cell.mean is not None and cell.n != row.n else ""

        return DataColumn(
            name,
            lambda row: number(row.cells[at].mean),
            small=fewer,
            shade=lambda row: (row.cells[at].band or "") + " few" * row.cells[at].unsure,
        )

    spaced = dimension.replace("_", " ")
    columns: list[AnyColumn[SliceRow]] = [
        DataColumn(spaced, lambda row: one_line(row.value, 60), words=True),
        DataColumn("n", lambda row: f"{row.n:,}{'*' * (row.n < UNRELIABLE_BELOW)}"),
        *(column(at, name) for at, name in enumerate(metrics)),
        *([CasesColumn[SliceRow]("cases", lambda row: row.cases)] if of == "cases" else []),
    ]
    title = f"By {spaced}" + ("" if of == "cases" else f" ({of})")
    caption = f"Means of {of} by {spaced}; n counts those with any score"
    return DataTable(columns, rows, title, caption=caption)


# Times, cost, outcomes

MARKS = ("p50", "p95", "p99", "max")
"""Percentiles of latency, in the order of their marks in the chart."""

Stages = Mapping[str, Mapping[str, float]]
"""Percentiles in milliseconds, by stage in its order."""


def stages_of(section: Mapping[str, Any] | None) -> dict[str, Mapping[str, float]]:
    """The percentiles of times by stage, in the order of an answer."""
    stages = (section or {}).get("latency_ms", {})
    order = ("guardrail_input", "retrieve", "generate", "guardrail_output", "total")
    names = [name for name in order if name in stages]
    return {name: stages[name] for name in (*names, *sorted(set(stages) - set(names)))}


def latency_blocks(
    section: Mapping[str, Any] | None,
    before: Stages,
    slowest: Sequence[tuple[str, int, float]],
    links: Callable[[str], CaseLinks | None],
) -> Iterator[Block]:
    """Percentiles by stage, budgets of the run, tokens, cost, and how responses ended.

    ``before``: of the baseline. ``slowest``: id, repeat and time. ``links``: finds the answers that
    ended otherwise than expected.
    """
    section = section or {}
    if stages := stages_of(section):
        text = "Circle p50, square p95, diamond p99, stroke the longest. Logarithmic axis. "
        text += "Dashed and hollow: the baseline. " * bool(before)
        data = {"stages": stages, "before": before}
        yield Chart("latency", data, f"{text}Waiting for a retry is not latency.")
        rows = (
            [
                one_line(stage) + which,
                *(_milliseconds(times[mark]) + _star(mark, times) for mark in MARKS),
                f"{times['n']:,}",
            ]
            for own, which in ((stages, ""), (before, " (before)"))
            for stage, times in own.items()
        )
        yield plain_table(("stage, ms", *MARKS, "n"), rows, caption="Milliseconds by stage")
        if any(_star(mark, times) for times in stages.values() for mark in MARKS):
            text = "* with so few responses the percentile is the longest time."
            yield Prose(text, "quiet")
        yield from _slowest(slowest)
    else:
        yield Prose("The bot tells no times, or score_pipeline.py has not been run.")
    yield from items(_totals(section))
    if outcomes := section.get("outcomes"):
        yield from (Heading("How responses ended", 3), _outcomes(outcomes, links))


def _milliseconds(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _star(mark: str, times: Mapping[str, float]) -> str:
    """A star for a percentile that is the longest time."""
    return "*" if is_largest(mark, int(times["n"])) else ""


def _slowest(times: Sequence[tuple[str, int, float]]) -> Iterator[Block]:
    """The slowest responses, none for a bot that tells no times."""
    parts: list[Part] = []
    for case_id, repeat, ms in times:
        parts += [CaseRef(case_id, repeat), f" ({_milliseconds(ms)} ms)", ", "]
    if parts:
        yield Prose(("The slowest responses: ", *parts[:-1], "."), "quiet")


def _totals(section: Mapping[str, Any]) -> Iterator[str]:
    """Budgets of the run, tokens and cost, a sentence each; nothing that is not there."""
    for row in section.get("run_budgets", ()):
        yield (
            f"Budget for {row['percentile']} of the total time: {row['budget_ms']:,.0f} ms, "
            f"{'met' if row['kept'] else 'missed'} "
            f"({_milliseconds(row['ms'])} ms over {row['n']:,} responses)."
        )
    if usage := section.get("usage"):
        counts = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in usage.items())
        yield f"Tokens: {counts}."
    if (cost := section.get("cost_usd")) is not None:
        yield f"Cost: {cost:.4f} USD."


def _outcomes(
    table: Mapping[str, Mapping[str, int]], links: Callable[[str], CaseLinks | None]
) -> DataTable[str]:
    """How responses ended, expected outcomes in rows."""

    def column(name: str) -> DataColumn[str]:
        return DataColumn(one_line(name), lambda expected: f"{table[expected].get(name, 0):,}")

    columns: list[AnyColumn[str]] = [
        DataColumn("expected", one_line, words=True),
        *map(column, sorted({name for row in table.values() for name in row})),
        CasesColumn("ended otherwise", links),
    ]
    caption = "Expected outcomes in rows, what happened in columns"
    return DataTable(columns, list(table), caption=caption)

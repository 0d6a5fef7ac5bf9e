"""A run beside others, as a report shows it: its baseline and its history.

Every verdict is that of decisions/; here nothing is calculated, only put into words and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from decisions import compare_words
from decisions.alerts import AlertRule, changes, make_lines
from decisions.case_changes import ChangedCase, PairVerdicts, Ways, changes_of, read_pair
from decisions.case_rules import read_case_rules
from decisions.change import Change
from decisions.committed import compare_pair, is_committed_alone
from decisions.compare import CompareOptions, clusters_of
from decisions.comparison import Comparison
from decisions.conversations import SHOWN, find_changes
from decisions.flips import Flips, find_flips
from decisions.history import read_history
from decisions.history_print import as_dict
from decisions.metric_words import catalogue_row, outcome_of
from decisions.slices import Embed, common_slices
from records import extras
from records.clusters import AUTO, read_clusters
from records.metrics import read_metrics
from records.run import Run, Runs
from terminal.page import (
    AnyColumn,
    Block,
    CaseRef,
    DataColumn,
    DataTable,
    Heading,
    Prose,
    Term,
    Tone,
    Whisker,
    WhiskerColumn,
    items,
    number,
    term_column,
)
from views.report import figures, words
from views.report.model import (
    ReportTrend,
    StageLatency,
    TrendChange,
    TrendLine,
    TrendPoint,
    TrendValue,
)
from views.report.report import (
    CaseChange,
    ChangedAnswer,
    ChangedTurns,
    ComparedMetric,
    ComparisonPart,
    MetricFlips,
    ReportAnswer,
    VerdictSentence,
)
from views.report.text import one_line

MOST_FLIPS = 100
"""Cases of one metric, each way, that are looked up; the others are counted."""


@dataclass(frozen=True)
class BaselineComparison:
    """``table``: of the baseline. ``part``: what the report contains. ``changes``: by case id, of
    the cases that broke or were fixed, then of those in which only a primary metric changed;
    ``ways``: of the first ones, which of the two; ``pair``: the verdicts on both, where they are
    known."""

    table: Run
    part: ComparisonPart
    changes: Mapping[str, Sequence[CaseChange]] = field(default_factory=dict)
    ways: Mapping[str, Ways] = field(default_factory=dict)
    pair: PairVerdicts | None = None


def compare_with(
    base: Path,
    table: Run,
    eval_set: Path,
    targets: Path,
    *,
    ignore_invariants: bool = False,
    labels_dir: Path | None = None,
    embed: Embed | None = None,
) -> BaselineComparison:
    """Compare a run with its baseline as compare_runs.py does. If git keeps only the metrics.json
    of the baseline, compare the primary metrics. ``table``: of the run; it keeps what is read.

    Raises IncomparableError for runs that were not measured alike, StorageError for a run that is
    not scored or a damaged file.
    """
    tables, new = Runs(table), table.folder
    clusters, remarks = clusters_of((base, new), eval_set, AUTO, tables, targets)
    options = CompareOptions(
        eval_set=eval_set,
        targets=targets,
        ignore_invariants=ignore_invariants,
        override="--ignore-invariants",
    )
    comparison = compare_pair(base, new, options, clusters, tables)
    return of_comparison(
        comparison,
        base,
        new,
        eval_set,
        targets,
        remarks,
        tables,
        labels_dir=labels_dir,
        embed=embed,
    )


def of_comparison(
    comparison: Comparison,
    base: Path,
    new: Path,
    eval_set: Path,
    targets: Path,
    remarks: Sequence[str] = (),
    tables: Runs | None = None,
    *,
    labels_dir: Path | None = None,
    embed: Embed | None = None,
) -> BaselineComparison:
    """A comparison that was made already, with the cases that broke, were fixed, or changed in a
    primary metric. ``tables``: what was read of the runs."""
    tables = tables or Runs()
    moved = [row for row in comparison.rows if row.primary and (row.rose or row.fell)]
    moved = [] if is_committed_alone(base) else moved
    flips = [
        find_flips(
            base,
            new,
            row,
            MOST_FLIPS,
            eval_set,
            tables=tables,
        )
        for row in sorted(moved, key=_interest)
    ]
    pair = read_pair(base, new, read_case_rules(targets), tables)
    cases = changes_of(pair, MOST_FLIPS)
    ways = {case.case_id: case.way for case in cases.changed} if cases else {}
    changes = _changes(flips, ways)
    known = {case.case_id: case for case in cases.changed} if cases else {}
    talks = find_changes(pair, eval_set)
    in_common = common_slices(pair, eval_set, labels_dir, embed).sentences()
    part = replace(
        comparison_part(comparison, remarks),
        flips=[MetricFlips(found, compare_words.flips_summary(found)) for found in flips],
        cases_changed=[
            ChangedAnswer(
                case_id, ways.get(case_id, ""), own, case.reasons[:MOST_WHY], fact=case.fact
            )
            for case_id, own in changes.items()
            for case in (known.get(case_id) or ChangedCase(case_id, "ok still"),)
        ],
        cases_say=cases.says() if cases else "",
        in_common=in_common if cases else (),
        case_counts=cases.to_dict() | {"changed": []} if cases else None,
        conversations=UNSET
        if talks is None
        else ChangedTurns(
            talks.summary(), talks.broke[:SHOWN], talks.earlier[:SHOWN], talks.fixed[:SHOWN]
        ),
        of_extras=[
            block
            for added in extras.code_of(extras.COMPARED)
            for block in added.of_runs(base, [new], read_clusters(eval_set), seed=0)
        ],
    )
    return BaselineComparison(tables[base], part, changes, ways, None if pair.unknown else pair)


def comparison_part(comparison: Comparison, remarks: Sequence[str] = ()) -> ComparisonPart:
    """Verdicts, rows and remarks of a comparison; its flips come besides."""
    primary, telling, quiet = compare_words.row_groups(comparison)
    ranks = {"worse": 0, "mixed": 0, "better": 1}
    rows = [_row(row) for row in primary]
    said = sorted(rows, key=lambda m: ranks.get(m.row.verdict, 1 if m.row.look else 2))
    return ComparisonPart(
        base_id=comparison.base_id,
        new_id=comparison.new_id,
        headline=comparison.headline,
        says=comparison.says or (comparison.headline,),
        cases=compare_words.cases_line(comparison),
        sentences=[VerdictSentence(m.says, m.row.verdict) for m in said if m.says],
        primary=rows,
        exploratory=[_row(row) for row in telling],
        quiet=[_row(row) for row in quiet],
        explored_says=compare_words.explored_line(comparison),
        explored=sum(row.p_bh is not None for row in telling + quiet),
        controls=[str(difference) for difference in comparison.controls],
        varied=[str(difference) for difference in comparison.varied],
        notes=[*remarks, *compare_words.remarks(comparison)],
        legend=[*compare_words.contradictions(comparison), *compare_words.legend(comparison)],
    )


def _interest(row: Change) -> tuple[int, float]:
    """Metrics that got worse first, then by how sure that is."""
    order = {"worse": 0, "mixed": 1, "better": 3}
    rank = 2 if row.look else order.get(row.verdict, 4)
    p = row.p_worse if row.p_worse is not None else row.p
    return rank, 1.0 if p is None else p


def _row(row: Change) -> ComparedMetric:
    metric = catalogue_row(row.metric)
    return ComparedMetric(row, metric, _sentence(row))


def _sentence(row: Change) -> str | None:
    """What a primary metric says now and said before, and the engine's verdict, in a sentence."""
    if not row.primary or (row.verdict != "no verdict" and None in (row.new, row.base)):
        return None
    return outcome_of(row)


def _changes(flips: Sequence[Flips], ways: Mapping[str, Ways]) -> dict[str, list[CaseChange]]:
    """By case, which scores changed: first what broke, then what was fixed, then what else moved,
    for the worse first."""
    groups: tuple[list[str], ...] = ([], [])
    changes: dict[str, list[CaseChange]] = {case_id: [] for case_id in ways}
    for found in flips:
        name = found.metric.partition(".")[2]
        for better, flip in [(0, f) for f in found.worse] + [(1, f) for f in found.better]:
            change = CaseChange(name, flip.base.score, flip.new.score)
            changes.setdefault(flip.case_id, []).append(change)
            groups[better].append(flip.case_id)
    ordered = dict.fromkeys((*ways, *groups[0], *groups[1]))
    return {case_id: changes[case_id] for case_id in ordered}


MOST_WHY = 3


def explain_changes(part: ComparisonPart, answers: Sequence[ReportAnswer]) -> ComparisonPart:
    """The cases that changed with their question, and why those that moved fail now."""
    by_id = {answer.case_id: answer for answer in answers if not answer.repeat}
    explained = []
    for changed in part.cases_changed:
        if (answer := by_id.get(changed.case_id)) is not None:
            question, why = one_line(answer.question.text, 160), answer.fails[:MOST_WHY]
            changed = replace(changed, question=question, why=changed.why or why)
        explained.append(changed)
    return replace(part, cases_changed=explained)


def latency_of(baseline: Path | None) -> Sequence[StageLatency]:
    """The times of the baseline by stage; none where it is not a run."""
    if baseline is None or not baseline.is_dir():
        return ()
    return figures.latency(read_metrics(baseline)["sections"].get("pipeline"), ()).stages


MOST_POINTS = 40
"""The newest points that are drawn; alerts rest on all of them."""


def history_part(folder: Path, primary: Sequence[str]) -> ReportTrend:
    """The history of the primary metrics in the folder of this run, newest point last.

    The same lines, bands and alerts as track_metrics.py gives them. Raises StorageError outside a
    folder with any metrics.json.
    """
    history = read_history((folder.resolve().parent,))
    points = history.points
    scored = {key for point in points for key in point.values}
    names = [(section, metric) for section, _, metric in (n.partition(".") for n in primary)]
    keys = [name for name in names if name in scored]
    lines = make_lines(points, keys, AlertRule(primary))
    whole = as_dict(history, lines, changes(points, lines))
    first = max(0, len(points) - MOST_POINTS)
    run_id = folder.resolve().name
    return ReportTrend(
        points=[
            TrendPoint(
                point.label, point.title, point.date[:10], point.run_id, point.run_id == run_id
            )
            for point in points[first:]
        ],
        left_out=first,
        lines=[_line(line, first) for line in whole["metrics"]],
        changes=[
            TrendChange(change["place"] - first, change["what"])
            for change in whole["changes"]
            if change["place"] >= first
        ],
        notes=whole["notes"],
    )


def _line(line: Mapping[str, Any], first: int) -> TrendLine:
    metric = catalogue_row(line["metric"])
    return TrendLine(
        section=line["section"],
        metric=line["metric"],
        words=metric.in_words(line["metric"]) if metric else "",
        meaning=metric.meaning if metric else "",
        low=metric.low if metric else None,
        high=metric.high if metric else None,
        alerts=[alert["text"] for alert in line["alerts"]],
        values=[
            TrendValue(
                value["point"] - first,
                value["mean"],
                (value["band_low"], value["band_high"]),
                value["alert"],
                _interval(value),
            )
            for value in line["values"]
            if value["point"] >= first
        ],
    )


def _interval(value: Mapping[str, Any]) -> Sequence[float] | None:
    low, high = value["ci95_low"], value["ci95_high"]
    return None if low is None else (low, high)


def compared_table(
    rows: Sequence[ComparedMetric], caption: str, folded: str = ""
) -> DataTable[Any]:
    """Metrics of two runs, with an arrow from the value before to the value now."""

    def column(own: DataColumn[Any]) -> DataColumn[ComparedMetric]:
        return DataColumn(own.name, lambda metric: own.cell(metric.row))

    def shade(metric: ComparedMetric) -> str:
        return f"say {metric.row.verdict.replace(' ', '-')}"

    def term(metric: ComparedMetric) -> Term:
        note = "(lower is better)" if metric.row.higher_is_better is False else ""
        return Term(metric.row.metric, metric.words, metric.meaning, note)

    *middle, verdict = compare_words.COLUMNS[1:]
    columns: list[AnyColumn[ComparedMetric]] = [
        term_column("metric", term),
        *map(column, middle),
        with_fields(column(verdict), words=True, shade=shade),
        WhiskerColumn(_arrow),
    ]
    return DataTable(columns, rows, caption=caption, folded=folded, look="metrics cards")


def _arrow(metric: ComparedMetric) -> Whisker | None:
    """From the value before to the value now; where the difference's interval would put that."""
    row, end = metric.row, metric.catalogued
    if end is None or row.base is None or row.new is None:
        return None
    low, high = row.interval or (row.new - row.base, row.new - row.base)
    tones: dict[str, Tone] = {"better": "good", "worse": "bad"}
    return Whisker(
        (row.base + low, row.base + high),
        row.new,
        low=end.low,
        high=end.high,
        before=row.base,
        tone=tones.get(row.verdict),
    )


def comparison_blocks(part: ComparisonPart, *, page: bool) -> Iterator[Block]:
    """The changes since the baseline: rows of metrics, and the cases that changed."""
    if not page and part.explored_says:
        yield Prose(part.explored_says)
    for title, lines in (
        ("Must be the same, but differs", part.controls),
        ("Changed in the configuration", part.varied),
        ("To be known", part.notes),
    ):
        if lines:
            yield Heading(title, 3)
            yield from items(one_line(line, 400) for line in lines)
    if part.primary:
        yield Heading("Primary metrics", 3)
        caption = "Primary metrics decide the verdict (p-values from one joint test)"
        yield compared_table(part.primary, caption)
    if part.cases_say and not page:
        yield Heading("Cases that broke or were fixed", 3)
        yield Prose(part.cases_say)
        yield from map(Prose, part.in_common)
        for case in part.cases_changed:
            if case.kind:
                why = f": {'; '.join(case.why)}" if case.why else ""
                yield Prose(f"{case.kind}: {one_line(case.case_id, 80)}{why}", item=1)
    for found in part.flips:
        yield Heading(one_line(found.says), 3)
        sides = (
            ("worse", found.flips.worse, found.flips.fell_behind),
            ("better", found.flips.better, found.flips.gained),
        )
        for side, flips, total in sides:
            if flips:
                yield Heading(f"For the {side}", 4)
            for flip in flips[: words.IN_MARKDOWN]:
                change = f": {number(flip.base.score)} → {number(flip.new.score)}"
                yield Prose((CaseRef(flip.case_id), change), item=1)
            if (more := total - min(len(flips), words.IN_MARKDOWN)) > 0:
                yield Prose(f"{words.count(more)} more {side}.", item=1)
    if part.conversations is not UNSET:
        talks = part.conversations
        yield Heading(one_line(talks.says, 300), 3)
        for talk in (*talks.broke, *talks.earlier, *talks.fixed):
            repeat = f" (repeat {talk.repeat})" if talk.repeat else ""
            name = f"{one_line(talk.conversation, 80)}{repeat}: {talk.says()} ("
            question = f") {one_line(talk.question)}"
            yield Prose((name, CaseRef(talk.case_id, talk.repeat), question), item=1)
    for block in part.of_extras:
        yield with_fields(block, level=3) if isinstance(block, Heading) else block
    if part.exploratory:
        yield Heading("Exploratory metrics", 3)
        tests = f"{part.explored} tests; false discovery rate 5 %"
        yield compared_table(part.exploratory, f"Exploratory metrics that differ ({tests})")
    if page:
        text = (
            "The arrow goes from the value before to the value now; the line is the 95 % interval "
        )
        yield Prose(f"{text}of the difference, drawn from the value before.", "quiet")
        quiet = f"{len(part.quiet)} metrics that show no difference"
        yield compared_table(part.quiet, "Metrics that show no difference", quiet)
        yield from (Prose(one_line(line, 400), "quiet") for line in part.legend)

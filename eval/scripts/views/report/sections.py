"""The sections of a report as blocks: report.md is made of them, and so is most of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import UNSET, structs

from decisions.evidence_path import path_blocks
from terminal.page import (
    AnyColumn,
    Block,
    CaseRef,
    CasesColumn,
    Chart,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Term,
    Whisker,
    WhiskerColumn,
    between,
    items,
    number,
    percent,
    plain_table,
    plain_words,
    term_column,
)
from views.report import words
from views.report.compared import comparison_blocks
from views.report.described import answer_blocks, conversation_blocks
from views.report.model import (
    CallErrors,
    CaseLinks,
    ConfidenceBin,
    CorrelationMatrix,
    FirstRanks,
    MissingScores,
    NamedFigure,
    OutcomeRow,
    OutcomeTable,
    RankGroup,
    Reliability,
    ReportMetric,
    SliceRow,
    SliceTable,
    TrendValue,
)
from views.report.report import RunReport
from views.report.text import one_line


@dataclass(frozen=True)
class Section:
    """A section of a report. ``screen``: a page leaves it out in print."""

    anchor: str
    title: str
    blocks: Sequence[Block]
    screen: bool = True


def report_page(report: RunReport) -> Page:
    """The whole report in Markdown. Texts of questions, answers and marked passages are
    quotations."""
    blocks = list(_head(report))
    for section in sections(report, page=False):
        blocks += [Heading(section.title), *section.blocks]
    return Page(f"Report of run {one_line(report.run_id)}", blocks)


def sections(report: RunReport, *, page: bool) -> Iterator[Section]:
    """The sections in order. On the ``page`` those that it draws itself have no blocks."""
    if report.comparison:
        blocks = [*comparison_blocks(report.comparison, page=page)]
        title = f"What changed since {one_line(report.comparison.base_id)}"
        yield Section("changes", title, blocks, screen=False)
    if where := [*path_blocks(report.evidence_path, page=page)]:
        yield Section("where", "Where it fails", where, screen=False)
    if report.trend:
        yield Section("trend", "Trend of the primary metrics", [*_trend(report, page)], False)
    for key, (heading, *blocks) in (report.of_extras or {}).items():
        yield Section(key, plain_words(heading.words), blocks, screen=False)
    if not page:
        yield Section("diagnosis", "Diagnosis", [*_diagnosis(report)])
        yield Section("metrics", "Metrics", [*_metrics(report)])
    yield Section("slices", "Slices", [*_slices(report, page)], screen=False)
    title = "Rank of the first relevant passage"
    yield Section("ranks", title, [*_ranks(report.first_relevant)], screen=False)
    yield Section("latency-head", "Latency and cost", [*_latency(report)], screen=False)
    yield Section("calibration", "Calibration", [*_calibration(report)])
    correlations = [*_correlations(report.correlations, page)]
    yield Section("correlations", "Correlations of metrics", correlations)
    if report.prompts.wrong:
        title = "Texts that the guardrails judged wrongly"
        yield Section("prompts", title, [*_prompts(report)])
    yield Section("errors", "Errors", [*_errors(report)], screen=False)
    missing = [*_not_applicable(report)]
    yield Section("not-applicable", "What was not applicable", missing)
    if not page:
        if report.conversations is not UNSET:
            talks = conversation_blocks(report.conversations, report.worst.listed)
            yield Section("conversations", "Conversations", [*talks])
        yield Section("worst", "Worst answers", [*_answers(report)])
    yield Section("configuration", "Configuration", [*_configuration(report, page)])


def _answers(report: RunReport) -> Iterator[Block]:
    yield Prose(words.worst_text(report.worst))
    if len(report.worst.listed) > words.IN_MARKDOWN:
        yield Prose(f"Here stand the first {words.IN_MARKDOWN}; the page has all of them.")
    for answer in report.worst.listed[: words.IN_MARKDOWN]:
        yield from answer_blocks(answer)


def _head(report: RunReport) -> Iterator[Block]:
    facts = [("cases", words.count(report.cases))]
    facts += [("failed calls", words.count(report.failed_calls))]
    facts += [("unreadable answers", words.count(report.unreadable))] if report.unreadable else []
    facts += words.head_facts(report)
    yield Prose(", ".join(f"{name}: {one_line(value)}" for name, value in facts))
    if report.comparison:
        yield Conclusion(report.comparison.says[0])
        yield from map(Prose, report.comparison.says[1:])
    yield from items([*report.headline, *report.in_common])
    yield Prose(report.verdict.says, "strong")
    yield from map(Prose, report.verdict.doubts)
    for _, title, aims in words.not_met(report.verdict):
        yield Prose(f"{title}: {', '.join(map(words.aim, aims))}")
    yield from (Prose(f"Note: {note}") for note in report.notes)


def _cases(name: str) -> CasesColumn[Any]:
    return CasesColumn(name, lambda row: row.cases)


def _folded(title: str, table: DataTable[Any], *, fold: bool) -> Iterator[Block]:
    if fold:
        yield replace(table, folded=title)
    else:
        yield from (Heading(title, 3), table)


def _trend(report: RunReport, page: bool) -> Iterator[Block]:
    trend = report.trend
    assert trend is not None
    if len(trend.points) < 2:
        text = "The history has one point. Commit the run's metrics.json, or score a second run, "
        yield Prose(f"{text}to see a trend.")
    yield Chart("trends", trend)
    if page:
        text = "Dots are committed versions and runs, oldest first, with the 95 % interval; a ring "
        text += "is an alert; the shaded band is where chance keeps the number. track_metrics.py "
        text += "gives the same verdicts."
        if trend.left_out:
            text += f" {words.count(trend.left_out)} older points are left out of the pictures."
        yield Prose(text, "quiet")
    else:
        yield from items(alert for line in trend.lines for alert in line.alerts)
    for change in trend.changes:
        label = one_line(trend.points[change.point].label)
        yield Prose(f"At {label}: {one_line(change.text, 300)}.", "quiet")
    yield from (Prose(one_line(note, 400), "quiet") for note in trend.notes)
    values = [{value.point: value for value in line.values} for line in trend.lines]
    rows = (
        [
            one_line(point.label, 60) + (" (this run)" if point.this else ""),
            point.day,
            *(_mean(line.get(at)) for line in values),
        ]
        for at, point in enumerate(trend.points)
    )
    head = ("point", "day", *(line.metric for line in trend.lines))
    caption = "Primary metrics by point of the history, oldest first, with the 95 % interval"
    folded = "The points as a table" if page else ""
    yield plain_table(head, rows, words=2, caption=caption, folded=folded)


def _mean(value: TrendValue | None) -> str:
    interval = f" ({between(value.ci95)})" if value and value.ci95 else ""
    return number(value.mean if value else None) + interval


def _diagnosis(report: RunReport) -> Iterator[Block]:
    for finding in report.diagnosis:
        because = f" ({'; '.join(finding.because)})" if finding.because else ""
        yield Prose(f"{finding.says}{because} Look at {finding.look_at}", item=1)


def metrics_table(rows: Sequence[ReportMetric], caption: str) -> DataTable[ReportMetric]:
    """The metrics of a perspective."""

    def term(row: ReportMetric) -> Term:
        note = "" if row.measure.higher_is_better else "(lower is better)"
        return Term(row.measure.metric, row.words, row.meaning, note)

    def verdict(row: ReportMetric) -> str:
        return " ".join(words.mark(row.measure)).strip() + words.CLOSE * row.close

    def shade(row: ReportMetric) -> str:
        return f"mark-{words.mark(row.measure)[1]}"

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
            "verdict", verdict, words=True, shade=lambda row: f"mark-{words.mark(row.measure)[1]}"
        ),
        DataColumn("95 % interval", lambda row: words.interval(row.measure)),
        WhiskerColumn(whisker),
        DataColumn("n", lambda row: words.count(row.measure.n)),
        DataColumn("coverage", lambda row: percent(row.coverage)),
        _cases("cases"),
    ]
    return DataTable(columns, rows, caption=caption, look="metrics cards")


def _metrics(report: RunReport) -> Iterator[Block]:
    for part in report.perspectives:
        yield Heading(part.name.capitalize(), 3)
        yield from map(Prose, part.notes)
        yield metrics_table(part.metrics, part.name)
    yield Prose("* an interval to be doubted; marks in metrics.json says why.")
    yield Prose("≈ too close to call: the 95 % interval includes the target.")


def _slices(report: RunReport, page: bool) -> Iterator[Block]:
    yield Prose(report.slices_missing)
    if not report.slices and not report.slices_missing:
        yield Prose("No case has a category, difficulty, tag or the like.")
    for at, found in enumerate(report.slices):
        of = "" if found.of == "cases" else f" ({found.of})"
        title = f"By {words.spaced(found.dimension)}{of}"
        yield from _folded(title, _slice_table(found), fold=page and at > 0)
        if found.left_out:
            yield Prose(f"{words.count(found.left_out)} smaller slices are left out.", "quiet")
    if report.slices:
        text = "In brackets: how many have this score, when fewer. * fewer than 20."
        shaded = " Coloured by the mean, from 0.9, 0.7, 0.5 or less; hatched: few cases, or close."
        yield Prose(text + shaded * page, "quiet")


def _slice_table(found: SliceTable) -> DataTable[SliceRow]:
    def column(at: int, name: str) -> DataColumn[SliceRow]:
        def fewer(row: SliceRow) -> str:
            cell = row.cells[at]
            shown = cell.mean is not None and cell.n != row.n
            return f"({words.count(cell.n)})" if shown else ""

        return DataColumn(
            name,
            lambda row: number(row.cells[at].mean),
            small=fewer,
            shade=lambda row: (row.cells[at].band or "") + " few" * row.cells[at].unsure,
        )

    dimension = words.spaced(found.dimension)
    columns: list[AnyColumn[SliceRow]] = [
        DataColumn(dimension, lambda row: one_line(row.value, 60), words=True),
        DataColumn("n", lambda row: words.count(row.n) + "*" * row.few),
        *(column(at, metric.metric) for at, metric in enumerate(found.columns)),
        *([_cases("cases")] if found.of == "cases" else []),
    ]
    caption = f"Means of {found.of} by {dimension}; n counts those with any score"
    return DataTable(columns, found.rows, caption=caption)


def _ranks(found: FirstRanks) -> Iterator[Block]:
    if not found.n:
        yield Prose(words.NO_RANKS)
        return
    yield Prose(words.rank_text(found))

    def successes(group: RankGroup) -> str:
        fewer = f" ({words.count(group.known)})" if 0 < group.known < group.count else ""
        return percent(group.success) + fewer

    columns: list[AnyColumn[RankGroup]] = [
        DataColumn("rank", lambda group: str(group.rank)),
        DataColumn("answers", lambda group: words.count(group.count)),
        DataColumn("share", lambda group: percent(group.count / found.n)),
    ]
    if found.says:  # else nothing says which answers are right
        columns += [
            DataColumn("successes", successes),
            DataColumn("95 % interval", lambda group: _shares(group.ci95)),
        ]
    rows = [*found.bins, structs.replace(found.nowhere, rank="none found")]
    caption = "Answers by the rank of their first relevant passage"
    yield DataTable([*columns, _cases("cases")], rows, caption=caption)


def _shares(ends: Sequence[float] | None) -> str:
    return "–" if ends is None else " – ".join(map(percent, ends))


def _latency(report: RunReport) -> Iterator[Block]:
    found = report.latency
    if found.stages:
        text = "Circle p50, square p95, diamond p99, stroke the longest. Logarithmic axis. "
        text += "Dashed and hollow: the baseline. " * bool(report.latency_before)
        yield Chart("latency", report, f"{text}Waiting for a retry is not latency.")
        rows = (
            [
                one_line(stage.stage) + which,
                *(words.percentile(stage, mark) for mark in words.MARKS),
                words.count(stage.n),
            ]
            for stages, which in ((found.stages, ""), (report.latency_before, " (before)"))
            for stage in stages
        )
        head = ("stage, ms", *words.MARKS, "n")
        yield plain_table(head, rows, caption="Milliseconds by stage")
        yield Prose(words.largest_text(found.stages), "quiet")
        yield from _slowest(found.slowest)
    else:
        yield Prose("The bot tells no times, or score_pipeline.py has not been run.")
    yield from items(words.totals(found))
    if report.outcomes.rows:
        yield from (Heading("How responses ended", 3), _outcomes(report.outcomes))


def _slowest(times: Sequence[tuple[str, int, float]]) -> Iterator[Block]:
    """The slowest responses, none for a bot that tells no times."""
    parts: list[str | CaseRef] = []
    for case_id, repeat, ms in times:
        parts += [CaseRef(case_id, repeat), f" ({words.milliseconds(ms)} ms)", ", "]
    if parts:
        yield Prose(("The slowest responses: ", *parts[:-1], "."), "quiet")


def _outcomes(found: OutcomeTable) -> DataTable[OutcomeRow]:
    def column(at: int, name: str) -> DataColumn[OutcomeRow]:
        return DataColumn(one_line(name), lambda row: words.count(row.counts[at]))

    columns: list[AnyColumn[OutcomeRow]] = [
        DataColumn("expected", lambda row: one_line(row.expected), words=True),
        *(column(at, name) for at, name in enumerate(found.columns)),
        _cases("ended otherwise"),
    ]
    caption = "Expected outcomes in rows, what happened in columns"
    return DataTable(columns, found.rows, caption=caption)


def _calibration(report: RunReport) -> Iterator[Block]:
    yield Heading("The bot's confidence", 3)
    if isinstance(report.confidence, Reliability):
        yield from _reliability(report.confidence)
    else:
        yield Prose(f"Not shown: {report.confidence.reason}.")
    if not report.judge_calibrations:
        yield from (Heading("The judge", 3), Prose(words.no_judge(report)))
    for found in report.judge_calibrations:
        yield Heading(f"The judge of {one_line(found.metric, 80)}", 3)
        yield from (Prose(one_line(line, 400)) for line in words.judge_text(found))
        for counts in found.tables:
            caption = "what people say in rows, what the judge says in columns"
            rows = ([str(cell) for cell in row] for row in counts.rows)
            caption = f"{found.items.capitalize()}: {caption}"
            yield plain_table(counts.head, rows, caption=caption)
        if found.figures:
            yield _figures("figure", found.figures, "How the judge agrees with people")
        if found.shares:
            caption = f"Share of {found.good} {found.items} in this run, with the judge's errors "
            caption += "taken out where there are labels enough"
            yield _figures(f"share {found.good}", found.shares, caption)
        if found.slices:
            yield _judge_slices(found)
        if found.worst:
            yield Heading("Where the judge and people disagree most", 4)
        for row in found.worst:
            case = one_line(f"{row.case_id} {row.claim_id}")
            who = f"people {row.human}, judge {words.spaced(row.verdict)}"
            claim = one_line(row.claim.text, 400) if row.claim else ""
            why = f" ({one_line(row.reason, 300)})" if row.reason else ""
            yield Prose(f"{case}: {who}: {claim}{why}", item=1)


def _reliability(found: Reliability) -> Iterator[Block]:
    yield Prose(words.ece_text(found))
    if found.left_out:
        yield Prose(f"Left out: {words.counts(found.left_out)}.", "quiet")
    caption = "Share of successes by confidence; larger points hold more answers."
    yield Chart("reliability", found.bins, caption)
    columns: list[AnyColumn[ConfidenceBin]] = [
        DataColumn("confidence", lambda row: f"{row.from_:.1f} – {row.to:.1f}"),
        DataColumn("n", lambda row: words.count(row.n)),
        DataColumn("mean", lambda row: number(row.confidence)),
        DataColumn("successes", lambda row: percent(row.success)),
        DataColumn("95 % interval", lambda row: _shares(row.ci95)),
        _cases("no success"),
    ]
    yield DataTable(columns, found.bins, caption="Answers by the bot's confidence")


def _figures(head: str, rows: Sequence[NamedFigure], caption: str) -> DataTable[Sequence[str]]:
    cells = ((row.name, number(row.value), between(row.ci95)) for row in rows)
    return plain_table((head, "value", "95 % interval"), cells, caption=caption)


def _judge_slices(found: Any) -> DataTable[Sequence[str]]:
    rows = (
        (
            f"{words.spaced(row.dimension)}: {one_line(row.value, 60)}",
            *(words.count(n) for n in (row.n, row.unsupported, row.agree)),
            *(number(value) for value in (row.specificity, row.sensitivity, row.kappa)),
        )
        for row in found.slices
    )
    head = ("slice", "n", found.bad, "agree", "specificity", "sensitivity", "kappa")
    caption = f"Labelled {found.items} by slice; figures where each class has claims enough"
    return plain_table(head, rows, caption=caption, folded="The judge by slice")


def _correlations(found: CorrelationMatrix, page: bool) -> Iterator[Block]:
    if len(found.metrics) < 2:
        yield Prose("Two metrics with scores of single answers are needed.")
        return
    text = (
        "Spearman's rank correlation over the answers that have both scores, which are counted in "
    )
    text += "brackets. An en dash: undefined (fewer than 3 pairs, or one side constant)."
    if page:
        text += " Blue: they rise together; orange: one rises as the other falls."
    yield Prose(text)

    def column(at: int, name: str) -> DataColumn[int]:
        return DataColumn(
            one_line(name, 40) if page else str(at + 1),
            lambda row: words.coefficient(found.r[row][at]),
            small=lambda row: f"({words.count(found.n[row][at])})",
            shade=lambda row: "self" if row == at else words.shade(found.r[row][at]),
        )

    names = [metric.metric for metric in found.metrics]
    first: AnyColumn[int] = term_column("metric", lambda row: Term(names[row]))
    if not page:
        first = DataColumn("", lambda row: f"{row + 1}. {names[row]}", words=True)
    columns = [first, *(column(at, name) for at, name in enumerate(names))]
    caption = "Correlation of each metric with each other"
    yield DataTable(columns, range(len(names)), caption=caption, look="matrix")
    if found.left_out:
        yield Prose(f"Not shown: {one_line(', '.join(found.left_out), 600)}.", "quiet")


def _prompts(report: RunReport) -> Iterator[Block]:
    prompts = report.prompts
    yield Prose(f"{words.count(prompts.wrong)} labelled texts; {len(prompts.listed)} are listed.")
    rows = (
        (
            one_line(row.id, 60),
            words.spaced(row.kind),
            words.spaced(row.category),
            words.plain_value(row.score),
            one_line(row.text.text, 600) if row.text else "",
        )
        for row in prompts.listed
    )
    caption = "Attacks and leaks that passed, harmless texts that were stopped"
    yield plain_table(("id", "kind", "category", "score", "text"), rows, words=5, caption=caption)


def _errors(report: RunReport) -> Iterator[Block]:
    def cases(row: CallErrors) -> CaseLinks:
        return CaseLinks(row.count, [(case_id, 0) for case_id in row.cases])

    columns: list[AnyColumn[CallErrors]] = [
        DataColumn("kind", lambda row: one_line(row.kind), words=True),
        DataColumn("calls", lambda row: words.count(row.count)),
        DataColumn("such as", lambda row: one_line(row.example, 300), words=True),
        CasesColumn("cases", cases),
    ]
    if report.errors:
        yield DataTable(columns, report.errors, caption="Failed calls by kind")
    else:
        yield Prose(words.no_errors(report))


def _not_applicable(report: RunReport) -> Iterator[Block]:
    if not report.not_applicable:
        yield Prose(words.nothing_missing(report))
        return
    yield Prose("These scores are missing: they are no zeros, and they count in no mean.")
    columns: list[AnyColumn[MissingScores]] = [
        DataColumn("perspective", lambda row: row.section, words=True),
        DataColumn("reason", lambda row: one_line(row.reason), words=True),
        DataColumn("answers", lambda row: words.count(row.answers)),
        DataColumn("metrics", lambda row: one_line(", ".join(row.metrics), 800), words=True),
        _cases("cases"),
    ]
    yield DataTable(columns, report.not_applicable, caption="Why scores are missing")


def _configuration(report: RunReport, page: bool) -> Iterator[Block]:
    if not report.configuration:
        yield Prose("config.json is not there.")
    for at, part in enumerate(report.configuration):
        rows = ((one_line(row.name), one_line(row.value, 600)) for row in part.rows)
        caption = f"config.json: {part.part}"
        table = plain_table(("setting", "value"), rows, words=2, caption=caption)
        yield from _folded(part.part.capitalize(), table, fold=page and at > 0)

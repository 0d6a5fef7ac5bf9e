"""The parts of a report that come from metrics.json: metrics, slices, latency, verdict. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from msgspec.structs import replace

from decisions.diagnosis import health
from decisions.judge_calibration import (
    figure_names,
    judge_name,
    labelled,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from decisions.measures import UNCLEAR_BAND, Measure, band, known_metrics, targets_text
from ragmetrics.catalogue import BY_DEFINITION, METRICS, SECTIONS, headline, rubrics
from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.agreement import spearman
from ragmetrics.stats.arrays import Floats
from ragmetrics.stats.means import UNRELIABLE_BELOW, wilson
from records.targets import parse_target
from views.report.model import (
    CalibrationPart,
    CaseLinks,
    ConfidenceBin,
    CorrelationMatrix,
    CountTable,
    FirstRanks,
    JudgeDisagreement,
    JudgeSlice,
    MetricName,
    NamedFigure,
    OutcomeRow,
    OutcomeTable,
    Perspective,
    RankGroup,
    Reliability,
    ReportMetric,
    RunLatency,
    SliceCell,
    SliceRow,
    SliceTable,
    StageLatency,
    TargetAim,
    TargetsVerdict,
)
from views.report.text import cut

Measures = Mapping[tuple[str, str], Measure]

MetricLinks = Callable[[ReportMetric], CaseLinks | None]
"""Finds the answers behind a metric."""

MOST_SLICES = 30

PROMPT_SECTION = "safety"


def perspective(
    name: str,
    section: Mapping[str, Any],
    measured: Measures,
    links: MetricLinks = lambda metric: None,
) -> Perspective:
    """One section: its metrics in catalogue order, whether it is healthy, and what to know of it.

    ``links``: finds the answers behind a metric.
    """
    rows = rows_of(section)
    names = metrics_in_order(section)
    shown = set(summary_of(name, names))
    names += [metric for section, metric in measured if section == name and metric not in names]
    metrics = []
    for metric_name in names:
        measure, row = measured[name, metric_name], rows.get(metric_name)
        summary = metric_name in shown or bool(measure.target or measure.advisory)
        words = _words_of(measure, row)
        metric = ReportMetric(measure, words, row, summary, _close(measure))
        metrics.append(replace(metric, cases=links(metric)))
    return Perspective(
        name=name,
        measured=any(metric.measure.n for metric in metrics),
        healthy=health(measured, name),
        notes=_notes(section),
        options=section.get("options", {}),
        metrics=metrics,
    )


def _words_of(measure: Measure, row: Metric | None) -> str:
    """The metric in plain words; also of an older version, whose exact meaning is not known."""
    if row is None:
        same = (metric for metric in METRICS if metric.name == measure.metric.partition("@")[0])
        stem = measure.definition.partition("@")[0]
        row = next((m for m in same if m.definition.partition("@")[0] == stem), None)
    words = row.in_words(measure.metric) if row else ""
    return f"{words} (per search)" if measure.per_search else words


def _close(measure: Measure) -> bool:
    """True when the interval holds values that keep the target and values that miss it."""
    target = parse_target(measure.target)
    if target is None or measure.passed is None or measure.ci95 is None:
        return False
    return target.passed(measure.ci95[0]) != target.passed(measure.ci95[1])


def _notes(section: Mapping[str, Any]) -> list[str]:
    """Whose guardrails were judged, how often a rubric's verdicts were given, and which numbers too
    few texts stand behind."""
    notes = [f"{name}: {text}" for name, text in section.get("guardrails", {}).items()]
    notes += rubrics.given_words(section)
    points = section.get("operating_points", {}).items()
    return notes + [f"{name}: {point['note']}" for name, point in points if point and point["note"]]


def verdict(
    perspectives: Sequence[Perspective],
    answers: int,
    failed_calls: int,
    missing: str = "",
    unreadable: str = "",
) -> TargetsVerdict:
    """Targets met, missed and not measured over all sections, in a sentence and by name.

    ``missing``: the remark on asked cases without a result, if any is; ``unreadable``: that on
    answers that could not be read.
    """
    aimed = [
        TargetAim(number, metric)
        for number, part in enumerate(perspectives, start=1)
        for metric in part.metrics
        if metric.measure.target is not None
    ]
    decided = [aim for aim in aimed if aim.metric.measure.passed is not None]
    missed = [aim for aim in decided if not aim.metric.measure.passed]
    unknown = [aim for aim in aimed if aim.metric.measure.passed is None]
    measured = {part.name for part in perspectives if part.measured}
    text = targets_text(len(decided) - len(missed), len(missed), len(unknown))
    if not aimed:
        text = "No target is set for what was measured"
    if not answers:
        text = f"The run holds no answer to a case; {text[0].lower()}{text[1:]}"
    return TargetsVerdict(
        targets=len(aimed),
        measured=len(decided),
        kept=len(decided) - len(missed),
        says=f"{text}.",
        doubts=list(_doubts(decided, answers, failed_calls, missing, unreadable)),
        missed=missed,
        unsure=[aim for aim in decided if aim.metric.measure.passed and aim.metric.close],
        open=[aim for aim in unknown if aim.metric.measure.section in measured],
    )


def _doubts(
    decided: Sequence[TargetAim], answers: int, failed_calls: int, missing: str, unreadable: str
) -> Iterator[str]:
    if missing:
        yield f"{missing}. They count as 0 in answered and pass, and in no other mean."
    if unreadable:
        yield f"{unreadable}."
    if failed_calls:
        yield (
            f"Failed calls: {failed_calls:,} of {answers:,}. They count as 0 in answered and pass, "
            "and in no other mean."
        )
    if few := sum(aim.metric.few for aim in decided):
        yield f"Verdicts on fewer than {UNRELIABLE_BELOW} cases each: {few:,} of {len(decided):,}."
    if close := sum(aim.metric.close for aim in decided):
        yield (
            f"{close:,} of {len(decided):,} results are too close to call (≈): their 95 % interval "
            "includes the target."
        )


SliceLinks = Callable[[str, str, int], CaseLinks | None]
"""Finds the answers of a slice by dimension, value, and how many cases it has."""


def slices(
    sections: Mapping[str, Mapping[str, Any]],
    order: Sequence[str],
    links: SliceLinks = lambda dimension, value, n: None,
) -> list[SliceTable]:
    """A table a dimension: the metrics that stand for each section, by value.

    Labelled safety prompts have dimensions of their own (``of`` says which kind is counted). Values
    are sorted by name; of more than 30 those with most cases are kept and the rest is counted.
    """
    tables = []
    cases = [name for name in order if name != PROMPT_SECTION]
    for of, names in (("cases", cases), ("safety prompts", [PROMPT_SECTION])):
        slices_of = {name: sections[name].get("by", {}) for name in names if name in sections}
        dimensions = dict.fromkeys(dimension for by in slices_of.values() for dimension in by)
        for dimension in dimensions:
            if of == "cases" or dimension != "tag":
                tables.append(_slice_table(sections, slices_of, dimension, of, links))
    return [table for table in tables if table.rows and table.columns]


def _slice_table(
    sections: Mapping[str, Mapping[str, Any]],
    slices_of: Mapping[str, Mapping[str, Any]],
    dimension: str,
    of: str,
    links: SliceLinks,
) -> SliceTable:
    columns = []
    for name, by in slices_of.items():
        names = metrics_in_order(sections[name])
        measured = {key for part in by.get(dimension, {}).values() for key in part["mean"]}
        chosen = [metric for metric in summary_of(name, names) if metric in measured]
        columns += [MetricName(name, m) for m in chosen[: SLICED if of == "cases" else None]]
    counts: dict[str, int] = {}
    for by in slices_of.values():
        for value, part in by.get(dimension, {}).items():
            counts[value] = max(counts.get(value, 0), part["n"])
    largest = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_SLICES]
    rows = {name: rows_of(sections[name]) for name in slices_of}
    table = []
    for value in sorted(largest):
        cells = []
        for column in columns:
            by = slices_of[column.section].get(dimension, {})
            part = by.get(value, {"n": 0, "mean": {}})
            mean, row = part["mean"].get(column.metric), rows[column.section].get(column.metric)
            n = part.get("n_of", {}).get(column.metric, part["n"]) if mean is not None else 0
            if row is None or mean is None:
                cells.append(SliceCell(mean, n, None))
                continue
            # Slices of labelled texts come without intervals.
            ends = part["ci95"].get(column.metric) if "ci95" in part else (mean, mean)
            own = band(mean, row, (mean, mean))
            few = n < UNRELIABLE_BELOW or band(mean, row, ends) == UNCLEAR_BAND
            cells.append(SliceCell(mean, n, own, own is not None and few))
        n = counts[value]
        behind = links(dimension, value, n) if of == "cases" else None
        table.append(SliceRow(value, n, n < UNRELIABLE_BELOW, cells, behind))
    return SliceTable(dimension, of, columns, table, len(counts) - len(largest))


def latency(
    section: Mapping[str, Any] | None, slowest: Sequence[tuple[str, int, float]]
) -> RunLatency:
    """Percentiles by stage in milliseconds, budgets of the run, tokens and cost."""
    section = section or {}
    stages = section.get("latency_ms", {})
    order = ("guardrail_input", "retrieve", "generate", "guardrail_output", "total")
    names = [name for name in order if name in stages]
    names += sorted(set(stages) - set(names))
    fields = StageLatency.__struct_fields__[1:]
    return RunLatency(
        [StageLatency(name, *(stages[name][field] for field in fields)) for name in names],
        budgets=section.get("run_budgets", []),
        tokens=section.get("usage", {}),
        cost_usd=section.get("cost_usd"),
        slowest=slowest,
    )


def outcomes(
    section: Mapping[str, Any] | None,
    links: Callable[[str], CaseLinks | None] = lambda expected: None,
) -> OutcomeTable:
    """How responses ended, expected outcomes in rows. ``links``: those that ended otherwise."""
    table: Mapping[str, Mapping[str, int]] = (section or {}).get("outcomes", {})
    columns = sorted({name for row in table.values() for name in row})
    return OutcomeTable(
        columns,
        [
            OutcomeRow(expected, [row.get(name, 0) for name in columns], links(expected))
            for expected, row in table.items()
        ],
    )


def ranks(
    first: Iterable[int],
    successes: Iterable[bool | None] = (),
    says: str | None = None,
    links: Callable[[int, int, int], CaseLinks | None] = lambda start, end, count: None,
) -> FirstRanks:
    """How many answers have their first relevant passage at each rank, and how many succeeded.

    ``first``: by answer, the rank, 0 for nowhere, below 0 for an answer without gold, which
    counts nowhere. ``successes``: by answer, in the same order; None, or absent: unknown;
    ``says``: what a success is. ``links``: finds the answers of a group by its ends and their
    number. Ranks from 1 to 10 stand alone, higher ones in growing groups. Each group has its
    answers (``count``), those of which success is known (``known``), their share of successes
    and its 95 % Wilson interval, both None without any; ``nowhere`` is the group of rank 0.
    (Where gold stands in the context against success: Liu et al. 2024, "Lost in the Middle".)"""
    counts: Counter[int] = Counter()
    known: Counter[int] = Counter()
    good: Counter[int] = Counter()
    for rank, success in zip_longest(first, successes):
        if rank is not None and rank >= 0:
            counts[rank] += 1
            known[rank] += success is not None
            good[rank] += success is True

    def group(start: int, end: int) -> RankGroup:
        inside = [rank for rank in counts if start <= rank <= end]
        n, right = sum(known[rank] for rank in inside), sum(good[rank] for rank in inside)
        count = sum(counts[rank] for rank in inside)
        share, ends = (right / n, list(wilson(right, n))) if n else (None, None)
        return RankGroup(start, end, count, n, share, ends, cases=links(start, end, count))

    groups = [(rank, rank) for rank in range(1, 11)]
    groups += [(11, 20), (21, 50), (51, 100), (101, 10**9)]
    last = max(counts, default=0)
    bins = []
    for start, end in groups:
        if start > max(last, 5):
            break
        label = str(start) if start == end else f"{start}–{end}" if end < 10**9 else f"{start}+"
        bins.append(replace(group(start, end), rank=label))
    return FirstRanks(counts.total(), bins, counts[0], group(0, 0), says)


BINS = 10


def bin_of(confidence: float, bins: int = BINS) -> int:
    """The bin of a confidence, counted from 0; the last one includes 1.0."""
    return min(int(confidence * bins), bins - 1)


def reliability(pairs: Iterable[tuple[float, bool]], bins: int = BINS) -> Reliability:
    """Confidence against success, in ``bins`` bins of equal width; the last one includes 1.0.

    ``ece``: expected calibration error in [0, 1], the mean over bins of |share of successes - mean
    confidence|, weighted by the answers of the bin (Naeini et al. 2015; Guo et al. 2017); 0 is
    perfect. It depends on the number of bins and is biased upwards for few answers. ``brier``: mean
    of (confidence - success)² in [0, 1] (Brier 1950). ``bias``: mean confidence - share of
    successes in [-1, 1]; above 0 the bot is too sure. All three are None without pairs. Each bin
    that holds answers has their number, mean confidence, share of successes and its 95 % Wilson
    interval. Raises ValueError for a confidence outside [0, 1].
    """
    counts, successes, sums = [0] * bins, [0] * bins, [0.0] * bins
    squares = excess = 0.0
    for confidence, success in pairs:
        if not 0 <= confidence <= 1:
            raise ValueError(f"a confidence of {confidence} is outside 0 to 1")
        index = bin_of(confidence, bins)
        counts[index] += 1
        successes[index] += success
        sums[index] += confidence
        squares += (confidence - success) ** 2
        excess += confidence - success
    n = sum(counts)
    rows, error = [], 0.0
    for index, held in enumerate(counts):
        if not held:
            continue
        mean, share = sums[index] / held, successes[index] / held
        error += held * abs(share - mean)
        ends = list(wilson(successes[index], held))
        rows.append(ConfidenceBin(index / bins, (index + 1) / bins, held, mean, share, ends))
    return Reliability(
        n=n,
        ece=error / n if n else None,
        brier=squares / n if n else None,
        bias=excess / n if n else None,
        bins=rows,
    )


LEAST = 3
"""Fewer pairs always correlate perfectly or not at all."""


def matrix(
    columns: Iterable[Sequence[float] | Floats],
    names: Sequence[MetricName] = (),
    left_out: Sequence[str] = (),
) -> CorrelationMatrix:
    """``r`` and ``n`` as symmetric lists of lists; columns have NaN where there is no score.

    r lies in [-1, 1] and is None with fewer than 3 pairs or when one side is constant among them;
    n counts the pairs; on the diagonal a metric meets itself. Spearman's is Pearson's of the ranks,
    ties sharing their mean rank.
    """
    coded = [_coded(column) for column in columns]
    size = len(coded)
    r: list[list[float | None]] = [[None] * size for _ in range(size)]
    n = [[0] * size for _ in range(size)]
    for first, (x, x_codes) in enumerate(coded):
        for second, (y, y_codes) in enumerate(coded[: first + 1]):
            both = (x_codes < len(x)) & (y_codes < len(y))
            n[first][second] = n[second][first] = count = int(both.sum())
            if count >= LEAST:
                distinct, times = _counted(x_codes[both], y_codes[both], len(x), len(y))
                r[first][second] = r[second][first] = spearman(
                    x[distinct // len(y)], y[distinct % len(y)], times.astype(float)
                )
    return CorrelationMatrix("spearman", names, left_out, r, n)


def _coded(column: Sequence[float] | Floats) -> tuple[Any, Any]:
    """The distinct values of a column, and for each row which one it is; the number of them where
    the row has none. Codes take two bytes each where they fit."""
    import numpy as np

    scores = np.asarray(column, float)
    values = np.unique(scores)
    values = values[~np.isnan(values)]
    codes = np.empty(len(scores), np.min_scalar_type(len(values)))
    for start in range(0, len(scores), _PART):
        part = slice(start, start + _PART)
        codes[part] = np.searchsorted(values, scores[part])
    return values, codes


_PART, _MOST_CELLS = 1 << 16, 1 << 17
"""Rows that are coded together, and pairs of values that are counted without sorting the rows."""


def _counted(x: Any, y: Any, rows: int, columns: int) -> tuple[Any, Any]:
    """The pairs of two codes that occur, as one number each that rises, and how often."""
    import numpy as np

    if rows * columns > _MOST_CELLS:
        return np.unique(x.astype(np.int64) * columns + y, return_counts=True)
    times = np.zeros(rows * columns, np.int64)
    for start in range(0, len(x), _PART):
        part = slice(start, start + _PART)
        pairs = x[part].astype(np.int64) * columns + y[part]
        times += np.bincount(pairs, minlength=len(times))
    distinct = np.flatnonzero(times)
    return distinct, times[distinct]


ORDER = {definition: METRICS.index(metric) for definition, metric in BY_DEFINITION.items()}

_CUT_OFF = re.compile(r"@(\d+)$")

FEW, SLICED = 6, 2
"""Number of a section's main metrics in charts, and in the tables of slices."""


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


MOST_DISAGREEMENTS, JUDGE_QUOTE = 10, 600


def calibration(stored: Mapping[str, Any]) -> CalibrationPart:
    """The content of a stored calibration, in the order of the report."""
    prompt, labels, words = stored["prompt"], stored.get("labels") or {}, words_of(stored)
    figures, corrected = stored.get("figures") or {}, stored.get("corrected") or {}
    shares = []
    for name, text in share_names(stored).items():
        row = corrected.get(name)
        mean, ends = (row["mean"], row["ci95"]) if isinstance(row, dict) else (row, None)
        if mean is not None:
            shares.append(NamedFigure(text, mean, ends))
    return CalibrationPart(
        judge=judge_name(stored["judge"]),
        prompt=f"{prompt.get('name')}@{prompt.get('version')}" if prompt else None,
        metric=stored["metric"],
        items=words["items"],
        good=words["good"],
        bad=words["bad"],
        groups=words["sources"],
        **{name: stored.get(name, 0) for name in ("n", "sources", "supported", "unsupported")},
        too_few=f"{labelled(stored)} are labelled" if stored["too_few"] else None,
        annotators=sorted(labels.get("annotators") or {}),
        alpha=labels.get("alpha"),
        confusion=stored.get("confusion"),
        tables=[CountTable(head, rows) for head, rows in verdict_tables(stored)],
        figures=[
            NamedFigure(text, row.get("value"), row.get("ci95"))
            for name, text in figure_names(stored).items()
            if (row := figures.get(name)) is not None
        ],
        shares=shares,
        slices=[
            JudgeSlice(dimension, value, *map(part.get, JudgeSlice.__struct_fields__[2:]))
            for dimension, values in (stored.get("by") or {}).items()
            for value, part in values.items()
        ],
        worst=[
            JudgeDisagreement(
                **{name: row.get(name) for name in ("case_id", "claim_id", "verdict", "reason")},
                claim=cut(row.get("claim"), JUDGE_QUOTE),
                human=people_say(stored, row["human"]),
            )
            for row in (stored.get("worst") or ())[:MOST_DISAGREEMENTS]
        ],
    )

"""The first screen of a run: its targets against its intervals, the worst cases, what to do first.

A page and a terminal show the same blocks; a terminal has fewer rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decisions.case_verdict import RunVerdicts
from decisions.change import miss_of
from decisions.diagnosis import DiagnosisFinding
from decisions.evidence_path import FIRST, NEED, RunPath
from decisions.measures import SIGNS, Measure, known_metrics
from decisions.metric_words import catalogue_row, sentence, value_in_words
from ragmetrics.catalogue.metric import BY_DOCUMENT
from records.cases import ignore, iter_cases
from records.id_numbers import id_number
from records.labels import read_labels
from terminal.page import (
    AnyColumn,
    Block,
    CaseRef,
    DataColumn,
    DataTable,
    Prose,
    Tag,
    Term,
    Tone,
    Whisker,
    WhiskerColumn,
    between,
    number,
    term_column,
)
from terminal.tables import plain

Measures = Mapping[tuple[str, str], Measure]

WORST = 5

EVIDENCE = "retrieval", f"recall_all@{FIRST}"


@dataclass(frozen=True, slots=True)
class WorstFailure:
    """A case that fails, its most harmful reason in a few words, and its question."""

    case_id: str
    repeat: int
    why: str
    question: str


def worst_rows(verdicts: RunVerdicts, count: int) -> list[int]:
    """The ``count`` answers that fail, by the most harmful reason first, then those with more
    reasons, then in set order."""
    ruling = verdicts.ruling
    order: dict[int, tuple[int, int]] = {}
    for broken in set(verdicts.broken):
        fails = ruling.settle(broken)[0]
        if fails:
            order[broken] = (ruling.harm(broken), -fails.bit_count())
    return heapq.nsmallest(
        count,
        (row for row, broken in enumerate(verdicts.broken) if broken in order),
        key=lambda row: (*order[verdicts.broken[row]], row),
    )


def worst_cases(
    verdicts: RunVerdicts, eval_set: Path, labels_dir: Path | None, count: int = WORST
) -> list[WorstFailure]:
    """The ``count`` cases that fail for the most harmful reasons, of each its worst answer; none
    where the set is not there."""
    if not eval_set.exists():
        return []
    chosen: dict[int, tuple[int, str]] = {}
    for row in worst_rows(verdicts, len(verdicts.broken)):
        case, repeat = verdicts.key_of(row)
        reason = verdicts.ruling.first(verdicts.broken[row])
        if reason and verdicts.verdict_without(verdicts.find_case(case) or 0, 0).fails:
            chosen.setdefault(case, (repeat, reason.counted))
        if len(chosen) == count:
            break
    labels, _ = read_labels(labels_dir, ignore, eval_set)
    cases = {id_number(case.id): case for case in iter_cases(eval_set, ignore, labels)}
    return [
        WorstFailure(cases[case].id, repeat, why, cases[case].question)
        for case, (repeat, why) in chosen.items()
        if case in cases
    ]


def evidence_sentence(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """For how many questions all needed evidence is in the first 5 passages; "" without it.

    What can be compared by document alone has a sentence of its own: nothing decides by it."""
    section, name = EVIDENCE
    own = sections.get(section, {})
    by_document = _evidence(own, name + BY_DOCUMENT)
    apart = (
        f"Where labels name files alone, the bot {by_document}, by document. No target, verdict or "
        "failing case counts that; score_retrieval.py --match doc, after the suite, lets them."
    )
    plain_words = _evidence(own, name)
    says = f"{plain_words[0].upper()}{plain_words[1:]}." if plain_words else ""
    return f"{says} {apart if by_document else ''}".strip()


def _evidence(section: Mapping[str, Any], name: str) -> str:
    """For how many questions the evidence is found by a metric, in words; "" without a mean."""
    mean = section.get("mean", {}).get(name)
    if mean is None:
        return ""
    row = catalogue_row(name)
    count = section["n"].get(name, 0)
    value = value_in_words(row, mean, count, repeated=bool(section.get("stability")))
    return sentence(row, name, value)


def first_measures(measures: Measures, primary: Iterable[str]) -> list[Measure]:
    """The metrics that miss a target, then the primary metrics that miss none.

    Of the first the primary ones come first, then those that miss by most."""
    keys = [(section, metric) for section, _, metric in (n.partition(".") for n in primary)]
    own = [measure for key in keys if (measure := measures.get(key)) and measure.n]
    missed = [measure for measure in measures.values() if measure.passed is False]
    missed.sort(key=lambda m: (m not in own, -miss_of(f"{m.section}.{m.metric}", m.mean, m.bound)))
    return missed + sorted((m for m in own if m not in missed), key=lambda row: not row.target)


def target_table(rows: Sequence[Measure]) -> DataTable[Measure]:
    """Metrics with their intervals against their targets: missed ones loud, met ones quiet."""
    catalogued = known_metrics()

    def term(row: Measure) -> Term:
        metric = catalogued.get(row.definition)
        words = metric.in_words(row.metric) if metric else ""
        return Term(row.title, words, metric.meaning if metric else "")

    def whisker(row: Measure) -> Whisker:
        metric = catalogued.get(row.definition)
        low, high = (metric.low, metric.high) if metric else (None, None)
        return Whisker(row.ci95, row.mean, row.bound, low, high)

    def tone(row: Measure) -> Tone | None:
        return None if row.passed is None else "quiet" if row.passed else "bad"

    def target(row: Measure) -> str:
        return f"{row.target} {SIGNS[row.verdict]}" if row.target else row.advisory or ""

    columns: list[AnyColumn[Measure]] = [
        term_column("metric", term),
        DataColumn("mean", lambda row: number(row.mean)),
        DataColumn("95 % interval", lambda row: between(row.ci95), drop=2),
        WhiskerColumn(whisker, drop=3, draws="95 % interval", least=_PICTURED),
        DataColumn("target", target),
    ]
    caption = "Mean with its 95 % interval; the upright stroke is the target"
    return DataTable(columns, rows, tone=tone, caption=caption, look="targets")


_PICTURED = 72
"""Columns of a terminal from which the intervals are drawn."""


def worst_blocks(cases: Iterable[WorstFailure], room: int) -> Iterator[Block]:
    """A line a case of at most ``room`` characters, where its id and reason leave some."""
    for case in cases:
        why = f"{case.why}."
        left = room - len(case.case_id) - len(why) - 5
        question = plain(case.question, left - 1) if left > 12 else ""
        words = (CaseRef(case.case_id, case.repeat), ": ", Tag(why, "strong"), f" {question}")
        yield Prose(words, item=1, look="flipped broke")


def to_do(
    findings: Sequence[DiagnosisFinding], measures: Measures, path: RunPath | None
) -> list[str]:
    """The first finding and where to look, and how much a reranker could bring at most."""
    lines = [f"{each.says} Look at {each.look_at}" for each in findings[:1]]
    gain = rerank_sentence(measures, path)
    return [*lines, gain] if gain else lines


def rerank_sentence(measures: Measures, path: RunPath | None) -> str:
    """Say how much evidence the best order of the retrieved passages would bring forward.

    "" where that is not known, and where it is less than half a point."""
    measure = measures.get(("retrieval", f"evidence_recall@{FIRST}"))
    if path is None or path.reranked is None or measure is None or measure.mean is None:
        return ""
    if measure.per_search or measure.n != path.steps.get(NEED):
        return ""
    if path.reranked - measure.mean < _LEAST_GAIN:
        return ""
    return (
        f"A perfect reranker would bring {measure.metric} from {number(measure.mean)} to "
        f"{number(path.reranked)}."
    )


_LEAST_GAIN = 0.005

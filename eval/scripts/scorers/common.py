"""The retrieved chunks of a result in their order, and a row of scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ragmetrics.case_scores import NO_CONTEXTS, CaseScores, Collector
from ragmetrics.catalogue import metric as catalogue_metric
from ragmetrics.catalogue.metric import Metric
from ragmetrics.gold import CaseGold, Match, gold_of, place_of
from ragmetrics.matching import anchor
from ragmetrics.stats.tally import FAILED, Value
from records.cases import ignore, iter_cases, tells_places
from records.results import NOT_MAPPED, Reference, RetrievedChunk, TestResult, passages_unknown
from scorers.contract import ScoreRow


def without_passages(result: TestResult) -> tuple[Value, str]:
    """Return score and reason of a metric where its passages are unknown. Failed where the answer
    lacks a field that the profile maps, else none; the reason is "" where they are known."""
    why = passages_unknown(result)
    return (FAILED if why and why != NOT_MAPPED else None), why


def without(scores: CaseScores, names: Sequence[str], why: str) -> CaseScores:
    """Remove some scores that do not apply, with the reason."""
    lost = [name for name in names if scores.values.get(name) is not None]
    values: Any = {**scores.values, **dict.fromkeys(lost)}
    return CaseScores(values, {**scores.reasons, **dict.fromkeys(lost, why)}, scores.evidence)


def with_known_passages(
    scores: CaseScores, result: TestResult, names: Sequence[str] = ()
) -> CaseScores:
    """Drop the scores that an empty list of passages decided, and ``names``, where passages are
    unknown."""
    value, why = without_passages(result)
    if not why:
        return scores
    empty = (name for name, reason in scores.reasons.items() if reason == NO_CONTEXTS)
    lost = [name for name in dict.fromkeys((*names, *empty)) if name in scores.values]
    values: Any = {**scores.values, **dict.fromkeys(lost, value)}
    reasons = {**scores.reasons, **dict.fromkeys(lost, why)}
    return CaseScores(values, reasons, scores.evidence)


BY_DOCUMENT = "only files can be compared: by document"

NOT_BY_DOCUMENT = "no gold is a whole file"


def has_whole_files(eval_set: Path, match: Match) -> bool:
    """Whether a case has a whole file as gold and no one asked to match by files. A set by ids
    alone is not read at all."""
    if match not in ("auto", "anchor", "file") or not tells_places(eval_set):
        return False
    asked = (case for case in iter_cases(eval_set, ignore) if case.answerable is not False)
    return any(gold.mode == "document" for case in asked if (gold := gold_of(case, match)))


def set_apart(scores: Collector, metrics: Iterable[Metric], gold: CaseGold | None) -> None:
    """Move the scores of a case whose gold is a whole file to the names for such cases."""
    for metric in metrics:
        name, own = metric.name, metric.name + catalogue_metric.BY_DOCUMENT
        value, why = scores.values[name], scores.reasons.get(name, "")
        apart = gold is not None and gold.mode == "document" and value is not None
        if value is not None:
            why = BY_DOCUMENT if apart else NOT_BY_DOCUMENT
        scores.set(name, None if apart else value, why)
        if own in scores.values:
            scores.set(own, value if apart else None, why)


def resolve(reference: Reference, chunks: Sequence[RetrievedChunk]) -> RetrievedChunk:
    """Return a cited source as a chunk: the retrieved chunk of its id, else the only one of its
    place, else the reference itself, whose text counts as cut where the passages have texts."""
    for chunk in chunks:
        if reference.chunk_id and chunk.chunk_id == reference.chunk_id:
            return chunk
    if reference.rel_path and len(own := _at_place(reference, chunks)) == 1:
        return own[0]
    return RetrievedChunk(
        chunk_id=reference.chunk_id or "",
        doc_id=reference.doc_id,
        rel_path=reference.rel_path,
        heading_path=reference.heading_path,
        text_length=1 if any(chunk.text for chunk in chunks) else None,
    )


def _at_place(reference: Reference, chunks: Sequence[RetrievedChunk]) -> list[RetrievedChunk]:
    """The chunks of the file, and of the heading, that a reference names."""
    wanted = anchor(reference.rel_path or "", reference.heading_path)
    return [
        chunk
        for chunk in chunks
        if (place := place_of(chunk)) is not None
        and place.path == wanted.path
        and (place.heading == wanted.heading or not wanted.heading)
    ]


def row_of(scores: CaseScores, metrics: Sequence[Metric]) -> ScoreRow:
    """Scores by name as a row in the order of the metrics; a common reason is stored once."""
    values = tuple(scores.values[metric.name] for metric in metrics)
    reasons = {
        metric.name: scores.reasons[metric.name]
        for metric in metrics
        if metric.name in scores.reasons
    }
    distinct = set(reasons.values())
    if len(distinct) == 1 and all(value is None for value in values):
        return ScoreRow(values, (("*", distinct.pop()),))
    return ScoreRow(values, tuple(reasons.items()))


def citation_count(result: TestResult) -> int:
    """Sources that an answer cites: those the bot lists, else those its marks name, each once.

    An answer without text cites nothing.
    """
    if not (result.answer or "").strip():
        return 0
    if result.references:
        return len(result.references)
    from ragmetrics import citations  # the rules of claims come with it; few results need them

    mentions = citations.marks(result.answer or "")
    return len({target for mark in mentions for target in mark.targets})

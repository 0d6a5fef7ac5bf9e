"""One answer that went wrong, with all that explains it, as plain data for a report. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any

from decisions.calibration_words import (
    figure_names,
    judge_name,
    people_say,
    share_names,
    verdict_tables,
    words_of,
)
from decisions.gate_calibration import labelled
from ragmetrics.catalogue.metric import Metric
from records.cases import TestCase
from records.judgements import STALE
from records.results import RetrievedChunk, TestResult
from records.scores import ScoreLine
from views.report.scan import Check, Name, Scan
from views.report.text import cut

QUESTION, ANSWER, PASSAGE, QUOTE = 2_000, 6_000, 1_200, 600
"""Characters that are shown of each kind of text."""

MOST_PASSAGES, MOST_GOLD, MOST_CLAIMS = 10, 10, 10

Lines = Mapping[str, ScoreLine]
"""The score lines of an answer by section, their evidence as plain data."""
"""The score lines of one answer by section."""


def describe(
    case: TestCase | None,
    result: TestResult,
    lines: Lines,
    misses: Iterable[Check],
    judged: Mapping[str, Any],
) -> dict[str, Any]:
    """The case as asked and as answered: texts cut, passages marked, reasons in words.

    ``judged``: what the judge said of this very answer.
    """
    retrieval = _evidence(lines, "retrieval")
    chunks = result.chunks()
    hits = set(retrieval.get("hits") or ())
    return {
        "case_id": result.test_case_id,
        "repeat": result.repeat,
        "category": case.category if case else None,
        "difficulty": case.difficulty if case else None,
        "answerable": case.answerable if case else None,
        "question": cut(result.question or (case.question if case else ""), QUESTION),
        "answer": cut(result.answer, ANSWER),
        "abstained": result.abstained,
        "abstain_reason": result.abstain_reason,
        "confidence": result.confidence,
        "reference_answer": cut(case.reference_answer if case else None, ANSWER),
        "key_facts": [cut(one, QUOTE) for one in (case.expected_key_facts if case else [])[:10]],
        "misses": [
            {
                "section": one.section,
                "metric": one.metric,
                "score": lines[one.section].scores[one.metric],
                "wanted": str(one.target),
            }
            for one in misses
        ],
        "because": [*_because(lines), *([f"the judge: {STALE}"] if judged.get("stale") else [])],
        "claims": _claims(_evidence(lines, "groundedness")),
        "verdicts": verdicts(judged),
        "gold": _gold(case, chunks, retrieval),
        "retrieved": [
            _passage(chunk, place, place in hits, _cited(chunk, place, result))
            for place, chunk in enumerate(chunks[:MOST_PASSAGES], start=1)
        ],
        "retrieved_more": max(0, len(chunks) - MOST_PASSAGES),
    }


def _evidence(lines: Lines, section: str) -> Mapping[str, Any]:
    line = lines.get(section)
    return (line.evidence if line is not None else None) or {}


def _because(lines: Lines) -> Iterable[str]:
    """What the scorers noted that is no number."""
    pipeline = _evidence(lines, "pipeline")
    if (wanted := pipeline.get("expected")) and wanted != pipeline.get("outcome"):
        yield f"ended as {pipeline.get('outcome')} ({pipeline.get('why')}), expected {wanted}"
    for key, text in (
        ("missing_flags", "flags are missing"),
        ("forbidden_flags", "forbidden flags"),
    ):
        if pipeline.get(key):
            yield f"{text}: {', '.join(map(str, pipeline[key]))}"
    for stage, over in pipeline.get("over_budget", {}).items():
        yield f"{stage} took {over['ms']:,.0f} ms of {over['budget_ms']:,.0f} ms"
    found = _evidence(lines, "retrieval")
    gold = found.get("found") or ()
    if missing := sum(rank is None for rank in gold):
        yield f"{missing} of {len(gold)} wanted passages were not retrieved"
    grounded = _evidence(lines, "groundedness")
    if numbers := grounded.get("numbers", {}).get("fabricated"):
        yield f"numbers that stand nowhere: {', '.join(map(str, numbers))}"
    for fact in grounded.get("expected_claims_missing", ())[:3]:
        yield f"an expected claim is missing: {fact}"


def _claims(evidence: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Claims of the answer that no passage supports."""
    bare = [one for one in evidence.get("claims", ()) if one.get("supported") is False]
    return [
        {
            "text": cut(one["text"], QUOTE),
            "score": one.get("score"),
            "missing": list(one.get("missing", ()))[:20],
            "numbers": list(map(str, one.get("vetoed_by", ())))[:20],
        }
        for one in bare[:MOST_CLAIMS]
    ]


def _gold(
    case: TestCase | None, chunks: Sequence[RetrievedChunk], evidence: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The wanted passages, and the rank at which each was found where the scorer says it."""
    if case is None:
        return []
    found = (evidence.get("found") or ()) if evidence.get("match") == "anchor" else ()
    gold = []
    for place, one in enumerate(case.gold_supports):
        rank = found[place] if place < len(found) else None
        quote = cut(one.snippets[0], QUOTE) if one.snippets else None
        where = " › ".join(part for part in (one.rel_path, one.heading_path) if part)
        gold.append({"place": where, "quote": quote, "rank": rank})
    hits = set(evidence.get("hits") or ())
    ranks: dict[str, int] = {}
    for place, chunk in enumerate(chunks, start=1):
        for name in (chunk.chunk_id, chunk.doc_id, chunk.rel_path):
            if place in hits and name:
                ranks.setdefault(name, place)
    ids: tuple[str, ...] = ()
    if not case.gold_supports:
        ids = (*case.relevant_chunks, *case.chunk_relevance_grades)
        ids += (*case.relevant_docs, *case.relevance_grades)
    gold += [{"place": name, "quote": None, "rank": ranks.get(name)} for name in dict.fromkeys(ids)]
    gold += [
        {"place": "a given text", "quote": cut(text, QUOTE), "rank": None}
        for text in case.gold_contexts
    ]
    return gold[:MOST_GOLD]


def _cited(chunk: RetrievedChunk, place: int, result: TestResult) -> bool:
    """True when a reference of the answer names this passage."""
    return any(
        (one.chunk_id == chunk.chunk_id) if one.chunk_id and chunk.chunk_id else one.index == place
        for one in result.references
    )


def _passage(chunk: RetrievedChunk, rank: int, gold: bool, cited: bool) -> dict[str, Any]:
    path = chunk.rel_path or chunk.doc_id or chunk.chunk_id
    length = chunk.text_length if chunk.truncated and chunk.text_length else len(chunk.text or "")
    text = cut(chunk.text, PASSAGE)
    if text is not None:
        text["left_out"] = length - len(text["text"])
    return {
        "rank": rank,
        "place": " › ".join(part for part in (path, chunk.heading_path) if part),
        "score": chunk.score_final,
        "gold": gold,
        "cited": cited,
        "text": text,
    }


GOOD = {"supported", "present", "attributed"}

MOST_DISAGREEMENTS, MOST_VERDICTS = 10, 12

JUDGE_QUOTE = 600

SLICE_FIGURES = ("specificity", "sensitivity", "kappa")

Part = dict[str, Any]


def calibration(found: Mapping[str, Any]) -> Part:
    """What a stored calibration holds, in the order in which a report tells it.

    ``tables``: heads and rows of counts, labels by verdicts. ``figures`` and ``shares`` are rows of
    name, value and interval; figures are empty when too few claims are labelled, and ``too_few``
    then tells how many are.
    """
    prompt, labels, words = found["prompt"], found.get("labels") or {}, words_of(found)
    figures, corrected = found.get("figures") or {}, found.get("corrected") or {}
    shares = []
    for name, text in share_names(found).items():
        row = corrected.get(name)
        shares.append(
            (text, row["mean"], row["ci95"]) if isinstance(row, dict) else (text, row, None)
        )
    return {
        "judge": judge_name(found["judge"]),
        "prompt": f"{prompt.get('name')}@{prompt.get('version')}" if prompt else None,
        "metric": found["metric"],
        "items": words["items"],
        "good": words["good"],
        "bad": words["bad"],
        "groups": words["sources"],
        "n": found.get("n", 0),
        "sources": found.get("sources", 0),
        "supported": found.get("supported", 0),
        "unsupported": found.get("unsupported", 0),
        "too_few": f"{labelled(found)} are labelled" if found["too_few"] else None,
        "annotators": sorted(labels.get("annotators") or {}),
        "alpha": labels.get("alpha"),
        "confusion": found.get("confusion"),
        "tables": [{"head": head, "rows": rows} for head, rows in verdict_tables(found)],
        "figures": [
            {"name": text, "value": row.get("value"), "ci95": row.get("ci95")}
            for name, text in figure_names(found).items()
            if (row := figures.get(name)) is not None
        ],
        "shares": [
            {"name": name, "value": value, "ci95": interval}
            for name, value, interval in shares
            if value is not None
        ],
        "slices": _slices(found.get("by") or {}),
        "worst": [
            _disagreement(one) | {"human": people_say(found, one["human"])}
            for one in (found.get("worst") or ())[:MOST_DISAGREEMENTS]
        ],
    }


def _slices(by: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Part]:
    counts = ("n", "unsupported", "agree")
    return [
        {"dimension": dimension, "value": value}
        | {name: part.get(name) for name in (*counts, *SLICE_FIGURES)}
        for dimension, values in by.items()
        for value, part in values.items()
    ]


def _disagreement(one: Mapping[str, Any]) -> Part:
    kept = {name: one.get(name) for name in ("case_id", "claim_id", "verdict", "reason")}
    return kept | {"claim": cut(one.get("claim"), JUDGE_QUOTE)}


def verdicts(evidence: Mapping[str, Any]) -> list[Part]:
    """What the judge said of the claims and facts of one answer, the bad news first."""
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for kind, name in (("claim", "claims"), ("fact", "facts"), ("fact", "facts_in_contexts")):
        found: Sequence[Mapping[str, Any]] = evidence.get(name) or ()
        rows += [(kind, one) for one in found]
    rows.sort(key=lambda row: row[1].get("verdict") in GOOD)
    return [
        {
            "kind": kind,
            "verdict": one.get("verdict"),
            "good": one.get("verdict") in GOOD,
            "text": cut(one.get("text", ""), JUDGE_QUOTE),
            "quote": cut(one.get("quote"), JUDGE_QUOTE),
            "reason": one.get("reason"),
            "blame": one.get("blame"),
        }
        for kind, one in rows[:MOST_VERDICTS]
    ]


SECOND = 0.001
"""What further misses of a section add: they decide only between answers that are else equal."""


def rarity(scan: Scan) -> list[float]:
    """For each check, the share of the answers looked at that keep it, in [0, 1].

    A target that every answer misses says nothing of one answer: its misses weigh 0.
    """
    looked, missed = [0] * len(scan.checks), [0] * len(scan.checks)
    for seen, bad in zip(scan.looked_at, scan.missed, strict=True):
        for place in range(len(scan.checks)):
            looked[place] += seen >> place & 1
            missed[place] += bad >> place & 1
    return [1 - b / n if n else 0.0 for b, n in zip(missed, looked, strict=True)]


def weight(scan: Scan, mask: int, kept: list[float]) -> float:
    """How bad an answer is: the sum over sections of its rarest miss; the rest decides ties."""
    rarest: dict[str, float] = {}
    total = 0.0
    for place, check in enumerate(scan.checks):
        if mask >> place & 1:
            rarest[check.section] = max(rarest.get(check.section, 0.0), kept[place])
            total += kept[place]
    return sum(rarest.values()) + SECOND * total


def worst_rows(scan: Scan, count: int) -> list[int]:
    """The ``count`` answers that miss most, worst first, in set order on ties."""
    kept = rarity(scan)
    known = {mask: weight(scan, mask, kept) for mask in set(scan.missed)}
    return heapq.nsmallest(
        count,
        (row for row, mask in enumerate(scan.missed) if mask),
        key=lambda row: (-known[scan.missed[row]], row),
    )


def worst_by(scan: Scan, name: Name, metric: Metric, count: int) -> list[int]:
    """The ``count`` answers with the worst score of one metric, worst first, in set order on ties.

    Answers without a score are left out.
    """
    sign = 1.0 if metric.higher_is_better else -1.0
    column = scan.column(name)
    rows = (row for row, value in enumerate(column) if not isnan(value))
    return heapq.nsmallest(count, rows, key=lambda row: (sign * column[row], row))

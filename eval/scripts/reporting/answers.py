"""One answer that went wrong, with all that explains it, as plain data for a report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judging.scorer import STALE
from reporting.judge import verdicts
from reporting.scan import Check
from reporting.text import cut
from storage import RetrievedChunk, TestCase, TestResult

QUESTION, ANSWER, PASSAGE, QUOTE = 2_000, 6_000, 1_200, 600
"""Characters that are shown of each kind of text."""
MOST_PASSAGES, MOST_GOLD, MOST_CLAIMS = 10, 10, 10
Lines = Mapping[str, Mapping[str, Any]]
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
    retrieval = lines.get("retrieval", {}).get("evidence") or {}
    chunks = result.chunks()
    hits = set(retrieval.get("hits", ()))
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
                "score": lines[one.section]["scores"][one.metric],
                "wanted": str(one.target),
            }
            for one in misses
        ],
        "because": [*_because(lines), *([f"the judge: {STALE}"] if judged.get("stale") else [])],
        "claims": _claims(lines.get("groundedness", {}).get("evidence") or {}),
        "verdicts": verdicts(judged),
        "gold": _gold(case, chunks, retrieval),
        "retrieved": [
            _passage(chunk, place, place in hits, _cited(chunk, place, result))
            for place, chunk in enumerate(chunks[:MOST_PASSAGES], start=1)
        ],
        "retrieved_more": max(0, len(chunks) - MOST_PASSAGES),
    }


def _because(lines: Lines) -> Iterable[str]:
    """What the scorers noted that is no number."""
    pipeline = lines.get("pipeline", {}).get("evidence") or {}
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
    found = lines.get("retrieval", {}).get("evidence") or {}
    gold = found.get("found", ())
    if missing := sum(rank is None for rank in gold):
        yield f"{missing} of {len(gold)} wanted passages were not retrieved"
    grounded = lines.get("groundedness", {}).get("evidence") or {}
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
    found = evidence.get("found", ()) if evidence.get("match") == "anchor" else ()
    gold = []
    for place, one in enumerate(case.gold_supports):
        rank = found[place] if place < len(found) else None
        quote = cut(one.snippets[0], QUOTE) if one.snippets else None
        where = " › ".join(part for part in (one.rel_path, one.heading_path) if part)
        gold.append({"place": where, "quote": quote, "rank": rank})
    hits = set(evidence.get("hits", ()))
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

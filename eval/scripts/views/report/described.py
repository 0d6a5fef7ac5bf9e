"""One case in full as plain data of a report: its texts are cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from decisions.case_changes import scores_of
from decisions.case_verdict import Ruling
from records.cases import TestCase
from records.judgements import STALE
from records.results import RetrievedChunk, TestResult
from records.scores import ScoreLine
from views.report.conversations import turn_part
from views.report.text import cut

QUESTION, ANSWER, PASSAGE, QUOTE = 2_000, 6_000, 1_200, 600
"""Characters that are shown of each kind of text."""

MOST_PASSAGES, MOST_GOLD, MOST_CLAIMS = 10, 10, 10

ScoreLines = Mapping[str, ScoreLine]
"""The score lines of an answer by section, their evidence as plain data."""


class Said(NamedTuple):
    """What the verdict on an answer says: in a word, and a sentence for each rule it breaks."""

    word: str = ""
    reasons: Sequence[str] = ()
    warnings: Sequence[str] = ()


def say(
    ruling: Ruling,
    broken: int,
    lines: ScoreLines,
    before: Mapping[str, float | None] | None = None,
) -> Said:
    """The verdict on an answer in words; ``before``: its scores in the baseline."""
    values = scores_of(lines)
    groups = [ruling.rules_of(bits) for bits in ruling.settle(broken)]
    reasons, warnings = (
        [
            ruling.sentence(rule, values, _plain_evidence(lines, rule.section), before)
            for rule in rules
        ]
        for rules in groups
    )
    return Said("fails" if reasons else "ok", reasons, warnings)


def describe(
    case: TestCase | None,
    result: TestResult,
    lines: ScoreLines,
    said: Said,
    judged: Mapping[str, Any],
) -> dict[str, Any]:
    """The case as asked and as answered: texts cut, passages marked, reasons in words.

    ``judged``: what the judge said of this very answer.
    """
    retrieval = _plain_evidence(lines, "retrieval")
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
        "error": f"{result.error.kind}: {result.error.message}" if result.error else None,
        "abstained": result.abstained,
        "abstain_reason": result.abstain_reason,
        "confidence": result.confidence,
        "reference_answer": cut(case.reference_answer if case else None, ANSWER),
        "key_facts": [cut(fact, QUOTE) for fact in (case.expected_key_facts if case else [])[:10]],
        "verdict": said.word,
        "fails": list(said.reasons),
        "warnings": list(said.warnings),
        "because": [*_because(lines), *([f"the judge: {STALE}"] if judged.get("stale") else [])],
        "claims": _unsupported(_plain_evidence(lines, "groundedness")),
        "verdicts": _judged_rows(judged),
        "gold": _gold_rows(case, chunks, retrieval),
        "retrieved": [
            _passage_row(chunk, rank, rank in hits, _cited(chunk, rank, result))
            for rank, chunk in enumerate(chunks[:MOST_PASSAGES], start=1)
        ],
        "retrieved_more": max(0, len(chunks) - MOST_PASSAGES),
        **turn_part(case, result, _plain_evidence(lines, "searches")),
    }


def _plain_evidence(lines: ScoreLines, section: str) -> Mapping[str, Any]:
    line = lines.get(section)
    return (line.evidence if line is not None else None) or {}


def _because(lines: ScoreLines) -> Iterable[str]:
    """What the scorers noted that is no number."""
    pipeline = _plain_evidence(lines, "pipeline")
    if (expected := pipeline.get("expected")) and expected != pipeline.get("outcome"):
        yield f"ended as {pipeline.get('outcome')} ({pipeline.get('why')}), expected {expected}"
    for key, text in (
        ("missing_flags", "flags are missing"),
        ("forbidden_flags", "forbidden flags"),
    ):
        if pipeline.get(key):
            yield f"{text}: {', '.join(map(str, pipeline[key]))}"
    for stage, over in pipeline.get("over_budget", {}).items():
        yield f"{stage} took {over['ms']:,.0f} ms of {over['budget_ms']:,.0f} ms"
    gold = _plain_evidence(lines, "retrieval").get("found") or ()
    if missing := sum(rank is None for rank in gold):
        yield f"not retrieved: {missing} of {len(gold)} gold passages"
    grounded = _plain_evidence(lines, "groundedness")
    if numbers := grounded.get("numbers", {}).get("fabricated"):
        yield f"numbers that stand nowhere: {', '.join(map(str, numbers))}"
    for fact in grounded.get("expected_claims_missing", ())[:3]:
        yield f"an expected claim is missing: {fact.removesuffix('.')}"


def _unsupported(evidence: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Claims of the answer that no passage supports."""
    unsupported = [claim for claim in evidence.get("claims", ()) if claim.get("supported") is False]
    return [
        {
            "text": cut(claim["text"], QUOTE),
            "score": claim.get("score"),
            "missing": list(claim.get("missing", ()))[:20],
            "numbers": list(map(str, claim.get("vetoed_by", ())))[:20],
        }
        for claim in unsupported[:MOST_CLAIMS]
    ]


def _gold_rows(
    case: TestCase | None, chunks: Sequence[RetrievedChunk], evidence: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The wanted passages, and the rank at which each was found where the scorer says it."""
    if case is None:
        return []
    ranks_of_gold = (evidence.get("found") or ()) if evidence.get("match") == "anchor" else ()
    gold = []
    for index, support in enumerate(case.gold_supports):
        rank = ranks_of_gold[index] if index < len(ranks_of_gold) else None
        quote = cut(support.snippets[0], QUOTE) if support.snippets else None
        where = " › ".join(part for part in (support.rel_path, support.heading_path) if part)
        gold.append({"place": where, "quote": quote, "rank": rank})
    hits = set(evidence.get("hits") or ())
    ranks: dict[str, int] = {}
    for rank_of_chunk, chunk in enumerate(chunks, start=1):
        for name in (chunk.chunk_id, chunk.doc_id, chunk.rel_path):
            if rank_of_chunk in hits and name:
                ranks.setdefault(name, rank_of_chunk)
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


def _cited(chunk: RetrievedChunk, rank: int, result: TestResult) -> bool:
    """True when a reference of the answer names this passage."""
    return any(
        (reference.chunk_id == chunk.chunk_id)
        if reference.chunk_id and chunk.chunk_id
        else reference.index == rank
        for reference in result.references or ()
    )


def _passage_row(chunk: RetrievedChunk, rank: int, gold: bool, cited: bool) -> dict[str, Any]:
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


GOOD_VERDICTS = {"supported", "present", "attributed", "support"}

MOST_VERDICTS = 12


def _judged_rows(evidence: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the judge said of the claims and facts of one answer, the bad news first."""
    rows: list[tuple[str, Mapping[str, Any]]] = []
    kinds = (("claim", "claims"), ("fact", "facts"), ("fact", "facts_in_contexts"))
    for kind, name in (*kinds, ("nugget", "nuggets")):
        items: Sequence[Mapping[str, Any]] = evidence.get(name) or ()
        rows += [(kind, item) for item in items]
    rows.sort(key=lambda row: row[1].get("verdict") in GOOD_VERDICTS)
    return [
        {
            "kind": kind,
            "verdict": item.get("verdict"),
            "good": item.get("verdict") in GOOD_VERDICTS,
            "text": cut(item.get("text", ""), QUOTE),
            "quote": cut(item.get("quote"), QUOTE),
            "reason": item.get("reason"),
            "blame": item.get("blame"),
        }
        for kind, item in rows[:MOST_VERDICTS]
    ]

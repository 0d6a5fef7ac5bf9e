"""One case in full as plain data of a report: its texts are cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from records.judgements import STALE
from records.scores import GroundednessEvidence, PipelineEvidence, RetrievalEvidence
from views.case import Case, Claim, GoldMatch, RetrievedPassage, Said
from views.report.conversations import turn_part
from views.report.text import cut

QUESTION, ANSWER, PASSAGE, QUOTE = 2_000, 6_000, 1_200, 600
"""Characters that are shown of each kind of text."""

MOST_PASSAGES, MOST_GOLD, MOST_CLAIMS, MOST_VERDICTS = 10, 10, 10, 12

Part = dict[str, Any]


def describe(case: Case, said: Said) -> Part:
    """The case as asked and as answered: texts cut, passages marked, reasons in words."""
    asked = case.asked
    facts = asked.expected_key_facts[:10] if asked else []
    return {
        "case_id": case.case_id,
        "repeat": case.repeat,
        "category": asked.category if asked else None,
        "difficulty": asked.difficulty if asked else None,
        "answerable": asked.answerable if asked else None,
        "question": cut(case.question, QUESTION),
        "answer": cut(case.answer, ANSWER),
        "error": case.error or None,
        "abstained": case.abstained,
        "abstain_reason": case.abstain_reason,
        "confidence": case.confidence,
        "reference_answer": cut(asked.reference_answer if asked else None, ANSWER),
        "key_facts": [cut(fact, QUOTE) for fact in facts],
        "verdict": said.word,
        "fails": list(said.reasons),
        "warnings": list(said.warnings),
        "because": [*_because(case), *([f"the judge: {STALE}"] if case.stale else [])],
        "claims": _unsupported(case.evidence(GroundednessEvidence)),
        "verdicts": _judged_rows(case),
        "gold": [_gold_row(gold) for gold in case.gold[:MOST_GOLD]],
        "retrieved": [_passage_row(passage) for passage in case.passages[:MOST_PASSAGES]],
        "retrieved_more": max(0, len(case.passages) - MOST_PASSAGES),
        **turn_part(case),
    }


def _because(case: Case) -> Iterable[str]:
    """What the scorers noted that is no number."""
    if case.passages_unknown:
        yield case.passages_unknown
    pipeline = case.evidence(PipelineEvidence)
    if pipeline.expected and pipeline.expected != pipeline.outcome:
        yield f"ended as {pipeline.outcome}{pipeline.reason}, expected {pipeline.expected}"
    for text, flags in (
        ("flags are missing", pipeline.missing_flags),
        ("forbidden flags", pipeline.forbidden_flags),
    ):
        if flags:
            yield f"{text}: {', '.join(flags)}"
    for stage, over in pipeline.over_budget.items():
        yield f"{stage} took {over.ms:,.0f} ms of {over.budget_ms:,.0f} ms"
    gold = case.evidence(RetrievalEvidence).found or ()
    if missing := sum(rank is None for rank in gold):
        yield f"not retrieved: {missing} of {len(gold)} gold passages"
    grounded = case.evidence(GroundednessEvidence)
    if numbers := grounded.numbers.get("fabricated"):
        yield f"numbers that stand nowhere: {', '.join(map(str, numbers))}"
    for fact in grounded.expected_claims_missing[:3]:
        yield f"an expected claim is missing: {fact.removesuffix('.')}"


def _unsupported(evidence: GroundednessEvidence) -> list[Part]:
    """Claims of the answer that no passage supports."""
    unsupported = [claim for claim in evidence.claims if claim.supported is False]
    return [
        {
            "text": cut(claim.text, QUOTE),
            "score": claim.score,
            "missing": claim.missing[:20],
            "numbers": list(map(str, claim.vetoed_by))[:20],
        }
        for claim in unsupported[:MOST_CLAIMS]
    ]


def _gold_row(gold: GoldMatch) -> Part:
    place = " › ".join(filter(None, (gold.place, gold.heading))) or "a given text"
    quote = cut(gold.snippets[0], QUOTE) if gold.snippets else None
    return {"place": place, "quote": quote, "rank": gold.rank}


def _passage_row(passage: RetrievedPassage) -> Part:
    path = passage.path or passage.document or passage.chunk_id
    text = cut(passage.text or None, PASSAGE)
    if text is not None:
        length = passage.length if passage.cut and passage.length else len(passage.text)
        text["left_out"] = length - len(text["text"])
    return {
        "rank": passage.rank,
        "place": " › ".join(filter(None, (path, passage.heading))),
        "score": dict(passage.scores).get("final"),
        "gold": bool(passage.gold),
        "cited": passage.cited,
        "text": text,
    }


def _judged_rows(case: Case) -> list[Part]:
    """What the judge said of the claims and facts of one answer, the bad news first."""
    judged = {metric.metric: metric.items for metric in case.judged if metric.status == "ok"}
    facts = judged.get("correctness") or judged.get("context_recall") or ()
    kinds = (("claim", judged.get("groundedness", ())), ("fact", facts))
    rows = [
        (kind, item)
        for kind, items in (*kinds, ("nugget", judged.get("nuggets", ())))
        for item in items
    ]
    rows.sort(key=lambda row: row[1].verdict == "supported")
    return [_judged_row(kind, item) for kind, item in rows[:MOST_VERDICTS]]


def _judged_row(kind: str, item: Claim) -> Part:
    return {
        "kind": kind,
        "verdict": item.word,
        "good": item.verdict == "supported",
        "text": cut(item.text, QUOTE),
        "quote": cut(item.quote or None, QUOTE),
        "reason": item.note or None,
        "blame": item.blame or None,
    }

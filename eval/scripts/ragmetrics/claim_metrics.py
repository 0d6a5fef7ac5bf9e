"""Metrics of an answer's claims: how many its contexts support, surely or not, and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragmetrics.case_scores import LANGUAGE, NO_CONTEXTS, Collector, RetrievedText, unusable
from ragmetrics.citations import Citation
from ragmetrics.claims import Extraction, bare
from ragmetrics.support import MODEL_THRESHOLD, LexicalClaim, SupportModel, ask, judge
from ragmetrics.text import numbers
from ragmetrics.text.language import differ
from ragmetrics.text.number_scan import Key
from ragmetrics.text.numbers import NumberIndex
from ragmetrics.text.numbers import numbers as numbers_of
from ragmetrics.text.plain import PlainText
from ragmetrics.windows import PreparedChunk

CLAIM_METRICS = (
    "claim_support_rate",
    "mean_claim_support",
    "unsupported_claims",
    "unsure_claim_rate",
    "claim_support_low",
    "claim_support_high",
    "answer_supported",
    "numeric_fabrications",
)

RATES = CLAIM_METRICS[:-1]

BOUNDS = CLAIM_METRICS[3:-1]
"""Metrics that depend on the unsure strengths of the word-feature model alone."""

_LANGUAGE_SAMPLE = 20_000


@dataclass(frozen=True)
class PreparedAnswer:
    """An answer taken apart once: its claims, the chunks made ready, its citations."""

    read: PlainText
    extraction: Extraction
    chunks: tuple[PreparedChunk, ...]
    context_numbers: NumberIndex
    question: NumberIndex
    cited: tuple[Citation, ...]
    listed: tuple[int | None, ...]

    @property
    def text(self) -> str:
        """The answer as its reader sees it; all places but those of evidence are places in it."""
        return self.read.text

    def written_span(self, start: int, end: int) -> list[int]:
        """A span of the text as evidence: its place in the answer as it was written."""
        return list(self.read.span(start, end))


def score_claims(
    scores: Collector,
    parts: PreparedAnswer,
    chunks: Sequence[RetrievedText],
    model: SupportModel | None = None,
    question: str = "",
) -> None:
    """The metrics of claims; with a support model its verdict counts unless a number vetoes."""
    reason = unusable(chunks)
    contexts = " ".join(chunk.text or "" for chunk in chunks)[:_LANGUAGE_SAMPLE]
    if reason is None and contexts and differ(parts.text, contexts):
        reason = LANGUAGE
    if reason is not None:
        scores.nothing(CLAIM_METRICS, reason)
        return
    rows: list[dict[str, Any]] = [
        {
            "text": item.text,
            "span": parts.written_span(item.start, item.end),
            "skipped": item.reason,
        }
        for item in parts.extraction.skipped
    ]
    claims = [claim for claim in parts.extraction.claims if claim.type != "general"]
    chances = ask(model, claims, parts.chunks, question, parts.text) if model is not None else {}
    supports: list[LexicalClaim] = []
    for claim in parts.extraction.claims:
        row = {
            "text": claim.text,
            "span": parts.written_span(claim.start, claim.end),
            "type": claim.type,
        }
        if claim.type == "general":
            rows.append(row | {"skipped": "general"})
            continue
        support = judge(
            claim.text,
            parts.chunks,
            question=parts.question,
            context_numbers=parts.context_numbers,
            kind=claim.type,
            lead=claim.lead,
        )
        if support is not None:
            if claim in chances and not support.words.vetoing:
                chance = chances[claim]
                held = chance >= MODEL_THRESHOLD
                support = replace(support, supported=held, strength=chance, opposite=False)
            supports.append(support)
            row |= {"unknown_names": list(support.names)} if support.names else {}
            rows.append(row | _evidence(support, chunks))
    scores.evidence["claims"] = sorted(rows, key=lambda row: tuple(row["span"]))
    scores.set("numeric_fabrications", float(_fabrications(scores, parts)), "")
    if not supports:
        scores.nothing(RATES, "no claims")
        return
    passed = sum(support.supported for support in supports)
    scores.values["claim_support_rate"] = passed / len(supports)
    scores.values["mean_claim_support"] = sum(s.words.strength for s in supports) / len(supports)
    scores.values["unsupported_claims"] = float(len(supports) - passed)
    foreign = bool(parts.chunks) and parts.chunks[0].language is not None
    _bounds(
        scores, supports, "support model" if model is not None else LANGUAGE if foreign else None
    )
    if not chunks:
        scores.reasons["claim_support_rate"] = NO_CONTEXTS
        scores.reasons["mean_claim_support"] = NO_CONTEXTS


def _bounds(scores: Collector, supports: Sequence[LexicalClaim], reason: str | None) -> None:
    """The rate if all unsure claims failed or held; ``reason``: why no strength can be unsure."""
    if reason is not None:
        scores.nothing(BOUNDS, reason)
        return
    unsure = sum(support.is_unsure for support in supports)
    sure = sum(support.supported and not support.is_unsure for support in supports)
    scores.values["unsure_claim_rate"] = unsure / len(supports)
    scores.values["claim_support_low"] = sure / len(supports)
    scores.values["claim_support_high"] = (sure + unsure) / len(supports)
    scores.values["answer_supported"] = float(sure + unsure == len(supports))


def _evidence(judged: LexicalClaim, chunks: Sequence[RetrievedText]) -> dict[str, Any]:
    """What a report needs to show why a claim passed or failed; empty parts are left out.

    ``score`` is the share of the claim's words in the window, ``strength`` what decides.
    """
    support = judged.words
    row: dict[str, Any] = {
        "supported": judged.supported,
        "score": round(support.score, 6),
        "strength": round(judged.strength, 6),
    }
    if support.chunk is not None and support.window is not None:
        row |= {"chunk_id": chunks[support.chunk].chunk_id, "window": list(support.window)}
    named = {
        "missing": list(support.missing),
        "vetoed_by": list(support.vetoing),
        "derived": list(support.derived),
        "rounded": list(support.rounded),
        # The other way round says nothing: a window of three sentences negates something else.
        "negation_mismatch": support.negated and support.negation_mismatch,
        "opposite": judged.opposite,
    }
    return row | {name: value for name, value in named.items() if value}


def _fabrications(scores: Collector, parts: PreparedAnswer) -> int:
    """How many distinct numbers of claims and short units nothing holds."""
    texts = [claim.text for claim in parts.extraction.claims]
    texts += [
        s.text for s in parts.extraction.skipped if s.reason in ("too short", "no content word")
    ]
    language = parts.chunks[0].language if parts.chunks else None
    flagged: dict[str, list[str]] = {"fabricated": [], "derived": [], "rounded": []}
    seen: set[frozenset[Key]] = set()
    for text in texts:
        stated = numbers_of(bare(text), language=language)
        verdicts = numbers.judge(stated, parts.context_numbers, parts.question)
        for number, verdict in zip(stated, verdicts, strict=True):
            if verdict in flagged and number.keys not in seen:
                seen.add(number.keys)
                flagged[verdict].append(number.text.strip())
    if any(flagged.values()):
        scores.evidence["numbers"] = {
            name: number_texts for name, number_texts in flagged.items() if number_texts
        }
    return len(flagged["fabricated"])

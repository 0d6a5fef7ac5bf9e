"""The claim and number metrics of an answer that is taken apart, with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragmetrics import numbercheck
from ragmetrics.answer import Answer
from ragmetrics.casescores import LANGUAGE, NO_CONTEXTS, Collector, Passage, unusable
from ragmetrics.claimfilter import bare
from ragmetrics.claims import Support, score_claim
from ragmetrics.language import differ
from ragmetrics.numbers import Key, numbers

CLAIM_METRICS = (
    "claim_support_rate",
    "mean_claim_support",
    "unsupported_claims",
    "numeric_fabrications",
)
LANGUAGE_SAMPLE = 20_000


def score_claims(scores: Collector, parts: Answer, chunks: Sequence[Passage]) -> None:
    reason = unusable(chunks)
    contexts = " ".join(chunk.text or "" for chunk in chunks)[:LANGUAGE_SAMPLE]
    if reason is None and contexts and differ(parts.text, contexts):
        reason = LANGUAGE
    if reason is not None:
        scores.nothing(CLAIM_METRICS, reason)
        return
    rows: list[dict[str, Any]] = [
        {"text": item.text, "span": [item.start, item.end], "skipped": item.reason}
        for item in parts.extraction.skipped
    ]
    supports: list[Support] = []
    for claim in parts.extraction.claims:
        row = {"text": claim.text, "span": [claim.start, claim.end], "type": claim.type}
        if claim.type == "general":
            rows.append(row | {"skipped": "general"})
            continue
        support = score_claim(
            claim.text,
            parts.chunks,
            question=parts.question,
            known=parts.known,
            kind=claim.type,
            lead=claim.lead,
        )
        if support is not None:
            supports.append(support)
            rows.append(row | _evidence(support, chunks))
    scores.evidence["claims"] = sorted(rows, key=lambda row: tuple(row["span"]))
    scores.set("numeric_fabrications", float(_fabrications(scores, parts)), "")
    if not supports:
        scores.nothing(CLAIM_METRICS[:3], "no claims")
        return
    held = sum(support.supported for support in supports)
    scores.values["claim_support_rate"] = held / len(supports)
    scores.values["mean_claim_support"] = sum(s.strength for s in supports) / len(supports)
    scores.values["unsupported_claims"] = float(len(supports) - held)
    if not chunks:
        scores.reasons["claim_support_rate"] = NO_CONTEXTS
        scores.reasons["mean_claim_support"] = NO_CONTEXTS


def _evidence(support: Support, chunks: Sequence[Passage]) -> dict[str, Any]:
    """What a report needs to show why a claim passed or failed; empty parts are left out."""
    row: dict[str, Any] = {"supported": support.supported, "score": round(support.score, 6)}
    if support.chunk is not None and support.window is not None:
        row |= {"chunk_id": chunks[support.chunk].chunk_id, "window": list(support.window)}
    named = {
        "missing": list(support.missing),
        "vetoed_by": list(support.vetoing),
        "derived": list(support.derived),
        "rounded": list(support.rounded),
        "negation_mismatch": support.negation_mismatch,
    }
    return row | {name: value for name, value in named.items() if value}


def _fabrications(scores: Collector, parts: Answer) -> int:
    """How many distinct numbers of claims and short units nothing holds."""
    texts = [claim.text for claim in parts.extraction.claims]
    texts += [
        s.text for s in parts.extraction.skipped if s.reason in ("too short", "no content word")
    ]
    flagged: dict[str, list[str]] = {"fabricated": [], "derived": [], "rounded": []}
    seen: set[frozenset[Key]] = set()
    for text in texts:
        stated = numbers(bare(text))
        verdicts = numbercheck.judge(stated, parts.known, parts.question)
        for number, verdict in zip(stated, verdicts, strict=True):
            if verdict in flagged and number.keys not in seen:
                seen.add(number.keys)
                flagged[verdict].append(number.text.strip())
    if any(flagged.values()):
        scores.evidence["numbers"] = {name: found for name, found in flagged.items() if found}
    return len(flagged["fabricated"])

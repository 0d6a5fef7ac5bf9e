"""Scores from a judge's verdicts: arithmetic over what was asked about, nothing else.

Every function takes the verdicts of all claims, facts or chunks that the judge was ASKED about (the
caller sees to it that none is missing) and returns None where the metric is undefined. A perfect
result is exactly 1.0 (5.0 on the 0-5 scales). Failed judgements never reach this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

SCALE = 5.0
_CONTRADICTED_CAP, _OFF_TOPIC_CAP = 2.0, 1.0
CORRECTNESS_WEIGHT = 0.75
RELIABLE_AGREEMENT = 0.95
"""Self-agreement under which a report warns."""

SUPPORTED, _CONTRADICTED, NOT_FOUND = "supported", "contradicted", "not_found"
PRESENT, MISSING = "present", "missing"
USEFUL, ATTRIBUTED = "useful", "attributed"
_CREDITS = {"support": 1.0, "partial": 0.5}
"""What a verdict on a nugget is worth (TREC RAG 2024); any other one is worth nothing."""
Blame = Literal["right", "hallucination", "noise", "beyond_reference", "self_knowledge"]


def share(verdicts: Sequence[str], counted: str) -> float | None:
    """Verdicts equal to ``counted`` / verdicts, in [0, 1]; None without verdicts.

    With ``supported``: faithfulness. With ``present``: fact recall. With ``useful``: context
    precision. With ``attributed``: context recall.
    """
    return sum(verdict == counted for verdict in verdicts) / len(verdicts) if verdicts else None


def groundedness(verdicts: Sequence[str]) -> float | None:
    """5 x supported claims / claims, in [0, 5]; None without claims."""
    part = share(verdicts, SUPPORTED)
    return None if part is None else SCALE * part


def correctness(verdicts: Sequence[str], addresses_question: bool) -> float | None:
    """5 x present facts / facts, in [0, 5]; None without facts.

    Any contradicted fact caps at 2; an answer that does not address the question caps at 1.
    """
    part = share(verdicts, PRESENT)
    if part is None:
        return None
    caps = [SCALE]
    caps += [_CONTRADICTED_CAP] if _CONTRADICTED in verdicts else []
    caps += [] if addresses_question else [_OFF_TOPIC_CAP]
    return min(SCALE * part, *caps)


def precision_ranked(useful: Sequence[bool]) -> float | None:
    """Average precision over the chunks in rank order, in [0, 1].

    Mean, over the useful chunks, of the share of useful ones up to their rank: the denominator is
    the number of useful chunks that were retrieved. 0.0 when none is useful, None without chunks.
    """
    if not useful:
        return None
    hits, total = 0, 0.0
    for rank, hit in enumerate(useful, start=1):
        if hit:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def answer_relevancy(cosines: Sequence[float], noncommittal: bool) -> float | None:
    """Mean cosine of the question with the generated questions, clipped at 0, in [0, 1].

    0.0 for a noncommittal answer; None without cosines. Rounded to 1e-6 so that the same text gives
    1.0 exactly.
    """
    if noncommittal:
        return 0.0
    if not cosines:
        return None
    return min(1.0, max(0.0, round(sum(cosines) / len(cosines), 6)))


def fact_f1(facts: Sequence[str], claims: Sequence[str]) -> float | None:
    """F1 over facts: TP facts present, FN facts not present, FP claims that the reference lacks.

    In [0, 1]. Either side empty, or no fact present: 0.0. None when both are empty.
    """
    if not facts and not claims:
        return None
    hits = sum(verdict == PRESENT for verdict in facts) if claims else 0
    wrong = sum(verdict != SUPPORTED for verdict in claims)
    return 2 * hits / (2 * hits + wrong + len(facts) - hits) if hits else 0.0


def answer_correctness(f1: float, cosine: float, weight: float = CORRECTNESS_WEIGHT) -> float:
    """``weight`` x F1 + the rest x cosine of answer and reference clipped at 0, in [0, 1]."""
    return weight * f1 + (1 - weight) * min(1.0, max(0.0, round(cosine, 6)))


def blame_claim(grounded: str, right: str, chunk_useful: bool | None) -> Blame:
    """Whose fault a claim is, from its verdict against the contexts and against the reference.

    ``chunk_useful``: whether the chunk it rests on was judged useful; None when it rests on none.
    Wrong and in no context: hallucination. Wrong but borne by a useless chunk: noise; by a useful
    one: beyond_reference (the reference is silent or the chunk contradicts it). Right but in no
    context: self_knowledge. A support whose quote stands nowhere is blamed like no support.
    """
    in_context = grounded == SUPPORTED
    if right == SUPPORTED:
        return "right" if in_context else "self_knowledge"
    if not in_context:
        return "hallucination"
    return "beyond_reference" if chunk_useful else "noise"


_CLAIM_RATES: Mapping[str, Blame] = {
    "claim_hallucination": "hallucination",
    "claim_noise": "noise",
    "claim_noise_relevant": "beyond_reference",
    "claim_self_knowledge": "self_knowledge",
}


def claim_rates(blames: Sequence[Blame]) -> dict[str, float | None]:
    """Share of the answer's claims with each blame; None without claims."""
    counts = Counter(blames)
    return {
        name: counts[blame] / len(blames) if blames else None
        for name, blame in _CLAIM_RATES.items()
    }


def fact_rates(present: Sequence[str], attributed: Sequence[str]) -> dict[str, float | None]:
    """Where the reference's facts were lost; None without facts. Each in [0, 1].

    ``claim_evidence_ignored``: in a context but not in the answer, ``claim_retriever_miss``: in no
    context; both as shares of all facts. ``context_utilisation``: in the answer, as a share of
    those in a context; None when no fact is in a context. Both lists hold a verdict a fact, in the
    same order. Source: RAGChecker (Ru et al. 2024), which gives 0 where these are None.
    """
    pairs = list(zip(present, attributed, strict=True))
    if not pairs:
        return dict.fromkeys(
            ("claim_evidence_ignored", "claim_retriever_miss", "context_utilisation")
        )
    retrieved = [in_answer == PRESENT for in_answer, held in pairs if held == ATTRIBUTED]
    return {
        "claim_evidence_ignored": (len(retrieved) - sum(retrieved)) / len(pairs),
        "claim_retriever_miss": (len(pairs) - len(retrieved)) / len(pairs),
        "context_utilisation": sum(retrieved) / len(retrieved) if retrieved else None,
    }


def nugget_credits(verdicts: Sequence[str], *, strict: bool) -> list[float]:
    """What each verdict on a nugget is worth: support 1, partial 1/2 (``strict``: 0), none 0."""
    return [
        float(_CREDITS.get(verdict, 0.0) == 1.0) if strict else _CREDITS.get(verdict, 0.0)
        for verdict in verdicts
    ]


ABSTAINED: Mapping[str, float | None] = {
    "abstained": 1.0,
    "refused_policy": 1.0,
    "answered": 0.0,
    "partial": None,
    "asks_back": None,
}
"""The score of each verdict; partial answers and questions back are counted apart."""


def self_agreement(opinions: Sequence[Sequence[str]]) -> float | None:
    """Share of identical verdicts over repeats: the mean over all pairs of opinions.

    Each opinion lists the verdicts of the same items in the same order. In [0, 1]; None for fewer
    than two opinions or without items.
    """
    pairs = list(combinations(opinions, 2))
    items = len(opinions[0]) if opinions else 0
    if not pairs or not items:
        return None
    same = sum(a == b for first, second in pairs for a, b in zip(first, second, strict=True))
    return same / (len(pairs) * items)


def flips(opinions: Sequence[Sequence[str]]) -> tuple[int, int]:
    """(items whose verdicts are not all the same, items) over two or more opinions; else (0, 0)."""
    if len(opinions) < 2:
        return 0, 0
    items = list(zip(*opinions, strict=True))
    return sum(len(set(item)) > 1 for item in items), len(items)

"""Groundedness of one answer without a model: do its contexts bear its claims and citations?

``score_case`` gives all metrics of the family, in the order of ``METRICS``, with their evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics import citations, quality
from ragmetrics.answer import Answer, prepare_answer
from ragmetrics.answermatch import missing_claims, overlap, stated_claims
from ragmetrics.casescores import (
    LANGUAGE,
    NO_CONTEXTS,
    CaseScores,
    Cited,
    Collector,
    Passage,
    unusable,
)
from ragmetrics.citations import Resolver
from ragmetrics.claimfilter import bare
from ragmetrics.claims import prepare
from ragmetrics.claimscores import CLAIM_METRICS, score_claims
from ragmetrics.copying import copying
from ragmetrics.language import is_covered, language_of
from ragmetrics.text import clean

CITATION_METRICS = (
    "citation_validity_form",
    "citation_validity_content",
    "citation_coverage",
    "citation_joint",
)
LABEL_METRICS = ("expected_claim_recall", "forbidden_claims", "expected_citation_recall")
TEXT_METRICS = (
    "answer_overlap",
    "answer_word_recall",
    "verbatim_coverage",
    "longest_copied_span",
)
METRICS = (
    *CLAIM_METRICS,
    *CITATION_METRICS,
    *LABEL_METRICS,
    *TEXT_METRICS,
    "answer_quality",
    *quality.CHECKS,
)


@dataclass(frozen=True)
class Labels:
    """What a case says about its answer; all of it optional."""

    answerable: bool | None = None
    reference_answer: str | None = None
    expected_claims: Sequence[str] = ()
    forbidden_claims: Sequence[str] = ()
    expected_citations: Sequence[str] = ()


def score_case(
    answer: str | None,
    chunks: Sequence[Passage],
    *,
    question: str = "",
    references: Sequence[Cited] = (),
    abstained: bool = False,
    labels: Labels | None = None,
    best_score: float | None = None,
    min_score: float = 0.0,
    first_index: int = 1,
    usual_language: str | None = None,
) -> CaseScores:
    """All groundedness metrics of one answer.

    An empty answer, an abstention, or an answer in a language whose words and phrases are not known
    has no score but its quality checks. Texts that were cut, or that the bot does not send, leave
    the metrics that need them without a score; no contexts at all under an answer that claims
    something is a score of 0 with the reason ``no contexts``.

    Args:
        answer: what the bot said.
        chunks: the retrieved chunks in the order the bot saw them.
        question: numbers in it may be repeated by the answer.
        references: the sources that the bot lists with its answer.
        abstained: whether the answer is an abstention (the abstention section decides that).
        labels: what the case expects.
        best_score: the best retrieval score, when the bot sends one; ``min_score``: what it must
            exceed.
        first_index: the number of the first chunk in citation marks.
        usual_language: the most frequent language of the run, for an answer that, with its question
            and contexts, does not tell its own.
    """
    labels = labels or Labels()
    text = clean(answer or "")
    parts = prepare_answer(text, chunks, question, references, first_index)
    scores = Collector(METRICS)
    language = language_of(text, question, (chunk.text for chunk in chunks), usual_language)
    covered = is_covered(language)
    found = quality.checks(
        text,
        covered=covered,
        question=question,
        contexts=len(chunks),
        citations=len(parts.cited) + len(parts.listed),
        answerable=labels.answerable,
        best_score=best_score,
        min_score=min_score,
    )
    for name, passed in found.items():
        why = "does not apply" if covered or name not in quality.WORDED else LANGUAGE
        scores.set(name, None if passed is None else float(passed), why)
    scores.set("answer_quality", quality.share(found), "")
    rest = (*CLAIM_METRICS, *CITATION_METRICS, *LABEL_METRICS, *TEXT_METRICS)
    if not text.strip():
        scores.nothing(rest, "empty answer")
    elif abstained:
        scores.nothing(rest, "abstention")
    elif not covered:
        scores.nothing(rest, LANGUAGE)
        scores.evidence["language"] = language
    else:
        score_claims(scores, parts, chunks)
        _citations(scores, parts, chunks)
        _labels(scores, parts, chunks, labels)
        _texts(scores, parts, chunks, labels)
    return scores.result()


def _citations(scores: Collector, parts: Answer, chunks: Sequence[Passage]) -> None:
    marked = [citation.chunk for citation in parts.cited]
    scores.set(
        "citation_validity_form",
        citations.validity_form(marked or parts.listed),
        "no citations",
    )
    judged = {
        place for place, claim in enumerate(parts.extraction.claims) if claim.type != "general"
    }
    cited = {c.claim for c in parts.cited if c.claim is not None} & judged
    scores.set("citation_coverage", citations.coverage(len(judged), cited), "no claims")
    if parts.cited:
        scores.evidence["citations"] = [
            {
                "target": c.target,
                "span": [c.start, c.end],
                "chunk_id": None if c.chunk is None else chunks[c.chunk].chunk_id,
            }
            for c in parts.cited
        ]
    reason = unusable(chunks)
    if reason is not None:
        scores.nothing(["citation_validity_content", "citation_joint"], reason)
        return
    checked = citations.content_checks(parts.cited, parts.chunks, parts.question)
    content = sum(passed for _, passed in checked) / len(checked) if checked else None
    why = "no citation resolves" if parts.cited else "no citation marks"
    scores.set("citation_validity_content", content, why)
    joint = citations.joint(parts.extraction.claims, parts.cited, parts.chunks, parts.question)
    scores.set("citation_joint", joint, "no claim has a citation")
    failed = {(c.start, c.target) for c, passed in checked if not passed}
    for row, c in zip(scores.evidence.get("citations", []), parts.cited, strict=True):
        if (c.start, c.target) in failed:
            row["supported"] = False


def _labels(scores: Collector, parts: Answer, chunks: Sequence[Passage], labels: Labels) -> None:
    said = prepare(parts.text)
    expected, forbidden = labels.expected_claims, labels.forbidden_claims
    missed = missing_claims(said, expected)
    scores.set(
        "expected_claim_recall",
        1 - len(missed) / len(expected) if expected else None,
        "no expected_claims",
    )
    stated = stated_claims(said, forbidden)
    scores.set("forbidden_claims", len(stated) if forbidden else None, "no forbidden_claims")
    for name, found in (("expected_claims_missing", missed), ("forbidden_claims_found", stated)):
        if found:
            scores.evidence[name] = [clean(text) for text in found]
    places = ({c.chunk for c in parts.cited} | set(parts.listed)) - {None}
    resolver = Resolver(chunks)
    hits = [resolver(name) in places for name in labels.expected_citations]
    scores.set(
        "expected_citation_recall",
        sum(hits) / len(hits) if hits else None,
        "no expected_citations",
    )


def _texts(scores: Collector, parts: Answer, chunks: Sequence[Passage], labels: Labels) -> None:
    both = overlap(bare(parts.text), labels.reference_answer or "")
    scores.set("answer_overlap", both and both[0], "no reference_answer")
    scores.set("answer_word_recall", both and both[1], "no reference_answer")
    names = ("verbatim_coverage", "longest_copied_span")
    reason = unusable(chunks) if chunks else NO_CONTEXTS
    # Citation marks are no words of either side: neither copied nor in the way of a copied span.
    contexts = [] if reason else [bare(chunk.text or "") for chunk in chunks]
    copied = None if reason else copying(bare(parts.text), contexts)
    if copied is None:
        scores.nothing(names, reason or "no words")
        return
    scores.values["verbatim_coverage"] = copied.coverage
    scores.values["longest_copied_span"] = float(copied.longest)
    if copied.spans:
        longest = max(copied.spans, key=lambda span: span.words)
        scores.evidence["longest_copied"] = {
            "span": [longest.start, longest.end],
            "chunk_id": chunks[longest.chunk].chunk_id,
        }

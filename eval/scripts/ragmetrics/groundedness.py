"""Groundedness of one answer without a model: which claims, numbers and citations its contexts bear.

``score_case`` gives all metrics of the family with evidence. What a number means stands in METRICS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragmetrics import citations, numbers, quality
from ragmetrics.casescores import NO_CONTEXTS, CaseScores, Cited, Passage, unusable
from ragmetrics.citations import Citation, Resolver
from ragmetrics.claimfilter import Claim, Extraction, bare, extract
from ragmetrics.claims import Chunk, Support, merged, prepare, score_claim
from ragmetrics.copying import copying
from ragmetrics.language import differ
from ragmetrics.text import clean, content_words, fold

FORBIDDEN_THRESHOLD = 0.8
"""Share of a forbidden claim's words in one sentence of the answer that counts as saying it."""

CLAIM_METRICS = (
    "claim_support_rate",
    "mean_claim_support",
    "unsupported_claims",
    "numeric_fabrications",
)
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


@dataclass(frozen=True)
class Answer:
    """An answer taken apart once: its claims, the chunks made ready, its citations."""

    text: str
    extraction: Extraction
    chunks: tuple[Chunk, ...]
    known: numbers.NumberIndex
    question: numbers.NumberIndex
    cited: tuple[Citation, ...]
    listed: tuple[int | None, ...]

    @property
    def judged(self) -> list[Claim]:
        """The claims that are checked: all but the general ones."""
        return [claim for claim in self.extraction.claims if claim.type != "general"]


class _Scores:
    """Collects values, reasons and evidence."""

    def __init__(self) -> None:
        self.values: dict[str, float | None] = dict.fromkeys(METRICS)
        self.reasons: dict[str, str] = {}
        self.evidence: dict[str, Any] = {}

    def nothing(self, names: Sequence[str], reason: str) -> None:
        for name in names:
            self.values[name] = None
            self.reasons[name] = reason

    def set(self, name: str, value: float | None, reason: str) -> None:
        """A value, or the reason why there is none."""
        if value is None:
            self.nothing([name], reason)
        else:
            self.values[name] = float(value)


def prepare_answer(
    answer: str,
    chunks: Sequence[Passage],
    question: str = "",
    references: Sequence[Cited] = (),
    first_index: int = 1,
) -> Answer:
    """Take an answer apart. ``first_index``: the number of the first chunk in the bot's own marks."""
    text = clean(answer)
    extraction = extract(text)
    ready = tuple(prepare(chunk.text or "") for chunk in chunks)
    resolver = Resolver(chunks, references, first_index)
    return Answer(
        text,
        extraction,
        ready,
        merged(ready),
        numbers.index(question),
        tuple(citations.attach(text, extraction.claims, resolver)),
        tuple(resolver.reference(reference) for reference in references),
    )


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
) -> CaseScores:
    """All groundedness metrics of one answer.

    An empty answer or an abstention has no score but its quality checks. Texts that were cut, or that the
    bot does not send, leave the metrics that need them without a score; no contexts at all under an answer
    that claims something is a score of 0 with the reason ``no contexts``.

    Args:
        answer: what the bot said.
        chunks: the retrieved chunks in the order the bot saw them.
        question: numbers in it may be repeated by the answer.
        references: the sources that the bot lists with its answer.
        abstained: whether the answer is an abstention (the abstention section decides that).
        labels: what the case expects.
        best_score: the best retrieval score, when the bot sends one; ``min_score``: what it must exceed.
        first_index: the number of the first chunk in citation marks.
    """
    labels = labels or Labels()
    text = clean(answer or "")
    parts = prepare_answer(text, chunks, question, references, first_index)
    scores = _Scores()
    found = quality.checks(
        text,
        question=question,
        contexts=len(chunks),
        citations=len(parts.cited) + len(parts.listed),
        answerable=labels.answerable,
        best_score=best_score,
        min_score=min_score,
    )
    for name, passed in found.items():
        scores.set(name, None if passed is None else float(passed), "does not apply")
    scores.set("answer_quality", quality.share(found), "")
    rest = (*CLAIM_METRICS, *CITATION_METRICS, *LABEL_METRICS, *TEXT_METRICS)
    if not text.strip():
        scores.nothing(rest, "empty answer")
    elif abstained:
        scores.nothing(rest, "abstention")
    else:
        _claims(scores, parts, chunks)
        _citations(scores, parts, chunks)
        _labels(scores, parts, chunks, labels)
        _texts(scores, parts, chunks, labels)
    return CaseScores(scores.values, scores.reasons, scores.evidence)


def _claims(scores: _Scores, parts: Answer, chunks: Sequence[Passage]) -> None:
    reason = unusable(chunks)
    contexts = " ".join(chunk.text or "" for chunk in chunks)[:20_000]
    if reason is None and contexts and differ(parts.text, contexts):
        reason = "language"
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


def _fabrications(scores: _Scores, parts: Answer) -> int:
    """Distinct numbers of the answer's claims and short units that nothing holds; evidence beside it."""
    texts = [claim.text for claim in parts.extraction.claims]
    texts += [s.text for s in parts.extraction.skipped if s.reason in ("too short", "no content word")]
    flagged: dict[str, list[str]] = {"fabricated": [], "derived": [], "rounded": []}
    seen: set[frozenset[numbers.Key]] = set()
    for text in texts:
        stated = numbers.numbers(bare(text))
        verdicts = numbers.judge(stated, parts.known, parts.question)
        for number, verdict in zip(stated, verdicts, strict=True):
            if verdict in flagged and number.keys not in seen:
                seen.add(number.keys)
                flagged[verdict].append(number.text.strip())
    if any(flagged.values()):
        scores.evidence["numbers"] = {name: found for name, found in flagged.items() if found}
    return len(flagged["fabricated"])


def _citations(scores: _Scores, parts: Answer, chunks: Sequence[Passage]) -> None:
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


def _labels(
    scores: _Scores, parts: Answer, chunks: Sequence[Passage], labels: Labels
) -> None:
    said = prepare(parts.text)
    if labels.expected_claims:
        missed = [text for text in labels.expected_claims if not _says(said, text, None)]
        share = 1 - len(missed) / len(labels.expected_claims)
        scores.values["expected_claim_recall"] = share
        if missed:
            scores.evidence["expected_claims_missing"] = missed
    else:
        scores.nothing(["expected_claim_recall"], "no expected_claims")
    if labels.forbidden_claims:
        stated = [t for t in labels.forbidden_claims if _says(said, t, FORBIDDEN_THRESHOLD)]
        scores.values["forbidden_claims"] = float(len(stated))
        if stated:
            scores.evidence["forbidden_claims_found"] = stated
    else:
        scores.nothing(["forbidden_claims"], "no forbidden_claims")
    if labels.expected_citations:
        places = {c.chunk for c in parts.cited} | set(parts.listed)
        resolver = Resolver(chunks)
        hits = sum(resolver(name) in places - {None} for name in labels.expected_citations)
        scores.values["expected_citation_recall"] = hits / len(labels.expected_citations)
    else:
        scores.nothing(["expected_citation_recall"], "no expected_citations")


def _says(said: Chunk, text: str, forbidden: float | None) -> bool:
    """Does an answer state a claim? A forbidden one must stand in one sentence, and not negated."""
    support = score_claim(
        text, [said], known=said.numbers, threshold=forbidden, size=1 if forbidden else 3
    )
    if support is None:
        return fold(text).strip() in fold(said.text)
    return support.supported and not (forbidden and support.negation_mismatch)


def overlap(answer: str, reference: str) -> tuple[float, float] | None:
    """(F1, recall) of content words with their repeats; None when the reference has none."""
    ours, wanted = (Counter(content_words(fold(text))) for text in (answer, reference))
    if not wanted:
        return None
    shared = (ours & wanted).total()
    return 2 * shared / (ours.total() + wanted.total()), shared / wanted.total()


def _texts(scores: _Scores, parts: Answer, chunks: Sequence[Passage], labels: Labels) -> None:
    both = overlap(bare(parts.text), labels.reference_answer or "")
    scores.set("answer_overlap", both and both[0], "no reference_answer")
    scores.set("answer_word_recall", both and both[1], "no reference_answer")
    names = ("verbatim_coverage", "longest_copied_span")
    reason = unusable(chunks)
    copied = copying(parts.text, [chunk.text or "" for chunk in chunks]) if not reason else None
    if not chunks:
        scores.nothing(names, NO_CONTEXTS)
    elif copied is None:
        scores.nothing(names, reason or "no words")
    else:
        scores.values["verbatim_coverage"] = copied.coverage
        scores.values["longest_copied_span"] = float(copied.longest)
        if copied.spans:
            longest = max(copied.spans, key=lambda span: span.words)
            scores.evidence["longest_copied"] = {
                "span": [longest.start, longest.end],
                "chunk_id": chunks[longest.chunk].chunk_id,
            }

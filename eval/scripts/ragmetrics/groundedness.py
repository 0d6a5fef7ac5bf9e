"""Groundedness of one answer without a model: do its contexts bear its claims and citations?

``score_case`` gives all metrics of the family, in the order of ``METRICS``, with their evidence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics import abstention, citations
from ragmetrics.case_scores import (
    LANGUAGE,
    NO_CONTEXTS,
    CaseScores,
    Cited,
    Collector,
    RetrievedText,
    unusable,
)
from ragmetrics.citations import Resolver
from ragmetrics.claim_metrics import CLAIM_METRICS, PreparedAnswer, score_claims
from ragmetrics.claims import bare, extract, has_threshold, score_claim, stands_plainly
from ragmetrics.facts import Fact, find_facts, nugget_recall
from ragmetrics.support import SupportModel
from ragmetrics.text import numbers
from ragmetrics.text.language import differ, is_covered, language_of
from ragmetrics.text.plain import PlainText, plain
from ragmetrics.text.quotes import copying
from ragmetrics.text.sentences import units
from ragmetrics.text.words import clean, fold, overlap
from ragmetrics.windows import PreparedChunk, merged, prepare


def _prepare_answer(
    read: PlainText,
    chunks: Sequence[RetrievedText],
    question: str = "",
    references: Sequence[Cited] = (),
    first_index: int = 1,
    language: str | None = None,
    denial: tuple[int, int] | None = None,
) -> PreparedAnswer:
    """Take an answer apart; ``denial``: a claim of it that is worded like an abstention."""
    text = read.text
    extraction = extract(text, denial=denial)
    ready = tuple(prepare(chunk.text or "", language) for chunk in chunks)
    resolver = Resolver(chunks, references, first_index)
    return PreparedAnswer(
        read,
        extraction,
        ready,
        merged(ready),
        numbers.index(question, language),
        tuple(citations.attach(text, extraction.claims, resolver)),
        tuple(resolver.reference(reference) for reference in references),
    )


_FORBIDDEN_THRESHOLD = 0.8
"""Share of a forbidden claim's words in one sentence of the answer that counts as saying it."""


def missing_claims(answer: PreparedChunk, expected: Sequence[str]) -> list[str]:
    """Return the expected claims that an answer (prepared as a chunk) does not state.

    Stated: the support scorer finds the claim in the answer, its numbers included.
    """
    missing: list[str] = []
    for text in expected:
        support = score_claim(text, [answer], context_numbers=answer.numbers)
        if not (stands_plainly(answer, text) if support is None else support.supported):
            missing.append(text)
    return missing


def stated_claims(answer: PreparedChunk, forbidden: Sequence[str]) -> list[str]:
    """Return the forbidden claims that one sentence of an answer states without denying them.

    Stated: at least 0.8 of its words and all its numbers. Denied: one of the two is negated.
    """
    stated: list[str] = []
    for text in forbidden:
        support = score_claim(
            text, [answer], context_numbers=answer.numbers, threshold=_FORBIDDEN_THRESHOLD, size=1
        )
        if support is None:
            said_so = stands_plainly(answer, text)
        else:
            said_so = support.supported and not support.negation_mismatch
        if said_so:
            stated.append(text)
    return stated


CHECKS = (
    "answer_not_empty",
    "contexts_exist",
    "has_citations",
    "no_fallback_phrase",
    "retrieval_scores_ok",
    "list_question_gets_list",
)

_WORDED = ("no_fallback_phrase", "list_question_gets_list")
"""Checks that look for English words."""

_FALLBACK = re.compile(
    r"\b(?:something went wrong|an error (?:has )?occurred|please try again"
    r"|unable to (?:generate|process)|no (?:results?|documents?|answer) (?:was |were )?found"
    r"|internal server error|request timed out)\b"
)

_LIST_QUESTION = re.compile(
    r"^\W*(?:please )?(?:list|enumerate|name (?:the|all|some|\d|two|three|four|five))\b"
    r"|\bwhat are (?:the |some |all )?(?:\w+ ){0,3}(?:types|kinds|steps|ways|reasons|options"
    r"|requirements|benefits|advantages|disadvantages|features|components|examples|stages|rules"
    r"|differences|phases|symptoms|causes|methods|parts)\b|\bwhich (?:\w+ ){1,3}are (?:there"
    r"|available|supported)\b|\bwhat steps\b"
    r"|\bgive (?:me )?(?:a list|some examples|\d+|two|three|four|five)\b"
)

_LAST = re.compile(r"\s(?:and|or)\s")


def _is_list_question(question: str) -> bool:
    """True when a question asks for several things by its wording (English)."""
    return _LIST_QUESTION.search(fold(question)) is not None


def _is_series(sentence: str) -> bool:
    """ "A, B, and C" or "A; B; C": cut by hand, since a pattern for it is quadratic."""
    if sentence.count(";") >= 2:
        return True
    before, comma, last = sentence.rpartition(",")
    if last.lstrip().startswith(("and ", "or ")):
        return "," in before  # "A, and B" are two
    return bool(comma) and _LAST.search(last) is not None


def is_list(answer: str) -> bool:
    """True for at least two list items or table rows, or a sentence that is a series of three."""
    answer_units = units(answer)
    rows = sum(unit.kind in ("item", "table") for unit in answer_units)
    return rows >= 2 or any(_is_series(answer[unit.start : unit.end]) for unit in answer_units)


def checks(
    answer: str,
    *,
    question: str,
    contexts: int,
    citations: int,
    answerable: bool | None,
    best_score: float | None,
    min_score: float,
    declines: bool,
    covered: bool = True,
    listed: bool = True,
) -> dict[str, bool | None]:
    """Run each check: True passed, False failed, None does not apply.

    An unanswerable case may well be answered by an abstention (``declines``) and without a
    citation; a bot that sends no retrieval scores, or a question that asks for no list, cannot fail
    those checks. An empty answer fails the first check, and the checks of its wording do not apply.
    Nor do these apply in a language that is not ``covered``, where only a phrase that is found says
    something; English words show which questions ask for a list (``listed``)."""
    present = bool(answer.strip())
    fallback = declines or bool(_FALLBACK.search(fold(answer)))
    judged = present and answerable is not False
    return {
        "answer_not_empty": present,
        "contexts_exist": contexts > 0,
        "has_citations": citations > 0 if judged else None,
        "no_fallback_phrase": not fallback if judged and (covered or fallback) else None,
        "retrieval_scores_ok": None if best_score is None else best_score > min_score,
        "list_question_gets_list": (
            is_list(answer)
            if judged and listed and not fallback and _is_list_question(question)
            else None
        ),
    }


def share(outcomes: dict[str, bool | None]) -> float:
    """Checks passed / checks that apply; the first always applies."""
    applying = [passed for passed in outcomes.values() if passed is not None]
    return sum(applying) / len(applying)


_CITATION_METRICS = (
    "citation_validity_form",
    "citation_validity_content",
    "citation_coverage",
    "citation_joint",
    "citation_precision",
)

NO_SOURCES = "the bot names no sources"

_CONTENT_METRICS = ("citation_validity_content", "citation_joint", "citation_precision")
"""Those of them that read the cited chunks."""

_LABEL_METRICS = ("expected_claim_recall", "forbidden_claims", "expected_citation_recall")

_NUGGET_METRICS = ("nugget_recall_vital", "nugget_recall_all")

_TEXT_METRICS = (
    "answer_overlap",
    "answer_word_recall",
    "verbatim_coverage",
    "longest_copied_span",
)

OF_PASSAGES = (
    *CLAIM_METRICS,
    *_CITATION_METRICS,
    "expected_citation_recall",
    "verbatim_coverage",
    "longest_copied_span",
    "contexts_exist",
)
"""Metrics that need the passages of an answer; when these are unknown, they have no score."""

METRICS = (
    *CLAIM_METRICS,
    *_CITATION_METRICS,
    *_LABEL_METRICS,
    *_NUGGET_METRICS,
    *_TEXT_METRICS,
    "answer_quality",
    *CHECKS,
)


@dataclass(frozen=True)
class Labels:
    """The labels of a case about its answer; all of them are optional."""

    answerable: bool | None = None
    reference_answer: str | None = None
    expected_claims: Sequence[str] = ()
    forbidden_claims: Sequence[str] = ()
    expected_citations: Sequence[str] = ()
    gold_facts: Sequence[Fact] = ()


def score_case(
    answer: str | None,
    chunks: Sequence[RetrievedText],
    *,
    question: str = "",
    references: Sequence[Cited] = (),
    abstained: bool = False,
    labels: Labels | None = None,
    best_score: float | None = None,
    min_score: float = 0.0,
    first_index: int = 1,
    usual_language: str | None = None,
    support_model: SupportModel | None = None,
    names_sources: bool = True,
    passages_known: bool = True,
) -> CaseScores:
    """All groundedness metrics of one answer.

    An empty answer, an abstention, or an answer in a language whose words and phrases are not known
    has no score but its quality checks and what it holds of the gold facts. Texts that were cut, or
    that the bot does not send, leave the metrics that need them without a score; no contexts at all
    under an answer that claims something is a score of 0 with the reason ``no contexts``.

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
        support_model: decides in the place of the word features whether a claim is supported; a
            number found nowhere still vetoes.
        names_sources: whether the bot has a way to cite at all; without one, no citation is asked
            of it. ``passages_known``: whether an empty list says that nothing was retrieved.
    """
    labels = labels or Labels()
    read = plain(answer or "")
    text = read.text
    scores = Collector(METRICS)
    language = language_of(text, question, (chunk.text for chunk in chunks), usual_language)
    covered = is_covered(language)
    reply = abstention.detect_with_passages(text, chunks, question)
    parts = _prepare_answer(read, chunks, question, references, first_index, language, reply.denial)
    outcomes = checks(
        text,
        declines=reply.abstained,
        covered=covered,
        listed=language in (None, "en"),
        question=question,
        contexts=len(chunks),
        citations=len(parts.cited) + len(parts.listed),
        answerable=labels.answerable,
        best_score=best_score,
        min_score=min_score,
    )
    if not names_sources:
        outcomes["has_citations"] = None
    if not passages_known:
        outcomes["contexts_exist"] = None
    for name, passed in outcomes.items():
        foreign = not covered or (
            name == "list_question_gets_list" and language not in (None, "en")
        )
        why = LANGUAGE if name in _WORDED and foreign else "does not apply"
        scores.set(name, None if passed is None else float(passed), why)
    scores.set("answer_quality", share(outcomes), "")
    _nuggets(scores, text, labels)
    rest = (*CLAIM_METRICS, *_CITATION_METRICS, *_LABEL_METRICS, *_TEXT_METRICS)
    if not text.strip():
        scores.nothing(rest, "empty answer")
    elif abstained:
        scores.nothing(rest, "abstention")
    elif not has_threshold(language):
        scores.nothing(rest, LANGUAGE)
        scores.evidence["language"] = language
    else:
        score_claims(scores, parts, chunks, support_model, question)
        _citations(scores, parts, chunks)
        _labels(scores, parts, chunks, labels, language)
        _texts(scores, parts, chunks, labels)
        if not names_sources:
            scores.nothing(_CITATION_METRICS, NO_SOURCES)
    return scores.result()


def unsupported_claims(
    answer: str, chunks: Sequence[RetrievedText], question: str = ""
) -> float | None:
    """Count the claims that the chunks do not support; None where this has no score. ``score_case``
    counts them as well."""
    read = plain(answer)
    language = language_of(read.text, question, (chunk.text for chunk in chunks))
    if not read.text.strip() or not has_threshold(language):
        return None
    scores = Collector(METRICS)
    score_claims(scores, _prepare_answer(read, chunks, question, language=language), chunks)
    return scores.values["unsupported_claims"]


def _citations(scores: Collector, parts: PreparedAnswer, chunks: Sequence[RetrievedText]) -> None:
    marked = [citation.chunk for citation in parts.cited]
    scores.set(
        "citation_validity_form",
        citations.validity_form(marked or parts.listed),
        "no citations",
    )
    judged = {
        index for index, claim in enumerate(parts.extraction.claims) if claim.type != "general"
    }
    cited = {c.claim for c in parts.cited if c.claim is not None} & judged
    scores.set("citation_coverage", citations.coverage(len(judged), cited), "no claims")
    if parts.cited:
        scores.evidence["citations"] = [
            {
                "target": c.target,
                "span": parts.written_span(c.start, c.end),
                "chunk_id": None if c.chunk is None else chunks[c.chunk].chunk_id,
            }
            for c in parts.cited
        ]
    reason = unusable(chunks)
    if reason is not None:
        scores.nothing(_CONTENT_METRICS, reason)
        return
    checked = citations.content_checks(parts.cited, parts.chunks, parts.question)
    content = sum(passed for _, passed in checked) / len(checked) if checked else None
    why = "no citation resolves" if parts.cited else "no citation marks"
    scores.set("citation_validity_content", content, why)
    joint = citations.joint(parts.extraction.claims, parts.cited, parts.chunks, parts.question)
    scores.set("citation_joint", joint, "no claim has a citation")
    precision = citations.precision(
        parts.extraction.claims, parts.cited, parts.chunks, parts.question
    )
    scores.set("citation_precision", precision, "no citation of a claim resolves")
    failed = {(c.start, c.target) for c, passed in checked if not passed}
    for row, c in zip(scores.evidence.get("citations", []), parts.cited, strict=True):
        if (c.start, c.target) in failed:
            row["supported"] = False


def _labels(
    scores: Collector,
    parts: PreparedAnswer,
    chunks: Sequence[RetrievedText],
    labels: Labels,
    language: str | None,
) -> None:
    answer = prepare(parts.text, language)
    expected, forbidden = labels.expected_claims, labels.forbidden_claims
    missed = missing_claims(answer, expected)
    scores.set(
        "expected_claim_recall",
        1 - len(missed) / len(expected) if expected else None,
        "no expected_claims",
    )
    stated = stated_claims(answer, forbidden)
    scores.set("forbidden_claims", len(stated) if forbidden else None, "no forbidden_claims")
    for name, claims in (("expected_claims_missing", missed), ("forbidden_claims_found", stated)):
        if claims:
            scores.evidence[name] = [clean(text) for text in claims]
    cited_chunks = ({c.chunk for c in parts.cited} | set(parts.listed)) - {None}
    resolver = Resolver(chunks)
    hits = [resolver(name) in cited_chunks for name in labels.expected_citations]
    scores.set(
        "expected_citation_recall",
        sum(hits) / len(hits) if hits else None,
        "no expected_citations",
    )


def _nuggets(scores: Collector, text: str, labels: Labels) -> None:
    """Recall, so an answer that holds nothing has 0: also an empty one, and an abstention."""
    facts = labels.gold_facts
    reason = "unanswerable" if labels.answerable is False else None if facts else "no gold_facts"
    if reason is None and differ(text, " ".join(fact.fact for fact in facts)):
        reason = LANGUAGE
    if reason is not None:
        scores.nothing(_NUGGET_METRICS, reason)
        return
    held = [bool(holders) for holders in find_facts([bare(text)], facts).holders]
    recall = nugget_recall([float(hit) for hit in held], [fact.vital for fact in facts])
    scores.set("nugget_recall_vital", recall["vital"], "no vital gold_facts")
    scores.set("nugget_recall_all", recall["all"], "")
    if missing := [clean(fact.fact) for fact, hit in zip(facts, held, strict=True) if not hit]:
        scores.evidence["nuggets_missing"] = missing


def _texts(
    scores: Collector, parts: PreparedAnswer, chunks: Sequence[RetrievedText], labels: Labels
) -> None:
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
            "span": parts.written_span(longest.start, longest.end),
            "chunk_id": chunks[longest.chunk].chunk_id,
        }

"""Catalogue rows of the groundedness metrics: claims, numbers, citations, labels, plain checks."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection


def _row(name: str, meaning: str, needs: str, source: str = "this toolkit", **more: Any) -> Metric:
    row: dict[str, Any] = {"version": 4} | more
    return Metric(name, "groundedness", meaning, needs, source, **row)


def _count(name: str, meaning: str, needs: str, unit: str, **more: Any) -> Metric:
    row: dict[str, Any] = {"high": None, "higher_is_better": False} | more
    return _row(name, meaning, needs, unit=unit, **row)


CLAIMS = "an answer with claims; full chunk texts"

ENGLISH = "an English answer with claims, judged by word features; full chunk texts"

MARKS = "citation marks that resolve; full chunk texts"

WORDS = "an answer; full chunk texts"

NUGGETS = "gold_facts; not unanswerable; a result without an error"

TREC_RAG = "nugget recall of TREC RAG 2024 (Pradeep et al.), by text match instead of a judge"

ROWS: tuple[Metric, ...] = (
    _row(
        "claim_support_rate",
        "claims (assertions, inferences) that the contexts support / claims: a model of seven word "
        "features in English, the word share of a window in other languages",
        CLAIMS,
        "this toolkit; agreement with people in docs/validation.md",
        headline=1,
        overview=4,
        short="supported",
        primary=True,
        target="claim_support_rate",
        version=6,
        words="Claims that the passages support",
        says="supports in an average answer {value} of claims with passages",
    ),
    _row(
        "mean_claim_support",
        "mean share of a claim's content words in its best window of three sentences; 0 for a "
        "claim with a number found nowhere",
        CLAIMS,
        "this toolkit; agreement with people in docs/validation.md",
        headline=2,
        version=6,
        words="How far the passages cover a claim",
        counted="number",
    ),
    _count(
        "unsupported_claims",
        "claims that no context supports",
        CLAIMS,
        "claims",
        version=6,
        words="Claims without support",
    ),
    _row(
        "unsure_claim_rate",
        "claims whose strength (.40 to .55) does not decide whether they are supported / claims",
        ENGLISH,
        higher_is_better=False,
        version=2,
        words="Claims that the heuristic cannot decide",
    ),
    _row(
        "claim_support_low",
        "claim_support_rate if all unsure claims failed; not a confidence interval",
        ENGLISH,
        version=2,
        words="Claims that the passages surely support",
    ),
    _row(
        "claim_support_high",
        "claim_support_rate if all unsure claims held; not a confidence interval",
        ENGLISH,
        version=2,
        words="Claims that do not surely lack support",
    ),
    _row(
        "answer_supported",
        "1 when no claim of the answer surely lacks support (strength below .40)",
        ENGLISH,
        binary=True,
        version=2,
        words="Answers without a claim that surely lacks support",
    ),
    _count(
        "numeric_fabrications",
        "distinct numbers of the answer that are in no context and not in the question",
        WORDS,
        "numbers",
        headline=3,
        short="numbers",
        target="numeric_fabrications",
        version=5,
        words="Numbers in no source",
    ),
    _row(
        "citation_validity_form",
        "citations that name a retrieved chunk / citations",
        "an answer with citations or references",
        headline=4,
        target="citation_validity_form",
        words="Citations that name a retrieved passage",
    ),
    _row(
        "citation_validity_content",
        "resolved citations whose chunk alone supports their claim (0.45) / resolved citations",
        MARKS,
        "this toolkit; stricter than ALCE citation precision, which is citation_precision",
        headline=5,
        short="cited",
        target="citation_validity_content",
        version=6,
        words="Citations that support their claim",
    ),
    _row(
        "citation_coverage",
        "claims with a citation / claims",
        "an answer with claims",
        version=5,
        words="Claims that have a citation",
    ),
    _row(
        "citation_joint",
        "claims that their cited chunks support together (their best windows joined) / claims with "
        "a citation",
        MARKS,
        "ALCE citation recall (Gao et al. 2023) over the claims with a citation; ALCE divides by "
        "all sentences",
        version=7,
        words="Claims that their citations support together",
    ),
    _row(
        "citation_precision",
        "resolved citations that their claim needs / resolved citations. A claim needs a citation "
        "if the cited chunks together support it, and this one does so alone or the others do not "
        "without it",
        MARKS,
        "ALCE citation precision (Gao et al. 2023), support by words instead of a model",
        version=5,
        compared=True,
        words="Citations that their claim needs",
    ),
    _row(
        "expected_claim_recall",
        "expected claims that the answer states / expected claims",
        "expected_claims; an answer",
        version=6,
        compared=True,
        words="Expected claims that the answer states",
    ),
    _count(
        "forbidden_claims",
        "forbidden claims that a sentence of the answer states and does not deny",
        "forbidden_claims; an answer",
        "claims",
        version=6,
        compared=True,
        words="Forbidden claims that the answer states",
    ),
    _row(
        "expected_citation_recall",
        "expected sources that the answer cites / expected sources",
        "expected_citations; an answer",
        words="Expected sources that the answer cites",
    ),
    _row(
        "nugget_recall_vital",
        "vital gold facts that the answer contains word for word, directly or by an alias / vital "
        "gold facts; an abstention is scored like any answer",
        NUGGETS,
        TREC_RAG,
        version=3,
        words="Vital facts in the answer, word for word",
    ),
    _row(
        "nugget_recall_all",
        "gold facts, vital or not, that the answer contains in the same way / gold facts",
        NUGGETS,
        TREC_RAG,
        version=3,
        words="Facts in the answer, word for word",
    ),
    _row(
        "answer_overlap",
        "F1 of the content words of answer and reference answer",
        "reference_answer; an answer",
        "SQuAD token F1 (Rajpurkar et al. 2016), on stemmed content words",
        headline=6,
        words="Words shared with the reference answer",
        counted="number",
    ),
    _row(
        "answer_word_recall",
        "content words of the reference answer that the answer has / those words",
        "reference_answer; an answer",
        "token recall, on stemmed content words",
        words="Words of the reference that the answer has",
    ),
    _row(
        "verbatim_coverage",
        "words of the answer inside spans of at least five words copied from a chunk / words",
        WORDS,
        "extractive fragment coverage (Grusky et al. 2018), spans from five words",
        higher_is_better=False,
        version=5,
        words="Answer text copied from passages",
    ),
    _count(
        "longest_copied_span",
        "the longest copied span",
        WORDS,
        "words",
        version=5,
        words="Longest copied text",
    ),
    _row(
        "answer_quality",
        "plain checks passed / plain checks that apply",
        "a result",
        words="Plain checks that the answer passes",
    ),
    _row(
        "answer_not_empty",
        "1 when there is an answer",
        "a result",
        binary=True,
        version=2,
        words="Answers that are not empty",
    ),
    _row(
        "contexts_exist",
        "1 when anything was retrieved",
        "a result",
        binary=True,
        version=1,
        words="Questions with any passage",
    ),
    _row(
        "has_citations",
        "1 when the answer cites or lists a source",
        "an answer; not unanswerable",
        binary=True,
        version=2,
        words="Answers with a source",
    ),
    _row(
        "no_fallback_phrase",
        "1 when the answer is neither a refusal nor an error message",
        "an answer; not unanswerable",
        binary=True,
        version=5,
        words="Answers that are neither refusal nor error text",
    ),
    _row(
        "retrieval_scores_ok",
        "1 when the best retrieval score is above the minimum",
        "score_final of chunks",
        binary=True,
        version=1,
        words="Best retrieval score above the minimum",
    ),
    _row(
        "list_question_gets_list",
        "1 when a question that asks for several things is answered by a list or a series",
        "a question that asks for a list; an answer",
        binary=True,
        words="List questions answered with a list",
    ),
)

RUN_ROWS: tuple[Metric, ...] = (
    _row(
        "strength_distance",
        "Kolmogorov-Smirnov distance between the strengths of all claims and those of the nearest "
        "training set; above .30 the threshold may be wrong",
        "100 English claims in the run, judged by word features",
        higher_is_better=False,
        version=2,
        words="Distance from the texts used to set the threshold",
        counted="number",
    ),
)
"""Numbers of the whole run, not of a case."""

SECTION = MetricSection(
    "groundedness",
    "Groundedness",
    ROWS + RUN_ROWS,
    "score_groundedness.py",
    labels=(
        "answerable",
        "reference_answer",
        "expected_claims",
        "forbidden_claims",
        "expected_citations",
        "gold_facts",
    ),
    needs=("texts",),
    worst_by="mean_claim_support",
)

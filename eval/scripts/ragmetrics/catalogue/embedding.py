"""Catalogue rows of the embedding metrics: cosines between question, contexts, answer, reference.

``answer_hallucination`` has two definitions: @1 compares sentences with whole contexts, which is
what other tools print under this name; @2, with windows of sentences, agrees better with people.
"""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection

SEEN = "full chunk texts"

ANSWER = "an answer, no abstention"

BOTH = f"reference_answer; {ANSWER}"


def _row(name: str, meaning: str, needs: str, source: str = "this toolkit", **more: Any) -> Metric:
    row: dict[str, Any] = {"low": -1.0, "unit": "cosine"} | more
    return Metric(name, "embedding", meaning, needs, source, **row)


ROWS: tuple[Metric, ...] = (
    _row(
        "context_relevance",
        "mean of cosine(question, context) over the distinct context texts",
        SEEN,
        headline=1,
        short="cosine ctx",
        target="context_relevance",
        words="Likeness of passages and question",
    ),
    _row(
        "context_relevance_max",
        "cosine(question, context) of the nearest context",
        SEEN,
        words="Likeness of the nearest passage and the question",
    ),
    _row(
        "context_relevance_top3",
        "the same mean over the three nearest distinct texts",
        SEEN,
        words="Likeness of the three nearest passages and the question",
    ),
    _row(
        "context_sufficiency",
        "distinct context texts whose cosine with the question reaches 0.5 / distinct texts",
        SEEN,
        low=0.0,
        unit="share",
        headline=2,
        target="context_sufficiency",
        words="Passages close to the question",
    ),
    _row(
        "answer_relevance",
        "mean over reference sentences of the cosine of the nearest answer sentence, "
        "citation marks removed from both",
        BOTH,
        version=3,
        headline=3,
        target="answer_relevance",
        words="Reference sentences close to the answer",
    ),
    _row(
        "answer_correctness",
        "cosine(answer, reference) as whole texts, citation marks removed from the answer",
        BOTH,
        version=3,
        headline=4,
        overview=7,
        short="cosine ref",
        target="answer_correctness",
        words="Likeness of answer and reference",
    ),
    _row(
        "question_answer_similarity",
        "cosine(question, answer) as whole texts, citation marks removed from the answer",
        ANSWER,
        version=3,
        words="Likeness of question and answer",
    ),
    _row(
        "answer_hallucination",
        "distinct answer sentences, citation marks removed, whose best cosine with a context is "
        "below 0.4 / sentences",
        f"{ANSWER}; {SEEN}",
        low=0.0,
        unit="share",
        higher_is_better=False,
        version=3,
        headline=5,
        target="answer_hallucination",
        words="Answer sentences far from every passage",
    ),
    _row(
        "answer_hallucination@2",
        "the same sentences whose best cosine with 1-3 context sentences is below 0.65 / sentences",
        f"{ANSWER}; {SEEN}",
        low=0.0,
        unit="share",
        higher_is_better=False,
        version=4,
        headline=6,
        target="answer_hallucination@2",
        words="Answer sentences far from every passage, by sentence",
    ),
)

SECTION = MetricSection(
    "embedding",
    "Embedding",
    ROWS,
    "score_embedding.py",
    labels=("reference_answer",),
    needs=("embedding model",),
    worst_by="answer_hallucination@2",
)

"""Catalogue rows of the embedding metrics: cosines between question, contexts, answer, reference.

``answer_hallucination`` has two definitions: @1 compares sentences with whole contexts, which is
what other tools print under this name; @2, with windows of sentences, agrees better with people.
"""

from __future__ import annotations

from typing import Any

from ragmetrics.metric import Metric

SEEN = "full chunk texts"
BOTH = "reference_answer; an answer"


def _row(name: str, meaning: str, needs: str, source: str = "this toolkit", **more: Any) -> Metric:
    row: dict[str, Any] = {"low": -1.0, "unit": "cosine"} | more
    return Metric(name, "embedding", meaning, needs, source, **row)


ROWS: tuple[Metric, ...] = (
    _row("context_relevance", "mean over contexts of cosine(question, context)", SEEN),
    _row("context_relevance_max", "cosine(question, context) of the nearest context", SEEN),
    _row("context_relevance_top3", "the same mean over the three nearest contexts", SEEN),
    _row(
        "context_sufficiency",
        "contexts whose cosine with the question reaches 0.5 / contexts",
        SEEN,
        low=0.0,
        unit="share",
    ),
    _row(
        "answer_relevance",
        "mean over reference sentences of the cosine of the nearest answer sentence",
        BOTH,
    ),
    _row("answer_correctness", "cosine(answer, reference) as whole texts", BOTH),
    _row("question_answer_similarity", "cosine(question, answer) as whole texts", "an answer"),
    _row(
        "answer_hallucination",
        "answer sentences whose best cosine with a context is below 0.4 / sentences",
        f"an answer, no abstention; {SEEN}",
        low=0.0,
        unit="share",
        higher_is_better=False,
    ),
    _row(
        "answer_hallucination@2",
        "answer sentences whose best cosine with 1-3 context sentences is below 0.65 / sentences",
        f"an answer, no abstention; {SEEN}",
        low=0.0,
        unit="share",
        higher_is_better=False,
        version=2,
    ),
)

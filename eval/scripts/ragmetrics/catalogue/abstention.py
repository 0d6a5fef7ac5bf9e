"""Catalogue rows of the abstention metrics: answered or abstained x answerable or not."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection

DECIDED = "an answer in a covered language, or the bot's own abstained"


def _row(name: str, meaning: str, **more: Any) -> Metric:
    row: dict[str, Any] = {"source": "this toolkit", "version": 6} | more
    return Metric(name, "abstention", meaning, **row)


ROWS: tuple[Metric, ...] = (
    _row(
        "abstention_accuracy",
        "1 when the bot abstains from an unanswerable question",
        binary=True,
        needs=f"answerable: false; {DECIDED}",
        headline=2,
        overview=8,
        short="declined",
        words="Unanswerable questions that are declined",
    ),
    _row(
        "hallucination_on_unanswerable",
        "1 when the bot answers an unanswerable question",
        binary=True,
        higher_is_better=False,
        needs=f"answerable: false; {DECIDED}",
        headline=3,
        words="Unanswerable questions that are answered",
    ),
    _row(
        "over_refusal",
        "1 when the bot abstains from an answerable question",
        binary=True,
        higher_is_better=False,
        needs=f"answerable: true; {DECIDED}",
        headline=4,
        words="Answerable questions that are declined",
    ),
    _row(
        "decision_right",
        "1 when the bot answers an answerable question, or abstains from an unanswerable one",
        binary=True,
        needs=f"answerable; {DECIDED}",
        version=3,
        headline=5,
        primary=True,
        words="Right decisions to answer or to decline",
        says="answers or declines correctly on {value} questions",
    ),
)

RUN_ROWS: tuple[Metric, ...] = (
    _row(
        "abstention_f1",
        "F1 over the run, where abstaining from an unanswerable question is a hit: 2 tp / (2 tp + "
        "fp + fn)",
        needs="cases labelled answerable and decided; an unanswerable case or an abstention",
        headline=1,
        words="Balance of declining only questions that should be declined",
        counted="number",
    ),
)
"""Numbers of the whole run, not of a case."""

SECTION = MetricSection(
    "abstention",
    "Abstention",
    ROWS + RUN_ROWS,
    "score_abstention.py",
    labels=("answerable",),
    worst_by="hallucination_on_unanswerable",
)

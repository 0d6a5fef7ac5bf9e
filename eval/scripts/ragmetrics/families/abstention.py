"""Catalogue rows of the abstention metrics: answered or abstained x answerable or not."""

from __future__ import annotations

from typing import Any

from ragmetrics.metric import Metric


def _row(name: str, meaning: str, **more: Any) -> Metric:
    return Metric(name, "abstention", meaning, source="this toolkit", **more)


ROWS: tuple[Metric, ...] = (
    _row(
        "abstention_accuracy",
        "1 when the bot abstains from an unanswerable question",
        binary=True,
        needs="answerable: false; an answer",
    ),
    _row(
        "hallucination_on_unanswerable",
        "1 when the bot answers an unanswerable question",
        binary=True,
        higher_is_better=False,
        needs="answerable: false; an answer",
    ),
    _row(
        "over_refusal",
        "1 when the bot abstains from an answerable question",
        binary=True,
        higher_is_better=False,
        needs="answerable: true; an answer",
    ),
)
RUN_ROWS: tuple[Metric, ...] = (
    _row(
        "abstention_f1",
        "F1 over the run, abstaining from the unanswerable being the hit: 2 tp / (2 tp + fp + fn)",
        needs="cases labelled answerable; an unanswerable case or an abstention",
    ),
)
"""Numbers of the whole run; no case has them."""

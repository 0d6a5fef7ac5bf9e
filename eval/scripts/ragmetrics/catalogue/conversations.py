"""Catalogue rows of conversations: what a turn needs of the turns before it, and whole ones."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection
from ragmetrics.catalogue.retrieval import GOLD_LABELS


def _row(name: str, meaning: str, needs: str, **more: Any) -> Metric:
    row: dict[str, Any] = {"source": "this toolkit", "binary": True} | more
    return Metric(name, "conversations", meaning, needs, **row)


MATCHING = 3
"""Version of all that depends on matching: since 2 a support without a heading is a quote, since 3
a section below the gold heading matches only with words of a quote."""

LATER = "turn 2 or later, asked live; gold supports, and not all of them in this turn's passages"

ROWS: tuple[Metric, ...] = (
    _row(
        "evidence_in_history",
        "1 when the passages of this and the earlier turns together contain all the needed "
        "evidence, whole lists",
        LATER,
        version=MATCHING,
        headline=2,
        words="Missing evidence that earlier turns had found",
    ),
    _row(
        "answered_from_history",
        "1 when evidence_in_history is 1 and the turn passes",
        f"{LATER}; any pipeline label",
        version=MATCHING,
        headline=3,
        words="Turns that pass with evidence of earlier turns",
    ),
    _row(
        "asked_back",
        "1 when the bot asks what the user means, by its flag clarify or by wording",
        "expected_outcome: clarify",
        headline=4,
        words="Unclear questions that are asked back",
    ),
    _row(
        "over_asking",
        "1 when the bot asks back although the question can be answered",
        "answerable: true, another expected_outcome than clarify; a turn, or a case with history",
        higher_is_better=False,
        headline=5,
        words="Clear questions that are asked back",
    ),
    _row(
        "claim_support_conversation",
        "claim_support_rate with the passages of the earlier turns besides this turn's",
        "a turn of a conversation; an answer with claims; full chunk texts",
        binary=False,
        headline=6,
        words="Claims that the conversation's passages support",
    ),
)

RUN_ROWS: tuple[Metric, ...] = (
    _row(
        "conversation_pass",
        "conversations in which every turn with a check passes / conversations with a check; a "
        "failed call does not pass",
        "conversations; any pipeline label",
        headline=1,
        words="Conversations in which every turn passes",
    ),
)
"""Numbers of whole conversations, not of a case."""

SECTION = MetricSection(
    "conversations",
    "Conversations",
    ROWS + RUN_ROWS,
    "score_conversations.py",
    labels=(
        "expected_outcome",
        "required_flags",
        "forbidden_flags",
        "min_citations",
        *GOLD_LABELS,
    ),
    needs=("conversations",),
    worst_by="evidence_in_history",
)

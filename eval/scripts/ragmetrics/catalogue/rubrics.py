"""Catalogue rows of rubrics: questions of a user's own, whose names nobody knows beforehand."""

from __future__ import annotations

from ragmetrics.catalogue.metric import Metric, MetricSection

RANK = "_rank"
"""End of the name of a rubric's mean rank."""

_SOURCE = "the rubric's file, as the verdicts hold it"

SECTION = MetricSection(
    "rubrics",
    "Rubrics",
    (),
    "judge_answers.py",
    needs=("verdicts", "rubrics"),
)


def row_of(metric: str, ask: str = "", labels: int | None = None, version: int | str = 1) -> Metric:
    """The row of a rubric's share or, with the end ``_rank``, of its mean rank.

    By the name alone all is known but what is asked and how many labels the scale has. Ranks count
    from the bad end, so that more is better whatever the rubric's direction.
    """
    if metric.endswith(RANK):
        return Metric(
            metric,
            SECTION.name,
            f"place of the verdict on the scale, from 1 for the bad end: {ask}",
            "a verdict of the scale",
            _SOURCE,
            low=1.0,
            high=None if labels is None else float(labels),
            unit="rank",
            version=version,
            words=f"Mean rank: {ask}",
        )
    return Metric(
        metric,
        SECTION.name,
        f"1 for a verdict at or above the rubric's target: {ask}",
        "an answer, and what the rubric reads",
        _SOURCE,
        binary=True,
        version=version,
        words=ask or metric,
    )

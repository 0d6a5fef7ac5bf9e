"""Catalogue rows of rubrics: a user's own questions, whose names are not known beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection

RANK = "_rank"
"""Suffix of the name of a rubric's mean rank."""

_SOURCE = "the rubric's file, as the verdicts hold it"

SECTION = MetricSection(
    "rubrics",
    "Rubrics",
    (),
    "judge_answers.py",
    labels=("reference_answer", "expected_key_facts"),
    needs=("verdicts", "rubrics"),
)


def rows_in(section: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the rows of the rubrics in a section of metrics.json."""
    for name, told in section.get("rubrics", {}).items():
        known = (str(told.get("ask", "")), len(told.get("labels", ())), told.get("version", 1))
        yield from (row_of(name, *known), row_of(f"{name}{RANK}", *known))


def given_words(section: Mapping[str, Any]) -> list[str]:
    """Return one line per rubric: how often each verdict was given, and if people checked it."""
    lines = []
    for name, given in section.get("distribution", {}).items():
        told = section.get("rubrics", {}).get(name, {})
        words = dict.fromkeys([*told.get("labels", ()), *given])
        counts = ", ".join(f"{word.replace('_', ' ')} {given.get(word, 0)}" for word in words)
        lines.append(f"{name}: {counts}; the target is {told.get('target', '')}")
        if "not calibrated" in section.get("marks", {}).get(name, ""):
            lines[-1] += "; not calibrated"
    return lines


def row_of(metric: str, ask: str = "", labels: int | None = None, version: int | str = 1) -> Metric:
    """Return the row of a rubric's share or, if the name ends in ``_rank``, of its mean rank.

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

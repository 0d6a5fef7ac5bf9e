"""Catalogue rows of the searches that led to an answer: what each brought, and what was lost."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection
from ragmetrics.catalogue.retrieval import GOLD_LABELS


def _row(name: str, meaning: str, **more: Any) -> Metric:
    row: dict[str, Any] = {"source": "this toolkit", "needs": GOLD} | more
    return Metric(name, "searches", meaning, **row)


def _count(name: str, meaning: str, **more: Any) -> Metric:
    row: dict[str, Any] = {"unit": "searches", "high": None, "higher_is_better": False} | more
    return _row(name, meaning, **({"needs": SEARCHES} | row))


SEARCHES = "searches in the result"

GOLD = f"gold supports; {SEARCHES}"

MATCHING = 3
"""Version of all that depends on matching: since 2 a support without a heading is a quote, since 3
a section below the gold heading matches only with words of a quote."""

ROWS: tuple[Metric, ...] = (
    _row(
        "union_evidence_recall",
        "evidence_recall of the passages of all searches together, whole lists",
        version=MATCHING,
        headline=1,
        words="Needed evidence that any search found",
    ),
    _row(
        "search_evidence_recall",
        "mean over the searches that did not fail: evidence_recall of the whole list of each",
        version=MATCHING,
        headline=2,
        words="Needed evidence that one search found",
    ),
    _count(
        "complete_at_search",
        "number of the search with which the needed evidence was complete in the union",
        low=1.0,
        needs=f"{GOLD}; evidence that was complete",
        version=MATCHING,
        headline=3,
        words="Search at which the evidence was complete",
    ),
    _row(
        "never_complete",
        "1 when the union of all searches lacks some of the needed evidence",
        higher_is_better=False,
        binary=True,
        version=MATCHING,
        headline=4,
        words="Questions whose searches never found all evidence",
    ),
    _count(
        "lost_supports",
        "gold supports that a search found but that are in no passage the answer saw",
        unit="supports",
        needs=f"{GOLD}; retrieved told apart from them",
        version=MATCHING,
        headline=5,
        words="Gold supports lost between search and answer",
    ),
    _count(
        "searches_without_new",
        "searches whose passages an earlier search had all found",
        headline=6,
        words="Searches that found nothing new",
    ),
    _count("empty_searches", "searches that found no passage", words="Searches without a result"),
    _count("failed_searches", "searches that ended in an error", words="Searches that failed"),
    _count("search_count", "searches of the case", headline=7, words="Searches a question"),
)

SECTION = MetricSection(
    "searches",
    "Searches",
    ROWS,
    "score_searches.py",
    labels=GOLD_LABELS,
    needs=("searches",),
    worst_by="union_evidence_recall",
)

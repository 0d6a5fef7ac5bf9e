"""Catalogue rows of the context metrics: what the retrieved chunks are worth together."""

from __future__ import annotations

from typing import Any

from ragmetrics.catalogue.metric import Metric, MetricSection


def _row(name: str, meaning: str, source: str = "this toolkit", **more: Any) -> Metric:
    row: dict[str, Any] = {"needs": "full chunk texts", "version": 2} | more
    return Metric(name, "context", meaning, source=source, **row)


TFIDF = (
    "scikit-learn's formula with sublinear_tf and L2 norm (not its default), idf over the run's "
    "distinct chunks, words hashed into 2^20 places"
)

ROWS: tuple[Metric, ...] = (
    _row(
        "redundancy_ngram",
        "mean over pairs of chunks with words: shared word 3-grams / 3-grams of the smaller",
        "overlap coefficient (Szymkiewicz-Simpson)",
        higher_is_better=False,
        headline=1,
        target="redundancy_ngram",
        words="Repetition among passages, by word sequences",
        counted="number",
    ),
    _row(
        "redundancy_tfidf",
        "mean over pairs of chunks with words: TF-IDF cosine, weighted by the run's "
        "distinct chunks",
        TFIDF,
        of_run=True,
        higher_is_better=False,
        headline=2,
        target="redundancy_tfidf",
        short="redund",
        words="Repetition among passages, by words",
        counted="number",
    ),
    _row(
        "redundant_chunks_ngram",
        "chunks whose 3-gram overlap with a higher-ranked one is at least 0.8 / chunks with words",
        higher_is_better=False,
        words="Passages that repeat a higher one, by word sequences",
    ),
    _row(
        "redundant_chunks_tfidf",
        "chunks whose TF-IDF cosine with a higher-ranked one is at least 0.8 / chunks with words",
        TFIDF,
        of_run=True,
        higher_is_better=False,
        words="Passages that repeat a higher one, by words",
    ),
    _row(
        "fact_dispersion",
        "mean number of chunks with a gold fact or an alias of it, over the facts found",
        low=1.0,
        high=None,
        unit="chunks",
        higher_is_better=False,
        needs="gold_facts of which one was found; full chunk texts",
        headline=3,
        target="fact_dispersion",
        words="Passages that repeat the same fact",
    ),
    _row(
        "fact_coverage",
        "gold facts that any chunk contains, directly or by an alias / gold facts",
        needs="gold_facts; full chunk texts",
        headline=4,
        words="Gold facts in the passages",
    ),
    _row(
        "mattr",
        "moving-average type-token ratio: mean share of distinct words over all runs of 100 words "
        "of the chunks in rank order (fewer words: of all)",
        "Covington and McFall 2010",
        headline=5,
        target="mattr",
        words="Variety of words in the passages",
        counted="number",
    ),
    _row(
        "unique_token_ratio",
        "distinct words / words of all chunks together; more text always lowers it",
        words="Distinct words in the passages",
        counted="number",
    ),
    _row(
        "diversity_ok",
        "1 when redundancy_tfidf is within the band of the case's query_type",
        binary=True,
        of_run=True,
        needs="query_type with a band in targets.toml; full chunk texts",
        words="Variety that fits the kind of question",
    ),
)

SECTION = MetricSection(
    "context",
    "Context",
    ROWS,
    "score_context.py",
    labels=("gold_facts", "query_type"),
    needs=("texts",),
    worst_by="redundancy_tfidf",
    alias="context_quality",
)

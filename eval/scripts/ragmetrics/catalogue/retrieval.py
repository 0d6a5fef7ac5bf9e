"""Catalogue rows of the retrieval metrics, which are functions of one Ranking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ragmetrics import retrieval
from ragmetrics.catalogue.metric import Metric, MetricSection, stem_of

MATCHING = 5
"""Version of every definition that depends on matching. Since 2 a text that is exactly as similar
as asked matches; since 3 a coarser chunk matches a support whose snippet it holds, and groups count
in ``doc``; since 4 a support without a heading is a quote, or a whole file where it has none; since
5 a section below the gold heading matches only with words of a quote."""


def _row(name: str, meaning: str, source: str, function: Any = None, **more: Any) -> Metric:
    row: dict[str, Any] = {"needs": "gold supports", "at_k": function is not None}
    row |= {"version": MATCHING} | more
    return Metric(name, "retrieval", meaning, source=source, function=function, **row)


TREC = "trec_eval"
JUDGEMENTS = "gold supports; judgements of passages"

ROWS: tuple[Metric, ...] = (
    _row(
        "evidence_recall",
        "supports in the top k / supports, of the group that is most complete there; without "
        "groups, recall",
        "this toolkit, after multi-hop retrieval (HotpotQA, Yang et al. 2018)",
        retrieval.evidence_recall,
        version=3,
        headline=1,
        overview=2,
        target="evidence_recall@5",
        short="evidence",
        words="Needed evidence in the first {k} passages",
        says="finds {value} of the needed evidence",
    ),
    _row(
        "recall_any",
        "1 when any gold support is in the top k (hit rate)",
        f"{TREC} success",
        retrieval.recall_any,
        binary=True,
        tells_right=3,
        words="Any right passage in the first {k}",
    ),
    _row(
        "recall_all",
        "1 when the needed evidence is complete in the top k: one whole support group, else all",
        "multi-hop retrieval (HotpotQA, Yang et al. 2018)",
        retrieval.recall_all,
        binary=True,
        headline=2,
        words="Sufficient evidence in the first {k}",
        says="finds all needed evidence in the first {k} passages for {value} questions",
    ),
    _row(
        "recall",
        "distinct gold supports in the top k / gold supports",
        f"{TREC} recall",
        retrieval.recall,
        headline=3,
        words="Right passages found in the first {k}",
    ),
    _row(
        "precision",
        "chunks in the top k that match any gold support / k",
        f"{TREC} P",
        retrieval.precision,
        headline=6,
        shown_k=1,
        words="Share of right passages in the first {k}",
    ),
    _row(
        "f1",
        "harmonic mean of precision and recall at k, 0 when both are 0",
        "van Rijsbergen 1979",
        retrieval.f1,
        compared=True,
        words="Balance of precision and recall in the first {k}",
        counted="number",
    ),
    _row(
        "ndcg",
        "discounted gain of the supports' grades / the ideal gain of all gold cut at k; a support "
        "counts once",
        f"Järvelin and Kekäläinen 2002; {TREC} ndcg_cut",
        retrieval.ndcg,
        headline=4,
        overview=3,
        target="ndcg@5",
        words="Right passages near the top of the first {k}",
        counted="number",
    ),
    _row(
        "map",
        "for each gold support found in the top k: chunks down to its rank that bring a support "
        "not found before / that rank; the sum / gold supports",
        f"{TREC} map_cut, where a chunk matches one support at most",
        retrieval.average_precision,
        words="Right passages before wrong ones in the first {k}",
        counted="number",
    ),
    _row(
        "mrr",
        "1 / rank of the first match, 0 when none",
        f"Voorhees 1999; {TREC} recip_rank",
        retrieval.reciprocal_rank,
        headline=5,
        shown_k=0,
        words="How early the first right passage comes",
        counted="number",
    ),
    _row(
        "scope_miss",
        "1 when folder selection left out every folder with gold",
        "this toolkit",
        higher_is_better=False,
        binary=True,
        needs="gold paths; folder_selection in the result",
        version=1,
        compared=True,
        words="Folder selection that leaves out the gold",
    ),
    _row(
        "attribution_hit",
        "1 when a cited reference matches a gold support",
        "this toolkit",
        binary=True,
        needs="gold supports; an answer with references",
        version=6,
        tells_right=2,
        words="Answers that cite a right passage",
    ),
    _row(
        "snippet_recall",
        "gold snippets that a chunk of the top k contains (substring, else Levenshtein) / snippets",
        "this toolkit",
        needs="gold snippets; full chunk texts",
        at_k=True,
        version=2,
        compared=True,
        words="Quoted evidence in the first {k} passages",
    ),
    _row(
        "unjudged",
        "chunks in the top k without a human judgement for the case (neither gold nor graded nor "
        "read to the end in the labeller) / k",
        "this toolkit; 1 - judged@k of ir_measures where k chunks were retrieved",
        needs=JUDGEMENTS,
        at_k=True,
        version=3,
        higher_is_better=False,
        words="Share of unjudged passages in the first {k}",
    ),
    _row(
        "condensed_ndcg",
        "ndcg of the list without its unjudged chunks",
        "Sakai 2007",
        needs=JUDGEMENTS,
        at_k=True,
        version=3,
        words="Order of the judged passages in the first {k}",
        counted="number",
    ),
    _row(
        "bpref",
        "mean over the gold supports of 1 - min(n, R) / min(N, R): n of the N chunks judged "
        "irrelevant rank above it; R supports; 0 for a support that was not retrieved",
        f"Buckley and Voorhees 2004; {TREC} bpref",
        needs=f"{JUDGEMENTS}, one of them irrelevant",
        version=3,
        words="Right passages above those judged irrelevant",
        counted="number",
    ),
    _row(
        "recency_rule_ok",
        "1 when the answer treats conflicting supports as recency_conflict_rule asks",
        "this toolkit",
        binary=True,
        needs="recency_conflict_rule; an answer",
        version=4,
        compared=True,
        words="Conflicts answered by the recency rule",
    ),
)

PER_SEARCH = frozenset({"evidence_recall", "recall", "recall_any", "recall_all", "snippet_recall"})
"""Metrics that take the first k of each search, together, where an answer saw several searches."""


def per_search_definitions(metrics: Iterable[Metric]) -> dict[str, str]:
    """Return the definitions of those metrics that change when an answer saw several searches."""
    touched = (metric for metric in metrics if stem_of(metric.name) in PER_SEARCH)
    return {metric.name: metric.per_search_definition for metric in touched}


GOLD_LABELS = (
    "answerable",
    "relevant_chunks",
    "chunk_relevance_grades",
    "gold_supports",
    "required_support_groups",
    "relevant_docs",
    "relevance_grades",
    "gold_contexts",
)
"""Fields of a case that name the passages it needs."""

SECTION = MetricSection(
    "retrieval",
    "Retrieval",
    ROWS,
    "score_retrieval.py",
    labels=(*GOLD_LABELS, "recency_conflict_rule", "expected_key_facts"),
    worst_by="ndcg@5",
)

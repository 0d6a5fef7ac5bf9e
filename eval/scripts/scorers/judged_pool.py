"""The judged and unjudged passages of a list, and the range that unjudged ones leave open."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

from ragmetrics import matching
from ragmetrics.gold import CUT, CaseGold, doc_of, whole_text
from ragmetrics.matching import Matches, Passage
from ragmetrics.retrieval import Ranking, evidence_recall, evidence_recall_at_most, precision
from records.cases import TestCase
from records.judged import JudgedRow, JudgedRows, key_of_passage
from records.results import RetrievedChunk
from records.scores import ScoreLine

NO_JUDGEMENTS, NO_NEGATIVES = "no judgements", "nothing judged irrelevant"

NO_TEXTS = "no chunk texts"


class JudgedPool(NamedTuple):
    """The judgements of a list. They are the ranks of ``unjudged`` chunks and of those judged
    ``wrong`` (each passage once), and how many ``negatives`` the case has, retrieved or not."""

    unjudged: list[int]
    wrong: list[int]
    negatives: int

    def unjudged_to(self, k: int) -> int:
        """How many of the top k have no human judgement."""
        return bisect_right(self.unjudged, k)


def pool_of(
    case: TestCase,
    gold: CaseGold,
    matches: Matches,
    chunks: Sequence[RetrievedChunk],
    judged: JudgedRows,
) -> JudgedPool | str:
    """Return the judgements of the list, or the reason why none are known."""
    if gold.mode in ("chunk", "doc"):
        names: Sequence[str | None] = (
            [chunk.chunk_id for chunk in chunks]
            if gold.mode == "chunk"
            else [doc_of(chunk) for chunk in chunks]
        )
        return _graded_pool(case, gold, matches, names)
    rows = judged.get(case.id, ())
    graded = {name for name, grade in case.chunk_relevance_grades.items() if grade == 0}
    if not rows and not graded:
        return NO_JUDGEMENTS
    hits = set(matches.hits)
    known = {row.key for row in rows}
    hit_keys = {key_of_passage(chunks[rank - 1]) for rank in hits} if rows else set()
    negative = {
        row.key
        for row in rows
        if row.grade == 0 and row.key not in hit_keys and not _is_gold(row, gold)
    }
    unjudged, wrong, seen = [], [], set()
    for rank, chunk in enumerate(chunks, 1):
        if rank in hits:
            continue
        name = chunk.chunk_id
        if name not in graded:
            if rows and whole_text(chunk) is None:
                return CUT if chunk.truncated else NO_TEXTS
            name = key_of_passage(chunk) if rows else ""
            if name not in known:
                unjudged.append(rank)
                continue
            if name not in negative:
                continue
        if name not in seen:
            seen.add(name)
            wrong.append(rank)
    return JudgedPool(unjudged, wrong, len(negative) + len(graded))


def _graded_pool(
    case: TestCase, gold: CaseGold, matches: Matches, names: Sequence[str | None]
) -> JudgedPool | str:
    """The same where ids are graded: 0 is judged irrelevant, below 0 (as in trec_eval) unjudged."""
    if gold.mode == "chunk":
        grades = case.chunk_relevance_grades
    else:
        grades = {matching.same_form(doc): g for doc, g in case.relevance_grades.items()}
    negative = {name for name, grade in grades.items() if grade == 0}
    if not negative:
        return NO_JUDGEMENTS
    hits = set(matches.hits)
    unjudged, wrong, seen = [], [], set()
    for rank, name in enumerate(names, 1):
        if rank in hits:
            continue
        if name not in negative:
            unjudged.append(rank)
        elif name not in seen:
            seen.add(name)
            wrong.append(rank)
    return JudgedPool(unjudged, wrong, len(negative))


def _is_gold(row: JudgedRow, gold: CaseGold) -> bool:
    """True when a judged passage is a gold support by its place: its mark came later than its row.

    By its words it is recognised only where it was retrieved: a row keeps no text. Its text counts
    as cut, since there was one."""
    if gold.mode not in ("anchor", "document"):
        return False
    passage = Passage(matching.anchor(row.rel_path, row.heading_path), cut=True)
    return any(
        matching.matches_place(support, quotes, passage)
        for support, quotes in zip(gold.keys, gold.quotes, strict=True)
    )


RANGED = ("precision", "evidence_recall")
"""Metrics that the unjudged passages leave between two ends. Recall and NDCG have none, since
relevant passages outside the list raise their denominator."""


def ends_of(ranking: Ranking, k: int, unjudged: int) -> list[float]:
    """The two ends of each metric of RANGED for one case at k."""
    right = precision(ranking, k)
    return [
        right,
        right + unjudged / k,
        evidence_recall(ranking, k),
        evidence_recall_at_most(ranking, k, unjudged),
    ]


class UnjudgedRanges:
    """Means of precision and evidence_recall if all unjudged chunks were irrelevant, or relevant.

    Over the cases with judgements; of a case that was asked several times the mean counts.
    """

    def __init__(self, ks: tuple[int, ...]) -> None:
        self._ks = ks
        self._cases: dict[str, list[list[float]]] = {}

    def take(self, line: ScoreLine) -> None:
        ends = (line.evidence or {}).get("ranges")
        if ends is not None:
            flat = [end for at_k in ends for end in at_k]
            self._cases.setdefault(line.case_id, []).append(flat)

    def means(self) -> dict[str, list[float]]:
        """``{"precision@5": [low, high], …}``, and for evidence_recall."""
        rows = [
            [fsum(column) / len(column) for column in zip(*repeats, strict=True)]
            for repeats in self._cases.values()
        ]
        ends = [fsum(column) / len(rows) for column in zip(*rows, strict=True)]
        names = [f"{name}@{k}" for k in self._ks for name in RANGED]
        return {name: ends[2 * at : 2 * at + 2] for at, name in enumerate(names)}

"""The searches of one answer against its gold supports: what each brought, and what all did; pure.

A search is a list of passages, and the union of all is one long list: each search behind the one
before it. So everything here rests on ``matching`` and ``retrieval``, over whole lists.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ragmetrics import retrieval
from ragmetrics.matching import Matches


class UnionOfSearches(NamedTuple):
    """The matches of all searches together. ``complete_at``: the number (from 1) of the search at
    which the needed evidence was complete, None when it never was."""

    matches: Matches
    evidence_recall: float
    complete_at: int | None


def evidence_recall(
    matches: Matches, grades: Sequence[float], groups: Sequence[Sequence[int]] | None, length: int
) -> float:
    """``retrieval.evidence_recall`` of a whole list of ``length`` passages; 0 for an empty one.

    Raises ValueError when there is no gold support.
    """
    ranking = retrieval.ranking(matches, grades, groups)
    return retrieval.evidence_recall(ranking, max(length, 1))


def union(
    searches: Sequence[Matches],
    lengths: Sequence[int],
    grades: Sequence[float],
    groups: Sequence[Sequence[int]] | None = None,
) -> UnionOfSearches:
    """The searches as one list, in order; ``lengths`` are the numbers of their passages.

    Raises ValueError when there is no gold support.
    """
    first: list[int | None] = [None] * len(grades)
    hits: list[int] = []
    ends: list[int] = []
    start = 0
    for matches, length in zip(searches, lengths, strict=True):
        for support, rank in enumerate(matches.first):
            if rank is not None and first[support] is None:
                first[support] = start + rank
        hits += [start + rank for rank in matches.hits]
        start += length
        ends.append(start)
    matches = Matches(first, hits)
    complete = retrieval.ranking(matches, grades, groups).complete
    number = next((number for number, end in enumerate(ends, 1) if complete <= end), None)
    return UnionOfSearches(matches, evidence_recall(matches, grades, groups, start), number)


def lost_supports(union_matches: Matches, retrieved: Matches) -> list[int]:
    """Indices of the gold supports that a search matched and no passage of the answer does."""
    pairs = zip(union_matches.first, retrieved.first, strict=True)
    return [
        support
        for support, (searched, seen) in enumerate(pairs)
        if searched is not None and seen is None
    ]


def new_passages(searches: Sequence[Sequence[Hashable]]) -> list[list[int]]:
    """Return, for each search, the ranks (from 1) of the passages not seen before. A passage is
    identified by its key."""
    seen: set[Hashable] = set()
    fresh: list[list[int]] = []
    for keys in searches:
        ranks = []
        for rank, key in enumerate(keys, 1):
            if key not in seen:
                seen.add(key)
                ranks.append(rank)
        fresh.append(ranks)
    return fresh

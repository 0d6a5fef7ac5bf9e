"""Results by ids, as large runs have them: all that their retrieval scores depend on, in brief."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from scorers.chunks import are_in_order
from storage import TestCase, TestResult

MOST_GOLD = 16
"""Gold chunks up to which a search for each is quicker than a look-up of each id."""

Listed = tuple[Any, ...]
"""A result by ids: the rank of each gold chunk (0: not there), the grade of each, and whether the
references name any (None: there are none); flat, since it is hashed for every result."""


def as_listed(case: TestCase, result: TestResult) -> Listed | None:
    """All that the scores depend on when gold and lists are ids; None when it is more than that."""
    grades = case.chunk_relevance_grades
    if (
        case.answerable is False
        or case.relevant_chunks
        or case.gold_supports
        or case.recency_conflict_rule
        or result.folder_selection
        or not 0 < len(grades) <= MOST_GOLD
    ):
        return None
    ids: Sequence[Any] = result.retrieved
    if ids and type(ids[0]) is not str:
        if not are_in_order(ids):
            return None
        ids = [chunk.chunk_id for chunk in ids]
    ranks = _ranks(grades, ids)
    if ranks is None or (ids and not ids[0] and not any(ids)):
        return None
    cited = None
    if result.references:
        cited = any((reference.chunk_id or "") in grades for reference in result.references)
    return *ranks, *grades.values(), cited


def _ranks(names: Iterable[str], ids: Sequence[str]) -> list[int] | None:
    """The rank of each name among the ids, 0 where it is none of them.

    None when a name stands there twice or an item is no string. Most names are in none of the ids:
    one search through all their text is quicker than a comparison with each or a hash of each.
    """
    try:
        text = "\n".join(ids)
    except TypeError:
        return None
    ranks = []
    for name in names:
        rank = 0
        if name in text and name in ids:
            rank = ids.index(name) + 1
            if name in ids[rank:]:
                return None
        ranks.append(rank)
    return ranks

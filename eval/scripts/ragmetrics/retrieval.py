"""Retrieval metrics of one question, from where its gold supports were found; pure.

Every function takes a ``Ranking`` and a cut-off ``k`` (a whole number from 1 up) and returns a
float in [0, 1]; 1.0 is a perfect result. A list shorter than k counts as padded with misses. All
are defined for at least one gold support; a case without gold has no Ranking (not applicable).

In the modes ``chunk`` and ``doc``, with no chunk listed twice, the values equal trec_eval's
``recall``, ``P``, ``ndcg_cut``, ``map_cut``, ``recip_rank`` and ``success``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from math import log2
from typing import Literal, NamedTuple

from ragmetrics.matching import Matches, evidence_rank
from ragmetrics.stats.arrays import Floats, Ints, np

Gain = Literal["linear", "exp"]
_NEVER = 1 << 60
"""The rank of what was not retrieved: beyond every cut-off."""


class Ranking(NamedTuple):
    """Everything about one question that its metrics depend on.

    ``first``: rank of the first chunk that matches each gold support, ascending (_NEVER at the
    end); ``grades``: the supports' grades (> 0) in the same order; ``hits``: ranks of all matching
    chunks, ascending; ``complete``: the rank at which the needed evidence is complete; ``groups``:
    for each group of supports that is enough by itself, the ranks of its supports, ascending; ()
    when all supports are needed.
    """

    first: tuple[int, ...]
    grades: tuple[float, ...]
    hits: tuple[int, ...]
    complete: int
    groups: tuple[tuple[int, ...], ...] = ()


def ranking(
    matches: Matches,
    grades: Sequence[float],
    groups: Sequence[Sequence[int]] | None = None,
    depth: int = _NEVER,
) -> Ranking:
    """A Ranking from matches. Raises ValueError when there is no gold support.

    Only the first match is kept beyond ``depth``, the largest cut-off of interest: rankings that
    no metric can tell apart are then equal.
    """
    if not grades:
        raise ValueError("a ranking needs at least one gold support")
    hits = matches.hits
    if not hits:
        pairs = sorted([(_NEVER, grade) for grade in grades])
    else:
        best = hits[0]
        pairs = sorted(
            [
                (_NEVER if rank is None or (rank > depth and rank != best) else rank, grade)
                for rank, grade in zip(matches.first, grades, strict=True)
            ]
        )
    return Ranking(
        tuple([rank for rank, _ in pairs]),
        tuple([grade for _, grade in pairs]),
        tuple([rank for rank in hits if rank <= depth]),
        evidence_rank(matches.first, groups) or _NEVER,
        tuple([_within(matches.first, group, depth) for group in groups]) if groups else (),
    )


def _within(first: Sequence[int | None], group: Sequence[int], depth: int) -> tuple[int, ...]:
    """The ranks of a group's supports down to a depth, ascending; each support counts once."""
    ranks = (first[index] for index in set(group))
    return tuple(sorted(_NEVER if rank is None or rank > depth else rank for rank in ranks))


def recall_any(ranking: Ranking, k: int) -> float:
    """1.0 when any gold support is in the top k (hit rate; trec_eval's success)."""
    return 1.0 if ranking.first[0] <= k else 0.0


def recall_all(ranking: Ranking, k: int) -> float:
    """1.0 when the needed evidence is complete in the top k (support groups, else all supports)."""
    return 1.0 if ranking.complete <= k else 0.0


def recall(ranking: Ranking, k: int) -> float:
    """Share of the gold supports that are in the top k; a support counts once."""
    return bisect_right(ranking.first, k) / len(ranking.first)


def evidence_recall(ranking: Ranking, k: int) -> float:
    """Share of the needed evidence that is in the top k, by the group that comes nearest to whole.

    A group of supports is enough by itself, so the best one counts: its supports in the top k /
    all its supports, also when it has more than k. Supports in no group are related and do not
    count. Without groups all supports are needed: ``recall``. It is 1.0 exactly when
    ``recall_all`` is.
    """
    if not ranking.groups:
        return recall(ranking, k)
    return max(bisect_right(group, k) / len(group) for group in ranking.groups)


def precision(ranking: Ranking, k: int) -> float:
    """Share of the top k places whose chunk matches any gold support; divides by k always."""
    return bisect_right(ranking.hits, k) / k


def f1(ranking: Ranking, k: int) -> float:
    """Harmonic mean of precision and recall at k; 0.0 when both are 0."""
    p, r = precision(ranking, k), recall(ranking, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def evidence_recall_at_most(ranking: Ranking, k: int, unjudged: int) -> float:
    """Return evidence_recall if each unjudged chunk of the top k had a missing support."""
    groups = ranking.groups or (ranking.first,)
    return max(min(1.0, (bisect_right(group, k) + unjudged) / len(group)) for group in groups)


def condensed(matches: Matches, unjudged: Sequence[int]) -> Matches:
    """Return the matches of the list without the unjudged chunks at the ranks in ``unjudged``.

    These ranks are ascending, and none of them is a match: what matches is judged.
    """
    moved = [rank - bisect_right(unjudged, rank) for rank in matches.hits]
    first = [
        None if rank is None else rank - bisect_right(unjudged, rank) for rank in matches.first
    ]
    return Matches(first, moved)


def bpref(matches: Matches, wrong: Sequence[int], negatives: int) -> float | None:
    """Measure how few passages judged irrelevant rank above the supports (trec_eval's bpref).

    The mean over the R gold supports of 1 - min(n, R) / min(N, R), where n judged irrelevant ones
    stand above the support's first match; 0 for a support that was not retrieved. ``wrong``: the
    ranks of those that are judged irrelevant, ascending; ``negatives``: N, all that are judged so
    for the case, retrieved or not. In [0, 1]; None without any, since nothing then tells. Buckley
    and Voorhees 2004.
    """
    if negatives < 1:
        return None
    supports = len(matches.first)
    most = min(negatives, supports)
    above = (bisect_right(wrong, rank) for rank in matches.first if rank is not None)
    return sum(1.0 - min(n, most) / most for n in above) / supports


def ndcg(ranking: Ranking, k: int, gain: Gain = "linear") -> float:
    """Discounted gain over the ideal one (Järvelin and Kekäläinen 2002), discount log2(rank + 1).

    A support pays once, at the first chunk that matches it; a chunk at which several are found
    pays the highest of their grades. The ideal is over all gold, sorted by grade, cut at k: the
    value never exceeds 1. ``gain`` is the grade (``linear``) or 2^grade - 1 (``exp``).
    """
    total = 0.0
    last, best = 0, 0.0
    for rank, grade in zip(ranking.first, ranking.grades, strict=True):
        if rank > k:
            break
        if rank != last:
            total += best
            last, best = rank, 0.0
        worth = _worth(grade, gain) * _discount(rank)
        if worth > best:
            best = worth
    return min(1.0, (total + best) / _ideal(ranking.grades, k, gain)) if last else 0.0


@lru_cache(maxsize=4096)
def _ideal(grades: tuple[float, ...], k: int, gain: Gain) -> float:
    best = sorted(grades, reverse=True)[:k]
    return sum(_worth(grade, gain) * _discount(rank) for rank, grade in enumerate(best, 1))


def _worth(grade: float, gain: Gain) -> float:
    return grade if gain == "linear" else 2.0**grade - 1.0


@lru_cache(maxsize=4096)
def _discount(rank: int) -> float:
    return 1.0 / log2(rank + 1)


def average_precision(ranking: Ranking, k: int) -> float:
    """Mean over all gold supports of the precision at the rank where each is found, 0 beyond k.

    The precision counts chunks that bring a support not found before, so duplicates cannot raise
    it. Equals trec_eval's map_cut where a chunk matches one support at most.
    """
    total = 0.0
    fresh = last = 0
    for rank in ranking.first:
        if rank > k:
            break
        if rank != last:
            fresh, last = fresh + 1, rank
        total += fresh / rank
    return total / len(ranking.first)


def reciprocal_rank(ranking: Ranking, k: int = _NEVER) -> float:
    """1 / rank of the first match in the top k; 0.0 when there is none."""
    first = ranking.first[0]
    return 1.0 / first if first <= k and first != _NEVER else 0.0


class RankColumns:
    """Rankings by ids as arrays: each metric of this module for all of them at once.

    A row is a question: ``first[i][j]`` is the rank of its support j (None: not retrieved), and
    ``grades[i][j]`` the support's grade. Each support has a rank of its own. The methods have the
    names of the functions, and equal their floats bit for bit.
    """

    def __init__(
        self,
        first: Sequence[Sequence[int | None]],
        grades: Sequence[tuple[float, ...]],
        gain: Gain = "linear",
    ) -> None:
        self._size = np.array([len(row) for row in grades])
        self._grades, self._gain = grades, gain
        shape = len(grades), int(self._size.max(initial=1))
        ranks, worth = np.full(shape, _NEVER), np.zeros(shape)
        for row, (own, of_own) in enumerate(zip(first, grades, strict=True)):
            ranks[row, : len(own)] = [_NEVER if rank is None else rank for rank in own]
            worth[row, : len(own)] = [_worth(grade, gain) for grade in of_own]
        present = np.arange(shape[1]) < self._size[:, None]
        self._complete = np.where(present, ranks, 0).max(axis=1)
        order = np.argsort(ranks, axis=1, kind="stable")
        self._first = np.take_along_axis(ranks, order, axis=1)
        rank, of_entry = np.unique(self._first, return_inverse=True)
        discounts = np.array([_discount(each) for each in rank.tolist()])
        worth = np.take_along_axis(worth, order, axis=1)
        gains = worth * discounts[of_entry.reshape(shape)]
        self._gains = np.add.accumulate(gains, axis=1)
        places = np.arange(1, shape[1] + 1) / self._first
        self._precisions = np.add.accumulate(places, axis=1)

    def _hits(self, k: int) -> Ints:
        hits: Ints = (self._first <= k).sum(axis=1)
        return hits

    def _down_to(self, k: int, sums: Floats) -> Floats:
        """The sum over the supports in the top k."""
        hits = self._hits(k)
        last = np.maximum(hits - 1, 0)[:, None]
        total: Floats = np.where(hits > 0, np.take_along_axis(sums, last, axis=1)[:, 0], 0.0)
        return total

    def recall_any(self, k: int) -> Floats:
        """See ``recall_any``."""
        found: Floats = (self._first[:, 0] <= k).astype(float)
        return found

    def recall_all(self, k: int) -> Floats:
        """See ``recall_all``."""
        found: Floats = (self._complete <= k).astype(float)
        return found

    def recall(self, k: int) -> Floats:
        """See ``recall``."""
        shares: Floats = self._hits(k) / self._size
        return shares

    evidence_recall = recall

    def precision(self, k: int) -> Floats:
        """See ``precision``."""
        shares: Floats = self._hits(k) / k
        return shares

    def f1(self, k: int) -> Floats:
        """See ``f1``."""
        p, r = self.precision(k), self.recall(k)
        means: Floats = 2 * p * r / np.where(p + r > 0, p + r, 1.0)
        return means

    def ndcg(self, k: int) -> Floats:
        """See ``ndcg``."""
        ideals = {row: _ideal(row, k, self._gain) for row in set(self._grades)}
        ideal = np.array([ideals[row] for row in self._grades])
        shares: Floats = np.minimum(1.0, self._down_to(k, self._gains) / ideal)
        return shares

    def average_precision(self, k: int) -> Floats:
        """See ``average_precision``."""
        means: Floats = self._down_to(k, self._precisions) / self._size
        return means

    def reciprocal_rank(self, k: int = _NEVER - 1) -> Floats:
        """See ``reciprocal_rank``."""
        first = self._first[:, 0]
        ranks: Floats = np.where(first <= k, 1.0 / first, 0.0)
        return ranks


def snippet_recall(found_at: Sequence[int | None], k: int) -> float:
    """Share of the gold snippets that a chunk of the top k contains. Needs at least one snippet."""
    return sum(1 for rank in found_at if rank is not None and rank <= k) / len(found_at)


def recency_rule_ok(
    rule: Literal["cite_newer", "cite_both", "acknowledge_both"],
    cited: Sequence[Sequence[int]],
    dates: Sequence[str | None],
    facts_in_answer: bool,
) -> float:
    """1.0 when an answer treats gold supports that disagree as the case asks, else 0.0.

    ``cited[j]``: indices of the supports that reference j matches, in the order cited; ``dates``:
    ISO date of each support (the newest are those of the latest date; without dates, the last
    listed one). ``cite_newer``: the newest is cited before any older one. ``cite_both``: all are
    cited. ``acknowledge_both``: all are cited, or the answer holds the case's key facts.
    """
    all_cited = {index for matched in cited for index in matched} >= set(range(len(dates)))
    if rule == "cite_both":
        return float(all_cited)
    if rule == "acknowledge_both":
        return float(all_cited or facts_in_answer)
    latest = max(date or "" for date in dates)
    newest = {i for i, date in enumerate(dates) if date == latest} or {len(dates) - 1}
    first = next((matched for matched in cited if matched), ())
    return float(not newest.isdisjoint(first))

"""Finds subsets whose items differ from the others, with p-values for all subsets together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragmetrics.stats.arrays import Floats, Ints, NDArray, np

if TYPE_CHECKING:
    Bools = NDArray[np.bool_]

PERMUTATIONS = 2000

_BLOCK = 4_000_000
"""Numbers that are permuted together: what bounds the memory."""

_TIES = 1e-7


class MarkedItems(NamedTuple):
    """``members``: subsets by items, ``marked``: by item. ``clusters``: a number for each item;
    items with the same number share their luck. ``whole``: permute their marks together; else each
    mark by itself, and correlation within clusters only widens the spread of a measure."""

    members: Bools
    marked: Bools
    clusters: Sequence[int]
    whole: bool = True


def adjusted_p(
    items: MarkedItems,
    weights: Floats,
    rng: np.random.Generator,
    *,
    before: MarkedItems | None = None,
    permutations: int = PERMUTATIONS,
) -> Floats:
    """For each subset, the chance that any subset is at least as extreme when marks are permuted.

    The measure of a subset is the upper tail of the hypergeometric distribution (mid-p) as a normal
    quantile, divided by its spread where clusters make that larger than 1.
    ``weights`` (above 0) share the level among the subsets: those of weight 2 may have a p twice as
    large. p is in (0, 1]; the chance that any p is at most alpha is at most alpha when the marks of
    clusters of equal size are exchangeable (Westfall & Young 1993, weighted as in Genovese, Roeder
    & Wasserman 2006). ``before``: the same subsets at another time; then the measure is how much
    more than there their share of marks exceeds the share of all.
    """
    from scipy.special import ndtr

    scores = _scores(items, before, rng, permutations)
    if items.whole:
        scores /= np.maximum(scores.std(axis=0), 1.0)
    else:
        scores[0] /= _spread(items)
    return _largest(ndtr(-scores), weights)


def clustered_p(
    members: Bools,
    values: Floats,
    clusters: Sequence[int],
    weights: Floats,
    rng: np.random.Generator,
    *,
    two_sided: bool = False,
    permutations: int = PERMUTATIONS,
) -> Floats:
    """For each subset, the chance that any subset is at least as extreme when clusters differ by
    chance alone.

    ``members``: subsets by items. ``values``: by item, 0 or 1, or -1 to 1. ``clusters``: a number
    for each item; items with the same number are correlated, and clusters have any size. The
    measure is a score statistic: the sum of values above the mean in a subset, divided by its
    standard deviation under one correlation within all clusters, and by the spread over the
    permutations where that is larger than 1. Cluster effects are permuted over all clusters, each
    scaled to the size of its cluster; residuals are permuted within their cluster.
    ``two_sided``: also subsets with smaller values. p is in (0, 1]; all are 1 where values do not
    differ. ``weights`` as in adjusted_p. Source: permutation of standardised residuals (Freedman &
    Lane 1983) with the maximum over subsets (Westfall & Young 1993).
    """
    from scipy.special import ndtr

    order, starts, sizes = _by_cluster(clusters)
    residuals = (values - values.mean())[order]
    variance = float((residuals**2).mean())
    if variance < _TIES**2:
        return np.ones(len(members))
    sums = np.add.reduceat(residuals, starts)
    inner = _correlation(residuals / np.sqrt(variance), starts, sizes)
    scales = np.sqrt(sizes * (1 + (sizes - 1) * inner))
    apart = (members - members.mean(axis=1, keepdims=True)).T[order]
    whole = np.add.reduceat(apart, starts)
    spread = np.sqrt(variance * ((1 - inner) * (apart**2).sum(0) + inner * (whole**2).sum(0)))
    effects, by_effect = sums / scales, whole * (scales / sizes)[:, None]
    rest = residuals - np.repeat(sums / sizes, sizes)
    # Within a cluster of equal values nothing can be permuted.
    mixed = np.maximum.reduceat(np.abs(rest), starts) > _TIES
    blocks = [
        starts[mixed & (sizes == size), None] + np.arange(size) for size in np.unique(sizes[mixed])
    ]
    parts = [(apart.T @ residuals)[None]]
    step = max(1, _BLOCK // len(rest))
    for start in range(1, permutations, step):
        rows = min(step, permutations - start)
        drawn = rng.permuted(np.tile(effects, (rows, 1)), axis=1) @ by_effect
        for block in blocks:
            values_drawn = rng.permuted(np.tile(rest[block], (rows, 1)), axis=1)
            drawn += values_drawn.reshape(rows, -1) @ apart[block.ravel()]
        parts.append(drawn)
    scores = np.concatenate(parts) / np.maximum(spread, _TIES)
    scores /= np.maximum(scores.std(axis=0), 1.0)
    tails = 2 * ndtr(-np.abs(scores)) if two_sided else ndtr(-scores)
    return _largest(tails, weights)


def _correlation(residuals: Floats, starts: Ints, sizes: Ints) -> float:
    """The correlation of two residuals of a cluster, 0 to 1; 0 where no cluster has two.

    Each cluster counts by the root of its size, so that neither the largest nor the many small
    ones decide alone.
    """
    several = sizes > 1
    if not several.any():
        return 0.0
    pairs = np.add.reduceat(residuals, starts) ** 2 - np.add.reduceat(residuals**2, starts)
    n = sizes[several]
    means = pairs[several] / (n * (n - 1))
    return float(np.clip(np.average(means, weights=np.sqrt(n)), 0, 1))


def _largest(tails: Floats, weights: Floats) -> Floats:
    """The share of rows whose most extreme tail is at least as extreme as each of the first row."""
    from scipy.special import ndtri

    tails = np.clip(tails * (weights.max() / weights), 1e-300, 1 - 1e-12)
    scores = -ndtri(tails)
    largest = scores.max(axis=1)
    # Equal maxima are frequent, since counts are few: the rest of the scores decides between them.
    largest += _TIES * np.clip(scores, 0, None).mean(axis=1)
    own = scores[0] + (largest[0] - scores[0].max())
    return np.asarray((largest[:, None] >= own - _TIES * 1e-3).mean(axis=0))


def _spread(items: MarkedItems) -> Floats:
    """For each subset, the spread of its measure by the correlation of marks within clusters, as a
    multiple of that of independent marks; at least 1."""
    order, starts, sizes = _by_cluster(items.clusters)

    def together(values: Floats) -> Floats:
        """Sums of products of two different items of a cluster."""
        sums = np.add.reduceat(values[..., order], starts, axis=-1)
        return np.asarray((sums**2).sum(axis=-1) - (values**2).sum(axis=-1))

    share = items.marked.mean()
    pairs = float((sizes * (sizes - 1)).sum()) * share * (1 - share)
    correlation = np.clip(together(items.marked - share) / max(pairs, 1e-12), 0, 1)
    apart = items.members - items.members.mean(axis=1, keepdims=True)
    effect = 1 + correlation * together(apart) / (apart**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(effect, 1)))


def _scores(
    items: MarkedItems, before: MarkedItems | None, rng: np.random.Generator, permutations: int
) -> Floats:
    """The measure of each subset (column), of the marks as they are (first row) and permuted."""
    counts, sizes = _counts(items, rng, permutations), items.members.sum(axis=1)
    n, marked = items.marked.size, int(items.marked.sum())
    scores = np.empty(counts.shape)
    for size in set(sizes.tolist()):
        columns = np.flatnonzero(sizes == size)
        scores[:, columns] = _normal_scores(n, marked, size)[counts[:, columns]]
    if before is None:
        return scores
    earlier, times = _counts(before, rng, permutations), before.members.sum(axis=1)
    share = before.marked.mean()
    ratio = np.where(times > 0, sizes / np.maximum(times, 1), 0.0)
    spread = np.sqrt(_variance(n, marked / n, sizes)) + 1e-12
    error = ratio**2 * _variance(before.marked.size, share, times)
    rise = scores * spread - ratio * (earlier - times * share)
    return np.asarray(rise / np.sqrt(spread**2 + error))


def _counts(items: MarkedItems, rng: np.random.Generator, permutations: int) -> Ints:
    """How many marks each subset has, with the marks as they are and permuted."""
    n = items.marked.size
    columns = items.members.T.astype(np.float32)
    places = _places(items.clusters if items.whole else range(n))
    parts = [items.marked[None].astype(np.float32) @ columns]
    step = max(1, _BLOCK // max(n, 1))
    for start in range(1, permutations, step):
        rows = min(step, permutations - start)
        drawn = np.empty((rows, n), np.float32)
        for place in places:
            marks = items.marked[place]
            order = np.tile(np.arange(len(place)), (rows, 1))
            drawn[:, place.ravel()] = marks[rng.permuted(order, axis=1)].reshape(rows, -1)
        parts.append(drawn @ columns)
    return np.rint(np.concatenate(parts)).astype(np.int64)


def _places(clusters: Sequence[int]) -> list[Ints]:
    """For each size of clusters, where their items are: a row a cluster."""
    order, _, sizes = _by_cluster(clusters)
    size_of = np.repeat(sizes, sizes)
    return [order[size_of == size].reshape(-1, size) for size in sorted(set(sizes.tolist()))]


def _by_cluster(clusters: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """The items in the order of their clusters, where each cluster begins, and its size."""
    _, number, sizes = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
    return np.argsort(number, kind="stable"), np.cumsum(sizes) - sizes, sizes


def _variance(n: int, share: float, sizes: Floats) -> Floats:
    """The variance of how many marks a subset has, when marks are permuted."""
    return np.asarray(sizes * (n - sizes) / max(n - 1, 1) * share * (1 - share))


def _normal_scores(n: int, marked: int, size: int) -> Floats:
    """For 0 to ``size`` marks in a subset, the normal quantile of the mid-p of the upper tail."""
    from scipy.special import gammaln, ndtri

    def ways(total: int, chosen: Ints) -> Ints:
        return np.asarray(gammaln(total + 1) - gammaln(chosen + 1) - gammaln(total - chosen + 1))

    possible = np.arange(max(0, size - (n - marked)), min(size, marked) + 1)
    chance = np.exp(
        ways(size, possible) + ways(n - size, marked - possible) - ways(n, np.array(marked))
    )
    tail = np.cumsum(chance[::-1])[::-1] - chance / 2
    scores = np.full(size + 1, np.nan)
    scores[possible] = -ndtri(np.clip(tail, 1e-300, 1 - 1e-12))
    return scores

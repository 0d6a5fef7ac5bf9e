"""How well a score or a verdict fits labels of people, with intervals over groups of rows.

Rows of one source document or conversation are not independent: the bootstrap draws groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Statistic = Callable[[Floats], float | None]
    """A number from one weight a row; None when it is undefined for these weights."""

RESAMPLES = 1000


def auroc(
    labels: Sequence[int], scores: Sequence[float], weights: Floats | None = None
) -> float | None:
    """Chance that a positive row scores above a negative one, ties half; in [0, 1], 0.5 is chance.

    ``weights``: how often each row counts. None without a row of either class. (Mann-Whitney U /
    pq.)
    """
    import numpy as np

    positive = np.asarray(labels, dtype=bool)
    _, rank = np.unique(np.asarray(scores, dtype=float), return_inverse=True)
    weight = np.ones(len(positive)) if weights is None else weights
    ups = np.bincount(rank, weights=weight * positive)
    downs = np.bincount(rank, weights=weight * ~positive)
    total = ups.sum() * downs.sum()
    if not total:
        return None
    below = np.cumsum(downs) - downs
    return float(ups @ (below + downs / 2) / total)


def balanced_accuracy(
    labels: Sequence[int], verdicts: Sequence[bool], weights: Floats | None = None
) -> float | None:
    """Mean share judged rightly of positives and of negatives; None without both classes."""
    import numpy as np

    positive = np.asarray(labels, dtype=bool)
    said = np.asarray(verdicts, dtype=bool)
    weight = np.ones(len(positive)) if weights is None else weights
    ups, downs = weight @ positive, weight @ ~positive
    if not ups or not downs:
        return None
    return float((weight @ (positive & said)) / ups + (weight @ (~positive & ~said)) / downs) / 2


def precision_recall_f1(
    labels: Sequence[int], verdicts: Sequence[bool], weights: Floats | None = None
) -> tuple[float | None, float | None, float | None]:
    """Precision, recall and F1 of the verdict "positive"; None where the denominator is 0."""
    import numpy as np

    positive = np.asarray(labels, dtype=bool)
    said = np.asarray(verdicts, dtype=bool)
    weight = np.ones(len(positive)) if weights is None else weights
    hits = float(weight @ (positive & said))
    flagged, wanted = float(weight @ said), float(weight @ positive)
    return (
        hits / flagged if flagged else None,
        hits / wanted if wanted else None,
        2 * hits / (flagged + wanted) if flagged + wanted else None,
    )


def _ranks(values: Sequence[float]) -> Floats:
    """Ranks from 1, equal values share the mean of theirs."""
    import numpy as np

    _, place, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: Floats = (last - counts + 1 + last) / 2
    return middle[place]


def pearson(
    one: Sequence[float], other: Sequence[float], weights: Floats | None = None
) -> float | None:
    """Linear correlation in [-1, 1]; None for fewer than two rows or a constant side."""
    import numpy as np

    x, y = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    weight = np.ones(len(x)) if weights is None else weights
    if len(x) < 2 or not weight.sum():
        return None
    x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
    spread = float(np.sqrt((weight @ x**2) * (weight @ y**2)))
    return float(np.clip(weight @ (x * y) / spread, -1, 1)) if spread > 1e-12 else None


def spearman(
    one: Sequence[float], other: Sequence[float], weights: Floats | None = None
) -> float | None:
    """Correlation of ranks, ties sharing theirs; None for fewer than two rows or a constant side.

    With weights each row stands for that many equal rows, which share their ranks.
    """
    import numpy as np

    if weights is not None:
        times = weights.astype(int)
        return spearman(np.repeat(one, times).tolist(), np.repeat(other, times).tolist())
    if not len(one):
        return None
    return pearson(_ranks(one).tolist(), _ranks(other).tolist())


def interval(
    groups: Sequence[str],
    statistic: Statistic,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> tuple[float, float] | None:
    """95 % percentile interval by drawing groups with replacement.

    ``statistic`` gets, for each draw, how often every row counts. None with fewer than two groups,
    or when more than one draw in ten leaves the statistic undefined.
    """
    import numpy as np

    names, member = np.unique(np.asarray(groups), return_inverse=True)
    if len(names) < 2:
        return None
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    values = [statistic(draw[member].astype(float)) for draw in drawn]
    known = [value for value in values if value is not None]
    if len(known) < 0.9 * resamples:
        return None
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)

"""Intervals of AUC and of the true positive rate at a false positive rate, by resampling.

Attacks and harmless prompts are drawn anew apart from each other, as often as there are of each:
both are samples, and their numbers were somebody's choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

from ragmetrics.safety import auc
from ragmetrics.stats import Z95

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

RESAMPLES = 2_000
MOST_VALUES = 4_096
"""Distinct scores up to which the resamples are drawn; above, the AUC gets its normal interval."""
Interval = tuple[float, float]
LIMITS = {"tpr_at_fpr_1": 0.01, "tpr_at_fpr_5": 0.05}


def roc_intervals(
    positives: Sequence[float],
    negatives: Sequence[float],
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> dict[str, Interval | None]:
    """95 % intervals of ``auc``, ``tpr_at_fpr_1``, ``tpr_at_fpr_5``; None without both kinds.

    Percentile bootstrap. Beyond ``MOST_VALUES`` distinct scores the AUC has the interval of Hanley
    and McNeil (1982), and the rates none.
    """
    if not len(positives) or not len(negatives):
        return dict.fromkeys(("auc", *LIMITS))
    import numpy as np

    values = np.unique(np.concatenate([np.asarray(positives), np.asarray(negatives)]))
    if len(values) > MOST_VALUES:
        return {"auc": hanley_mcneil(positives, negatives)} | dict.fromkeys(LIMITS)
    bad = _histogram(values, positives)
    good = _histogram(values, negatives)
    draws: dict[str, list[float]] = {name: [] for name in ("auc", *LIMITS)}
    for _ in range(resamples):
        one = rng.multinomial(len(positives), bad / len(positives))
        two = rng.multinomial(len(negatives), good / len(negatives))
        draws["auc"].append(_auc(one, two))
        for name, limit in LIMITS.items():
            draws[name].append(_tpr(one, two, limit))
    return {name: _percentiles(found) for name, found in draws.items()}


def hanley_mcneil(positives: Sequence[float], negatives: Sequence[float]) -> Interval:
    """95 % interval of the AUC from its standard error, cut to [0, 1].

    Raises ValueError when either side is empty. Source: Hanley and McNeil 1982.
    """
    area = auc(positives, negatives)
    if area is None:
        raise ValueError("an AUC needs scores of both kinds")
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    n, m = len(positives), len(negatives)
    spread = area * (1 - area) + (n - 1) * (q1 - area**2) + (m - 1) * (q2 - area**2)
    half = Z95 * sqrt(spread / (n * m))
    return max(0.0, area - half), min(1.0, area + half)


def _histogram(values: NDArray[np.float64], scores: Sequence[float]) -> Counts:
    import numpy as np

    return np.bincount(np.searchsorted(values, scores), minlength=len(values))


def _auc(bad: Counts, good: Counts) -> float:
    """AUC from counts by ascending score: the lower ones, and half of the equal ones."""
    below = good.cumsum() - good
    return float((bad * (below + good / 2)).sum() / (bad.sum() * good.sum()))


def _tpr(bad: Counts, good: Counts, limit: float) -> float:
    """The share of ``bad`` at or above the lowest score that keeps the limit on ``good``."""
    flagged = good[::-1].cumsum()[::-1]
    allowed = flagged <= limit * good.sum() + 1e-9
    if not allowed.any():
        return 0.0
    return float(bad[int(allowed.argmax()) :].sum() / bad.sum())


def _percentiles(found: Sequence[float]) -> Interval:
    import numpy as np

    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)

"""Does the bot's confidence mean anything? Reliability of confidences against success; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragmetrics.metric import Metric
from ragmetrics.stats import wilson

BINS = 10
ENOUGH = 0.8
"""A metric that is no yes or no: the part of its range from which an answer is a success."""


def reliability(pairs: Sequence[tuple[float, bool]], bins: int = BINS) -> dict[str, Any]:
    """Confidence against success, in ``bins`` bins of equal width; the last one holds 1.0.

    ``ece``: expected calibration error in [0, 1], the mean over bins of |share of successes - mean
    confidence|, weighted by the answers of the bin (Naeini et al. 2015; Guo et al. 2017); 0 is
    perfect. It depends on the number of bins and is biased upwards for few answers. ``brier``: mean
    of (confidence - success)² in [0, 1] (Brier 1950). ``bias``: mean confidence - share of
    successes in [-1, 1]; above 0 the bot is too sure. All three are None without pairs. Each bin
    that holds answers has their number, mean confidence, share of successes and its 95 % Wilson
    interval. Raises ValueError for a confidence outside [0, 1].
    """
    sorted_in: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for confidence, success in pairs:
        if not 0 <= confidence <= 1:
            raise ValueError(f"a confidence of {confidence} is outside 0 to 1")
        sorted_in[min(int(confidence * bins), bins - 1)].append((confidence, success))
    n = len(pairs)
    rows, error = [], 0.0
    for place, held in enumerate(sorted_in):
        if not held:
            continue
        mean = sum(confidence for confidence, _ in held) / len(held)
        successes = sum(success for _, success in held)
        share = successes / len(held)
        error += len(held) * abs(share - mean)
        rows.append(
            {
                "from": place / bins,
                "to": (place + 1) / bins,
                "n": len(held),
                "confidence": mean,
                "success": share,
                "ci95": list(wilson(successes, len(held))),
            }
        )
    return {
        "n": n,
        "ece": error / n if n else None,
        "brier": sum((c - s) ** 2 for c, s in pairs) / n if n else None,
        "bias": sum(c - s for c, s in pairs) / n if n else None,
        "bins": rows,
    }


def success_bound(metric: Metric) -> float | None:
    """The score from which (lower is better: to which) an answer is a success; None if unbounded.

    1 (or 0) for a yes/no metric, else four fifths of the way through the metric's range.
    """
    if metric.low is None or metric.high is None:
        return None
    way = 1.0 if metric.binary else ENOUGH
    span = metric.high - metric.low
    return metric.low + way * span if metric.higher_is_better else metric.high - way * span


def is_success(score: float, metric: Metric, bound: float) -> bool:
    """True when a score reaches the bound, in the metric's direction."""
    return score >= bound if metric.higher_is_better else score <= bound

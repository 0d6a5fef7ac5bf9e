"""Estimates the mean people would give a whole run, from labels drawn by strata; pure functions.

The units are fixed: the claims of one run. What is uncertain is only what people would say of those
that have no label, so the interval shrinks to a point when all are labelled. It says nothing about
other questions: for those see ``calibration.prediction_powered``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from ragmetrics.stats.arrays import Floats, np
from ragmetrics.stats.means import Z95
from ragmetrics.stats.student import quantile


@dataclass(frozen=True, slots=True)
class StrataSpread:
    """A stratum: its units, and the variance of one labelled unit's residual within it."""

    size: int
    variance: float


@dataclass(frozen=True, slots=True)
class StratifiedMean:
    """A mean with its 95 % interval. ``slope``: the lambda of PPI++ that was used."""

    mean: float
    low: float
    high: float
    slope: float
    spreads: Mapping[str, StrataSpread]

    def half_width(self, counts: Mapping[str, int]) -> float | None:
        """Half of the 95 % interval with these numbers of labels per stratum, at unchanged spreads.

        None when a stratum would have no label.
        """
        return _half_width(self.spreads, counts)


def stratified_mean(
    judged: Sequence[float],
    human: Sequence[float | None],
    strata: Sequence[str],
    *,
    weights: Sequence[float] | None = None,
) -> StratifiedMean | None:
    """The mean of people's values over all units, labels being random within each stratum.

    mean = c + lambda * mean(w judged) + sum over strata of N_h / N * mean of the labelled
    w (human - lambda judged - c), w scaled to a mean of 1. Within a stratum this is a regression of
    people's value on the judge's score, with an intercept a stratum and one slope lambda: the score
    is calibrated by the labels. c, the weighted mean of human - lambda judged, keeps unequal
    weights from adding variance (it cancels when they are equal).

    Args:
        judged: the judge's score of every unit in [0, 1]; 0 or 1 where it gives none.
        human: people's value of the unit in [0, 1], None where there is none.
        strata: the stratum of each unit.
        weights: what each unit counts in the mean (default: all alike).

    lambda is the slope with the smallest variance, within [0, 1]. The variance is the sum of
    (N_h / N)^2 (1 - n_h / N_h) s_h^2 / n_h; to each s_h^2 come two observations, of variance
    p (1 - p) times the mean squared weight, where p is the share of supported labels with two hits
    and two misses added: a stratum whose few labels agree is not known to be without an error. For
    the same reason z^2 / (4 n^2) (1 - n / N) comes to the sum, the term by which Wilson's interval
    is wider than the textbook's. The interval takes Student's t with n less the number of strata
    degrees of freedom (at least 1). None when a stratum has no label. Raises ValueError when lists
    differ in length.

    Sources: Neyman 1934 (stratified sampling); Särndal, Swensson and Wretman 1992 (Model Assisted
    Survey Sampling, regression estimator); Fisch et al. 2024 (stratified PPI, arXiv 2406.04291).
    """
    if not len(judged) == len(human) == len(strata):
        raise ValueError("every unit needs a judge's score, a label or None, and a stratum")
    total = len(judged)
    if not total:
        return None
    names, member = np.unique(np.asarray(strata, dtype=str), return_inverse=True)
    labelled = np.array([value is not None for value in human], dtype=bool)
    sizes = np.bincount(member, minlength=len(names))
    counts = np.bincount(member[labelled], minlength=len(names))
    if not counts.all():
        return None
    weight = np.ones(total) if weights is None else np.asarray(weights, dtype=float)
    weight = weight * total / weight.sum()
    score = np.asarray(judged, dtype=float)
    label = np.array([0.0 if value is None else value for value in human])
    of, w, x, y = (part[labelled] for part in (member, weight, score, label))
    times = (sizes / counts)[of]  # how many units a labelled unit stands for

    def centred(values: Floats) -> Floats:
        """``w`` times what the values differ from their weighted mean, less its stratum's mean."""
        spread = w * (values - float((times * w * values).sum() / (times * w).sum()))
        means = np.bincount(of, weights=spread, minlength=len(names)) / counts
        apart: Floats = spread - means[of]
        return apart

    factor = (sizes / total) ** 2 * (1 - counts / sizes) / counts
    of_truth, of_score = centred(y), centred(x)
    scale = (factor / np.maximum(counts - 1, 1))[of]
    slopes = float((scale * of_score**2).sum())
    best = float((scale * of_truth * of_score).sum()) / slopes if slopes > 1e-18 else 0.0
    slope = min(1.0, max(0.0, best))

    residual = y - slope * x
    centre = float((times * w * residual).sum() / (times * w).sum())
    away = np.bincount(of, weights=w * (residual - centre), minlength=len(names)) / counts
    mean = centre + slope * float((weight * score).mean()) + float((sizes / total * away).sum())

    share = (float((times * y).sum()) * len(y) / total + 2) / (len(y) + 4)
    added = share * (1 - share) * float((weight**2).mean())
    squares = np.bincount(of, weights=(of_truth - slope * of_score) ** 2, minlength=len(names))
    spreads = {
        str(name): StrataSpread(int(size), float(square + 2 * added) / (int(count) + 1))
        for name, size, square, count in zip(names, sizes, squares, counts, strict=True)
    }
    of_counts = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
    half = _half_width(spreads, of_counts) or 0.0
    bounds = [min(1.0, max(0.0, value)) for value in (mean, mean - half, mean + half)]
    return StratifiedMean(bounds[0], bounds[1], bounds[2], slope, spreads)


def _half_width(spreads: Mapping[str, StrataSpread], counts: Mapping[str, int]) -> float | None:
    if any(not counts.get(name) for name in spreads):
        return None
    total = sum(spread.size for spread in spreads.values())
    variance = sum(
        (spread.size / total) ** 2
        * (1 - min(1.0, counts[name] / spread.size))
        * spread.variance
        / counts[name]
        for name, spread in spreads.items()
    )
    labels = sum(counts[name] for name in spreads)
    unseen = max(0.0, 1 - labels / total) / (4 * labels**2)
    known = quantile(0.025, max(1, labels - len(spreads))) ** 2 * variance
    return sqrt(known + Z95**4 * unseen)

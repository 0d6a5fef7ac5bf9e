"""A judge against people: confusion, kappa, error-corrected rates; pure functions on plain data.

The unit is a claim. People's label is 1 (supported) or 0 (not), the judge's verdict is true or
false. "Positive" is supported, so specificity is the share of the unsupported claims that the judge
finds: what matters most, since a judge that passes everything has a perfect sensitivity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt

from ragmetrics.stats.arrays import Floats, np
from ragmetrics.stats.means import Z95, wilson

MIN_CLASS = 30
"""Labels of either class below which a judge counts as uncalibrated."""

LEAST_INFORMATION = 1.4
"""Sensitivity + specificity up to which a corrected rate is useless: its interval covers it all."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Confusion:
    """2×2 confusion matrix of people and judge; positive: supported. May be weighted."""

    true_positive: float
    false_negative: float
    false_positive: float
    true_negative: float

    @property
    def n(self) -> float:
        """All labelled claims."""
        return self.true_positive + self.false_negative + self.false_positive + self.true_negative

    @property
    def supported(self) -> float:
        """Claims that people call supported."""
        return self.true_positive + self.false_negative

    @property
    def unsupported(self) -> float:
        """Claims that people call not supported."""
        return self.false_positive + self.true_negative

    @property
    def sensitivity(self) -> float | None:
        """Share of the supported claims that the judge passes, in [0, 1]; None without any."""
        return self.true_positive / self.supported if self.supported else None

    @property
    def specificity(self) -> float | None:
        """Share of the unsupported claims that the judge finds, in [0, 1]; None without any."""
        return self.true_negative / self.unsupported if self.unsupported else None

    @property
    def balanced_accuracy(self) -> float | None:
        """Mean of sensitivity and specificity, in [0, 1], 0.5 is chance; None without both."""
        sensitivity, specificity = self.sensitivity, self.specificity
        return (
            None if sensitivity is None or specificity is None else (sensitivity + specificity) / 2
        )

    @property
    def accuracy(self) -> float | None:
        """Share of equal verdicts, in [0, 1]; None without claims."""
        return (self.true_positive + self.true_negative) / self.n if self.n else None

    @property
    def prevalence(self) -> float | None:
        """Share of the claims that people call supported, in [0, 1]; None without claims."""
        return self.supported / self.n if self.n else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960) in [-1, 1]; 0 is chance. None where chance agrees always or n = 0.

        It falls with skew: at 95 % supported claims a good judge may have a low kappa. Read it
        beside balanced accuracy.
        """
        if not self.n or self.accuracy is None:
            return None
        passed = self.true_positive + self.false_positive
        chance = self.supported * passed + self.unsupported * (self.n - passed)
        chance /= self.n**2
        return None if chance == 1 else (self.accuracy - chance) / (1 - chance)


def confusion(
    human: Sequence[int], judge: Sequence[bool], weights: Floats | None = None
) -> Confusion:
    """The confusion matrix of two verdicts per claim. ``weights``: each row's count (default 1).

    Raises ValueError when the lists differ in length.
    """
    if len(human) != len(judge):
        raise ValueError("people and judge must have a verdict for each claim")
    label, judged = np.asarray(human, dtype=bool), np.asarray(judge, dtype=bool)
    weight = np.ones(len(label)) if weights is None else weights
    return Confusion(
        float(weight @ (label & judged)),
        float(weight @ (label & ~judged)),
        float(weight @ (~label & judged)),
        float(weight @ (~label & ~judged)),
    )


def effective_size(weights: Floats) -> float:
    """Effective number of labels, (sum w)^2 / sum w^2 (Kish 1965); 0 without labels."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def interval_of_claims(
    table: Confusion, name: str, sizes: tuple[float, float] | None = None
) -> Interval | None:
    """95 % interval of a table's figure (``kappa``, ``accuracy``, …) if claims are independent.

    Wilson's intervals of sensitivity and specificity, put together by squares at the observed
    prevalence (MOVER: Zou and Donner 2008, Statistics in Medicine 27), within [-1, 1]. Unlike a
    bootstrap it does not shrink to a point when judge and people agree on every claim. None where
    the figure is undefined or a class is empty. A weighted table needs ``sizes``: how many labels
    of equal weight tell as much (`effective_size`), of the supported and of the unsupported claims.
    """
    value: float | None = getattr(table, name)
    sens, spec = table.sensitivity, table.specificity
    if value is None or sens is None or spec is None:
        return None

    def at(sensitivity: float, specificity: float) -> float:
        passed, caught = sensitivity * table.supported, specificity * table.unsupported
        moved = Confusion(passed, table.supported - passed, table.unsupported - caught, caught)
        moved_value: float | None = getattr(moved, name)
        return value if moved_value is None else moved_value

    supported, unsupported = sizes or (table.supported, table.unsupported)
    of_sens = wilson(sens * supported, supported)
    of_spec = wilson(spec * unsupported, unsupported)
    below, above = (
        hypot(value - at(of_sens[end], spec), value - at(sens, of_spec[end])) for end in (0, 1)
    )
    return max(-1.0, value - below), min(1.0, value + above)


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """A rate or mean with its 95 % interval; ``weight`` is the lambda of PPI++, None elsewhere."""

    mean: float
    low: float
    high: float
    weight: float | None = None


def rogan_gladen(
    rate: float,
    n: int,
    sensitivity: float,
    supported: float,
    specificity: float,
    unsupported: float,
) -> CorrectedMean | None:
    """The true rate of supported claims behind the judge's ``rate`` over ``n`` claims.

    theta = (rate + specificity - 1) / (sensitivity + specificity - 1), cut to [0, 1]; variance
    (v(rate, n) + (1 - theta)^2 v(spec, unsupported) + theta^2 v(sens, supported))
    / (sens + spec - 1)^2, where ``supported`` and ``unsupported`` count the labels behind the two
    (of weighted ones their `effective_size`).
    v(p, n) is q (1 - q) / (n + 2) with one hit and one miss added to p's: the textbook's p (1 - p)
    / n is 0 for a judge without an error among the labels, however few. None when sens + spec <=
    1.4, or without claims or labels of both kinds.

    It assumes that the judge errs here as often as where it was labelled, so labels of another run
    will do, and that claims are independent: where sources differ the interval is too narrow.
    Source: Rogan and Gladen 1978 (American Journal of Epidemiology 107), with the delta-method
    variance; the added hit and miss as Lang and Reiczigel 2014 (Preventive Veterinary Medicine
    113); for judges see arXiv 2511.21140.
    """
    skill = sensitivity + specificity - 1
    if sensitivity + specificity <= LEAST_INFORMATION or not (n and supported and unsupported):
        return None
    theta = min(1.0, max(0.0, (rate + specificity - 1) / skill))
    variance = _variance(rate, n)
    variance += (1 - theta) ** 2 * _variance(specificity, unsupported)
    variance += theta**2 * _variance(sensitivity, supported)
    half = Z95 * sqrt(variance) / skill
    return CorrectedMean(theta, max(0.0, theta - half), min(1.0, theta + half))


def _variance(share: float, n: float) -> float:
    """Of a share of ``n``, with one hit and one miss added: never 0."""
    added = (share * n + 1) / (n + 2)
    return added * (1 - added) / (n + 2)


def prediction_powered(
    judged: Sequence[float],
    human: Sequence[float | None],
    groups: Sequence[str],
    *,
    weights: Sequence[float] | None = None,
    draws: Sequence[float] | None = None,
    power: float | None = 1.0,
    limits: Interval = (0.0, 1.0),
) -> CorrectedMean | None:
    """The mean that people would give, from the judge's value of all and people's of some.

    mean = lambda * mean(judged, all) + mean(human - lambda * judged, labelled). Unbiased whatever
    the judge does, provided that the labelled ones are a random sample of all, or that ``draws``
    say how many units each stands for: the second mean is then weighted by them.

    Args:
        judged: the judge's value of every unit (0 or 1 a claim; any score will do).
        human: people's value of the unit, None where there is none.
        groups: the source of each unit; errors within a source hang together.
        weights: what each unit counts in the mean (default: all alike), scaled to a mean of 1.
            With 1 / (claims of the answer) it is the mean over answers.
        draws: how many units each labelled one stands for, the inverse of the probability with
            which it was drawn, up to a factor (default: all alike); that of others is not read.
        power: lambda. 1 is prediction-powered inference, 0 uses the labels alone, None chooses the
            lambda with the smallest variance, within [0, 1] (PPI++).
        limits: the range of a value; mean and interval are cut to it.

    The variance sums, over groups, the squared influence of their units
    lambda (judged - mean) / N, and for labelled ones (residual - mean residual) / n, times
    G / (G - 1): with single units that is both variances of the paper, and it allows for the
    labelled being part of all. Where sources are more alike than chance would have it, the larger
    variance, of single units, is taken. To either comes z^2 / (4 n^2) times the squared range of a
    value, the term by which Wilson's interval is wider than the textbook's: when judge and people
    agree on every label the variance is 0, but the judge is not known to be without error. With
    ``draws`` n is their `effective_size`, and what strata add in precision is not counted. None
    with fewer than two labelled units or groups, or when the labels lie in one group. Raises
    ValueError when lists differ in length.

    Sources: Angelopoulos et al. 2023 (PPI, arXiv 2301.09633, mean estimation); Angelopoulos,
    Duchi, Zrnic 2023 (PPI++, arXiv 2311.01453, power tuning: the same lambda, up to sampling noise,
    when no two units share a group).
    """
    if not len(judged) == len(human) == len(groups):
        raise ValueError("every unit needs a judge's value, a label or None, and a group")
    labelled = np.array([value is not None for value in human], dtype=bool)
    n, total = int(labelled.sum()), len(labelled)
    names, member = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    if n < 2 or len(names) < 2 or len(set(member[labelled].tolist())) < 2:
        return None
    scale = np.ones(total) if weights is None else np.asarray(weights, dtype=float)
    scale = scale * total / scale.sum()
    verdicts = np.asarray(judged, dtype=float) * scale
    label = np.array([0.0 if value is None else value for value in human]) * scale

    def summed(values: Floats) -> Floats:
        sums: Floats = np.bincount(member, weights=values, minlength=len(names)).astype(float)
        return sums

    drawn = np.where(labelled, 1.0 if draws is None else np.asarray(draws, dtype=float), 0.0)
    effective = effective_size(drawn)
    drawn = drawn / drawn.sum()

    def apart(values: Floats) -> Floats:
        away: Floats = drawn * (values - float((drawn * values).sum()))
        return away

    truth = apart(label)
    gap = apart(verdicts) - (verdicts - verdicts.mean()) / total
    if power is None:
        spread = float(summed(gap) @ summed(gap))
        best = float(summed(truth) @ summed(gap)) / spread if spread > 1e-18 else 0.0
        power = min(1.0, max(0.0, best))
    mean = power * float(verdicts.mean()) + float((drawn * (label - power * verdicts)).sum())
    each = truth - power * gap
    together = summed(each)
    clustered = float(together @ together) * len(names) / (len(names) - 1)
    low, high = limits
    unseen = (Z95 * (high - low) / (2 * effective)) ** 2
    half = Z95 * sqrt(max(clustered, float(each @ each) * total / (total - 1)) + unseen)
    cut = [min(high, max(low, value)) for value in (mean, mean - half, mean + half)]
    return CorrectedMean(cut[0], cut[1], cut[2], power)


def best_threshold(
    human: Sequence[int], scores: Sequence[float], weights: Floats | None = None
) -> float | None:
    """The score from which on "supported" has the best balanced accuracy.

    Half-way between two neighbouring scores; the lowest of equally good ones. ``weights``: how
    often each row counts. None without both classes, or when no cut does better than chance.
    """
    label = np.asarray(human, dtype=bool)
    weight = np.ones(len(label)) if weights is None else weights
    ups, downs = weight * label, weight * ~label
    if not ups.any() or not downs.any():
        return None
    values, rank = np.unique(np.asarray(scores, dtype=float), return_inverse=True)
    lost = np.cumsum(np.bincount(rank, weights=ups, minlength=len(values))) / ups.sum()
    caught = np.cumsum(np.bincount(rank, weights=downs, minlength=len(values))) / downs.sum()
    gain = (caught - lost)[:-1]  # of a cut above the i-th value
    if not len(gain) or gain.max() <= 1e-12:
        return None
    cut = int(gain.argmax())
    return float(values[cut] + values[cut + 1]) / 2


def halves(groups: Sequence[str], rng: np.random.Generator) -> list[bool]:
    """Decide for each row whether it is in the half to fit on. Whole groups, drawn at random.

    Groups go to the fit half until it holds half of the rows.
    """
    names = sorted(set(groups))
    sizes = dict.fromkeys(names, 0)
    for name in groups:
        sizes[name] += 1
    fit: set[str] = set()
    count = 0
    for index in rng.permutation(len(names)).tolist():
        if 2 * count >= len(groups):
            break
        fit.add(names[index])
        count += sizes[names[index]]
    return [name in fit for name in groups]

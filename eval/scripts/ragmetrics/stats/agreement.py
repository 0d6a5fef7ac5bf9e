"""Measures how far two or more annotators agree, on plain lists of labels.

Every figure is None where it is undefined, never 0 or NaN. Kappa and alpha correct for agreement by
chance, which makes them low and jumpy where one label is rare: two supports among twenty rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ragmetrics.stats.arrays import Floats, np

if TYPE_CHECKING:
    Statistic = Callable[[Floats], float | None]
    """A number from one weight a row; None when it is undefined for these weights."""


Label = TypeVar("Label", bound=Hashable)

Unit = TypeVar("Unit")

Level = Literal["nominal", "ordinal", "interval"]

Weights = Literal["linear", "quadratic"]

RESAMPLES = 1_000


def weighted_kappa(
    a: Sequence[Label],
    b: Sequence[Label],
    categories: Sequence[Label],
    weights: Weights = "quadratic",
    times: Sequence[float] | None = None,
) -> float | None:
    """Kappa for ordered labels (Cohen 1968): a near miss counts less than a far one. In [-1, 1].

    `categories` gives the order. Disagreement between the i-th and the j-th weighs abs(i - j)
    (linear) or its square (quadratic); kappa = 1 - sum(w * observed) / sum(w * expected). With
    `times` each item counts so often. None without items and where no disagreement can be expected.
    Raises ValueError for a label outside `categories`.
    """
    position = {label: index for index, label in enumerate(categories)}
    unknown = [label for label in (*a, *b) if label not in position]
    if unknown:
        raise ValueError(f"label {unknown[0]!r} is not among the categories")
    power = 1 if weights == "linear" else 2
    pairs, rows, columns = (defaultdict[Any, float](float) for _ in range(3))
    times = [1] * len(a) if times is None else times
    for x, y, count in zip(a, b, times, strict=True):
        pairs[position[x], position[y]] += count
        rows[position[x]] += count
        columns[position[y]] += count
    observed = sum(abs(i - j) ** power * count for (i, j), count in pairs.items())
    expected = sum(
        abs(i - j) ** power * ni * nj for i, ni in rows.items() for j, nj in columns.items()
    )
    return 1 - observed * sum(times) / expected if expected else None


def krippendorff_alpha(
    units: Sequence[Sequence[float | str | None]], level: Level = "nominal"
) -> float | None:
    """Agreement of several annotators beyond chance, with gaps (Krippendorff 2011); at most 1.

    Each unit holds one label an annotator, None for none; units with fewer than two labels do not
    count. alpha = 1 - D_o / D_e over the pairs of labels within units; 1 is perfect, 0 chance,
    below 0 systematic disagreement. ``ordinal`` and ``interval`` need numbers. None where nothing
    can be paired, and where all labels are equal (D_e = 0).
    """
    paired = [
        [label for label in unit if label is not None]
        for unit in units
        if sum(label is not None for label in unit) > 1
    ]
    totals: Counter[float | str] = Counter(label for unit in paired for label in unit)
    n = sum(totals.values())
    distance = _distance(totals, level)
    observed = 0.0
    for unit in paired:
        counts = Counter(unit)
        within = sum(c * k * distance(x, y) for x, c in counts.items() for y, k in counts.items())
        observed += within / (len(unit) - 1)
    expected = sum(c * k * distance(x, y) for x, c in totals.items() for y, k in totals.items())
    return 1 - (n - 1) * observed / expected if expected else None


def _distance(
    totals: Counter[float | str], level: Level
) -> Callable[[float | str, float | str], float]:
    """The squared distance of two labels at a level of measurement."""
    if level == "nominal":
        return lambda x, y: float(x != y)
    if level == "interval":
        return lambda x, y: (float(x) - float(y)) ** 2
    order = sorted(totals, key=float)
    below: dict[float | str, float] = {}
    seen = 0
    for label in order:
        below[label] = seen + totals[label] / 2  # the middle of the label's ranks
        seen += totals[label]
    return lambda x, y: (below[x] - below[y]) ** 2


def clustered_interval(
    clusters: Sequence[Sequence[Unit]],
    statistic: Callable[[list[Unit]], float | None],
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> tuple[float, float] | None:
    """95 % percentile interval of a figure, by drawing whole clusters (questions) with replacement.

    Items of one question hang together, so to draw single items would make the interval too
    narrow. Draws in which the figure is undefined are left out; None with fewer than two clusters,
    or where more than half of the draws are undefined.
    """
    count = len(clusters)
    if count < 2:
        return None
    values = []
    for draw in rng.integers(count, size=(resamples, count)):
        value = statistic([item for index in draw for item in clusters[index]])
        if value is not None:
            values.append(value)
    if 2 * len(values) <= resamples:
        return None
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def auroc(
    labels: Sequence[int], scores: Sequence[float], weights: Floats | None = None
) -> float | None:
    """Chance that a positive row scores above a negative one, ties half; in [0, 1], 0.5 is chance.

    ``weights``: how often each row counts. None without a row of either class. (Mann-Whitney U /
    pq.)
    """
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
    positive = np.asarray(labels, dtype=bool)
    judged = np.asarray(verdicts, dtype=bool)
    weight = np.ones(len(positive)) if weights is None else weights
    ups, downs = weight @ positive, weight @ ~positive
    if not ups or not downs:
        return None
    return (
        float((weight @ (positive & judged)) / ups + (weight @ (~positive & ~judged)) / downs) / 2
    )


def _ranks(values: Sequence[float] | Floats, times: Floats) -> Floats:
    """Ranks from 1 of values that occur so many times; equal ones share the mean of theirs."""
    _, index = np.unique(np.asarray(values, float), return_inverse=True)
    counts = np.bincount(index, weights=times)
    last = np.cumsum(counts)
    middle: Floats = (last - counts + 1 + last) / 2
    return middle[index]


def pearson(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, weights: Floats | None = None
) -> float | None:
    """Linear correlation in [-1, 1]; None for fewer than two rows or a constant side."""
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    weight = np.ones(len(x)) if weights is None else weights
    if len(x) < 2 or not weight.sum():
        return None
    x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
    spread = float(np.sqrt((weight @ x**2) * (weight @ y**2)))
    return float(np.clip(weight @ (x * y) / spread, -1, 1)) if spread > 1e-12 else None


def spearman(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, weights: Floats | None = None
) -> float | None:
    """Correlation of ranks, ties sharing theirs; None for fewer than two rows or a constant side.

    With weights each row stands for that many equal rows, which share their ranks.
    """
    times = np.ones(len(first)) if weights is None else weights
    if not times.sum():
        return None
    return pearson(_ranks(first, times), _ranks(second, times), times)


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
    names, member = np.unique(np.asarray(groups), return_inverse=True)
    if len(names) < 2:
        return None
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    values = [statistic(draw[member].astype(float)) for draw in drawn]
    defined = [value for value in values if value is not None]
    if len(defined) < 0.9 * resamples:
        return None
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)

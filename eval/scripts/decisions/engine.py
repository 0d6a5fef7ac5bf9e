"""Did it get better? One joint test of the primary metrics, and what its verdicts are worth.

Everything that says "better" or "worse" asks here. A difference is run b minus run a, of one case.
Pure: plain arrays in, numbers out; draws are seeded.

Sources: joint flips of signs: Westfall and Young 1993, Fisher 1935; limits of ratios: Hodges and
Lehmann 1963 from signed ranks (Wilcoxon 1945), flipped by cluster as in Datta and Satten 2008;
effective number of clusters: Kott and Carr 1997.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import erfc, exp, inf, log, sqrt
from typing import TYPE_CHECKING, Any, Literal

from ragmetrics import catalogue
from ragmetrics.stats.means import generator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


ALPHA = 0.05

DRAWS = 10_000
"""Sign patterns that are drawn where there are more of them."""

FEWEST_CLUSTERS = 6
"""Clusters below which nothing is decided: of 5, all may point one way by chance in 2 of 32."""

NORMAL_FROM = 2_000
"""Changed units above which the flips are replaced by the normal distribution of their sums."""

POWER = 0.8

SKEWED = ("latency_ms", "cost_usd", "total_tokens")
"""What section ``pipeline`` measured of a case beside its scores: total time, cost, tokens. Less is
better, and a ratio says more than a difference."""

Side = Literal["both", "worse"]

Verdict = Literal["better", "worse", "no evidence", "equal", "too few"]

Headline = Literal["BETTER", "WORSE", "MIXED", "LOOK", "NO EVIDENCE", "EQUAL", "TOO FEW"]

_BLOCK = 1 << 20
"""Signs that are drawn at once."""

_ALIKE = 1e-9
"""Statistics nearer to each other than this are a tie."""


@dataclass(frozen=True)
class PrimaryTable:
    """The primary scores of the same cases in two runs.

    ``names``: ``section.metric``. ``clusters``: an integer for each case; cases with the same one
    are flipped together. ``a``, ``b``: cases x metrics, not a number where a run has no score.
    """

    names: tuple[str, ...]
    case_ids: Sequence[str]
    clusters: Ints
    a: Floats
    b: Floats


@dataclass(frozen=True, slots=True)
class Spread:
    """How much differences vary, as far as power and intervals need it.

    ``n``: cases. ``effective``: clusters as if all were of one size (n without clusters).
    ``variance``: n times the variance of the mean difference. ``unchanged``: share of differences
    of 0. ``step``: size of a change, Σd²/Σ|d|; the metric's range when nothing changed, None when
    it has none.
    """

    n: int
    effective: float
    variance: float
    unchanged: float
    step: float | None
    largest: float | None = None
    """The metric's range; no difference is larger. None: unbounded."""

    def widened(self, n: float | None = None) -> float:
        """The variance with what an unseen change would add to it: one case more that changes."""
        cases = self.n if n is None else n
        if self.step is None or cases <= 1:
            return self.variance
        return self.variance + self.unchanged * self.step**2 / (cases - 1)

    def freedom(self, n: float | None = None) -> float:
        """Degrees of freedom: effective clusters less one, at least 1."""
        effective = self.effective if n is None else self.effective * n / self.n
        return max(1.0, effective - 1)


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times run a's values run b's are: of a typical case, with limits, and in all.

    ``typical``: Hodges-Lehmann estimate of the ratio of a case. ``totals``: sum of b / sum of a.
    """

    typical: float
    interval: tuple[float, float] | None
    totals: float

    @property
    def opposed(self) -> bool:
        """Whether the totals point the other way than the typical case."""
        return (self.typical - 1) * (self.totals - 1) < 0


@dataclass(frozen=True, slots=True)
class Effect:
    """One metric of the same cases in two runs.

    ``cases``: of the table. ``n_a``, ``n_b``: of them scored in each run; ``n``: in both, which all
    other numbers rest on. ``difference``: mean b - mean a, with its 95 % ``interval`` (not
    corrected for other metrics; None below two clusters). ``clusters``: of the n cases. ``rose``,
    ``fell``: cases whose value went up or down. ``ratio``: of skewed quantities, instead of the
    interval; their spread is that of log ratios.
    """

    cases: int
    n_a: int
    n_b: int
    n: int
    clusters: int
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    spread: Spread | None = None
    ratio: Ratio | None = None
    rose: int = 0
    fell: int = 0

    @property
    def limits(self) -> tuple[float, float] | None:
        """The interval as differences from "the same": a ratio's as logarithms."""
        if self.ratio is None:
            return self.interval
        if self.ratio.interval is None:
            return None
        low, high = self.ratio.interval
        return log(low), log(high)


@dataclass(frozen=True, slots=True)
class PrimaryRow:
    """One primary metric: its effect, and what the joint test says of it.

    ``p``: two-sided, corrected for all primary metrics together; ``p_worse``: that of a change for
    the worse alone, which a gate asks for; both None for too few clusters. ``mde``: the smallest
    true difference that this verdict would find 4 times in 5. ``look``: no evidence in the verdict,
    but the plain interval lies on the bad side of 0, or the gate's p is below alpha.
    """

    name: str
    higher_is_better: bool
    effect: Effect
    p: float | None = None
    p_worse: float | None = None
    mde: float | None = None
    verdict: Verdict = "no evidence"
    look: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What the primary metrics say of two runs together."""

    headline: Headline
    rows: tuple[PrimaryRow, ...]
    alpha: float = ALPHA

    def row(self, name: str) -> PrimaryRow | None:
        return next((row for row in self.rows if row.name == name), None)

    def named(self, verdict: Verdict) -> tuple[PrimaryRow, ...]:
        """The rows with a verdict, in order."""
        return tuple(row for row in self.rows if row.verdict == verdict)


def decide(
    table: PrimaryTable,
    *,
    alpha: float = ALPHA,
    margin: float | None = None,
    seed: int = 0,
    exploratory_worse: int = 0,
) -> Decision:
    """Say of each primary metric and of all together whether run b is better than run a.

    ``margin``: differences up to it count as equal; without it nothing is called equal.
    ``exploratory_worse``: how many other metrics are worse, which the headline then asks to look
    at. Raises ValueError for tables of different shapes.
    """
    return decide_many([table], alpha=alpha, margin=margin, seed=seed, worse=[exploratory_worse])[0]


def decide_many(
    tables: Sequence[PrimaryTable],
    *,
    alpha: float = ALPHA,
    margin: float | None = None,
    seed: int = 0,
    worse: Sequence[int] = (),
) -> list[Decision]:
    """Several runs against the same base: one joint test of all metrics of all runs.

    The tables have the same cases and clusters, in the same order.
    """
    import numpy as np

    for table in tables:
        if not table.a.shape == table.b.shape == (len(table.clusters), len(table.names)):
            raise ValueError("a table's scores are a row for each case, a column for each metric")
    parts = [_judged(table, seed) for table in tables]
    rows = [row for own, _ in parts for row in own]
    evidence = np.hstack([own for _, own in parts]) if parts else np.zeros((0, 0))
    clusters = tables[0].clusters if tables else np.zeros(0, np.int64)
    both = joint_p(evidence, clusters, "both", seed=seed)
    below = joint_p(evidence, clusters, "worse", seed=seed)
    tested = sum(bool(column.any()) for column in evidence.T) or 1
    rows = [
        _with_verdict(row, float(p), float(p_worse), tested, alpha, margin)
        for row, p, p_worse in zip(rows, both, below, strict=True)
    ]
    decisions, start = [], 0
    for index, table in enumerate(tables):
        own_rows = tuple(rows[start : start + len(table.names)])
        start += len(table.names)
        count = worse[index] if worse else 0
        decisions.append(Decision(headline_of(own_rows, count), own_rows, alpha))
    return decisions


def headline_of(rows: Sequence[PrimaryRow], exploratory_worse: int = 0) -> Headline:
    """The verdicts of the primary metrics in a word.

    MIXED: better and worse ones. LOOK: none is worse, but one may be, or other metrics are.
    """
    verdicts = {row.verdict for row in rows}
    if "worse" in verdicts:
        return "MIXED" if "better" in verdicts else "WORSE"
    if exploratory_worse or any(row.look for row in rows):
        return "LOOK"
    if "better" in verdicts:
        return "BETTER"
    if verdicts == {"equal"}:
        return "EQUAL"
    return "TOO FEW" if verdicts <= {"too few"} else "NO EVIDENCE"


def higher_is_better(name: str) -> bool:
    """Whether more of a metric, ``section.metric``, is better; True when nobody knows it."""
    metric = name.partition(".")[2]
    if metric in SKEWED:
        return False
    try:
        return catalogue.find(metric).higher_is_better
    except KeyError:
        return True


def range_of(name: str) -> float | None:
    """The width of a metric's range; None when it has no ends, 1 when nobody knows it."""
    metric = name.partition(".")[2]
    if metric in SKEWED:
        return None
    try:
        row = catalogue.find(metric)
    except KeyError:
        return 1.0
    return None if row.low is None or row.high is None else row.high - row.low


def is_skewed(name: str) -> bool:
    """Whether a metric is compared by ratios: times, costs, tokens."""
    return name.partition(".")[2] in SKEWED


def _judged(table: PrimaryTable, seed: int) -> tuple[list[PrimaryRow], Floats]:
    """The rows without their p, and the evidence of each case: above 0 is better."""
    import numpy as np

    rows, columns = [], []
    for index, name in enumerate(table.names):
        a, b, higher = table.a[:, index], table.b[:, index], higher_is_better(name)
        effect = effect_of(
            a, b, table.clusters, skewed=is_skewed(name), largest=range_of(name), seed=seed
        )
        column = evidence_of(a, b, skewed=is_skewed(name))
        rows.append(PrimaryRow(name, higher, effect))
        columns.append(column if higher else -column)
    size = len(table.clusters)
    return rows, np.stack(columns, axis=1) if columns else np.zeros((size, 0))


def _with_verdict(
    row: PrimaryRow, p: float, p_worse: float, tested: int, alpha: float, margin: float | None
) -> PrimaryRow:
    effect = row.effect
    if effect.clusters < FEWEST_CLUSTERS:
        return replace(row, verdict="too few")
    mde = None if effect.spread is None else minimum_detectable_effect(effect.spread, tested, alpha)
    verdict = verdict_of(effect, row.higher_is_better, p, alpha, margin)
    bad = side_of(effect, row.higher_is_better) < 0
    look = verdict in ("no evidence", "better") and (bad or p_worse <= alpha)
    return replace(row, p=p, p_worse=p_worse, mde=mde, verdict=verdict, look=look)


def side_of(effect: Effect, higher: bool) -> int:
    """On which side of "the same" the interval lies: 1 better, -1 worse, 0 when it holds it."""
    if effect.limits is None:
        return 0
    low, high = effect.limits
    side = 1 if low > 0 else -1 if high < 0 else 0
    return side if higher else -side


def verdict_of(
    effect: Effect, higher: bool, p: float, alpha: float = ALPHA, margin: float | None = None
) -> Verdict:
    """better or worse need a p and an interval that say one thing; equal needs a margin."""
    if effect.clusters < FEWEST_CLUSTERS:
        return "too few"
    side = side_of(effect, higher)
    if p <= alpha and side:
        return "better" if side > 0 else "worse"
    limits = effect.limits
    if margin is not None and limits is not None and -margin <= limits[0] <= limits[1] <= margin:
        return "equal"
    return "no evidence"


def joint_p(
    differences: Floats,
    clusters: Ints | None = None,
    side: Side = "both",
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> Floats:
    """Adjusted p of each column: are the signs of whole clusters, in all columns at once, chance?

    ``differences``: cases x metrics, above 0 is better, not a number counts as no difference. The
    statistic of a column is Σd/√Σd² over clusters; p is the share of flips in which the largest of
    any column (in size; with ``worse``, towards worse) exceeds it, ties counted half. All patterns
    are looked at where there are few, else ``draws`` of them, and the observed one is counted with
    them; above 2,000 clusters that changed, the statistics are drawn from the normal distribution
    with their own correlation. A column without a difference has p 1. Range (0, 1].
    """
    import numpy as np

    sums = cluster_sums(np.nan_to_num(differences), clusters)
    scale = np.abs(sums).max(axis=0, initial=0.0)
    active = scale > 0
    p = np.ones(len(scale))
    if not active.any():
        return p
    units = sums[:, active] / scale[active]
    units = units[(units != 0).any(axis=1)]
    units /= np.sqrt((units * units).sum(axis=0))
    sign = 1.0 if side == "both" else -1.0
    observed = sign * units.sum(axis=0)
    if side == "both":
        observed = np.abs(observed)
    above = np.zeros(len(observed))
    looked = 0
    for statistics in _flipped(units, seed, draws):
        largest = (np.abs(statistics) if side == "both" else statistics).max(axis=1)[:, None]
        above += (largest > observed + _ALIKE).sum(axis=0)
        above += 0.5 * (np.abs(largest - observed) <= _ALIKE).sum(axis=0)
        looked += len(statistics)
    every = 1 << len(units) if len(units) < 63 else inf
    p[active] = above / looked if looked == every else (above + 0.5) / (looked + 1)
    return p


def _flipped(units: Floats, seed: int, draws: int) -> Any:
    """The statistics of all columns under flips of the rows' signs, some thousand at a time."""
    import numpy as np

    count = len(units)
    if count < 63 and 1 << count <= draws:
        patterns = np.arange(1 << count)[:, None] >> np.arange(count) & 1
        yield (1.0 - 2.0 * patterns) @ units
        return
    rng = generator(seed, "joint flips")
    if count > NORMAL_FROM:
        values, vectors = np.linalg.eigh(units.T @ units)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        yield rng.standard_normal((draws, units.shape[1])) @ root.T
        return
    step = max(1, _BLOCK // count)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        bits = np.unpackbits(rng.integers(0, 256, (rows, -(-count // 8)), np.uint8), axis=1)
        yield (1.0 - 2.0 * bits[:, :count]) @ units


def cluster_sums(values: Floats, clusters: Ints | None) -> Floats:
    """The sum of each column over each cluster; the values themselves without clusters."""
    import numpy as np

    if clusters is None:
        return values
    labels, cluster = np.unique(clusters, return_inverse=True)
    if len(labels) == len(values):
        return values
    return np.stack(
        [np.bincount(cluster, weights=column, minlength=len(labels)) for column in values.T], axis=1
    ).reshape(len(labels), values.shape[1])


def differences_of(a: Floats, b: Floats) -> Floats:
    """b - a; 0 where they differ by rounding only."""
    import numpy as np

    differences: Floats = b - a
    size = np.maximum(np.abs(a), np.abs(b))
    differences[np.abs(differences) <= 1e-12 * size] = 0.0
    return differences


def evidence_of(a: Floats, b: Floats, *, skewed: bool = False) -> Floats:
    """What each case adds to the test: its difference, or the signed rank of its log ratio."""
    import numpy as np

    if not skewed:
        return differences_of(a, b)
    ratios = _log_ratios(a, b)
    scored = ~np.isnan(ratios)
    evidence = np.full(len(ratios), np.nan)
    evidence[scored] = _signed_ranks(ratios[scored])
    return evidence


def effect_of(
    a: Floats,
    b: Floats,
    clusters: Ints | None,
    *,
    skewed: bool = False,
    largest: float | None = None,
    seed: int = 0,
) -> Effect:
    """Means, difference and its interval over the cases that both runs scored.

    ``skewed``: by ratios, of values above 0. ``largest``: the width of the metric's range.
    """
    import numpy as np

    old, now = ~np.isnan(a), ~np.isnan(b)
    both = old & now
    if skewed:
        both &= ~np.isnan(_log_ratios(a, b))
    n = int(both.sum())
    own = None if clusters is None else clusters[both]
    if own is not None:
        count = len(np.unique(own))
        own = None if count == n else own
    else:
        count = n
    effect = Effect(len(a), int(old.sum()), int(now.sum()), n, count)
    if not n:
        return effect
    before, after = a[both], b[both]
    differences = differences_of(before, after)
    effect = replace(
        effect,
        mean_a=float(before.mean()),
        mean_b=float(after.mean()),
        difference=float(differences.mean()),
        rose=int((differences > 0).sum()),
        fell=int((differences < 0).sum()),
    )
    if skewed:
        spread = spread_of(_log_ratios(before, after), own, None)
        return replace(effect, spread=spread, ratio=_ratio(before, after, own, seed))
    spread = spread_of(differences, own, largest)
    return replace(effect, spread=spread, interval=_interval(effect, spread))


def spread_of(differences: Floats, clusters: Ints | None, largest: float | None) -> Spread:
    """How much differences vary. The larger of the variances with and without clusters counts."""
    import numpy as np

    n = len(differences)
    rest = differences - differences.mean()
    variance = float(rest @ rest) / (n - 1) if n > 1 else 0.0
    effective = float(n)
    if clusters is not None:
        sizes = cluster_sums(np.ones((n, 1)), clusters)[:, 0]
        sums = cluster_sums(rest[:, None], clusters)[:, 0]
        effective = n * n / float(sizes @ sizes)
        if effective > 1:
            variance = max(variance, float(sums @ sums) / n / (1 - 1 / effective))
    size = float(np.abs(differences).sum())
    step = float(differences @ differences) / size if size else largest
    return Spread(n, effective, variance, float((differences == 0).mean()), step, largest)


def _interval(effect: Effect, spread: Spread) -> tuple[float, float] | None:
    """95 %, by Student's t; the variance holds what a change that no case showed would add."""
    if effect.clusters < 2 or effect.difference is None:
        return None
    half = t_quantile(1 - ALPHA / 2, spread.freedom()) * sqrt(spread.widened() / spread.n)
    low, high = effect.difference - half, effect.difference + half
    if spread.largest is not None:
        low, high = max(low, -spread.largest), min(high, spread.largest)
    return low, high


def minimum_detectable_effect(
    spread: Spread, metrics: int = 1, alpha: float = ALPHA, n: int | None = None
) -> float | None:
    """The smallest true difference that a verdict over ``metrics`` metrics finds 4 times in 5.

    The effect is thought of as cases that change by the usual step, so it brings spread with it:
    the larger root D of D²(1 + cπ) - cuπD - cs² = 0, with c = (t_alpha + t_power)²/n, π the share
    of unchanged cases, u the step, s² the variance. At most the metric's range; None for an
    unbounded metric of which no case changed, and for one cluster. ``n``: for so many cases
    instead.
    """
    cases = spread.n if n is None else n
    if spread.step is None or spread.effective <= 1 or cases < 2:
        return None
    freedom = spread.freedom(cases)
    reach = t_quantile(1 - alpha / 2 / metrics, freedom) + t_quantile(POWER, freedom)
    c = reach * reach / cases
    lead = 1 + c * spread.unchanged
    middle = c * spread.step * spread.unchanged
    effect = (middle + sqrt(middle**2 + 4 * lead * c * spread.widened(cases))) / (2 * lead)
    return effect if spread.largest is None else min(effect, spread.largest)


def power_of(
    effect: float, spread: Spread, metrics: int = 1, alpha: float = ALPHA, n: int | None = None
) -> float | None:
    """The chance that a verdict finds a true difference of ``effect``; the inverse of the above."""
    cases = spread.n if n is None else n
    if spread.step is None or spread.effective <= 1 or cases < 2:
        return None
    size = abs(effect)
    freedom = spread.freedom(cases)
    variance = spread.widened(cases) + spread.unchanged * size * (spread.step - size)
    if variance <= 0:
        return 1.0 if size else alpha
    reach = size * sqrt(cases / variance)
    return t_below(reach - t_quantile(1 - alpha / 2 / metrics, freedom), freedom)


def t_quantile(share: float, freedom: float) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def t_below(value: float, freedom: float) -> float:
    """Chance that Student's t is at most ``value``."""
    from scipy.special import stdtr

    return float(stdtr(freedom, value))


def _log_ratios(a: Floats, b: Floats) -> Floats:
    """log(b/a) of values above 0, else not a number."""
    import numpy as np

    usable = (a > 0) & (b > 0)
    ratios = np.full(len(a), np.nan)
    ratios[usable] = differences_of(np.log(a[usable]), np.log(b[usable]))
    return ratios


def _signed_ranks(values: Floats) -> Floats:
    """Rank of each size, with the sign of the value; equal sizes share their mean rank."""
    import numpy as np

    _, place, counts = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    signed: Floats = np.sign(values) * ranks[place]
    return signed


def _ratio(a: Floats, b: Floats, clusters: Ints | None, seed: int) -> Ratio:
    """The typical ratio with limits: the shifts of log ratios that the flips do not reject."""

    ratios = _log_ratios(a, b)
    centre = _shift(ratios, clusters, 0.0)
    interval = None
    residuals = cluster_sums(_signed_ranks(ratios - centre)[:, None], clusters)
    if len(residuals) >= 2:
        bound = _critical(residuals, seed)
        if bound is not None:
            low, high = _shift(ratios, clusters, bound), _shift(ratios, clusters, -bound)
            interval = exp(min(low, centre)), exp(max(high, centre))
    return Ratio(exp(centre), interval, float(b.sum() / a.sum()))


def _critical(units: Floats, seed: int) -> float | None:
    """The size of the statistic that 5 % of the flips exceed; None when no flip is rejected."""
    import numpy as np

    scaled = units / sqrt(float((units * units).sum()) or 1.0)
    sizes = np.concatenate([np.abs(s[:, 0]) for s in _flipped(scaled, seed, DRAWS)])
    bound = float(np.quantile(sizes, 1 - ALPHA))
    return bound if bound < float(np.abs(scaled).sum()) - _ALIKE else None


_EXACT_SHIFTS = 2_000
"""Cases up to which a limit is found to the last digit; above, to a millionth of the range."""


def _shift(ratios: Floats, clusters: Ints | None, bound: float) -> float:
    """Where the statistic of the shifted log ratios falls to ``bound``; 0: the typical one.

    Bisection and regula falsi in turn: the statistic falls with the shift, in steps.
    """
    low, high = float(ratios.min()), float(ratios.max())
    if low == high:
        return low

    def excess(shift: float) -> float:
        units = cluster_sums(_signed_ranks(ratios - shift)[:, None], clusters)[:, 0]
        size = sqrt(float(units @ units))
        return (float(units.sum()) / size if size else 0.0) - bound

    at_low, at_high = excess(low), excess(high)
    if at_low <= 0:
        return low
    if at_high >= 0:
        return high
    exact = len(ratios) <= _EXACT_SHIFTS
    enough = (high - low) * (1e-13 if exact else 1e-6)
    halve = True
    while high - low > enough:
        share = 0.5 if halve or exact else min(max(at_low / (at_low - at_high), 0.02), 0.98)
        halve = not halve
        middle = low + share * (high - low)
        if not low < middle < high:
            break
        value = excess(middle)
        if value > 0:
            low, at_low = middle, value
        elif value < 0:
            high, at_high = middle, value
        else:
            return middle
    shift = (low + high) / 2
    return 0.0 if abs(shift) <= 2 * enough else shift


def erfc_p(statistic: float) -> float:
    """Two-sided p of a standard normal statistic."""
    return erfc(abs(statistic) / sqrt(2))

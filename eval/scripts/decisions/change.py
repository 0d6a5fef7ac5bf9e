"""One metric of the same cases in two runs: means, difference, interval, test and verdict.

A difference is run b minus run a (new minus base), of one case. Pure: plain arrays in, values out;
draws are seeded. Clusters are integers from 0 up, one for each case; None: each case is one by
itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import erfc, log, sqrt
from typing import Any, Literal

from decisions.coverage import Coverage, too_many
from decisions.effects import (
    ALPHA,
    DRAWS,
    NORMAL_FROM,
    Spread,
    cluster_sums,
    loss_of,
    ratio_of,
    signed_ranks,
    spread_of,
)
from ragmetrics import catalogue
from ragmetrics.stats.arrays import Floats, Ints, NDArray, np
from ragmetrics.stats.means import generator
from ragmetrics.stats.significance import benjamini_hochberg, mcnemar, sign_flip_p
from records.section_table import MEASURED

FEWEST_CLUSTERS = 6
"""Clusters below which nothing is decided: of 5, all may point one way by chance in 2 of 32."""

ChangeVerdict = Literal[
    "better",
    "worse",
    "mixed",
    "differs",
    "no evidence",
    "equal",
    "too few",
    "no verdict",
    "not tested",
    "only in base",
    "only in new",
    "not comparable",
    "not applicable",
]
"""``mixed``: a ratio whose totals point the other way. ``differs``: there is evidence, but no
catalogue row says which direction is the good one. ``too few``: clusters. ``no verdict``: most
cases lost their score in one run. ``not tested``: no case has the metric in both runs, or a number
of the whole run. Of two means alone ``not comparable``: by another definition; ``not applicable``:
in no case any more."""

SIGNS: dict[str, str] = {
    "better": "▲",
    "worse": "▼",
    "mixed": "◆",
    "differs": "≠",
    "equal": "=",
    "no evidence": "·",
    "too few": "·",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One metric in two runs.

    ``base``, ``new``, ``delta``, ``interval``: means over the ``n`` cases that are scored in both
    runs, the difference new minus base, and its 95 % interval (not corrected for other metrics;
    None where nothing is decided). ``base_mean``, ``new_mean``: means of each run over all that it
    scored (``base_n``, ``new_n`` of ``base_cases``, ``new_cases`` cases). ``lost``, ``gained``:
    cases scored in base only, in new only. ``p``: of ``test``, by itself; ``p_joint``: of the joint
    test of all primary metrics, None for other metrics; ``p_worse``: that of a change for the
    worse, which the gate asks for; ``p_bh``: corrected (Benjamini-Hochberg) among the exploratory
    ones. ``mde``: smallest true difference that the verdict would find 4 times in 5, ``critical``
    the statistic that it asks for; ``least_fall``: the smallest fall that the gate's test would
    find so. ``noise``: what of n times the variance of the difference is the bot's own, and what it
    would be with three answers a case, where repeats tell. ``rose``, ``fell``: cases whose value
    changed. ``units``: cases or clusters that were flipped; ``moved``: those that changed.
    ``ratio``, ``ratio_interval``: of a typical case, new / base (Hodges-Lehmann), for times, costs
    and tokens, whose ``interval`` is None, whose ``mde`` is a ratio and whose ``spread`` is that of
    log ratios; ``ratio_totals``: of the sums. ``look``: no evidence, but the interval lies on the
    bad side, or the gate's p is below alpha. ``fragile``: better by small gains, which one large
    loss would undo.
    """

    section: str
    metric: str
    higher_is_better: bool | None
    primary: bool = False
    base: float | None = None
    new: float | None = None
    delta: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    p_joint: float | None = None
    p_worse: float | None = None
    p_bh: float | None = None
    test: str | None = None
    mde: float | None = None
    critical: float = 0.0
    least_fall: float | None = None
    noise: tuple[float, float] | None = None
    n: int = 0
    units: int = 0
    rose: int = 0
    fell: int = 0
    lost: int = 0
    gained: int = 0
    base_mean: float | None = None
    new_mean: float | None = None
    base_n: int = 0
    new_n: int = 0
    base_cases: int = 0
    new_cases: int = 0
    ratio: float | None = None
    ratio_interval: tuple[float, float] | None = None
    ratio_totals: float | None = None
    target: float | None = None
    """The bound of its target; None without one."""
    verdict: ChangeVerdict = "not tested"
    look: bool = False
    fragile: bool = False
    slice: str | None = None
    """``category=factual`` for a part of the cases, else None."""
    coverage: Coverage | None = None
    """The cases that are left, of a primary metric and of one without a verdict; else None."""
    moved: int = 0
    spread: Spread | None = None
    ones: tuple[int, int] | None = None
    """Where all n cases score 0 or 1 in both runs, how many score 1."""
    medians: tuple[float, float] | None = None
    """Of a ratio's quantities."""
    t_interval: tuple[float, float] | None = None
    """``interval``, also of two to five clusters and of a metric without a verdict."""
    reason: str = ""
    """Why it was not tested or compared, where that is not in the other fields."""

    @property
    def name(self) -> str:
        """``section.metric``."""
        return f"{self.section}.{self.metric}"

    @property
    def p_adjusted(self) -> float | None:
        """The p that the verdict rests on."""
        return self.p_joint if self.p_joint is not None else self.p_bh

    @property
    def base_coverage(self) -> float | None:
        """Cases that base scored / its cases; None for a number of the whole run."""
        return self.base_n / self.base_cases if self.base_cases else None

    @property
    def new_coverage(self) -> float | None:
        """Cases that new scored / its cases; None for a number of the whole run."""
        return self.new_n / self.new_cases if self.new_cases else None

    @property
    def bad(self) -> bool:
        """Whether it is worse, by most cases or in all."""
        return self.verdict in ("worse", "mixed")

    @property
    def worse_by(self) -> float:
        """How far the mean went the bad way; below 0 for a gain, 0 where it is not known."""
        return (self.delta or 0.0) * (1 if self.higher_is_better is False else -1)

    @property
    def limits(self) -> tuple[float, float] | None:
        """The interval as differences from "the same": a ratio's as logarithms."""
        if self.ratio is None:
            return self.interval
        if self.ratio_interval is None:
            return None
        low, high = self.ratio_interval
        return log(low), log(high)

    @property
    def side(self) -> int:
        """The side of "the same" on which the interval is: 1 better, -1 worse, 0 when it holds
        it."""
        if self.limits is None:
            return 0
        low, high = self.limits
        side = 1 if low > 0 else -1 if high < 0 else 0
        return -side if self.higher_is_better is False else side

    @property
    def opposed(self) -> bool:
        """Whether the ratio of the sums points the other way than that of the typical case."""
        if self.ratio is None or self.ratio_totals is None:
            return False
        return (self.ratio - 1) * (self.ratio_totals - 1) < 0

    @property
    def left_out(self) -> bool:
        """Whether other primary metrics judge the calls and answers that lost their score."""
        return self.coverage is not None and self.coverage.left_out

    def to_dict(self) -> dict[str, Any]:
        """As JSON data, the coverage of both runs with it."""
        data = asdict(replace(self, spread=None))
        for name in ("moved", "spread", "ones", "medians", "t_interval", "reason"):
            del data[name]
        return data | {"base_coverage": self.base_coverage, "new_coverage": self.new_coverage}


_OF_CASES = (
    *("n", "units", "base", "new", "delta", "interval", "t_interval", "rose", "fell", "moved"),
    *("ones", "medians", "spread", "ratio", "ratio_interval", "ratio_totals"),
)
"""What is measured on the cases that both runs scored."""


def change_of(name: str, *, primary: bool = False) -> Change:
    """A metric, ``section.metric``, before anything is measured."""
    section, _, metric = name.partition(".")
    return Change(section, metric, direction(name), primary)


# What the catalogue says of a metric


def direction(name: str) -> bool | None:
    """Whether more of a metric, ``section.metric``, is better; None when the catalogue lacks it."""
    metric = name.partition(".")[2]
    if metric in MEASURED:
        return False
    try:
        return catalogue.find(name).higher_is_better
    except KeyError:
        return None


def higher_is_better(name: str) -> bool:
    """The same; True when the catalogue lacks the metric."""
    return direction(name) is not False


def ends_of(name: str) -> tuple[float, float] | None:
    """The bad and the good end of a metric's range; None when it has no ends, or the catalogue
    lacks it."""
    try:
        row = catalogue.find(name)
    except KeyError:
        return None
    if row.low is None or row.high is None:
        return None
    return (row.low, row.high) if row.higher_is_better else (row.high, row.low)


def range_of(name: str) -> float | None:
    """The width of a metric's range; None as ``ends_of``."""
    ends = ends_of(name)
    return None if ends is None else abs(ends[1] - ends[0])


def miss_of(name: str, mean: float | None, target: float | None) -> float:
    """How far a mean is from its target, as a share of the metric's range, else of the target."""
    width = range_of(name) or abs(target or 0.0) or 1.0
    return abs((mean or 0.0) - (target or 0.0)) / width


def is_skewed(name: str) -> bool:
    """Whether a metric is compared by ratios: times, costs, tokens."""
    return name.partition(".")[2] in MEASURED


def is_binary(name: str) -> bool:
    """Whether a case scores 0 or 1."""
    try:
        return catalogue.find(name).binary
    except KeyError:
        return False


# Means, difference, interval


def measured(
    change: Change, a: Floats, b: Floats, clusters: Ints | None, seed: int = 0
) -> tuple[Change, Floats]:
    """The change with its numbers over the cases that both runs scored, and the part of each case.

    That is its difference, or the signed rank of its log ratio; not a number without both scores.
    """
    ends = ends_of(change.name)
    largest, worst = (None, None) if ends is None else (abs(ends[1] - ends[0]), ends[0])
    skewed = is_skewed(change.name)
    own, values = measure(a, b, clusters, skewed=skewed, largest=largest, worst=worst, seed=seed)
    return remeasured(replace(change, base_n=own.base_n, new_n=own.new_n), own), values


def remeasured(change: Change, other: Change) -> Change:
    """The change with the numbers of other cases."""
    return replace(change, **{name: getattr(other, name) for name in _OF_CASES})


def measure(
    a: Floats,
    b: Floats,
    clusters: Ints | None,
    *,
    skewed: bool = False,
    largest: float | None = None,
    worst: float | None = None,
    seed: int = 0,
) -> tuple[Change, Floats]:
    """The change between two columns of scores, and the part of each case in a test.

    ``skewed``: by ratios, of values above 0. ``largest``: the width of the metric's range;
    ``worst``: its bad end.
    """
    old, now = ~np.isnan(a), ~np.isnan(b)
    both = old & now & (a > 0) & (b > 0) if skewed else old & now
    n = int(both.sum())
    own, units = _clusters_within(clusters, both, n)
    change = Change("", "", None, base_n=int(old.sum()), new_n=int(now.sum()), n=n, units=units)
    if not n:
        return change, np.full(len(a), np.nan)
    before, after = (a, b) if n == len(a) else (a[both], b[both])
    differences = _differences(before, after)
    change = replace(
        change,
        base=float(before.mean()),
        new=float(after.mean()),
        delta=float(differences.mean()),
        rose=int((differences > 0).sum()),
        fell=int((differences < 0).sum()),
        moved=int(np.count_nonzero(cluster_sums(differences, own))),
    )
    if skewed:
        ratios = _differences(np.log(before), np.log(after))
        typical, interval = ratio_of(ratios, own, seed)
        change = replace(
            change,
            spread=spread_of(ratios, own, None),
            ratio=typical,
            ratio_interval=interval if units >= FEWEST_CLUSTERS else None,
            ratio_totals=float(after.sum() / before.sum()),
            medians=(float(np.median(before)), float(np.median(after))),
        )
        return change, _at(both, signed_ranks(ratios))
    spread = spread_of(differences, own, largest)
    if largest is not None and worst is not None:
        loss = loss_of(np.abs(before - worst), np.abs(after - worst), largest)
        spread = replace(spread, loss=loss)
    interval = _interval(float(differences.mean()), units, spread)
    change = replace(
        change,
        spread=spread,
        ones=_ones(before, after),
        interval=interval if units >= FEWEST_CLUSTERS else None,
        t_interval=interval,
    )
    return change, _at(both, differences)


def _differences(a: Floats, b: Floats) -> Floats:
    """b - a; 0 where they differ by rounding only."""
    differences: Floats = b - a
    differences[np.abs(differences) <= np.maximum(np.abs(a), np.abs(b)) * 1e-12] = 0.0
    return differences


def _ones(before: Floats, after: Floats) -> tuple[int, int] | None:
    """See ``Change.ones``."""
    if any(bool(((side != 0) & (side != 1)).any()) for side in (before, after)):
        return None
    return int(before.sum()), int(after.sum())


def _at(both: NDArray[np.bool_], values: Floats) -> Floats:
    """The values at the cases that are compared; not a number at the others."""
    if len(values) == len(both):
        return values
    column = np.full(len(both), np.nan)
    column[both] = values
    return column


def _clusters_within(
    clusters: Ints | None, both: NDArray[np.bool_], n: int
) -> tuple[Ints | None, int]:
    """The clusters of the compared cases, and how many there are."""
    if clusters is None:
        return None, n
    own = clusters if n == len(both) else clusters[both]
    count = int(np.count_nonzero(np.bincount(own))) if n else 0
    return (None, n) if count == n else (own, count)


def _interval(difference: float, units: int, spread: Spread) -> tuple[float, float] | None:
    """95 %, by Student's t; the variance holds what a change that no case showed would add.

    Where all differences are the same, that is one case without any. None below two clusters, and
    where nothing changed and the metric has no range that limits a change.
    """
    variance = spread.variance_with_unseen() or difference**2 / spread.n
    if units < 2 or not variance:
        return None
    half = spread.half_width(variance)
    low, high = difference - half, difference + half
    if spread.largest is not None:
        low, high = max(low, -spread.largest), min(high, spread.largest)
    return low, high


def one_loss_undoes(change: Change) -> bool:
    """Whether a difference rests on small steps, and one case that changes by the whole range the
    other way would bring 0 into the interval."""
    spread = change.spread
    if spread is None or spread.loss is None or spread.step is None or change.delta is None:
        return False
    n, size, whole = spread.n, abs(change.delta), spread.largest or 0.0
    variance = spread.variance_with_unseen() + (whole * whole * (1 - 1 / n) + 2 * size * whole) / (
        n - 1
    )
    return spread.step <= whole / 2 and size - whole / n <= spread.half_width(variance)


# The test of one metric by itself


def tested(
    change: Change,
    base: Floats,
    new: Floats,
    clusters: Ints | None,
    seed: int,
    asked: NDArray[np.bool_],
) -> Change:
    """Add the means of a metric and its own test, over the cases that both runs scored.

    Without a test where most cases are lost in one run. ``asked``: cases that both were asked.
    """
    old, now = ~np.isnan(base), ~np.isnan(new)
    change = replace(
        change,
        lost=int((old & ~now).sum()),
        gained=int((now & ~old).sum()),
        base_n=int(old.sum()),
        new_n=int(now.sum()),
        base_mean=float(base[old].mean()) if old.any() else None,
        new_mean=float(new[now].mean()) if now.any() else None,
    )
    if not (change.base_n and change.new_n):
        return one_sided(change)
    change, values = measured(change, base, new, clusters, seed)
    if not change.n:
        return change
    gone = int((now & ~old & asked).sum()), int((old & ~now & asked).sum())
    if too_many(change.n, sum(gone)):
        coverage = Coverage(change.n, gone, loss="too many")
        return replace(change, verdict="no verdict", interval=None, coverage=coverage)
    name = f"{change.name} {change.slice or ''}"
    binary = is_binary(change.name)
    p, test = plain_p(change, values, clusters, binary=binary, name=name, seed=seed)
    return replace(change, p=p, test=test)


def one_sided(change: Change) -> Change:
    """The change of a metric that one run alone may have."""
    if change.base_n or change.base_mean is not None:
        return replace(change, verdict="only in base")
    in_new = change.new_n or change.new_mean is not None
    return replace(change, verdict="only in new") if in_new else change


def plain_p(
    change: Change, evidence: Floats, clusters: Ints | None, *, binary: bool, name: str, seed: int
) -> tuple[float, str]:
    """Two-sided p of one metric by itself, and the name of the test.

    McNemar's mid-p where a case scores 0 or 1 and stands by itself, else flips of the clusters'
    signs; their normal distribution above 2,000 clusters that changed.
    """
    both = ~np.isnan(evidence)
    values = evidence if change.n == len(both) else evidence[both]
    own, _ = _clusters_within(clusters, both, change.n)
    sums = cluster_sums(values, own)
    if change.ratio is not None:
        test = "signed ranks"
    elif binary and own is None and bool((np.abs(values[values != 0]) == 1).all()):
        return mcnemar(change.rose, change.fell)[1], "McNemar mid-p"
    else:
        test = "sign-flip"
    changed = int(np.count_nonzero(sums))
    if changed > NORMAL_FROM:
        sums = sums / max(sums.max(), -sums.min())
        total = sums.sum()
        statistic = float(total / np.sqrt(np.square(sums, out=sums).sum()))
        return erfc(abs(statistic) / sqrt(2)), test
    if not changed:
        return 1.0, test
    return sign_flip_p(sums, generator(seed, f"paired {name}"), DRAWS), test


# Verdicts


def verdict_of(
    change: Change, p: float, alpha: float = ALPHA, margin: float | None = None
) -> ChangeVerdict:
    """equal needs an interval within a margin, whatever p is; better or worse need a p and an
    interval that say one thing."""
    if change.units < FEWEST_CLUSTERS:
        return "too few"
    limits = change.limits
    if margin is not None and limits is not None and -margin <= limits[0] <= limits[1] <= margin:
        return "equal"
    if p > alpha or not change.side:
        return "no evidence"
    return "better" if change.side > 0 else "worse"


def explored(changes: Sequence[Change]) -> list[Change]:
    """Exploratory metrics with p corrected (Benjamini-Hochberg over all of them) and verdict."""
    adjusted = iter(benjamini_hochberg([own.p for own in changes if own.p is not None]))
    return [own if own.p is None else _explored(own, next(adjusted)) for own in changes]


def _explored(change: Change, p: float) -> Change:
    verdict = verdict_of(change, p)
    if verdict in ("better", "worse") and change.higher_is_better is None:
        verdict = "differs"
    elif verdict in ("better", "worse") and change.opposed:
        verdict = "mixed"
    return replace(change, verdict=verdict, p_bh=None if verdict == "too few" else p)

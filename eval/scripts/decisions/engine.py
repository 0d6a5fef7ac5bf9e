"""Did it get better? One joint test of the primary metrics, and what its verdicts are worth.

Everything that says "better" or "worse" asks here. A difference is run b minus run a, of one case.
A metric that lost cases has no verdict, or one that must hold against the worst (coverage.py).
Pure: plain arrays in, numbers out; draws are seeded. Sources: Fisher 1935, Westfall and Young 1993
(signs flipped in all metrics at once).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from decisions.coverage import NOTHING, Coverage, Unscored, at_worst, coverage_of, unscored_of
from decisions.effects import (
    ALIKE,
    ALPHA,
    DRAWS,
    Effect,
    cluster_sums,
    compact,
    flipped,
    measure,
    minimum_detectable_effect,
    one_loss_undoes,
)
from ragmetrics import catalogue
from ragmetrics.stats.arrays import Floats, Ints, NDArray, np
from records.section_table import MEASURED

FEWEST_CLUSTERS = 6
"""Clusters below which nothing is decided: of 5, all may point one way by chance in 2 of 32."""

Side = Literal["both", "worse"]

Verdict = Literal["better", "worse", "no evidence", "equal", "too few", "no verdict"]
"""``too few``: clusters; ``no verdict``: most cases lost their score in one run."""

Headline = Literal[
    "BETTER", "WORSE", "MIXED", "NO CLEAR DIFFERENCE", "SAME", "TOO FEW", "INCOMPLETE"
]
"""The verdicts of the first line; INCOMPLETE comes from decisions/headline.py, which knows the
missing scores."""

LEAD_SHARE, REST_SHARE = 0.8, 0.2
"""Shares of alpha at which a lead metric and the others are tested (fallback: Wiens 2003)."""


@dataclass(frozen=True)
class PrimaryTable:
    """The primary scores of the same cases in two runs.

    ``names``: ``section.metric``. ``clusters``: an integer for each case; cases with the same one
    are flipped together. ``a``, ``b``: cases x metrics, not a number where a run has no score, and
    in both for a case that one of them was not asked.
    """

    names: tuple[str, ...]
    case_ids: Sequence[str]
    clusters: Ints
    a: Floats
    b: Floats

    def column(self, name: str) -> tuple[Floats, Floats]:
        """The scores of a metric in both runs."""
        at = self.names.index(name)
        return self.a[:, at], self.b[:, at]

    def without(self, cases: NDArray[np.bool_]) -> PrimaryTable:
        """The same as if some cases had not been asked."""
        a, b = (np.where(cases[:, None], np.nan, side) for side in (self.a, self.b))
        return replace(self, a=a, b=b)


@dataclass(frozen=True, slots=True)
class PrimaryRow:
    """One primary metric: its effect, and what the joint test says of it.

    ``p``: two-sided, corrected for all primary metrics together; ``p_worse``: that of a change for
    the worse alone, which a gate asks for; both None for too few clusters. ``mde``: the smallest
    true difference that this verdict would find 4 times in 5; ``least_fall``: the smallest fall
    that the gate's test would. ``look``: no evidence in the verdict, but the plain interval lies on
    the bad side of 0, or the gate's p is below alpha. ``fragile``: better, by small gains that one
    large loss would undo.
    """

    name: str
    higher_is_better: bool
    effect: Effect
    p: float | None = None
    p_worse: float | None = None
    mde: float | None = None
    critical: float = 0.0
    """The statistic that the verdict asks for."""
    least_fall: float | None = None
    verdict: Verdict = "no evidence"
    look: bool = False
    fragile: bool = False
    coverage: Coverage = NOTHING


@dataclass(frozen=True, slots=True)
class Decision:
    """The joint decision on the primary metrics of two runs. ``lead``: the metric that was tested
    first; "" without one."""

    headline: Headline
    rows: tuple[PrimaryRow, ...]
    alpha: float = ALPHA
    tested: int = 1
    """Metrics in the joint test, of all runs, that changed at all; at least 1."""
    lead: str = ""

    def row(self, name: str) -> PrimaryRow | None:
        return next((row for row in self.rows if row.name == name), None)

    @property
    def largest_mde(self) -> float | None:
        """The change of a share that shows in every primary metric; None where none is tested."""
        sizes = [row.mde for row in self.rows if row.mde and range_of(row.name) == 1]
        return max(sizes, default=None)


@dataclass(frozen=True)
class Evidence:
    """A primary metric as it goes into the joint test: its effect, what each case adds to it, above
    0 for the better, and the cases that are left to compare."""

    name: str
    effect: Effect
    values: Floats
    coverage: Coverage


def decide(
    table: PrimaryTable,
    *,
    alpha: float = ALPHA,
    margin: float | None = None,
    seed: int = 0,
    lead: str = "",
) -> Decision:
    """Say of each primary metric and of all together whether run b is better than run a.

    ``margin``, ``lead``: see ``settle``. Raises ValueError for tables of different shapes.
    """
    return settle([table], alpha=alpha, margin=margin, seed=seed, lead=lead)[0]


def settle(
    tables: Sequence[PrimaryTable],
    *,
    alpha: float = ALPHA,
    margin: float | None = None,
    seed: int = 0,
    lead: str = "",
) -> list[Decision]:
    """Decide on several runs against the same base: one joint test of all metrics of all runs.

    The tables are of the same cases, in the same order. ``margin``: the share of a metric's range
    that does not matter; an interval within it is equal, whatever its p. ``lead``: a metric that is
    tested by itself at 4/5 of alpha; the others together at 1/5 of it, or at alpha where the lead
    is significant (of all runs). A change for the worse alone, the gate's question, stays one joint
    test of all. A verdict on cases whose rest was chosen stands only where the same tests find it
    with the lost cases put at the end of the range that is against it. Raises ValueError for tables
    of different shapes.
    """
    for table in tables:
        if not table.a.shape == table.b.shape == (len(table.clusters), len(table.names)):
            raise ValueError("a table's scores are a row for each case, a column for each metric")
    clusters = compact(tables[0].clusters)
    runs = [[_evidence(table, name, clusters, seed) for name in table.names] for table in tables]

    def rows_of(evidence: Sequence[Sequence[Evidence]]) -> list[tuple[PrimaryRow, ...]]:
        return _tested_together(evidence, clusters, alpha, margin, seed, lead)

    rows = rows_of(runs)
    if any(row.coverage.loss == "chosen" for own in rows for row in own):
        better, worse = (
            rows_of(
                [_against(word, *own, clusters, seed) for own in zip(tables, runs, strict=True)]
            )
            for word in ("better", "worse")
        )
        rows = [tuple(map(_held, *own)) for own in zip(rows, better, worse, strict=True)]
    changed = sum(bool(e.effect.rose or e.effect.fell) for own in runs for e in own) or 1
    return [Decision(headline_of(own, lead), own, alpha, changed, lead) for own in rows]


def _evidence(table: PrimaryTable, name: str, clusters: Ints | None, seed: int) -> Evidence:
    """One metric of two runs; where too few cases are left, as if it had not been scored."""
    a, b = table.column(name)
    unscored = _unscored(table, name)
    better = higher_is_better(name)
    coverage = coverage_of(a, b, clusters, higher=better, unscored=unscored, seed=seed)
    effect, values = effect_of(name, a, b, clusters, seed)
    if not coverage.decides:
        values = np.full(len(values), np.nan)
    return Evidence(name, effect, values if better else -values, coverage)


def _unscored(table: PrimaryTable, name: str) -> tuple[Unscored | None, Unscored | None]:
    answered, right = (
        table.column(other) if other in table.names else (None, None)
        for other in ("pipeline.answered", "abstention.decision_right")
    )
    old, now = zip(answered, right, strict=True)
    return unscored_of(name, *old, right[1]), unscored_of(name, *now, right[0])


def effect_of(
    name: str, a: Floats, b: Floats, clusters: Ints | None, seed: int = 0
) -> tuple[Effect, Floats]:
    """The effect of a metric, and the difference (or signed rank) of each case. ``clusters``: see
    ``effects.compact``."""
    ends = ends_of(name)
    return measure(
        a,
        b,
        clusters,
        skewed=is_skewed(name),
        largest=range_of(name),
        worst=None if ends is None else ends[0],
        seed=seed,
    )


def _against(
    word: Literal["better", "worse"],
    table: PrimaryTable,
    evidence: Sequence[Evidence],
    clusters: Ints | None,
    seed: int,
) -> list[Evidence]:
    """The evidence with the lost cases of each chosen rest put against a verdict; of a metric
    without ends, none."""
    put = []
    for own in evidence:
        if own.coverage.loss == "chosen":
            a, b = table.column(own.name)
            ends, unscored = ends_of(own.name), _unscored(table, own.name)
            if ends is None:
                a = b = np.full(len(a), np.nan)
            else:
                a, b = at_worst(a, b, ends, against=word, unscored=unscored)
            effect, values = effect_of(own.name, a, b, clusters, seed)
            sign = 1 if higher_is_better(own.name) else -1
            own = replace(own, effect=effect, values=sign * values)
        put.append(own)
    return put


def _held(row: PrimaryRow, better: PrimaryRow, worse: PrimaryRow) -> PrimaryRow:
    """What stands of the verdict on a chosen rest: ``better`` and ``worse`` are the row with the
    lost cases put against these."""
    if row.coverage.loss != "chosen" or row.p is None or row.p_worse is None:
        return row
    suspect = worse.look or worse.verdict == "worse"
    row = replace(row, p_worse=max(row.p_worse, worse.p_worse or 1.0), look=row.look and suspect)
    if row.verdict not in ("better", "worse"):
        return row
    against = better if row.verdict == "better" else worse
    row = replace(row, p=max(row.p or 0.0, against.p or 1.0))
    if against.verdict == row.verdict:
        return row
    return replace(row, verdict="no evidence", look=suspect, fragile=False)


def _tested_together(
    runs: Sequence[Sequence[Evidence]],
    clusters: Ints | None,
    alpha: float,
    margin: float | None,
    seed: int,
    lead: str,
) -> list[tuple[PrimaryRow, ...]]:
    """The rows of each run by one joint test."""
    every = [evidence for own in runs for evidence in own]
    # By name: the same draws whatever the order in which the metrics come.
    order = sorted(range(len(every)), key=lambda at: every[at].name)
    place = {at: rank for rank, at in enumerate(order)}
    every = [every[at] for at in order]
    columns = [evidence.values for evidence in every]
    (both, below), critical = _adjusted(
        columns, clusters, ("both", "worse"), seed, DRAWS, alpha=alpha
    )
    asked = [critical[0]] * len(every)
    leads = [at for at, e in enumerate(every) if e.name == lead and e.coverage.decides]
    if leads and len(leads) < len(every):
        both, asked = _with_lead(columns, leads, clusters, seed, alpha)
    rows, start = [], 0
    for own in runs:
        rows.append(
            tuple(
                _row(
                    evidence,
                    float(both[place[at]]),
                    float(below[place[at]]),
                    (asked[place[at]], critical[1]),
                    alpha,
                    margin,
                )
                for at, evidence in enumerate(own, start)
            )
        )
        start += len(own)
    return rows


def _with_lead(
    columns: Sequence[Floats], leads: Sequence[int], clusters: Ints | None, seed: int, alpha: float
) -> tuple[Floats, list[float]]:
    """Adjusted p, at most alpha where the fallback finds a difference, and the statistic that each
    metric was asked for."""
    rest = [at for at in range(len(columns)) if at not in leads]

    def tested(places: Sequence[int], level: float) -> tuple[Floats, float]:
        own = [columns[at] for at in places]
        found, asked = _adjusted(own, clusters, ("both",), seed, DRAWS, alpha=level)
        return found[0], asked[0]

    first, asked_first = tested(leads, LEAD_SHARE * alpha)
    first = np.minimum(first / LEAD_SHARE, 1.0)
    last = float(first.max())
    others, asked_others = tested(rest, alpha if last <= alpha else REST_SHARE * alpha)
    p, asked = np.ones(len(columns)), [asked_first] * len(columns)
    p[[*leads]] = first
    p[rest] = np.minimum(np.minimum(others / REST_SHARE, np.maximum(others, last)), 1.0)
    for at in rest:
        asked[at] = asked_others
    return p, asked


def headline_of(rows: Sequence[PrimaryRow], lead: str = "") -> Headline:
    """The verdicts of the primary metrics in a word. MIXED: better and worse ones.

    A ``lead`` that is better or worse is the word. Where it is neither, the others can make it
    worse and not better; where it has no verdict, there is none on the whole unless it is worse.
    """
    deciding = [row for row in rows if row.verdict != "no verdict" and row.coverage.cases]
    verdicts = {row.verdict for row in deciding}
    leading = next((row.verdict for row in deciding if row.name == lead), None)
    if leading == "better":
        return "BETTER"
    if leading == "worse":
        return "WORSE"
    if "worse" in verdicts:
        return "MIXED" if "better" in verdicts else "WORSE"
    if lead and leading is None:
        return "INCOMPLETE"
    if "better" in verdicts:
        return "NO CLEAR DIFFERENCE" if lead else "BETTER"
    if verdicts == {"equal"}:
        return "SAME"
    return "TOO FEW" if verdicts <= {"too few"} else "NO CLEAR DIFFERENCE"


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


def is_skewed(name: str) -> bool:
    """Whether a metric is compared by ratios: times, costs, tokens."""
    return name.partition(".")[2] in MEASURED


def _row(
    evidence: Evidence,
    p: float,
    p_worse: float,
    critical: tuple[float, float],
    alpha: float,
    margin: float | None,
) -> PrimaryRow:
    """``critical``: the statistics that the verdict and the gate's one-sided test ask for."""
    effect, higher = evidence.effect, higher_is_better(evidence.name)
    row = PrimaryRow(evidence.name, higher, effect, coverage=evidence.coverage)
    if not evidence.coverage.decides:
        return replace(row, verdict="no verdict")
    if effect.clusters < FEWEST_CLUSTERS:
        return replace(row, verdict="too few")
    mde = least = None
    if effect.spread is not None:
        mde = minimum_detectable_effect(effect.spread, critical[0], alpha)
        least = minimum_detectable_effect(effect.spread, critical[1], 2 * alpha)
    size = None if margin is None else margin * (range_of(evidence.name) or 1.0)
    verdict = verdict_of(effect, higher, p, alpha, size)
    suspect = p_worse <= alpha or side_of(effect, higher) < 0
    look = suspect and verdict == "no evidence"
    fragile = verdict == "better" and one_loss_undoes(effect)
    row = replace(row, p=p, p_worse=p_worse, mde=mde, critical=critical[0], least_fall=least)
    return replace(row, verdict=verdict, look=look, fragile=fragile)


def side_of(effect: Effect, higher: bool) -> int:
    """The side of "the same" on which the interval is: 1 better, -1 worse, 0 when it holds it."""
    if effect.limits is None:
        return 0
    low, high = effect.limits
    side = 1 if low > 0 else -1 if high < 0 else 0
    return side if higher else -side


def verdict_of(
    effect: Effect, higher: bool, p: float, alpha: float = ALPHA, margin: float | None = None
) -> Verdict:
    """equal needs an interval within a margin, whatever p is; better or worse need a p and an
    interval that say one thing."""
    if effect.clusters < FEWEST_CLUSTERS:
        return "too few"
    limits = effect.limits
    if margin is not None and limits is not None and -margin <= limits[0] <= limits[1] <= margin:
        return "equal"
    side = side_of(effect, higher)
    if p <= alpha and side:
        return "better" if side > 0 else "worse"
    return "no evidence"


def joint_p(
    differences: Floats | Sequence[Floats],
    clusters: Ints | None = None,
    side: Side = "both",
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> Floats:
    """Adjusted p of each column: are the signs of whole clusters, in all columns at once, chance?

    ``differences``: cases x metrics, or a list of columns; above 0 is better, not a number counts
    as no difference. ``clusters``: an integer for each case. The statistic of a column is Σd/√Σd²
    over clusters; p is the share of flips in which the largest of any column (in size; with
    ``worse``, towards worse) exceeds it, ties counted half. All patterns are looked at where there
    are few, else ``draws`` of them, and the observed one is counted with them; above 2,000 clusters
    that changed, the statistics are drawn from the normal distribution with their own correlation.
    A column without a difference has p 1. Range (0, 1].
    """
    columns = list(differences.T) if isinstance(differences, np.ndarray) else list(differences)
    return _adjusted(columns, compact(clusters), (side,), seed, draws)[0][0]


def _adjusted(
    columns: Sequence[Floats],
    clusters: Ints | None,
    sides: Sequence[Side],
    seed: int,
    draws: int,
    *,
    alpha: float = ALPHA,
) -> tuple[list[Floats], list[float]]:
    """The adjusted p of each column on each side, all from the same flips, and the statistic on
    each side that the share ``alpha`` of the flips exceeds (0 when nothing changed)."""
    adjusted = [np.ones(len(columns)) for _ in sides]
    if clusters is not None:
        columns = [cluster_sums(np.nan_to_num(column), clusters) for column in columns]
    changed = np.zeros(len(columns[0]) if columns else 0, dtype=bool)
    active = []
    for column in columns:
        own = (column != 0) & ~np.isnan(column)
        active.append(bool(own.any()))
        changed |= own
    if not any(active):
        return adjusted, [0.0] * len(sides)
    used = [column for column, moved in zip(columns, active, strict=True) if moved]
    units = np.stack([np.nan_to_num(column[changed]) for column in used], axis=1)
    units /= np.abs(units).max(axis=0)
    units /= np.sqrt(np.square(units).sum(axis=0))
    observed = [_orient(units.sum(axis=0)[None, :], side)[0] for side in sides]
    above, looked = [np.zeros(len(used)) for _ in sides], 0
    extremes: list[list[Floats]] = [[] for _ in sides]
    for statistics in flipped(units, seed, draws):
        looked += len(statistics)
        for at, side in enumerate(sides):
            largest = _orient(statistics, side).max(axis=1)[:, None]
            extremes[at].append(largest)
            above[at] += (largest > observed[at] + ALIKE).sum(axis=0)
            above[at] += 0.5 * (np.abs(largest - observed[at]) <= ALIKE).sum(axis=0)
    every = 1 << len(units) if len(units) < 63 else inf
    for p, hits in zip(adjusted, above, strict=True):
        p[active] = hits / looked if looked == every else (hits + 0.5) / (looked + 1)
    return adjusted, [float(np.quantile(np.concatenate(own), 1 - alpha)) for own in extremes]


def _orient(statistics: Floats, side: Side) -> Floats:
    """How far statistics lie from "the same": in size, or towards worse."""
    return np.abs(statistics) if side == "both" else -statistics

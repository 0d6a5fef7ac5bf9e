"""Did it get better? One joint test of the primary metrics, and what its verdicts are worth.

Everything that says "better" or "worse" asks here. A difference is run b minus run a, of one case.
A metric that lost cases has no verdict, or one that must hold against the worst (coverage.py).
Pure: plain arrays in, numbers out; draws are seeded. Sources: Fisher 1935, Westfall and Young 1993
(signs flipped in all metrics at once).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf
from typing import Literal

from decisions.change import (
    FEWEST_CLUSTERS,
    Change,
    ChangeVerdict,
    change_of,
    ends_of,
    higher_is_better,
    measured,
    one_loss_undoes,
    range_of,
    verdict_of,
)
from decisions.coverage import NOTHING, ChosenRest, Unscored, at_worst, coverage_of, unscored_of
from decisions.effects import (
    ALIKE,
    ALPHA,
    DRAWS,
    cluster_sums,
    compact,
    flipped,
    minimum_detectable_effect,
)
from ragmetrics.stats.arrays import Floats, Ints, NDArray, np

Side = Literal["both", "worse"]

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
    in both for a case that one of them was not asked. ``chosen``: metrics whose cases that changed
    are others than those that are left, which have no verdict.
    """

    names: tuple[str, ...]
    case_ids: Sequence[str]
    clusters: Ints
    a: Floats
    b: Floats
    chosen: Mapping[str, ChosenRest] = field(default_factory=dict)

    def column(self, name: str) -> tuple[Floats, Floats]:
        """The scores of a metric in both runs."""
        at = self.names.index(name)
        return self.a[:, at], self.b[:, at]

    def without(self, cases: NDArray[np.bool_]) -> PrimaryTable:
        """The same as if some cases had not been asked."""
        a, b = (np.where(cases[:, None], np.nan, side) for side in (self.a, self.b))
        return replace(self, a=a, b=b)


@dataclass(frozen=True, slots=True)
class Decision:
    """The joint decision on the primary metrics of two runs. ``lead``: the metric that was tested
    first; "" without one."""

    headline: Headline
    rows: tuple[Change, ...]
    alpha: float = ALPHA
    tested: int = 1
    """Metrics in the joint test, of all runs, that changed at all; at least 1."""
    lead: str = ""

    def row(self, name: str) -> Change | None:
        return next((row for row in self.rows if row.name == name), None)

    @property
    def largest_mde(self) -> float | None:
        """The change of a share that shows in every primary metric; None where none is tested."""
        sizes = [row.mde for row in self.rows if row.mde and range_of(row.name) == 1]
        return max(sizes, default=None)


@dataclass(frozen=True)
class Evidence:
    """A primary metric in the joint test, with the part of each case, above 0 for the better."""

    change: Change
    values: Floats

    @property
    def decides(self) -> bool:
        """Whether enough cases are left for a verdict."""
        return self.change.coverage is None or self.change.coverage.decides


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

    def rows_of(evidence: Sequence[Sequence[Evidence]]) -> list[tuple[Change, ...]]:
        return _tested_together(evidence, clusters, alpha, margin, seed, lead)

    rows = rows_of(runs)
    if any(_is_chosen(row) for own in rows for row in own):
        better, worse = (
            rows_of(
                [_against(word, *own, clusters, seed) for own in zip(tables, runs, strict=True)]
            )
            for word in ("better", "worse")
        )
        rows = [tuple(map(_held, *own)) for own in zip(rows, better, worse, strict=True)]
    changed = sum(bool(e.change.rose or e.change.fell) for own in runs for e in own) or 1
    return [Decision(headline_of(own, lead), own, alpha, changed, lead) for own in rows]


def _is_chosen(change: Change) -> bool:
    """Whether the cases that lost their score were not lost by chance."""
    return change.coverage is not None and change.coverage.loss == "chosen"


def _evidence(table: PrimaryTable, name: str, clusters: Ints | None, seed: int) -> Evidence:
    """One metric of two runs; where too few cases are left, as if it had not been scored."""
    a, b = table.column(name)
    unscored = _unscored(table, name)
    better = higher_is_better(name)
    coverage = coverage_of(a, b, clusters, higher=better, unscored=unscored, seed=seed)
    coverage = replace(coverage, chosen=table.chosen.get(name))
    change, values = measured(change_of(name, primary=True), a, b, clusters, seed)
    if not coverage.decides:
        values = np.full(len(values), np.nan)
    return Evidence(replace(change, coverage=coverage), values if better else -values)


def _unscored(table: PrimaryTable, name: str) -> tuple[Unscored | None, Unscored | None]:
    answered, right = (
        table.column(other) if other in table.names else (None, None)
        for other in ("pipeline.answered", "abstention.decision_right")
    )
    old, now = zip(answered, right, strict=True)
    return unscored_of(name, *old, right[1]), unscored_of(name, *now, right[0])


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
        if _is_chosen(own.change):
            name = own.change.name
            a, b = table.column(name)
            ends, unscored = ends_of(name), _unscored(table, name)
            if ends is None:
                a = b = np.full(len(a), np.nan)
            else:
                a, b = at_worst(a, b, ends, against=word, unscored=unscored)
            change, values = measured(own.change, a, b, clusters, seed)
            own = Evidence(change, values if higher_is_better(name) else -values)
        put.append(own)
    return put


def _held(change: Change, better: Change, worse: Change) -> Change:
    """What stands of the verdict on a chosen rest: ``better`` and ``worse`` are the change with the
    lost cases put against these."""
    if not _is_chosen(change) or change.p_joint is None or change.p_worse is None:
        return change
    suspect = worse.look or worse.verdict == "worse"
    p_worse = max(change.p_worse, worse.p_worse or 1.0)
    change = replace(change, p_worse=p_worse, look=change.look and suspect)
    if change.verdict not in ("better", "worse"):
        return change
    against = better if change.verdict == "better" else worse
    change = replace(change, p_joint=max(change.p_joint or 0.0, against.p_joint or 1.0))
    if against.verdict == change.verdict:
        return change
    return replace(change, verdict="no evidence", look=suspect, fragile=False)


def _tested_together(
    runs: Sequence[Sequence[Evidence]],
    clusters: Ints | None,
    alpha: float,
    margin: float | None,
    seed: int,
    lead: str,
) -> list[tuple[Change, ...]]:
    """The rows of each run by one joint test."""
    every = [evidence for own in runs for evidence in own]
    # By name: the same draws whatever the order in which the metrics come.
    order = sorted(range(len(every)), key=lambda at: every[at].change.name)
    place = {at: rank for rank, at in enumerate(order)}
    every = [every[at] for at in order]
    columns = [evidence.values for evidence in every]
    (both, below), critical = _adjusted(
        columns, clusters, ("both", "worse"), seed, DRAWS, alpha=alpha
    )
    asked = [critical[0]] * len(every)
    leads = [at for at, e in enumerate(every) if e.change.name == lead and e.decides]
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


def headline_of(rows: Sequence[Change], lead: str = "") -> Headline:
    """The verdicts of the primary metrics in a word. MIXED: better and worse ones.

    A ``lead`` that is better or worse is the word. Where it is neither, the others can make it
    worse and not better; where it has no verdict, there is none on the whole unless it is worse.
    """
    deciding = [
        row
        for row in rows
        if row.verdict != "no verdict" and row.coverage is not None and row.coverage.cases
    ]
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


def _row(
    evidence: Evidence,
    p: float,
    p_worse: float,
    critical: tuple[float, float],
    alpha: float,
    margin: float | None,
) -> Change:
    """``critical``: the statistics that the verdict and the gate's one-sided test ask for."""
    change = evidence.change
    if not evidence.decides:
        return replace(change, verdict="no verdict")
    if change.units < FEWEST_CLUSTERS:
        return replace(change, verdict="too few")
    mde = least = None
    if change.spread is not None:
        mde = minimum_detectable_effect(change.spread, critical[0], alpha)
        least = minimum_detectable_effect(change.spread, critical[1], 2 * alpha)
        if change.ratio is not None and mde is not None:
            mde = exp(mde)
    size = None if margin is None else margin * (range_of(change.name) or 1.0)
    verdict = verdict_of(change, p, alpha, size)
    suspect = p_worse <= alpha or change.side < 0
    look = suspect and verdict == "no evidence"
    fragile = verdict == "better" and one_loss_undoes(change)
    change = replace(change, p_joint=p, p_worse=p_worse, mde=mde, least_fall=least)
    change = replace(change, test=TEST, critical=critical[0], verdict=verdict)
    return replace(change, look=look, fragile=fragile)


def decided(change: Change, joint: Change, why: str = "") -> Change:
    """A primary metric with the result of the joint test.

    A metric that one run has no score of stays so, unless other metrics count why. ``why``: the
    usual reason of a lost score.
    """
    coverage = replace(joint.coverage or NOTHING, why=why)
    if change.verdict in ("only in base", "only in new") and not coverage.left_out:
        return replace(change, coverage=coverage)
    if joint.verdict == "no verdict":
        return replace(change, verdict="no verdict", interval=None, p=None, coverage=coverage)
    opposed = joint.verdict in ("better", "worse") and joint.opposed
    result = {name: getattr(joint, name) for name in _OF_TEST}
    verdict: ChangeVerdict = "mixed" if opposed else joint.verdict
    return replace(change, **result, test=TEST, verdict=verdict, coverage=coverage)


TEST = "joint sign-flip"

_OF_TEST = ("p_joint", "p_worse", "mde", "critical", "least_fall", "look", "fragile")
"""Fields that are results of the joint test."""


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

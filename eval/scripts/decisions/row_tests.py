"""A row of a comparison: one metric of two runs, tested by itself, and what the joint test adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisions.coverage import Coverage, too_many
from decisions.effects import Effect, plain_p
from decisions.engine import FEWEST_CLUSTERS, Decision, PrimaryRow, effect_of
from decisions.headline import REPEATS
from decisions.rows import MetricRow
from ragmetrics import catalogue
from ragmetrics.stats.arrays import Floats, Ints, np
from records.targets import TARGETS, declared_primary

if TYPE_CHECKING:
    from records.section_table import Mask


def is_binary(name: str) -> bool:
    """Whether a case scores 0 or 1."""
    try:
        return catalogue.find(name).binary
    except KeyError:
        return False


def one_sided(row: MetricRow) -> MetricRow:
    """The row of a metric that one run alone has."""
    if row.base_n or row.base_mean is not None:
        return replace(row, verdict="only in base")
    in_new = row.new_n or row.new_mean is not None
    return replace(row, verdict="only in new") if in_new else row


def tested(
    row: MetricRow,
    base: Floats,
    new: Floats,
    codes: Ints | None,
    seed: int,
    asked: Mask,
) -> MetricRow:
    """Add the means of a metric and its own test, over the cases that both runs scored.

    Without a test where most cases are lost in one run. ``asked``: cases that both were asked.
    """
    old, now = ~np.isnan(base), ~np.isnan(new)
    row = replace(
        row,
        lost=int((old & ~now).sum()),
        gained=int((now & ~old).sum()),
        base_n=int(old.sum()),
        new_n=int(now.sum()),
        base_mean=float(base[old].mean()) if old.any() else None,
        new_mean=float(new[now].mean()) if now.any() else None,
    )
    if not (row.base_n and row.new_n):
        return one_sided(row)
    effect, values = effect_of(row.name, base, new, codes, seed)
    if not effect.n:
        return row
    gone = int((now & ~old & asked).sum()), int((old & ~now & asked).sum())
    if too_many(effect.n, sum(gone)):
        few = with_effect(row, effect)
        coverage = Coverage(effect.n, gone, loss="too many")
        return replace(few, verdict="no verdict", interval=None, coverage=coverage)
    name = f"{row.name} {row.slice or ''}"
    p, test = plain_p(effect, values, codes, binary=is_binary(row.name), name=name, seed=seed)
    return replace(with_effect(row, effect), p=p, test=test)


def with_effect(row: MetricRow, effect: Effect) -> MetricRow:
    """The row with the numbers of its effect; without an interval where nothing is decided."""
    ratio, few = effect.ratio, effect.clusters < FEWEST_CLUSTERS
    return replace(
        row,
        n=effect.n,
        units=effect.clusters,
        base=effect.mean_a,
        new=effect.mean_b,
        delta=effect.difference,
        interval=None if few else effect.interval,
        rose=effect.rose,
        fell=effect.fell,
        ratio=ratio.typical if ratio else None,
        ratio_interval=ratio.interval if ratio and not few else None,
        ratio_totals=ratio.totals if ratio else None,
        effect=effect,
    )


def decided(row: MetricRow, found: PrimaryRow, why: str = "") -> MetricRow:
    """Add the result of the joint test to a primary row.

    A metric that one run has no score of stays so, unless other metrics count why. ``why``: the
    usual reason of a lost score.
    """
    coverage = replace(found.coverage, why=why)
    if row.verdict in ("only in base", "only in new") and not coverage.left_out:
        return replace(row, coverage=coverage)
    if found.verdict == "no verdict":
        return replace(row, verdict="no verdict", interval=None, p=None, coverage=coverage)
    ratio = found.effect.ratio
    verdict: Any = found.verdict
    if verdict in ("better", "worse") and ratio is not None and ratio.opposed:
        verdict = "mixed"
    return replace(
        row,
        p_joint=found.p,
        p_worse=found.p_worse,
        test="joint sign-flip",
        mde=exp(found.mde) if ratio is not None and found.mde is not None else found.mde,
        critical=found.critical,
        least_fall=found.least_fall,
        verdict=verdict,
        look=found.look,
        fragile=found.fragile,
        coverage=coverage,
    )


def rows_of(decision: Decision, rows: Sequence[MetricRow]) -> tuple[MetricRow, ...]:
    """The primary rows as another decision has them, such as one on fewer cases."""
    by_name = {row.name: row for row in rows}
    return tuple(
        decided(with_effect(replace(by_name[found.name], n=0), found.effect), found)
        for found in decision.rows
        if found.name in by_name
    )


def bot_noise(
    base: Mapping[str, Any], new: Mapping[str, Any], metric: str
) -> tuple[float, float] | None:
    """The bot's own part of n times the variance of a mean difference: of the two runs as they were
    asked, and with ``REPEATS`` answers a case in both; None where no run has repeats."""
    known, asked = [], []
    for section in (base, new):
        stability = section.get("stability") or {}
        asked.append(max(1, stability.get("repeats") or 1))
        within = (stability.get("metrics", {}).get(metric) or {}).get("within")
        known += [] if within is None else [within]
    if not known:
        return None
    variance = sum(known) / len(known)
    return variance * sum(1 / count for count in asked), variance * 2 / REPEATS


def half_measured(
    rows: Sequence[MetricRow], names: Sequence[str], targets: Path = TARGETS
) -> tuple[tuple[str, bool], ...]:
    """Primary metrics that one run alone has, each with whether that is the base: those that the
    new run lost, and those that targets.toml declares."""
    declared = declared_primary(targets)
    by_name = {row.name: row.verdict for row in rows if row.name in names}
    lost = [(name, True) for name, verdict in by_name.items() if verdict == "only in base"]
    more = [(n, False) for n, v in by_name.items() if v == "only in new" and n in declared]
    return tuple(lost + more)

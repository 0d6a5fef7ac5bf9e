"""A row of a comparison: one metric of two runs, tested by itself, and what the joint test adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

from decisions.effects import Effect, measure, plain_p
from decisions.engine import FEWEST_CLUSTERS, Evidence, PrimaryRow, evidence_of, is_skewed, range_of
from decisions.headline import REPEATS
from decisions.rows import MetricRow
from ragmetrics import catalogue
from ragmetrics.stats.arrays import Floats, Ints, np
from records.targets import TARGETS, declared_primary


def is_binary(name: str) -> bool:
    """Whether a case scores 0 or 1."""
    try:
        return catalogue.find(name).binary
    except KeyError:
        return False


def one_sided(row: MetricRow) -> MetricRow:
    if row.base_mean is not None:
        return replace(row, verdict="only in base")
    return replace(row, verdict="only in new") if row.new_mean is not None else row


def tested(
    row: MetricRow, base: Floats | None, new: Floats | None, codes: Ints | None, seed: int
) -> tuple[MetricRow, Evidence | None]:
    """The row with means and its own test over the cases that both runs scored, and its evidence
    for the joint test."""
    if base is None or new is None:
        return one_sided(row), None
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
        return one_sided(row), None
    if row.primary:
        evidence = evidence_of(row.name, base, new, codes, seed)
        effect, values = evidence.effect, evidence.values
    else:
        evidence = None
        effect, values = measure(
            base, new, codes, skewed=is_skewed(row.name), largest=range_of(row.name), seed=seed
        )
    if not effect.n:
        return row, None
    name = f"{row.name} {row.slice or ''}"
    p, test = plain_p(effect, values, codes, binary=is_binary(row.name), name=name, seed=seed)
    return replace(with_effect(row, effect), p=p, test=test), evidence


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


def decided(row: MetricRow, found: PrimaryRow) -> MetricRow:
    """A primary row with the result of the joint test."""
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
        parts = (stability.get("metrics", {}).get(metric) or {}).get("variance") or {}
        own = [value for source, value in parts.items() if source != "cases" and value is not None]
        known += [sum(own)] if own else []
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

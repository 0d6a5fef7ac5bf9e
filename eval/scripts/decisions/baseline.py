"""The numbers of a run beside those of a baseline: a report of the suite or a metrics.json.

Each metric that both hold under the same definition is set against the other in its own direction;
of a primary metric with the result of the joint test (decisions/regressions.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from decisions.change import Change
from decisions.conditions import Conditions
from decisions.effects import ALPHA
from decisions.measures import Measure

FAILING = ("regression", "no longer measured")
"""Outcomes that fail a suite."""

EPSILON = 1e-6


def compare(
    baseline: Conditions,
    measures: Mapping[tuple[str, str], Measure],
    sections: Iterable[str],
    primary: Mapping[str, Change],
    gone: Mapping[str, str] | None = None,
) -> list[Change]:
    """The change of each mean that the baseline measured, in the given sections.

    ``primary``: the primary metrics, by ``section.metric``, as the joint test has them. ``gone``:
    why a section has no numbers now.
    """
    changes = []
    for section in sections:
        before = baseline.sections.get(section)
        for metric, mean in before["mean"].items() if before else ():
            if mean is not None:
                definition = before["definitions"].get(metric) if before else None
                now = measures.get((section, metric))
                change = _change(section, metric, mean, definition, now, primary)
                if change.verdict == "only in base":
                    change = replace(change, reason=(gone or {}).get(section, ""))
                changes.append(change)
    return changes


def _change(
    section: str,
    metric: str,
    before: float,
    definition: str | None,
    now: Measure | None,
    primary: Mapping[str, Change],
) -> Change:
    higher = None if now is None else now.higher_is_better
    means = Change(section, metric, higher, base_mean=before, verdict="only in base")
    if now is None or now.mean is None:
        nowhere = now is not None and now.not_applicable and not now.failed
        lost = means.name in primary or not nowhere
        return means if lost else replace(means, verdict="not applicable")
    means = replace(means, new_mean=now.mean)
    if now.definition != definition:
        return replace(means, verdict="not comparable")
    joint = primary.get(means.name, replace(means, verdict="not tested"))
    return replace(
        means,
        delta=now.mean - before,
        verdict=joint.verdict,
        p_worse=joint.p_worse,
        reason=joint.reason,
    )


def is_worse(change: Change) -> bool:
    """Whether a metric is worse by more than chance, and by more than does not matter."""
    return change.p_worse is not None and change.p_worse <= ALPHA and change.verdict != "equal"


def outcome_of(change: Change, max_drop: float | None = None) -> str:
    """The outcome of a change in a word.

    A primary metric has the verdict of the joint test, and is a regression by its one-sided p;
    others are not tested: ``lower`` or ``higher``, which is no verdict. ``max_drop``: any metric
    that is worse by more is a regression.
    """
    if change.delta is None:
        return "no longer measured" if change.verdict == "only in base" else change.verdict
    if max_drop is not None and change.worse_by > max_drop + EPSILON:
        return "regression"
    if is_worse(change):
        return "regression"
    if abs(change.delta) <= EPSILON:
        return "same"
    untested = "higher" if change.delta > 0 else "lower"
    return untested if change.verdict == "not tested" else change.verdict


def caveats(baseline: Conditions, suite: str, cases: int) -> list[str]:
    """The weaknesses of the comparison, in sentences; the gate reports anything that forbids it."""
    before, of_suite = baseline.metrics.get("cases"), baseline.metrics.get("suite") or "full"
    if before is not None and before != cases:
        return [f"The baseline has {before} cases, this run {cases}."]
    if of_suite != suite:
        return [f"The baseline is of the {of_suite} suite, this is {suite}."]
    return []

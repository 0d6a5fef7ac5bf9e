"""Regressions: is this run worse than a baseline, by more than chance explains?

A baseline is a report of the suite or a metrics.json. Each metric that both hold under the same
definition is compared in its own direction. It is a *regression* when it is worse by more than the
95 % interval of the difference (the half-widths of both intervals, squared, added, root taken), or
by more than ``max_drop`` where one is given. Runs are compared as independent samples, which asks
for more evidence than a comparison case by case would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from math import sqrt
from pathlib import Path
from typing import Any, Literal

from decisions.measures import Measure
from records.errors import StorageError
from records.metrics import ComparedSection, read_sections
from records.runs import METRICS

ChangeVerdict = Literal[
    "regression", "worse", "same", "better", "not comparable", "no longer measured"
]

FAILING: tuple[ChangeVerdict, ...] = ("regression", "no longer measured")

EPSILON = 1e-6

REMEDY = "give a report of eval_suite.py or a metrics.json, unchanged"


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """One metric then and now. ``worse_by`` is above 0 when it got worse; ``noise`` is what chance
    may do, None when an interval is missing; ``reason`` is why a whole section is gone."""

    section: str
    metric: str
    before: float | None
    now: float | None
    worse_by: float | None
    noise: float | None
    verdict: ChangeVerdict
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Baseline:
    """The sections of an earlier report, and how much was measured."""

    path: str
    sections: Mapping[str, Mapping[str, Any]]
    suite: str | None
    cases: int | None


def read_baseline(path: Path, whole: type[ComparedSection] = ComparedSection) -> Baseline:
    """A report or metrics.json. Raises StorageError when it is neither, or has a faulty part."""
    if path.is_dir():
        path = path / METRICS
    raw = read_sections(path, whole, REMEDY)
    sections = raw.get("sections")
    if sections is None or not all("mean" in section for section in sections.values()):
        raise StorageError(f"{path}: is no baseline; {REMEDY}.")
    return Baseline(str(path), sections, raw.get("suite"), raw.get("cases"))


def compare(
    baseline: Baseline,
    measures: Mapping[tuple[str, str], Measure],
    sections: Iterable[str],
    max_drop: float | None = None,
    gone: Mapping[str, str] | None = None,
) -> list[BaselineChange]:
    """The change of each metric that the baseline measured, in the given sections.

    ``gone``: why a section has no numbers now.
    """
    changes = []
    for section in sections:
        before = baseline.sections.get(section)
        for metric, mean in before["mean"].items() if before else ():
            if mean is not None:
                interval = before["ci95"].get(metric) if before else None
                definition = before["definitions"].get(metric) if before else None
                now = measures.get((section, metric))
                change = _change(section, metric, mean, interval, definition, now, max_drop)
                if change.verdict == "no longer measured":
                    change = replace(change, reason=(gone or {}).get(section, ""))
                changes.append(change)
    return changes


def _change(
    section: str,
    metric: str,
    before: float,
    interval: list[float] | None,
    definition: str | None,
    now: Measure | None,
    max_drop: float | None,
) -> BaselineChange:
    if now is None or now.mean is None:
        return BaselineChange(section, metric, before, None, None, None, "no longer measured")
    if now.definition != definition:
        return BaselineChange(section, metric, before, now.mean, None, None, "not comparable")
    worse_by = (before - now.mean) * (1 if now.higher_is_better else -1)
    noise = noise_of(interval, now.ci95)
    return BaselineChange(
        section, metric, before, now.mean, worse_by, noise, _verdict(worse_by, noise, max_drop)
    )


def noise_of(before: Iterable[float] | None, now: Iterable[float] | None) -> float | None:
    """Half the 95 % interval of a difference, from the intervals of two independent runs."""
    if not before or not now:
        return None
    return sqrt((_width(before) / 2) ** 2 + (_width(now) / 2) ** 2)


def _width(interval: Iterable[float]) -> float:
    low, high = interval
    return high - low


def _verdict(worse_by: float, noise: float | None, max_drop: float | None = None) -> ChangeVerdict:
    """What a change amounts to; without intervals only ``max_drop`` can make it a regression."""
    if max_drop is not None and worse_by > max_drop + EPSILON:
        return "regression"
    if noise is not None and worse_by > noise + EPSILON:
        return "regression"
    if abs(worse_by) <= EPSILON:
        return "same"
    return "worse" if worse_by > 0 else "better"


def caveats(baseline: Baseline, suite: str, cases: int) -> list[str]:
    """What makes the comparison lame, in sentences; what forbids it is gating's to say."""
    notes = []
    if baseline.cases is not None and baseline.cases != cases:
        notes.append(f"The baseline has {baseline.cases} cases, this run {cases}.")
    elif (baseline.suite or "full") != suite:
        notes.append(f"The baseline is of the {baseline.suite or 'full'} suite, this is {suite}.")
    return notes

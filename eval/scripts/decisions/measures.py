"""The numbers of all sections of a run, one row a metric, with target, verdict on it and band."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ragmetrics.catalogue import BY_DEFINITION
from ragmetrics.catalogue.metric import Metric
from ragmetrics.catalogue.retrieval import PER_SEARCH
from records.targets import ADVISORY, Target, parse_target

Sections = Mapping[str, Mapping[str, Any]]

Targets = Mapping[str, Mapping[str, Target]]

NONE: Targets = {}

FEWEST_CASES = 8
"""A mean over fewer scored cases neither meets nor misses its target. (A gate's floor counts with
any number of cases.)"""

TargetVerdict = Literal["met", "missed", "too few to say", "not measured"]

SIGNS = {None: "", "met": "✓", "missed": "✗", "too few to say": "?", "not measured": "?"}

BANDS = ((0.9, "excellent"), (0.7, "good"), (0.5, "fair"))

WORST_BAND = "poor"

UNCLEAR_BAND = "too few to tell"
"""In place of a band where the interval reaches over more than two of them, or there is none."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number. ``passed`` is None without a target, without a mean (no mean never passes), and
    for a mean of too few cases or texts. ``advisory``: a bound that is shown and decides nothing.
    """

    section: str
    metric: str
    mean: float | None
    ci95: tuple[float, float] | None
    n: int
    not_applicable: int
    failed: int
    definition: str
    higher_is_better: bool
    target: str | None = None
    passed: bool | None = None
    band: str | None = None
    advisory: str | None = None
    mark: str = ""
    """Why the interval is to be doubted, or is not there."""
    per_search: int = 0
    """Answers that saw several searches; the first k of each of these count, together."""

    @property
    def title(self) -> str:
        """The name of the row in a table."""
        return f"{self.metric} (per search)" if self.per_search else self.metric

    @property
    def bound(self) -> float | None:
        """The number of its target, an advisory one too; None without."""
        target = parse_target((self.target or self.advisory or "").removeprefix(ADVISORY))
        return None if target is None else target.bound

    @property
    def verdict(self) -> TargetVerdict | None:
        """Whether the target is met, in words; None without one."""
        if self.target is None:
            return None
        if self.passed is None:
            return "not measured" if self.mean is None else "too few to say"
        return "met" if self.passed else "missed"

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self) | {"verdict": self.verdict}
        return fields if self.per_search else {k: v for k, v in fields.items() if k != "per_search"}


def measures(
    sections: Sections,
    targets: Targets,
    custom: Iterable[Metric] = (),
    advisory: Targets = NONE,
    fewest: int = FEWEST_CASES,
) -> dict[tuple[str, str], Measure]:
    """Every metric of every section, by (section, metric).

    Targets for metrics that no section holds are rows without a mean; ``advisory`` ones are not.
    A mean over fewer cases than ``fewest`` neither meets nor misses its target.
    """
    rows = known_metrics(custom)
    rows_by_key: dict[tuple[str, str], Measure] = {}
    for name, section in sections.items():
        for metric in section["mean"]:
            target = targets.get(name, {}).get(metric)
            bound = advisory.get(name, {}).get(metric)
            row = _measure(name, section, metric, target, bound, rows)
            few = row.n < fewest
            rows_by_key[name, metric] = replace(row, passed=None) if few else row
        for metric, target in targets.get(name, {}).items():
            if (name, metric) not in rows_by_key:
                rows_by_key[name, metric] = Measure(
                    name, metric, None, None, 0, 0, 0, "", True, str(target)
                )
    return rows_by_key


def known_metrics(custom: Iterable[Metric] = ()) -> dict[str, Metric]:
    """Catalogue rows, and those of plugins, by definition id."""
    return {**BY_DEFINITION, **{metric.definition: metric for metric in custom}}


def _measure(
    name: str,
    section: Mapping[str, Any],
    metric: str,
    target: Target | None,
    advisory: Target | None,
    rows: Mapping[str, Metric],
) -> Measure:
    definition = section["definitions"].get(metric, "")
    row = rows.get(definition)
    mean = section["mean"][metric]
    interval = section["ci95"].get(metric)
    point = section.get("operating_points", {}).get(metric)
    tells = point is None or point["estimable"]
    return Measure(
        name,
        metric,
        mean,
        (interval[0], interval[1]) if interval else None,
        section["n"].get(metric, 0),
        section["not_applicable"].get(metric, 0),
        section["failed"].get(metric, 0),
        definition,
        row is None or row.higher_is_better,
        str(target) if target else None,
        target.passed(mean) if target and tells else None,
        band(mean, row, interval) if row and tells else None,
        str(advisory) if advisory else None,
        section.get("marks", {}).get(metric, ""),
        section.get("per_search", 0) if row and row.name in PER_SEARCH else 0,
    )


def targets_text(verdicts: Iterable[TargetVerdict | None]) -> str:
    """How many targets a run meets: ``14 of 27 targets met, 10 missed, 3 too few to say``.

    Parts of 0 are left out. None is a metric without a target.
    """
    counts = Counter(verdict for verdict in verdicts if verdict is not None)
    targets = counts.total()
    if not targets:
        return "No target is set for what was measured"
    parts = [f"{counts['met']} of {targets} {'target' if targets == 1 else 'targets'} met"]
    others: tuple[TargetVerdict, ...] = ("missed", "too few to say", "not measured")
    return ", ".join(parts + [f"{counts[name]} {name}" for name in others if counts[name]])


def band(mean: float | None, metric: Metric, ci95: Sequence[float] | None) -> str | None:
    """excellent from 0.9, good from 0.7, fair from 0.5, else poor.

    Only of shares that should be high: None for any other metric. ``too few to tell`` when the
    interval reaches over more than two bands, and without one: a single case, or cases that all
    share one document, say nothing of others.
    """
    is_share = metric.unit == "share" and (metric.low, metric.high) == (0.0, 1.0)
    if mean is None or not is_share or not metric.higher_is_better:
        return None
    if ci95 is None or _band_number(ci95[0]) - _band_number(ci95[1]) > 1:
        return UNCLEAR_BAND
    return (*(name for _, name in BANDS), WORST_BAND)[_band_number(mean)]


def _band_number(share: float) -> int:
    """0 for the best band."""
    return sum(share < bound for bound, _ in BANDS)

"""The numbers of all sections of a run, one row a metric, with target, pass mark and band."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ragmetrics.catalogue import BY_DEFINITION
from ragmetrics.catalogue.metric import Metric
from ragmetrics.catalogue.retrieval import PER_SEARCH
from records.targets import ADVISORY, Target, parse_target

Sections = Mapping[str, Mapping[str, Any]]

Targets = Mapping[str, Mapping[str, Target]]

NONE: Targets = {}

BANDS = ((0.9, "excellent"), (0.7, "good"), (0.5, "fair"))

WORST_BAND = "poor"

UNCLEAR_BAND = "too few to tell"
"""In place of a band where the interval reaches over more than two of them, or there is none."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One number. ``passed`` is None without a target, without a mean (no mean never passes), and
    for a mean of too few texts to tell, which has no band either. ``advisory``: a bound that is
    shown and decides nothing."""

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
    def open(self) -> bool:
        """Whether there is a target, but nothing that could meet it."""
        return bool(self.target) and self.passed is None

    def to_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        return fields if self.per_search else {k: v for k, v in fields.items() if k != "per_search"}


def measures(
    sections: Sections,
    targets: Targets,
    custom: Iterable[Metric] = (),
    advisory: Targets = NONE,
) -> dict[tuple[str, str], Measure]:
    """Every metric of every section, by (section, metric).

    Targets for metrics that no section holds are rows without a mean; ``advisory`` ones are not.
    """
    rows = known_metrics(custom)
    rows_by_key: dict[tuple[str, str], Measure] = {}
    for name, section in sections.items():
        for metric in section["mean"]:
            target = targets.get(name, {}).get(metric)
            bound = advisory.get(name, {}).get(metric)
            rows_by_key[name, metric] = _measure(name, section, metric, target, bound, rows)
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


def targets_text(met: int, missed: int, not_measured: int) -> str:
    """How many targets a run meets, in words: ``14 of 27 targets met, 10 missed, 3 not measured``.

    Parts of 0 are left out.
    """
    targets = met + missed + not_measured
    parts = [f"{met} of {targets} {'target' if targets == 1 else 'targets'} met"]
    parts += [f"{missed} missed"] if missed else []
    parts += [f"{not_measured} not measured"] if not_measured else []
    return ", ".join(parts)


def targets_met(measures: Iterable[Measure]) -> str:
    """How many targets these numbers meet, in words; "" where none has a target."""
    aimed = [measure for measure in measures if measure.target is not None]
    measured = [measure for measure in aimed if measure.passed is not None]
    met = sum(measure.passed is True for measure in measured)
    text = targets_text(met, len(measured) - met, len(aimed) - len(measured))
    return text if aimed else ""


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

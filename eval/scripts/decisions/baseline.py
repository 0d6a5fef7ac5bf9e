"""The numbers of a run beside those of a baseline: a report of the suite or a metrics.json.

Each metric that both hold under the same definition is set against the other in its own direction.
Whether a primary metric is a *regression* the engine says (decisions/regressions.py); ``max_drop``,
where one is given, makes any metric one that is worse by more. The others are shown, not tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from decisions.effects import ALPHA
from decisions.measures import Measure
from records.errors import StorageError
from records.metrics import ComparedSection, read_sections
from records.runs import METRICS

ChangeVerdict = Literal[
    "regression",
    "worse",
    "same",
    "better",
    "not comparable",
    "not applicable",
    "no longer measured",
]
"""``not applicable``: in no case any more, and no primary metric."""

FAILING: tuple[ChangeVerdict, ...] = ("regression", "no longer measured")

EPSILON = 1e-6

REMEDY = "give a report of eval_suite.py or a metrics.json, unchanged"


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """One metric then and now. ``worse_by`` is above 0 when it got worse; ``p`` is that of a
    primary metric, None for others; ``reason`` is why a whole section is gone."""

    section: str
    metric: str
    before: float | None
    now: float | None
    worse_by: float | None
    p: float | None
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
    p: Mapping[str, float | None],
    max_drop: float | None = None,
    gone: Mapping[str, str] | None = None,
) -> list[BaselineChange]:
    """The change of each metric that the baseline measured, in the given sections.

    ``p``: of each primary metric, ``section.metric``, that it is no worse; None where that could
    not be tested. ``gone``: why a section
    has no numbers now.
    """
    changes = []
    for section in sections:
        before = baseline.sections.get(section)
        for metric, mean in before["mean"].items() if before else ():
            if mean is not None:
                definition = before["definitions"].get(metric) if before else None
                now = measures.get((section, metric))
                change = _change(section, metric, mean, definition, now, p, max_drop)
                if change.verdict == "no longer measured":
                    change = replace(change, reason=(gone or {}).get(section, ""))
                changes.append(change)
    return changes


def _change(
    section: str,
    metric: str,
    before: float,
    definition: str | None,
    now: Measure | None,
    p: Mapping[str, float | None],
    max_drop: float | None,
) -> BaselineChange:
    name = f"{section}.{metric}"
    if now is None or now.mean is None:
        nowhere = now is not None and now.not_applicable and not now.failed
        lost: ChangeVerdict = (
            "not applicable" if nowhere and name not in p else "no longer measured"
        )
        return BaselineChange(section, metric, before, None, None, None, lost)
    if now.definition != definition:
        return BaselineChange(section, metric, before, now.mean, None, None, "not comparable")
    worse_by = (before - now.mean) * (1 if now.higher_is_better else -1)
    chance = p.get(name)
    verdict = verdict_of(worse_by, chance, max_drop)
    return BaselineChange(section, metric, before, now.mean, worse_by, chance, verdict)


def verdict_of(worse_by: float, p: float | None, max_drop: float | None = None) -> ChangeVerdict:
    """What a change amounts to."""
    if max_drop is not None and worse_by > max_drop + EPSILON:
        return "regression"
    if p is not None and p <= ALPHA:
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

"""The numbers of a run beside those of a baseline: a report of the suite or a metrics.json.

Each metric that both hold under the same definition is set against the other in its own direction.
Of a primary metric the engine says what its change amounts to (decisions/regressions.py). Others
are not tested: they are lower or higher than before, which is no verdict. ``max_drop``, where one
is given, makes any metric a regression that is worse by more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from decisions.effects import ALPHA
from decisions.measures import Measure
from records.errors import StorageError
from records.metrics import ComparedSection, read_sections
from records.runs import METRICS

ChangeVerdict = Literal[
    "regression",
    "worse",
    "better",
    "mixed",
    "equal",
    "no evidence",
    "too few",
    "lower",
    "higher",
    "same",
    "not comparable",
    "not applicable",
    "no longer measured",
]
"""``worse`` to ``too few``: the engine's verdicts on primary metrics. ``lower``, ``higher``: not
tested. ``not applicable``: in no case any more, and no primary metric."""

FAILING: tuple[ChangeVerdict, ...] = ("regression", "no longer measured")

EPSILON = 1e-6

REMEDY = "give a report of eval_suite.py or a metrics.json, unchanged"


class EngineVerdict(NamedTuple):
    """The engine's verdict on a primary metric. ``p``: that it is no worse, None where that could
    not be tested. ``verdict``: "" where the baseline's scores are of no case of the run."""

    p: float | None = None
    verdict: ChangeVerdict | Literal[""] = ""


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
    tests: Mapping[str, EngineVerdict],
    max_drop: float | None = None,
    gone: Mapping[str, str] | None = None,
) -> list[BaselineChange]:
    """The change of each metric that the baseline measured, in the given sections.

    ``tests``: of each primary metric, by ``section.metric``. ``gone``: why a section has no numbers
    now.
    """
    changes = []
    for section in sections:
        before = baseline.sections.get(section)
        for metric, mean in before["mean"].items() if before else ():
            if mean is not None:
                definition = before["definitions"].get(metric) if before else None
                now = measures.get((section, metric))
                change = _change(section, metric, mean, definition, now, tests, max_drop)
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
    tests: Mapping[str, EngineVerdict],
    max_drop: float | None,
) -> BaselineChange:
    name = f"{section}.{metric}"
    if now is None or now.mean is None:
        nowhere = now is not None and now.not_applicable and not now.failed
        lost: ChangeVerdict = (
            "not applicable" if nowhere and name not in tests else "no longer measured"
        )
        return BaselineChange(section, metric, before, None, None, None, lost)
    if now.definition != definition:
        return BaselineChange(section, metric, before, now.mean, None, None, "not comparable")
    test = tests.get(name, EngineVerdict())
    delta = now.mean - before
    worse_by = -delta if now.higher_is_better else delta
    verdict = verdict_of(delta, worse_by, test, max_drop)
    return BaselineChange(section, metric, before, now.mean, worse_by, test.p, verdict)


def verdict_of(
    delta: float, worse_by: float, test: EngineVerdict, max_drop: float | None = None
) -> ChangeVerdict:
    """The verdict on a change."""
    if max_drop is not None and worse_by > max_drop + EPSILON:
        return "regression"
    if test.p is not None and test.p <= ALPHA and test.verdict != "equal":
        return "regression"
    if abs(delta) <= EPSILON:
        return "same"
    return test.verdict or ("higher" if delta > 0 else "lower")


def caveats(baseline: Baseline, suite: str, cases: int) -> list[str]:
    """The weaknesses of the comparison, in sentences; the gate reports anything that forbids it."""
    notes = []
    if baseline.cases is not None and baseline.cases != cases:
        notes.append(f"The baseline has {baseline.cases} cases, this run {cases}.")
    elif (baseline.suite or "full") != suite:
        notes.append(f"The baseline is of the {baseline.suite or 'full'} suite, this is {suite}.")
    return notes

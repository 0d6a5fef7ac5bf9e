"""Is a run worse than its baseline? One answer for the gate and the suite.

The primary metrics are tested together, one-sided, case by case (decisions/engine.py). Where one of
the runs has no primary scores of its cases the means are compared as those of independent samples,
which takes many more cases; then Holm's correction stands for the joint test.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, hypot
from typing import Any, cast

from decisions.baseline import ChangeVerdict
from decisions.change import FEWEST_CLUSTERS, Change, direction, range_of
from decisions.committed import comparison_of
from decisions.compare import CompareOptions, compare
from decisions.effects import ALPHA, POWER
from decisions.engine import decide
from decisions.gate_checks import GateEvidence, RunNumbers, left_out_of
from decisions.headline import repeat_advice, with_headline
from decisions.metric_words import no_verdict_words
from decisions.primary import (
    PrimaryScores,
    clusters_of_run,
    lead_of,
    paired_table,
    primary_names,
    read_primary,
)
from ragmetrics.stats.significance import holm
from records.clusters import AUTO, DOCUMENT, NONE, SECTION, Clustering
from records.runs import scored_sections
from records.targets import declared_matters
from terminal.tables import counted

PAIRED, UNPAIRED = "paired cases, joint test", "two independent samples"

FALL = 0.05
"""The true fall, as a share of a metric's range, of ``Regression.needed``."""

WIDTH = 1.959963984540054
"""Standard errors in half of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Regression:
    """A primary metric then and now. ``p``: that the run is no worse, corrected for all primary
    metrics; None where nothing can be decided, for the ``reason``. ``needed``: of an unpaired test,
    the cases that each run would need to show a fall of ``FALL`` 4 times in 5. ``verdict``: the
    engine's, two-sided, as compare_runs.py prints it."""

    name: str
    before: float | None
    now: float | None
    delta: float | None
    interval: tuple[float, float] | None
    n: int
    method: str
    p: float | None = None
    reason: str = ""
    needed: int | None = None
    verdict: ChangeVerdict = "no evidence"
    least_fall: float | None = None
    """The smallest fall that this test would find 4 times in 5."""
    excused: bool = False
    """No verdict for the sake of failed calls and declined answers, which other metrics judge."""

    @property
    def worse(self) -> bool:
        """Whether it is worse by more than chance, and by more than does not matter."""
        return self.p is not None and self.p <= ALPHA and self.verdict != "equal"

    @property
    def worse_by(self) -> float:
        """How far the mean went the bad way; below 0 for a gain."""
        return (self.delta or 0.0) * (1 if direction(self.name) is False else -1)


@dataclass(frozen=True)
class Regressions:
    """The changes of the primary metrics.

    ``lost``: scored in the baseline and no longer. ``gained``: declared, and scored in the run
    alone. ``redefined``: both definitions of a metric that
    the runs mean otherwise. ``untested``: the baseline has no score of it. ``cases``: how cases
    were counted together, in words.
    """

    rows: tuple[Regression, ...] = ()
    lost: tuple[str, ...] = ()
    redefined: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    untested: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    cases: str = ""
    headline: str = ""
    says: tuple[str, ...] = ()
    """The first line of the comparison, as compare_runs.py prints it; () without case scores."""
    advice: str = ""
    """The benefit of repeats in words; "" if it is unknown."""
    notes: tuple[str, ...] = ()
    effects: Mapping[str, Change] = field(default_factory=dict)
    """Of every metric that could be compared case by case, by ``section.metric``."""

    @property
    def no_verdict(self) -> str:
        """Why no primary metric could be tested; "" when any was, or none is in both runs."""
        tested = any(row.p is not None for row in self.rows)
        return "" if tested or not self.rows else self.rows[0].reason


def regressions(
    evidence: GateEvidence, names: Collection[str], sections: Collection[str] = ()
) -> Regressions:
    """Test all primary metrics, and report on those in ``names``.

    ``sections``: others whose effects are wanted, where both runs have score lines. A section that
    was scored differently is left out. Raises StorageError for damaged files.
    """
    base, new = evidence.base, evidence.new
    assert base is not None
    if not names and not sections:
        return Regressions()
    clustering, notes = _clusters(evidence)
    labels = clustering.labels if clustering else None
    declared = primary_names(evidence.targets)
    differing = left_out_of(evidence, base.sections)
    names = [name for name in names if name.partition(".")[0] not in differing]
    declared = tuple(name for name in declared if name.partition(".")[0] not in differing)
    of_interest = {name.partition(".")[0] for name in declared} | {*sections}
    shared = _shared_sections(base, new, of_interest) - differing.keys()
    effects: dict[str, Change] = {}
    if base.folder is not None and new.folder is not None and shared:
        options = CompareOptions(
            sections=tuple(sorted(shared)),
            every=bool(sections),
            ignore_invariants=True,
            seed=evidence.seed,
            targets=evidence.targets,
            eval_set=evidence.eval_set,
        )
        comparison = compare(
            base.folder, new.folder, options, clusters=clustering, tables=evidence.tables
        )
        effects = {row.name: row for row in comparison.rows if row.n}
        scored = [
            {row.name for row in comparison.rows if (row.base_n, row.new_n)[side]}
            for side in (0, 1)
        ]
    else:
        sources = (side.folder or side.source for side in (base, new))
        old, now = (read_primary(path, declared) if path else None for path in sources)
        if old is None or now is None:
            return _unpaired(base, new, [name for name in declared if name in names])
        lead, margin = lead_of(declared, evidence.targets), declared_matters(evidence.targets)
        table = paired_table(old, now, labels)
        decision = decide(table, margin=margin, seed=evidence.seed, lead=lead)
        heads = _head(base), _head(new)
        ids = base.label, new.label
        comparison = comparison_of(ids, decision, (old, now), heads, evidence.targets)
        scope = clustering.scope if clustering else ""
        comparison = replace(comparison, scope=scope, margin=margin)
        comparison = with_headline(comparison, {})
        effects = {row.name: row for row in decision.rows}
        scored = [_scored(old), _scored(now)]
    excused = {row.name for row in comparison.rows if row.coverage and row.coverage.left_out}
    redefined = _redefined(base, new, [name for name in names if name in scored[0] & scored[1]])
    unit = _UNITS.get(clustering.by, "group") if clustering else "group"
    scope = clustering.scope if clustering else ""
    if scope:
        notes.insert(0, f"All verdicts are {scope}.")
    tests = [row for row in comparison.rows if row.primary and row.name in names]
    found = [
        _regression(row, unit)
        for row in tests
        if row.name not in redefined and row.name in (scored[0] & scored[1]) | excused
    ]
    gained = tuple(name for name, in_base in comparison.half if not in_base and name in names)
    return Regressions(
        tuple(found),
        tuple(name for name in names if name in scored[0] - scored[1] - excused),
        redefined,
        tuple(name for name in names if name not in {*scored[0], *gained, *excused}),
        gained,
        clustering.sentence if clustering and (scope or clustering.by != NONE) else "",
        comparison.headline,
        comparison.says,
        repeat_advice(comparison.rows),
        tuple(notes),
        effects,
    )


def _head(side: RunNumbers) -> dict[str, Any]:
    return {**side.header, "sections": side.sections}


_UNITS = {AUTO: "document", DOCUMENT: "document", SECTION: "section"}
"""What cases are counted together by, in a word."""


def _regression(row: Change, unit: str) -> Regression:
    """``unit``: what the cases are counted together by, in a word."""
    coverage, reason = row.coverage, ""
    if row.verdict == "no verdict" and coverage is not None:
        means = row.base_mean, row.new_mean
        reason = f"no verdict: {no_verdict_words(row)}"
        excused = coverage.left_out
        return Regression(
            row.name, *means, None, None, coverage.both, PAIRED, reason=reason, excused=excused
        )
    if not row.n:
        reason = "no verdict: no case has a score in both runs"
        means = row.base_mean, row.new_mean
        return Regression(row.name, *means, None, None, 0, PAIRED, reason=reason)
    if row.verdict == "too few":
        counted_units = counted(row.units, unit if row.units < row.n else "case")
        reason = f"no verdict: {counted_units}; at least {FEWEST_CLUSTERS} are needed"
    return Regression(
        row.name,
        row.base,
        row.new,
        row.delta,
        row.interval,
        row.n,
        PAIRED,
        row.p_worse,
        reason,
        verdict=cast(ChangeVerdict, row.verdict),
        least_fall=row.least_fall,
    )


def _shared_sections(base: RunNumbers, new: RunNumbers, sections: Collection[str]) -> set[str]:
    """Those of some sections of which both runs have score lines that metrics.json describes."""
    shared = {*sections}
    for side in (base, new):
        shared &= {*side.sections, *(scored_sections(side.folder) if side.folder else ())}
        if side.folder:
            shared &= set(scored_sections(side.folder))
    return shared


def _redefined(
    base: RunNumbers, new: RunNumbers, names: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Both definitions of the metrics that the runs mean otherwise."""
    changed = {}
    for name in names:
        section, _, metric = name.partition(".")
        then, now = (side.part(section, "definitions", metric) for side in (base, new))
        if then is not None and now is not None and then != now:
            changed[name] = (then, now)
    return changed


def _scored(scores: PrimaryScores) -> set[str]:
    """The metrics of which any case has a score."""
    columns = scores.values.T
    return {n for n, column in zip(scores.names, columns, strict=True) if (column == column).any()}


def _clusters(evidence: GateEvidence) -> tuple[Clustering | None, list[str]]:
    """Which cases are counted together, see ``primary.clusters_of_run``."""
    header, label = evidence.new.header, evidence.new.label
    folders = [side.folder for side in (evidence.new, evidence.base) if side and side.folder]
    scored_with = header.get("eval_set_sha256")
    return clusters_of_run(
        evidence.eval_set,
        scored_with,
        label,
        folders=folders,
        tables=evidence.tables,
        targets=evidence.targets,
    )


def independent_interval(
    base: RunNumbers, new: RunNumbers, section: str, metric: str
) -> tuple[float, float] | None:
    """The 95 % interval of a difference of two independent means; None when one has no interval."""
    delta = new.part(section, "mean", metric) - base.part(section, "mean", metric)
    intervals = [side.part(section, "ci95", metric) for side in (base, new)]
    if not all(intervals):
        return None
    half = hypot(*((high - low) / 2 for low, high in intervals))
    return delta - half, delta + half


def _unpaired(base: RunNumbers, new: RunNumbers, names: Sequence[str]) -> Regressions:
    """The same question of two means each."""
    lost, untested, redefined = [], [], {}
    tested: list[str] = []
    for name in names:
        section, _, metric = name.partition(".")
        then, now = (side.part(section, "mean", metric) for side in (base, new))
        ids = tuple(side.part(section, "definitions", metric) for side in (base, new))
        if then is None:
            untested.append(name)
        elif now is None:
            lost.append(name)
        elif ids[0] != ids[1]:
            redefined[name] = ids
        else:
            tested.append(name)
    rows = [_independent(base, new, name, len(tested)) for name in tested]
    corrected = iter(holm([row.p for row in rows if row.p is not None]))
    rows = [row if row.p is None else replace(row, p=next(corrected)) for row in rows]
    return Regressions(
        tuple(rows), tuple(lost), redefined, tuple(untested), notes=_unpaired_notes(rows)
    )


def _independent(base: RunNumbers, new: RunNumbers, name: str, tested: int) -> Regression:
    """A metric by its means and intervals, not yet corrected for the other metrics."""
    from scipy.special import ndtr, ndtri

    section, _, metric = name.partition(".")
    before, now = (side.part(section, "mean", metric) for side in (base, new))
    n = min(side.counts(section, metric)[0] for side in (base, new))
    interval = independent_interval(base, new, section, metric)
    row = Regression(name, before, now, now - before, interval, n, UNPAIRED)
    if interval is None:
        reason = "has no interval, so chance cannot be ruled out; write a drop rule for it"
        return replace(row, reason=reason)
    error = (interval[1] - interval[0]) / 2 / WIDTH
    worse_by = before - now if direction(name) is not False else now - before
    p = float(ndtr(-worse_by / error)) if error else float(worse_by <= 0)
    reach = float(ndtri(1 - ALPHA / tested) + ndtri(POWER))
    fall = FALL * (range_of(name) or 1.0)
    needed = max(2, ceil(n * (reach * error / fall) ** 2))
    return replace(row, p=p, needed=needed)


def _unpaired_notes(rows: Sequence[Regression]) -> tuple[str, ...]:
    if not rows:
        return ()
    needs = ", ".join(
        f"{row.name} about {row.needed:,} (there are {row.n:,})" for row in rows if row.needed
    )
    note = (
        "Unpaired: one of the runs holds no primary scores of its cases (an older metrics.json, or "
        "more than 2,000 cases), so the means are compared as two independent samples. Score the "
        "baseline again, or give its run folder, for the paired test."
    )
    if needs:
        note += (
            f" To find a true fall of {FALL:g} of the range 4 times in 5, each run would need so "
            f"many cases: {needs}."
        )
    return (note,)

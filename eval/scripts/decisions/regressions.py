"""A run against its baseline: how the primary metrics changed. One answer for gate and suite.

They are tested together, one-sided, case by case (decisions/joint.py): by the score lines of two
run folders, else by the scores of the cases that metrics.json holds. Without either nothing is
tested, and the reason is with each metric. Of other metrics the means are set side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from decisions.change import FEWEST_CLUSTERS, Change, change_of
from decisions.committed import compare_scores
from decisions.compare import CompareOptions, compare, fallen_words
from decisions.comparison import Comparison
from decisions.conditions import Conditions
from decisions.effects import ALPHA
from decisions.gate_checks import GateEvidence, left_out_of
from decisions.headline import repeat_advice
from decisions.invariants import changed_words, varied, without_settings
from decisions.measures import Measure
from decisions.metric_words import no_verdict_words
from decisions.primary import (
    MOST_CASES,
    PrimaryScores,
    clusters_of_run,
    lead_of,
    primary_names,
    read_primary,
)
from records.clusters import AUTO, DOCUMENT, NONE, SECTION, Clustering
from records.runs import METRICS, SCORES, scored_sections
from records.targets import read_decide
from terminal.tables import counted

FAILING = ("regression", "no longer measured")
"""Outcomes that fail a suite."""

EPSILON = 1e-6


@dataclass(frozen=True)
class Regressions:
    """The primary metrics of a run and its baseline.

    ``changes``: of those in both; ``p_worse`` is that the run is no worse, corrected for all
    primary metrics, None where nothing can be decided, for the ``reason``. ``lost``: scored in the
    baseline and no longer. ``gained``: declared, and scored in the run alone. ``redefined``: both
    definitions of a metric that the runs mean otherwise. ``untested``: the baseline has no score of
    it. ``cases``: how cases were counted together, in words. ``comparison``: None where no cases
    could be compared.
    """

    changes: tuple[Change, ...] = ()
    lost: tuple[str, ...] = ()
    redefined: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    untested: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    cases: str = ""
    notes: tuple[str, ...] = ()
    comparison: Comparison | None = None

    @property
    def tested(self) -> list[Change]:
        """The changes that could be tested."""
        return [change for change in self.changes if change.p_worse is not None]

    @property
    def headline(self) -> str:
        """The verdict of the comparison; "" without one."""
        return self.comparison.headline if self.comparison else ""

    @property
    def says(self) -> tuple[str, ...]:
        """The first line of the comparison, as compare_runs.py prints it."""
        return self.comparison.says if self.comparison else ()

    @property
    def advice(self) -> str:
        """The benefit of repeats in words; "" if it is unknown."""
        return repeat_advice(self.comparison.rows) if self.comparison else ""

    @property
    def no_verdict(self) -> str:
        """Why no primary metric could be tested; "" when any was, or none is in both runs."""
        return "" if self.tested or not self.changes else self.changes[0].reason

    def paired(self, name: str) -> Change | None:
        """A metric over the cases that both runs scored, where it could be compared so."""
        change = self.comparison.row(name) if self.comparison else None
        return change if change is not None and change.n else None


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
    declared = primary_names(evidence.targets)
    differing = left_out_of(evidence, base.sections)
    names = [name for name in names if name.partition(".")[0] not in differing]
    declared = tuple(name for name in declared if name.partition(".")[0] not in differing)
    of_interest = {name.partition(".")[0] for name in declared} | {*sections}
    shared = _shared_sections(base, new, of_interest) - differing.keys()
    options = CompareOptions(
        sections=tuple(sorted(shared)),
        every=bool(sections),
        ignore_invariants=True,
        seed=evidence.seed,
        targets=evidence.targets,
        eval_set=evidence.eval_set,
        labels_dir=evidence.labels_dir,
        rescored=evidence.rescored,
        since=evidence.since,
    )
    if base.folder is not None and new.folder is not None and shared:
        comparison = compare(
            base.folder, new.folder, options, clusters=clustering, tables=evidence.tables
        )
        # of two versions of a set, a metric may have scores in cases that are not compared alone
        scored = [
            {
                row.name
                for row in comparison.rows
                if (row.base_n, row.new_n)[number] or side.part(row.section, "n", row.metric)
            }
            for number, side in enumerate((base, new))
        ]
    else:
        old, now = (read_primary(side.source, declared) for side in (base, new))
        if old is None or now is None:
            missing = base if old is None else new
            return _without_scores(base, new, missing, [n for n in declared if n in names])
        comparison = compare_scores(
            old,
            now,
            clustering.labels if clustering else None,
            lead=lead_of(declared, evidence.targets),
            margin=read_decide(evidence.targets).matters,
            seed=evidence.seed,
            targets=evidence.targets,
            changes=evidence.alignment,
            changed=changed_words(varied(base, new), without_settings(base, new)),
            fell=fallen_words(base.source, new.source, options, evidence.tables),
            since=evidence.since,
        )
        scored = [_scored(old), _scored(now)]
    excused = {row.name for row in comparison.rows if row.left_out}
    redefined = _redefined(base, new, [name for name in names if name in scored[0] & scored[1]])
    unit = _UNITS.get(clustering.by, "group") if clustering else "group"
    scope = clustering.scope if clustering else ""
    if scope:
        notes.insert(0, f"All verdicts are {scope}.")
    changes = [
        replace(row, reason=_why_untested(row, unit))
        for row in comparison.rows
        if row.primary and row.name in names and row.name not in redefined
        if row.name in (scored[0] & scored[1]) | excused
    ]
    gained = tuple(name for name, in_base in comparison.half if not in_base and name in names)
    return Regressions(
        tuple(changes),
        tuple(name for name in names if name in scored[0] - scored[1] - excused),
        redefined,
        tuple(name for name in names if name not in {*scored[0], *gained, *excused}),
        gained,
        clustering.sentence if clustering and (scope or clustering.by != NONE) else "",
        tuple(notes),
        comparison,
    )


_UNITS = {AUTO: "document", DOCUMENT: "document", SECTION: "section"}
"""What cases are counted together by, in a word."""


def _why_untested(change: Change, unit: str) -> str:
    """Why a metric has no verdict; "" where it has one. ``unit``: what the cases are counted
    together by, in a word."""
    if change.verdict in ("no verdict", "not comparable"):
        return f"no verdict: {no_verdict_words(change)}"
    if not change.n:
        return "no verdict: no case has a score in both runs"
    if change.verdict != "too few":
        return ""
    units = counted(change.units, unit if change.units < change.n else "case")
    return f"no verdict: {units}; at least {FEWEST_CLUSTERS} are needed"


def _shared_sections(base: Conditions, new: Conditions, sections: Collection[str]) -> set[str]:
    """Those of some sections of which both runs have score lines that metrics.json describes."""
    shared = {*sections}
    for side in (base, new):
        shared &= {*side.sections, *(scored_sections(side.folder) if side.folder else ())}
        if side.folder:
            shared &= set(scored_sections(side.folder))
    return shared


def _redefined(
    base: Conditions, new: Conditions, names: Iterable[str]
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
    header, label = evidence.new.metrics, evidence.new.id
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


def _without_scores(
    base: Conditions, new: Conditions, missing: Conditions, names: Sequence[str]
) -> Regressions:
    """The metrics of two files, untested, since ``missing`` has no scores of its cases."""
    known = [{*map(".".join, side.measured())} for side in (base, new)]
    both = [name for name in names if name in known[0] & known[1]]
    redefined = _redefined(base, new, both)
    remedy = "score it again"
    if missing is base:
        remedy += f" or give its run folder with {SCORES}/"
    reason = (
        f"no verdict: {missing.id} has no scores of its cases in {METRICS} (more than "
        f"{MOST_CASES:,} cases, or an older version), so they cannot be paired; {remedy}"
    )
    changes = [
        replace(
            change_of(name, primary=True),
            base_mean=base.part(*parts),
            new_mean=new.part(*parts),
            reason=reason,
        )
        for name in both
        if name not in redefined
        for section, _, metric in [name.partition(".")]
        for parts in [(section, "mean", metric)]
    ]
    return Regressions(
        tuple(changes),
        tuple(name for name in names if name in known[0] - known[1]),
        redefined,
        tuple(name for name in names if name not in known[0]),
    )


# What a change is called


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


# Means alone


def compare_means(
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
                change = _of_mean(section, metric, mean, definition, now, primary)
                if change.verdict == "only in base":
                    change = replace(change, reason=(gone or {}).get(section, ""))
                changes.append(change)
    return changes


def on_shared(change: Change, result: Regressions) -> Change:
    """The change of a mean over the cases that did not change; a figure of the whole run has none.
    What is no longer measured stays so."""
    paired = result.paired(change.name)
    if paired is not None:
        return replace(change, base_mean=paired.base, new_mean=paired.new, delta=paired.delta)
    if change.delta is None:
        return change
    return replace(change, delta=None, verdict="not comparable", reason="of other cases")


def _of_mean(
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

"""Compares two runs if git keeps only the metrics.json of one: the primary metrics alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from decisions.case_changes import Ways, read_pair
from decisions.case_rules import CaseRules
from decisions.change import Change, ChangeVerdict, change_of, direction, one_sided, remeasured
from decisions.compare import CompareOptions, clusters_of, compare, fallen_words
from decisions.comparison import Comparison, half_measured
from decisions.conditions import read_run
from decisions.headline import bot_noise, with_headline
from decisions.invariants import (
    changed_words,
    comparable_sections,
    controls,
    remarks,
    varied,
    without_settings,
)
from decisions.joint import decide, decided
from decisions.primary import (
    PrimaryScores,
    lead_of,
    of_other_cases,
    paired_table,
    primary_names,
    read_primary,
    usable_names,
)
from decisions.same_cases import Alignment, align
from records.asked import asked_set
from records.clusters import AUTO, Clustering, ClusterLabels, LabelsById
from records.errors import StorageError
from records.id_numbers import id_of
from records.run import Runs
from records.runs import METRICS, scored_sections
from records.targets import TARGETS, Targets, read_decide, read_targets


def is_committed_alone(folder: Path) -> bool:
    """Whether a run has a metrics.json and no score lines."""
    return (folder / METRICS).exists() and not scored_sections(folder)


def compare_committed(
    base: Path,
    new: Path,
    options: CompareOptions,
    clusters: Clustering | None = None,
    tables: Runs | None = None,
) -> Comparison:
    """Compare the primary metrics of two runs by the scores in their metrics.json files.

    ``tables``: what was read of the runs. The same joint test as ``compare.compare``, and so the
    same verdicts on these metrics; there is nothing to say of others. Raises IncomparableError for
    runs that were not measured alike, and StorageError where a metrics.json holds no scores of its
    cases (more than 5,000, or old).
    """
    old, now = read_run(base), read_run(new)
    shared = set(old.metrics.get("sections", {})) & set(now.metrics.get("sections", {}))
    names = primary_names(options.targets)
    for run in (old, now):
        names = usable_names(run.source, run.metrics, names)
    names = _asked_for(names, options, base)
    changes = align(old, now, shared, options.places)
    known, changes = changes is not None, changes or Alignment()
    problems = controls(old, now, sorted(shared), cases_known=known)
    left_out = dict[str, str]()
    if problems and not options.ignore_invariants:
        left_out = comparable_sections(
            old, now, sorted(shared), names, override=options.override, cases_known=known
        )
        problems = []
    names = tuple(name for name in names if name.partition(".")[0] not in left_out)
    tables = tables or Runs()
    settings = varied(old, now)
    a, b = (read_primary(run, names, table=tables[run]) for run in (base, new))
    if a is None or b is None:
        bare = base if a is None else new
        raise StorageError(
            f"{bare / METRICS}: has no scores of its cases, and score lines are missing; score "
            "the run again, or give one that is on disk."
        )
    comparison = compare_scores(
        a,
        b,
        clusters.labels if clusters else None,
        lead=lead_of(names, options.targets),
        margin=read_decide(options.targets).matters if options.margin is None else options.margin,
        seed=options.seed,
        targets=options.targets,
        aims=read_targets(options.targets),
        changes=changes,
        changed=changed_words(settings, without_settings(old, now)),
        fell=fallen_words(base, new, options, tables),
        since=options.since,
    )
    few = [
        f"{row.name}: too few to tell ({row.units})."
        for row in comparison.rows
        if row.verdict == "too few"
    ]
    return replace(
        comparison,
        clusters=clusters.sentence if clusters else "",
        varied=tuple(settings),
        controls=tuple(problems),
        left_out=tuple(left_out.values()),
        notes=(
            *left_out.values(),
            *few,
            f"Only metrics.json of {old.id} is there: its primary metrics are compared case by "
            "case, and its answers cannot be shown.",
            *remarks(old, now, settings, options.varied),
        ),
    )


def _asked_for(names: Sequence[str], options: CompareOptions, base: Path) -> tuple[str, ...]:
    """Those of the primary metrics that the options name; all without any. Raises StorageError for
    others, of which metrics.json has no scores of cases."""
    sections = [(name, *name.split(".", 1)) for name in names]
    asked = {name for name, part, _ in sections if not options.sections or part in options.sections}
    unknown = [m for m in options.metrics if not any(m in (n, own) for n, _, own in sections)]
    if options.metrics:
        asked &= {n for n, _, own in sections if {n, own} & {*options.metrics}}
    if unknown or (names and not asked):
        words = f"--metrics {', '.join(unknown)}" if unknown else "--sections"
        raise StorageError(
            f"{words}: only metrics.json of {base.name} is there, with the scores of its cases for "
            f"{', '.join(names)}. Name some of these, or score {base.name} again."
        )
    return tuple(name for name in names if name in asked)


def compare_pair(
    base: Path,
    new: Path,
    options: CompareOptions,
    clusters: Clustering | None = None,
    tables: Runs | None = None,
) -> Comparison:
    """Compare two runs; if git keeps only the metrics.json of the base, their primary metrics."""
    if is_committed_alone(base):
        return compare_committed(base, new, options, clusters, tables)
    return compare(base, new, options, clusters=clusters, tables=tables)


class ComparedPair(NamedTuple):
    """The first lines of compare_runs.py on two runs, and the cases that broke or were fixed, in
    its order."""

    says: Sequence[str]
    flips: Mapping[str, Ways] = {}


def outcome_of(base: Path, new: Path, rules: CaseRules, rescored: int = 0) -> ComparedPair:
    """Compares two run folders as compare_runs.py does, and raises StorageError as it does.

    ``rescored``: re-labelled cases for which base was scored again.
    """
    tables, eval_set = Runs(), asked_set(new)
    clusters, _ = clusters_of((new, base), eval_set, AUTO, tables)
    options = CompareOptions(eval_set=eval_set, rescored=rescored)
    says = compare_pair(base, new, options, clusters, tables).says
    pair = read_pair(base, new, rules, tables)
    numbers = {} if pair.unknown else pair.ids("broke", len(pair.new.ids))
    numbers |= {} if pair.unknown else pair.ids("fixed", len(pair.new.ids))
    return ComparedPair(says, {id_of(number): way for number, way in numbers.items()})


def compare_scores(
    base: PrimaryScores,
    new: PrimaryScores,
    labels: LabelsById | None,
    *,
    lead: str,
    margin: float | None,
    seed: int = 0,
    targets: Path = TARGETS,
    aims: Targets | None = None,
    changes: Alignment | None = None,
    changed: str = "",
    fell: tuple[str, ...] = (),
    since: str = "",
) -> Comparison:
    """The primary metrics of two runs, by the scores of their cases alone.

    ``labels``: the cluster of each case. ``aims``: targets that may be lost. ``changes``: the cases
    that changed between them; ``changed``: the settings that did, in words; ``fell``: the slices
    that did; ``since``: the difference to the pinned baseline. A metric that one run alone has is
    there, too.
    """
    changes = changes or Alignment()
    table = paired_table(base, new, labels, changes)
    decision = decide(table, margin=margin, seed=seed, lead=lead)
    rows = [_row(joint, base, new) for joint in decision.rows]
    if changes.differs:  # the means in metrics.json are of other cases
        rows = [replace(r, base_mean=r.base, new_mean=r.new) if r.n else r for r in rows]
    for name, reason in of_other_cases(base, new, changes).items():
        row = _row(change_of(name, primary=True), base, new)
        rows.append(replace(row, verdict="not comparable", reason=reason))
    for name in sorted({*base.names} ^ {*new.names}):
        verdict: ChangeVerdict = "only in base" if name in base.names else "only in new"
        rows.append(replace(change_of(name, primary=True), verdict=verdict))
    missing, asked = (
        (base.head.get(name) or 0, new.head.get(name) or 0) for name in ("missing", "asked")
    )
    comparison = Comparison(
        base.label,
        new.label,
        tuple(rows),
        decision.headline,
        scope=labels.scope if isinstance(labels, ClusterLabels) else "",
        tested=decision.tested,
        cases=len(table.case_ids),
        only_base=len(base.case_ids) - len(table.case_ids),
        only_new=len(new.case_ids) - len(table.case_ids),
        missing=missing,
        asked=asked,
        rest=None if any(missing) else decision.headline,
        rest_mde=decision.largest_mde,
        lead=decision.lead,
        half=half_measured(rows, [row.name for row in rows], targets),
        set_changes=changes.counts({row.section for row in rows}),
        changed=changed,
        fell=fell,
        since=since,
        margin=margin,
    )
    return with_headline(comparison, aims or {})


def _row(joint: Change, base: PrimaryScores, new: PrimaryScores) -> Change:
    """A metric of the joint test, with what both metrics.json say of it."""
    old, now = (side.head.get("sections", {}).get(joint.section, {}) for side in (base, new))
    change = Change(
        joint.section,
        joint.metric,
        direction(joint.name),
        primary=True,
        base_mean=old.get("mean", {}).get(joint.metric),
        new_mean=now.get("mean", {}).get(joint.metric),
        base_n=joint.base_n,
        new_n=joint.new_n,
        base_cases=len(base.case_ids),
        new_cases=len(new.case_ids),
        noise=bot_noise(old, now, joint.metric),
    )
    if joint.n:
        change = remeasured(change, joint)
    elif bool(change.base_n) != bool(change.new_n):
        change = one_sided(change)
    return decided(change, joint) if joint.coverage and joint.coverage.cases else change

"""Compare runs: read both, refuse what is not comparable, test every metric case by case.

The engine decides on the primary metrics together; everything else is exploratory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from decisions.case_changes import read_pair
from decisions.case_rules import read_case_rules
from decisions.change import (
    FEWEST_CLUSTERS,
    Change,
    direction,
    explored,
    one_sided,
    remeasured,
    tested,
)
from decisions.comparison import Comparison, Difference, half_measured
from decisions.conditions import Conditions, read_run
from decisions.coverage import NOTHING, chosen_of
from decisions.effects import compact
from decisions.headline import bot_noise, with_headline
from decisions.invariants import (
    IncomparableError,
    changed_words,
    comparable_sections,
    controls,
    remarks,
    shared_sections,
    varied,
    without_settings,
)
from decisions.joint import (
    Decision,
    Headline,
    PrimaryTable,
    decided,
    headline_of,
    settle,
)
from decisions.pairing import ClusterCodes, SideBySide, places_of, side_by_side
from decisions.primary import (
    PrimaryColumn,
    all_ids,
    as_stored,
    clusters_of_run,
    lead_of,
    primary_names,
    table_of,
    usable_names,
    usual_reason,
)
from decisions.same_cases import Alignment, align
from decisions.slices import fallen_slices
from decisions.stopping import Decided, decided_of, stopped_note, with_looks
from decisions.whole_run import shared_figure
from ragmetrics import catalogue
from ragmetrics.catalogue.metric import BY_DOCUMENT
from ragmetrics.stats.arrays import Ints, np
from ragmetrics.stats.tally import Slices
from records.asked import asked_ids, asked_of, asked_set
from records.clusters import Clustering
from records.errors import StorageError
from records.files import sha256_file
from records.id_numbers import id_number
from records.labels import own_labels
from records.metrics import load_metrics
from records.run import Runs
from records.runs import METRICS, RESULTS, scored_sections
from records.scores import OWN_TEXTS
from records.section_table import MEASURED, SectionTable
from records.targets import TARGETS, read_decide, read_targets
from terminal.tables import counted

Parts = Mapping[str, Slices]
"""The slices of each case."""

TOO_FEW = 10
"""Cases below which a slice gets no p."""

SHOWN_IDS = 3

_ONE_SIDED = ("only in base", "only in new", "not tested")


@dataclass(frozen=True)
class CompareOptions:
    """The runs and metrics to compare, and the settings. ``metrics``: those that decide; without
    any, the primary metrics of ``targets``. ``sections``: those alone; without any, all that both
    runs have. ``by``: dimensions whose slices are tested too. ``margin``: the share of a metric's
    range that does not matter; without one, what ``targets`` declares. ``eval_set``: the set that
    the runs were asked, to know which cases have no result; ``labels_dir``: its labels.
    ``rescored``: re-labelled cases for which base was scored again. ``labels_of``: the git
    reference whose labels base has, where the labels are what is compared. ``override``: the option
    with which the running script sets ``ignore_invariants``; "" where it has none. ``every``: all
    metrics, not one a family at its main cut-off."""

    metrics: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    ignore_invariants: bool = False
    seed: int = 0
    margin: float | None = None
    targets: Path = TARGETS
    eval_set: Path | None = None
    labels_dir: Path | None = None
    rescored: int = 0
    labels_of: str = ""
    since: str = ""
    """The difference to the pinned baseline, in a sentence; see ``alerts.since_pinned``."""
    override: str = ""
    every: bool = False

    @property
    def places(self) -> list[tuple[Path, Path]]:
        """Where a version of the set may be, with its labels."""
        if self.eval_set is None:
            return []
        return [(self.eval_set, self.labels_dir or own_labels(self.eval_set))]


@dataclass
class _Draft:
    """A comparison in the making: rows without corrected p, and the scores of primary ones."""

    base: Conditions
    new: Conditions
    rows: list[Change] = field(default_factory=list)
    slices: list[Change] = field(default_factory=list)
    columns: list[PrimaryColumn] = field(default_factory=list)
    problems: list[Difference] = field(default_factory=list)
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Sections that were scored differently, each with a sentence."""
    notes: list[str] = field(default_factory=list)
    cases: int = 0
    only_base: int = 0
    only_new: int = 0
    missing: tuple[int, int] = (0, 0)
    asked: tuple[int, int] = (0, 0)
    compared: int = 0
    aimed: frozenset[str] = frozenset()
    """Metrics with a target."""
    untested: int = 0
    reasons: Mapping[str, str] = field(default_factory=dict)
    """By primary metric, why most of its lost cases have no score."""
    changes: Alignment = field(default_factory=Alignment)
    ids: Ints | None = None
    """The cases of the first section that has the run's own cases."""


def _metric_rows(
    draft: _Draft,
    pairs: SideBySide,
    primary: Sequence[str],
    options: CompareOptions,
    codes: Ints | None,
) -> Iterator[Change]:
    """A row for each metric of a section, numbers of the whole run last."""
    section = pairs.base.section
    old, now = draft.base.section(section), draft.new.section(section)
    cases = (
        pairs.base.cases + int(pairs.missing_base.sum()),
        pairs.new.cases + int(pairs.missing_new.sum()),
    )
    in_lines = {*pairs.base.names, *pairs.new.names}
    names = list(dict.fromkeys([*pairs.names, *old.get("mean", {}), *now.get("mean", {})]))
    chosen = set(names if options.every else catalogue.main_names(section, names))
    chosen |= {name for name in names if f"{section}.{name}" in {*primary, *draft.aimed}}
    draft.untested += len(names) - len(chosen)
    asked = pairs.asked_in_both
    for name in names:
        if name not in chosen:
            continue
        full = f"{section}.{name}"
        row = Change(
            section,
            name,
            direction(full),
            full in primary,
            base_mean=old.get("mean", {}).get(name),
            new_mean=now.get("mean", {}).get(name),
            base_n=old.get("n", {}).get(name, 0),
            new_n=now.get("n", {}).get(name, 0),
        )
        if name in in_lines:
            row = replace(row, base_cases=cases[0], new_cases=cases[1])
            alone = pairs.only_base + pairs.only_new
            if why := draft.changes.depends_on_others(section, name, alone):
                yield replace(row, verdict="not comparable", reason=why)
                continue
            chosen_rest = chosen_of(pairs.left_out(name), codes, options.seed)
            if chosen_rest and not draft.changes.other_cases:
                has_answers = (draft.base.source / RESULTS).exists()
                chosen_rest = chosen_rest._replace(labels_alone=has_answers)
            a, b = pairs.pair(name)
            if row.primary:
                row = replace(row, noise=bot_noise(old, now, name))
                a, b = (None if side is None else as_stored(side) for side in (a, b))
            if a is None or b is None:
                yield one_sided(row)
                continue
            row = tested(row, a, b, codes, options.seed, asked)
            if chosen_rest and row.n:
                coverage = replace(row.coverage or NOTHING, chosen=chosen_rest)
                row = replace(row, verdict="no verdict", interval=None, p=None, coverage=coverage)
            yield row
            if row.primary:
                if not asked.all():
                    a, b = (np.where(asked, side, np.nan) for side in (a, b))
                missing = pairs.missing_base | pairs.missing_new
                column = PrimaryColumn(full, pairs.ids, a, b, missing, chosen_rest)
                draft.columns.append(column)
        elif pairs.changed is not None and pairs.changed.any():
            if figure := shared_figure(pairs, name):
                before, after, n = figure
                row = replace(row, base_mean=before, new_mean=after)
                yield replace(row, base=before, new=after, delta=after - before, n=n)
                continue
            why = "is a figure of all cases, and these are not the same"
            yield replace(row, verdict="not comparable", reason=why)
        elif row.base_mean is None or row.new_mean is None:
            yield one_sided(row)
        else:
            yield replace(
                row, base=row.base_mean, new=row.new_mean, delta=row.new_mean - row.base_mean
            )


def _slice_rows(
    rows: Sequence[Change],
    pairs: SideBySide,
    members: Mapping[tuple[str, str], Ints],
    codes: Ints | None,
    seed: int,
) -> Iterator[Change]:
    """The primary metrics within each slice. They are explored, so none decides."""
    asked = pairs.asked_in_both
    for row in rows:
        if not row.primary or row.verdict == "not comparable":
            continue
        a, b = pairs.pair(row.metric)
        if a is None or b is None:
            continue
        for (dimension, value), ids in sorted(members.items(), key=lambda item: item[0]):
            at = places_of(ids, pairs.ids)
            at = at[at >= 0]
            part = Change(
                row.section,
                row.metric,
                row.higher_is_better,
                slice=f"{dimension}={value}",
                base_cases=len(at),
                new_cases=len(at),
            )
            own = None if codes is None else compact(codes[at])
            part = tested(part, a[at], b[at], own, seed, asked[at])
            if part.n < TOO_FEW:
                part = replace(part, p=None, interval=None, ratio_interval=None)
            yield part


def _members(parts: Parts | None, by: Sequence[str]) -> dict[tuple[str, str], Ints]:
    """The numbers of the ids of the cases of each slice."""
    ids: dict[tuple[str, str], list[int]] = {}
    for case_id, own in (parts or {}).items():
        for part in own:
            if part[0] in by:
                ids.setdefault(part, []).append(id_number(case_id))
    return {part: np.array(own, np.int64) for part, own in ids.items()}


def compare(
    base: Path,
    new: Path,
    options: CompareOptions | None = None,
    *,
    clusters: Clustering | None = None,
    parts: Parts | None = None,
    tables: Runs | None = None,
) -> Comparison:
    """Compare two scored run folders, metric by metric.

    ``clusters``: cases that are flipped together. ``parts``: the slices of each case; the primary
    metrics are then tested in each slice of ``options.by`` too. ``tables``: what was read of the
    runs. Raises IncomparableError (exit code 2) when they differ in what must be the same, and
    StorageError when one of them is not scored or a file is damaged.
    """
    return compare_many(base, [new], options, clusters=clusters, parts=parts, tables=tables)[0]


def compare_many(
    base: Path,
    others: Sequence[Path],
    options: CompareOptions | None = None,
    *,
    clusters: Clustering | None = None,
    parts: Parts | None = None,
    tables: Runs | None = None,
) -> list[Comparison]:
    """Compare several runs with one base; all are corrected together, in one joint test."""
    tables = tables or Runs()
    options = options or CompareOptions()
    old = read_run(base)
    targets = read_targets(options.targets)
    aimed = frozenset(f"{section}.{name}" for section, own in targets.items() for name in own)
    drafts = [_Draft(old, read_run(new), aimed=aimed) for new in others]
    codes = ClusterCodes(clusters)
    members = _members(parts, options.by)
    primary = _primary_of(options, drafts)
    shared = [_prepared(draft, options, primary) for draft in drafts]
    asked = {id(run): _asked(run, options.eval_set) for run in (old, *(d.new for d in drafts))}
    for section in dict.fromkeys(name for sections in shared for name in sections):
        scores = tables[old.source].section(section)
        for draft, sections in zip(drafts, shared, strict=True):
            if section in sections:
                own = tables[draft.new.source].section(section)
                sides = scores, own, asked[id(old)], asked[id(draft.new)]
                pairs = _matched(*sides, draft.changes)
                _take_section(draft, pairs, primary, options, codes, members)
    return _settled(drafts, primary, options, codes, tables)


def read_pairs(
    base: Path, new: Path, section: str, eval_set: Path | None, tables: Runs
) -> SideBySide:
    """One section of two runs side by side."""
    old, now = read_run(base), read_run(new)
    scores = tables[base].section(section), tables[new].section(section)
    places = CompareOptions(eval_set=eval_set).places
    changes = align(old, now, [section], places) or Alignment()
    return _matched(*scores, _asked(old, eval_set), _asked(now, eval_set), changes)


def _matched(
    base: SectionTable,
    new: SectionTable,
    asked_base: Ints | None,
    asked_new: Ints | None,
    changes: Alignment,
) -> SideBySide:
    """The lines of a section that has texts of its own were never asked."""
    if base.section == OWN_TEXTS:
        asked_base = asked_new = np.zeros(0, np.int64)
    pairs = side_by_side(base, new, asked_base, asked_new)
    return pairs.without(changes.mask(base.section, pairs.ids)) if changes.differs else pairs


def _prepared(draft: _Draft, options: CompareOptions, primary: Sequence[str]) -> list[str]:
    """The sections to compare. Raises IncomparableError for runs that were not measured alike."""
    sections, draft.notes = shared_sections(draft.base, draft.new, options.sections)
    changes = align(draft.base, draft.new, sections, options.places)
    if changes is not None and options.labels_of:
        changes = replace(changes, relabelled=dict.fromkeys(sections, frozenset()))
    known, draft.changes = changes is not None, changes or Alignment()
    if options.ignore_invariants:
        draft.problems = controls(draft.base, draft.new, sections, cases_known=known)
        return sections
    needed = {*options.sections, *(n.partition(".")[0] for n in primary if options.metrics)}
    draft.left_out = comparable_sections(
        draft.base, draft.new, sections, primary, needed, options.override, cases_known=known
    )
    draft.notes += draft.left_out.values()
    return [section for section in sections if section not in draft.left_out]


def _take_section(
    draft: _Draft,
    pairs: SideBySide,
    primary: Sequence[str],
    options: CompareOptions,
    clusters: ClusterCodes,
    members: Mapping[tuple[str, str], Ints],
) -> None:
    section = pairs.base.section
    draft.problems += _gold_problem(draft, pairs, options)
    codes = clusters.of(pairs.ids)
    own = list(_metric_rows(draft, pairs, primary, options, codes))
    draft.rows += own
    draft.slices += _slice_rows(own, pairs, members, codes, options.seed)
    if section != OWN_TEXTS or not draft.cases:
        draft.ids = pairs.ids if draft.ids is None else draft.ids
        draft.cases = max(draft.cases, pairs.both)
        draft.only_base = max(draft.only_base, pairs.only_base)
        draft.only_new = max(draft.only_new, pairs.only_new)
        missing = int(pairs.missing_base.sum()), int(pairs.missing_new.sum())
        if pairs.both >= draft.compared:
            draft.missing, draft.compared = missing, pairs.both
            draft.asked = pairs.base.cases + missing[0], pairs.new.cases + missing[1]


def _settled(
    drafts: Sequence[_Draft],
    primary: Sequence[str],
    options: CompareOptions,
    codes: ClusterCodes,
    tables: Runs,
) -> list[Comparison]:
    """Correct all runs together, and say what each comparison amounts to."""
    tested = iter(explored([row for d in drafts for row in d.rows if not row.primary]))
    for draft in drafts:
        draft.rows = [row if row.primary else next(tested) for row in draft.rows]
    slices = iter(explored([row for draft in drafts for row in draft.slices]))
    for draft in drafts:
        draft.slices = [next(slices) for _ in draft.slices]
    ids = all_ids([column for draft in drafts for column in draft.columns])
    own = codes.of(ids)
    clusters = np.arange(len(ids)) if own is None else own
    scores, missing = zip(*(table_of(d.columns, ids, clusters) for d in drafts), strict=True)
    lead = _lead(drafts, primary, options)
    margin = read_decide(options.targets).matters if options.margin is None else options.margin

    def decided_on(tables: Sequence[PrimaryTable]) -> list[Decision]:
        return settle(tables, margin=margin, seed=options.seed, lead=lead)

    decisions = rest = decided_on(scores)
    if any(lost.any() for lost in missing):
        rest = decided_on([t.without(lost) for t, lost in zip(scores, missing, strict=True)])
    for draft, decision, table in zip(drafts, decisions, scores, strict=True):
        draft.notes[:0] = _cluster_notes(decision, table, ids, codes)
        folders = draft.base.source, draft.new.source
        draft.reasons = {
            row.name: usual_reason(row, table, ids, folders, tables) for row in decision.rows
        }
    options = replace(options, margin=margin)
    return [
        _comparison(draft, decision, others, primary, options, codes, tables)
        for draft, decision, others in zip(drafts, decisions, rest, strict=True)
    ]


def _cluster_notes(
    decision: Decision, table: PrimaryTable, ids: Ints, codes: ClusterCodes
) -> Iterator[str]:
    """Remarks on few clusters, and on one that outweighs the others."""
    for row, both in zip(decision.rows, (table.a + table.b).T, strict=True):
        if row.units == row.n or row.verdict == "no verdict":
            if row.verdict == "too few" and row.n:
                yield f"{row.name}: too few cases ({row.n}) to tell."
            continue
        label, size = codes.largest(ids[~np.isnan(both)])
        spread = row.spread
        if row.units < FEWEST_CLUSTERS:
            yield f"{row.name}: too few groups of cases ({row.units}) to tell."
        elif spread is not None and (size > row.n / 2 or spread.effective < FEWEST_CLUSTERS):
            yield (
                f"{row.name}: {size} of {row.n} cases belong to one group ({label}), so they "
                f"count as much as {spread.effective:.1f} of equal size."
            )


def _lead(drafts: Sequence[_Draft], primary: Sequence[str], options: CompareOptions) -> str:
    """The lead of the metrics that are compared; "" without one."""
    lead = lead_of(primary, options.targets)
    chosen = options.metrics or any(map(_looked_at, drafts))
    asked = not options.sections or lead.partition(".")[0] in options.sections
    return lead if asked and (lead in primary or not chosen) else ""


def _comparison(
    draft: _Draft,
    decision: Decision,
    rest: Decision,
    primary: Sequence[str],
    options: CompareOptions,
    codes: ClusterCodes,
    tables: Runs,
) -> Comparison:
    base, new, notes = draft.base, draft.new, list(draft.notes)
    rows = [
        decided(row, found, draft.reasons[row.name]) if (found := decision.row(row.name)) else row
        for row in draft.rows
    ]
    headline = decision.headline
    if looked := _looked_at(draft):
        rows = [with_looks(row, looked) if row.name == looked.metric else row for row in rows]
        headline = _headline_of_looks(decision, rows)
    rows.sort(key=lambda row: primary.index(row.name) if row.primary else len(primary))
    if draft.problems:
        notes.append("Compared although they were measured differently: see the differences above.")
    notes += [note for run in (base, new) if (note := stopped_note(run.config, base.id))]
    notes += _case_notes(draft)
    changes = varied(base, new)
    notes += remarks(base, new, changes, options.varied)
    looked_for = [
        name
        for name in primary
        if not options.sections or name.partition(".")[0] in options.sections
        if name.partition(".")[0] not in draft.left_out
    ]
    scored = {row.name for row in rows if row.verdict not in _ONE_SIDED}
    if absent := [name for name in looked_for if name not in scored]:
        notes.append(f"Primary, but not scored in both runs: {', '.join(absent)}.")
    measured = {row.name for row in rows if (row.base_mean, row.new_mean) != (None, None)}
    if alone := [
        name for name in looked_for if name not in measured and name + BY_DOCUMENT in measured
    ]:
        notes.append(
            f"{', '.join(alone)}: the labels name files alone, so it decides only after "
            "score_retrieval.py --match doc for both runs."
        )
    figures = [
        row.name
        for row in rows
        if row.verdict == "not comparable" and not row.primary
        if (row.base_mean, row.new_mean) != (None, None)
    ]
    if figures:
        notes.append(f"Not compared, since the cases are not the same: {', '.join(figures)}.")
    comparison = Comparison(
        base.id,
        new.id,
        tuple(rows),
        headline,
        slices=tuple(draft.slices),
        clusters=codes.sentence(draft.ids),
        scope=codes.clustering.scope if codes.clustering else "",
        tested=decision.tested,
        controls=tuple(draft.problems),
        left_out=tuple(draft.left_out.values()),
        varied=tuple(changes),
        notes=tuple(notes),
        cases=draft.cases,
        only_base=draft.only_base,
        only_new=draft.only_new,
        missing=draft.missing,
        asked=draft.asked,
        rest=rest.headline,
        rest_mde=rest.largest_mde,
        rest_rows=_rest_of(rest, rows),
        lead=decision.lead,
        compared=draft.compared,
        half=half_measured(rows, looked_for, options.targets),
        set_changes=draft.changes.counts(
            {name.partition(".")[0] for name in scored & {*primary}}, options.rescored
        ),
        labels_of=options.labels_of,
        since=options.since,
        changed=changed_words(changes, without_settings(base, new)),
        fell=fallen_words(base.source, new.source, options, tables),
        margin=options.margin,
        untested=draft.untested,
    )
    comparison = with_headline(comparison, read_targets(options.targets))
    if comparison.headline in ("WORSE", "MIXED") and (lost := _evidence_lost(draft, tables)):
        comparison = replace(comparison, changed=f"{comparison.changed} {lost}")
        comparison = with_headline(comparison, read_targets(options.targets))
    return comparison


def fallen_words(base: Path, new: Path, options: CompareOptions, tables: Runs) -> tuple[str, ...]:
    """A sentence on each slice that fell by more than chance; none without a set."""
    if options.eval_set is None or options.labels_of:
        return ()
    pair = read_pair(base, new, read_case_rules(options.targets), tables)
    return tuple(part.says() for part in fallen_slices(pair, *options.places[0]))


def _evidence_lost(draft: _Draft, tables: Runs) -> str:
    """Where the ranks of gold passages are that base found and the new run did not, in a sentence;
    "" where more questions gained one than lost one."""
    folders = draft.base.source, draft.new.source
    if any("retrieval" not in scored_sections(folder) for folder in folders):
        return ""
    fields = ("case_id", "repeat", "evidence.found")
    found = []
    for folder in folders:
        table = tables[folder].section("retrieval")
        lines = table.lines(range(len(table.codes)), fields)
        found.append(
            {
                line.case_id: line.evidence.found
                for line in lines
                if not line.repeat and line.evidence and line.evidence.found is not None
            }
        )
    changed = draft.changes.of_section("retrieval")
    lost, gained, whole = dict[str, list[int]](), 0, 0
    for case_id, now in found[1].items():
        before = found[0].get(case_id)
        if before is None or len(before) != len(now) or case_id in changed:
            continue
        whole += 1
        ranks = [old for old, new in zip(before, now, strict=True) if old and not new]
        lost |= {case_id: ranks} if ranks else {}
        gained += any(new and not old for old, new in zip(before, now, strict=True))
    if len(lost) <= gained:
        return ""
    if not any(rank for now in found[1].values() for rank in now):
        return f"No evidence was found for any of {counted(whole, 'question')}."
    every = sorted(rank for ranks in lost.values() for rank in ranks)
    at = (
        f"between rank {every[0]} and {every[-1]}"
        if every[0] < every[-1]
        else f"at rank {every[0]}"
    )
    return f"Evidence lost {at} in {len(lost):,} of {counted(whole, 'question')}."


def _rest_of(rest: Decision, rows: Sequence[Change]) -> tuple[Change, ...]:
    """The primary metrics on the cases that both runs have results of."""
    by_name = {row.name: row for row in rows}
    joint = [row for row in rest.rows if row.name in by_name]
    return tuple(decided(remeasured(by_name[own.name], own), own) for own in joint)


def _looked_at(draft: _Draft) -> Decided | None:
    """What the new run's looks came to, where they were looks against the base run."""
    decided = decided_of(draft.new.config)
    return decided if decided is not None and decided.decides(draft.base.id) else None


def _headline_of_looks(decision: Decision, rows: Sequence[Change]) -> Headline:
    """The headline with the verdicts that the rows have by now."""
    verdicts: dict[str, Any] = {row.name: row.verdict for row in rows}
    primary = [
        replace(
            row, verdict=verdicts[row.name], look=row.look and verdicts[row.name] == row.verdict
        )
        for row in decision.rows
    ]
    return headline_of(primary)


def _case_notes(draft: _Draft) -> Iterator[str]:
    for run, count in zip((draft.base, draft.new), draft.missing, strict=True):
        if count:
            verb = "has" if count == 1 else "have"
            yield (
                f"{counted(count, 'case')} that {run.id} was asked {verb} no result there, which "
                "counts as 0 in answered and pass."
            )
    if (draft.only_base or draft.only_new) and not draft.changes.differs:
        yield (
            f"{draft.only_base} cases are in {draft.base.id} only and {draft.only_new} in "
            f"{draft.new.id} only; they are left out of every difference."
        )


def _asked(run: Conditions, eval_set: Path | None) -> Ints | None:
    """Hashes of the cases that a run was asked beside those it has lines of: none of them when it
    lacks no result or does not say; None for every case of the set."""
    if run.metrics.get("missing") == 0:
        return np.zeros(0, np.int64)
    ids = asked_ids(run.config, eval_set)
    if ids is None and run.folder is not None:
        ids = asked_ids(run.config, asked_set(run.folder))
    if ids is not None:
        return np.fromiter(map(id_number, ids), np.int64, len(ids))
    asked = asked_of(run.config)
    if asked is not None and asked.cases == run.config.dataset.get("cases"):
        return None
    return np.zeros(0, np.int64)


def _primary_of(options: CompareOptions, drafts: Sequence[_Draft]) -> tuple[str, ...]:
    """``section.metric`` of those that decide: those that were asked for, else the one that all
    runs were looked at with, else the primary ones. Raises StorageError for names that no run
    has."""
    runs = [drafts[0].base, *(draft.new for draft in drafts)]
    if not options.metrics:
        looked = [_looked_at(draft) for draft in drafts]
        of_looks = {decided.metric if decided else "" for decided in looked}
        if len(of_looks) == 1 and "" not in of_looks:
            return tuple(of_looks)
        names = primary_names(options.targets)
        for run in runs:
            names = usable_names(run.source, run.metrics, names)
        return names
    measured = {
        f"{section}.{metric}"
        for run in runs
        for section, part in run.metrics.get("sections", {}).items()
        for metric in (*part.get("mean", {}), *(MEASURED if section == "pipeline" else ()))
    }
    chosen: dict[str, None] = {}
    for name in options.metrics:
        hits = {full for full in measured if name in (full, full.partition(".")[2])}
        if not hits:
            some = ", ".join(sorted(measured)[:12])
            raise StorageError(f"metric {name!r}: neither run has it; they have: {some}, …")
        chosen |= dict.fromkeys(sorted(hits))
    return tuple(chosen)


def _gold_problem(draft: _Draft, pairs: SideBySide, options: CompareOptions) -> list[Difference]:
    """The gold of cases that changed between the two scorings, as one difference."""
    changed = pairs.changed_gold() if pairs.base.section == "retrieval" else []
    if not changed:
        return []
    some = ", ".join(changed[:SHOWN_IDS])
    more = ", …" if len(changed) > SHOWN_IDS else ""
    text = f"{len(changed)} cases ({some}{more})"
    base, new = draft.base.id, draft.new.id
    problem = Difference("gold supports", f"as scored in {base}", f"other gold in {text}")
    if not options.ignore_invariants:
        raise IncomparableError(base, new, [problem], options.override)
    return [problem]


def clusters_of(
    folders: Sequence[Path],
    eval_set: Path,
    by: str,
    tables: Runs | None = None,
    targets: Path = TARGETS,
) -> tuple[Clustering | None, list[str]]:
    """The clusters of the cases of runs, the first one with the set that counts, and remarks; see
    ``primary.clusters_of_run``."""
    base = read_run(folders[0])
    scored_with = base.metrics.get("eval_set_sha256")
    return clusters_of_run(eval_set, scored_with, base.id, by, folders, tables, targets)


def changed_set(eval_set: Path, run: Path) -> str | None:
    """A remark when the set is not the one that a run was scored with, else None."""
    scored = load_metrics(run / METRICS).get("eval_set_sha256")
    if scored in (None, sha256_file(eval_set)):
        return None
    return (
        f"{eval_set} has changed since {run.resolve().name} was scored: slices come from the "
        "present set."
    )

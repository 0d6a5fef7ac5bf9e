"""Compare runs: read both, refuse what is not comparable, test every metric case by case.

The engine decides on the primary metrics together; everything else is exploratory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from typing import Any

from decisions.effects import Effect, compact, measure, plain_p
from decisions.engine import (
    FEWEST_CLUSTERS,
    Decision,
    Evidence,
    Headline,
    PrimaryRow,
    direction,
    evidence_of,
    headline_of,
    is_skewed,
    range_of,
    settle,
)
from decisions.invariants import (
    IncomparableError,
    Run,
    comparable_sections,
    controls,
    read_run,
    remarks,
    varied,
)
from decisions.pairing import ClusterCodes, SideBySide, places_of, side_by_side
from decisions.primary import as_stored, clusters_of_run, primary_names, usable_names
from decisions.rows import SCORED, Comparison, Difference, MetricRow, explored
from decisions.stopping import Decided, decided_of, stopped_note, with_looks
from ragmetrics import catalogue
from ragmetrics.stats.arrays import Floats, Ints, np
from ragmetrics.stats.tally import Slices, facets_of, slices_of
from records.asked import asked_ids, asked_of
from records.cases import iter_cases
from records.clusters import Clustering
from records.errors import Problem, StorageError
from records.files import sha256_file
from records.labels import read_labels
from records.metrics import load_metrics
from records.run_table import MEASURED, RunTables, SectionTable
from records.runs import METRICS, scored_sections
from records.scores import OWN_TEXTS
from records.targets import TARGETS
from terminal.tables import counted

Parts = Mapping[str, Slices]
"""The slices of each case."""

TOO_FEW = 10
"""Cases below which a slice gets no p."""

SHOWN_IDS = 3


@dataclass(frozen=True)
class CompareOptions:
    """What is compared and how. ``metrics``: those that decide; without any, the primary metrics of
    ``targets``. ``sections``: those alone; without any, all that both runs have. ``by``: dimensions
    whose slices are tested too. ``margin``: differences up to it count as equal. ``eval_set``: the
    set that the runs were asked, to know which cases have no result. ``override``: the option with
    which the running script sets ``ignore_invariants``; "" where it has none."""

    metrics: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    varied: tuple[str, ...] = ()
    ignore_invariants: bool = False
    seed: int = 0
    margin: float | None = None
    targets: Path = TARGETS
    eval_set: Path | None = None
    override: str = ""


@dataclass
class _Draft:
    """A comparison in the making: rows without corrected p, and the evidence of primary ones."""

    base: Run
    new: Run
    rows: list[MetricRow] = field(default_factory=list)
    slices: list[MetricRow] = field(default_factory=list)
    evidence: list[tuple[Evidence, Ints]] = field(default_factory=list)
    problems: list[Difference] = field(default_factory=list)
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Sections that were scored differently, each with a sentence."""
    notes: list[str] = field(default_factory=list)
    cases: int = 0
    only_base: int = 0
    only_new: int = 0
    missing: tuple[int, int] = (0, 0)
    ids: Ints | None = None
    """The cases of the first section that has the run's own cases."""


def _metric_rows(
    draft: _Draft,
    pairs: SideBySide,
    primary: Sequence[str],
    options: CompareOptions,
    codes: Ints | None,
) -> Iterator[MetricRow]:
    """A row for each metric of a section, numbers of the whole run last."""
    section = pairs.base.section
    old, now = draft.base.section(section), draft.new.section(section)
    cases = (
        pairs.base.cases + int(pairs.missing_base.sum()),
        pairs.new.cases + int(pairs.missing_new.sum()),
    )
    patterns: set[tuple[bytes, bytes]] = set()
    in_lines = {*pairs.base.names, *pairs.new.names}
    for name in dict.fromkeys([*pairs.names, *old.get("mean", {}), *now.get("mean", {})]):
        full = f"{section}.{name}"
        row = MetricRow(
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
            a, b = pairs.pair(name)
            if row.primary:
                a, b = (None if side is None else as_stored(side) for side in (a, b))
            row, evidence = _tested(row, a, b, codes, options.seed)
            yield row
            if evidence is not None and row.primary:
                draft.evidence.append((evidence, pairs.ids))
            if a is not None and b is not None and name not in MEASURED:
                yield from _scored_row(row, pairs, a, b, codes, options.seed, patterns)
        elif row.base_mean is None or row.new_mean is None:
            yield _one_sided(row)
        else:
            yield replace(
                row, base=row.base_mean, new=row.new_mean, delta=row.new_mean - row.base_mean
            )


def _scored_row(
    row: MetricRow,
    pairs: SideBySide,
    a: Floats,
    b: Floats,
    codes: Ints | None,
    seed: int,
    patterns: set[tuple[bytes, bytes]],
) -> Iterator[MetricRow]:
    """Whether a case is scored at all, as a metric of 0 and 1 over the cases that both answered.

    Metrics that lack the same cases get one row, named after the first of them.
    """
    answered = pairs.answered()
    old, now = ~np.isnan(a), ~np.isnan(b)
    lost, gained = answered & old & ~now, answered & now & ~old
    if not (lost.any() or gained.any()) or not (old.any() and now.any()):
        return
    pattern = lost.tobytes(), gained.tobytes()
    if pattern in patterns:
        return
    patterns.add(pattern)
    before, after = (np.where(answered, side.astype(float), np.nan) for side in (old, now))
    own = MetricRow(
        row.section,
        f"{row.metric}{SCORED}",
        None,
        base_cases=row.base_cases,
        new_cases=row.new_cases,
    )
    yield _tested(own, before, after, codes, seed)[0]


def _slice_rows(
    rows: Sequence[MetricRow],
    pairs: SideBySide,
    members: Mapping[tuple[str, str], Ints],
    codes: Ints | None,
    seed: int,
) -> Iterator[MetricRow]:
    """The primary metrics within each slice. They are explored, so none decides."""
    for row in rows:
        if not row.primary:
            continue
        a, b = pairs.pair(row.metric)
        if a is None or b is None:
            continue
        for (dimension, value), ids in sorted(members.items(), key=lambda item: item[0]):
            at = places_of(ids, pairs.ids)
            at = at[at >= 0]
            part = MetricRow(
                row.section,
                row.metric,
                row.higher_is_better,
                slice=f"{dimension}={value}",
                base_cases=len(at),
                new_cases=len(at),
            )
            own = None if codes is None else compact(codes[at])
            part, _ = _tested(part, a[at], b[at], own, seed)
            if part.n < TOO_FEW:
                part = replace(part, p=None, interval=None, ratio_interval=None)
            yield part


def _members(parts: Parts | None, by: Sequence[str]) -> dict[tuple[str, str], Ints]:
    """The hashed ids of the cases of each slice."""
    ids: dict[tuple[str, str], list[int]] = {}
    for case_id, own in (parts or {}).items():
        for part in own:
            if part[0] in by:
                ids.setdefault(part, []).append(hash(case_id))
    return {part: np.array(hashes, np.int64) for part, hashes in ids.items()}


def is_binary(name: str) -> bool:
    """Whether a case scores 0 or 1."""
    if name.endswith(SCORED):
        return True
    try:
        return catalogue.find(name).binary
    except KeyError:
        return False


def _one_sided(row: MetricRow) -> MetricRow:
    if row.base_mean is not None:
        return replace(row, verdict="only in base")
    return replace(row, verdict="only in new") if row.new_mean is not None else row


def _tested(
    row: MetricRow, base: Floats | None, new: Floats | None, codes: Ints | None, seed: int
) -> tuple[MetricRow, Evidence | None]:
    """The row with means and its own test over the cases that both runs scored, and its evidence
    for the joint test."""
    if base is None or new is None:
        return _one_sided(row), None
    old, now = ~np.isnan(base), ~np.isnan(new)
    row = replace(
        row,
        lost=int((old & ~now).sum()),
        gained=int((now & ~old).sum()),
        base_n=int(old.sum()),
        new_n=int(now.sum()),
        base_mean=float(base[old].mean()) if old.any() else None,
        new_mean=float(new[now].mean()) if now.any() else None,
    )
    if not (row.base_n and row.new_n):
        return _one_sided(row), None
    if row.primary:
        evidence = evidence_of(row.name, base, new, codes, seed)
        effect, values = evidence.effect, evidence.values
    else:
        evidence = None
        largest = 1.0 if row.metric.endswith(SCORED) else range_of(row.name)
        effect, values = measure(
            base, new, codes, skewed=is_skewed(row.name), largest=largest, seed=seed
        )
    if not effect.n:
        return row, None
    name = f"{row.name} {row.slice or ''}"
    p, test = plain_p(effect, values, codes, binary=is_binary(row.name), name=name, seed=seed)
    return replace(with_effect(row, effect), p=p, test=test), evidence


def with_effect(row: MetricRow, effect: Effect) -> MetricRow:
    """The row with the numbers of its effect."""
    ratio = effect.ratio
    return replace(
        row,
        n=effect.n,
        units=effect.clusters,
        base=effect.mean_a,
        new=effect.mean_b,
        delta=effect.difference,
        interval=effect.interval,
        rose=effect.rose,
        fell=effect.fell,
        ratio=ratio.typical if ratio else None,
        ratio_interval=ratio.interval if ratio else None,
        ratio_totals=ratio.totals if ratio else None,
        effect=effect,
    )


def compare(
    base: Path,
    new: Path,
    options: CompareOptions | None = None,
    *,
    clusters: Clustering | None = None,
    parts: Parts | None = None,
    tables: RunTables | None = None,
) -> Comparison:
    """Compare two scored run folders, metric by metric.

    ``clusters``: cases that are flipped together. ``parts``: the slices of each case; the primary
    metrics are then tested in each slice of ``options.by`` too. ``tables``: where the runs' scores
    are, or stay to be looked at again. Raises IncomparableError (exit code
    2) when they differ in what must be the same, and StorageError when one of them is not scored or
    a file is damaged. Memory: some columns of scores; the rest of a large section lies on disk.
    """
    return compare_many(base, [new], options, clusters=clusters, parts=parts, tables=tables)[0]


def compare_many(
    base: Path,
    others: Sequence[Path],
    options: CompareOptions | None = None,
    *,
    clusters: Clustering | None = None,
    parts: Parts | None = None,
    tables: RunTables | None = None,
) -> list[Comparison]:
    """Compare several runs with one base; all are corrected together, in one joint test."""
    keep, tables = tables is not None and len(others) == 1, tables or RunTables()
    options = options or CompareOptions()
    old = read_run(base)
    drafts = [_Draft(old, read_run(new)) for new in others]
    codes = ClusterCodes(clusters)
    members = _members(parts, options.by)
    primary = _primary_of(options, drafts)
    shared = [_prepared(draft, options, primary) for draft in drafts]
    asked = {id(run): _asked(run, options.eval_set) for run in (old, *(d.new for d in drafts))}
    for section in dict.fromkeys(name for sections in shared for name in sections):
        scores = tables[old.folder].section(section)
        for draft, sections in zip(drafts, shared, strict=True):
            if section in sections:
                own = tables[draft.new.folder].section(section)
                pairs = _matched(scores, own, asked[id(old)], asked[id(draft.new)])
                _take_section(draft, pairs, primary, options, codes, members)
                if not keep:
                    tables[draft.new.folder].forget(section)
                del own, pairs
        if not keep:
            tables[old.folder].forget(section)
    return _settled(drafts, primary, options, codes)


def read_pairs(
    base: Path, new: Path, section: str, eval_set: Path | None, tables: RunTables
) -> SideBySide:
    """One section of two runs side by side."""
    old, now = read_run(base), read_run(new)
    scores = tables[base].section(section), tables[new].section(section)
    return _matched(*scores, _asked(old, eval_set), _asked(now, eval_set))


def _matched(
    base: SectionTable, new: SectionTable, asked_base: Ints | None, asked_new: Ints | None
) -> SideBySide:
    """The lines of a section that has texts of its own were asked nobody."""
    if base.section == OWN_TEXTS:
        asked_base = asked_new = np.zeros(0, np.int64)
    return side_by_side(base, new, asked_base, asked_new)


def _prepared(draft: _Draft, options: CompareOptions, primary: Sequence[str]) -> list[str]:
    """The sections to compare. Raises IncomparableError for runs that were not measured alike."""
    sections, draft.notes = _shared_sections(draft.base, draft.new, options.sections)
    if options.ignore_invariants:
        draft.problems = controls(draft.base, draft.new, sections)
        return sections
    needed = {*options.sections, *(n.partition(".")[0] for n in primary if options.metrics)}
    draft.left_out = comparable_sections(
        draft.base, draft.new, sections, primary, needed, options.override
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
        draft.missing = max(draft.missing[0], missing[0]), max(draft.missing[1], missing[1])


def _settled(
    drafts: Sequence[_Draft],
    primary: Sequence[str],
    options: CompareOptions,
    codes: ClusterCodes,
) -> list[Comparison]:
    """Correct all runs together, and say what each comparison amounts to."""
    tested = iter(explored([row for d in drafts for row in d.rows if not row.primary]))
    for draft in drafts:
        draft.rows = [row if row.primary else next(tested) for row in draft.rows]
    slices = iter(explored([row for draft in drafts for row in draft.slices]))
    for draft in drafts:
        draft.slices = [next(slices) for _ in draft.slices]
    ids = _all_ids(drafts)
    aligned = [[_aligned(*item, ids) for item in draft.evidence] for draft in drafts]
    decisions = settle(
        aligned,
        codes.of(ids),
        margin=options.margin,
        seed=options.seed,
        worse=[sum(row.bad for row in draft.rows) for draft in drafts],
    )
    return [
        _comparison(draft, decision, primary, options, codes)
        for draft, decision in zip(drafts, decisions, strict=True)
    ]


def _all_ids(drafts: Sequence[_Draft]) -> Ints:
    """The cases of every primary metric."""
    arrays = [ids for draft in drafts for _, ids in draft.evidence]
    if not arrays:
        return np.zeros(0, np.int64)
    if all(ids is arrays[0] or np.array_equal(ids, arrays[0]) for ids in arrays):
        return arrays[0]
    together = np.concatenate(arrays)
    _, first = np.unique(together, return_index=True)
    ids: Ints = together[np.sort(first)]  # hashes have another order in each process
    return ids


def _aligned(evidence: Evidence, own: Ints, ids: Ints) -> Evidence:
    """The evidence with a row for each of ``ids``."""
    if own is ids or np.array_equal(own, ids):
        return evidence
    values = np.full(len(ids), np.nan)
    values[places_of(own, ids)] = evidence.values
    return replace(evidence, values=values)


def _comparison(
    draft: _Draft,
    decision: Decision,
    primary: Sequence[str],
    options: CompareOptions,
    codes: ClusterCodes,
) -> Comparison:
    base, new, notes = draft.base, draft.new, list(draft.notes)
    rows = [decided(row, found) if (found := decision.row(row.name)) else row for row in draft.rows]
    headline = decision.headline
    if looked := _looked_at(draft):
        rows = [with_looks(row, looked) if row.name == looked.metric else row for row in rows]
        headline = _headline_of_looks(decision, rows)
    rows.sort(key=lambda row: primary.index(row.name) if row.primary else len(primary))
    if draft.problems:
        notes.append("Compared although what measures them differs: see the differences above.")
    notes += [note for run in (base, new) if (note := stopped_note(run.config, base.id))]
    notes += _case_notes(draft)
    changes = varied(base.config, new.config)
    notes += remarks(base, new, changes, options.varied)
    looked_for = [
        name
        for name in primary
        if not options.sections or name.partition(".")[0] in options.sections
        if name.partition(".")[0] not in draft.left_out
    ]
    if absent := [name for name in looked_for if decision.row(name) is None]:
        notes.append(f"Primary, but not scored in both runs: {', '.join(absent)}.")
    return Comparison(
        base.id,
        new.id,
        tuple(rows),
        headline,
        tuple(draft.slices),
        clusters=codes.sentence(draft.ids),
        scope=codes.clustering.scope if codes.clustering else "",
        tested=decision.tested,
        critical=decision.critical,
        controls=tuple(draft.problems),
        left_out=tuple(draft.left_out.values()),
        varied=tuple(changes),
        notes=(*_cluster_notes(draft, codes), *notes),
        cases=draft.cases,
        only_base=draft.only_base,
        only_new=draft.only_new,
    )


def decided(row: MetricRow, found: PrimaryRow) -> MetricRow:
    """A primary row with what the joint test says of it."""
    ratio = found.effect.ratio
    verdict: Any = found.verdict
    if verdict in ("better", "worse") and ratio is not None and ratio.opposed:
        verdict = "mixed"
    return replace(
        row,
        p_joint=found.p,
        p_worse=found.p_worse,
        test="joint sign-flip",
        mde=exp(found.mde) if ratio is not None and found.mde is not None else found.mde,
        verdict=verdict,
        look=found.look,
        fragile=found.fragile,
    )


def _looked_at(draft: _Draft) -> Decided | None:
    """What the new run's looks came to, where they were looks against the base run."""
    decided = decided_of(draft.new.config)
    return decided if decided is not None and decided.decides(draft.base.id) else None


def _headline_of_looks(decision: Decision, rows: Sequence[MetricRow]) -> Headline:
    """The headline with the verdicts that the rows have by now."""
    verdicts: dict[str, Any] = {row.name: row.verdict for row in rows}
    primary = [
        replace(
            row, verdict=verdicts[row.name], look=row.look and verdicts[row.name] == row.verdict
        )
        for row in decision.rows
    ]
    return headline_of(primary, sum(row.bad for row in rows if not row.primary))


def _case_notes(draft: _Draft) -> Iterator[str]:
    for run, count in zip((draft.base, draft.new), draft.missing, strict=True):
        if count:
            verb = "has" if count == 1 else "have"
            yield (
                f"{counted(count, 'case')} that {run.id} was asked {verb} no result there: not "
                "answered and not passed, so 0 in answered and pass."
            )
    if draft.only_base or draft.only_new:
        yield (
            f"{draft.only_base} cases are in {draft.base.id} only and {draft.only_new} in "
            f"{draft.new.id} only; they are left out of every difference."
        )


def _cluster_notes(draft: _Draft, codes: ClusterCodes) -> Iterator[str]:
    """Few clusters, or one that outweighs the others, before everything else."""
    for evidence, ids in draft.evidence:
        effect = evidence.effect
        if effect.clusters == effect.n:
            if 0 < effect.n < FEWEST_CLUSTERS:
                yield f"{evidence.name}: too few cases ({effect.n}) to tell."
            continue
        label, size = codes.largest(ids[~np.isnan(evidence.values)])
        spread = effect.spread
        if effect.clusters < FEWEST_CLUSTERS:
            yield f"{evidence.name}: too few clusters ({effect.clusters}) to tell."
        elif spread is not None and (size > effect.n / 2 or spread.effective < FEWEST_CLUSTERS):
            yield (
                f"{evidence.name}: {size} of {effect.n} cases belong to one cluster ({label}), so "
                f"they tell as much as {spread.effective:.1f} of equal size."
            )


def _asked(run: Run, eval_set: Path | None) -> Ints | None:
    """Hashes of the cases that a run was asked beside those it has lines of: none of them when it
    lacks no result or does not say; None for every case of the set."""
    if run.metrics.get("missing") == 0:
        return np.zeros(0, np.int64)
    ids = asked_ids(run.config, eval_set)
    if ids is not None:
        return np.fromiter(map(hash, ids), np.int64, len(ids))
    asked = asked_of(run.config)
    if asked is not None and asked.cases == run.config.dataset.get("cases"):
        return None
    return np.zeros(0, np.int64)


def _shared_sections(base: Run, new: Run, asked: Sequence[str]) -> tuple[list[str], list[str]]:
    """Sections to compare, and notes on those that one run lacks.

    Raises StorageError when nothing is left, or a section that was asked for is not there.
    """
    old, now = scored_sections(base.folder), scored_sections(new.folder)
    notes = []
    for section in sorted({*asked} or {*old, *now}):
        for run, scored in ((base, old), (new, now)):
            if section not in scored:
                message = f"{run.folder}: has no scores of {section}; {_remedy(section, run.id)}"
                if asked:
                    raise StorageError(message)
                notes.append(message)
    shared = [section for section in old if section in now and (not asked or section in asked)]
    if not shared:
        lines = "\n".join(notes) or f"{base.folder} and {new.folder}: hold no score lines."
        raise StorageError(
            f"{lines}\nThere is nothing to compare case by case: metrics.json alone holds no cases."
        )
    return shared, notes


def _remedy(section: str, run: str) -> str:
    """How a run gets its scores of a section."""
    if section in ("judged", "rubrics"):
        return f"run judge_answers.py --run {run}."
    if section == "custom":
        return "run eval_suite.py with the same --plugin."
    return f"run score_{section}.py --run {run}."


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
            names = usable_names(run.folder, run.metrics, names)
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


def slices_of_cases(eval_set: Path, labels_dir: Path | None) -> dict[str, Slices]:
    """The slices of each case: category, difficulty, query type, tags, vaults.

    Raises StorageError with every problem of the set and its labels.
    """
    problems: list[Problem] = []
    labels, _ = read_labels(labels_dir, problems.append)
    slices = {
        case.id: slices_of(facets_of(case))
        for case in iter_cases(eval_set, problems.append, labels)
    }
    if problems:
        raise StorageError.from_problems(problems)
    return slices


def clusters_of(
    folders: Sequence[Path],
    eval_set: Path,
    by: str,
    tables: RunTables | None = None,
    targets: Path = TARGETS,
) -> tuple[Clustering | None, list[str]]:
    """The clusters of the cases of runs, the base first, and remarks; see
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
        f"{eval_set} is not the set that {run.resolve().name} was scored with: slices are those of "
        "the set as it is now."
    )


WORSE, LOOK, ANY_WORSE = "worse", "look", "any-worse"


def failures(comparisons: Sequence[Comparison], rules: Sequence[str]) -> list[str]:
    """Why the comparison fails, a sentence each; empty when it passes.

    ``worse``: a primary metric got worse or is no longer measured; ``look``: also when the headline
    asks to look; ``any-worse``: any metric got worse; a metric's name: that one. A section that was
    left out fails, too. Raises StorageError for a name that no row has.
    """
    reasons: dict[str, None] = {}
    for comparison in comparisons:
        for rule in rules:
            rows = _rows(comparison, rule)
            if rule in (WORSE, LOOK, ANY_WORSE) or not rows:
                reasons |= dict.fromkeys(comparison.left_out)
            if not rows and not comparison.left_out and rule not in (WORSE, LOOK, ANY_WORSE):
                raise StorageError(
                    f"--fail-on {rule}: neither run has that metric; write worse, look, any-worse "
                    "or the names of metrics."
                )
            reasons |= dict.fromkeys(_reasons(comparison, rows, suspect=rule == LOOK))
    return list(reasons)


def _rows(comparison: Comparison, rule: str) -> list[MetricRow]:
    if rule == ANY_WORSE:
        return list(comparison.rows)
    if rule == WORSE:
        return [row for row in comparison.rows if row.primary]
    if rule == LOOK:
        return [row for row in comparison.rows if row.primary or row.bad]
    return [row for row in comparison.rows if rule in (row.metric, row.name)]


def _reasons(comparison: Comparison, rows: Iterable[MetricRow], *, suspect: bool) -> Iterator[str]:
    for row in rows:
        run = comparison.new_id
        if row.verdict == "only in base":
            yield f"{row.name} is measured in {comparison.base_id} but not in {run}."
        elif row.delta is None:
            continue
        elif row.verdict in ("worse", "mixed") or (suspect and row.bad):
            state = "mixed" if row.verdict == "mixed" else "worse"
            state = "scored for other cases" if row.verdict == "differs" else state
            yield (
                f"{row.name} is {state} in {run}: {row.delta:+.4f} over {row.n} cases, "
                f"corrected p {row.p_adjusted or 0:.4g}."
            )
        elif suspect and row.look:
            yield (
                f"{row.name} may be worse in {run}: {row.delta:+.4f} over {row.n} cases, "
                f"corrected p {row.p_adjusted or 0:.4g}."
            )

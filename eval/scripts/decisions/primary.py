"""Primary metrics: which ones decide, and their scores case by case, of a folder or metrics.json.

``targets.toml`` declares them (``[decide] primary``), else they are the built-in ones. metrics.json
holds their scores for sets of up to ``MOST_CASES`` cases, one line a case, so that a committed file
is enough for a paired test. An older file without them can still be read; it has no such scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decisions.coverage import NOTHING, ChosenRest, chosen_of
from decisions.pairing import places_of
from ragmetrics.catalogue.judged import CALLS_BY_METRIC
from ragmetrics.stats.arrays import Floats, Ints, np
from records import calibration
from records.clusters import AUTO, FIXED, NONE, Clustering, LabelsById, read_clusters
from records.errors import StorageError
from records.files import sha256_file
from records.id_numbers import id_of
from records.metric_lines import PRIMARY
from records.metrics import PRIMARY_METRICS, ROUND, read_sections
from records.run import Run, Runs
from records.runs import METRICS, scored_sections
from records.scores import ALL_BUT_EVIDENCE, ScoreLine
from records.section_table import FAILED_IS_ZERO
from records.targets import TARGETS, read_decide
from terminal.tables import counted

if TYPE_CHECKING:
    from decisions.change import Change
    from decisions.joint import PrimaryTable
    from decisions.same_cases import Alignment
    from records.section_table import Mask

BUILT_IN = (
    "retrieval.evidence_recall@5",
    "groundedness.claim_support_rate",
    "abstention.decision_right",
    "pipeline.pass",
    "pipeline.answered",
    "judged.correctness",
)
"""The primary metrics if targets.toml declares none."""

JUDGED = "judged"

FIXED_NOTE = (
    "The documents are taken as given, since they are few or [decide] documents says so: cases of "
    "one section are counted together. If all cases of a document change together by luck, that "
    "counts as a difference; run_eval.py --repeat 2 shows it."
)
"""The limit of verdicts on fixed documents."""

MOST_CASES = 5_000
"""Cases up to which metrics.json contains the primary scores of every case."""


@dataclass(frozen=True)
class PrimaryScores:
    """A run's primary scores: a row for each asked case in eval-set order, a column for each name.

    ``values`` are rounded as metrics.json rounds them and are not a number where a case has no
    score; repeats of a case are averaged. ``definitions``: of each metric that was scored.
    ``head``: of metrics.json, with the sections.
    """

    label: str
    names: tuple[str, ...]
    case_ids: tuple[str, ...]
    values: Floats
    definitions: Mapping[str, str] = field(default_factory=dict)
    head: Mapping[str, Any] = field(default_factory=dict)


def primary_names(targets: Path = TARGETS) -> tuple[str, ...]:
    """The metrics that decide, as ``section.metric``: those of targets.toml, else the built-in.

    Raises StorageError for a declaration that cannot be used.
    """
    return read_decide(targets).primary or BUILT_IN


def lead_of(names: Sequence[str], targets: Path = TARGETS) -> str:
    """The metric that is tested first (``[decide] lead``); "" without one.

    Raises StorageError for one that is no primary metric.
    """
    lead = read_decide(targets).lead
    if lead and lead not in (*names, *primary_names(targets)):
        raise StorageError(
            f"{targets}: [decide] lead: {lead} is no primary metric; name one of "
            f"{', '.join(primary_names(targets))}."
        )
    return lead


def read_primary(
    source: Path,
    names: Sequence[str] | None = None,
    asked: Sequence[str] | None = None,
    table: Run | None = None,
) -> PrimaryScores | None:
    """The primary scores of a run folder or of a metrics.json; None when it has none.

    A folder is read from its score lines, where it has any, else from its metrics.json. ``names``:
    by default those of ``primary_names``; names that were not scored are left out. ``asked``: the
    ids of all cases that were asked, for cases without a result; by default what metrics.json
    says. ``table``: what was read of the run. Raises StorageError for a damaged file.
    """
    names = primary_names() if names is None else tuple(names)
    path = source / METRICS if source.is_dir() else source
    metrics = read_sections(path, slices=False) if path.exists() else {}
    folder = path.parent
    if source.is_dir() or path.name == METRICS:
        sections = set(scored_sections(folder)) & set(metrics.get("sections", {}))
        if any(name.partition(".")[0] in sections for name in names):
            ids = asked if asked is not None else list(metrics.get(PRIMARY) or ())
            names = usable_names(folder, metrics, names)
            return _of_lines(table or Run(folder), names, metrics, sections, ids)
    label = source.resolve().name if source.is_dir() else str(metrics.get("run_id") or path)
    return _of_member(label, path, names, metrics)


def usable_names(folder: Path, metrics: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Of the built-in names those whose judge, if any, is calibrated; all of others."""
    if tuple(names) != BUILT_IN:
        return tuple(names)
    judge = metrics.get("sections", {}).get(JUDGED, {}).get("options", {}).get("judge") or {}
    if not any((folder / calibration.name_of(call)).exists() for call in calibration.METRICS):
        return tuple(name for name in names if not name.startswith(f"{JUDGED}."))
    from decisions.judge_calibration import fitting, stored_calibrations, too_few

    calibrations = stored_calibrations(folder)

    def usable(name: str) -> bool:
        section, _, metric = name.partition(".")
        if section != JUDGED:
            return True
        records = [fitting(call, judge, calibrations)[0] for call in CALLS_BY_METRIC[metric]]
        return all(record is not None and not too_few(record) for record in records)

    return tuple(name for name in names if usable(name))


def as_stored(values: Floats) -> Floats:
    """Scores rounded as metrics.json rounds them, so that a committed file decides alike."""
    stored: Floats = np.round(values, ROUND)
    stored += 0.0  # no negative zero
    return stored


def _of_member(
    label: str, path: Path, names: Sequence[str], metrics: Mapping[str, Any]
) -> PrimaryScores | None:
    """What the ``primary`` member of a metrics.json holds; None for a file without it."""
    rows, columns = metrics.get(PRIMARY), metrics.get(PRIMARY_METRICS)
    if not rows or not columns:
        return None
    if any(len(row) != len(columns) for row in rows.values()):
        raise StorageError(
            f"{path}: {PRIMARY}: the scores of a case do not match the names of {PRIMARY_METRICS}; "
            "score the run again, or take the file from git."
        )
    chosen = [name for name in names if name in columns]
    whole = np.array(list(rows.values()), dtype=float).reshape(len(rows), len(columns))
    values = whole[:, [columns.index(name) for name in chosen]]
    return PrimaryScores(
        label,
        tuple(chosen),
        tuple(rows),
        values,
        _definitions(metrics, chosen),
        metrics,
    )


def _of_lines(
    table: Run,
    names: Sequence[str],
    metrics: Mapping[str, Any],
    sections: set[str],
    asked: Sequence[str],
) -> PrimaryScores:
    """The scores as the run's score lines hold them, with a row for each asked case."""
    row_by_id = {case_id: row for row, case_id in enumerate(asked)}
    columns: dict[str, tuple[Ints, Floats]] = {}
    for section in dict.fromkeys(name.partition(".")[0] for name in names):
        if section not in sections:
            continue
        scores = table.section(section)
        ids = scores.case_ids().values()
        rows = [row_by_id.setdefault(case_id, len(row_by_id)) for case_id in ids]
        own = [name for name in names if name.startswith(f"{section}.")]
        for name, metric in zip(own, (name.partition(".")[2] for name in own), strict=True):
            if metric in scores.names:
                columns[name] = np.array(rows, np.int64), scores.column(metric)
    chosen = [name for name in names if name in columns]
    values = np.full((len(row_by_id), len(chosen)), np.nan)
    for at, name in enumerate(chosen):
        section, _, metric = name.partition(".")
        if section == "pipeline" and metric in FAILED_IS_ZERO:
            values[:, at] = 0.0  # a case without a line
        values[columns[name][0], at] = columns[name][1]
    values = as_stored(values)
    label = table.folder.resolve().name
    meant = _definitions(metrics, chosen)
    return PrimaryScores(label, tuple(chosen), tuple(row_by_id), values, meant, metrics)


def _definitions(metrics: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """The definition id of each metric, as its section says it."""
    ids: dict[str, str] = {}
    for name in names:
        section, _, metric = name.partition(".")
        definition = metrics.get("sections", {}).get(section, {}).get("definitions", {}).get(metric)
        if definition is not None:
            ids[name] = definition
    return ids


def paired_table(
    base: PrimaryScores,
    new: PrimaryScores,
    labels: LabelsById | None = None,
    changes: Alignment | None = None,
) -> PrimaryTable:
    """The metrics of one definition that both runs were scored for, over the cases of both.

    ``labels``: the cluster of each case (records/clusters.py); None: each case by itself.
    ``changes``: cases that changed between the runs, which are left out.
    """
    from decisions.joint import PrimaryTable

    changed = changes.of_any if changes else frozenset[str]()
    others = of_other_cases(base, new, changes)
    names = [
        name
        for name in base.names
        if name in new.names and name not in others and _same_definition(base, new, name)
    ]
    row_by_id = {case_id: row for row, case_id in enumerate(new.case_ids)}
    both = [
        (at, row_by_id[case_id])
        for at, case_id in enumerate(base.case_ids)
        if case_id in row_by_id and case_id not in changed
    ]
    rows = np.array(both, dtype=np.int64).reshape(len(both), 2)
    case_ids = [base.case_ids[at] for at, _ in both]
    numbers: dict[str, int] = {}
    clusters = [
        numbers.setdefault(case_id if labels is None else labels[case_id], len(numbers))
        for case_id in case_ids
    ]
    a, b = (
        side.values[rows[:, at]][:, [side.names.index(name) for name in names]]
        for at, side in enumerate((base, new))
    )
    chosen = dict[str, ChosenRest]()
    if changes is not None and changes.differs:
        gone = np.array([i in changed or i in changes.gone for i in base.case_ids], bool)
        here = gone | np.isin(np.arange(len(gone)), rows[:, 0])
        codes = np.array(
            [
                numbers.setdefault(i if labels is None else labels[i], len(numbers))
                for i in base.case_ids
            ],
            np.int64,
        )
        for name in names:
            values = np.where(here, base.values[:, base.names.index(name)], np.nan)
            if (rest := chosen_of((values, gone), codes)) is not None:
                chosen[name] = rest
    own = np.array(clusters, dtype=np.int64)
    return PrimaryTable(tuple(names), case_ids, own, a, b, chosen)


def of_other_cases(
    base: PrimaryScores, new: PrimaryScores, changes: Alignment | None
) -> dict[str, str]:
    """The metrics of both runs that cannot be compared since their cases are not the same, with the
    reason; see ``Alignment.depends_on_others``."""
    if changes is None:
        return {}
    alone = len({*base.case_ids} ^ {*new.case_ids})
    both = [(name, *name.split(".", 1)) for name in base.names if name in new.names]
    reasons = {n: changes.depends_on_others(section, own, alone) for n, section, own in both}
    return {name: reason for name, reason in reasons.items() if reason}


def _same_definition(base: PrimaryScores, new: PrimaryScores, name: str) -> bool:
    """Whether both runs mean the same by a metric; also where one of them does not say."""
    old, now = base.definitions.get(name), new.definitions.get(name)
    return old is None or now is None or old == now


class PrimaryColumn(NamedTuple):
    """A primary metric of two runs, case by case: not a number where a run has no score, and in
    both for a case that one of them was not asked. ``missing``: asked cases without a result.
    ``chosen``: see ``PrimaryTable``."""

    name: str
    ids: Ints
    a: Floats
    b: Floats
    missing: Mask
    chosen: ChosenRest | None = None


def all_ids(columns: Sequence[PrimaryColumn]) -> Ints:
    """The cases of every column."""
    arrays = [column.ids for column in columns]
    if not arrays:
        return np.zeros(0, np.int64)
    if all(np.array_equal(ids, arrays[0]) for ids in arrays):
        return arrays[0]
    return np.array(list(dict.fromkeys(np.concatenate(arrays).tolist())), np.int64)


def table_of(
    columns: Sequence[PrimaryColumn], ids: Ints, clusters: Ints
) -> tuple[PrimaryTable, Mask]:
    """The columns with a row for each of ``ids``, and which of these cases have no result in a
    run."""
    names = tuple(column.name for column in columns)
    a, b = (np.full((len(ids), len(names)), np.nan) for _ in range(2))
    missing = np.zeros(len(ids), bool)
    for at, column in enumerate(columns):
        places = places_of(column.ids, ids)
        a[places, at], b[places, at] = column.a, column.b
        missing[places] |= column.missing
    from decisions.joint import PrimaryTable

    chosen = {column.name: column.chosen for column in columns if column.chosen}
    return PrimaryTable(names, (), clusters, a, b, chosen), missing


def usual_reason(
    row: Change, table: PrimaryTable, ids: Ints, folders: tuple[Path, Path], tables: Runs
) -> str:
    """Return the most frequent reason why the lost cases of a metric have no score.

    It is that of the run that lost more of them, as its lines say; "" where other primary metrics
    count why. ``folders``: of base and new.
    """
    coverage = row.coverage or NOTHING
    if coverage.decides or coverage.left_out:
        return ""
    a, b = table.column(row.name)
    by_new = coverage.lost[1] >= coverage.lost[0]
    own, other = (b, a) if by_new else (a, b)
    section, _, metric = row.name.partition(".")
    lines = tables[folders[by_new]].section(section)
    lost = ids[np.isnan(own) & ~np.isnan(other)]
    rows = sorted(lines.rows_of(list(map(id_of, lost.tolist()))).values())
    numbers = map(lines.line_number, rows)
    reasons = Counter(_reason(line, metric) for line in lines.lines(numbers, ALL_BUT_EVIDENCE))
    return max(reasons, key=lambda reason: reasons[reason], default="")


def _reason(line: ScoreLine, metric: str) -> str:
    """Why a line has no score of a metric; "" where it does not say."""
    names = (metric, f"{metric.partition('@')[0]}@*", "*")
    return next((line.reasons[name] for name in names if name in line.reasons), "")


def clusters_of_run(
    eval_set: Path | None,
    scored_with: str | None,
    run: str,
    by: str = AUTO,
    folders: Iterable[Path] = (),
    tables: Runs | None = None,
    targets: Path = TARGETS,
) -> tuple[Clustering | None, list[str]]:
    """Which cases of a run are counted together, as its score lines say, else its eval set; None
    where neither does, with a remark.

    ``scored_with``: the SHA-256 of the set that the run was scored with; another set clusters
    nothing. ``folders``: of the runs that are compared. ``targets``: says whether documents are
    fixed; few ones are, and then the set is read for the sections. Raises StorageError for a key
    that the set cannot give.
    """
    if by == NONE:
        return None, []
    documents, few, ids = AUTO, None, None
    if by == AUTO:
        tables, documents = tables or Runs(), read_decide(targets).documents
        for folder in folders:
            if (clustering := tables[folder].clustering()) is not None:
                if not clustering.few_documents(documents):
                    return clustering, []
                few, documents, ids = clustering, FIXED, frozenset(tables[folder].ids())
                break
    problem = ""
    if eval_set is None or not eval_set.exists():
        problem = f"{eval_set or 'The eval set'} is not there"
    elif scored_with not in (None, sha256_file(eval_set)):
        problem = f"{eval_set} is not the set that {run} was scored with"
    if not problem:
        assert eval_set is not None
        clustering = read_clusters(eval_set, by, documents, ids)
        return clustering, [FIXED_NOTE] if clustering.fixed else []
    remedy = "Give that set with --eval-set, or score the run again."
    if by != AUTO:
        raise StorageError(f"--set cluster={by}: {problem}. {remedy}")
    if few is not None:
        count = counted(few.documents, "document")
        return few, [f"{problem}, so the sections of {count} are not known. {remedy}"]
    return None, [f"{problem}, so every case is counted by itself. {remedy}"]

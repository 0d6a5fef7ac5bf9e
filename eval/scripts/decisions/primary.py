"""Primary metrics: which ones decide, and their scores case by case, of a folder or metrics.json.

``targets.toml`` declares them (``[decide] primary``), else they are the built-in ones. metrics.json
holds their scores for sets of up to ``MOST_CASES`` cases, one line a case, so that a committed file
is enough for a paired test. An older file without them can still be read; it has no such scores.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import nan
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisions.columns import FAILED_IS_ZERO, fields_of, scores_of
from decisions.engine import PrimaryTable
from decisions.judge_calibration import fitting, stored_calibrations, too_few
from ragmetrics.catalogue.judged import CALLS_BY_METRIC
from records.clusters import AUTO, NONE, Clustering, LabelsById, read_clusters
from records.errors import StorageError
from records.files import sha256_file
from records.metrics import (
    PRIMARY,
    PRIMARY_METRICS,
    ROUND,
    read_sections,
    update_primary,
)
from records.runs import METRICS, scored_sections
from records.scores import read_scores
from records.targets import TARGETS, declared_primary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BUILT_IN = (
    "retrieval.evidence_recall@5",
    "groundedness.claim_support_rate",
    "abstention.decision_right",
    "pipeline.pass",
    "pipeline.answered",
    "judged.correctness",
)
"""What decides where targets.toml declares nothing."""

JUDGED = "judged"

MOST_CASES = 2000
"""Cases up to which metrics.json holds the primary scores of every case."""


@dataclass(frozen=True)
class PrimaryScores:
    """A run's primary scores: a row for each asked case in eval-set order, a column for each name.

    ``values`` are rounded as metrics.json rounds them and are not a number where a case has no
    score; repeats of a case are averaged. ``definitions``: of each metric that was scored.
    """

    label: str
    names: tuple[str, ...]
    case_ids: tuple[str, ...]
    values: Floats
    definitions: Mapping[str, str] = field(default_factory=dict)


def primary_names(targets: Path = TARGETS) -> tuple[str, ...]:
    """The metrics that decide, as ``section.metric``: those of targets.toml, else the built-in.

    Raises StorageError for a declaration that cannot be used.
    """
    return declared_primary(targets) or BUILT_IN


def read_primary(
    source: Path, names: Sequence[str] | None = None, asked: Sequence[str] | None = None
) -> PrimaryScores | None:
    """The primary scores of a run folder or of a metrics.json; None when it holds none.

    A folder is read from its score lines, where it has any, else from its metrics.json. ``names``:
    by default those of ``primary_names``; names that were not scored are left out. ``asked``: the
    ids of all cases that were asked, for cases without a result; by default what metrics.json
    says. Raises StorageError for a damaged file.
    """
    names = primary_names() if names is None else tuple(names)
    path = source / METRICS if source.is_dir() else source
    metrics = read_sections(path) if path.exists() else {}
    folder = path.parent
    if source.is_dir() or path.name == METRICS:
        sections = set(scored_sections(folder)) & set(metrics.get("sections", {}))
        if any(name.partition(".")[0] in sections for name in names):
            ids = asked if asked is not None else list(metrics.get(PRIMARY) or ())
            names = usable_names(folder, metrics, names)
            return _of_lines(folder, names, metrics, sections, ids)
    return _of_member(path, names, metrics)


def write_primary(folder: Path, asked: Sequence[str] | None = None, *, large: bool = False) -> None:
    """Put the primary scores of a scored run into its metrics.json; a ``large`` set has none there.

    ``asked``: the ids of the cases that were asked; those without a result get a line, too.
    """
    scores = None if large else read_primary(folder, asked=asked or ())
    if scores is None or len(scores.case_ids) > MOST_CASES:
        update_primary(folder, (), {})
        return
    rows = {
        case_id: [None if value != value else value for value in row]
        for case_id, row in zip(scores.case_ids, scores.values.tolist(), strict=True)
    }
    update_primary(folder, scores.names, rows)


def usable_names(folder: Path, metrics: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Of the built-in names those whose judge, if any, was held against people; all of others."""
    if tuple(names) != BUILT_IN:
        return tuple(names)
    judge = metrics.get("sections", {}).get(JUDGED, {}).get("options", {}).get("judge") or {}
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
    import numpy as np

    stored: Floats = np.round(values, ROUND)
    stored += 0.0  # no negative zero
    return stored


def _of_member(
    path: Path, names: Sequence[str], metrics: Mapping[str, Any]
) -> PrimaryScores | None:
    """What the ``primary`` member of a metrics.json holds; None for a file without it."""
    import numpy as np

    rows, columns = metrics.get(PRIMARY), metrics.get(PRIMARY_METRICS)
    if not rows or not columns:
        return None
    if any(len(row) != len(columns) for row in rows.values()):
        raise StorageError(
            f"{path}: {PRIMARY}: a case has not as many scores as {PRIMARY_METRICS} has names; "
            "score the run again, or take the file from git."
        )
    chosen = [name for name in names if name in columns]
    whole = np.array(list(rows.values()), dtype=float).reshape(len(rows), len(columns))
    values = whole[:, [columns.index(name) for name in chosen]]
    return PrimaryScores(
        str(metrics.get("run_id") or path),
        tuple(chosen),
        tuple(rows),
        values,
        _definitions(metrics, chosen),
    )


def _of_lines(
    folder: Path,
    names: Sequence[str],
    metrics: Mapping[str, Any],
    sections: set[str],
    asked: Sequence[str],
) -> PrimaryScores:
    """The scores as the run's score lines hold them, with a row for each asked case."""
    import numpy as np

    row_by_id = {case_id: row for row, case_id in enumerate(asked)}
    columns: dict[str, array[float]] = {}
    for section in dict.fromkeys(name.partition(".")[0] for name in names):
        if section in sections:
            own = [name for name in names if name.startswith(f"{section}.")]
            columns |= _columns(folder, section, own, row_by_id)
    chosen = [name for name in names if name in columns]
    values = np.full((len(row_by_id), len(chosen)), np.nan)
    for at, name in enumerate(chosen):
        column = np.frombuffer(columns[name])
        values[: len(column), at] = column
        section, _, metric = name.partition(".")
        if section == "pipeline" and metric in FAILED_IS_ZERO:
            values[~_with_result(columns[RESULTS], len(row_by_id)), at] = 0.0
    values = as_stored(values)
    label = folder.resolve().name
    return PrimaryScores(
        label, tuple(chosen), tuple(row_by_id), values, _definitions(metrics, chosen)
    )


RESULTS = ""
"""Key of a column that says which cases have a line at all; no metric has this name."""


def _columns(
    folder: Path, section: str, names: Sequence[str], row_by_id: dict[str, int]
) -> dict[str, array[float]]:
    """A column for each of the metrics that the section's lines have; unknown cases get a row."""
    columns = {RESULTS: array("d"), **{name: array("d") for name in names}}
    scored: set[str] = set()
    lines = (line for _, _, line in read_scores(folder, section, fields_of(section)))
    for case_id, group in groupby(lines, key=attrgetter("case_id")):
        row = row_by_id.setdefault(case_id, len(row_by_id))
        repeats = [scores_of(section, line) for line in group]
        _put(columns[RESULTS], row, 1.0)
        for name in names:
            metric = name.partition(".")[2]
            if any(metric in scores for scores in repeats):
                scored.add(name)
            values = [s for scores in repeats if (s := scores.get(metric)) is not None]
            if values:
                _put(columns[name], row, sum(values) / len(values))
    return {name: column for name, column in columns.items() if name in {RESULTS, *scored}}


def _put(column: array[float], row: int, value: float) -> None:
    """Write one entry; what lies between the column's end and it is not a number."""
    if row >= len(column):
        column.extend([nan] * (row + 1 - len(column)))
    column[row] = value


def _with_result(rows: array[float], size: int) -> NDArray[np.bool_]:
    """A mask of the cases that have a score line."""
    import numpy as np

    mask = np.zeros(size, dtype=bool)
    mask[: len(rows)] = ~np.isnan(np.frombuffer(rows))
    return mask


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
    base: PrimaryScores, new: PrimaryScores, labels: LabelsById | None = None
) -> PrimaryTable:
    """The metrics of one definition that both runs were scored for, over the cases of both.

    ``labels``: the cluster of each case (records/clusters.py); None: each case by itself.
    """
    import numpy as np

    names = [name for name in base.names if name in new.names and _same_definition(base, new, name)]
    row_by_id = {case_id: row for row, case_id in enumerate(new.case_ids)}
    both = [
        (at, row_by_id[case_id]) for at, case_id in enumerate(base.case_ids) if case_id in row_by_id
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
    return PrimaryTable(tuple(names), case_ids, np.array(clusters, dtype=np.int64), a, b)


def _same_definition(base: PrimaryScores, new: PrimaryScores, name: str) -> bool:
    """Whether both runs mean the same by a metric; also where one of them does not say."""
    old, now = base.definitions.get(name), new.definitions.get(name)
    return old is None or now is None or old == now


def clusters_of_run(
    eval_set: Path | None, scored_with: str | None, run: str, by: str = AUTO
) -> tuple[Clustering | None, list[str]]:
    """Which cases of a run are counted together, as its eval set says; None without the file.

    ``scored_with``: the SHA-256 of the set that the run was scored with. Raises StorageError for a
    key that no case has.
    """
    if by == NONE:
        return None, []
    if eval_set is None or not eval_set.exists():
        return None, [f"{eval_set} is not there, so every case is counted by itself."]
    clustering = read_clusters(eval_set, by)
    if clustering.by == NONE or scored_with in (None, sha256_file(eval_set)):
        return clustering, []
    return clustering, [
        f"{eval_set.name} is not the set that {run} was scored with: cases are counted together by "
        "the documents of the set as it is now."
    ]

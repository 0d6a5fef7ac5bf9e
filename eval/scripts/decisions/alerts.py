"""Alerts on a primary metric's line of numbers, and the changes beside them.

A line is one metric by one definition on one eval set; ``ragmetrics/stats/control.py`` judges it.
"Worse" follows the metric's direction. ``compare_points`` compares two points case by case, where
both have the scores of their cases; that raises no alert.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from statistics import median

from decisions.committed import compare_scores
from decisions.comparison import Comparison
from decisions.history import (
    HistoryPoint,
    Key,
    MetricHistory,
    MetricValue,
    point_of,
    read_history,
)
from decisions.metric_words import moved_words
from decisions.primary import PrimaryScores, lead_of, primary_names
from decisions.same_cases import align_committed
from ragmetrics import catalogue
from ragmetrics.stats.arrays import np
from ragmetrics.stats.control import (
    ALIKE_ABOVE,
    ALIKE_FROM,
    EPSILON,
    THRESHOLD,
    ControlledPoint,
    LevelShift,
    controlled,
    lag_correlation,
    relative_drop,
)
from records.asked import asked_set, unreadable_remark
from records.clusters import AUTO, LabelsById, read_clusters
from records.errors import StorageError
from records.files import sha256_file
from records.metrics import read_metrics
from records.results import UNREADABLE
from records.run import Run
from records.runs import EVAL_SET
from records.targets import TARGETS, read_decide
from terminal.tables import plain

ALERTS = ("shift", "drop", "gone")


@dataclass(frozen=True, slots=True)
class AlertRule:
    """``primary``: the metrics, as section.metric, that alert. ``max_drop``: the plain rule,
    relative to the median of all earlier points (0.1 is 10 %), for all metrics; None: no such rule.
    """

    primary: Collection[str] = ()
    max_drop: float | None = None


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """One number. ``baseline``: the median of the earlier ones of the same definition and eval set.

    ``drop``: how much worse than it, relative to it (below 0: better). ``band``: where chance keeps
    the number. ``kinds``: the alerts that it raised.
    """

    value: float
    baseline: float | None = None
    drop: float | None = None
    band: tuple[float, float] | None = None
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """The present alert of a line. ``kind``: one of ``ALERTS``.

    ``at``: the point where it began (for gone: the last one that had the number). ``found``: the
    point that gave it away.
    """

    kind: str
    at: int
    found: int


@dataclass
class MetricCourse:
    """One metric. ``positions``: the points that have it; ``judged``: one for each of them.

    ``breaks``: points where the definition or the eval set changed; only the part after the last is
    judged. ``of_today``: the newest point was asked the set of its last value; else nothing alerts.
    ``alerts``: what is still so at its end; ``shifts``: all changes of level, also rises
    and what a later rise ended, with their points.
    """

    section: str
    metric: str
    higher_is_better: bool
    positions: list[int]
    values: list[MetricValue]
    breaks: list[int] = field(default_factory=list)
    judged: list[JudgedPoint] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    shifts: list[LevelShift] = field(default_factory=list)
    primary: bool = False
    of_today: bool = True
    resemblance: float | None = None
    """The lag-1 correlation of the values by today's definition and eval set."""

    @property
    def runs_alike(self) -> bool:
        """Whether neighbouring runs resemble each other, so that alerts come more often."""
        enough = len(self.values) - self.segment() >= ALIKE_FROM
        return enough and (self.resemblance or 0.0) > ALIKE_ABOVE

    @property
    def name(self) -> str:
        return f"{self.section}.{self.metric}"

    def segment(self) -> int:
        """Index, in ``positions``, of the first value of today's definition and eval set."""
        return self.positions.index(self.breaks[-1]) if self.breaks else 0


def chosen_keys(
    points: Sequence[HistoryPoint], globs: Sequence[str], headline: Iterable[Key]
) -> list[Key]:
    """The metrics to show, in the order of sections: those that a glob fits, else the headline.

    A glob fits ``section.metric`` or the metric's name alone. Without globs, and without any
    headline metric in the history, all.
    """
    keys = sorted({key for point in points for key in point.values})
    if globs:
        return [key for key in keys if any(_fits(key, glob) for glob in globs)]
    headline_keys = set(headline)
    return [key for key in keys if key in headline_keys] or keys


def _fits(key: Key, glob: str) -> bool:
    section, metric = key
    return fnmatchcase(f"{section}.{metric}", glob) or fnmatchcase(metric, glob)


def make_lines(
    points: Sequence[HistoryPoint], keys: Iterable[Key], rule: AlertRule
) -> list[MetricCourse]:
    """The lines of some metrics, judged."""
    sets = _eval_sets(points)
    return [_judged(_line(points, key, sets), rule, sets) for key in keys]


def _line(points: Sequence[HistoryPoint], key: Key, sets: Sequence[int]) -> MetricCourse:
    valued = [
        (position, point.values[key])
        for position, point in enumerate(points)
        if key in point.values
    ]
    breaks = [
        position
        for (then, before), (position, value) in pairwise(valued)
        if value.definition != before.definition or sets[position] != sets[then]
    ]
    metric = catalogue.BY_DEFINITION.get(valued[-1][1].definition)
    direction = metric is None or metric.higher_is_better
    positions, values = [position for position, _ in valued], [value for _, value in valued]
    return MetricCourse(*key, direction, positions, values, breaks)


def _eval_sets(points: Sequence[HistoryPoint]) -> list[int]:
    """For each point the number of changes of the eval set before it; what is not told is none."""
    last_set: str | None = None
    numbers: list[int] = []
    for point in points:
        changed = None not in (last_set, point.eval_set) and last_set != point.eval_set
        numbers.append((numbers[-1] if numbers else 0) + changed)
        last_set = point.eval_set or last_set
    return numbers


def _judged(line: MetricCourse, rule: AlertRule, sets: Sequence[int]) -> MetricCourse:
    """Judge today's part of a line; what is not primary gets its band and no alert.

    ``sets``: of every point, as ``_eval_sets`` numbers them. Another eval set may have no labels
    for a metric, and may be asked of another bot: a line that ends on an earlier set never alerts.
    """
    start = line.segment()
    positions, values = line.positions[start:], line.values[start:]
    means = [value.mean for value in values]
    line.primary, line.resemblance = line.name in rule.primary, lag_correlation(means)

    controls, shifts = controlled(
        means,
        higher_is_better=line.higher_is_better,
        spreads=[_least_spread(value) for value in values],
        threshold=THRESHOLD,
    )
    shifts = shifts if line.primary else []
    line.shifts = [
        LevelShift(shift.better, positions[shift.found], positions[shift.began]) for shift in shifts
    ]
    today = _points(means, controls, shifts, line.higher_is_better, rule.max_drop)
    line.judged = [JudgedPoint(value.mean) for value in line.values[:start]] + today
    newest, had = len(sets) - 1, line.positions[-1]
    line.of_today = sets[had] == sets[newest]
    if not line.of_today:
        return line
    if line.shifts and not line.shifts[-1].better:
        last = line.shifts[-1]
        line.alerts.append(Alert("shift", last.began, last.found))
    if (first := _since("drop" in point.kinds for point in today)) is not None:
        line.alerts.append(Alert("drop", positions[first], positions[-1]))
    if had != newest and line.primary:
        line.alerts.append(Alert("gone", had, newest))
    return line


def _least_spread(value: MetricValue) -> float:
    """What one case moves, for a metric in which a case scores 0 or 1; 0 for others."""
    metric = catalogue.BY_DEFINITION.get(value.definition)
    return 1 / value.n if metric is not None and metric.binary and value.n else 0.0


def _points(
    means: Sequence[float],
    controls: Sequence[ControlledPoint],
    shifts: Iterable[LevelShift],
    higher_is_better: bool,
    max_drop: float | None,
) -> list[JudgedPoint]:
    """Each value with its band, the median before it, and the alerts that it raised."""
    shifted = {shift.found for shift in shifts if not shift.better}
    points = []
    for place, (value, control) in enumerate(zip(means, controls, strict=True)):
        baseline = median(means[:place]) if place else None
        drop = None if baseline is None else relative_drop(baseline, value, higher_is_better)
        fell = max_drop is not None and drop is not None and drop > max_drop + EPSILON
        raised = (*(("shift",) if place in shifted else ()), *(("drop",) if fell else ()))
        points.append(JudgedPoint(value, baseline, drop, control.band, raised))
    return points


def _since(flags: Iterable[bool]) -> int | None:
    """Where the unbroken run of True that ends the line began; None when it ends with False."""
    start = None
    for index, flag in enumerate(flags):
        start = (index if start is None else start) if flag else None
    return start


@dataclass(frozen=True, slots=True)
class HistoryBreak:
    """At ``place`` something changed that makes numbers before and after unlike. ``what`` says."""

    position: int
    text: str


def changes(points: Sequence[HistoryPoint], lines: Sequence[MetricCourse]) -> list[HistoryBreak]:
    """New definitions, another eval set, other labels, cases, or options of a section."""
    history_changes = []
    shown = {line.section for line in lines}
    last: dict[str, str] = {}
    sets = _eval_sets(points)
    for position, point in enumerate(points):
        before = points[position - 1] if position else None
        if before and sets[position] != sets[position - 1]:
            cases = _cases(before, point)
            history_changes.append(
                HistoryBreak(position, f"the eval set changed ({cases}): new lines")
            )
        elif before and point.cases != before.cases:
            history_changes.append(
                HistoryBreak(position, f"{_cases(before, point)} of the same eval set")
            )
        unreadable = unreadable_remark({UNREADABLE: point.unreadable})
        if unreadable and (before is None or before.unreadable != point.unreadable):
            history_changes.append(HistoryBreak(position, unreadable))
        if (
            before
            and None not in (label_hashes := {before.labels, point.labels})
            and len(label_hashes) > 1
        ):
            history_changes.append(HistoryBreak(position, "the labels changed"))
        for section, hashed in point.settings.items():
            if section in shown and last.setdefault(section, hashed) != hashed:
                history_changes.append(HistoryBreak(position, f"the options of {section} changed"))
            last[section] = hashed
    for line in lines:
        for position in line.breaks:
            at = line.positions.index(position)
            then, now = line.values[at - 1].definition, line.values[at].definition
            if then != now:
                text = (
                    f"definition of {line.name} changed ({then} → {now}); a new series starts here"
                )
                history_changes.append(HistoryBreak(position, text))
    return sorted(history_changes, key=lambda change: change.position)


def _cases(before: HistoryPoint, now: HistoryPoint) -> str:
    if before.cases == now.cases:
        return f"{now.cases} cases as before"
    return f"{before.cases} → {now.cases} cases"


def compare_points(
    before: HistoryPoint,
    now: HistoryPoint,
    names: Sequence[str],
    clusters: Mapping[str, LabelsById],
    lead: str = "",
    margin: float | None = None,
) -> Comparison | None:
    """Compare two points case by case in the primary metrics ``names``, as compare_runs.py does.

    ``clusters``: by the SHA-256 of an eval set, the label of each case's cluster; cases of another
    set count one by one. ``lead``: the metric that is tested first; ``margin``: the share of a
    metric's range that does not matter. Of two versions of the set the cases that did not change
    are compared. None where these are not known, or where the two share no scores of cases by the
    same definitions.
    """
    labels = clusters.get(now.eval_set or "")
    a, b = _scores(before, names), _scores(now, names)
    other_set = None not in (before.eval_set, now.eval_set) and before.eval_set != now.eval_set
    alignment = None
    if other_set or before.labels != now.labels:
        sections = [{name.partition(".")[0] for name in p.scored} for p in (before, now)]
        if before.fingerprints and now.fingerprints and sections[0] == sections[1]:
            alignment = align_committed(before.fingerprints, now.fingerprints, sections[0])
    if other_set and alignment is None:
        return None
    comparison = compare_scores(a, b, labels, lead=lead, margin=margin, changes=alignment)
    if not any(row.base_cases for row in comparison.rows):
        return None
    return comparison if comparison.cases else None


def since_pinned(results_dir: Path, folder: Path, targets: Path = TARGETS) -> str:
    """The difference of a run to the pinned baseline in a sentence: ``Since the pinned baseline
    v1.2 (2026-05-01): pass −6 points.``

    "" where none is pinned, git and disk do not have it, or it is the run itself.
    """
    if not (name := read_decide(targets).pinned) or (now := point_of(folder)) is None:
        return ""
    with suppress(StorageError):
        history = read_history([results_dir])
        pinned = history.points[history.place_of(name)]
        if pinned.run_id == now.run_id:
            return ""
        names = primary_names(targets)
        history.points = [pinned, now]
        clusters = clusters_of_points(history, None, targets)
        found = compare_points(pinned, now, names, clusters, lead_of(names, targets))
        start = f"Since the pinned baseline {pinned.label}"
        start += f" ({pinned.date[:10]})" if pinned.date else ""
        if found is None:
            return f"{start}: not compared, since no one knows which cases are the same."
        parts = [
            f"{plain(row.metric, 80)} {moved_words(row)}"
            for row in found.rows
            if row.delta is not None and row.n
        ]
        return f"{start}: {', '.join(parts)}."
    return ""


def _scores(point: HistoryPoint, names: Sequence[str]) -> PrimaryScores:
    """The primary scores that a point's metrics.json holds; empty where it holds none."""
    chosen = tuple(name for name in names if name in point.scored)
    columns = [point.scored.index(name) for name in chosen]
    rows = [[row[column] for column in columns] for row in point.case_scores.values()]
    return PrimaryScores(
        point.label,
        chosen,
        tuple(point.case_scores),
        np.array(rows, dtype=float).reshape(len(rows), len(chosen)),
        {
            f"{section}.{metric}": value.definition
            for (section, metric), value in point.values.items()
            if f"{section}.{metric}" in chosen
        },
        {"missing": point.missing, "asked": point.asked},
    )


def clusters_of_points(
    history: MetricHistory, eval_set: Path | None, targets: Path = TARGETS
) -> dict[str, LabelsById]:
    """The clusters of each eval set that some point was scored with, by its SHA-256. They are known
    if the score lines of a run on disk name them, or the set itself exists.

    ``eval_set``: the set to look into; None: those that the runs on disk were asked with. Where
    documents are few the set alone names the sections (``primary.clusters_of_run``).
    """
    documents, few = read_decide(targets).documents, dict[str, LabelsById]()
    points = [point for point in history.points if point.case_scores]
    needed = {point.eval_set for point in points if point.eval_set}
    sets = {eval_set} if eval_set else {EVAL_SET}
    clusters: dict[str, LabelsById] = {}
    for folder in {history.folder_of(point) for point in points}:
        with suppress(StorageError):  # the reader of the history has reported what is damaged
            sha = read_metrics(folder).get("eval_set_sha256")
            if sha in needed - {*clusters} and (clustering := Run(folder).clustering()):
                of = few if clustering.few_documents(documents) else clusters
                of[sha] = clustering.labels
            if eval_set is None:
                sets.add(asked_set(folder))
    for path in sets if needed - {*clusters} else ():
        sha = sha256_file(path) if path.exists() else ""
        if sha in needed - {*clusters}:
            clusters[sha] = read_clusters(path, AUTO, documents).labels
    return few | clusters

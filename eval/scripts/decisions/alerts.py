"""When a line of numbers calls for a look: a drop under a baseline, a point outside its band.

Pure functions of plain numbers, oldest first. "Worse" follows the metric's direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from math import inf
from statistics import fmean, median
from typing import Literal

from decisions.history import HistoryPoint, Key, MetricValue
from ragmetrics.catalogue import METRICS

Band = Literal["shewhart", "mad", "none"]

Kind = Literal["best", "previous", "median"]

KINDS: dict[str, Kind] = {"best": "best", "previous": "previous", "median": "median"}

EPSILON = 1e-9

D2 = 1.1283791670955126
"""Mean range of two normal draws in units of sigma: 2 / sqrt(pi)."""

MAD_TO_SIGMA = 1.482602218505602
"""1 / the normal's upper quartile: makes the median absolute deviation an estimate of sigma."""

SIGMAS = 3.0

FEWEST = 8
"""Earlier points without which no band is drawn: the sigma of fewer would be a guess."""

WINDOW = 30
"""Earlier points that a band looks back on."""


@dataclass(frozen=True, slots=True)
class AlertRule:
    """``baseline``: best, previous or median of the earlier points, or the place of a point that
    all later ones are held against. ``max_drop``: relative, 0.1 is 10 %."""

    baseline: Kind | int = "best"
    max_drop: float = 0.10
    band: Band = "shewhart"


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """One number. ``drop``: how much worse than the baseline, relative to it (below 0: better).

    ``band``: where chance keeps it; None without enough earlier points, or when they are all equal.
    ``baseline_at``: place of the baseline's point, None for a median.
    """

    value: float
    baseline: float | None = None
    baseline_at: int | None = None
    drop: float | None = None
    band: tuple[float, float] | None = None
    fell: bool = False
    left_band: bool = False

    @property
    def alert(self) -> bool:
        return self.fell or self.left_band


def _judge_values(
    values: Sequence[float], higher_is_better: bool, rule: AlertRule
) -> list[JudgedPoint]:
    """Each value against what came before it. One definition throughout: the caller's business.

    Values that left their band to the bad side do not enter later bands: a fall that lasts stays
    outside instead of becoming the new usual.
    """
    judged: list[JudgedPoint] = []
    usual: list[float] = []
    sign = 1.0 if higher_is_better else -1.0
    for index, value in enumerate(values):
        baseline, at = _baseline(values[:index], rule.baseline, sign, index, values)
        drop = None if baseline is None else _relative_drop(baseline, value, higher_is_better)
        band = _control_band(usual[-WINDOW:], rule.band)
        left = band is not None and (
            value < band[0] - EPSILON if higher_is_better else value > band[1] + EPSILON
        )
        fell = drop is not None and drop > rule.max_drop + EPSILON
        judged.append(JudgedPoint(value, baseline, at, drop, band, fell, left))
        if not left:
            usual.append(value)
    return judged


def _baseline(
    before: Sequence[float], kind: Kind | int, sign: float, index: int, values: Sequence[float]
) -> tuple[float | None, int | None]:
    if isinstance(kind, int):
        return (values[kind], kind) if index > kind >= 0 else (None, None)
    if not before:
        return None, None
    if kind == "previous":
        return before[-1], len(before) - 1
    if kind == "median":
        return median(before), None
    best = max(range(len(before)), key=lambda at: (sign * before[at], -at))
    return before[best], best


def _relative_drop(baseline: float, value: float, higher_is_better: bool) -> float:
    """How much worse than the baseline, in parts of its size; below 0 when better.

    A baseline of 0 has no size: any worsening of it is infinite, no change is 0.
    """
    worse = (baseline - value) * (1.0 if higher_is_better else -1.0)
    if abs(worse) <= EPSILON:
        return 0.0
    return worse / abs(baseline) if abs(baseline) > EPSILON else inf if worse > 0 else -inf


def _control_band(before: Sequence[float], kind: Band) -> tuple[float, float] | None:
    """Limits of the next value: centre ± 3 sigma of the earlier ones.

    shewhart: individuals chart; centre is the mean, sigma the mean of the ranges of neighbours,
    divided by 1.128 (Shewhart 1931; Montgomery, Statistical Quality Control, section 6.4).
    mad: centre is the median, sigma 1.4826 times the median absolute deviation (Hampel 1974);
    single strange points do not widen it. None for fewer than 8 values or a sigma of 0.
    """
    if kind == "none" or len(before) < FEWEST:
        return None
    if kind == "shewhart":
        centre = fmean(before)
        pairs = pairwise(before)
        sigma = fmean(abs(now - then) for then, now in pairs) / D2
    else:
        centre = median(before)
        sigma = MAD_TO_SIGMA * median(abs(value - centre) for value in before)
    if sigma <= EPSILON:
        return None
    return centre - SIGMAS * sigma, centre + SIGMAS * sigma


def _since(flags: Iterable[bool]) -> int | None:
    """Where the unbroken run of True that ends the line began; None when it ends with False."""
    start = None
    for index, flag in enumerate(flags):
        start = (index if start is None else start) if flag else None
    return start


def _largest_step(values: Sequence[float], higher_is_better: bool, start: int, end: int) -> int:
    """The place in start < place <= end whose step from the one before was worst."""
    sign = 1.0 if higher_is_better else -1.0
    return max(range(start + 1, end + 1), key=lambda at: sign * (values[at - 1] - values[at]))


ALERTS = ("drop", "band", "gone")

DIRECTIONS = {metric.definition: metric.higher_is_better for metric in METRICS}


@dataclass(frozen=True, slots=True)
class Alert:
    """What is wrong with a line now. ``kind``: one of ``ALERTS``.

    ``at``: the point where it went wrong and stayed so (for gone: the last one that had the
    number). ``step``: the point with the largest single step down, where that is another one.
    """

    kind: str
    at: int
    step: int | None = None


@dataclass
class MetricLine:
    """One metric. ``places``: the points that have it; ``judged``: one for each of them.

    ``breaks``: places where the definition or the eval set changed; only the part after the last is
    judged.
    """

    section: str
    metric: str
    higher_is_better: bool
    positions: list[int]
    values: list[MetricValue]
    breaks: list[int] = field(default_factory=list)
    judged: list[JudgedPoint] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.section}.{self.metric}"

    def segment(self) -> int:
        """Index, in ``places``, of the first value of today's definition and eval set."""
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
) -> list[MetricLine]:
    """The lines of some metrics, judged. ``rule.baseline`` as a number is the place of a point."""
    return [_judged(_line(points, key), rule, len(points) - 1) for key in keys]


def _line(points: Sequence[HistoryPoint], key: Key) -> MetricLine:
    valued = [
        (position, point.values[key])
        for position, point in enumerate(points)
        if key in point.values
    ]
    sets = _eval_sets(points)
    breaks = [
        position
        for (then, before), (position, value) in pairwise(valued)
        if value.definition != before.definition or sets[position] != sets[then]
    ]
    direction = DIRECTIONS.get(valued[-1][1].definition, True)
    positions, values = [position for position, _ in valued], [value for _, value in valued]
    return MetricLine(*key, direction, positions, values, breaks)


def _eval_sets(points: Sequence[HistoryPoint]) -> list[int]:
    """For each point the number of changes of the eval set before it; what is not told is none."""
    last_set: str | None = None
    numbers: list[int] = []
    for point in points:
        changed = None not in (last_set, point.eval_set) and last_set != point.eval_set
        numbers.append((numbers[-1] if numbers else 0) + changed)
        last_set = point.eval_set or last_set
    return numbers


def _judged(line: MetricLine, rule: AlertRule, newest: int) -> MetricLine:
    start = line.segment()
    means = [value.mean for value in line.values[start:]]
    if isinstance(rule.baseline, int):
        segment = line.positions[start:]
        at = segment.index(rule.baseline) if rule.baseline in segment else -1
        rule = replace(rule, baseline=at)
    line.judged = [JudgedPoint(value.mean) for value in line.values[:start]]
    today = _judge_values(means, line.higher_is_better, rule)
    line.judged += [
        judged
        if judged.baseline_at is None
        else replace(judged, baseline_at=judged.baseline_at + start)
        for judged in today
    ]
    if line.positions[-1] != newest:
        line.alerts.append(Alert("gone", line.positions[-1]))
    for kind, flags in (
        ("drop", [judged.fell for judged in today]),
        ("band", [judged.left_band or (judged.band is None and judged.fell) for judged in today]),
    ):
        if kind == "band" and not today[-1].left_band:
            continue
        if (first := _since(flags)) is not None:
            from_place = today[-1].baseline_at if kind == "drop" else None
            begin = min(from_place if from_place is not None else first - 1, first - 1)
            step = _largest_step(means, line.higher_is_better, max(begin, 0), len(means) - 1)
            at, other = line.positions[start + first], line.positions[start + step]
            line.alerts.append(Alert(kind, at, other if other != at else None))
    return line


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """At ``place`` something changed that makes numbers before and after unlike. ``what`` says."""

    position: int
    text: str


def changes(points: Sequence[HistoryPoint], lines: Sequence[MetricLine]) -> list[HistoryChange]:
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
                HistoryChange(position, f"the eval set changed ({cases}): new lines")
            )
        elif before and point.cases != before.cases:
            history_changes.append(
                HistoryChange(position, f"{_cases(before, point)} of the same eval set")
            )
        if (
            before
            and None not in (label_hashes := {before.labels, point.labels})
            and len(label_hashes) > 1
        ):
            history_changes.append(HistoryChange(position, "the labels changed"))
        for section, hashed in point.settings.items():
            if section in shown and last.setdefault(section, hashed) != hashed:
                history_changes.append(HistoryChange(position, f"the options of {section} changed"))
            last[section] = hashed
    for line in lines:
        for position in line.breaks:
            at = line.positions.index(position)
            then, now = line.values[at - 1].definition, line.values[at].definition
            if then != now:
                text = f"{line.name} has another definition ({then} → {now}): a new line"
                history_changes.append(HistoryChange(position, text))
    return sorted(history_changes, key=lambda change: change.position)


def _cases(before: HistoryPoint, now: HistoryPoint) -> str:
    if before.cases == now.cases:
        return f"{now.cases} cases as before"
    return f"{before.cases} → {now.cases} cases"

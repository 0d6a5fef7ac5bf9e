"""How the scores of one case went over the runs that have it, from the oldest run to the newest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from decisions.case_verdict import Key
from records.metrics import read_summary
from records.runs import METRICS, scored_sections, scores_file
from records.scores import find_score_line
from views.browser.model import MetricTrend, RunInfo, Trend


@dataclass
class _Point:
    """What one run says of the case: values and definitions by section and metric."""

    run_id: str
    started: str
    values: dict[tuple[str, str], float | None] = field(default_factory=dict)
    definitions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def case_trend(runs: Sequence[tuple[Path, RunInfo]], key: Key) -> Trend:
    """The scores of a case in all runs that scored it. ``runs``: from the newest to the oldest.

    What cannot be read is left out, and named in ``problems``.
    """
    problems: list[str] = []
    points = [
        point for folder, info in reversed(runs) if (point := _point(folder, info, key, problems))
    ]
    names = dict.fromkeys(name for point in points for name in point.values)
    return Trend(
        tuple((point.run_id, point.started) for point in points),
        tuple(_line(name, points) for name in sorted(names, key=lambda name: name[0])),
        tuple(problems),
    )


def _point(folder: Path, info: RunInfo, key: Key, problems: list[str]) -> _Point | None:
    point = _Point(info.run_id, info.started)
    is_scored = False
    for section in scored_sections(folder):
        try:
            line = find_score_line(scores_file(folder, section), *key)
        except OSError as error:
            problems.append(f"{info.run_id}: {section} cannot be read ({error.strerror})")
            continue
        if line is not None:
            is_scored = True
            point.values |= {(section, name): value for name, value in line.scores.items()}
    if not is_scored:
        return None
    point.definitions = _definitions(folder)
    return point


def _definitions(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """What each metric of a run was, by section; empty where metrics.json does not say it."""
    try:
        metrics = read_summary(folder / METRICS)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return {name: section.definitions for name, section in metrics.sections.items()}


def _line(name: tuple[str, str], points: Sequence[_Point]) -> MetricTrend:
    section, metric = name
    values = tuple(point.values.get(name) for point in points)
    breaks = list(_breaks(section, metric, points))
    return MetricTrend(section, metric, values, tuple(breaks))


def _breaks(section: str, metric: str, points: Sequence[_Point]) -> Iterable[int]:
    """Before which points the metric's definition became another one."""
    stem = metric.partition("@")[0]
    last = ""
    for index, point in enumerate(points):
        of_section = point.definitions.get(section, {})
        definition = of_section.get(metric) or of_section.get(stem) or ""
        if definition and last and definition != last:
            yield index
        last = definition or last

"""The history as a page (a table with sparklines, changes, alerts), CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from decisions.alerts import Alert, HistoryBreak, MetricCourse
from decisions.compare_words import COLUMNS as COMPARED_COLUMNS
from decisions.comparison import Comparison
from decisions.history import HistoryPoint, MetricHistory
from ragmetrics.stats.control import LevelShift
from records.results import SCHEMA, UNREADABLE
from terminal.page import (
    Block,
    DataColumn,
    DataTable,
    Heading,
    Page,
    Prose,
    Quoted,
    TrendColumn,
    fine_percent,
    items,
    number,
    signed,
)
from terminal.tables import counted

MOST_ROWS = 30
"""Metrics of the table: those that alert and the primary ones first."""

ALIKE = "neighbouring runs are similar: expect a false alert in a quarter of quiet months"
"""The mark of a line whose neighbouring values are correlated."""


def history_page(
    history: MetricHistory,
    lines: Sequence[MetricCourse],
    changed: Sequence[HistoryBreak],
    *,
    max_drop: float | None,
    primary: Collection[str],
) -> Page:
    """The number of alerts and the alerts; then the metrics with their trends, and the changes.

    ``primary``: the metrics that alert, in the order in which they are named.
    """
    points = history.points
    alarmed = sum(bool(line.alerts) for line in lines)
    blocks: list[Block] = [
        Prose(f"{alarmed} of {len(lines)} metrics need attention.", "bad")
        if alarmed
        else Prose("No alert.", "good"),
        *_alerts(history, lines),
        Prose(
            f"{counted(len(points), 'point')}: {points[0].title}"
            + (f" to {points[-1].title}" if len(points) > 1 else "")
        ),
    ]
    if not lines:
        return Page("", [*blocks, Prose("No metric of the history fits --metrics.")])
    today = [line for line in lines if line.of_today]
    ranked = sorted(today or lines, key=lambda line: (not line.alerts, not line.primary))
    shown = {id(line) for line in ranked[:MOST_ROWS]}
    blocks.append(_table([own for own in today or lines if id(own) in shown], len(points)))
    if len(ranked) > MOST_ROWS:
        blocks.append(Prose(f"{len(ranked) - MOST_ROWS} more metrics: --csv has all.", "quiet"))
    if today and len(today) < len(lines):
        earlier = counted(len(lines) - len(today), "metric")
        blocks.append(Prose(f"Measured on an earlier eval set only: {earlier} (--json).", "quiet"))
    asked = [at for at, point in enumerate(points) if point.eval_set != points[-1].eval_set]
    recent = [change for change in changed if not asked or change.position > asked[-1]]
    if recent:
        blocks.append(Prose(""))
    for change in recent:
        blocks.append(Prose(f"{points[change.position].label}: {change.text}.", "doubt"))
    notes = [note for line in today or lines for note in _shift_notes(line, points)]
    notes += [f"{line.name}: {ALIKE}." for line in lines if line.primary and line.runs_alike]
    if notes:
        blocks.append(Prose(""))
    blocks += map(Prose, notes)
    blocks += [Prose(""), Prose(_watched(lines, primary, max_drop), "quiet")]
    return Page("", blocks)


def _watched(
    lines: Sequence[MetricCourse], primary: Collection[str], max_drop: float | None
) -> str:
    """Which metrics can alert at all."""
    shown = {line.name for line in lines}
    watched = [name.partition(".")[2] for name in primary if name in shown]
    text = f"Primary metrics alert: {', '.join(watched)}." if watched else ""
    if not watched:
        text = "None of the primary metrics is among these, so no shift alerts. They are: "
        text += f"{', '.join(primary)}."
    if max_drop is not None:
        text += f" --drop {100 * max_drop:g} watches every metric that is shown."
    return text + " ▲ better, ▼ worse than the first point, untested."


def _shift_notes(line: MetricCourse, points: Sequence[HistoryPoint]) -> Iterator[str]:
    """The changes of level that are no alert: rises, and falls that something later ended."""
    open_ones = {alert.at for alert in line.alerts}
    for index, shift in enumerate(line.shifts):
        last = index == len(line.shifts) - 1
        title, level = points[shift.began].title, _level(line, shift)
        if shift.better:
            yield f"{line.name} is better since {title}: {level}."
        elif not last or shift.began not in open_ones:
            yield f"{line.name} dropped in run {title}, back to normal since: {level}."


def _level(line: MetricCourse, shift: LevelShift) -> str:
    """The means before and since a change, each up to the next change of level."""
    begins = [item.began for item in line.shifts]
    index = line.shifts.index(shift)
    start = line.positions[line.segment()] if not index else begins[index - 1]
    end = begins[index + 1] if index + 1 < len(begins) else line.positions[-1] + 1
    before, since = (
        [
            value.mean
            for position, value in zip(line.positions, line.values, strict=True)
            if low <= position < high
        ]
        for low, high in ((start, shift.began), (shift.began, end))
    )
    if not before or not since:  # the line restarted there: an alert of its first point
        return f"now {number(line.values[-1].mean)}"
    means = [sum(part) / len(part) for part in (before, since)]
    runs = "that run" if len(since) == 1 else f"the {len(since)} runs since"
    return f"{number(means[0])} on average before, {number(means[1])} in {runs}"


def _alerts(history: MetricHistory, lines: Sequence[MetricCourse]) -> Iterator[Block]:
    """The metrics that call for a look, under the commit where they got worse."""
    by_heading: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        name = f"{line.name} {number(line.values[-1].mean)}"
        for alert in line.alerts:
            messages = by_heading.setdefault(_heading(alert, history.points), {})
            messages.setdefault(name, []).append(_reason(line, alert, history.points))
    for head, metrics in by_heading.items():
        yield Heading(f"ALERT {head}:", tone="bad")
        yield from items((f"{name}: {'; '.join(why)}." for name, why in metrics.items()), "bad")


def _table(lines: Sequence[MetricCourse], count: int) -> DataTable[MetricCourse]:
    """A heading a section, a row a metric; the trend takes what the figures leave."""
    return DataTable(
        (
            DataColumn[MetricCourse](
                "metric", lambda line: f"{'! ' if line.alerts else '  '}{line.metric}"
            ),
            TrendColumn[MetricCourse]("trend", lambda line: (_values(line, count), line.breaks)),
            DataColumn[MetricCourse]("first", lambda line: number(_first_and_last(line)[0])),
            DataColumn[MetricCourse]("last", lambda line: number(_first_and_last(line)[1])),
            DataColumn[MetricCourse]("change", _change),
            DataColumn[MetricCourse]("lag-1", lambda line: number(line.resemblance), drop=1),
        ),
        lines,
        tone=lambda line: "bad" if line.alerts else None,
        group=lambda line: line.section,
    )


def _first_and_last(line: MetricCourse) -> tuple[float, float]:
    """The ends of what today's definition measured on today's eval set."""
    values = line.values[line.segment() :]
    return values[0].mean, values[-1].mean


def _change(line: MetricCourse) -> str:
    """From the first to the last value; the arrow says better or worse."""
    first, last = _first_and_last(line)
    better = (last > first) == line.higher_is_better
    arrow = " ·" if abs(last - first) < 5e-4 else " ▲" if better else " ▼"
    return f"{signed(last - first)}{arrow}"


def _values(line: MetricCourse, count: int) -> list[float | None]:
    """One value a point, None where the metric was not measured."""
    values: list[float | None] = [None] * count
    for position, value in zip(line.positions, line.values, strict=True):
        values[position] = value.mean
    return values


def _reason(line: MetricCourse, alert: Alert, points: Sequence[HistoryPoint]) -> str:
    """What is wrong with a line, without the point where it began."""
    found = line.judged[line.positions.index(alert.found)] if alert.kind != "gone" else None
    if found is None:
        return f"was {number(line.values[-1].mean)}, is no longer measured"
    if alert.kind == "drop":
        return f"{_below(found.drop, found.value, found.baseline)}, the median before"
    text = _level(line, line.shifts[-1])
    return text if alert.found == alert.at else f"{text}; found at {points[alert.found].label}"


def _below(drop: float | None, value: float, baseline: float | None) -> str:
    """``24.7 % worse than 0.810``; of 0 there is no share, so the difference itself."""
    size = number(abs(value - (baseline or 0)))
    if drop is not None and isfinite(drop):
        size = fine_percent(drop)
    return f"{size} worse than {number(baseline)}"


def _heading(alert: Alert, points: Sequence[HistoryPoint]) -> str:
    """The point that alerts have in common, and what happened there."""
    title = points[alert.at].title
    if alert.kind == "gone":
        return f"Last measured at {title}"
    return f"Worse since {title}"


POINT = ["point", "commit", "date", "subject", "path", "run_id", "eval_set_sha256"]

NUMBER = ["definition", "higher_is_better", "mean", "ci95_low", "ci95_high"]

COUNTS = ["n", "not_applicable", "failed"]

JUDGED = ["baseline", "drop", "band_low", "band_high", "alert"]

COLUMNS = [*POINT, "section", "metric", *NUMBER, *COUNTS, *JUDGED]

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters that make a spreadsheet read a text as a formula."""


def _rows(history: MetricHistory, lines: Sequence[MetricCourse]) -> Iterator[dict[str, Any]]:
    """A row for each metric at each point, in the order of metrics, then points."""
    for line in lines:
        for position, value, judged in zip(line.positions, line.values, line.judged, strict=True):
            point = history.points[position]
            low, high = value.ci95 or (None, None)
            band_low, band_high = judged.band or (None, None)
            drop = judged.drop if judged.drop is not None and isfinite(judged.drop) else None
            yield {
                "point": position,
                **_origin(point),
                "section": line.section,
                "metric": line.metric,
                "definition": value.definition,
                "higher_is_better": line.higher_is_better,
                "mean": value.mean,
                "ci95_low": low,
                "ci95_high": high,
                "n": value.n,
                "not_applicable": value.not_applicable,
                "failed": value.failed,
                "baseline": judged.baseline,
                "drop": drop,
                "band_low": band_low,
                "band_high": band_high,
                "alert": " ".join(judged.kinds),
            }


def as_csv(history: MetricHistory, lines: Sequence[MetricCourse]) -> str:
    """CSV with a header line. A text that a spreadsheet would run is led by an apostrophe."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in _rows(history, lines):
        writer.writerow({name: _harmless(value) for name, value in row.items()})
    return file.getvalue()


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        clean = "".join(char for char in value if char == "\n" or ord(char) >= 32)
        return f"'{clean}" if value.startswith(FORMULA) else clean
    return str(value).lower() if isinstance(value, bool) else value


def _origin(point: HistoryPoint) -> dict[str, str | None]:
    """Which commit and run a point is of."""
    return {
        "commit": point.sha,
        "date": point.date,
        "subject": point.subject,
        "path": point.path,
        "run_id": point.run_id,
        "eval_set_sha256": point.eval_set,
    }


def as_dict(
    history: MetricHistory, lines: Sequence[MetricCourse], changed: Sequence[HistoryBreak]
) -> dict[str, Any]:
    """Points, lines with their alerts, changes and notes. No clock time enters."""
    points = [
        {**_origin(point), "cases": point.cases, "errors": point.errors}
        | ({UNREADABLE: point.unreadable} if point.unreadable else {})
        for point in history.points
    ]
    return {
        "schema": SCHEMA,
        "kind": "history",
        "points": points,
        "metrics": [_line(history, line) for line in lines],
        "changes": [{"place": change.position, "what": change.text} for change in changed],
        "notes": history.notes,
    }


@dataclass(frozen=True, slots=True)
class NewestAgainst:
    """The newest point compared case by case with an earlier one: ``role`` names that one, "the
    point before" or "the pinned baseline". ``comparison``: None if it cannot be made."""

    role: str
    point: HistoryPoint
    comparison: Comparison | None


def differences_page(against: Sequence[NewestAgainst]) -> Iterator[Block]:
    """The verdict and the primary metrics with their differences and intervals, for each point."""
    for other in against:
        title = f"The newest against {other.role} ({other.point.label})"
        if other.comparison is None:
            yield Prose((Quoted(title), ": no scores of the same cases to compare."), "quiet")
            continue
        yield Prose("")
        yield Prose((Quoted(title), ": ", Quoted(other.comparison.says[0])))
        yield DataTable(COMPARED_COLUMNS, other.comparison.rows)


def differences_data(against: Sequence[NewestAgainst]) -> list[dict[str, Any]]:
    """The same as JSON data."""
    return [
        {
            "role": other.role,
            "commit": other.point.sha,
            "run_id": other.point.run_id,
            "says": list(other.comparison.says) if other.comparison else [],
            "rows": [row.to_dict() for row in other.comparison.rows] if other.comparison else [],
        }
        for other in against
    ]


def _line(history: MetricHistory, line: MetricCourse) -> dict[str, Any]:
    columns = ("point", "definition", *NUMBER[2:], *COUNTS, *JUDGED[:-1])
    return {
        "section": line.section,
        "metric": line.metric,
        "higher_is_better": line.higher_is_better,
        "primary": line.primary,
        "lag1_correlation": line.resemblance,
        "runs_alike": line.runs_alike,
        "values": [
            {name: row[name] for name in columns} | {"alert": row["alert"] or None}
            for row in _rows(history, [line])
        ],
        "alerts": [
            asdict(alert)
            | {
                "commit": history.points[alert.at].sha,
                "run_id": history.points[alert.at].run_id,
                "text": f"{_heading(alert, history.points)}: {line.name} "
                f"{number(line.values[-1].mean)}, {_reason(line, alert, history.points)}.",
            }
            for alert in line.alerts
        ],
        "shifts": [
            asdict(shift)
            | {
                "commit": history.points[shift.began].sha,
                "run_id": history.points[shift.began].run_id,
            }
            for shift in line.shifts
        ],
    }

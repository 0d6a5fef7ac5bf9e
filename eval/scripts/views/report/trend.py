"""The history of a run's primary metrics, as blocks of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from decisions.alerts import AlertRule, changes, make_lines
from decisions.history import read_history
from decisions.history_print import as_dict
from decisions.metric_words import catalogue_row
from terminal.page import Block, Chart, Prose, between, items, number, plain_table
from views.report.charts import TrendLine, TrendValue
from views.text import one_line

MOST_POINTS = 40
"""The newest points that are drawn; alerts rest on all of them."""


def history_blocks(folder: Path, primary: Sequence[str]) -> Iterator[Block]:
    """The history of the primary metrics in the folder of this run, newest point last.

    The same lines, bands and alerts as track_metrics.py gives them. Raises StorageError outside a
    folder with any metrics.json.
    """
    history = read_history((folder.resolve().parent,))
    points = history.points
    scored = {key for point in points for key in point.values}
    names = [(section, metric) for section, _, metric in (n.partition(".") for n in primary)]
    lines = make_lines(points, [name for name in names if name in scored], AlertRule(primary))
    whole = as_dict(history, lines, changes(points, lines))
    first = max(0, len(points) - MOST_POINTS)
    shown = points[first:]
    if len(shown) < 2:
        text = "The history has one point. Commit the run's metrics.json, or score a second run, "
        yield Prose(f"{text}to see a trend.")
    text = "Dots are committed versions and runs, oldest first, with the 95 % interval; a ring is "
    text += (
        "an alert; the shaded band is where chance keeps the number. track_metrics.py gives the "
    )
    text += "same verdicts."
    if first:
        text += f" {first:,} older points are left out of the pictures."
    drawn = [_line(line, first) for line in whole["metrics"]]
    yield Chart("trends", {"lines": drawn, "points": len(shown)}, text)
    yield from items(alert["text"] for line in whole["metrics"] for alert in line["alerts"])
    for change in whole["changes"]:
        if change["place"] >= first:
            label = one_line(points[change["place"]].label)
            yield Prose(f"At {label}: {one_line(change['what'], 300)}.", "quiet")
    yield from (Prose(one_line(note, 400), "quiet") for note in whole["notes"])
    run_id, by_point = folder.resolve().name, [{v.point: v for v in line.values} for line in drawn]
    rows = (
        [
            one_line(point.label, 60) + (" (this run)" if point.run_id == run_id else ""),
            point.date[:10],
            *(_mean(line.get(at)) for line in by_point),
        ]
        for at, point in enumerate(shown)
    )
    head = ("point", "day", *(line.metric for line in drawn))
    caption = "Primary metrics by point of the history, oldest first, with the 95 % interval"
    yield plain_table(head, rows, words=2, caption=caption, folded="The points as a table")


def _line(line: Mapping[str, Any], first: int) -> TrendLine:
    metric = catalogue_row(line["metric"])
    values = [
        TrendValue(
            value["point"] - first,
            value["mean"],
            (value["band_low"], value["band_high"]),
            value["alert"],
            _interval(value),
        )
        for value in line["values"]
        if value["point"] >= first
    ]
    words = metric.in_words(line["metric"]) if metric else ""
    span = (metric.high or 0.0) - (metric.low or 0.0) if metric else 0.0
    return TrendLine(line["metric"], words, span, values)


def _interval(value: Mapping[str, Any]) -> tuple[float, float] | None:
    low, high = value["ci95_low"], value["ci95_high"]
    return None if low is None else (low, high)


def _mean(value: TrendValue | None) -> str:
    interval = f" ({between(value.ci95)})" if value and value.ci95 else ""
    return number(value.mean if value else None) + interval

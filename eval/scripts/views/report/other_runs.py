"""The runs around a reported one: the history of its metrics, and the sweep it was asked in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from decisions.alerts import AlertRule, PointPairs, changes, clusters_of_points, make_lines
from decisions.history import read_history
from decisions.history_print import as_dict
from decisions.sweep_words import COLUMNS, ranked, sentences
from records.runs import CONFIG, read_config
from records.sweeps import read_sweep, sweep_file
from views.report.compared import catalogue_row

MOST_POINTS = 40
"""The newest points that are drawn; alerts rest on all of them."""


def trend(folder: Path, eval_set: Path, targets: Path, primary: Sequence[str]) -> dict[str, Any]:
    """The history of the primary metrics in the folder that holds this run, newest point last.

    The same lines, bands and alerts as track_metrics.py gives them. Raises StorageError outside a
    folder with any metrics.json.
    """
    history = read_history((folder.resolve().parent,))
    points = history.points
    scored = {key for point in points for key in point.values}
    names = [(section, metric) for section, _, metric in (n.partition(".") for n in primary)]
    keys = [name for name in names if name in scored]
    pairs = PointPairs(points, primary, clusters_of_points(history, eval_set))
    lines = make_lines(points, keys, AlertRule(primary), pairs)
    whole = as_dict(history, lines, changes(points, lines))
    first = max(0, len(points) - MOST_POINTS)
    run_id = folder.resolve().name
    return {
        "points": [
            {
                "label": point.label,
                "title": point.title,
                "day": point.date[:10],
                "run_id": point.run_id,
                "this": point.run_id == run_id,
            }
            for point in points[first:]
        ],
        "left_out": first,
        "lines": [_line(line, first) for line in whole["metrics"]],
        "changes": [
            {"point": change["place"] - first, "text": change["what"]}
            for change in whole["changes"]
            if change["place"] >= first
        ],
        "notes": whole["notes"],
    }


def _line(line: dict[str, Any], first: int) -> dict[str, Any]:
    metric = catalogue_row(line["metric"])
    return {
        "section": line["section"],
        "metric": line["metric"],
        "words": metric.in_words(line["metric"]) if metric else "",
        "meaning": metric.meaning if metric else "",
        "low": metric.low if metric else None,
        "high": metric.high if metric else None,
        "alerts": [alert["text"] for alert in line["alerts"]],
        "values": [
            {
                "point": value["point"] - first,
                "mean": value["mean"],
                "band": [value["band_low"], value["band_high"]],
                "alert": value["alert"],
            }
            for value in line["values"]
            if value["point"] >= first
        ],
    }


def sweep_part(folder: Path) -> dict[str, Any]:
    """Under ``sweep``: the table of a run's sweep, with the run marked; nothing for other runs.

    Raises StorageError for a damaged file.
    """
    if not (folder / CONFIG).exists():
        return {}
    pace = read_config(folder).run.get("pace")
    sweep_id = pace.get("sweep") if isinstance(pace, Mapping) else None
    if not isinstance(sweep_id, str):
        return {}
    path = sweep_file(folder.parent, sweep_id)
    if not path.exists():
        return {}
    sweep = read_sweep(path)
    rows = [
        {
            "cells": [column.cell(outcome) for column in COLUMNS],
            "run": outcome.run,
            "this": outcome.run == folder.name,
            "pareto": outcome.pareto,
            "quality": outcome.quality,
            "latency_ms": outcome.latency_p50_ms,
        }
        for outcome in ranked(sweep)
    ]
    part = {
        "sweep_id": sweep_id,
        "columns": [column.name for column in COLUMNS],
        "rows": rows,
        "says": list(sentences(sweep)),
    }
    return {"sweep": part}

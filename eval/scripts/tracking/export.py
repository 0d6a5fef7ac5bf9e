"""The history as CSV (a row a metric and point) and as JSON, from what the screen shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from storage import SCHEMA
from tables import number
from tracking.history import History
from tracking.points import Point
from tracking.series import Change, Line
from tracking.words import heading, reason

POINT = ["point", "commit", "date", "subject", "path", "run_id", "eval_set_sha256"]
NUMBER = ["definition", "higher_is_better", "mean", "ci95_low", "ci95_high"]
COUNTS = ["n", "not_applicable", "failed"]
JUDGED = ["baseline", "drop", "band_low", "band_high", "alert"]
COLUMNS = [*POINT, "section", "metric", *NUMBER, *COUNTS, *JUDGED]
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula when a text begins with it."""


def rows(history: History, lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """A row for each metric at each point, in the order of metrics, then points."""
    for line in lines:
        for place, value, judged in zip(line.places, line.values, line.judged, strict=True):
            point = history.points[place]
            low, high = value.ci95 or (None, None)
            band_low, band_high = judged.band or (None, None)
            drop = judged.drop if judged.drop is not None and isfinite(judged.drop) else None
            kinds = [*["drop"] * judged.fell, *["band"] * judged.left_band]
            yield {
                "point": place,
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
                "alert": " ".join(kinds),
            }


def as_csv(history: History, lines: Sequence[Line]) -> str:
    """CSV with a header line. A text that a spreadsheet would run is led by an apostrophe."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows(history, lines):
        writer.writerow({name: _harmless(value) for name, value in row.items()})
    return file.getvalue()


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        clean = "".join(char for char in value if char == "\n" or ord(char) >= 32)
        return f"'{clean}" if value.startswith(FORMULA) else clean
    return str(value).lower() if isinstance(value, bool) else value


def _origin(point: Point) -> dict[str, str | None]:
    """Which commit and run a point is of."""
    return {
        "commit": point.sha,
        "date": point.date,
        "subject": point.subject,
        "path": point.path,
        "run_id": point.run_id,
        "eval_set_sha256": point.eval_set,
    }


def as_dict(history: History, lines: Sequence[Line], changed: Sequence[Change]) -> dict[str, Any]:
    """Points, lines with their alerts, changes and notes. No clock time enters."""
    points = [
        {**_origin(point), "cases": point.cases, "errors": point.errors} for point in history.points
    ]
    return {
        "schema": SCHEMA,
        "kind": "history",
        "points": points,
        "metrics": [_line(history, line) for line in lines],
        "changes": [asdict(one) for one in changed],
        "notes": history.notes,
    }


def _line(history: History, line: Line) -> dict[str, Any]:
    kept = ("point", "definition", "mean", *COUNTS, *JUDGED[:-1])
    return {
        "section": line.section,
        "metric": line.metric,
        "higher_is_better": line.higher_is_better,
        "values": [
            {name: row[name] for name in kept} | {"alert": row["alert"] or None}
            for row in rows(history, [line])
        ],
        "alerts": [
            asdict(alert)
            | {
                "commit": history.points[alert.at].sha,
                "run_id": history.points[alert.at].run_id,
                "text": f"{heading(alert, history.points)}: {line.name} "
                f"{number(line.values[-1].mean)}, {reason(line, alert, history.points)}.",
            }
            for alert in line.alerts
        ],
    }

"""What the history says, in sentences; shared by the screen and the JSON."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from tables import number
from tracking.points import Point
from tracking.series import Alert, Line


def percent(drop: float) -> str:
    """A relative drop as a person reads it."""
    return f"{100 * drop:.1f} %"


def reason(line: Line, alert: Alert, points: Sequence[Point]) -> str:
    """What is wrong with a line's newest value, without the commit that it fell in."""
    judged = line.judged[-1]
    if alert.kind == "gone":
        return f"was {number(judged.value)}, is no longer measured"
    if alert.kind == "drop":
        drop = judged.drop or 0.0
        size = (
            percent(drop) if isfinite(drop) else number(abs(judged.value - (judged.baseline or 0)))
        )
        text = f"{size} worse than {_baseline(line, points)}"
    else:
        low, high = judged.band or (None, None)
        side = "under" if line.higher_is_better else "over"
        text = f"{side} its control band {number(low)} – {number(high)}"
    if alert.step is not None:
        text += f"; its largest step was {points[alert.step].title}"
    return text


def heading(alert: Alert, points: Sequence[Point]) -> str:
    """The commit that alerts have in common, and what happened there."""
    title = points[alert.at].title
    if alert.kind == "gone":
        return f"Last measured at {title}"
    return f"Worse since {title}"


def _baseline(line: Line, points: Sequence[Point]) -> str:
    judged = line.judged[-1]
    value = number(judged.baseline)
    if judged.baseline_at is None:
        return f"{value}, the median before"
    return f"{value} at {points[line.places[judged.baseline_at]].label}"

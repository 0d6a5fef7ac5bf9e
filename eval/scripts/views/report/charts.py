"""Places the marks of a chart: numbers in, coordinates out. Pure; the templates draw them.

Coordinates are SVG units, the origin at the top left. A chart is drawn 400 wide, so that its text
stays readable when a phone shrinks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from decisions.change import SIGNS, Change
from decisions.compare_words import change_of
from decisions.metric_words import catalogue_row
from terminal.page import Whisker, from_to, signed
from views.report.figures import ConfidenceBin

WIDTH = 400.0
Chart = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TrendValue:
    """A mean at a point of a history with its interval, and the band in which chance keeps it."""

    point: int
    mean: float
    band: tuple[float | None, float | None]
    alert: str | bool | None = None
    ci95: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class TrendLine:
    """A metric over the points of a history. ``span``: the size of its range."""

    metric: str
    words: str
    span: float
    values: Sequence[TrendValue]


def _round(value: float) -> float:
    return round(value, 1)


Stages = Mapping[str, Mapping[str, float]]
"""Percentiles in milliseconds, by stage."""


def ranges(stages: Stages, marks: Sequence[str], before: Stages) -> Chart:
    """A line a stage from its first to its last mark, on a logarithmic axis of milliseconds, and
    under it that of another run.

    Times below 0.01 ms are at its beginning.
    """
    least = 0.01
    values = [times[mark] for own in (stages, before) for times in own.values() for mark in marks]
    values = [max(least, value) for value in values]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    high = max(high, low + 1)
    left, right, top, row_height = 12.0, WIDTH - 16, 14.0, 52.0 if before else 38.0

    def x_of(value: float) -> float:
        share = (log10(max(least, value)) - low) / (high - low)
        return _round(left + share * (right - left))

    bottom = top + row_height * len(stages)
    rows = [
        {
            "name": name,
            "y": _round(top + row * row_height + 25.8),
            "label_y": _round(top + row * row_height + 11.4),
            "marks": [(mark, x_of(times[mark])) for mark in marks],
            "before": [x_of(before[name][mark]) for mark in marks] if name in before else [],
        }
        for row, (name, times) in enumerate(stages.items())
    ]
    ticks = [(x_of(10.0**power), _milliseconds(power)) for power in range(low, high + 1)]
    return {"width": WIDTH, "height": bottom + 24, "bottom": bottom, "rows": rows, "ticks": ticks}


def _milliseconds(power: int) -> str:
    return (
        f"{10**power:,} ms" if 0 <= power < 3 else f"{10.0**power:g} ms" if power < 0 else _s(power)
    )


def _s(power: int) -> str:
    return f"{10 ** (power - 3):,} s"


def reliability(rows: Sequence[ConfidenceBin], height: float = 330.0) -> Chart:
    """Mean confidence of each bin (across) against its share of successes (up), with intervals.

    The area of a point grows with the answers of its bin.
    """
    left, right, top, bottom = 44.0, WIDTH - 14, 12.0, height - 40
    most = max((row.n for row in rows), default=1)

    def across(value: float) -> float:
        return _round(left + value * (right - left))

    def up(value: float) -> float:
        return _round(bottom - value * (bottom - top))

    points = [
        {
            "x": across(row.confidence),
            "y": up(row.success),
            "low": up(row.ci95[0]),
            "high": up(row.ci95[1]),
            "radius": _round(3 + 6 * (row.n / most) ** 0.5),
        }
        for row in rows
    ]
    steps = (0.0, 0.25, 0.5, 0.75, 1.0)
    return {
        "width": WIDTH,
        "height": height,
        "box": (left, top, right, bottom),
        "across": [(across(step), f"{step:g}") for step in steps],
        "up": [(up(step), f"{step:g}") for step in steps],
        "points": points,
    }


def whisker(shown: Whisker, width: float = 120.0) -> Chart | None:
    """A value, its interval and its mark or the value before on their scale; None without one."""
    low, high = shown.low, shown.high
    if low is None or high is None or shown.value is None or high <= low:
        return None
    pad = 5.0

    def x_of(value: float) -> float:
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        return _round(pad + share * (width - 2 * pad))

    ends = shown.interval or (shown.value, shown.value)
    return {
        "width": width,
        "value": x_of(shown.value),
        "low": x_of(ends[0]),
        "high": x_of(ends[1]),
        "mark": None if shown.mark is None else x_of(shown.mark),
        "before": None if shown.before is None else x_of(shown.before),
        "class": {"good": "better", "bad": "worse"}.get(shown.tone or "", "same"),
    }


def changes(rows: Sequence[Change]) -> Chart | None:
    """Two pictures a primary metric: before and after on the metric's range with the target, and
    the difference around 0 with its interval and the smallest one that can be detected.

    All differences have one scale, which ends at the largest interval. None without a row that has
    both values; ratios have no picture.
    """
    drawn = [(row, shown) for row in rows if (shown := change_of(row)) is not None]
    size = max((shown.size for _, shown in drawn if shown.size <= 1), default=0.0)
    reach = ceil(size * 20 - 1e-9) / 20
    if not drawn or not reach:
        return None
    middle, half = 293.0, 95.0

    def across(value: float) -> float:
        return _round(middle + half * min(1.0, max(-1.0, value / reach)))

    lines = []
    for at, (row, shown) in enumerate(drawn):
        end = catalogue_row(row.metric)
        low, high = (end.low, end.high) if end is not None else (None, None)
        values = Whisker(None, row.new, row.target, low=low, high=high, before=row.base)
        first, last = map(across, shown.interval or (0.0, 0.0))
        inside = shown.size <= reach
        lines.append(
            {
                "metric": row.metric,
                "verdict": row.verdict,
                "sign": SIGNS.get(row.verdict, "·"),
                "numbers": f"{from_to(row.base, row.new)} ({signed(row.delta)})",
                "y": _round(18.0 + 46 * at),
                "values": whisker(values, 185.0),
                "interval": (first, last) if shown.interval and inside else None,
                "unseen": shown.unseen and (across(-shown.unseen), across(shown.unseen)),
                "change": across(shown.value or 0.0) if inside else None,
            }
        )
    ticks = [(across(value), f"{value:+g}" if value else "0") for value in (-reach, 0.0, reach)]
    height = 46.0 * len(lines) + 30
    return {"width": WIDTH, "height": height, "zero": middle, "rows": lines, "ticks": ticks}


def trend(line: TrendLine, points: int) -> Chart:
    """A metric over the history: dots joined by a line, and the band that chance keeps it in.

    The axis spans the values and bands with a tenth of room, at least a twentieth of the metric's
    range, so that small changes are seen and noise does not fill the picture.
    """
    values, height = line.values, 120.0
    means = [value.mean for value in values]
    levels = means + [
        end for value in values for end in (*value.band, *(value.ci95 or ())) if end is not None
    ]
    low, high = min(levels), max(levels)
    room = max(0.1 * (high - low), 0.025 * line.span, 1e-9)
    low, high = low - room, high + room
    left, right, top, bottom = 44.0, WIDTH - 12, 8.0, height - 18

    def across(point: int) -> float:
        return _round(left + (right - left) * (point / (points - 1) if points > 1 else 0.5))

    def up(value: float) -> float:
        return _round(bottom - (value - low) / (high - low) * (bottom - top))

    dots = [
        {"x": across(v.point), "y": up(v.mean), "alert": bool(v.alert)}
        | {"ends": v.ci95 and tuple(map(up, v.ci95))}
        for v in values
    ]
    ticks = [max(means), min(means)]
    ticks = ticks[: 1 + (up(ticks[1]) - up(ticks[0]) >= 13)]  # so that they do not overlap
    banded = [
        (v.point, least, most)
        for v in values
        if (least := v.band[0]) is not None and (most := v.band[1]) is not None
    ]
    upper = [f"{across(point)},{up(end)}" for point, _, end in banded]
    lower = [f"{across(point)},{up(end)}" for point, end, _ in reversed(banded)]
    return {
        "width": WIDTH,
        "height": height,
        "dots": dots,
        "line": " ".join(f"{dot['x']},{dot['y']}" for dot in dots),
        "band": " ".join(upper + lower) if len(banded) > 1 else "",
        "ticks": [(up(level), level) for level in ticks],
        "left": left,
        "right": right,
        "bottom": bottom,
    }

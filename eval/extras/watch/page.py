"""A look at production as one HTML file: a picture and a table of each figure by day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from extras.watch.look import Watch
from extras.watch.show import alarm_blocks, canary_verdict, limits, notes
from extras.watch.watched import WatchedFigure, as_dict, verdict
from terminal.page import Block, fine_percent, plain_table
from views.report.page import drawn_page

TEMPLATES = Path(__file__).with_name("templates")
_WIDTH, _HEIGHT = 400.0, 120.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, _WIDTH - 12, 8.0, _HEIGHT - 18
"""The picture and its axes, in units of SVG from the top left."""

_TEXT_HEIGHT = 13.0


def html_page(outcome: Watch) -> bytes:
    """The page of a look that has a reference."""
    return page_of(
        outcome.figures,
        f"{outcome.folder.resolve().name} in production",
        list(notes(outcome)),
        list(alarm_blocks(outcome)),
        canary_verdict(outcome),
    )


def page_of(
    figures: Sequence[WatchedFigure],
    title: str,
    notes: Sequence[str] = (),
    more: Sequence[Block] = (),
    last: str = "",
) -> bytes:
    """The page of watched figures: the verdict, the shares by day as pictures and as tables.

    ``notes`` come below the verdict, beside what limits the answers; then ``more`` blocks, such as
    what rose and the canaries. ``last``: another alarm, behind the verdict.
    """
    return drawn_page(
        "watch.html.j2",
        TEMPLATES,
        title=title,
        verdict=f"{verdict(figures)} {last}".strip(),
        more=more,
        figures=[
            (shown, daily(shown), _caption(shown), list(_days(shown)))
            for shown in map(as_dict, figures)
        ],
        notes=[*limits(figures), *notes],
    )


def _caption(figure: Mapping[str, Any]) -> str:
    share, limit = (fine_percent(figure["reference"][end]) for end in ("share", "limit"))
    return (
        f"Share of {figure['unit']} by day, in percent; the shaded band is from the reference, "
        f"{share}, to {limit}, an alarm when four whole weeks reach it."
    )


def _days(figure: Mapping[str, Any]) -> Iterator[Block]:
    """The shares of a figure by day as a table."""
    rows = [
        (day["day"], f"{day['bad']:,}", f"{day['n']:,}", fine_percent(day["bad"] / day["n"]))
        for day in figure["current"]["days"]
    ]
    if rows:
        head = ("day", "bad", figure["unit"], "share")
        caption = f"{figure['label']} by day"
        yield plain_table(head, rows, caption=caption, folded="The days as a table.")


def daily(figure: Mapping[str, Any]) -> dict[str, Any] | None:
    """Where the marks of a figure's picture stand: its days, and the band from the reference's
    share to the least one of four weeks that alarms. None without days. ``figure``: as `as_dict`
    has it."""
    current, reference = figure["current"], figure["reference"]
    days = current["days"]
    if not days:
        return None
    shares = [day["bad"] / day["n"] for day in days]
    ends = reference["share"], reference["limit"]
    low, high = min(*shares, *ends), max(*shares, *ends)
    room = max(0.1 * (high - low), 1e-9)
    low, high = low - room, high + room
    dates = [date.fromisoformat(day["day"]) for day in days]
    span = (dates[-1] - dates[0]).days

    def across(day: date) -> float:
        share = (day - dates[0]).days / span if span else 0.5
        return round(_LEFT + (_RIGHT - _LEFT) * share, 1)

    def up(share: float) -> float:
        return float(round(_BOTTOM - (share - low) / (high - low) * (_BOTTOM - _TOP), 1))

    dots = [
        {"x": across(day), "y": up(share), "alert": str(day) == current["sounded"]}
        for day, share in zip(dates, shares, strict=True)
    ]
    ticks = [max(shares), min(shares)]
    ticks = ticks[: 1 + (up(ticks[1]) - up(ticks[0]) >= _TEXT_HEIGHT)]  # they do not overlap
    x, y = (across(dates[0]), across(dates[-1])), tuple(map(up, ends))
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _RIGHT,
        "bottom": _BOTTOM,
        "dots": dots,
        "line": " ".join(f"{dot['x']},{dot['y']}" for dot in dots),
        "band": (x[0], y[1], round(x[1] - x[0], 1), round(y[0] - y[1], 1)) if span else None,
        "ticks": [(up(level), level) for level in ticks],
        "since": [across(day) for day in dates if str(day) == current["since"]],
        "first": days[0]["day"],
        "last": days[-1]["day"],
    }

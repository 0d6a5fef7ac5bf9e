"""A look at production as one HTML page: each figure's share by day beside its reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from decisions.watch import WatchedFigure, percent
from records.trace_index import DayCounts
from watching.figures import FIGURES, Figure, date_of
from watching.watch import Watch, in_all
from watching.watch_print import sentences

_WIDTH, _HEIGHT, _LEFT, _BELOW = 720, 120, 48, 18

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --dim: #6b6b6b; --line: #1f5fa8; --bad: #b3261e;
  --band: #8884; }
@media (prefers-color-scheme: dark) { :root { --ink: #eee; --dim: #aaa; --line: #7ab3f5;
  --bad: #f2877f; } body { background: #161616; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 780px; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.05em; margin: 1.6em 0 .2em; }
p { margin: .2em 0; } .dim { color: var(--dim); } .alarm { color: var(--bad); font-weight: 600; }
svg { width: 100%; height: auto; } text { font-size: 11px; fill: var(--dim); }
polyline { fill: none; stroke: var(--line); stroke-width: 1.5; } circle { fill: var(--line); }
.since { stroke: var(--bad); stroke-dasharray: 4 3; } .reference { stroke: var(--dim); }
.band { fill: var(--band); }
"""


def page_of(outcome: Watch) -> str:
    """The page. It loads nothing, and every text in it is escaped."""
    by_name = {figure.name: figure for figure in outcome.figures}
    alarms = ", ".join(figure.label for figure in outcome.alarms)
    verdict = f"Alarm: {alarms}" if alarms else "No alarm"
    if outcome.reference is None:
        verdict = "No reference"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(outcome.folder.name)}: {escape(verdict)}</title>",
        f"<style>{_STYLE}</style></head><body><main>",
        f"<h1>{escape(outcome.folder.name)}</h1>",
        f'<p class="{"alarm" if alarms else ""}">{escape(verdict)}</p>',
        *(section for figure in FIGURES for section in _section(outcome, figure, by_name)),
        "<h2>About these figures</h2>",
        *(f"<p>{escape(line)}</p>" for line in sentences(outcome)),
        "</main></body></html>\n",
    ]
    return "\n".join(parts)


def _section(outcome: Watch, figure: Figure, by_name: dict[str, WatchedFigure]) -> Iterator[str]:
    days = outcome.series[figure.name]
    if not days:
        return
    bad, n = in_all(days)
    against = by_name.get(figure.name)
    yield f"<h2>{escape(figure.label)}</h2>"
    yield (
        f'<p class="dim">{percent(bad / n)}: {bad:,} of {n:,} {outcome.unit}. '
        f"Bad when {escape(figure.about)}.</p>"
    )
    if against is not None:
        style = "alarm" if against.alarm else ""
        yield f'<p class="{style}">{escape(against.sentence)}</p>'
    yield _chart(figure.label, days, against)


def _chart(label: str, days: Sequence[DayCounts], figure: WatchedFigure | None) -> str:
    first, last = days[0].day, days[-1].day
    reference = figure.reference.share if figure else 0.0
    top = max([day.bad / day.n for day in days] + [reference * 1.5, 0.01])
    wide, high = _WIDTH - _LEFT - 6, _HEIGHT - _BELOW - 8

    def x(day: int) -> float:
        return _LEFT + (wide * (day - first) / (last - first) if last > first else wide / 2)

    def y(share: float) -> float:
        return 8 + high * (1 - share / top)

    points = [(x(day.day), y(day.bad / day.n), day) for day in days]
    title = escape(f"{label}, share by day")
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">']
    if figure is not None:
        parts.append(
            f'<line class="reference" x1="{_LEFT}" x2="{_WIDTH - 6}" y1="{y(reference):.1f}" '
            f'y2="{y(reference):.1f}"><title>reference {percent(reference)}</title></line>'
        )
        quarter = figure.current
        if quarter is not None and quarter.alarm and quarter.since is not None:
            at = x((quarter.since - date_of(0)).days)
            parts.append(
                f'<line class="since" x1="{at:.1f}" x2="{at:.1f}" y1="4" y2="{8 + high}">'
                f"<title>since {quarter.since}</title></line>"
            )
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b, _ in points)
    parts.append(f'<polyline points="{line}"/>')
    parts += [
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5"><title>{date_of(day.day)}: '
        f"{percent(day.bad / day.n)} ({day.bad:,} of {day.n:,})</title></circle>"
        for a, b, day in points
    ]
    parts += [
        f'<text x="2" y="14">{percent(top)}</text>',
        f'<text x="2" y="{8 + high:.0f}">0 %</text>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">{date_of(first)}</text>',
        f'<text x="{_WIDTH - 6}" y="{_HEIGHT - 4}" text-anchor="end">{date_of(last)}</text>',
        "</svg>",
    ]
    return "".join(parts)

"""A look at production on the terminal: the figures, what was counted, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decisions.watch import WatchedFigure, percent
from terminal.tables import counted, printable
from watching.figures import FIGURES, date_of
from watching.watch import Watch, in_all

if TYPE_CHECKING:
    from rich.console import Console

_NONE = "–"


def print_watch(console: Console, outcome: Watch) -> None:
    """The figures as a table, then sentences, the verdict last."""
    from rich.table import Table
    from rich.text import Text

    by_name = {figure.name: figure for figure in outcome.figures}
    table = Table(title=Text(_title(outcome)), title_justify="left")
    table.add_column("share of " + outcome.unit, overflow="fold")
    for name in ("in all", "bad / " + outcome.unit, "reference", "since", "alarm"):
        table.add_column(name, justify="right", no_wrap=True)
    for figure in FIGURES:
        bad, n = in_all(outcome.series[figure.name])
        cells = [figure.label, percent(bad / n) if n else _NONE, f"{bad:,} / {n:,}"]
        table.add_row(*(Text(cell) for cell in [*cells, *_against(by_name.get(figure.name))]))
    console.print(table)
    for line in sentences(outcome):
        console.print(Text(printable(line)), soft_wrap=True)


def _against(figure: WatchedFigure | None) -> list[str]:
    if figure is None:
        return [_NONE] * 3
    quarter = figure.current
    if quarter is None or quarter.share is None:
        return [percent(figure.reference.share), _NONE, _NONE]
    since = quarter.since.isoformat() if quarter.alarm and quarter.since else _NONE
    return [percent(figure.reference.share), percent(quarter.share), since]


def _title(outcome: Watch) -> str:
    return f"{outcome.folder.name}: {_days(outcome)}" if outcome.traces else outcome.folder.name


def _days(outcome: Watch) -> str:
    days = [day.day for series in outcome.series.values() for day in series]
    return f"{date_of(min(days))} to {date_of(max(days))} (UTC)" if days else "no day"


def sentences(outcome: Watch) -> Iterator[str]:
    """What was read, what limits the figures, and whether there is an alarm."""
    look = outcome.look
    sessions = f" in {counted(outcome.units, 'session')}" if outcome.unit == "sessions" else ""
    waiting = f", {outcome.waiting:,} waiting for their end" if outcome.waiting else ""
    yield (
        f"{counted(look.traces, 'new trace')} from {look.bytes_read / 1e6:,.1f} MB; "
        f"{counted(outcome.traces, 'trace')}{sessions} in all{waiting}."
    )
    yield from look.problems
    checked = outcome.counts.get("traces checked for claims and leaks", 0)
    yield (
        f"Checked for unsupported claims and leaks: {counted(checked, 'trace')} "
        f"(--check-share {outcome.check_share:g})."
    )
    for draw in outcome.draws:
        yield f"Drawn ({draw.kind}): {counted(draw.cases, 'case')}: {draw.paths[0]}"
        blotted = ", ".join(f"{kind} {n}" for kind, n in sorted(draw.blotted.items()))
        if blotted:
            yield f"Blotted before writing: {blotted}."
    if outcome.reference is None:
        yield (
            "No reference: name a period that is normal, such as "
            "--reference 2026-03-01..2026-03-14, and rises since then are found."
        )
        return
    yield from dict.fromkeys(note for figure in outcome.figures for note in figure.notes)
    for figure in sorted(outcome.figures, key=lambda figure: figure.alarm):
        yield figure.sentence
    names = ", ".join(figure.label for figure in outcome.alarms)
    reference = f"the reference {outcome.reference.first} to {outcome.reference.last}"
    yield f"Alarm: {names}." if names else f"No alarm: nothing rose for certain since {reference}."

"""A look at production on the terminal: the shares, what was read, the alarms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from decisions.watch import percent
from decisions.watch_print import print_watch
from terminal.tables import counted, printable
from watching.figures import FIGURES, date_of
from watching.watch import Watch, in_all

if TYPE_CHECKING:
    from rich.console import Console

_NONE = "–"

_NO_REFERENCE = (
    "No reference: name days that are normal, such as --reference 2026-03-01..2026-03-14, and what "
    "rises after them is found."
)


def show(console: Console, outcome: Watch, *, pictures: bool) -> None:
    """The shares as a table, what was read, then each figure against its reference, the verdict
    last. ``pictures``: of every figure, not of alarms alone."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(_title(outcome)), title_justify="left")
    table.add_column("bad share", overflow="fold")
    for name in ("in all", "bad", outcome.unit):
        table.add_column(name, justify="right", no_wrap=True)
    for figure in FIGURES:
        bad, n = in_all(outcome.series[figure.name])
        share = percent(bad / n) if n else _NONE
        table.add_row(*(Text(cell) for cell in (figure.label, share, f"{bad:,}", f"{n:,}")))
    console.print(table)
    for line in notes(outcome):
        console.print(Text(printable(line)), soft_wrap=True)
    if outcome.reference is None:
        console.print(Text(_NO_REFERENCE), soft_wrap=True)
    else:
        print_watch(console, outcome.figures, pictures=pictures)


def _title(outcome: Watch) -> str:
    return f"{outcome.folder.name}: {_days(outcome)}" if outcome.traces else outcome.folder.name


def _days(outcome: Watch) -> str:
    days = [day.day for series in outcome.series.values() for day in series]
    return f"{date_of(min(days))} to {date_of(max(days))} (UTC)" if days else "no day"


def notes(outcome: Watch) -> Iterator[str]:
    """What was read, checked and drawn, a sentence each."""
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

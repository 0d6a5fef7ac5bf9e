"""The verdict on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gating.comment import figures, signed
from gating.verdict import Verdict
from tables import plain

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"failed": "✗", "accepted": "!", "skipped": "–", "passed": "✓"}
STYLES = {"failed": "red", "accepted": "yellow", "skipped": "dim", "passed": "green"}
HEAD = ("check", "must be", "value", "baseline", "change", "n")


def print_verdict(console: Console, verdict: Verdict, every: bool) -> None:
    """A table of the checks (without the passed ones unless ``every``), reasons, the verdict."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    against = f" against {verdict.baseline}" if verdict.baseline else ""
    console.print(Text(plain(f"Run {verdict.run_id}{against}, gates of {verdict.gates}")))
    shown = list(verdict.checks) if every else verdict.of("failed", "accepted", "skipped")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    for place, name in enumerate(HEAD):
        table.add_column(name, justify="left" if place < 2 else "right", no_wrap=place != 1)
    for check in shown:
        value, baseline, _, n = figures(check)
        change = "" if check.delta is None else signed(check.delta)
        cells = (plain(check.name, 60), plain(check.must, 60), value, baseline, change, n)
        texts = [Text(cell) for cell in cells]
        table.add_row(MARKS[check.status], *texts, style=STYLES[check.status])
    if shown:
        console.print(table)
    for check in verdict.of("failed", "accepted", "skipped"):
        said = f"{MARKS[check.status]} {check.name}: {check.reason}"
        if check.accepted:
            said += f". Accepted: {check.accepted}"
        console.print(Text(plain(said, 2000), style=STYLES[check.status]))
    for note in verdict.caveats:
        console.print(Text(plain(note, 500), style="yellow"))
    console.print(Text(verdict.summary(), style="bold"))

"""The verdict on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gating.comment import figures, signed
from gating.verdict import Verdict
from tables import NARROWEST, plain

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"failed": "✗", "accepted": "!", "skipped": "–", "passed": "✓"}
STYLES = {"failed": "red", "accepted": "yellow", "skipped": "dim", "passed": "green"}
HEAD = ("check", "must be", "value", "baseline", "change", "n")


def print_verdict(console: Console, verdict: Verdict, every: bool) -> None:
    """The verdict, a table of the checks (without the passed ones unless ``every``), reasons and
    counts."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    against = f" against {verdict.baseline}" if verdict.baseline else ""
    word = "passed" if verdict.passed else "FAILED"
    head = f"Gate {word}: run {verdict.run_id}{against}, rules of {verdict.gates}"
    console.print(Text(plain(head), style="bold"))
    shown = list(verdict.checks) if every else verdict.of("failed", "accepted", "skipped")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for name in HEAD[:2]:  # folded on a narrow terminal: a number that is cut is a wrong one
        table.add_column(name, overflow="fold", min_width=NARROWEST)
    for name in HEAD[2:]:
        table.add_column(name, justify="right", no_wrap=True)
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

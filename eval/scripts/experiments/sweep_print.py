"""A sweep on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decisions.sweep_words import COLUMNS, cells, ranked, sentences
from records.sweeps import Sweep
from terminal.tables import print_columns, printable

if TYPE_CHECKING:
    from rich.console import Console

_DROPPABLE = ("failed", "p50 ms", "cases", "USD a call", "interval")
"""What goes first where the terminal is narrow."""


def print_sweep(console: Console, sweep: Sweep) -> None:
    """The table, then what it means, a sentence a line."""
    from rich.text import Text

    console.print(Text(f"Sweep {printable(sweep.sweep_id)}"), soft_wrap=True)
    rows = [cells(outcome) for outcome in ranked(sweep)]
    print_columns(console, COLUMNS, rows, droppable=_DROPPABLE, left=("state",))
    for line in sentences(sweep):
        console.print(Text(printable(line)), soft_wrap=True)

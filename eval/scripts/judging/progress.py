"""What is said on stderr of judging: a bar on a terminal, notes on the judge at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


def say_notes(notes: Sequence[str], quiet: bool) -> None:
    """What a reader of the verdicts should know of the judge, a line each; nothing when quiet."""
    for note in notes if not quiet else ():
        click.echo(f"Note: {note}", err=True)


@contextlib.contextmanager
def progress(console: Console, results: Path) -> Iterator[Callable[[], None]]:
    """Yields a function to call after each answer of the results file."""
    if not console.is_terminal or console.quiet or not results.exists():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    with open(results, "rb") as file:
        total = sum(1 for _ in file)
    columns = (TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TextColumn("left"), Left())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.update(task, advance=1)

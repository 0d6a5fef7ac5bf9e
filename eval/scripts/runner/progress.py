"""What is said on stderr while a run goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from runner.tally import printable
from storage import TestResult

if TYPE_CHECKING:
    from rich.console import Console

Step = Callable[[TestResult], None]


@contextlib.contextmanager
def progress(console: Console, total: int, done: int, *, verbose: bool) -> Iterator[Step]:
    """Yields a function to call with each result.

    A bar with rate, time left and errors on a terminal; elsewhere nothing but, when ``verbose``,
    a line for each error.
    """

    def tell(result: TestResult) -> None:
        if verbose and result.error is not None:
            from rich.text import Text

            error = result.error
            line = f"{result.test_case_id}: {error.kind}: {error.message} (tries: {error.attempts})"
            console.print(Text(printable(line), style="red"), soft_wrap=True)

    if not console.is_terminal or console.quiet:
        yield tell
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("asking"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("errors {task.fields[errors]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, completed=done, errors=0, rate="")
        errors = 0

        def step(result: TestResult) -> None:
            nonlocal errors
            errors += result.status == "error"
            tell(result)
            speed = bar.tasks[0].speed
            rate = f"{speed:,.1f}/s" if speed else ""
            bar.update(task, advance=1, errors=errors, rate=rate)

        yield step

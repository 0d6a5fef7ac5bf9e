"""Progress of long work: a bar on a terminal; in a log a line at most every ten seconds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

LOG_EVERY, BAR_EVERY = 10.0, 0.1
"""The least seconds between two lines of a log, and between two drawings of the bar."""


class Step(Protocol):
    """Counts more pieces of the work as done; ``failed``: how many of them did not succeed."""

    def __call__(self, pieces: int = 1, *, failed: int = 0) -> None: ...


def _uncounted(pieces: int = 1, *, failed: int = 0) -> None:
    pass


@contextlib.contextmanager
def progress(
    console: Console | None,
    doing: str,
    total: int | None,
    done: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Step]:
    """Yields a function to call after each piece of some work, such as ``asking``.

    ``total``: None where no one can know it. ``done``: pieces of an earlier start, which say
    nothing about the time left. Nothing is shown without a console, or on a quiet one.
    """
    if console is None or console.quiet:
        yield _uncounted
        return
    with _shown(console, doing, total, done) as show:
        every = BAR_EVERY if console.is_terminal else LOG_EVERY
        begun = shown = clock()
        earlier, failures = done, 0

        def step(pieces: int = 1, *, failed: int = 0) -> None:
            nonlocal done, failures, shown
            done, failures = done + pieces, failures + failed
            if (now := clock()) - shown >= every:
                shown = now
                show(done, _counts(done, total, failures, (now - begun) / max(1, done - earlier)))

        yield step


def _counts(done: int, total: int | None, failures: int, seconds_each: float) -> str:
    """``1,200 of 5,000, 3 failed, 25 s left``."""
    parts = [f"{done:,}" if total is None else f"{done:,} of {total:,}"]
    parts += [f"{failures:,} failed"] if failures else []
    if total is not None and total > done:
        left = seconds_each * (total - done)
        minutes, hours = left / 60, left / 3600
        whole = f"{minutes:.0f} min" if minutes < 90 else f"{hours:.1f} h"
        parts.append(f"{f'{left:.0f} s' if left < 90 else whole} left")
    return ", ".join(parts)


@contextlib.contextmanager
def _shown(
    console: Console, doing: str, total: int | None, done: int
) -> Iterator[Callable[[int, str], None]]:
    """Yields what shows the work done so far: its count, and that in words."""
    if not console.is_terminal:
        yield lambda done, counts: console.print(f"{doing}: {counts}", soft_wrap=True)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn(doing), BarColumn(), TextColumn("{task.fields[counts]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, completed=done, counts="")
        yield lambda done, counts: bar.update(task, completed=done, counts=counts)

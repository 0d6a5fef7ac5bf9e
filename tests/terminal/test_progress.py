"""Progress of long work in a log; on a terminal a bar."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console

from terminal.progress import progress


def shown(steps: list[tuple[float, int, int]], total: int | None, done: int = 0) -> list[str]:
    """The lines of a log. ``steps``: when each was, in seconds; its pieces; how many failed."""
    file = io.StringIO()
    times: Iterator[float] = iter([0.0, *(at for at, _, _ in steps)])
    with progress(Console(file=file), "asking", total, done, clock=lambda: next(times)) as step:
        for _, pieces, failed in steps:
            step(pieces, failed=failed)
    return file.getvalue().splitlines()


def test_a_log_has_a_line_at_most_every_ten_seconds() -> None:
    steps = [(9.9, 1, 0), (10.0, 9, 1), (19.9, 5, 0), (20.0, 5, 0), (30.0, 20, 2)]
    # 10 of 40 after 10 s: 1 s each, 30 to go; 20 after 20 s: 20 to go; then none
    assert shown(steps, 40) == [
        "asking: 10 of 40, 1 failed, 30 s left",
        "asking: 20 of 40, 1 failed, 20 s left",
        "asking: 40 of 40, 3 failed",
    ]
    assert shown(steps[:1], 40) == []


def test_the_time_left_is_of_this_start_alone() -> None:
    # 900 were there before; 100 took 600 s, so the other 1,000 take 6,000 s = 100 min = 1.7 h
    assert shown([(600.0, 100, 0)], 2000, 900) == ["asking: 1,000 of 2,000, 1.7 h left"]
    assert shown([(60.0, 10, 0)], 910 + 100, 900) == ["asking: 910 of 1,010, 10 min left"]
    assert shown([(60.0, 10, 0)], None) == ["asking: 10"]


def test_nothing_is_shown_without_a_console_or_on_a_quiet_one() -> None:
    file = io.StringIO()
    for console in (None, Console(file=file, quiet=True)):
        with progress(console, "asking", 2, clock=lambda: 1e9) as step:
            step()
    assert file.getvalue() == ""


def test_a_bar_is_gone_when_the_work_ends() -> None:
    file, times = io.StringIO(), iter([0.0, 0.2, 0.4])
    console = Console(file=file, force_terminal=True, width=60)
    with progress(console, "judging", 3, clock=lambda: next(times)) as step:
        step()
        step(failed=1)
    drawn = file.getvalue()
    assert "judging" in drawn
    assert "2 of 3, 1 failed, 0 s left" in drawn
    assert drawn.endswith("\x1b[1A\x1b[2K")

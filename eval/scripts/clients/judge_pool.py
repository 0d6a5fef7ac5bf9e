"""Many tasks to one judge, from several threads."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable

from clients.judge_cost import Totals
from clients.judge_types import Judge, JudgeTask, Verdict
from clients.pool import ask_all as ask_from_threads


def ask_all(
    judge: Judge,
    tasks: Iterable[JudgeTask],
    concurrency: int,
    stop: threading.Event,
    totals: Totals | None = None,
) -> Generator[tuple[JudgeTask, Verdict]]:
    """Each task with its verdict, as they come; tasks are taken from their iterator when needed.

    ``totals`` counts every verdict. Closing the iterator early (an interrupt does) sets ``stop``,
    which should be the judge's own too, and waits for nobody: what is in flight counts for nothing.
    """

    def ask(task: JudgeTask) -> tuple[JudgeTask, Verdict]:
        return task, judge.ask(task)

    for task, verdict in ask_from_threads(tasks, ask, concurrency, stop):
        if totals is not None:
            totals.add(verdict)
        yield task, verdict

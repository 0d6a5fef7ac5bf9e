"""A run whose cases are asked again until chance of the bot is small enough, or money is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from clients.run_plan import Ending, Job
from extras.sweep.scoring import PartScorer, part_of_run, results_so_far
from ragmetrics.stats import student
from records.cases import TestCase
from records.run import Run
from scorers.contract import ScoringJob
from terminal.tables import counted

REPEATED = "repeated"
"""Key of config.json's ``run``: why no more repeats were asked."""

_MOST = 1000


def chance_width(scores: Sequence[Sequence[float]]) -> float | None:
    """The width of the 95 % interval of the mean over these cases as far as asking again can change
    it: the cases stand, the answers are chance. A list of repeats' scores for each case, of which
    those with two or more tell; None when none does. By Student's t with the pooled freedom.
    """
    told = [own for own in scores if len(own) > 1]
    freedom = sum(len(own) - 1 for own in told)
    if not freedom:
        return None
    squares = sum(sum((x - sum(own) / len(own)) ** 2 for x in own) for own in told)
    within = squares / freedom
    variance = within * sum(1 / len(own) for own in scores if own) / sum(map(bool, scores)) ** 2
    return 2 * student.quantile(0.025, float(freedom)) * sqrt(variance)


class RepeatUntilSure:
    """Asks every case once, then again, until a metric's mean moves no more than ``width``."""

    warm_up: Sequence[Job] = ()
    open_ended = True

    def __init__(
        self,
        metric: str,
        width: float,
        max_calls: int | None,
        max_cost: float | None,
        job: ScoringJob,
    ) -> None:
        """``metric``: ``section.metric``; ``max_cost``: in USD, as the bot reports it. Raises
        StorageError for a metric that is not scored from results alone."""
        self._section, _, self._metric = metric.partition(".")
        self._width, self._max_calls, self._job = width, max_calls, job
        self._max_cost = max_cost
        self._scorer = PartScorer((metric,), job)
        self._cases: Sequence[TestCase] = ()
        self._rounds = 0
        self._said = ""

    @property
    def plan(self) -> Mapping[str, Any]:
        name = f"{self._section}.{self._metric}"
        return {
            "repeat": "auto",
            "metric": name,
            "width": self._width,
            "max_calls": self._max_calls,
            **({} if self._max_cost is None else {"max_cost": self._max_cost}),
        }

    def portions(self, cases: Sequence[TestCase]) -> Iterator[Sequence[Job]]:
        self._cases = cases
        for repeat in range(_MOST):
            yield [Job(case, repeat) for case in cases]

    def after(self, folder: Path, portion: Sequence[Job]) -> Ending | None:
        self._rounds += 1
        width = chance_width(self._scores(folder)) if self._rounds > 1 else None
        if width is not None and width <= self._width:
            return self._ending(width, f"the interval is no wider than {self._width:g}")
        calls = (self._rounds + 1) * len(self._cases)
        if self._max_calls is not None and calls > self._max_calls:
            return self._ending(width, f"another round is more than {self._max_calls:,} calls")
        if self._max_cost is not None:
            paid = sum(result.cost_usd or 0.0 for result in results_so_far(folder))
            if paid * (self._rounds + 1) / self._rounds > self._max_cost:
                reason = f"another round, after {paid:.4f} USD, is more than {self._max_cost:g} USD"
                return self._ending(width, reason)
        if self._rounds == _MOST:
            return self._ending(width, f"{_MOST:,} rounds were asked")
        return None

    def summary(self) -> str:
        """How often was asked and why no more, as a sentence."""
        return self._said

    def _ending(self, width: float | None, reason: str) -> Ending:
        known = "" if width is None else f", interval {width:.4f} wide"
        times = counted(self._rounds, "time")
        self._said = f"Each case was asked {times}{known}: {reason}."
        facts = {"repeat": self._rounds, REPEATED: {"width": width, "reason": reason}}
        return Ending("complete", facts=facts)

    def _scores(self, folder: Path) -> list[list[float]]:
        ids = {case.id for case in self._cases}
        scores: dict[str, list[float]] = {case_id: [] for case_id in ids}
        with part_of_run(folder, ids, self._job.eval_set) as part:
            self._scorer.score_whole(part)
            table = Run(part).section(self._section)
            if self._metric not in table.names:
                return []
            case_ids, values = table.case_ids(), table.values(self._metric)
            for case, repeat, value in zip(table.line_cases, table.repeats, values, strict=True):
                if value == value and repeat < self._rounds:
                    scores[case_ids[int(case)]].append(float(value))
        return list(scores.values())

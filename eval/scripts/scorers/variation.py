"""How scores vary within a run: between repeats of a case, and from the first turn to later ones.

Repeats: whether they pass, and how much scores vary; a pass over the score lines of the section,
only for runs whose cases were asked several times. Turns: what later ones lose against the first,
which describes and is in no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from math import fsum
from operator import attrgetter
from pathlib import Path
from typing import Any

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.arrays import np
from ragmetrics.stats.intervals import Interval, effective_wilson, skewed_interval
from ragmetrics.stats.repeats import PassTally, RepeatTally
from records.scores import SCORES_OF_RESULT, ScoreLine, read_whole_scores

PASS = "pass"

MOST_KS = 10
"""Largest k of pass@k."""

_FIELDS = (*SCORES_OF_RESULT, "status")


def stability(folder: Path, section: str, metrics: Sequence[Metric]) -> dict[str, Any]:
    """The ``stability`` member of a section: how far repeats of the same case agree.

    ``metrics``: by name the repeated cases ``n``, and ``within``, the variance between repeats of a
    case. With the metric ``pass`` also ``pass_at`` and ``pass_all`` by k: at least one of k passes,
    all k pass; a call that failed did not pass.
    """
    tallies = {metric.name: RepeatTally() for metric in metrics}
    passes, repeats = PassTally(), 0
    lines = read_whole_scores(folder, section, _FIELDS)
    for _, group in groupby(lines, key=attrgetter("case_id")):
        of_case = list(group)
        repeats = max(repeats, len(of_case))
        for name, tally in tallies.items():
            scores = [line.scores.get(name) for line in of_case]
            tally.add([score for score in scores if score is not None])
        passes.add(list(_passed(of_case)))
    report: dict[str, Any] = {
        "repeats": repeats,
        "metrics": {
            name: {"n": tally.repeated, "within": tally.within}
            for name, tally in tallies.items()
            if tally.repeated
        },
    }
    if PASS in tallies:
        ks = range(1, min(repeats, MOST_KS) + 1)
        report["pass_at"] = {str(k): passes.at_least_once(k) for k in ks}
        report["pass_all"] = {str(k): passes.always(k) for k in ks}
    return report


def _passed(lines: Sequence[ScoreLine]) -> Iterator[bool]:
    for line in lines:
        score = line.scores.get(PASS)
        if score is not None or line.status == "failed":
            yield score == 1


FEWEST = 6
"""Conversations (clusters of them, where they have a group) below which there is no interval."""

TOO_FEW = f"fewer than {FEWEST} conversations: no interval"


@dataclass(frozen=True)
class _Loss:
    """The mean over conversations, how many there are, and on how many clusters it rests."""

    mean: float
    conversations: int
    clusters: int
    ci95: list[float] | None
    mark: str


def turn_loss(lines: Iterable[ScoreLine], metrics: Sequence[Metric]) -> dict[str, Any]:
    """For each metric: mean over turns 2 and later minus turn 1, averaged over the conversations in
    which both are scored. Repeats of a turn are averaged first.

    Later questions are other questions, often harder ones, so it describes and proves nothing.
    Range: minus the metric's range to plus it; a metric that no such conversation scored is left
    out. ``lines``: in order, the turns of a conversation beside each other. Memory: a number for
    each conversation and metric.
    """
    names = [metric.name for metric in metrics]
    losses: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
    conversation, cluster = 0, 0
    turns: dict[int, list[ScoreLine]] = {}
    for line in lines:
        if line.conversation != conversation:
            _close(turns, cluster, losses)
            turns = {}
            conversation, cluster = line.conversation, line.cluster_number or line.conversation
        if line.conversation:
            turns.setdefault(line.turn, []).append(line)
    _close(turns, cluster, losses)
    return {
        metric.name: asdict(_summary(metric, losses[metric.name]))
        for metric in metrics
        if losses[metric.name]
    }


def _close(
    turns: dict[int, list[ScoreLine]], cluster: int, losses: dict[str, list[tuple[float, int]]]
) -> None:
    """Add what one conversation lost."""
    if len(turns) < 2:
        return
    for name, column in losses.items():
        by_turn: dict[int, float] = {}
        for turn, lines in turns.items():
            scores = [score for line in lines if (score := line.scores.get(name)) is not None]
            if scores:
                by_turn[turn] = _mean(scores)
        later = [score for turn, score in by_turn.items() if turn > 1]
        if 1 in by_turn and later:
            column.append((_mean(later) - by_turn[1], cluster))


def _summary(metric: Metric, losses: Sequence[tuple[float, int]]) -> _Loss:
    values = [loss for loss, _ in losses]
    clusters = [cluster for _, cluster in losses]
    units = len(set(clusters))
    mean = _mean(values)
    if units < FEWEST:
        return _Loss(mean, len(values), units, None, TOO_FEW)
    interval: Interval
    if metric.low is None or metric.high is None:
        interval = skewed_interval(np.array(values), None, clusters)
    else:
        reach = metric.high - metric.low
        interval = effective_wilson(np.array(values), -reach, reach, clusters)
    return _Loss(mean, len(values), units, interval.ends, interval.mark)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)

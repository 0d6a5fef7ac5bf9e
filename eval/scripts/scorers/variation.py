"""How scores vary within a run: between repeats of a case, and from the first turn to later ones.

Repeats: the worst of them, flips, and why scores vary; a pass over the score lines of the section
and the answers that they are of, only for runs whose cases were asked several times. Turns: what
later ones lose against the first, which describes and is in no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from math import fsum
from operator import attrgetter
from pathlib import Path
from typing import Any

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.arrays import np
from ragmetrics.stats.intervals import Interval, effective_wilson, skewed_interval
from ragmetrics.stats.repeats import LEVELS, PassTally, RepeatTally
from records.results import TestResult, iter_results
from records.runs import results_file
from records.scores import SCORES_OF_RESULT, ScoreLine, read_whole_scores

PASS = "pass"

MOST_KS = 10
"""Largest k of pass@k."""

_FIELDS = (*SCORES_OF_RESULT, "status", "evidence")

Signature = tuple[int, int]
"""Hashes of the passages retrieved and of the answer."""


def stability(folder: Path, section: str, metrics: Sequence[Metric]) -> dict[str, Any]:
    """The ``stability`` member of a section: how far repeats of the same case agree.

    ``worst``: mean of the worst repeat; ``flips`` (0/1 metrics): share of repeated cases whose
    score changes; ``variance``: by source, see ``_sources``. With the metric ``pass`` also
    ``pass_at`` and ``pass_all`` by k: at least one of k passes, all k pass; a call that failed did
    not pass. Memory: two numbers an answer.
    """
    signatures = {
        (result.test_case_id, result.repeat): _signature(result)
        for result in iter_results(results_file(folder))
    }
    tallies = {metric.name: RepeatTally(metric.higher_is_better) for metric in metrics}
    judges: dict[str, list[float]] = {}
    passes, repeats = PassTally(), 0
    lines = read_whole_scores(folder, section, _FIELDS)
    for _, group in groupby(lines, key=attrgetter("case_id")):
        of_case = [line for line in group if (line.case_id, line.repeat) in signatures]
        repeats = max(repeats, len(of_case))
        for name, tally in tallies.items():
            tally.add(
                [
                    (score, *signatures[line.case_id, line.repeat])
                    for line in of_case
                    if (score := line.scores.get(name)) is not None
                ]
            )
        passes.add(list(_passed(of_case)))
        for line in of_case:
            for name, variance in _opinions(line).items():
                judges.setdefault(name, []).append(variance)
    report: dict[str, Any] = {
        "repeats": repeats,
        "metrics": {
            metric.name: _of_metric(metric, tallies[metric.name], judges.get(metric.name))
            for metric in metrics
            if tallies[metric.name].repeated
        },
    }
    if PASS in tallies:
        ks = range(1, min(repeats, MOST_KS) + 1)
        report["pass_at"] = {str(k): passes.at_least_once(k) for k in ks}
        report["pass_all"] = {str(k): passes.always(k) for k in ks}
    return report


def _signature(result: TestResult) -> Signature:
    ids = tuple((c.chunk_id, c.doc_id, c.rel_path, c.heading_path) for c in result.chunks())
    return hash(ids), hash(result.answer)


def _passed(lines: Sequence[ScoreLine]) -> Iterator[bool]:
    for line in lines:
        score = line.scores.get(PASS)
        if score is not None or line.status == "failed":
            yield score == 1


def _opinions(line: ScoreLine) -> Mapping[str, float]:
    """What the judge adds to the variance of each score, where it was asked more than once."""
    evidence = line.evidence if isinstance(line.evidence, dict) else {}
    opinions = evidence.get("opinions")
    return opinions.get("variance", {}) if isinstance(opinions, dict) else {}


def _of_metric(metric: Metric, tally: RepeatTally, judge: list[float] | None) -> dict[str, Any]:
    report: dict[str, Any] = {"n": tally.repeated, "worst": tally.worst}
    if metric.binary:
        report["flips"] = tally.flips
    return report | {"variance": _sources(tally.variance(), judge)}


def _sources(parts: dict[str, float | None], judge: list[float] | None) -> dict[str, float | None]:
    """The components, with the judge's own taken out of what holds it.

    Answers that are the same get the same verdict from the cache, so the judge's part does not
    show between repeats; it is known from several opinions of the same answers alone.
    """
    sources = {**{name: parts[name] for name in LEVELS[:3]}, "judge": None, "rest": parts["rest"]}
    if judge:
        own = fsum(judge) / len(judge)
        sources["judge"] = own
        holder = next((name for name in ("answer", "retrieval") if sources[name] is not None), None)
        if holder is not None:
            sources[holder] = max(0.0, (sources[holder] or 0.0) - own)
    return sources


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

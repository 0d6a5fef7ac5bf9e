"""What the repeats of a run tell of a section: the worst of them, flips, and why scores vary.

A pass over the section's score lines and the answers that they are of, only for runs whose cases
were asked several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import fsum
from operator import attrgetter
from pathlib import Path
from typing import Any

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.repeats import LEVELS, PassTally, RepeatTally
from records.results import TestResult, iter_results
from records.runs import results_file
from records.scores import SCORES_OF_RESULT, ScoreLine, read_whole_scores

PASS = "pass"

MOST_KS = 10
"""Largest k of pass@k."""

_FIELDS = (*SCORES_OF_RESULT, "status", "evidence")

Signature = tuple[int, int]
"""Hashes of what was retrieved and of what was answered."""


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

"""The loop that every score_* script shares: load, score each case, summarise, save.

A scorer is a pure function of one case and its result; this module alone decides where it runs. It
maps over byte ranges of results.jsonl (and the matching range of the eval set), never over parsed
records, so that one process, a pool of processes or a cluster takes the same work.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import orjson

import storage
from ragmetrics.catalogue import Metric
from scorebook import NOTHING, Evidence, Outcome, Reasons, Row
from scorepart import Scored, score_range
from storage import OutOfOrderError, Problem, TestCase, TestResult, Work
from workers import worker_pool

__all__ = [
    "NOTHING",
    "Aggregator",
    "Evidence",
    "Outcome",
    "Reasons",
    "Row",
    "Scorer",
    "add_metric",
    "score_run",
]

POOL_FROM = 16 * 1024 * 1024
"""Bytes of results from which a second process pays for its own start."""
MOST_JOBS = 4
COPIED = 1 << 20
SCRATCH = ".scores."


class Scorer(Protocol):
    """One perspective. Must be picklable; ``options`` are recorded beside the numbers."""

    @property
    def section(self) -> str:
        """Name of the section in metrics.json and of the file in scores/."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """The catalogue rows of the scores, in the order of a Row's values."""

    @property
    def options(self) -> dict[str, Any]:
        """What the numbers depend on besides case and result."""

    def score(self, case: TestCase, result: TestResult) -> Outcome:
        """Scores of a result that is no error (errors never reach a scorer)."""


@runtime_checkable
class Aggregator(Protocol):
    """A scorer that also has numbers of the whole run, such as percentiles or an AUC."""

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[dict[str, Any]], seed: int
    ) -> dict[str, Any]:
        """The section with them added; ``lines`` are the score lines, in order."""


def results_of(folder: Path) -> Path:
    """results.jsonl of a run. Raises StorageError when the run is not finished."""
    results = folder / storage.RESULTS
    if not results.exists():
        raise storage.StorageError(f"{results}: no such file; finish the run (run_eval --resume).")
    return results


def score_run(
    folder: Path,
    eval_set: Path,
    scorer: Scorer,
    *,
    labels_dir: Path | None = None,
    seed: int = 0,
    jobs: int | None = None,
) -> dict[str, Any]:
    """Score every result of a run; write scores/<section>.jsonl and the section of metrics.json.

    Returns the section. Raises StorageError, with nothing written, when the run is incomplete or
    any line of the set, the labels or the results has a problem.
    """
    results = results_of(folder)
    problems: list[Problem] = []
    labels, places = storage.read_labels(labels_dir, problems.append)
    whole = Work(results, eval_set)
    scores = folder / "scores"
    with storage.scratch_folder(folder, SCRATCH) as temporary:
        one = partial(score_range, scorer=scorer, labels=labels, folder=temporary)
        parts = _score_parts(whole, one, _jobs(jobs, results, labels))
        for part in parts:
            problems.extend(part.problems)
        if labels and not problems:
            asked = set().union(*(part.ids for part in parts))
            problems.extend(storage.unknown_labels(labels, places, eval_set, asked))
        if problems:
            raise storage.StorageError.from_problems(problems)
        section = _section(parts, scorer, seed)
        header = _header(folder, eval_set, labels_dir, parts)
        _join_files([part.rows for part in parts], scores / f"{scorer.section}.jsonl")
    storage.update_metrics(folder, scorer.section, section, header)
    return section


def _section(parts: Sequence[Scored], scorer: Scorer, seed: int) -> dict[str, Any]:
    tally = parts[0].tally
    for part in parts[1:]:
        tally.merge(part.tally)
    summary = tally.summary(scorer.metrics, seed)
    section = {"options": scorer.options | {"seed": seed}} | summary
    if isinstance(scorer, Aggregator):
        return scorer.aggregate(section, _score_lines(parts), seed)
    return section


def _score_lines(parts: Sequence[Scored]) -> Iterator[dict[str, Any]]:
    for part in parts:
        with open(part.rows, "rb") as file:
            yield from map(orjson.loads, file)


def add_metric(
    section: dict[str, Any],
    metric: Metric,
    value: float | None,
    interval: tuple[float, float] | None = None,
    *,
    n: int = 0,
    not_applicable: int = 0,
    failed: int = 0,
) -> None:
    """Put a number of the whole run beside the means of a section; ``n`` cases stand behind it."""
    parts = {
        "definitions": metric.definition,
        "n": n,
        "not_applicable": not_applicable,
        "failed": failed,
        "mean": value,
        "ci95": None if interval is None else list(interval),
    }
    for name, part in parts.items():
        section[name][metric.name] = part


def _header(
    folder: Path, eval_set: Path, labels_dir: Path | None, parts: Sequence[Scored]
) -> dict[str, Any]:
    config = folder / "config.json"
    known = storage.read_config(folder) if config.exists() else storage.RunConfig(folder.name)
    results = sum((part.results for part in parts), Counter())
    return {
        "run_id": folder.resolve().name,
        "config_hash": known.config_hash,
        "eval_set_sha256": storage.sha256_file(eval_set),
        "labels_sha256": storage.labels_sha256(labels_dir),
        **storage.asked_counts(known, results),
        "cases": results.total(),
        "errors": sum(part.errors for part in parts),
    }


def _join_files(parts: Sequence[Path], target: Path) -> None:
    """Put the parts one behind the other at ``target``, which appears whole or not at all."""
    try:
        target.parent.mkdir(exist_ok=True)
        with open(parts[0], "ab") as file:
            for part in parts[1:]:
                with open(part, "rb") as more:
                    shutil.copyfileobj(more, file, COPIED)
        os.replace(parts[0], target)
    except OSError as error:
        raise storage.StorageError(f"{target}: cannot be written ({error.strerror}).") from None


def _jobs(asked: int | None, results: Path, labels: storage.Labels) -> int:
    """One process for small runs and for labelled sets (the labels would be copied to each)."""
    if asked is not None:
        return asked
    if labels or results.stat().st_size < POOL_FROM:
        return 1
    return min(MOST_JOBS, os.cpu_count() or 1)


def _share_ids(parts: Sequence[Scored], whole: Work) -> bool:
    """True when two ranges have a case id in common, which none of them could see."""
    if len({part.seed for part in parts}) == 1:
        return storage.recurs(*(part.hashes for part in parts))
    problems: list[Problem] = []
    for _ in storage.iter_cases(whole.eval_set, problems.append):
        pass
    return bool(problems)


def _score_parts(whole: Work, one: partial[Scored], jobs: int) -> list[Scored]:
    """Score the whole in one or several processes, in order.

    Whatever is unusual (a problem, another order) is done again in one process, which gives every
    message with its line number.
    """
    works = storage.split(whole, jobs) if jobs > 1 else [whole]
    if len(works) > 1:
        import numpy  # noqa: F401 - every process needs it; those that are forked have it then

        try:
            with worker_pool(len(works)) as pool:
                parts = list(pool.map(one, works))
            if not any(part.problems for part in parts) and not _share_ids(parts, whole):
                return parts
        except OutOfOrderError:
            pass
    try:
        return [one(whole)]
    except OutOfOrderError:
        return [one(whole, ordered=False)]

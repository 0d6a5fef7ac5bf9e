"""The loop that every score_* script shares: load, score each case, summarise, save.

A scorer is a pure function of one case and its result; this module alone decides where it runs. It
maps over byte ranges of results.jsonl (and the matching range of the eval set), never over parsed
records, so that one process, a pool of processes or a cluster takes the same work.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

import storage
from ragmetrics.catalogue import Metric
from ragmetrics.tally import FAILED, Slice, Tally, Value, Values, average, slices_of
from storage import OutOfOrderError, Problem, TestCase, TestResult, Work

POOL_FROM = 64 * 1024 * 1024
"""Bytes of results from which a second process pays for its own start."""
MOST_JOBS = 4
_NOTHING: Mapping[str, Any] = {}
Reasons = tuple[tuple[str, str], ...]
_CACHED_ROWS = 1 << 14


class Row(NamedTuple):
    """What a scorer says of one result: a score for each of its metrics, in their order.

    ``reasons``: (metric, why) for metrics without a score, ``*`` for all. ``evidence``: what the
    scores rest on, as JSON. ``slices``: slices that the result belongs to besides its case's.
    """

    values: Values
    reasons: Reasons = ()
    evidence: Mapping[str, Any] = _NOTHING
    slices: Sequence[Slice] = ()


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

    def score(self, case: TestCase, result: TestResult) -> Row:
        """Scores of a result that is no error (errors never reach a scorer)."""


@dataclass(slots=True)
class Scored:
    """What one range gave. ``rows`` is a temporary file of score lines."""

    tally: Tally
    rows: Path
    cases: int = 0
    errors: int = 0
    ids: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


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
    results = folder / storage.RESULTS
    if not results.exists():
        raise storage.StorageError(f"{results}: no such file; finish the run (run_eval --resume).")
    problems: list[Problem] = []
    labels, places = storage.read_labels(labels_dir, problems.append)
    whole = Work(results, eval_set)
    scores = folder / "scores"
    with tempfile.TemporaryDirectory(prefix=".scores.", dir=folder) as temporary:
        one = partial(_score_range, scorer=scorer, labels=labels, folder=Path(temporary))
        parts = _score_parts(whole, one, _jobs(jobs, results, labels))
        for part in parts:
            problems.extend(part.problems)
        if labels and not problems:
            asked = set().union(*(part.ids for part in parts))
            problems.extend(storage.unknown_labels(labels, places, eval_set, asked))
        if problems:
            raise storage.StorageError.from_problems(problems)
        section = _section(parts, scorer, seed)
        header = _header(folder, eval_set, parts)
        scores.mkdir(exist_ok=True)
        _join_files([part.rows for part in parts], scores / f"{scorer.section}.jsonl")
    storage.update_metrics(folder, scorer.section, section, header)
    return section


def _section(parts: Sequence[Scored], scorer: Scorer, seed: int) -> dict[str, Any]:
    tally = parts[0].tally
    for part in parts[1:]:
        tally.merge(part.tally)
    summary = tally.summary(scorer.metrics, seed)
    return {"options": scorer.options | {"seed": seed}} | summary


def _header(folder: Path, eval_set: Path, parts: Sequence[Scored]) -> dict[str, Any]:
    config = folder / "config.json"
    known = storage.read_config(folder) if config.exists() else storage.RunConfig(folder.name)
    return {
        "run_id": folder.resolve().name,
        "config_hash": known.config_hash,
        "eval_set_sha256": storage.sha256_file(eval_set),
        "cases": sum(part.cases for part in parts),
        "errors": sum(part.errors for part in parts),
    }


def _join_files(parts: Sequence[Path], target: Path) -> None:
    """Put the parts one behind the other at ``target``, which appears whole or not at all."""
    with open(parts[0], "ab") as file:
        for part in parts[1:]:
            with open(part, "rb") as more:
                while block := more.read(1 << 20):
                    file.write(block)
    os.replace(parts[0], target)


def _jobs(asked: int | None, results: Path, labels: storage.Labels) -> int:
    """One process for small runs and for labelled sets (the labels would be copied to each)."""
    if asked is not None:
        return asked
    if labels or results.stat().st_size < POOL_FROM:
        return 1
    return min(MOST_JOBS, os.cpu_count() or 1)


def _score_parts(whole: Work, one: partial[Scored], jobs: int) -> list[Scored]:
    """Score the whole in one or several processes, in order.

    Whatever is unusual (a problem, another order) is done again in one process, which gives every
    message with its line number.
    """
    works = storage.split(whole, jobs) if jobs > 1 else [whole]
    if len(works) > 1:
        from concurrent.futures import ProcessPoolExecutor

        try:
            with ProcessPoolExecutor(len(works)) as pool:
                parts = list(pool.map(one, works))
            if not any(part.problems for part in parts):
                return parts
        except OutOfOrderError:
            pass
    try:
        return [one(whole)]
    except OutOfOrderError:
        return [one(whole, ordered=False)]


def _score_range(
    work: Work, *, scorer: Scorer, labels: storage.Labels, folder: Path, ordered: bool = True
) -> Scored:
    """Score one range: rows to a temporary file, sums to a tally. Problems are collected."""
    tally = Tally(len(scorer.metrics))
    part = Scored(tally, folder / f"{work.start}.jsonl")
    no_score: Value = FAILED
    failed = Row((no_score,) * len(scorer.metrics))
    write_row = RowWriter(scorer.metrics)
    join = storage.join_stream if ordered else storage.join_indexed
    joined = join(work, labels, part.problems.append, storage.iter_results)
    with open(part.rows, "wb", buffering=1 << 20) as file:
        for case, results in joined:
            values = []
            for result in results:
                row = failed if result.status == "error" else scorer.score(case, result)
                part.errors += row is failed
                values.append(row.values)
                file.write(write_row(case.id, result, row))
            slices = [*slices_of(case), *row.slices]
            tally.add(values[0] if len(values) == 1 else average(values), slices)
            part.cases += 1
            if labels:
                part.ids.add(case.id)
    tally.fold()
    return part


class RowWriter:
    """Lines of scores/<section>.jsonl; the JSON of scores that recur is made once."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._names = [metric.name for metric in metrics]
        self._known: dict[tuple[Values, Reasons], bytes] = {}

    def __call__(self, case_id: str, result: TestResult, row: Row) -> bytes:
        """``{"case_id", "repeat", "status", "scores", "reasons", "evidence"}`` and a newline.

        ``status``: scored when any metric has a score, failed when the bot's call failed, else
        not_applicable. A score that is null is explained in ``reasons``.
        """
        if result.error is not None:
            row = row._replace(reasons=(("*", f"call failed: {result.error.kind}"),))
        key = (row.values, row.reasons)
        scores = self._known.get(key)
        if scores is None:
            scores = self._scores(*key)
            if len(self._known) < _CACHED_ROWS:
                self._known[key] = scores
        evidence = b',"evidence":' + orjson.dumps(row.evidence) if row.evidence else b""
        head = orjson.dumps(case_id)
        return b'{"case_id":%b,"repeat":%d,%b%b}\n' % (head, result.repeat, scores, evidence)

    def _scores(self, values: Values, reasons: Reasons) -> bytes:
        numbers = [value if isinstance(value, float) else None for value in values]
        if any(number is not None for number in numbers):
            status = "scored"
        else:
            status = "failed" if FAILED in values else "not_applicable"
        record: dict[str, Any] = {
            "status": status,
            "scores": dict(zip(self._names, numbers, strict=True)),
        }
        if reasons:
            record["reasons"] = dict(reasons)
        return orjson.dumps(record)[1:-1]

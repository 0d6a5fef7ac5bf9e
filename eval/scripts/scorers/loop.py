"""The loop that every score_* script shares: load, score each case, summarise, save."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import shutil
import signal
import threading
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, compress, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics.stats.tally import (
    FAILED,
    Facets,
    Slices,
    Tally,
    Value,
    average,
    facets_of,
    slices_of,
)
from records.asked import asked_counts
from records.cases import Labels, TestCase, iter_cases, recurs
from records.errors import Problem, StorageError
from records.files import sha256_file
from records.joining import Joined, OutOfOrderError, Work, join_indexed, join_stream, split
from records.labels import labels_sha256, read_labels, unknown_labels
from records.metrics import update_metrics
from records.results import RunConfig, TestResult
from records.runs import CONFIG, RESULTS, SCORES, read_config
from records.scores import encode_lines, encode_scores, read_own_scores
from records.scratch import scratch_folder
from scorers.contract import (
    NOTHING,
    Aggregator,
    BlockScorer,
    ScoreOutcome,
    Scorer,
    ScoreRow,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor, ProcessPoolExecutor
    from multiprocessing.connection import Connection


@contextlib.contextmanager
def _worker_pool(size: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``size`` processes. When the block is left by an exception they end at once.

    Each watches a pipe that nobody writes to and that only this process holds open at the other
    end: a kill closes it as well as an end in order, on every platform.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    reader, writer = multiprocessing.Pipe(duplex=False)
    pool = ProcessPoolExecutor(size, initializer=_watch, initargs=(reader, writer))
    try:
        yield pool
    except BaseException:
        writer.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        writer.close()
        reader.close()


def _watch(reader: Connection, writer: Connection) -> None:
    """Begin a worker: its own copy of the writing end would keep the pipe open for ever.

    Ctrl+C and a closed terminal reach all processes; the one that started them says what happens.
    """
    writer.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # how a pool ends workers when one is lost
    threading.Thread(target=_end_with, args=(reader,), daemon=True).start()


def _end_with(reader: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        reader.recv_bytes()
    os._exit(1)


POOL_FROM = 16 * 1024 * 1024
"""Bytes of results from which a second process pays for its own start."""

MOST_JOBS = 4

COPIED = 1 << 20

SCRATCH = ".scores."


def results_of(folder: Path) -> Path:
    """results.jsonl of a run. Raises StorageError when the run is not finished."""
    results = folder / RESULTS
    if not results.exists():
        raise StorageError(f"{results}: no such file; finish the run (run_eval --resume).")
    return results


def score_run(
    folder: Path,
    eval_set: Path,
    scorer: Scorer,
    *,
    labels_dir: Path | None = None,
    seed: int = 0,
    jobs: int | None = None,
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Score every result of a run; write scores/<section>.jsonl and the section of metrics.json.

    ``jobs``: ranges that the results are cut into, None for as many as pay. ``executor``: where
    they are scored, such as a cluster's that sees the same folders; None: this process, or worker
    processes of its own for several ranges. Returns the section. Raises StorageError, with nothing
    written, when the run is incomplete or any line of the set, the labels or the results has a
    problem.
    """
    results = results_of(folder)
    problems: list[Problem] = []
    labels, label_places = read_labels(labels_dir, problems.append)
    whole = Work(results, eval_set)
    scores = folder / SCORES
    with scratch_folder(folder, SCRATCH) as temporary:
        score = partial(_score_range, scorer=scorer, labels=labels, folder=temporary)
        parts = _score_parts(whole, score, _jobs(jobs, results, labels), executor)
        for part in parts:
            problems.extend(part.problems)
        if labels and not problems:
            asked = set().union(*(part.ids for part in parts))
            problems.extend(unknown_labels(labels, label_places, eval_set, asked))
        if problems:
            raise StorageError.from_problems(problems)
        section = _section(parts, scorer, seed)
        header = _header(folder, eval_set, labels_dir, parts)
        _join_files([part.rows for part in parts], scores / f"{scorer.section}.jsonl")
    update_metrics(folder, scorer.section, section, header)
    return section


def _section(parts: Sequence[ScoredRange], scorer: Scorer, seed: int) -> dict[str, Any]:
    tally = parts[0].tally
    for part in parts[1:]:
        tally.merge(part.tally)
    summary = tally.summary(scorer.metrics, seed)
    section = {"options": scorer.options | {"seed": seed}} | summary
    if isinstance(scorer, Aggregator):
        return scorer.aggregate(
            section, chain.from_iterable(read_own_scores(part.rows) for part in parts), seed
        )
    return section


def _header(
    folder: Path, eval_set: Path, labels_dir: Path | None, parts: Sequence[ScoredRange]
) -> dict[str, Any]:
    recorded = (folder / CONFIG).exists()
    config = read_config(folder) if recorded else RunConfig(folder.name)
    results = sum((part.results for part in parts), Counter())
    return {
        "run_id": folder.resolve().name,
        "config_hash": config.config_hash,
        "eval_set_sha256": sha256_file(eval_set),
        "labels_sha256": labels_sha256(labels_dir),
        **asked_counts(config, results),
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
        raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None


def _jobs(asked: int | None, results: Path, labels: Labels) -> int:
    """One process for small runs and for labelled sets (the labels would be copied to each)."""
    if asked is not None:
        return asked
    if labels or results.stat().st_size < POOL_FROM:
        return 1
    return min(MOST_JOBS, os.cpu_count() or 1)


def _share_ids(parts: Sequence[ScoredRange], whole: Work) -> bool:
    """True when two ranges have a case id in common, which none of them could see."""
    if len({part.seed for part in parts}) == 1:
        return recurs(*(part.hashes for part in parts))
    problems: list[Problem] = []
    for _ in iter_cases(whole.eval_set, problems.append):
        pass
    return bool(problems)


def _score_parts(
    whole: Work, score: partial[ScoredRange], jobs: int, executor: Executor | None
) -> list[ScoredRange]:
    """Score the whole in one range here, or in several elsewhere, in order.

    Whatever is unusual (a problem, another order) is done again in one process, which gives every
    message with its line number.
    """
    works = split(whole, jobs) if jobs > 1 else [whole]
    if len(works) > 1:
        import numpy  # noqa: F401 - every process needs it; those that are forked have it then

        try:
            with contextlib.nullcontext(executor) if executor else _worker_pool(len(works)) as pool:
                parts = list(pool.map(score, works))
            if not any(part.problems for part in parts) and not _share_ids(parts, whole):
                return parts
        except OutOfOrderError:
            pass
    try:
        return [score(whole)]
    except OutOfOrderError:
        return [score(whole, ordered=False)]


MOST_ROWS = 8192

MOST_WAITING = 1 << 18
"""Distinct rows, and cases, that are kept in memory before they are handed over to the tally."""

_CASE_ID, _REPEAT = attrgetter("id"), attrgetter("repeat")


class _ScoreLineEncoder:
    """Takes the outcomes of blocks of results, in order."""

    def __init__(self, names: Sequence[str], tally: Tally) -> None:
        self._names = names
        self._tally = tally
        self._rows: dict[int, tuple[ScoreRow, bytes]] = {}
        """By a row's identity, which no other object can take while the row stands here."""
        self._members: dict[Facets, list[int]] = defaultdict(list)
        """The rows of the cases that wait to be counted, by their identity."""
        self._waiting = 0
        self._failures: dict[str, ScoreRow] = {}

    def failure(self, result: TestResult) -> ScoreOutcome:
        """The outcome of a call that failed: no metric has a score."""
        kind = result.error.kind if result.error else "unknown"
        if kind not in self._failures:
            no_score: Value = FAILED
            reasons = (("*", f"call failed: {kind}"),)
            self._failures[kind] = ScoreRow((no_score,) * len(self._names), reasons)
        return self._failures[kind], NOTHING

    def enter(
        self,
        cases: Sequence[TestCase],
        results: Sequence[TestResult],
        outcomes: Sequence[ScoreOutcome],
    ) -> bytes:
        """Count a block and return its score lines.

        ``status``: scored when any metric has a score, failed when the bot's call failed, else
        not_applicable. A score that is null is explained in ``reasons``. Repeats of a case stand
        together and have the same case object; it is counted once, with the mean of each metric.
        """
        rows = self._rows
        for row, _ in outcomes:
            if id(row) not in rows:
                rows[id(row)] = (row, _encode(row, self._names))
        keys = [id(row) for row, _ in outcomes]
        text = encode_lines(
            map(_CASE_ID, cases),
            map(_REPEAT, results),
            [rows[key][1] for key in keys],
            [evidence for _, evidence in outcomes],
        )
        if len(set(map(id, cases))) < len(cases):
            cases, keys = self._averages(cases, [outcome[0] for outcome in outcomes])
        for facets, key in zip(map(facets_of, cases), keys, strict=True):
            self._members[facets].append(key)
        self._waiting += len(cases)
        if len(self._rows) >= MOST_ROWS or self._waiting >= MOST_WAITING:
            self.close()
        return text

    def _averages(
        self, cases: Sequence[TestCase], rows: Sequence[ScoreRow]
    ) -> tuple[list[TestCase], list[int]]:
        """Each case once, with the key of the mean of its repeats."""
        once, keys = [], []
        for _, group in groupby(zip(cases, rows, strict=True), key=lambda pair: id(pair[0])):
            pairs = list(group)
            case, row = pairs[0]
            if len(pairs) > 1:
                row = row._replace(values=average([repeat.values for _, repeat in pairs]))
                self._rows[id(row)] = (row, b"")
            once.append(case)
            keys.append(id(row))
        return once, keys

    def close(self) -> None:
        """Hand the counts over to the tally."""
        handles = {key: self._tally.new_row(row.values) for key, (row, _) in self._rows.items()}
        for facets, keys in self._members.items():
            counts: dict[Slices, dict[int, int]] = defaultdict(dict)
            for key, times in Counter(keys).items():
                counts[self._rows[key][0].slices][handles[key]] = times
            for slices, row_counts in counts.items():
                self._tally.add_counts(row_counts, slices_of(facets) + slices)
        self._tally.fold()
        self._rows.clear()
        self._members.clear()
        self._waiting = 0


def _encode(row: ScoreRow, names: Sequence[str]) -> bytes:
    """Status, scores and reasons as the middle of a JSON object."""
    values = row.values
    scores = tuple(None if value == FAILED else value for value in values)
    status = "scored"
    if scores.count(None) == len(scores):
        status = "failed" if FAILED in row.values else "not_applicable"
    return encode_scores(status, dict(zip(names, scores, strict=True)), dict(row.reasons))


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What only writing can fail with."""

ScoreAll = Callable[[Sequence[TestCase], Sequence[TestResult]], list[ScoreOutcome]]


@dataclass(slots=True)
class ScoredRange:
    """What one range gave. ``rows`` is a temporary file of score lines."""

    tally: Tally
    rows: Path
    results: Counter[int] = field(default_factory=Counter)
    """How many cases have n results, by n."""
    errors: int = 0
    ids: set[str] = field(default_factory=set)
    """Ids of the cases, when there are labels."""
    hashes: array[int] = field(default_factory=partial(array, "q"))
    """A hash of each case id; ``seed`` is another one where a process hashes otherwise."""
    seed: int = field(default_factory=partial(hash, "seed"))
    problems: list[Problem] = field(default_factory=list)


def _score_range(
    work: Work, *, scorer: Scorer, labels: Labels, folder: Path, ordered: bool = True
) -> ScoredRange:
    """Score one range: rows to a temporary file, sums to a tally. Problems are collected.

    The garbage collector rests meanwhile: records form no cycles, and looking for some among
    millions of them takes longer than the scoring. What is kept afterwards it need not look at.
    """
    gc.disable()
    try:
        return _score_joined(work, scorer, labels, folder, ordered)
    except OSError as error:
        if error.errno not in FULL:
            raise  # a scorer's own, such as that of a model's file
        where = f"{folder.parent}: the scores cannot be written ({error.strerror})"
        raise StorageError(f"{where}; make room and score again.") from None
    finally:
        gc.freeze()
        gc.enable()


def _twice(path: Path, results: Sequence[TestResult]) -> Iterator[Problem]:
    """A problem for each result whose case and repeat an earlier one of the block has."""
    for key, times in Counter((r.test_case_id, r.repeat) for r in results).items():
        if times > 1:
            message = f"{key[0]!r}, repeat {key[1]}, stands there {times} times; keep one line"
            yield Problem(str(path), None, "test_case_id", message)


def _one_by_one(
    scorer: Scorer, cases: Sequence[TestCase], results: Sequence[TestResult]
) -> list[ScoreOutcome]:
    return list(map(scorer.score, cases, results))


def _outcomes(
    score_all: ScoreAll,
    book: _ScoreLineEncoder,
    cases: Sequence[TestCase],
    results: Sequence[TestResult],
) -> list[ScoreOutcome]:
    """The outcome of each result; those that are errors do not reach the scorer."""
    sound = [result.status == "ok" for result in results]
    if all(sound):
        return score_all(cases, results)
    scored = iter(score_all(list(compress(cases, sound)), list(compress(results, sound))))
    return [
        next(scored) if is_sound else book.failure(result)
        for is_sound, result in zip(sound, results, strict=True)
    ]


def _score_joined(
    work: Work, scorer: Scorer, labels: Labels, folder: Path, ordered: bool
) -> ScoredRange:
    tally = Tally(len(scorer.metrics))
    part = ScoredRange(tally, folder / f"{work.start}.jsonl")
    book = _ScoreLineEncoder([metric.name for metric in scorer.metrics], tally)
    quick = scorer.score_all if isinstance(scorer, BlockScorer) else partial(_one_by_one, scorer)
    joined: Iterator[Joined]
    if ordered:
        joined = join_stream(work, labels, part.problems.append, part.hashes)
    else:
        joined = join_indexed(work, labels, part.problems.append)
    with open(part.rows, "wb") as file:
        for cases, results in joined:
            distinct = len(set(map(id, cases)))
            if distinct < len(results):
                part.problems.extend(_twice(work.results, results))
                part.results.update(Counter(map(id, cases)).values())
            else:
                part.results[1] += distinct
            file.write(book.enter(cases, results, _outcomes(quick, book, cases, results)))
            part.errors += sum(result.status == "error" for result in results)
            if labels:
                part.ids.update(case.id for case in cases)
    book.close()
    return part

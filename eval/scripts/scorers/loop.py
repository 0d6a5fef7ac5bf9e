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
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decisions.primary import MOST_CASES, write_primary
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
from records.asked import asked_cases, asked_counts, asked_ids, is_missing
from records.cases import Labels, TestCase, ignore, iter_cases, recurs
from records.clusters import cluster_number, clustered_by
from records.errors import Problem, StorageError
from records.files import scratch_folder, sha256_file
from records.joining import Absent, Joined, OutOfOrderError, Work, join_indexed, join_stream, split
from records.labels import labels_sha256, read_labels, unknown_labels
from records.metrics import update_metrics
from records.results import RunConfig, TestResult
from records.runs import CONFIG, SCORES, read_config, results_file
from records.scores import ScoreLine, encode_lines, encode_scores, read_own_scores
from records.shards import size_of
from scorers.contract import (
    NOTHING,
    Aggregator,
    BlockScorer,
    FailureScorer,
    ScoreOutcome,
    Scorer,
    ScoreRow,
)
from scorers.repeats import stability

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

NO_RESULT = "asked, but the run has no result"


def results_of(folder: Path) -> Path:
    """results.jsonl of a run. Raises StorageError when the run is not finished."""
    results = results_file(folder)
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
    config = read_config(folder) if (folder / CONFIG).exists() else RunConfig(folder.name)
    set_sha256 = sha256_file(eval_set)
    absent: Absent | None = None
    if isinstance(scorer, FailureScorer):
        asked_of_run = asked_cases(config, set_sha256, lambda: iter_cases(eval_set, ignore, labels))
        absent = asked_of_run.absent if asked_of_run else None
    with scratch_folder(folder, SCRATCH) as temporary:
        score = partial(_score_range, scorer=scorer, labels=labels, folder=temporary, absent=absent)
        parts = _score_parts(whole, score, _jobs(jobs, results, labels), executor)
        for part in parts:
            problems.extend(part.problems)
        if labels and not problems:
            asked = set().union(*(part.ids for part in parts))
            problems.extend(unknown_labels(labels, label_places, eval_set, asked))
        if problems:
            raise StorageError.from_problems(problems)
        section = _section(parts, scorer, seed)
        header = _header(folder, config, set_sha256, labels_dir, parts)
        _join_files([part.rows for part in parts], scores / f"{scorer.section}.jsonl")
    if max(sum((part.results for part in parts), Counter()), default=1) > 1:
        section["stability"] = stability(folder, scorer.section, scorer.metrics)
    update_metrics(folder, scorer.section, section, header)
    _update_primary(folder, eval_set, header)
    return section


def _update_primary(folder: Path, eval_set: Path, header: dict[str, Any]) -> None:
    """The primary scores of every case, of all that is scored by now, into metrics.json."""
    asked = None
    if header["missing"] and header["asked"] <= MOST_CASES:
        asked = asked_ids(read_config(folder), eval_set)
    write_primary(folder, asked, large=header["cases"] > MOST_CASES)


def _section(parts: Sequence[ScoredRange], scorer: Scorer, seed: int) -> dict[str, Any]:
    tally = parts[0].tally
    for part in parts[1:]:
        tally.merge(part.tally)
    section = {"options": scorer.options | {"seed": seed}} | tally.summary(scorer.metrics)
    section["clustered_by"] = clustered_by(tally.shared_clusters())
    if isinstance(scorer, Aggregator):
        return scorer.aggregate(section, _score_lines(parts), seed)
    return section


def _score_lines(parts: Sequence[ScoredRange]) -> Iterator[ScoreLine]:
    """The score lines in order, each with the number of its case's cluster."""
    for part in parts:
        for line, cluster in zip(read_own_scores(part.rows), part.clusters, strict=True):
            line.cluster = cluster
            yield line


def _header(
    folder: Path,
    config: RunConfig,
    set_sha256: str,
    labels_dir: Path | None,
    parts: Sequence[ScoredRange],
) -> dict[str, Any]:
    results = sum((part.results for part in parts), Counter())
    stopped = config.run.get("stopped")
    return {
        **({"stopped": stopped} if stopped else {}),
        "run_id": folder.resolve().name,
        "config_hash": config.config_hash,
        "eval_set_sha256": set_sha256,
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
    if labels or size_of(results) < POOL_FROM:
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


MOST_ROWS = 4096

MOST_WAITING = 1 << 18
"""Distinct rows, and cases, that are kept in memory before they are handed over to the tally."""

_CASE_ID, _REPEAT = attrgetter("id"), attrgetter("repeat")


class _ScoreLineEncoder:
    """Takes the outcomes of blocks of results, in order."""

    def __init__(self, names: Sequence[str], tally: Tally) -> None:
        self._names = names
        self._tally = tally
        self._rows: list[ScoreRow] = []
        self._texts: list[bytes] = []
        """The middle of a score line for each row."""
        self._number_of: dict[int, int] = {}
        """Where a row stands, by its identity, which no other object can take while it does."""
        self._facets: dict[Facets, int] = {}
        self._row_of_case, self._facets_of_case = array("i"), array("i")
        self._clusters = array("q")

    def enter(
        self,
        cases: Sequence[TestCase],
        results: Sequence[TestResult],
        outcomes: Sequence[ScoreOutcome],
        clusters: Sequence[int],
    ) -> bytes:
        """Count a block, each result with the cluster of its case, and return its score lines.

        ``status``: scored when any metric has a score, failed when the bot's call failed, else
        not_applicable. A score that is null is explained in ``reasons``. Repeats of a case stand
        together and have the same case object; it is counted once, with the mean of each metric.
        """
        number_of = self._number_of
        keys = [id(row) for row, _ in outcomes]
        for key, (row, _) in zip(keys, outcomes, strict=True):
            if key not in number_of:
                self._take(row, _encode(row, self._names))
        numbers = [number_of[key] for key in keys]
        texts = self._texts
        text = encode_lines(
            map(_CASE_ID, cases),
            map(_REPEAT, results),
            [texts[number] for number in numbers],
            [evidence for _, evidence in outcomes],
        )
        if len(set(map(id, cases))) < len(cases):
            cases, numbers = self._averages(cases, [outcome[0] for outcome in outcomes])
            clusters = list(map(cluster_number, cases))
        self._row_of_case.extend(numbers)
        self._clusters.extend(clusters)
        known = self._facets
        self._facets_of_case.extend(
            [known.setdefault(f, len(known)) for f in map(facets_of, cases)]
        )
        if len(self._rows) >= MOST_ROWS or len(self._row_of_case) >= MOST_WAITING:
            self.close()
        return text

    def _take(self, row: ScoreRow, text: bytes) -> int:
        """The number of a new row."""
        self._number_of[id(row)] = number = len(self._rows)
        self._rows.append(row)
        self._texts.append(text)
        return number

    def _averages(
        self, cases: Sequence[TestCase], rows: Sequence[ScoreRow]
    ) -> tuple[list[TestCase], list[int]]:
        """Each case once, with the number of the mean of its repeats."""
        once, numbers = [], []
        for _, group in groupby(zip(cases, rows, strict=True), key=lambda pair: id(pair[0])):
            pairs = list(group)
            case, row = pairs[0]
            number = self._number_of[id(row)]
            if len(pairs) > 1:
                values = average([repeat.values for _, repeat in pairs])
                number = self._take(row._replace(values=values), b"")
            once.append(case)
            numbers.append(number)
        return once, numbers

    def close(self) -> None:
        """Hand the cases that wait over to the tally."""
        import numpy as np

        more: dict[Slices, int] = {}
        slices_of_row = np.array(
            [more.setdefault(row.slices, len(more)) for row in self._rows], int
        )
        row_of_case = np.array(self._row_of_case)
        facets_of_case = np.array(self._facets_of_case, int)
        kinds, kind_of_case = np.unique(
            facets_of_case * len(more) + slices_of_row[row_of_case], return_inverse=True
        )
        facets, added = list(self._facets), list(more)
        self._tally.add(
            [row.values for row in self._rows],
            row_of_case,
            [slices_of(facets[kind // len(more)]) + added[kind % len(more)] for kind in kinds],
            kind_of_case,
            np.array(self._clusters),
        )
        for waiting in (self._rows, self._texts, self._number_of, self._facets):
            waiting.clear()
        for column in (self._row_of_case, self._facets_of_case, self._clusters):
            del column[:]


class _Failures:
    """The outcomes of calls that failed: no score, or what the scorer says of them."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._rows: dict[ScoreRow, ScoreRow] = {}

    def outcome(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        kind = result.error.kind if result.error else "unknown"
        reason = NO_RESULT if is_missing(result) else f"call failed: {kind}"
        if isinstance(self._scorer, FailureScorer):
            row = self._scorer.score_failed(case, reason)
        else:
            no_score: Value = FAILED
            row = ScoreRow((no_score,) * len(self._scorer.metrics), (("*", reason),), failed=True)
        return self._rows.setdefault(row, row), NOTHING


def _encode(row: ScoreRow, names: Sequence[str]) -> bytes:
    """Status, scores and reasons as the middle of a JSON object."""
    scores: Any = row.values
    failed = FAILED in scores
    if failed:
        scores = [None if value == FAILED else value for value in scores]
    status = "failed" if row.failed else "scored"
    if not row.failed and scores.count(None) == len(scores):
        status = "failed" if failed else "not_applicable"
    return encode_scores(status, dict(zip(names, scores, strict=True)), row.reasons)


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
    clusters: array[int] = field(default_factory=partial(array, "q"))
    """The number of the cluster of each line's case, for a scorer that adds numbers of the run."""
    seed: int = field(default_factory=partial(hash, "seed"))
    problems: list[Problem] = field(default_factory=list)


def _score_range(
    work: Work,
    *,
    scorer: Scorer,
    labels: Labels,
    folder: Path,
    absent: Absent | None = None,
    ordered: bool = True,
) -> ScoredRange:
    """Score one range: rows to a temporary file, sums to a tally. Problems are collected.

    The garbage collector rests meanwhile: records form no cycles, and looking for some among
    millions of them takes longer than the scoring. What is kept afterwards it need not look at.
    """
    gc.disable()
    try:
        return _score_joined(work, scorer, labels, folder, ordered, absent)
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
    failures: _Failures,
    cases: Sequence[TestCase],
    results: Sequence[TestResult],
) -> list[ScoreOutcome]:
    """The outcome of each result; those that are errors do not reach the scorer."""
    sound = [result.status == "ok" for result in results]
    if all(sound):
        return score_all(cases, results)
    scored = iter(score_all(list(compress(cases, sound)), list(compress(results, sound))))
    return [
        next(scored) if is_sound else failures.outcome(case, result)
        for is_sound, case, result in zip(sound, cases, results, strict=True)
    ]


def _score_joined(
    work: Work, scorer: Scorer, labels: Labels, folder: Path, ordered: bool, absent: Absent | None
) -> ScoredRange:
    tally = Tally(len(scorer.metrics))
    part = ScoredRange(tally, folder / f"{work.start}.jsonl")
    book = _ScoreLineEncoder([metric.name for metric in scorer.metrics], tally)
    quick = scorer.score_all if isinstance(scorer, BlockScorer) else partial(_one_by_one, scorer)
    joined: Iterator[Joined]
    if ordered:
        joined = join_stream(work, labels, part.problems.append, part.hashes, absent)
    else:
        joined = join_indexed(work, labels, part.problems.append, absent)
    failures = _Failures(scorer)
    adds_numbers = isinstance(scorer, Aggregator)
    with open(part.rows, "wb") as file:
        for cases, results in joined:
            distinct = len(set(map(id, cases)))
            if distinct == len(results) and absent is None:
                part.results[1] += distinct
            else:
                there = [not is_missing(result) for result in results]
                part.problems.extend(_twice(work.results, results))
                part.results.update(Counter(map(id, compress(cases, there))).values())
            clusters = list(map(cluster_number, cases))
            if adds_numbers:
                part.clusters.extend(clusters)
            outcomes = _outcomes(quick, failures, cases, results)
            file.write(book.enter(cases, results, outcomes, clusters))
            part.errors += sum(r.status == "error" and not is_missing(r) for r in results)
            if labels:
                part.ids.update(case.id for case in cases)
    book.close()
    return part

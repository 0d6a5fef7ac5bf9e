"""The loop that every score_* script shares: load, score each case, summarise, save."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import compress, groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from decisions.case_lines import update_case_lines
from ragmetrics import catalogue
from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.tally import (
    FAILED,
    Facets,
    Slices,
    Value,
    average,
    facets_of,
    shared_clusters,
    slices_of,
    summary,
)
from records.asked import asked_cases, asked_counts, is_missing
from records.cases import TestCase
from records.clusters import (
    cluster_number,
    clustered_by,
    conversation_number,
    label_of,
    passing_number,
)
from records.errors import Problem, StorageError, Unreachable
from records.files import scratch_folder, sha256_file
from records.fingerprints import labelled_digests
from records.labels import labels_sha256
from records.metrics import replacing_section, update_metrics
from records.profiles import forget_unmapped, maps_passages
from records.results import UNREADABLE, TestResult, is_root_failure
from records.run import Joined, Run
from records.runs import results_file, scores_file
from records.scores import (
    CALL_FAILED,
    NO_RESULT,
    Reasons,
    ScoreLine,
    encode_head,
    encode_lines,
    encode_scores,
    read_own_scores,
)
from scorers.contract import (
    NOTHING,
    Aggregator,
    Earlier,
    FailureScorer,
    ScoreOutcome,
    Scorer,
    ScoreRow,
    SparseScorer,
    TurnScorer,
)
from scorers.variation import stability, turn_loss

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

_SCRATCH = ".scores."

_NOT_READ = "the answer could not be read"

_CASE_ID, _REPEAT = attrgetter("id"), attrgetter("repeat")
_CONVERSATION = attrgetter("conversation")

ScoreAll = Callable[[Sequence[TestCase], Sequence[TestResult]], list[ScoreOutcome]]
"""Scores a block of answers; it can be sent to another process."""

Scored = tuple[list[TestCase], list[TestResult], list[ScoreOutcome]]

BlockMap = Callable[[ScoreAll, Iterator[Joined]], Iterator[Scored]]
"""Applies a function to blocks of answers, wherever that is done; the blocks stay in order."""


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
    jobs: int = 1,
    block_map: BlockMap | None = None,
    case_lines: bool = True,
) -> dict[str, Any]:
    """Score every result of a run; write scores/<section>.jsonl and the section of metrics.json.

    ``jobs``: processes that score, or ``block_map`` in their place, with the same bytes.
    ``case_lines``: as of a ScoringJob. Returns the section. Raises StorageError, with nothing
    written, when the run is incomplete or any line of the set, the labels or the results has a
    problem.
    """
    results_of(folder)
    if isinstance(scorer, TurnScorer):
        jobs, block_map = 1, None
    block_map = block_map or partial(_scored_by, jobs=jobs)
    run = Run(folder, eval_set, labels_dir, lean=jobs == 1)
    set_sha256, labels_hash = sha256_file(eval_set), labels_sha256(labels_dir, eval_set)
    cases = run.cases
    with scratch_folder(folder, _SCRATCH) as temporary:
        scored = _score(run, scorer, set_sha256, temporary / "lines.jsonl", block_map)
        if problems := run.problems + scored.problems:
            raise StorageError.from_problems(problems)
        section = _section(scored, scorer, seed)
        header = _header(run, set_sha256, labels_hash, scored)
        del cases, run
        target = scores_file(folder, scorer.section)
        with replacing_section(folder, scorer.section):
            try:
                os.replace(scored.path, target)
            except OSError as error:
                raise StorageError(f"{target}: cannot be written ({error.strerror}).") from None
            if max(scored.results, default=1) > 1:
                section["stability"] = stability(folder, scorer.section, scorer.metrics)
            update_metrics(folder, scorer.section, section, header, case_lines=case_lines)
    if case_lines:
        update_case_lines(folder, eval_set)
    return section


class _ScoredRun:
    """What is known of a run beside its score lines, which are in a temporary file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scores = _CaseScores()
        self.cases: list[TestCase] = []
        """The case of each line."""
        self.results: Counter[int] = Counter()
        """How many cases have n results, by n."""
        self.errors = 0
        self.unreadable = 0
        """Answers that could not be read."""
        self.problems: list[Problem] = []

    def take(self, path: Path, cases: Sequence[TestCase], results: Sequence[TestResult]) -> None:
        """Count the results of a block, and report those that are there twice."""
        self.cases += cases
        there = [
            case.id for case, result in zip(cases, results, strict=True) if not is_missing(result)
        ]
        self.results.update(Counter(there).values())
        if len(set(there)) < len(there):
            self.problems += _twice(path, results)
        unscored = [result for result in results if result.status != "ok"]
        self.unreadable += sum(result.status == UNREADABLE for result in unscored)
        self.errors += sum(is_root_failure(r) and not is_missing(r) for r in unscored)

    def lines(self) -> Iterator[ScoreLine]:
        """The score lines, each with the numbers of its case's cluster and conversation."""
        for line, case in zip(read_own_scores(self.path), self.cases, strict=True):
            line.cluster_number = cluster_number(line.cluster)
            line.conversation, line.turn = conversation_number(case), case.turn or 0
            yield line


def _score(
    run: Run, scorer: Scorer, set_sha256: str, path: Path, block_map: BlockMap
) -> _ScoredRun:
    """Score each answer to a line of the file, and count it."""
    scored, absent = _ScoredRun(path), None
    if isinstance(scorer, FailureScorer):
        asked = asked_cases(run.config, set_sha256, run.cases.values)
        absent = asked.absent if asked else None
    joined = run.answers(scored.problems.append, absent)
    score_all = _way_of(scorer, unmapped=not maps_passages(run.config))
    encoder = _ScoreLineEncoder(scorer, scored.scores)
    fields = catalogue.labels_of(scorer.section)
    try:
        file = open(scored.path, "wb")  # noqa: SIM115 - a scorer's own OSError is not caught
    except OSError as error:
        raise _cannot_write(run, error) from None
    with contextlib.closing(_Lines(file, run)) as lines:
        for cases, results, outcomes in block_map(score_all, joined):
            scored.take(run.results_path, cases, results)
            labelled = labelled_digests(cases, fields)
            clusters = list(map(label_of, cases))
            lines.write(encoder.enter(cases, results, outcomes, clusters, labelled))
    return scored


class _Lines:
    """Writes score lines; a full disk is named with the run's folder."""

    def __init__(self, file: IO[bytes], run: Run) -> None:
        self._file, self._run = file, run

    def write(self, text: bytes) -> None:
        try:
            self._file.write(text)
        except OSError as error:
            raise _cannot_write(self._run, error) from None

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise _cannot_write(self._run, error) from None


def _cannot_write(run: Run, error: OSError) -> StorageError:
    return StorageError(
        f"{run.folder}: the scores cannot be written ({error.strerror}); make room and score again."
    )


def _section(scored: _ScoredRun, scorer: Scorer, seed: int) -> dict[str, Any]:
    section = {"options": scorer.options | {"seed": seed}} | scored.scores.summary(scorer.metrics)
    section["clustered_by"] = clustered_by(shared_clusters(scored.scores.clusters))
    if any(map(_CONVERSATION, scored.cases)):
        section["turn_loss"] = turn_loss(scored.lines(), scorer.metrics)
    if isinstance(scorer, Aggregator):
        return scorer.aggregate(section, scored.lines(), seed)
    return section


def _header(
    run: Run, set_sha256: str, labels_hash: str | None, scored: _ScoredRun
) -> dict[str, Any]:
    stopped = run.config.run.get("stopped")
    return {
        **({"stopped": stopped} if stopped else {}),
        "run_id": run.folder.resolve().name,
        "config_hash": run.config.config_hash,
        "eval_set_sha256": set_sha256,
        "labels_sha256": labels_hash,
        **asked_counts(run.config, scored.results),
        "cases": scored.results.total(),
        "errors": scored.errors,
        UNREADABLE: scored.unreadable,
    }


def _way_of(scorer: Scorer, *, unmapped: bool) -> ScoreAll:
    """Scores a block of answers. ``unmapped``: no passages were ever read from an answer, so that
    an empty list says nothing."""
    way: ScoreAll = partial(_one_by_one, scorer)
    if isinstance(scorer, TurnScorer):
        way = _TurnByTurn(scorer)
    if unmapped:
        way = partial(_without_lists, way)
    return partial(_outcomes, way, _WithoutAnswer(scorer))


def _scored_by(score_all: ScoreAll, joined: Iterator[Joined], jobs: int) -> Iterator[Scored]:
    """Blocks with their outcomes, in order; ``jobs`` processes score them."""
    if jobs == 1:
        for cases, results in joined:
            yield cases, results, score_all(cases, results)
        return
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor  # slow to load
    from multiprocessing import Pipe, active_children

    others = active_children()
    ended, end = Pipe(duplex=False)
    with ProcessPoolExecutor(jobs, initializer=_begin, initargs=(score_all, ended, end)) as pool:
        waiting: deque[tuple[Joined, Future[list[ScoreOutcome]]]] = deque()
        try:
            for block in joined:
                waiting.append((block, pool.submit(_score_block, *block)))
                while len(waiting) > _AHEAD * jobs:
                    (cases, results), outcomes = waiting.popleft()
                    yield cases, results, outcomes.result()
            for (cases, results), outcomes in waiting:
                yield cases, results, outcomes.result()
        except BrokenExecutor:
            raise Unreachable(
                "a worker process was killed, or ran out of memory. Nothing was written: free "
                "memory, or score with --jobs 1."
            ) from None
        except BaseException:
            for process in active_children():
                if process not in others:
                    process.kill()  # it may be busy for long
            raise


_AHEAD = 4
"""Blocks of each process that are read before they are scored."""

_way: ScoreAll
"""In a worker process: scores a block."""


def _begin(score_all: ScoreAll, ended: Connection, end: Connection) -> None:
    """Begin a worker: the process that started it says what Ctrl+C means, and it ends with it.

    ``end``: held open by that process alone, so that ``ended`` can be read once it is gone.
    """
    global _way
    _way = score_all
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end.close()
    threading.Thread(target=_end_with, args=(ended,), daemon=True).start()


def _end_with(ended: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        ended.recv_bytes()
    os._exit(1)


def _score_block(cases: Sequence[TestCase], results: Sequence[TestResult]) -> list[ScoreOutcome]:
    return _way(cases, results)


class _CaseScores:
    """The scores of each case, where of equal rows one is kept."""

    def __init__(self) -> None:
        self.rows: dict[ScoreRow, int] = {}
        """Each distinct row, numbered as they come."""
        self.row_of_case, self.clusters = array("i"), array("q")
        self.slices: list[Slices] = []

    def add(
        self,
        cases: Iterable[TestCase],
        numbers: Iterable[int],
        rows: Iterable[ScoreRow],
        clusters: Iterable[str | None],
    ) -> None:
        """Count cases; ``numbers``: those of their rows."""
        self.row_of_case.extend(numbers)
        self.clusters.extend(map(passing_number, clusters))
        facets = map(facets_of, cases)
        self.slices += [_slices(own, row.slices) for own, row in zip(facets, rows, strict=True)]

    def summary(self, metrics: Sequence[Metric]) -> dict[str, Any]:
        """Means, intervals and counts, of all cases and by slice."""
        rows = [row.values for row in self.rows]
        return summary(metrics, rows, self.row_of_case, self.slices, self.clusters)


@lru_cache(maxsize=1 << 12)
def _slices(facets: Facets, more: Slices) -> Slices:
    """The slices of a case and those of its row; equal ones are one object."""
    return slices_of(facets) + more


class _ScoreLineEncoder:
    """Makes score lines of the outcomes of blocks of results, in order, and counts their cases."""

    def __init__(self, scorer: Scorer, scores: _CaseScores) -> None:
        self._names = tuple(metric.name for metric in scorer.metrics)
        self._usual = scorer.usual_reasons if isinstance(scorer, SparseScorer) else ()
        self._head = encode_head(self._names, self._usual)
        self._scores = scores
        self._texts: list[bytes] = []
        """The middle of a score line for each row."""

    def enter(
        self,
        cases: Sequence[TestCase],
        results: Sequence[TestResult],
        outcomes: Sequence[ScoreOutcome],
        clusters: Sequence[str | None],
        labelled: Mapping[str, str],
    ) -> bytes:
        """Count a block, each result with the cluster of its case, and return its score lines.

        ``status``: scored when any metric has a score, failed when the bot's call failed,
        unreadable when its answer could not be read, else not_applicable. A score that is null is
        explained in ``reasons``. Repeats of a case stand together; it is counted once, with the
        mean of each metric.
        """
        numbers = [self._number(row) for row, _ in outcomes]
        text = encode_lines(
            map(_CASE_ID, cases),
            map(_REPEAT, results),
            clusters,
            map(labelled.__getitem__, map(_CASE_ID, cases)),
            [self._texts[number] for number in numbers],
            [evidence for _, evidence in outcomes],
            self._head,
        )
        self._head = b""
        rows = [row for row, _ in outcomes]
        if len(set(map(_CASE_ID, cases))) < len(cases):
            cases, rows, clusters = _averages(cases, rows, clusters)
            numbers = list(map(self._number, rows))
        self._scores.add(cases, numbers, rows, clusters)
        return text

    def _number(self, row: ScoreRow) -> int:
        rows = self._scores.rows
        number = rows.get(row)
        if number is None:
            number = rows[row] = len(rows)
            self._texts.append(_encode(row, self._names, self._usual))
        return number


def _averages(
    cases: Sequence[TestCase],
    rows: Sequence[ScoreRow],
    clusters: Sequence[str | None],
) -> tuple[list[TestCase], list[ScoreRow], list[str | None]]:
    """Each case once, with its cluster and the mean of its repeats."""
    once, means, labels = [], [], []
    triples = zip(cases, rows, clusters, strict=True)
    for _, group in groupby(triples, key=lambda triple: triple[0].id):
        repeats = list(group)
        case, row, cluster = repeats[0]
        if len(repeats) > 1:
            values = average([repeat.values for _, repeat, _ in repeats])
            row = msgspec.structs.replace(row, values=values)
        once.append(case)
        means.append(row)
        labels.append(cluster)
    return once, means, labels


class _WithoutAnswer:
    """The outcomes of results without an answer to score. Of calls that failed: no score, or what
    the scorer says of them; of answers that could not be read: nothing applies."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._rows: dict[ScoreRow, ScoreRow] = {}

    def outcome(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        if result.status == UNREADABLE:
            nothing: Value = None
            row = ScoreRow(
                (nothing,) * len(self._scorer.metrics), (("*", _NOT_READ),), status=UNREADABLE
            )
            return self._rows.setdefault(row, row), NOTHING
        kind = result.error.kind if result.error else "unknown"
        reason = NO_RESULT if is_missing(result) else f"{CALL_FAILED}{kind}"
        if isinstance(self._scorer, FailureScorer):
            row = self._scorer.score_failed(case, reason)
        else:
            no_score: Value = FAILED
            row = ScoreRow(
                (no_score,) * len(self._scorer.metrics), (("*", reason),), status="failed"
            )
        return self._rows.setdefault(row, row), NOTHING


def _encode(row: ScoreRow, names: tuple[str, ...], usual: Reasons) -> bytes:
    """Status, scores and reasons as the middle of a JSON object."""
    scores: Any = row.values
    failed = FAILED in scores
    if failed:
        scores = [None if value == FAILED else value for value in scores]
    status: str = row.status or "scored"
    if not row.status and scores.count(None) == len(scores):
        status = "failed" if failed else "not_applicable"
    return encode_scores(status, names, scores, row.reasons, usual)


def _twice(path: Path, results: Sequence[TestResult]) -> Iterator[Problem]:
    """A problem for each result whose case and repeat an earlier one of the block has."""
    for key, times in Counter((r.test_case_id, r.repeat) for r in results).items():
        if times > 1:
            message = f"{key[0]!r}, repeat {key[1]}, is there {times} times; keep one line"
            yield Problem(str(path), None, "test_case_id", message)


def _one_by_one(
    scorer: Scorer, cases: Sequence[TestCase], results: Sequence[TestResult]
) -> list[ScoreOutcome]:
    return list(map(scorer.score, cases, results))


def _without_lists(
    score_all: ScoreAll, cases: Sequence[TestCase], results: Sequence[TestResult]
) -> list[ScoreOutcome]:
    """The outcomes where the retrieved passages are unknown, also where a list was written."""
    return score_all(cases, list(map(forget_unmapped, results)))


class _TurnByTurn:
    """Scores each result with the turns before it, of which one conversation's are kept."""

    def __init__(self, scorer: TurnScorer) -> None:
        self._scorer = scorer
        self._conversation: str | None = None
        self._earlier: dict[int, list[Earlier]] = {}

    def __call__(
        self, cases: Sequence[TestCase], results: Sequence[TestResult]
    ) -> list[ScoreOutcome]:
        outcomes = []
        for case, result in zip(cases, results, strict=True):
            if case.conversation is None or case.conversation != self._conversation:
                self._conversation, self._earlier = case.conversation, {}
            earlier = self._earlier.setdefault(result.repeat, [])
            outcomes.append(self._scorer.score_turn(case, result, earlier))
            earlier.append((case, result))
        return outcomes


def _outcomes(
    score_all: ScoreAll,
    others: _WithoutAnswer,
    cases: Sequence[TestCase],
    results: Sequence[TestResult],
) -> list[ScoreOutcome]:
    """The outcome of each result; those without an answer do not reach the
    scorer."""
    sound = [result.status == "ok" for result in results]
    if all(sound):
        return score_all(cases, results)
    scored = iter(score_all(list(compress(cases, sound)), list(compress(results, sound))))
    return [
        next(scored) if is_sound else others.outcome(case, result)
        for is_sound, case, result in zip(sound, cases, results, strict=True)
    ]

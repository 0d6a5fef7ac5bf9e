"""The loop that every score_* script shares: load, score each case, summarise, save."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from decisions.case_lines import update_case_lines
from ragmetrics import catalogue
from ragmetrics.stats.intervals import ALONE
from ragmetrics.stats.tally import (
    FAILED,
    Facets,
    Slices,
    Value,
    average,
    facets_of,
    slices_of,
    summary,
)
from records.asked import asked_cases, asked_counts, is_missing
from records.cases import TestCase
from records.clusters import clustered_by, label_of
from records.errors import Problem, StorageError, Unreachable
from records.files import clear_leftovers, sha256_file, written_beside
from records.fingerprints import labelled_digests
from records.labels import labels_sha256
from records.metrics import replacing_section, update_metrics
from records.profiles import forget_unmapped, maps_passages
from records.results import UNREADABLE, TestResult, is_root_failure
from records.run import Run
from records.runs import results_file, scores_file
from records.scores import (
    CALL_FAILED,
    NO_RESULT,
    Reasons,
    ScoreLine,
    encode_evidence,
    encode_head,
    encode_lines,
    encode_scores,
    parse_own_scores,
)
from records.syncing import move_into_place
from scorers.contract import (
    NOTHING,
    Aggregator,
    ColumnScorer,
    Earlier,
    FailureScorer,
    ScoreOutcome,
    Scorer,
    ScoreRow,
    SparseScorer,
    TurnScorer,
)
from scorers.variation import stability, turn_loss
from terminal.progress import Step, progress

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from rich.console import Console

_NOT_READ = "the answer could not be read"

_CASE_ID, _REPEAT = attrgetter("id"), attrgetter("repeat")
_CONVERSATION, _RESULT_OF = attrgetter("conversation"), attrgetter("test_case_id")

ScoreAll = Callable[[Sequence[TestCase], Iterable[TestResult]], list[ScoreOutcome]]
"""Scores some answers; it can be sent to another process."""

OutcomeMap = Callable[[ScoreAll, Sequence[TestCase], Sequence[TestResult]], list[ScoreOutcome]]
"""Applies a function to answers, wherever that is done; the outcomes stay in order."""


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
    outcome_map: OutcomeMap | None = None,
    case_lines: bool = True,
    console: Console | None = None,
) -> dict[str, Any]:
    """Score every result of a run; write scores/<section>.jsonl and the section of metrics.json.

    ``jobs``: processes that score, or ``outcome_map`` in their place, with the same bytes.
    ``case_lines``, ``console``: as of a ScoringJob. Returns the section. Raises StorageError, with
    nothing written, when the run is incomplete or any line of the set, the labels or the results
    has a problem.
    """
    results_of(folder)
    if isinstance(scorer, TurnScorer):
        jobs, outcome_map = 1, None
    run = Run(folder, eval_set, labels_dir, lean=jobs == 1)
    set_sha256, labels_hash = sha256_file(eval_set), labels_sha256(labels_dir, eval_set)
    outcome_map = outcome_map or partial(_in_processes, jobs, console, f"scoring {scorer.section}")
    scored = _score(run, scorer, set_sha256, outcome_map)
    section = scored.section(seed)
    header = _header(run, set_sha256, labels_hash, scored.results)
    target = scores_file(folder, scorer.section)
    with (
        written_beside(target, scored.text(), make_folder=True) as temporary,
        replacing_section(folder, scorer.section),
    ):
        move_into_place(temporary, target)
        clear_leftovers(target)
        if scored.is_repeated:
            section["stability"] = stability(folder, scorer.section, scorer.metrics)
        update_metrics(folder, scorer.section, section, header, case_lines=case_lines)
    if case_lines:
        update_case_lines(folder, eval_set)
    return section


class _BriefResult(msgspec.Struct, gc=False):
    """What is kept of a result whose outcome is in a table: the place there."""

    test_case_id: str
    repeat: int
    place: int
    status: ClassVar[str] = "ok"
    error: ClassVar[None] = None


def _score(run: Run, scorer: Scorer, set_sha256: str, outcome_map: OutcomeMap) -> _ScoredRun:
    """Score all answers: as columns where the scorer can, else one by one. Those without an answer
    do not reach the scorer. Raises StorageError for every problem of set and results."""
    unmapped = not maps_passages(run.config)
    absent = brief = None
    if isinstance(scorer, FailureScorer):
        asked = asked_cases(run.config, set_sha256, run.cases.values)
        absent = asked.absent if asked else None
    places: dict[Hashable, int] = {}
    columns = scorer if isinstance(scorer, ColumnScorer) and not unmapped else None
    if columns is not None and _overrides_score(scorer):
        columns = None
    if columns is not None:

        def brief(case: TestCase, result: TestResult) -> Any:
            key = columns.key(case, result) if result.status == "ok" else None
            if key is None:
                return result
            place = places.setdefault(key, len(places))
            return _BriefResult(result.test_case_id, result.repeat, place)

    problems: list[Problem] = []
    cases, results = run.answers(problems.append, absent, brief)
    if is_repeated := len(set(map(_CASE_ID, cases))) < len(cases):
        problems += _twice(run.results_path, results)
    if run.problems or problems:
        raise StorageError.from_problems(run.problems + problems)
    outcomes = columns.score_columns(list(places)) if columns and places else []
    place_of = [getattr(result, "place", -1) for result in results]
    rest = [at for at, place in enumerate(place_of) if place < 0]
    sound = [at for at in rest if results[at].status == "ok"]
    way = _way_of(scorer, unmapped=unmapped)
    mapped = outcome_map(way, [cases[at] for at in sound], [results[at] for at in sound])
    by_answer = dict(zip(sound, mapped, strict=True))
    for at in rest:
        place_of[at] = len(outcomes)
        outcome = by_answer.get(at) or (_without_answer(scorer, cases[at], results[at]), NOTHING)
        outcomes.append(outcome)
    return _ScoredRun(scorer, cases, results, outcomes, place_of, is_repeated)


def _overrides_score(scorer: Scorer) -> bool:
    """Whether a subclass has a ``score`` of its own, which the columns of its base do not know."""
    for kind in type(scorer).__mro__:
        if "score_columns" in vars(kind):
            return False
        if "score" in vars(kind):
            return True
    return False


def _twice(path: Path, results: Sequence[TestResult]) -> Iterator[Problem]:
    """A problem for each result whose case and repeat an earlier one has."""
    for key, times in Counter((r.test_case_id, r.repeat) for r in results).items():
        if times > 1:
            message = f"{key[0]!r}, repeat {key[1]}, is there {times} times; keep one line"
            yield Problem(str(path), None, "test_case_id", message)


def _way_of(scorer: Scorer, *, unmapped: bool) -> ScoreAll:
    """Scores some answers. ``unmapped``: no passages were ever read from an answer, so that an
    empty list says nothing."""
    way: ScoreAll = partial(_one_by_one, scorer)
    if isinstance(scorer, TurnScorer):
        way = partial(_turn_by_turn, scorer)
    return partial(_without_lists, way) if unmapped else way


def _one_by_one(
    scorer: Scorer, cases: Sequence[TestCase], results: Iterable[TestResult]
) -> list[ScoreOutcome]:
    return list(map(scorer.score, cases, results))


def _turn_by_turn(
    scorer: TurnScorer, cases: Sequence[TestCase], results: Iterable[TestResult]
) -> list[ScoreOutcome]:
    """Score each result with the turns before it."""
    conversation: str | None = None
    by_repeat: dict[int, list[Earlier]] = {}
    outcomes = []
    for case, result in zip(cases, results, strict=True):
        if case.conversation is None or case.conversation != conversation:
            conversation, by_repeat = case.conversation, {}
        earlier = by_repeat.setdefault(result.repeat, [])
        outcomes.append(scorer.score_turn(case, result, earlier))
        earlier.append((case, result))
    return outcomes


def _without_lists(
    score_all: ScoreAll, cases: Sequence[TestCase], results: Iterable[TestResult]
) -> list[ScoreOutcome]:
    """The outcomes where the retrieved passages are unknown, also where a list was written."""
    return score_all(cases, map(forget_unmapped, results))


def _without_answer(scorer: Scorer, case: TestCase, result: TestResult) -> ScoreRow:
    """The row of a result without an answer to score. Of a call that failed: no score, or what the
    scorer says of it; of an answer that could not be read: nothing applies."""
    if result.status == UNREADABLE:
        nothing: Value = None
        none = (nothing,) * len(scorer.metrics)
        return ScoreRow(none, (("*", _NOT_READ),), status=UNREADABLE)
    kind = result.error.kind if result.error else "unknown"
    reason = NO_RESULT if is_missing(result) else f"{CALL_FAILED}{kind}"
    if isinstance(scorer, FailureScorer):
        return scorer.score_failed(case, reason)
    failed: Value = FAILED
    return ScoreRow((failed,) * len(scorer.metrics), (("*", reason),), status="failed")


_CHUNK = 32
"""Answers that a process scores together."""


def _counted(step: Step, results: Iterable[TestResult]) -> Iterator[TestResult]:
    """The results; each is counted when the next one is asked for."""
    for result in results:
        yield result
        step()


def _in_processes(
    jobs: int,
    console: Console | None,
    doing: str,
    score_all: ScoreAll,
    cases: Sequence[TestCase],
    results: Sequence[TestResult],
) -> list[ScoreOutcome]:
    """The outcomes of answers, which ``jobs`` processes score."""
    with progress(console if cases else None, doing, len(cases)) as step:
        if jobs == 1 or not cases:
            return score_all(cases, _counted(step, results))
        return _by_workers(jobs, step, score_all, cases, results)


def _by_workers(
    jobs: int,
    step: Step,
    score_all: ScoreAll,
    cases: Sequence[TestCase],
    results: Sequence[TestResult],
) -> list[ScoreOutcome]:
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor  # slow to load
    from multiprocessing import Pipe, active_children

    others = active_children()
    ended, end = Pipe(duplex=False)
    chunks = [slice(at, at + _CHUNK) for at in range(0, len(cases), _CHUNK)]
    with ProcessPoolExecutor(jobs, initializer=_begin, initargs=(score_all, ended, end)) as pool:
        try:
            parts = pool.map(
                _score_chunk, map(cases.__getitem__, chunks), map(results.__getitem__, chunks)
            )
            outcomes = []
            for part in parts:
                outcomes += part
                step(len(part))
            return outcomes
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


_way: ScoreAll
"""In a worker process: scores a chunk."""


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


def _score_chunk(cases: Sequence[TestCase], results: Sequence[TestResult]) -> list[ScoreOutcome]:
    return _way(cases, results)


class _ScoredRun:
    """The answers of a run with their outcomes."""

    def __init__(
        self,
        scorer: Scorer,
        cases: Sequence[TestCase],
        results: Sequence[TestResult],
        outcomes: Sequence[ScoreOutcome],
        place_of: Sequence[int],
        is_repeated: bool,
    ) -> None:
        self.results = results
        self.is_repeated = is_repeated
        """Whether a case was asked several times."""
        self._scorer, self._cases = scorer, cases
        self._outcomes, self._place_of = outcomes, place_of
        """The outcomes, and the place of each answer's own one."""
        self._labels = list(map(label_of, cases))
        self._clusters: dict[str | None, int] = {None: ALONE}
        """A number for the label of each cluster."""
        for label in self._labels:
            self._clusters.setdefault(label, len(self._clusters))

    def text(self) -> Iterator[bytes]:
        """The score lines, some at a time.

        ``status``: scored when any metric has a score, failed when the bot's call failed,
        unreadable when its answer could not be read, else not_applicable. A score that is null is
        explained in ``reasons``. Repeats of a case are consecutive.
        """
        names = tuple(metric.name for metric in self._scorer.metrics)
        usual = self._scorer.usual_reasons if isinstance(self._scorer, SparseScorer) else ()
        ends = [
            _encode(row, names, usual) + encode_evidence(evidence)
            for row, evidence in self._outcomes
        ]
        head = encode_head(names, usual)
        fields = catalogue.labels_of(self._scorer.section)
        for at in range(0, len(self._cases), _LINES):
            some = slice(at, at + _LINES)
            ids = list(map(_CASE_ID, self._cases[some]))
            digests = labelled_digests(self._cases[some], fields)
            yield encode_lines(
                ids,
                map(_REPEAT, self.results[some]),
                self._labels[some],
                map(digests.__getitem__, ids),
                map(ends.__getitem__, self._place_of[some]),
                head if at == 0 else b"",
            )

    def lines(self) -> Iterator[ScoreLine]:
        """The score lines, each with the numbers of its case's cluster and conversation."""
        names = dict.fromkeys(map(_CONVERSATION, self._cases))
        conversations = {name: at for at, name in enumerate(names, len(self._clusters) + 1)}
        conversations[None] = 0
        lines = chain.from_iterable(map(parse_own_scores, self.text()))
        for line, case in zip(lines, self._cases, strict=True):
            line.cluster_number = self._clusters[line.cluster]
            line.conversation, line.turn = conversations[case.conversation], case.turn or 0
            yield line

    def section(self, seed: int) -> dict[str, Any]:
        """The section of metrics.json."""
        scorer = self._scorer
        section = {"options": scorer.options | {"seed": seed}} | self._summary()
        if any(map(_CONVERSATION, self._cases)):
            section["turn_loss"] = turn_loss(self.lines(), scorer.metrics)
        if isinstance(scorer, Aggregator):
            return scorer.aggregate(section, self.lines(), seed)
        return section

    def _summary(self) -> dict[str, Any]:
        """Means, intervals and counts, of all cases and by slice. A case that was asked several
        times is counted once, with the mean of each metric."""
        rows, place_of = [row for row, _ in self._outcomes], self._place_of
        values = [row.values for row in rows]
        firsts: Sequence[int] = range(len(self._cases))
        row_of_case = place_of
        if self.is_repeated:
            groups = groupby(firsts, key=lambda at: self._cases[at].id)
            answers = [list(group) for _, group in groups]
            values = [average([values[place_of[at]] for at in own]) for own in answers]
            firsts, row_of_case = [own[0] for own in answers], range(len(answers))
        slices = [_slices(facets_of(self._cases[at]), rows[place_of[at]].slices) for at in firsts]
        labels = [self._labels[at] for at in firsts]
        clusters = [self._clusters[label] for label in labels]
        means = summary(self._scorer.metrics, values, row_of_case, slices, clusters)
        return means | {"clustered_by": clustered_by(labels)}


_LINES = 1000
"""Score lines that are encoded together."""


@lru_cache(maxsize=1 << 12)
def _slices(facets: Facets, more: Slices) -> Slices:
    """The slices of a case and those of its row; equal ones are one object."""
    return slices_of(facets) + more


@lru_cache(maxsize=1 << 12)
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


def _header(
    run: Run, set_sha256: str, labels_hash: str | None, results: Sequence[TestResult]
) -> dict[str, Any]:
    stopped = run.config.run.get("stopped")
    present = [result for result in results if result.status == "ok" or not is_missing(result)]
    times = Counter(Counter(map(_RESULT_OF, present)).values())
    return {
        **({"stopped": stopped} if stopped else {}),
        "run_id": run.folder.resolve().name,
        "config_hash": run.config.config_hash,
        "eval_set_sha256": set_sha256,
        "labels_sha256": labels_hash,
        **asked_counts(run.config, times),
        "cases": times.total(),
        "errors": sum(map(is_root_failure, present)),
        UNREADABLE: sum(result.status == UNREADABLE for result in present),
    }

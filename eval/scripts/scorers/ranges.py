"""Scores one range of a run, its cases and results side by side, to score lines and sums."""

from __future__ import annotations

import errno
import gc
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from ragmetrics.stats.arrays import np
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
from records.asked import is_missing
from records.cases import Labels, TestCase, lasting_hash
from records.clusters import cluster_number, conversation_number, label_of, passing_number
from records.errors import Problem, StorageError
from records.joining import Absent, Joined, Work, join_indexed, join_stream
from records.profiles import forget_unmapped
from records.results import UNREADABLE, TestResult, is_root_failure
from records.scores import (
    CALL_FAILED,
    NO_RESULT,
    Reasons,
    encode_head,
    encode_lines,
    encode_scores,
)
from scorers.contract import (
    NOTHING,
    BlockScorer,
    Earlier,
    FailureScorer,
    ScoreOutcome,
    Scorer,
    ScoreRow,
    SparseScorer,
    TurnScorer,
)

_NOT_READ = "the answer could not be read"

_MOST_ROWS = 4096

_MOST_WAITING = 1 << 18
"""Distinct rows, and cases, that are kept in memory before they are handed over to the tally."""

_CASE_ID, _REPEAT = attrgetter("id"), attrgetter("repeat")
_CONVERSATION = attrgetter("conversation")


class _ScoreLineEncoder:
    """Takes the outcomes of blocks of results, in order."""

    def __init__(
        self, scorer: Scorer, tally: Tally, number_of: Callable[[str | None], int], *, first: bool
    ) -> None:
        """``number_of``: the number of a cluster, by its label; ``first``: the lines are those that
        the file begins with."""
        self._names = tuple(metric.name for metric in scorer.metrics)
        self._usual = scorer.usual_reasons if isinstance(scorer, SparseScorer) else ()
        self._head = encode_head(self._names, self._usual) if first else b""
        self._cluster_number = number_of
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
        clusters: Sequence[str | None],
    ) -> bytes:
        """Count a block, each result with the cluster of its case, and return its score lines.

        ``status``: scored when any metric has a score, failed when the bot's call failed,
        unreadable when its answer could not be read, else not_applicable. A score that is null is
        explained in ``reasons``. Repeats of a case stand together and have the same case object; it
        is counted once, with the mean of each metric.
        """
        number_of = self._number_of
        keys = [id(row) for row, _ in outcomes]
        for key, (row, _) in zip(keys, outcomes, strict=True):
            if key not in number_of:
                self._take(row, _encode(row, self._names, self._usual))
        numbers = [number_of[key] for key in keys]
        texts = self._texts
        text = encode_lines(
            map(_CASE_ID, cases),
            map(_REPEAT, results),
            clusters,
            [texts[number] for number in numbers],
            [evidence for _, evidence in outcomes],
            self._head,
        )
        self._head = b""
        if len(set(map(id, cases))) < len(cases):
            cases, numbers = self._averages(cases, [outcome[0] for outcome in outcomes])
            clusters = list(map(label_of, cases))
        self._row_of_case.extend(numbers)
        self._clusters.extend(map(self._cluster_number, clusters))
        known = self._facets
        self._facets_of_case.extend(
            [known.setdefault(f, len(known)) for f in map(facets_of, cases)]
        )
        if len(self._rows) >= _MOST_ROWS or len(self._row_of_case) >= _MOST_WAITING:
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


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What only writing can fail with."""

_ScoreAll = Callable[[Sequence[TestCase], Sequence[TestResult]], list[ScoreOutcome]]


@dataclass(slots=True)
class ScoredRange:
    """The outcome of scoring one range. ``rows`` is a temporary file of score lines."""

    tally: Tally
    rows: Path
    results: Counter[int] = field(default_factory=Counter)
    """How many cases have n results, by n."""
    errors: int = 0
    unreadable: int = 0
    """Answers that could not be read."""
    ids: set[str] = field(default_factory=set)
    """Ids of the cases that have labels."""
    hashes: array[int] = field(default_factory=partial(array, "q"))
    """A hash of each case id."""
    conversations: array[int] = field(default_factory=partial(array, "q"))
    turns: array[int] = field(default_factory=partial(array, "q"))
    """The number of each line's conversation, and of the turn in it; empty where there is none."""
    has_turns: bool = False
    stored: bool = False
    """These numbers and the hashes are in files instead."""
    faulty: bool = False
    """The worker had problems, which are found again and listed by one process."""
    problems: list[Problem] = field(default_factory=list)
    lines: int = 0

    def take(self, cases: Sequence[TestCase]) -> None:
        """Note which turns the lines of a block are, where any are turns."""
        self.has_turns = self.has_turns or any(map(_CONVERSATION, cases))
        if self.has_turns:
            self.conversations.extend([0] * (self.lines - len(self.conversations)))
            self.turns.extend([0] * (self.lines - len(self.turns)))
            self.conversations.extend(map(conversation_number, cases))
            self.turns.extend(case.turn or 0 for case in cases)
        self.lines += len(cases)


def score_range(
    work: Work,
    *,
    scorer: Scorer,
    labels: Labels,
    folder: Path,
    absent: Absent | None = None,
    ordered: bool = True,
    rows: Path | None = None,
    resident: bool = False,
    unmapped: bool = False,
) -> ScoredRange:
    """Score one range: rows to a temporary file, sums to a tally. Problems are collected.

    ``rows``: that file, where others work in the folder, too; ids are then hashed as they do.
    ``resident``: this process goes on for long. ``unmapped``: no passages were ever read from an
    answer, so that an empty list says nothing.

    The garbage collector rests meanwhile: records form no cycles, and looking for some among
    millions of them takes longer than the scoring. What is kept afterwards it need not look at.
    """
    gc.disable()
    try:
        return _score_joined(work, scorer, labels, folder, ordered, absent, rows, unmapped)
    except OSError as error:
        if error.errno not in _FULL:
            raise  # a scorer's own, such as that of a model's file
        where = f"{folder.parent}: the scores cannot be written ({error.strerror})"
        raise StorageError(f"{where}; make room and score again.") from None
    finally:
        if not resident:
            gc.freeze()
        gc.enable()


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
    score_all: _ScoreAll, cases: Sequence[TestCase], results: Sequence[TestResult]
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
    score_all: _ScoreAll,
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


def _score_joined(
    work: Work,
    scorer: Scorer,
    labels: Labels,
    folder: Path,
    ordered: bool,
    absent: Absent | None,
    rows: Path | None,
    unmapped: bool,
) -> ScoredRange:
    tally = Tally(len(scorer.metrics))
    part = ScoredRange(tally, rows or folder / f"{work.start}.jsonl")
    number_of = cluster_number if rows else passing_number
    book = _ScoreLineEncoder(scorer, tally, number_of, first=work.start == 0)
    quick: _ScoreAll = partial(_one_by_one, scorer)
    if isinstance(scorer, BlockScorer):
        quick = scorer.score_all
    elif isinstance(scorer, TurnScorer):
        quick = _TurnByTurn(scorer)
    if unmapped:
        quick = partial(_without_lists, quick)
    joined: Iterator[Joined]
    if ordered:
        hash_of = lasting_hash if rows else hash
        joined = join_stream(work, labels, part.problems.append, part.hashes, absent, hash_of)
    else:
        joined = join_indexed(work, labels, part.problems.append, absent)
    others = _WithoutAnswer(scorer)
    with open(part.rows, "wb") as file:
        for cases, results in joined:
            distinct = len(set(map(id, cases)))
            if distinct == len(results) and absent is None:
                part.results[1] += distinct
            else:
                there = [not is_missing(result) for result in results]
                part.problems.extend(_twice(work.results, results))
                part.results.update(Counter(map(id, compress(cases, there))).values())
            clusters = list(map(label_of, cases))
            part.take(cases)
            outcomes = _outcomes(quick, others, cases, results)
            file.write(book.enter(cases, results, outcomes, clusters))
            unscored = [result for result in results if result.status != "ok"]
            part.unreadable += sum(result.status == UNREADABLE for result in unscored)
            part.errors += sum(is_root_failure(r) and not is_missing(r) for r in unscored)
            if labels:
                part.ids.update(case.id for case in cases if case.id in labels)
    book.close()
    if not rows:
        del part.hashes[:]  # other ranges alone would look at them
    return part

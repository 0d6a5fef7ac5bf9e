"""One byte range of a run scored: rows to a temporary file, sums to a tally.

What ``scoring.py`` gives to a process. Nothing here knows of other ranges.
"""

from __future__ import annotations

import errno
import gc
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import storage
from ragmetrics.tally import Tally
from scorebook import Book, Outcome
from storage import Problem, TestCase, TestResult, Work

if TYPE_CHECKING:
    from scoring import Scorer

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What only writing can fail with."""
ScoreAll = Callable[[Sequence[TestCase], Sequence[TestResult]], list[Outcome]]


@runtime_checkable
class BlockScorer(Protocol):
    """A scorer that is quicker with many results at once."""

    def score_all(self, cases: Sequence[TestCase], results: Sequence[TestResult]) -> list[Outcome]:
        """What ``score`` says of each result; none of them is an error."""


@dataclass(slots=True)
class Scored:
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


def score_range(
    work: Work, *, scorer: Scorer, labels: storage.Labels, folder: Path, ordered: bool = True
) -> Scored:
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
        raise storage.StorageError(f"{where}; make room and score again.") from None
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
) -> list[Outcome]:
    return list(map(scorer.score, cases, results))


def _outcomes(
    score_all: ScoreAll, book: Book, cases: Sequence[TestCase], results: Sequence[TestResult]
) -> list[Outcome]:
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
    work: Work, scorer: Scorer, labels: storage.Labels, folder: Path, ordered: bool
) -> Scored:
    tally = Tally(len(scorer.metrics))
    part = Scored(tally, folder / f"{work.start}.jsonl")
    book = Book([metric.name for metric in scorer.metrics], tally)
    quick = scorer.score_all if isinstance(scorer, BlockScorer) else partial(_one_by_one, scorer)
    joined: Iterator[storage.Joined]
    if ordered:
        joined = storage.join_stream(work, labels, part.problems.append, part.hashes)
    else:
        joined = storage.join_indexed(work, labels, part.problems.append)
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

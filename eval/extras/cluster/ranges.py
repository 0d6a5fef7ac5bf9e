"""A range of a run's results: what the starter asks for, and how a worker of Dask scores it."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from records.cases import TestCase
from records.errors import StorageError
from records.files import sha256_file
from records.labels import labels_sha256
from records.results import TestResult, result_of
from records.run import Run
from records.runs import VERSION, results_file

if TYPE_CHECKING:
    from scorers.contract import ScoreOutcome
    from scorers.loop import ScoreAll

Key = tuple[str, int]
"""Case and repeat: what names an answer."""


class Sources(NamedTuple):
    """The files of a run as every machine must see them. ``hashes``: of set and labels;
    ``version``: of the toolkit."""

    folder: Path
    eval_set: Path
    labels_dir: Path | None
    hashes: tuple[str, str | None]
    version: str


class ResultRange(NamedTuple):
    """Whole lines of the results: where they begin, and their size and checksum."""

    start: int
    size: int
    checksum: int


def sources_of(folder: Path, eval_set: Path, labels_dir: Path | None) -> Sources:
    """The files as this machine sees them. Raises StorageError for a set that cannot be read."""
    hashes = sha256_file(eval_set), labels_sha256(labels_dir, eval_set)
    folder, eval_set = folder.resolve(), eval_set.resolve()
    return Sources(folder, eval_set, labels_dir and labels_dir.resolve(), hashes, VERSION)


def ranges_of(path: Path, size: int) -> Iterator[ResultRange]:
    """The lines of a file in ranges of about so many bytes."""
    start = 0
    with open(path, "rb") as file:
        while data := file.read(size):
            data += file.readline() if data[-1:] != b"\n" else b""
            yield ResultRange(start, len(data), crc32(data))
            start += len(data)


def score_range(task: bytes, sources: Sources, part: ResultRange) -> bytes:
    """Score the sound answers of a range, on a worker. Returns them by key, pickled.

    ``task``: the pickled function that scores. Raises StorageError where this machine has other
    files or another version than the starter.
    """
    if sources.version != VERSION:
        raise _unlike(f"version {VERSION} of the toolkit, and the starter {sources.version}")
    path = results_file(sources.folder)
    try:
        with open(path, "rb") as file:
            file.seek(part.start)
            data = file.read(part.size)
    except OSError as error:
        raise _unlike(f"no {path} ({error.strerror})") from None
    if crc32(data) != part.checksum:
        raise _unlike(f"another {path}")
    cases = _cases(sources)
    read = (result_of(path, 0, line, "") for line in data.split(b"\n") if line)
    results = [
        result
        for result in read
        if isinstance(result, TestResult) and result.status == "ok" and result.test_case_id in cases
    ]
    outcomes = _score_all(task)([cases[result.test_case_id] for result in results], results)
    scored: list[tuple[Key, ScoreOutcome]] = [
        ((result.test_case_id, result.repeat), outcome)
        for result, outcome in zip(results, outcomes, strict=True)
    ]
    return pickle.dumps(scored)


@lru_cache(maxsize=1)
def _score_all(task: bytes) -> ScoreAll:
    score_all: ScoreAll = pickle.loads(task)
    return score_all


@lru_cache(maxsize=1)
def _cases(sources: Sources) -> dict[str, TestCase]:
    """The labelled cases, read once by each worker for all ranges of a run."""
    here = sources_of(sources.folder, sources.eval_set, sources.labels_dir)
    if here.hashes != sources.hashes:
        raise _unlike(f"another {sources.eval_set}, or other labels")
    return Run(sources.folder, sources.eval_set, sources.labels_dir, lean=False).cases


def _unlike(what: str) -> StorageError:
    return StorageError(
        f"the worker on {socket.gethostname()} has {what}; each machine must have the same "
        "toolkit, and run, set and labels under the same paths."
    )

"""The lines of a JSONL file of a run as records of one type, each fault told with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from storage import Problem, StorageError

T = TypeVar("T")


def read(
    path: Path,
    kind: type[T],
    what: str = "score line",
    remedy: str = "score the run again",
    report: Callable[[Problem], None] | None = None,
    at: Iterable[int] | None = None,
) -> Iterator[tuple[int, int, T]]:
    """Number (from 1), byte offset and record of each line; with ``at`` of the lines that begin at
    these offsets, whose number is 0 since nobody has counted those before them.

    Only what ``kind`` names is decoded and checked; a reader that asks for all that it uses can
    trust it. A line that is no ``what`` is passed to ``report``, with ``remedy``; without it, the
    first one raises StorageError. So does a file that cannot be read.
    """
    decode = msgspec.json.Decoder(kind).decode
    try:
        with open(path, "rb") as file:
            for number, offset, line in _numbered(file) if at is None else _picked(file, at):
                try:
                    record = decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                    told = f"is no {what} ({error}); {remedy}"
                    problem = Problem(str(path), number or None, "", told)
                    if report is None:
                        raise StorageError.from_problems([problem]) from None
                    report(problem)
                else:
                    yield number, offset, record
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}); {remedy}.") from None


def _numbered(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    for number, line in enumerate(file, 1):
        yield number, offset, line
        offset += len(line)


def _picked(file: BinaryIO, at: Iterable[int]) -> Iterator[tuple[int, int, bytes]]:
    for offset in at:
        file.seek(offset)
        yield 0, offset, file.readline()

"""The lines of a JSONL file of a run as records of one type, each fault told with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from storage import Problem, StorageError

T = TypeVar("T")


def read(
    path: Path,
    kind: type[T],
    what: str = "score line",
    remedy: str = "score the run again",
    report: Callable[[Problem], None] | None = None,
) -> Iterator[tuple[int, int, T]]:
    """Number (from 1), byte offset and record of each line.

    Only what ``kind`` names is decoded and checked; a reader that asks for all that it uses can
    trust it. A line that is no ``what`` is passed to ``report``, with ``remedy``; without it, the
    first one raises StorageError. So does a file that cannot be read.
    """
    decode = msgspec.json.Decoder(kind).decode
    offset = 0
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    record = decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                    told = f"is no {what} ({error}); {remedy}"
                    problem = Problem(str(path), number, "", told)
                    if report is None:
                        raise StorageError.from_problems([problem]) from None
                    report(problem)
                else:
                    yield number, offset, record
                offset += len(line)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}); {remedy}.") from None

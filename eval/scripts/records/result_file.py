"""Reading results.jsonl as a stream of blocks, with every problem reported."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter
from pathlib import Path

import msgspec

from records.case_file import Block, Report, iter_blocks, iter_lines
from records.decoding import Decode, whole
from records.errors import Problem, StorageError
from records.results import SCHEMA, TestResult

_DECODER = msgspec.json.Decoder(TestResult)
_SCHEMA = attrgetter("schema")


def iter_results(
    path: Path, report: Report | None = None, start: int = 0, end: int | None = None
) -> Iterator[TestResult]:
    """Results one line at a time, never the whole file in memory.

    Lines that are no result are passed to ``report``; without it, the first one raises.
    """
    return chain.from_iterable(iter_result_blocks(path, report, start, end, whole(TestResult)))


def iter_result_blocks(
    path: Path, report: Report | None, start: int, end: int | None, decode: Decode[TestResult]
) -> Iterator[list[TestResult]]:
    """The same in lists of neighbours, a block of the file each."""

    def refuse(problem: Problem) -> None:
        if report is None:
            raise StorageError.from_problems([problem])
        report(problem)

    for block in iter_blocks(path, start, end):
        try:
            results = decode(block.lines)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            results = list(_sound_results(path, refuse, block))
        else:
            if list(map(_SCHEMA, results)).count(SCHEMA) < len(results):
                results = list(_sound_results(path, refuse, block))
        yield results


def _sound_results(path: Path, refuse: Report, block: Block) -> Iterator[TestResult]:
    """The sound lines of one block, the others refused with their numbers."""
    lines = iter_lines(path, refuse, block.start, block.end, limit=None, lines=block.before)
    for number, line in lines:
        found = result_of(path, number, line, "run it again")
        if isinstance(found, Problem):
            refuse(found)
        else:
            yield found


def result_of(path: Path, number: int, line: bytes, remedy: str) -> TestResult | Problem:
    """The result of one line, or what is wrong with it and what helps."""
    try:
        result = _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Problem(str(path), number, "", f"not a result line ({error}); {remedy}")
    if result.schema == SCHEMA:
        return result
    message = f"this version reads schema {SCHEMA}, the line says {result.schema}; {remedy}"
    return Problem(str(path), number, "schema", message)

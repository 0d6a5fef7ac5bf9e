"""Reading results.jsonl as a stream of blocks, with every problem reported."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import msgspec

from records.case_file import Report, iter_blocks, iter_lines
from records.errors import Problem, StorageError
from records.files import check_schema
from records.results import SCHEMA, TestResult


def iter_results(
    path: Path, report: Report | None = None, start: int = 0, end: int | None = None
) -> Iterator[TestResult]:
    """Results one line at a time, never the whole file in memory.

    Lines that are no result are passed to ``report``; without it, the first one raises.
    """
    return chain.from_iterable(iter_result_blocks(path, report, start, end))


def iter_result_blocks(
    path: Path, report: Report | None = None, start: int = 0, end: int | None = None
) -> Iterator[list[TestResult]]:
    """The same in lists of neighbours, a block of the file each."""
    decoder = msgspec.json.Decoder(TestResult)

    def refuse(problem: Problem) -> None:
        if report is None:
            raise StorageError.from_problems([problem])
        report(problem)

    for offset, lines, block in iter_blocks(path, start, end):
        try:
            results = decoder.decode_lines(block)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            stop = offset + len(block)
            results = list(_sound_results(path, decoder, refuse, offset, stop, lines))
        for result in results:
            if result.schema != SCHEMA:
                check_schema(path, result.schema, SCHEMA)
        yield results


def _sound_results(
    path: Path,
    decoder: msgspec.json.Decoder[TestResult],
    refuse: Report,
    start: int,
    end: int,
    lines: int,
) -> Iterator[TestResult]:
    """The sound lines of one block, the others refused with their numbers."""
    for number, line in iter_lines(path, refuse, start, end, limit=None, lines=lines):
        try:
            yield decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            refuse(Problem(str(path), number, "", f"not a result line ({error}); run it again"))

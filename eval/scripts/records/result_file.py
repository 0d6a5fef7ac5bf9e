"""Reading results.jsonl as a stream of blocks, with every problem reported."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import msgspec

from records.case_file import Report, iter_blocks, iter_lines, one_a_line
from records.errors import Problem, StorageError
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
            sound = one_a_line(block, len(results))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            sound = False
        if not sound or any(result.schema != SCHEMA for result in results):
            stop = offset + len(block)
            results = list(_sound_results(path, decoder, refuse, offset, stop, lines))
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
            result = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            refuse(Problem(str(path), number, "", f"not a result line ({error}); run it again"))
            continue
        if result.schema == SCHEMA:
            yield result
        else:
            message = f"this version reads schema {SCHEMA}, the line says {result.schema}"
            refuse(Problem(str(path), number, "schema", f"{message}; run it again"))

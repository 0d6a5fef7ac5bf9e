"""Reading eval_set.jsonl as a stream of blocks, with every problem reported."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import orjson

from records.cases import TestCase, case_from_dict, check_case
from records.errors import Problem, StorageError

MAX_LINE = 4 * 1024 * 1024
"""Bytes of one line. A case is a question with its labels; more is a mistake or an attack."""
BLOCK = 1 << 15
BOM = b"\xef\xbb\xbf"

Report = Callable[[Problem], None]
Labels = dict[str, dict[str, Any]]
"""Fields from label files, by case id."""


def iter_lines(
    path: Path,
    report: Report,
    start: int = 0,
    end: int | None = None,
    limit: int | None = MAX_LINE,
    lines: int = 0,
) -> Iterator[tuple[int, bytes]]:
    """Non-blank lines of a JSONL file between two byte offsets, with ``lines`` lines before.

    Byte order mark, CRLF and lines over ``limit`` bytes are reported: the first two would give the
    same cases another hash on another machine.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the with below
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error
    name = str(path)
    crlf = start > 0 and lines > 0 and _has_crlf(path, start)
    with file:
        file.seek(start)
        place = start
        for number, line in enumerate(file, lines + 1):
            if end is not None:
                if place >= end:
                    return
                place += len(line)
            if limit is not None and len(line) > limit:
                report(Problem(name, number, "", f"line is longer than {limit} bytes; split it"))
                continue
            if number == 1 and start == 0 and line.startswith(BOM):
                message = "starts with a byte order mark; save as UTF-8 without BOM"
                report(Problem(name, 1, "", message))
                line = line[len(BOM) :]
            if line.endswith(b"\r\n") and not crlf:
                crlf = True
                message = "line ends with CRLF; save with LF line ends (dos2unix)"
                report(Problem(name, number, "", message))
            if not line.isspace():
                yield number, line


def _has_crlf(path: Path, end: int) -> bool:
    """True when a line before ``end`` ends with CRLF: it is reported once a file."""
    return any(b"\r\n" in block for _, _, block in iter_blocks(path, 0, end))


def parse_object(path: Path, number: int, line: bytes, report: Report) -> dict[str, Any] | None:
    """The line's JSON object, or None after reporting what is wrong with it."""
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        what = "holds NUL bytes" if b"\x00" in line else f"not JSON ({error.msg})"
        message = f"column {error.colno}: {what}; a line is one JSON object"
        report(Problem(str(path), number, "", message))
        return None
    if not isinstance(raw, dict):
        report(Problem(str(path), number, "", "is no JSON object; a line is one case in {…}"))
        return None
    return raw


def iter_blocks(
    path: Path, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """Whole lines between two offsets in blocks of about 32 kB: (offset, lines before, bytes).

    Small blocks keep what is decoded from them in the processor's cache: 1 MB takes twice as long.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the with below
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error
    lines = 0
    with file:
        file.seek(start)
        while start != end:
            block = file.read(BLOCK if end is None else min(BLOCK, end - start))
            block += file.readline() if block[-1:] != b"\n" else b""
            if not block:
                return
            yield start, lines, block
            start += len(block)
            lines += block.count(b"\n")


def iter_cases(
    path: Path,
    report: Report,
    labels: Labels | None = None,
    start: int = 0,
    end: int | None = None,
) -> Iterator[TestCase]:
    """The cases of a set, one at a time; lines with problems are reported and left out.

    Of a repeated id, which is reported at the end, every case is given.
    """
    return chain.from_iterable(iter_case_blocks(path, report, labels, start, end))


def iter_case_blocks(
    path: Path,
    report: Report,
    labels: Labels | None = None,
    start: int = 0,
    end: int | None = None,
) -> Iterator[list[TestCase]]:
    """The same in lists of neighbours, a block of the file each.

    Sound lines are decoded a block at a time; a block in which anything is odd is read again line
    by line. Of the ids only a hash is kept (8 bytes a case), which tells whether to look closer.
    """
    decode_lines = msgspec.json.Decoder(TestCase).decode_lines
    hashes = array("q")
    blank = True
    for offset, lines, block in iter_blocks(path, start, end):
        blank = blank and block.isspace()
        cases = None if labels else _sound_cases(block, decode_lines)
        if cases is None:
            stop = offset + len(block)
            cases = list(_checked_cases(path, report, labels, hashes, offset, stop, lines))
        else:
            hashes.extend([hash(case.id) for case in cases])
        yield cases
    if recurs(hashes):
        _report_repeats(path, report, hashes, start, end)
    if blank and start == 0 and end is None:
        report(Problem(str(path), None, "", "holds no cases; write one JSON object a line"))


def _sound_cases(
    block: bytes, decode_lines: Callable[[bytes], list[TestCase]]
) -> list[TestCase] | None:
    """The cases of a block; None when a line needs a closer look."""
    if block.startswith(BOM) or b"\r\n" in block or b"\\u0000" in block or len(block) > MAX_LINE:
        return None
    try:
        cases = decode_lines(block)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    special = [
        case
        for case in cases
        if case.gold_supports
        or case.required_support_groups is not None
        or case.gold_facts
        or case.min_citations is not None
        or case.latency_budget_ms is not None
        or not case.id.strip()
        or not case.question.strip()
    ]  # in the others check_case could find nothing: NUL was looked for, JSON numbers are finite
    if not one_a_line(block, len(cases)) or any(any(check_case(case)) for case in special):
        return None
    return cases


def one_a_line(block: bytes, objects: int) -> bool:
    """True when each line begins an object and there are as many: the decoder takes any spacing."""
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    return objects == lines and block[:1] == b"{" and block.count(b"\n{") == lines - 1


def recurs(hashes: array[int]) -> bool:
    """True when a number stands there twice. Looks at a portion at a time, to save memory."""
    portions = 1 + len(hashes) // 200_000
    for rest in range(portions):
        portion = [number for number in hashes if number % portions == rest]
        if len(set(portion)) < len(portion):
            return True
    return False


def _report_repeats(
    path: Path, report: Report, hashes: array[int], start: int, end: int | None
) -> None:
    """Report each line whose id an earlier line has, among the ids whose hash recurs."""
    recurring = {value for value, times in Counter(hashes).items() if times > 1}
    first: dict[str, int] = {}
    for number, line in iter_lines(path, ignore, start, end):
        identity = (parse_object(path, number, line, ignore) or {}).get("id")
        if not isinstance(identity, str) or hash(identity) not in recurring:
            continue
        known = first.setdefault(identity, number)
        if known != number:
            message = f"{identity!r} is also the id of line {known}; give it another"
            report(Problem(str(path), number, "id", message))


def ignore(problem: Problem) -> None:
    """The ``report`` of a second look: its problems are known already."""


def _checked_cases(
    path: Path,
    report: Report,
    labels: Labels | None,
    hashes: array[int],
    start: int,
    end: int,
    lines: int,
) -> Iterator[TestCase]:
    """The sound cases between two offsets, with every problem of the others reported."""
    for number, line in iter_lines(path, report, start, end, lines=lines):
        raw = parse_object(path, number, line, report)
        if raw is None:
            continue
        extra = labels.get(str(raw.get("id"))) if labels else None
        case, findings = case_from_dict(raw | extra if extra else raw)
        both = (name for name in extra or () if raw.get(name) not in (None, [], {}))
        findings += [(name, "a label file has it too; keep it in one place") for name in both]
        for field, message in findings:
            report(Problem(str(path), number, field, message))
        identity = raw.get("id")
        if isinstance(identity, str):
            hashes.append(hash(identity))
        if case is not None:
            yield case

"""Reading eval_set.jsonl as a stream of blocks, with every problem reported."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from records.cases import TestCase, canonical, case_from_dict, check_case
from records.decoding import Decode, whole
from records.errors import Problem, StorageError

MAX_LINE = 4 * 1024 * 1024
"""Bytes of one line. A case is a question with its labels; more is a mistake or an attack."""
BLOCK = 1 << 14
BOM = b"\xef\xbb\xbf"

Report = Callable[[Problem], None]
Labels = dict[str, dict[str, Any]]
"""Fields from label files, by case id."""

_ID, _QUESTION = attrgetter("id"), attrgetter("question")
_NOT_EMPTY = tuple(map(attrgetter, ("gold_supports", "gold_facts")))
_NOT_NULL = tuple(
    map(attrgetter, ("required_support_groups", "min_citations", "latency_budget_ms"))
)
"""With the two above, all that check_case looks at besides grades, which JSON keeps finite."""


class Block(NamedTuple):
    """Whole lines of a file: the offset of the first, how many stand before, and their bytes."""

    start: int
    before: int
    data: bytes
    lines: list[bytes]
    """The same without line ends. A last empty one, behind the last line end, is left out."""

    @property
    def end(self) -> int:
        """The offset behind the last line."""
        return self.start + len(self.data)


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
    return any(b"\r\n" in block.data for block in iter_blocks(path, 0, end))


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


def iter_blocks(path: Path, start: int = 0, end: int | None = None) -> Iterator[Block]:
    """Whole lines between two offsets in blocks of about 16 kB.

    Small blocks keep what is decoded from them in the processor's cache: 1 MB takes twice as long.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the with below
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error
    before = 0
    with file:
        file.seek(start)
        while start != end:
            data = file.read(BLOCK if end is None else min(BLOCK, end - start))
            data += file.readline() if data[-1:] != b"\n" else b""
            if not data:
                return
            lines = data.split(b"\n")
            if not lines[-1]:
                lines.pop()
            yield Block(start, before, data, lines)
            start += len(data)
            before += len(lines)


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
    decode = whole(TestCase)
    hashes = array("q")
    return chain.from_iterable(iter_case_blocks(path, report, labels, start, end, decode, hashes))


def iter_case_blocks(
    path: Path,
    report: Report,
    labels: Labels | None,
    start: int,
    end: int | None,
    decode: Decode[TestCase],
    hashes: array[int],
) -> Iterator[list[TestCase]]:
    """The same in lists of neighbours, a block of the file each.

    Sound lines are decoded a block at a time; a block in which anything is odd is read again line
    by line. Of the ids only a hash is kept (8 bytes a case), which tells whether to look closer:
    ``hashes``, empty at first, takes them.
    """
    blank = True
    for block in iter_blocks(path, start, end):
        blank = blank and block.data.isspace()
        cases = None if labels else _sound_cases(block, decode)
        if cases is None:
            cases = list(_checked_cases(path, report, labels, hashes, block))
        else:
            hashes.extend(map(hash, map(_ID, cases)))
        yield cases
    if recurs(hashes):
        _report_repeats(path, report, hashes, start, end)
    if blank and start == 0 and end is None:
        report(Problem(str(path), None, "", "holds no cases; write one JSON object a line"))


def _sound_cases(block: Block, decode: Decode[TestCase]) -> list[TestCase] | None:
    """The cases of a block; None when a line needs a closer look."""
    data = block.data
    if b"\r" in data or len(data) > MAX_LINE or data.startswith(BOM):
        return None
    if b"\\" in data and b"\\u0000" in data:
        return None
    try:
        cases = decode(block.lines)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if _say_little(cases) or not any(any(check_case(case)) for case in cases):
        return cases
    return None


def _say_little(cases: list[TestCase]) -> bool:
    """True when the cases have nothing in which check_case could find a problem."""
    return (
        all(map(str.strip, map(_ID, cases)))
        and all(map(str.strip, map(_QUESTION, cases)))
        and not any(any(map(field, cases)) for field in _NOT_EMPTY)
        and all(list(map(field, cases)).count(None) == len(cases) for field in _NOT_NULL)
    )


def recurs(*hashes: array[int]) -> bool:
    """True when a number stands there twice. Looks at a portion at a time, to save memory."""
    known = array("q")
    for part in hashes:
        known.extend(part)
    portions = 1 + len(known) // 200_000
    for rest in range(portions):
        portion = known if portions == 1 else [n for n in known if n % portions == rest]
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
        identity = canonical(parse_object(path, number, line, ignore) or {}).get("id")
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
    block: Block,
) -> Iterator[TestCase]:
    """The sound cases of a block, with every problem of the others reported."""
    for number, line in iter_lines(path, report, block.start, block.end, lines=block.before):
        raw = parse_object(path, number, line, report)
        if raw is None:
            continue
        raw = canonical(raw)
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

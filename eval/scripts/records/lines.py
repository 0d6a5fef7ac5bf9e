"""Reading a file of JSON lines: by lines with their numbers, or in blocks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from records.errors import Problem, StorageError
from records.file_access import open_plain

MAX_LINE = 4 * 1024 * 1024
"""Bytes of one line. A case is a question with its labels; more is a mistake or an attack."""

_BLOCK = 1 << 14

MAX_DEPTH = 100
"""Levels of lists and objects in a JSON value. No bot and no set needs them, and what can be read
deeper than 254 levels cannot be written again."""

BOM = b"\xef\xbb\xbf"

Report = Callable[[Problem], None]


class Block(NamedTuple):
    """Whole lines of a file: the offset of the first, how many stand before, and their bytes."""

    path: Path
    start: int
    before: int
    data: bytes
    lines: list[bytes]
    """The same without line ends. A last empty one, behind the last line end, is left out."""

    @property
    def end(self) -> int:
        """Offset just past the last line."""
        return self.start + len(self.data)


def iter_lines(
    path: Path, report: Report, limit: int | None = MAX_LINE
) -> Iterator[tuple[int, bytes]]:
    """Non-blank lines of a JSONL file, each with its number.

    Byte order mark, CRLF and lines over ``limit`` bytes are reported: the first two would give the
    same cases another hash on another machine.
    """
    return lines_at(path, report, limit=limit)


def lines_at(
    path: Path,
    report: Report,
    start: int = 0,
    end: int | None = None,
    limit: int | None = MAX_LINE,
    lines: int = 0,
) -> Iterator[tuple[int, bytes]]:
    """The same between two byte offsets, with ``lines`` lines before."""
    file = open_lines(path)
    name = str(path)
    crlf = start > 0 and lines > 0 and _has_crlf(path, start)
    with file:
        file.seek(start)
        position = start
        for number, line in enumerate(file, lines + 1):
            if end is not None:
                if position >= end:
                    return
                position += len(line)
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


def lines_from(path: Path, offsets: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The lines that begin at these offsets, in that order, each with its offset."""
    with open_plain(path) as file:
        for offset in offsets:
            file.seek(offset)
            yield offset, file.readline()


def holds(path: Path, needle: bytes) -> bool:
    """Whether a line of a file has these bytes. Raises StorageError if it cannot be read."""
    with open_lines(path) as file:
        return any(needle in line for line in file)


def open_lines(path: Path) -> BinaryIO:
    """Open a plain file to read its bytes. Raises StorageError if it cannot be read."""
    try:
        return open_plain(path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error


def _has_crlf(path: Path, end: int) -> bool:
    """True when a line before ``end`` ends with CRLF: it is reported once a file."""
    return any(b"\r\n" in block.data for block in iter_blocks(path, end))


def _too_deep() -> orjson.JSONDecodeError:
    return orjson.JSONDecodeError(f"it has more than {MAX_DEPTH} nested levels", "", 0)


def parse_json(data: bytes | str) -> Any:
    """The value of a JSON text. Raises orjson.JSONDecodeError, also for one nested too deeply."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("depth limit"):  # of its own, beyond a thousand levels
            raise _too_deep() from None
        raise
    # Counting brackets first costs nothing; walking over every value would.
    marks: tuple[Any, Any] = ("{", "[") if isinstance(data, str) else (b"{", b"[")
    brackets = sum(map(data.count, marks))
    if brackets > MAX_DEPTH and nests_deeper(value):
        raise _too_deep()
    return value


def nests_deeper(value: Any, limit: int = MAX_DEPTH) -> bool:
    """True when lists and objects of a value nest deeper than ``limit`` levels."""
    boxes = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limit):
        if not boxes:
            return False
        boxes = [
            item
            for box in boxes
            for item in (box.values() if isinstance(box, dict) else box)
            if isinstance(item, (dict, list))
        ]
    return bool(boxes)


def repeated_key(line: bytes, value: Any) -> str | None:
    """The first key that is in one object of a JSON text twice; None when there is none.

    Readers take its last value. ``value``: the parsed text.
    """
    if _is_as_long(line.strip(), value):
        return None

    def take(pairs: list[tuple[str, Any]]) -> None:
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:
                raise _Repeated(key)

    try:
        json.loads(line, object_pairs_hook=take)
    except _Repeated as error:
        return str(error)
    except (ValueError, RecursionError):
        pass
    return None


def repeat_keys(lines: Iterable[bytes]) -> bool:
    """Whether an object of some lines has a key twice, or a line needs a closer look."""
    whole = [line for line in lines if not line.isspace()]
    together = b"[" + b",".join(whole) + b"]"
    try:
        if _is_as_long(together, orjson.loads(together)):  # quicker than one by one
            return False
        return any(repeated_key(line, orjson.loads(line)) is not None for line in whole)
    except orjson.JSONDecodeError:
        return True


class _Repeated(Exception):
    """A key that is there twice."""


def _is_as_long(line: bytes, value: Any) -> bool:
    """Whether a value written again is as long as its text, but for blanks between its members.

    A member that was lost makes it shorter. So do escapes: then the caller looks closer, which
    takes ten times as long.
    """
    try:
        again = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    if len(line) == len(again):
        return True
    blanks = sum(line.count(mark) - again.count(mark) for mark in (b", ", b": "))
    return len(line) - len(again) == blanks


def parse_object(path: Path, number: int, line: bytes, report: Report) -> dict[str, Any] | None:
    """The line's JSON object, or None after reporting the fault."""
    try:
        raw = parse_json(line)
    except orjson.JSONDecodeError as error:
        problem = "holds NUL bytes" if b"\x00" in line else f"not JSON ({error.msg})"
        message = f"column {error.colno}: {problem}; a line is one JSON object"
        report(Problem(str(path), number, "", message))
        return None
    if not isinstance(raw, dict):
        report(Problem(str(path), number, "", "is not a JSON object; a line is one case in {…}"))
        return None
    if (key := repeated_key(line, raw)) is not None:
        report(Problem(str(path), number, key, "is there twice in one object; keep one of them"))
        return None
    return raw


def iter_blocks(path: Path, end: int | None = None) -> Iterator[Block]:
    """Whole lines in blocks of about 16 kB, up to a byte offset if one is given.

    Small blocks keep what is decoded from them in the processor's cache: 1 MB takes twice as long.
    """
    start = before = 0
    with open_lines(path) as file:
        while start != end:
            data = file.read(_BLOCK if end is None else min(_BLOCK, end - start))
            data += file.readline() if data[-1:] != b"\n" else b""
            if not data:
                return
            lines = data.split(b"\n")
            if not lines[-1]:
                lines.pop()
            yield Block(path, start, before, data, lines)
            start += len(data)
            before += len(lines)

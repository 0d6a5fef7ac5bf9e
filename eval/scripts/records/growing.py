"""Files of lines that others append to, read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import msgspec

from records.errors import Problem
from records.lines import Report
from records.shards import open_lines, size_of

BLOCK = 1 << 19
"""Bytes of one read: few enough that a screen's thread waits some milliseconds for its turn."""

Line = tuple[int, bytes]

Identity = tuple[int, int]

T = TypeVar("T")


class Replaced(Exception):
    """The file is gone, another one, or shorter now: what was read of it counts no more."""


class GrowingFile:
    """Reads ``path`` block by block.

    ``final``: the file grows no more, so a last line without its newline is a line."""

    def __init__(self, path: Path, *, final: bool = True) -> None:
        self.path = path
        self.final = final
        self.offset = self.lines = 0
        self.ended = False
        self._file: Identity | None = None

    def read(self, block: int = BLOCK) -> list[Line]:
        """The next complete lines with their offsets; [] when there is none now.

        Raises Replaced, and OSError when the file cannot be read.
        """
        try:
            file = open_lines(self.path)
        except FileNotFoundError:
            raise Replaced from None
        with file:
            sharded = self.path.is_dir()
            stat = self.path.stat() if sharded else os.fstat(file.fileno())
            size = size_of(self.path) if sharded else stat.st_size
            identity = (stat.st_dev, stat.st_ino)
            if (self._file not in (None, identity)) or size < self.offset:
                raise Replaced
            self._file = identity
            file.seek(self.offset)
            data = file.read(block)
            if data and not data.endswith(b"\n"):
                end = data.rfind(b"\n") + 1
                if end:
                    data = data[:end]
                else:  # one long line
                    data += file.readline()
        self.ended = self.offset + len(data) >= size
        if data and not data.endswith(b"\n") and not self.final:
            self.ended = True
            return []  # still being written
        lines: list[Line] = []
        for line in BytesIO(data):
            lines.append((self.offset, line))
            self.offset += len(line)
        self.lines += len(lines)
        return lines

    def decoded(
        self, lines: Sequence[Line], decode: Callable[[bytes], T], noun: str, report: Report
    ) -> Iterator[tuple[int, T]]:
        """Offset and record of the readable lines of the last block. ``report`` receives the others
        but empty ones, as no ``noun``."""
        for number, (offset, line) in enumerate(lines, self.lines - len(lines) + 1):
            try:
                record = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                if not line.isspace():
                    report(Problem(str(self.path), number, "", f"is not a {noun} ({error})"))
            else:
                yield offset, record


def line_at(path: Path, offset: int) -> bytes:
    """The line that begins at ``offset``; empty when the file is not there or shorter."""
    try:
        with open_lines(path) as file:
            file.seek(offset)
            return file.readline()
    except OSError:
        return b""

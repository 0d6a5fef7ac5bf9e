"""Files of lines, read block by block, and a line of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import msgspec

from records.errors import Problem
from records.file_access import open_plain
from records.lines import Report

BLOCK = 1 << 19
"""Bytes of one read: few enough that a screen's thread waits some milliseconds for its turn."""

Line = tuple[int, bytes]

T = TypeVar("T")


class BlockReader:
    """Reads the lines of ``path`` once, block by block.

    ``final``: whether a last line without its newline is a line; else it is still being written."""

    def __init__(self, path: Path, *, final: bool = True) -> None:
        self.path = path
        self.final = final
        self.offset = self.lines = 0
        self.ended = False

    def read(self, block: int = BLOCK) -> list[Line]:
        """The next complete lines with their offsets; [] at the end.

        Raises OSError when the file cannot be read.
        """
        with open_plain(self.path) as file:
            file.seek(self.offset)
            data = file.read(block)
            if data and not data.endswith(b"\n"):
                end = data.rfind(b"\n") + 1
                data = data[:end] or data + file.readline()  # one long line
            file.seek(self.offset + len(data))
            self.ended = not file.read(1)
        if data and not data.endswith(b"\n") and not self.final:
            return []
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
        with open_plain(path) as file:
            file.seek(offset)
            return file.readline()
    except OSError:
        return b""

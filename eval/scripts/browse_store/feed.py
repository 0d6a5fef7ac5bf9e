"""Complete lines of a JSONL file that may still grow, from where the last look ended."""

from __future__ import annotations

import os
from pathlib import Path

BLOCK = 1 << 19
"""Bytes of one read: few enough that the screen's thread waits some milliseconds for its turn."""
Line = tuple[int, bytes]
Identity = tuple[int, int]


class Replaced(Exception):
    """The file is gone, another one, or shorter now: what was read of it counts no more."""


class Feed:
    """Reads ``path`` block by block.

    ``final``: nobody appends to the file any more, so a last line without its newline is a line.
    """

    def __init__(self, path: Path, *, final: bool = True) -> None:
        self.path = path
        self.final = final
        self.offset = 0
        self.ended = False
        self._file: Identity | None = None

    def read(self, block: int = BLOCK) -> list[Line]:
        """The next complete lines with their offsets; [] when there is none now.

        Raises Replaced, and OSError when the file cannot be read.
        """
        try:
            file = open(self.path, "rb")  # noqa: SIM115 - closed by the with below
        except FileNotFoundError:
            raise Replaced from None
        with file:
            found = os.fstat(file.fileno())
            identity = (found.st_dev, found.st_ino)
            if (self._file not in (None, identity)) or found.st_size < self.offset:
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
        self.ended = self.offset + len(data) >= found.st_size
        if data and not data.endswith(b"\n") and not self.final:
            self.ended = True
            return []  # still being written
        lines: list[Line] = []
        for line in data.splitlines(keepends=True) if b"\r" not in data else _split(data):
            lines.append((self.offset, line))
            self.offset += len(line)
        return lines


def _split(data: bytes) -> list[bytes]:
    """Lines ended by newlines only, carriage returns left in them."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def line_at(path: Path, offset: int) -> bytes:
    """The line that begins at ``offset``; empty when the file is not there or shorter."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.readline()
    except OSError:
        return b""

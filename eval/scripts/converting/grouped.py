"""Lines of a large file by a key, without the file in memory: an index of byte ranges.

Runs and qrels have their lines of one topic together as a rule, so a topic is one range; where it
is not, it is several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Generic, TypeVar

from converting.sources import BOM

T = TypeVar("T")
Parse = Callable[[int, bytes], "tuple[str, T] | None"]
"""From a line's number and bytes to its key and value; None for a line that was refused."""


class Groups(Generic[T]):
    """The values of a file by key. ``parse`` is called for every line once while indexing, and
    again when a group is read. Memory: about 200 bytes a key."""

    def __init__(self, path: Path, parse: Parse[T], skip: int = 0) -> None:
        """Index the file; its first ``skip`` lines are a head."""
        self.path = path
        self._parse = parse
        self._ranges: dict[str, list[tuple[int, int, int]]] = {}
        self.lines = 0
        self._file: IO[bytes] | None = None
        last, place = "", 0
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                start, place = place, place + len(line)
                found = parse(number, _clean(line, number)) if _counts(line, number, skip) else None
                if found is None:
                    last = ""
                    continue
                self.lines += 1
                key = found[0]
                ranges = self._ranges.setdefault(key, [])
                if ranges and key == last:
                    ranges[-1] = (ranges[-1][0], place, ranges[-1][2])
                else:
                    ranges.append((start, place, number))
                last = key

    def __iter__(self) -> Iterator[str]:
        """The keys in the order of the file."""
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __contains__(self, key: str) -> bool:
        return key in self._ranges

    def read(self, key: str) -> Iterator[tuple[int, T]]:
        """Line number and value of each line of a key, in the order of the file."""
        ranges = self._ranges.get(key, ())
        if self._file is None and ranges:
            self._file = open(self.path, "rb")  # noqa: SIM115 - read until the import ends
        for start, end, number in ranges:
            assert self._file is not None
            self._file.seek(start)
            lines = self._file.read(end - start).removesuffix(b"\n").split(b"\n")
            for place, line in enumerate(lines, number):
                found = self._parse(place, _clean(line, place))
                if found is not None:
                    yield place, found[1]


def _clean(line: bytes, number: int) -> bytes:
    return (line.removeprefix(BOM) if number == 1 else line).rstrip(b"\r\n")


def _counts(line: bytes, number: int, skip: int) -> bool:
    return number > skip and bool(line.strip())

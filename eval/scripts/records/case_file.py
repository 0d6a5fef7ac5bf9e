"""A set of any size: its cases are read from the file again whenever they are needed."""

from __future__ import annotations

import copy
import os
from array import array
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import msgspec
import orjson

from records.cases import TestCase, canonical, case_from_dict
from records.errors import StorageError
from records.file_access import open_plain
from records.labels import check_set

_decode = msgspec.json.Decoder(TestCase).decode


class CaseFile(Sequence[TestCase]):
    """The cases of a set with their labels. Memory: the id and two offsets of each, and the labels.

    The file is kept open: one that takes its place changes nothing, and one that is changed itself
    is an error.
    """

    def __init__(self, path: Path, labels_dir: Path | None = None) -> None:
        """Check the set. Raises StorageError naming every problem, as read_cases does."""
        self._path = path
        self.ids, self._labels = check_set(path, labels_dir, lambda case: case.id)
        self._starts, self._ends = array("q"), array("q")
        self._file = open_plain(path)
        self._state = self._look()
        offset = 0
        for line in self._file:
            if not line.isspace():
                self._starts.append(offset)
                self._ends.append(offset + len(line))
            offset += len(line)

    def _look(self) -> tuple[int, int]:
        """What changes with the open file."""
        stat = os.fstat(self._file.fileno())
        return stat.st_mtime_ns, stat.st_size

    def __enter__(self) -> CaseFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def only(self, ids: Collection[str]) -> CaseFile:
        """The cases of these ids."""
        chosen = [number for number, case_id in enumerate(self.ids) if case_id in ids]
        part = copy.copy(self)
        part.ids = [self.ids[number] for number in chosen]
        part._starts = array("q", [self._starts[number] for number in chosen])
        part._ends = array("q", [self._ends[number] for number in chosen])
        return part

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[TestCase]:
        return map(self._case, range(len(self.ids)))

    @overload
    def __getitem__(self, place: int) -> TestCase: ...
    @overload
    def __getitem__(self, place: slice) -> list[TestCase]: ...
    def __getitem__(self, place: int | slice) -> TestCase | list[TestCase]:
        numbers = range(len(self.ids))[place]
        return self._case(numbers) if isinstance(numbers, int) else list(map(self._case, numbers))

    def _case(self, number: int) -> TestCase:
        case_id, start = self.ids[number], self._starts[number]
        size = self._ends[number] - start
        case = _parsed(os.pread(self._file.fileno(), size, start), self._labels.get(case_id))
        if case is None or case.id != case_id or self._look() != self._state:
            raise StorageError(
                f"{self._path}: was changed while its cases were being asked; restore the old file "
                "and resume, or begin a new run."
            )
        return case


def _parsed(line: bytes, labels: dict[str, Any] | None) -> TestCase | None:
    """The case of a line that was sound; None when it is no longer."""
    if not labels:
        try:
            return _decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            pass  # a set may name its fields otherwise
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return case_from_dict(canonical(raw) | (labels or {}))[0] if isinstance(raw, dict) else None

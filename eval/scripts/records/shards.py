"""A set, or the results of a run, cut into files that are read as one file.

Where a file of lines may stand, there may also be a folder of parts, ``part-00000.jsonl`` and so
on. Offsets and hashes are those of the parts joined, so that a file and its parts are the same
data. The parts may lie elsewhere, in an object store for instance: ``shards.json`` in the folder
then lists their addresses, and fsspec opens those that ``file_access.listed_in`` lets through.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple, cast

import msgspec

from records.errors import StorageError
from records.file_access import LimitedLines, listed_in, open_plain, read_whole

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PART = "part-{:05d}.jsonl"
SHARDS = "shards.json"
"""In a folder whose parts lie elsewhere: their addresses and sizes."""
_SCHEMA = 1

Address = Path | str
"""A local file, or an address that fsspec opens, such as ``s3://bucket/part-00000.jsonl``."""


class Part(NamedTuple):
    """One of the files, and which bytes it has of the whole."""

    address: Address
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


class ListedPart(msgspec.Struct):
    """A part in another place, as shards.json names it."""

    address: str
    size: Annotated[int, msgspec.Meta(ge=0)]


class ShardList(msgspec.Struct):
    """shards.json."""

    parts: list[ListedPart]
    schema: int = _SCHEMA


def is_sharded(path: Path) -> bool:
    """Whether the path is a folder of parts in place of a file of lines."""
    return path.is_dir()


def parts_of(path: Path) -> list[Part]:
    """The files that ``path`` consists of, in order: itself, or the parts in its folder.

    Raises OSError for what is not there, and StorageError for a folder that lacks a part.
    """
    if not path.is_dir():
        return [Part(path, 0, path.stat().st_size)]
    if (path / SHARDS).exists():
        list_file = path / SHARDS
        sizes: list[tuple[Address, int]] = [
            (listed_in(part.address, list_file), part.size) for part in _listed(list_file)
        ]
    else:
        sizes = [(part, part.stat().st_size) for part in sorted(path.glob("part-*.jsonl"))]
        for number, (part, _) in enumerate(sizes):
            if Path(part).name != PART.format(number):
                raise StorageError(
                    f"{path}: lacks {PART.format(number)}; restore it, or split the file again."
                )
    if not sizes:
        raise StorageError(
            f"{path}: is a folder without {PART.format(0)}; name a file, or a folder of parts."
        )
    parts, start = [], 0
    for address, size in sizes:
        parts.append(Part(address, start, size))
        start += size
    return parts


def _listed(path: Path) -> list[ListedPart]:
    try:
        listed = msgspec.json.decode(read_whole(path), type=ShardList)
    except msgspec.MsgspecError as error:
        raise StorageError(
            f"{path}: is not a list of parts ({error}); split the file again."
        ) from None
    if listed.schema != _SCHEMA:
        raise StorageError(
            f"{path}: schema: this version reads schema {_SCHEMA}, the file says {listed.schema}; "
            "use the version of the toolkit that wrote it."
        )
    return listed.parts


def open_address(address: Address) -> BinaryIO:
    """Open one file to read its bytes. Raises OSError, also for a store that does not answer."""
    if isinstance(address, Path):
        return open_plain(address)
    return cast(BinaryIO, file_system(address).open(address, "rb"))


def file_system(address: str) -> Any:
    """The file system by which fsspec opens an address. Raises StorageError when its driver is not
    installed."""
    try:
        import fsspec

        return fsspec.core.url_to_fs(address)[0]
    except (ImportError, ValueError) as error:
        scheme = address.partition("://")[0]
        raise StorageError(
            f"{address}: no installed package opens {scheme}:// ({error}); install fsspec and its "
            "driver."
        ) from None


def open_lines(path: Path) -> IO[bytes]:
    """Open a file, or the parts in a folder as if they were one, to read bytes at any offset."""
    if not path.is_dir():
        return open_plain(path)
    return LimitedLines(path, _JoinedParts(parts_of(path)))


def lines_from(path: Path, offsets: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The lines that begin at these offsets, in that order, each with its offset."""
    with open_lines(path) as file:
        for offset in offsets:
            file.seek(offset)
            yield offset, file.readline()


def holds(path: Path, needle: bytes) -> bool:
    """Whether a line of a file, or of the parts in a folder, has these bytes."""
    with open_lines(path) as file:
        return any(needle in line for line in file)


def size_of(path: Path) -> int:
    """Bytes of a file, or of all parts in a folder. Raises OSError."""
    return parts_of(path)[-1].end


def changed_at(path: Path) -> tuple[int, int]:
    """Time of the last change in ns, and the size: another pair says that the content changed.

    Raises OSError.
    """
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size if not path.is_dir() else size_of(path)


def sized_parts(path: Path) -> Iterator[tuple[Part, int | None]]:
    """Each part that has bytes, and how many; None of a file, which may grow."""
    if not path.is_dir():
        yield Part(path, 0, -1), None
        return
    for part in parts_of(path):
        if part.start < part.end:
            yield part, part.end - part.start


class _JoinedParts(io.RawIOBase):
    """The parts as one file. One of them is open at a time."""

    def __init__(self, parts: list[Part]) -> None:
        self._parts, self._starts = parts, [part.start for part in parts]
        self._at = 0
        self._open: tuple[int, BinaryIO] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._parts[-1].end}[whence]
        self._at = base + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        number = bisect_right(self._starts, self._at) - 1
        while number < len(self._parts) and self._parts[number].end <= self._at:
            number += 1  # an empty part
        if number >= len(self._parts):
            return 0
        part = self._parts[number]
        file = self._file(number)
        file.seek(self._at - part.start)
        data = file.read(min(len(view), part.end - self._at))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _file(self, number: int) -> BinaryIO:
        if self._open is not None and self._open[0] == number:
            return self._open[1]
        self._shut()
        file = open_address(self._parts[number].address)
        self._open = number, file
        return file

    def _shut(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def close(self) -> None:
        self._shut()
        super().close()

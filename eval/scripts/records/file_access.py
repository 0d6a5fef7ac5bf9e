"""Which files may be opened, and how much of them is read: every reader asks here.

A file that is read is a plain file. A link in a run folder leads into that folder, or to where the
user said: a folder from another person must not make a script open a device, wait at a pipe, or
write elsewhere. Lines and packed files have limits, so that
no file needs more memory than a machine has.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from records.errors import StorageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_WHOLE = 2**30
"""Largest file in bytes that is read whole; a mistake has more than any memory."""

MAX_SETTINGS = 4 * 2**20
"""Bytes of a file of settings, a profile or a request."""

LONGEST_LINE = 2**27
"""Bytes of a line in any file: twice the largest answer of a bot."""

MAX_UNPACKED, MAX_RATIO = 64 * 2**20, 250
"""A packed file may be this many times as large when unpacked, and always so many bytes. Traces
take up to 100 times the space; gz can make 1,032 bytes of one."""


class UnfitFile(StorageError, OSError):
    """A file that is not a plain file, or that exceeds a limit.

    Also an OSError, since whoever handles files that cannot be read handles these alike.
    """

    def __init__(self, path: Path, fault: str) -> None:
        StorageError.__init__(self, f"{path}: {fault}.")
        self.errno, self.strerror, self.filename = errno.EINVAL, fault, str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (Path(self.filename), self.strerror)


def too_long_a_line(path: Path) -> UnfitFile:
    """The error on a file with a line beyond the limit."""
    megabytes = LONGEST_LINE // 2**20
    return UnfitFile(path, f"has a line of more than {megabytes} MB; name the right file")


def _is_plain(status: os.stat_result) -> bool:
    """True for a plain file, and for the null device, which is the empty file."""
    if stat.S_ISREG(status.st_mode):
        return True
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file to read its bytes; a line of it has a limit. Raises OSError, which is an
    UnfitFile for a device, a pipe or a socket."""
    status = os.stat(path)  # before it is opened: to open a pipe is to wait, a device may act
    if not _is_plain(status) and not stat.S_ISDIR(status.st_mode):
        raise UnfitFile(path, "is not a plain file; name one")
    if status.st_size <= LONGEST_LINE:  # then no line is longer
        return open(path, "rb")  # the caller closes it
    return LimitedLines(path, io.FileIO(path))


class LimitedLines(io.BufferedReader):
    """A file whose lines have a limit: a longer one raises UnfitFile and fills no memory."""

    def __init__(self, path: Path, raw: io.RawIOBase) -> None:
        super().__init__(raw, 1 << 16)
        self._path = path

    def readline(self, size: int | None = -1, /) -> bytes:
        if size is not None and 0 <= size <= LONGEST_LINE:
            return super().readline(size)
        line = super().readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise too_long_a_line(self._path)
        return line

    def __next__(self) -> bytes:
        if line := self.readline():
            return line
        raise StopIteration


def read_whole(path: Path, most: int = MAX_WHOLE) -> bytes:
    """The bytes of a plain file. Raises OSError, and StorageError for one with more than
    ``most``."""
    with open_plain(path) as file:
        fits = os.fstat(file.fileno()).st_size <= most
        data = file.read(most + 1) if fits else b""
    if not fits or len(data) > most:
        raise UnfitFile(path, f"has more than {most // 2**20} MB; name the right file")
    return data


def check_packing(path: Path, packed: int, unpacked: int) -> None:
    """Raise UnfitFile if ``packed`` bytes of a file give more ``unpacked`` ones than its limit."""
    if unpacked > max(MAX_UNPACKED, MAX_RATIO * packed):
        raise UnfitFile(
            path,
            f"unpacks to more than {MAX_RATIO} times its size; unpack it yourself if it is right",
        )


class _GzipContent(io.RawIOBase):
    """What a gz file holds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed = open_plain(path)
        import gzip  # slow to load

        self._content = gzip.GzipFile(fileobj=self._packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        size = self._content.readinto(buffer)
        check_packing(self._path, self._packed.tell(), self._content.tell())
        return size

    def close(self) -> None:
        self._packed.close()
        super().close()


def open_unpacked(path: Path) -> BinaryIO:
    """A plain file, or the content of one whose name ends in ``.gz``, to read from the beginning.

    Raises OSError, also while it is read, and EOFError where a packed file ends too early.
    """
    return LimitedLines(path, _GzipContent(path)) if path.suffix == ".gz" else open_plain(path)


_NAMED: set[str] = set()


def allow_addresses(addresses: Iterable[str]) -> None:
    """Let links in runs lead to files below these folders, which the user named."""
    _NAMED.update(address.rstrip("/") for address in addresses if address.strip("/ "))


def _is_named(address: str) -> bool:
    return any(address.startswith(f"{named}/") for named in _NAMED)


def _real(path: Path) -> Path:
    """Where a path leads; unlike Path.resolve it takes links in a circle, too."""
    return Path(os.path.realpath(path))


def check_folder(folder: Path) -> None:
    """Check that a folder from another person, such as a run, has plain files and folders alone and
    no link out of it: scripts read and write below it. Raises StorageError for anything else."""
    try:
        odd_entries = list(_odd_entries(folder)) if folder.exists() else []
    except OSError as error:
        raise StorageError(f"{error.filename}: cannot be read ({error.strerror}).") from None
    for path, is_link in odd_entries:
        if not is_link:
            raise StorageError(f"{path}: is not a plain file; remove it.")
        target = _real(path)
        if not target.is_relative_to(_real(folder)) and not _is_named(f"{target}"):
            raise StorageError(
                f"{path}: is a link to {target}, outside of {folder}; put the file there, or if it "
                f'is yours, write addresses = ["{target.parent}"] into eval/config.toml, or set '
                "RAG_EVAL_ADDRESSES."
            )


def _odd_entries(folder: Path) -> Iterator[tuple[Path, bool]]:
    """What is below a folder but plain files and folders, and whether it is a link."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _odd_entries(Path(entry.path))
            elif not entry.is_file(follow_symlinks=False):
                yield Path(entry.path), entry.is_symlink()

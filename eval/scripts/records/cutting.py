"""Cutting a file of lines into parts, and putting the parts together again; see ``shards``."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from records.errors import StorageError
from records.files import replace_json, scratch_folder
from records.shards import (
    PART,
    SHARDS,
    Address,
    ListedPart,
    ShardList,
    file_system,
    open_address,
    parts_of,
)
from records.syncing import make_folder, move_into_place, sync_folder

Lines = Iterable[tuple[bytes, str]]
"""Lines with their newline, each with the id of its case."""

_COPIED = 1 << 20


def write_parts(
    target: Path,
    lines: Lines,
    total: int,
    shards: int,
    address: str = "",
    begins: Callable[[str], bool] | None = None,
    later: Container[str] = (),
) -> list[str]:
    """Put a folder of up to ``shards`` parts at ``target``, whole or not at all.

    ``total``: bytes of all lines together; a part ends behind the first case at which its share
    is full, so that no case stands in two parts, and no part begins with a case of ``later``.
    ``begins``: tells instead whether a part begins with a case. ``address``: where the parts go,
    such as ``s3://bucket/run``; the folder then holds their list. An older folder there is
    replaced, so the lines must come from elsewhere. Returns the id of the first case of each part.
    Raises StorageError when something cannot be written.
    """
    try:
        make_folder(target.parent)
        with scratch_folder(target.parent, f".{target.name}.") as scratch:
            folder = scratch / target.name
            folder.mkdir()
            writer = _PartsWriter(folder, address)
            with contextlib.closing(writer):
                _fill(writer, lines, total, shards, begins, later)
            if address:
                replace_json(folder / SHARDS, msgspec.to_builtins(ShardList(writer.listed)))
            shutil.rmtree(target, ignore_errors=True)
            sync_folder(folder)
            move_into_place(folder, target)
    except OSError as error:
        why = error.strerror or error
        raise StorageError(f"{address or target}: cannot be written ({why}).") from None
    return writer.first


def _fill(
    writer: _PartsWriter,
    lines: Lines,
    total: int,
    shards: int,
    begins: Callable[[str], bool] | None,
    later: Container[str],
) -> None:
    written, before = 0, ""
    for line, case_id in lines:
        if begins is None:
            full = written * shards >= total * writer.count and writer.count < shards
        else:
            full = begins(case_id)
        if not writer.count or (full and case_id != before and case_id not in later):
            writer.begin(case_id)
        writer.write(line)
        written += len(line)
        before = case_id
    if not writer.count:
        writer.begin("")  # an empty file has one empty part


class _PartsWriter:
    """Writes one part after the other."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder, self._address = folder, address.rstrip("/")
        self._file: BinaryIO | None = None
        self.listed: list[ListedPart] = []
        self.first: list[str] = []

    @property
    def count(self) -> int:
        return len(self.first)

    def begin(self, case_id: str) -> None:
        self.close()
        name = PART.format(self.count)
        self.first.append(case_id)
        if self._address:
            where = f"{self._address}/{name}"
            system = file_system(where)
            system.makedirs(where.rpartition("/")[0], exist_ok=True)
            self._file = cast(BinaryIO, system.open(where, "wb"))
            self.listed.append(ListedPart(where, 0))
        else:
            self._file = open(self._folder / name, "wb")  # noqa: SIM115 - see close()

    def write(self, line: bytes) -> None:
        assert self._file is not None
        self._file.write(line)
        if self.listed:
            self.listed[-1].size += len(line)

    def close(self) -> None:
        if self._file is not None:
            if not self._address:
                self._file.flush()
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None


def join_parts(source: Path, target: Path) -> None:
    """Put the parts of ``source`` together as one file, which appears whole or not at all.

    Raises StorageError when one cannot be read, or the file cannot be written.
    """
    temporary = target.with_name(f".{target.name}.joining")
    try:
        with open(temporary, "wb") as file:
            for address in (part.address for part in parts_of(source)):
                for block in _blocks(address):
                    file.write(block)
            file.flush()
            os.fsync(file.fileno())
        move_into_place(temporary, target)
    except OSError as error:
        why = error.strerror or error
        raise StorageError(f"{source}: cannot be joined as {target} ({why}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def _blocks(address: Address) -> Iterator[bytes]:
    """The bytes of a part, which ends with a newline."""
    last = b"\n"
    with open_address(address) as file:
        while block := file.read(_COPIED):
            last = block[-1:]
            yield block
    if last != b"\n":
        yield b"\n"

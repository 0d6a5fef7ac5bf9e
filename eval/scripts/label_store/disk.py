"""The set on disk: reading, replacing, dated backups, and clearing up after a kill."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from records.errors import StorageError
from records.files import replace_bytes

KEPT: Final = 10
STAMP: Final = r"\d{8}-\d{6}"


def back_up(path: Path, data: bytes, at: str) -> Path:
    """Write `data` beside `path` as ``<name>.<date>-<time>.bak``; keep the newest `KEPT`.

    Raises StorageError when it cannot be written.
    """
    stamp = re.sub(r"[^0-9T]", "", at.partition(".")[0]).replace("T", "-")
    copy = path.with_name(f"{path.name}.{stamp}.bak")
    replace_bytes(copy, data)
    pattern = re.compile(re.escape(path.name) + rf"\.{STAMP}\.bak")
    copies = sorted(p for p in path.parent.iterdir() if pattern.fullmatch(p.name))
    for old in copies[:-KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()
    return copy


def read_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises StorageError, one sentence."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise StorageError(
            f"{path}: no such file; name the set with --eval-set, or make an empty one to start."
        ) from None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from error


def read_or_empty(path: Path) -> bytes:
    """The bytes of a file, none when it is absent."""
    return read_bytes(path) if path.exists() else b""


def replace(path: Path, data: bytes) -> None:
    """Put `data` at `path` in one step. Raises StorageError, also for a file set read-only."""
    if is_read_only(path):
        raise StorageError(f"{path} is read-only; make it writable, the labels are in the journal.")
    replace_bytes(path, data)


def is_read_only(path: Path) -> bool:
    """Does the file's owner forbid writing? Replacing it would work all the same, and surprise."""
    return path.exists() and not (os.access(path, os.W_OK) and path.stat().st_mode & 0o222)

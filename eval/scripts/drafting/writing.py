"""Where drafts go: a new file that is never overwritten, or the end of a set, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson

import storage
from drafting.cases import Case
from storage import StorageError


def write_new(path: Path, cases: Sequence[Case]) -> None:
    """Make a file of the cases. Raises StorageError when there is one already."""
    if path.exists():
        raise StorageError(
            f"{path}: exists already, and is not overwritten; choose another --output, or "
            "--append-to it."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    storage.replace_bytes(path, _lines(cases))


def append(path: Path, cases: Sequence[Case], known: bytes) -> None:
    """Put the cases at the end of a set in one step; every byte before them stays.

    ``known``: the set as it was read; when it has changed since, nothing is written. The lock is
    the one that a labelling session holds. Raises StorageError.
    """
    with storage.locked(path):
        if path.read_bytes() != known:
            raise StorageError(f"{path}: changed meanwhile; nothing was added. Try again.")
        end = b"" if not known or known.endswith(b"\n") else b"\n"
        storage.replace_bytes(path, known + end + _lines(cases))


def _lines(cases: Sequence[Case]) -> bytes:
    return b"".join(orjson.dumps(case) + b"\n" for case in cases)

"""Vectors on disk by key: one SQLite file, shared between threads and processes, safe to delete.

A cache must never stop the work: a damaged file is built anew, and a place that cannot be written
is warned of once and then left alone.
"""

from __future__ import annotations

import contextlib
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

T = TypeVar("T")

TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
)
KEYS_A_QUERY = 500
"""SQLite's limit of variables in one statement is 999 in its oldest builds."""
LOCK_SECONDS = 60


class VectorCache:
    """Float32 vectors by byte key in the SQLite file ``path``; None keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        """The vectors that are there, by key; a key without a vector is left out."""
        import numpy as np

        def select(database: sqlite3.Connection) -> dict[bytes, Vector]:
            found: dict[bytes, Vector] = {}
            for start in range(0, len(keys), KEYS_A_QUERY):
                part = keys[start : start + KEYS_A_QUERY]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
                rows = database.execute(query, part)
                found.update((key, np.frombuffer(blob, dtype="<f4")) for key, blob in rows)
            return found

        return self._transaction(select) or {}

    def write(self, vectors: Iterable[tuple[bytes, Vector]]) -> None:
        """Keep the vectors, all or none of them; a key that is there already stays as it is."""
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors]

        def insert(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)

        self._transaction(insert)

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """``work`` in one transaction of its own connection; None when there is no usable file."""
        path = self._path
        if path is None:
            return None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return _run(path, work)
            except sqlite3.OperationalError:  # locked, read-only, disk full: the file is sound
                raise
            except sqlite3.DatabaseError:
                path.unlink(missing_ok=True)
                return _run(path, work)
        except (OSError, sqlite3.Error) as error:
            self._path = None
            warnings.warn(f"{path}: goes unused, embeddings are not kept: {error}", stacklevel=4)
            return None


def _run(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    with (
        contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as database,
        database,
    ):
        database.execute(TABLE)
        return work(database)

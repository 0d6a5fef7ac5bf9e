"""The index of watched traces: numbers, hashes, and where in which file each span stands; no text.

One SQLite file. What was read of a file and how far reading came are committed together, so that a
process that is killed at any moment loses nothing and counts nothing twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from records.errors import StorageError
from records.runs import CACHE_DIR

VERSION = 3

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counts (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, size INTEGER NOT NULL, changed INTEGER NOT NULL,
    head INTEGER NOT NULL, head_hash BLOB NOT NULL, tail INTEGER NOT NULL,
    tail_size INTEGER NOT NULL, tail_hash BLOB NOT NULL, offset INTEGER NOT NULL,
    shape TEXT NOT NULL, stack TEXT NOT NULL);
CREATE TABLE traces (
    number INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, latest INTEGER NOT NULL,
    day INTEGER, session INTEGER, applies INTEGER, bad INTEGER, latency INTEGER, length INTEGER,
    weight REAL NOT NULL DEFAULT 1);
CREATE INDEX open_traces ON traces (latest) WHERE day IS NULL;
CREATE INDEX sessions ON traces (session) WHERE session IS NOT NULL;
CREATE INDEX days ON traces (day) WHERE day IS NOT NULL;
CREATE TABLE spans (
    key INTEGER NOT NULL, span INTEGER NOT NULL, file INTEGER NOT NULL, offset INTEGER NOT NULL,
    size INTEGER NOT NULL, kind INTEGER NOT NULL, flags INTEGER NOT NULL, start INTEGER NOT NULL,
    end INTEGER NOT NULL, length INTEGER, documents INTEGER, session INTEGER,
    weight REAL, PRIMARY KEY (key, span)) WITHOUT ROWID;
CREATE TABLE ratings (
    key INTEGER NOT NULL, span INTEGER NOT NULL, rater INTEGER NOT NULL, name INTEGER NOT NULL,
    at TEXT NOT NULL, score REAL, bare REAL, UNIQUE (key, span, rater, name, at, score, bare));
"""


class WatchedFile(NamedTuple):
    """How far a file was read. By the hashes of its ``head`` first bytes and of ``tail_size`` bytes
    at ``tail``, near ``offset``, it is known again under another name."""

    id: int
    path: str
    size: int
    changed: int
    head: int
    head_hash: bytes
    tail: int
    tail_size: int
    tail_hash: bytes
    offset: int
    shape: str
    stack: str


class SpanRow(NamedTuple):
    """One span: the trace it belongs to, its place, and what the figures need of it.

    ``key``, ``span`` and ``session`` are hashes; ``offset`` and ``size`` are those of the JSON
    value that holds it. Times in microseconds since 1970, 0 when unknown.
    """

    key: int
    span: int
    file: int
    offset: int
    size: int
    kind: int
    flags: int
    start: int
    end: int
    length: int | None
    documents: int | None
    session: int | None
    weight: float | None = None
    """The number of traces that an outermost span represents; None: one."""


class RatingRow(NamedTuple):
    """A person's rating of an answer. ``key``, ``span``, ``rater`` (by the key of ids), ``name``:
    hashes, 0 where not told. ``score``: 0 (bad) to 1 (good); ``bare``: a number without a scale."""

    key: int
    span: int
    rater: int
    name: int
    at: str
    score: float | None
    bare: float | None


class TraceRow(NamedTuple):
    """A counted trace. ``day`` counts from 1970-01-01; ``applies`` and ``bad`` have a bit a figure;
    ``latency`` in microseconds, ``length`` in characters; None when the spans do not tell."""

    key: int
    day: int
    session: int | None
    applies: int
    bad: int
    latency: int | None
    length: int | None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class DayCounts:
    """Units of one day, and how many of them are bad; a unit is a session, or a trace without.

    ``weight``, ``bad_weight``: the same where a head sampler lets some stand for more than others;
    None where all stand for as many. ``effective``: as many units of one weight say as much.
    """

    day: int
    bad: int
    n: int
    weight: float | None = None
    bad_weight: float | None = None
    effective: float | None = None

    @property
    def as_counts(self) -> tuple[int, int]:
        """Bad units and units as counts of one weight, which say neither more nor less."""
        if self.effective is None or not self.weight or self.bad_weight is None:
            return self.bad, self.n
        n = max(1, round(self.effective))
        return round(self.bad_weight / self.weight * n), n


_KEYS_AT_ONCE = 500
"""Keys in one query."""


def marks(keys: Sequence[int]) -> str:
    """The question marks of a query that takes so many keys."""
    return ",".join("?" * len(keys))


def hash_of(text: str) -> int:
    """A number of 63 bits for an id, the same on every machine."""
    return _hash_of(text) if len(text) <= _LONGEST_ID else _hash_of.__wrapped__(text)


_LONGEST_ID = 100
"""Characters of an id that is kept in memory."""


@lru_cache(maxsize=4096)
def _hash_of(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


UNENDED = -2
"""The day of a trace that waits for its outermost span: it is looked at again when more comes."""

SHARE = 1 << 63
"""Keys are spread evenly from 0 to here: those below a share of it are that share of the traces."""


def index_path(folder: Path, cache_dir: Path = CACHE_DIR) -> Path:
    """The path of the index of a folder of traces."""
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    return cache_dir / "watch" / f"{digest}.sqlite"


class TraceIndex:
    """The index of one folder. Every method that writes is one transaction; ``database``: as
    SQLite has it."""

    def __init__(self, path: Path) -> None:
        """Open or make an index. Raises StorageError when it cannot be used."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.database = sqlite3.connect(path, isolation_level=None, timeout=10)
            self.database.execute("PRAGMA journal_mode = WAL")
            self.database.execute("PRAGMA synchronous = NORMAL")
            self.database.execute("PRAGMA cache_size = -16000")
            self._make()
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StorageError(
                f"{path}: cannot be used as an index ({reason}); delete it, or choose another "
                "--index. All traces are then read again."
            ) from None

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> TraceIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make(self) -> None:
        with self.transaction():
            (version,) = self.database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _TABLES.split(";")[:-1]:
                    self.database.execute(statement)
                self.database.execute(f"PRAGMA user_version = {VERSION}")
                version = VERSION
        if version != VERSION:
            raise StorageError(
                f"{self.path}: this version reads index {VERSION}, the file is {version}; delete "
                "it, or choose another --index. All traces are then read again."
            )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; a process that dies within it has written nothing."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")

    def fact(self, name: str) -> Any:
        """The value stored under a name; None when there is none."""
        row = self.database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else orjson.loads(row[0])

    def set_fact(self, name: str, value: Any) -> None:
        """Store a plain value under a name."""
        with self.transaction():
            self.database.execute(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, orjson.dumps(value).decode())
            )

    def counts(self) -> dict[str, int]:
        """All counts by name, over all looks."""
        return dict(self.database.execute("SELECT name, n FROM counts ORDER BY name"))

    def _add_counts(self, counts: Mapping[str, int]) -> None:
        self.database.executemany(
            "INSERT INTO counts VALUES (?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            [(name, n) for name, n in counts.items() if n],
        )

    def files(self) -> list[WatchedFile]:
        """Every file that was ever read."""
        return [WatchedFile(*row) for row in self.database.execute("SELECT * FROM files")]

    def new_file(self, path: str, head: int, head_hash: bytes, no_tail: bytes) -> WatchedFile:
        """A row for an unread file; ``no_tail``: the hash of no bytes."""
        with self.transaction():
            cursor = self.database.execute(
                "INSERT INTO files VALUES (NULL, ?, 0, 0, ?, ?, 0, 0, ?, 0, '', '')",
                (path, head, head_hash, no_tail),
            )
        number = int(cursor.lastrowid or 0)
        return WatchedFile(number, path, 0, 0, head, head_hash, 0, 0, no_tail, 0, "", "")

    def add(
        self,
        file: WatchedFile,
        spans: Sequence[SpanRow],
        counts: Counter[str],
        now: int,
        ratings: Sequence[RatingRow] = (),
    ) -> None:
        """Store the rows read from a file by ``now`` (microseconds), and how far reading came.

        A span that is there already counts as repeated, one of a trace that was counted as late;
        neither changes anything.
        """
        with self.transaction():
            counted = self._counted({span.key for span in spans})
            fresh = [span for span in spans if span.key not in counted]
            in_order = sorted(fresh, key=itemgetter(0))  # of the table: pages are written once
            before = self.database.total_changes
            self.database.executemany(
                "INSERT OR IGNORE INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                in_order,
            )
            added = self.database.total_changes - before
            counts["spans that are repeated"] += len(fresh) - added
            counts["spans of traces that were counted before"] += len(spans) - len(fresh)
            latest: dict[int, int] = {}
            for span in fresh:
                end = min(max(span.end, span.start), now)  # a clock may be ahead
                latest[span.key] = max(latest.get(span.key, 0), end)
            latest = {key: end or now for key, end in latest.items()}
            self.database.executemany(
                "INSERT INTO traces (key, latest) VALUES (?, ?) ON CONFLICT (key) DO UPDATE "
                f"SET latest = max(latest, excluded.latest), day = nullif(day, {UNENDED})",
                latest.items(),
            )
            self.database.executemany(
                "INSERT OR IGNORE INTO ratings VALUES (?, ?, ?, ?, ?, ?, ?)", ratings
            )
            self._add_counts(counts)
            self._store_file(file)

    def _counted(self, keys: Iterable[int]) -> set[int]:
        listed = list(keys)
        counted: set[int] = set()
        for first in range(0, len(listed), _KEYS_AT_ONCE):
            part = listed[first : first + _KEYS_AT_ONCE]
            query = f"SELECT key FROM traces WHERE day != {UNENDED} AND key IN ({marks(part)})"
            counted.update(row[0] for row in self.database.execute(query, part))
        return counted

    def _store_file(self, file: WatchedFile) -> None:
        self.database.execute(
            "UPDATE files SET path = ?2, size = ?3, changed = ?4, head = ?5, head_hash = ?6, "
            "tail = ?7, tail_size = ?8, tail_hash = ?9, offset = ?10, shape = ?11, stack = ?12 "
            "WHERE id = ?1",
            file,
        )

    def due(self, until: int, most: int) -> list[tuple[int, list[SpanRow]]]:
        """Traces whose last span ended by ``until`` and that were not counted, in the order in
        which they were first read: at most so many, each key with its spans."""
        query = "SELECT number, key FROM traces WHERE day IS NULL AND latest <= ? LIMIT ?"
        keys = [key for _, key in sorted(self.database.execute(query, (until, most)))]
        spans: dict[int, list[SpanRow]] = {key: [] for key in keys}
        for first in range(0, len(keys), _KEYS_AT_ONCE):
            part = keys[first : first + _KEYS_AT_ONCE]
            query = f"SELECT * FROM spans WHERE key IN ({marks(part)})"
            for row in self.database.execute(query, part):
                spans[row[0]].append(SpanRow._make(row))
        return list(spans.items())

    def spans(self, key: int) -> list[SpanRow]:
        """The spans of a trace."""
        rows = self.database.execute("SELECT * FROM spans WHERE key = ?", (key,))
        return [SpanRow._make(row) for row in rows]

    def count(
        self,
        traces: Sequence[TraceRow],
        ignored: Sequence[int],
        unended: Sequence[int],
        counts: Counter[str],
    ) -> None:
        """Count traces, once and for all; those ignored are no answers of a bot, and those that
        have not ended wait."""
        with self.transaction():
            self.database.executemany(
                "UPDATE traces SET day = ?2, session = ?3, applies = ?4, bad = ?5, latency = ?6, "
                "length = ?7, weight = ?8 WHERE key = ?1",
                traces,
            )
            self.database.executemany(
                "UPDATE traces SET day = ? WHERE key = ?", [(UNENDED, key) for key in unended]
            )
            self.database.executemany(
                "UPDATE traces SET day = -1 WHERE key = ?", [(key,) for key in ignored]
            )
            self.database.executemany(
                "DELETE FROM spans WHERE key = ?", [(key,) for key in ignored]
            )
            self._add_counts(counts)

    def open_traces(self) -> int:
        """Traces that wait for their last span to be old enough."""
        query = f"SELECT count(*) FROM traces WHERE day IS NULL OR day = {UNENDED}"
        return int(self.database.execute(query).fetchone()[0])

    def totals(self, first: int = 0, last: int = 1 << 40) -> tuple[int, int]:
        """Counted traces and units between two days."""
        query = (
            "SELECT coalesce(sum(n), 0), count(*) FROM (SELECT count(*) n FROM traces "
            "WHERE day BETWEEN ? AND ? GROUP BY day, coalesce(session, key))"
        )
        traces, units = self.database.execute(query, (first, last)).fetchone()
        return int(traces), int(units)

    def days(self) -> tuple[int, int] | None:
        """First and last day of the counted traces."""
        low, high = self.database.execute(
            "SELECT min(day), max(day) FROM traces WHERE day >= 0"
        ).fetchone()
        return None if low is None else (low, high)

    def quantile(self, column: str, q: float, first: int, last: int) -> int | None:
        """The value of ``latency`` or ``length`` that a share ``q`` of the traces of some days does
        not exceed; None when no trace has one."""
        if column not in ("latency", "length"):
            raise ValueError(column)
        where = f"FROM traces WHERE day BETWEEN ? AND ? AND {column} IS NOT NULL"
        (n,) = self.database.execute(f"SELECT count(*) {where}", (first, last)).fetchone()
        if not n:
            return None
        skip = min(n - 1, max(0, -(-int(q * n * 1_000_000) // 1_000_000) - 1))
        row = self.database.execute(
            f"SELECT {column} {where} ORDER BY {column} LIMIT 1 OFFSET ?", (first, last, skip)
        ).fetchone()
        return int(row[0])

    def daily(
        self, figures: Mapping[str, tuple[int, str]], first: int, last: int
    ) -> dict[str, list[DayCounts]]:
        """For each figure its units by day. A figure: the bit in ``applies``, and the condition in
        SQL under which a trace is bad. A unit is bad when any of its traces is."""
        inner = ", ".join(
            f"max(CASE WHEN applies & {bit} THEN ({condition}) END) f{number}"
            for number, (bit, condition) in enumerate(figures.values())
        )
        sums = "sum(f{0}), count(f{0}), sum(f{0} * w), sum(w * (f{0} IS NOT NULL)), "
        sums += "sum(w * w * (f{0} IS NOT NULL))"
        outer = ", ".join(sums.format(number) for number in range(len(figures)))
        query = (
            f"SELECT day, min(w) = max(w), {outer} FROM (SELECT day, max(weight) w, {inner} FROM "
            "traces WHERE day BETWEEN ? AND ? GROUP BY day, coalesce(session, key)) GROUP BY day "
            "ORDER BY day"
        )
        series: dict[str, list[DayCounts]] = {name: [] for name in figures}
        for day, is_even, *cells in self.database.execute(query, (first, last)):
            for number, name in enumerate(figures):
                bad, n, bad_weight, weight, squares = cells[5 * number : 5 * number + 5]
                if n:
                    weights = (weight, bad_weight, None if is_even else weight**2 / squares)
                    series[name].append(DayCounts(day, int(bad or 0), n, *weights))
        return series

    def earlier_in_session(self, key: int, most: int) -> list[int]:
        """Keys of the counted traces that began before a trace in its session, in that order."""
        query = (
            "SELECT t.key, min(s.start) began FROM traces o JOIN traces t ON t.session = o.session "
            "JOIN spans s ON s.key = t.key WHERE o.key = ?1 AND t.day >= 0 AND t.key != ?1 "
            "GROUP BY t.key HAVING began < (SELECT min(start) FROM spans WHERE key = ?1) "
            "ORDER BY began DESC LIMIT ?2"
        )
        return [row[0] for row in self.database.execute(query, (key, most))][::-1]

    def keys_where(self, bit: int, condition: str, first: int, most: int) -> list[int]:
        """Keys of the traces since a day that are bad by a figure, smallest first."""
        query = (
            f"SELECT key FROM traces WHERE day >= ? AND applies & ? AND ({condition}) "
            "ORDER BY key LIMIT ?"
        )
        return [row[0] for row in self.database.execute(query, (first, bit, most))]

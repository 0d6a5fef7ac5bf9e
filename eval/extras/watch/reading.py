"""Reads what is new in the files of traces into the index, and knows a renamed file again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from extras.watch.span_stream import DAMAGED, Cut, Position, cuts, open_spans
from extras.watch.summary import Place, SpanSummaries, keys_of
from extras.watch.trace_index import SpanRow, TraceIndex, WatchedFile
from formats.shared.rows import JSON_ENDINGS, files_below
from records.errors import StorageError

_HEAD = 1024
_BYTES_A_STEP = 32 << 20
_SPANS_A_STEP = 16_000
_CHARACTERS_A_STEP = 2 << 20


@dataclass
class TraceReading:
    """The result of reading in one look. ``bytes_read``: of the files, unpacked. ``problems``:
    files that could not be read, in a sentence each."""

    files: int = 0
    bytes_read: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    traces: int = 0
    keys: list[str] = field(default_factory=list)
    """The keys of the first value without spans."""


def trace_files(folder: Path) -> tuple[list[Path], int]:
    """The files of traces below a folder, and how many others there are."""
    if folder.is_file():
        return [folder], 0
    if not folder.is_dir():
        raise StorageError(f"{folder}: no such folder of traces.")
    return files_below(folder, JSON_ENDINGS)


def read_new(index: TraceIndex, folder: Path, now: int) -> TraceReading:
    """Read the new parts of the files of a folder into the index. ``now``: microseconds."""
    paths, others = trace_files(folder)
    look = TraceReading(files=len(paths))
    look.counts["files with other endings"] = others
    for path, known in _recognised(index, paths, look):
        try:
            _read_file(index, path, known, now, look)
        except OSError as error:
            look.problems.append(f"{path}: cannot be read ({error.strerror or error}).")
    return look


def _recognised(
    index: TraceIndex, paths: list[Path], look: TraceReading
) -> Iterator[tuple[Path, WatchedFile | None]]:
    """Each file with what is known of it; a file that was renamed or packed is known again."""
    rows = index.files()
    by_path = {row.path: row for row in rows}
    free = {row.id: row for row in rows}
    unknown = []
    for path in paths:
        row = by_path.get(str(path))
        if row is not None and _is_same(path, row, look):
            del free[row.id]
            yield path, row
        else:
            unknown.append(path)
    for path in unknown:
        match = next((row for row in free.values() if row.head and _is_same(path, row, look)), None)
        if match is not None:
            del free[match.id]
        yield path, match


def _is_same(path: Path, row: WatchedFile, look: TraceReading) -> bool:
    """Whether a file begins, and goes on where reading ended, as the one that was read."""
    try:
        status = path.stat()
        if row.path == str(path) and (row.size, row.changed) == (
            status.st_size,
            status.st_mtime_ns,
        ):
            return True
        with open_spans(path) as file:
            return (
                _hash(file.read(row.head)) == row.head_hash
                and _hash(_at(file, row.tail, row.tail_size)) == row.tail_hash
            )
    except OSError:
        return False


def _at(file: IO[bytes], offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def _read_file(
    index: TraceIndex, path: Path, known: WatchedFile | None, now: int, look: TraceReading
) -> None:
    status = path.stat()
    stamp = (status.st_size, status.st_mtime_ns)
    if known is not None and known.path == str(path) and (known.size, known.changed) == stamp:
        return
    with open_spans(path) as file:
        if known is None:
            head = file.read(_HEAD)
            row = index.new_file(str(path), len(head), _hash(head), _hash(b""))
        else:
            row = known._replace(path=str(path))
        _read_cuts(index, file, row, now, look, stamp)


def _read_cuts(
    index: TraceIndex,
    file: IO[bytes],
    row: WatchedFile,
    now: int,
    look: TraceReading,
    stamp: tuple[int, int],
) -> None:
    """Read a file to its end in steps; what a step read and how far it came go in together."""
    counts: Counter[str] = Counter()
    summaries = SpanSummaries(counts)
    spans: list[SpanRow] = []
    begun = row.offset

    def step(row: WatchedFile) -> None:
        summaries.mark_refusals(spans)
        index.add(row, spans, counts, now, summaries.ratings)
        summaries.ratings.clear()
        look.counts.update(counts)
        counts.clear()
        spans.clear()

    last: Cut | None = None
    fault: OSError | None = None
    try:
        for cut in cuts(file, Position(row.offset, row.shape, row.stack), counts):
            last = cut
            if cut.data:
                before = len(spans)
                try:
                    spans += summaries.of(cut.data, Place(row.id, cut.offset, len(cut.data)))
                    if len(spans) == before and not look.keys:
                        look.keys = keys_of(cut.data)
                except ValueError:
                    counts[DAMAGED] += 1
            many = (
                len(spans) + len(summaries.ratings) >= _SPANS_A_STEP
                or summaries.characters >= _CHARACTERS_A_STEP
            )
            if many or cut.after.offset - begun >= _BYTES_A_STEP:
                row = _behind(row, cut)
                step(row)
                look.bytes_read += row.offset - begun
                begun = row.offset
    except OSError as error:  # what was read before it stays
        fault = error
    if last is not None:
        row = _behind(row, last)
        look.bytes_read += row.offset - begun
    step(row._replace(size=stamp[0], changed=stamp[1]))
    if fault is not None:
        raise fault


def _behind(row: WatchedFile, cut: Cut) -> WatchedFile:
    """The row of a file that was read up to the end of a cut."""
    tail = cut.data[-_HEAD:]
    start = cut.offset + len(cut.data) - len(tail)
    return row._replace(
        tail=start,
        tail_size=len(tail),
        tail_hash=_hash(tail),
        offset=cut.after.offset,
        shape=cut.after.shape,
        stack=cut.after.stack,
    )

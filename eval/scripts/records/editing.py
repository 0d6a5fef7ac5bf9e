"""A JSONL file that is changed line by line: what was not touched keeps its bytes.

Byte order mark, CRLF, blank lines, lines that cannot be read, unknown fields, spacing and escapes
of untouched lines all stay as they are. Lines are parted at ``\\n`` alone, since U+2028 and U+0085
may stand inside a JSON string.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from records.cases import canonical, respelled
from records.errors import StorageError
from records.file_access import read_whole
from records.files import replace_bytes

Record = dict[str, Any]

Identify = Callable[[bytes], tuple[str | None, str]]
"""The id in a line, or None and the fault of the line."""

SHOWN = 3

BOM = b"\xef\xbb\xbf"

_STYLES = (((", ", ": "), False), ((",", ":"), False), ((", ", ": "), True), ((",", ":"), True))

_DIGITS = bytes.maketrans(b"123456789", b"000000000")

_LONG_NUMBER = b"0" * 16


class Line(msgspec.Struct):
    """One line and how it ends (``\\n``, ``\\r\\n``, or not at all, as a last one may).

    `id` is None for blank and unreadable lines.
    """

    raw: bytes
    end: bytes
    id: str | None = None
    gone: bool = False


def decode(raw: bytes) -> Record:
    """The object of a line. Raises ValueError when it is none."""
    if _LONG_NUMBER not in raw.translate(_DIGITS):
        with contextlib.suppress(orjson.JSONDecodeError):
            return _object(orjson.loads(raw))
    try:
        # Slower, but exact with numbers over 64 bits, and it knows lone surrogates.
        return _object(json.loads(raw.decode("utf-8")))
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _object(value: Any) -> Record:
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def _encode(record: Record, like: bytes | None) -> bytes:
    """A line for `record`, with the spacing and escapes of the line `like` if they are regular."""
    separators, ascii_only = _style(like)
    try:
        return json.dumps(record, ensure_ascii=ascii_only, separators=separators).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8, but an escape
        return json.dumps(record, ensure_ascii=True, separators=separators).encode("ascii")


def _style(like: bytes | None) -> tuple[tuple[str, str], bool]:
    if like is not None:
        text = like.strip()
        record = decode(text)
        for separators, ascii_only in _STYLES:
            encoded = json.dumps(record, ensure_ascii=ascii_only, separators=separators)
            if encoded.encode("utf-8", "surrogatepass") == text:
                return separators, ascii_only
        if b'":"' in text or b'","' in text:
            return (",", ":"), False
    return _STYLES[0]


def written(value: Any) -> str:
    """A string that is equal for values that would be written the same."""
    return json.dumps(value, separators=(",", ":"))


def _split(data: bytes) -> list[Line]:
    pieces = data.split(b"\n")
    lines = [
        Line(piece[:-1], b"\r\n") if piece.endswith(b"\r") else Line(piece, b"\n")
        for piece in pieces[:-1]
    ]
    return [*lines, Line(pieces[-1], b"")] if pieces[-1] else lines


class Document(Mapping[str, Record]):
    """The records of a file by id, parsed when they are asked for, and the bytes around them.

    ``cases``: the file is a set, whose lines may use other names for id and question. Its records
    have the usual names, and are written with those of their line.
    """

    def __init__(self, data: bytes, identify: Identify, *, cases: bool = False) -> None:
        self._identify = identify
        self._cases = cases
        self._first: dict[str, bytes] = {}
        self.reload(data)

    def reload(self, data: bytes) -> None:
        """Take the present file. The first form of each line is remembered all the same."""
        identify = self._identify
        self.problems: list[tuple[int, str]] = []
        self._bom = BOM if data.startswith(BOM) else b""
        self._lines = _split(data[len(self._bom) :])
        self._newline = (self._lines[0].end if self._lines else b"") or b"\n"
        self._open_end = bool(self._lines) and not self._lines[-1].end
        self._at: dict[str, Line] = {}
        for number, line in enumerate(self._lines, start=1):
            if not line.raw or line.raw.isspace():
                continue
            identity, problem = identify(line.raw)
            if identity is not None and identity in self._at:
                problem = f"{identity!r} is also the id of an earlier line; this one is kept"
                identity = None
            if identity is None:
                self.problems.append((number, problem))
                continue
            line.id = identity
            self._at[identity] = line

    def __getitem__(self, key: str) -> Record:
        return self._record(self._at[key].raw)

    def __contains__(self, key: object) -> bool:
        return key in self._at

    def __iter__(self) -> Iterator[str]:
        return (line.id for line in self._lines if line.id is not None and not line.gone)

    def __len__(self) -> int:
        return len(self._at)

    def complaints(self, name: str) -> list[str]:
        """A sentence for each of the first lines that cannot be used, and their number."""
        sentences = [
            f"{name}:{number}: {message}; the line is kept unchanged."
            for number, message in self.problems[:SHOWN]
        ]
        if len(self.problems) > SHOWN:
            sentences.append(f"{name}: {len(self.problems)} such lines; --validate lists them.")
        return sentences

    def patch(self, changes: Mapping[str, Record | None], order: list[str]) -> None:
        """Set records, take out those that are None, and add new ones where `order` has them."""
        for key, record in changes.items():
            if record is None:
                self._remove(key)
            elif key in self._at:
                self._replace(self._at[key], key, record)
            else:
                self._insert(key, record, order)

    def render(self) -> bytes:
        """The whole file in the form to be written."""
        shown = [line for line in self._lines if not line.gone]
        data = self._bom + b"".join(line.raw + (line.end or self._newline) for line in shown)
        return data.removesuffix(self._newline) if self._open_end and shown else data

    def _remove(self, key: str) -> None:
        line = self._at.pop(key, None)
        if line is not None:
            self._first.setdefault(key, line.raw)
            line.gone = True  # its place is kept, for the case that it comes back

    def _replace(self, line: Line, key: str, record: Record) -> None:
        first = self._first.setdefault(key, line.raw)
        if written(record) == written(self._record(first)):
            line.raw = first
        elif written(record) != written(self._record(line.raw)):
            line.raw = self._line(record, first)

    def _insert(self, key: str, record: Record, order: list[str]) -> None:
        for line in self._lines:
            if line.id == key:
                line.gone = False
                self._at[key] = line
                self._replace(line, key, record)
                return
        model = next((line for line in self._lines if line.id is not None), None)
        line = Line(self._line(record, model.raw if model else None), self._newline, key)
        behind = self._behind_conversation(record) if self._cases else None
        index = self._index_for(key, order) if behind is None else behind
        self._lines.insert(index, line)
        self._at[key] = line

    def _record(self, raw: bytes) -> Record:
        record = decode(raw)
        return canonical(record) if self._cases else record

    def _line(self, record: Record, like: bytes | None) -> bytes:
        if self._cases and like is not None:
            record = respelled(record, decode(like))
        return _encode(record, like)

    def _behind_conversation(self, record: Record) -> int | None:
        """Where a turn belongs: behind the turns of its conversation that come before it, before
        the others; None when it has no conversation, or is all of it."""
        conversation, turn = record.get("conversation"), record.get("turn")
        if not isinstance(conversation, str):
            return None
        behind = None
        for index, line in enumerate(self._lines):
            if line.id is None or line.gone:
                continue
            other = self._record(line.raw)
            if other.get("conversation") == conversation:
                later = isinstance(turn, int) and (other.get("turn") or 0) > turn
                if later:
                    return index if behind is None else behind
                behind = index + 1
        return behind

    def _index_for(self, key: str, order: list[str]) -> int:
        """Behind the nearest case before it; else before the first case; else at the end."""
        before = order[: order.index(key)] if key in order else order
        for other in reversed(before):
            if other in self._at:
                return self._lines.index(self._at[other]) + 1
        for index, line in enumerate(self._lines):
            if line.id is not None and not line.gone:
                return index
        return len(self._lines)


BACKUPS: Final = 10

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
    for old in copies[:-BACKUPS]:
        with contextlib.suppress(OSError):
            old.unlink()
    return copy


def read_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises StorageError, one sentence."""
    try:
        return read_whole(path)
    except FileNotFoundError:
        raise StorageError(
            f"{path}: no such file; name the set with --eval-set, or create an empty file to start."
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

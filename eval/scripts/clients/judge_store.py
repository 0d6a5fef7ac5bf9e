"""The file of verdicts: lines by key, appended under a lock, read by place.

Lines are only appended; of two lines with one key the last one counts. The entries of a run of
judging that was withdrawn (see ``withdrawal``) count as not there, wherever that is said.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from clients.judge_bodies import Found
from clients.judge_types import JudgeIdentity
from clients.withdrawal import read_withdrawal, withdrawal
from records.errors import StorageError
from records.files import cut_torn_tail, locked

FORMAT = 1
"""Of a line; lines of another format are not read."""
PRIVATE, FORMERLY = 0o600, 0o644
"""The file's mode, for it holds questions, answers and replies, and the one it had in earlier
versions. Any other mode is somebody's own choice."""
BLOCK = 8 * 2**20
"""Bytes that are read at once."""


class _Counted(msgspec.Struct):
    completion_tokens: int | None = None


class _Head(msgspec.Struct):
    """What the index needs of a line."""

    format: int
    key: str
    metric: str
    judge: dict[str, str | None]
    mode: str
    dropped: tuple[str, ...] = ()
    asks: int = 1
    usage: _Counted = msgspec.field(default_factory=_Counted)
    judging_run: str | None = None


_decode_head = msgspec.json.Decoder(_Head).decode


class VerdictCache:
    """One cache file. Safe for threads, and for several processes at the same time.

    Only the places of the lines are kept in memory. ``unreadable`` counts lines that are damaged
    or of another format; they are skipped. Raises StorageError when the file cannot be used.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.unreadable = 0
        self._read_only = read_only
        self._places: dict[str, tuple[int, int]] = {}
        self._judges: dict[str, tuple[dict[str, str | None], Found]] = {}
        self._replies: dict[str, tuple[int, int]] = {}
        self._runs: set[str] = set()
        self._withdrawn: dict[str, str] = {}
        self._taken: set[str] = set()
        self._outdated = False
        self._end = 0
        self._file: int | None = None
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[bytes] = []
        if not read_only:
            with self._writable():
                path.parent.mkdir(parents=True, exist_ok=True)
                with locked(path):
                    cut_torn_tail(path)
                    _close_to_others(path)
        with self._reading:
            self._read_on()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return self._place(key) is not None

    def get(self, key: str) -> dict[str, Any] | None:
        """The entry of ``key``, also one that another process has just written."""
        with self._reading:
            place = self._find(key)
            if place is None or self._file is None:
                return None
            line = os.pread(self._file, place[1], place[0])
            entry: dict[str, Any] = orjson.loads(line)
            if isinstance(judging_run := entry.get("judging_run"), str):
                self._taken.add(judging_run)
        return entry

    @property
    def withdrawn(self) -> Mapping[str, str]:
        """The runs of judging that do not count, each with the reason, as the file is now."""
        with self._reading:
            self._read_on()
            return dict(self._withdrawn)

    @property
    def taken_back(self) -> Mapping[str, str]:
        """Those of ``withdrawn`` whose entries were given out by this object before."""
        return {run: why for run, why in self.withdrawn.items() if run in self._taken}

    def withdraw(self, judging_run: str, reason: str) -> None:
        """Let the entries of a run of judging count as not there; no line without any of them."""
        with self._reading:
            self._read_on()
            if judging_run not in self._runs:
                return
        self.put(withdrawal(judging_run, reason))
        with self._reading:
            self._read_on()

    def put(self, entry: Mapping[str, Any]) -> None:
        """Append an entry; it is in the file when this returns.

        Threads that wait for the lock are served together, by whoever gets it first.
        """
        line = orjson.dumps(entry) + b"\n"
        with self._reading:
            self._waiting.append(line)
        with self._writing:
            with self._reading:
                lines, self._waiting = self._waiting, []
            if lines:
                with self._writable(), locked(self.path), self._reading:
                    self._append(lines)

    def _append(self, lines: list[bytes]) -> None:
        """Write at the end, behind what others wrote; a torn line that one left is cut off.

        Few system calls: each gives other threads the interpreter, and this one waits for it.
        """
        self._read_on()
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, PRIVATE)
        if os.fstat(self._file).st_size > self._end:
            os.ftruncate(self._file, self._end)
        rest = memoryview(b"".join(lines))
        while rest:
            rest = rest[os.write(self._file, rest) :]
        for line in lines:
            self._take_in(line)
            self._end += len(line)

    def found_for(self, identity: JudgeIdentity) -> Found | None:
        """How this judge was last asked; None if it never was."""
        known = self._judges.get(_name(identity.to_dict()))
        return known[1] if known else None

    def judges(self, model: str | None = None) -> list[tuple[JudgeIdentity, Found]]:
        """The judges that have verdicts here, the one asked last at the end.

        ``model``: only those of this name, or of this ``provider/name``.
        """
        known = [(JudgeIdentity(**judge), found) for judge, found in self._judges.values()]  # type: ignore[arg-type]
        return [
            (identity, found)
            for identity, found in known
            if model in (None, identity.model, f"{identity.provider}/{identity.model}")
        ]

    def tokens_a_reply(self, metric: str) -> float | None:
        """Mean completion tokens of the metric's replies so far; None when nothing is known."""
        tokens, replies = self._replies.get(metric, (0, 0))
        return tokens / replies if replies else None

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._reading:
            self._forget()

    @contextlib.contextmanager
    def _writable(self) -> Iterator[None]:
        """Turns what the system says against writing into one sentence."""
        try:
            yield
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be written ({error.strerror}).") from error

    def _place(self, key: str) -> tuple[int, int] | None:
        with self._reading:
            return self._find(key)

    def _find(self, key: str) -> tuple[int, int] | None:
        if self._outdated or key not in self._places:
            self._read_on()
        return self._places.get(key)

    def _read_on(self) -> None:
        """Take in the lines that have come since; all anew when the file was replaced."""
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            self._forget()
            return
        if self._file is not None:
            mine = os.fstat(self._file)
            if (mine.st_ino, mine.st_dev) != (now.st_ino, now.st_dev) or now.st_size < self._end:
                self._forget()
        try:
            if self._file is None:
                mode = os.O_RDONLY if self._read_only else os.O_RDWR | os.O_APPEND
                self._file = os.open(self.path, mode)
            self._read_lines(self._file, now.st_size)
            if self._outdated:
                self._start_again()
                self._read_lines(self._file, now.st_size)
        except OSError as error:
            raise StorageError(f"{self.path}: cannot be read ({error.strerror}).") from error

    def _read_lines(self, file: int, size: int) -> None:
        """Take in all whole lines from ``_end`` on; a torn one at the end stays unread."""
        block = BLOCK
        while self._end < size:
            fresh = os.pread(file, block, self._end)
            whole = fresh[: fresh.rfind(b"\n") + 1]
            if not whole:
                if len(fresh) < block:
                    return
                block *= 2
            for line in whole.splitlines(keepends=True):
                self._take_in(line)
                self._end += len(line)

    def _take_in(self, line: bytes) -> None:
        try:
            head = _decode_head(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            if (found := read_withdrawal(line)) is None:
                self.unreadable += bool(line.strip())
            elif found.withdrawn not in self._withdrawn:
                self._withdrawn[found.withdrawn] = found.reason
                self._outdated |= found.withdrawn in self._runs
            return
        if head.format != FORMAT:
            self.unreadable += 1
            return
        if head.judging_run is not None:
            self._runs.add(head.judging_run)
            if head.judging_run in self._withdrawn:
                return
        self._places[head.key] = (self._end, len(line))
        name = _name(head.judge)
        self._judges.pop(name, None)
        self._judges[name] = (head.judge, Found(head.mode, head.dropped))
        if head.usage.completion_tokens is not None:
            tokens, replies = self._replies.get(head.metric, (0, 0))
            counted = head.usage.completion_tokens
            self._replies[head.metric] = (tokens + counted, replies + max(1, head.asks))

    def _forget(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None
        self._withdrawn.clear()
        self._start_again()

    def _start_again(self) -> None:
        """Take in all lines anew with what is withdrawn: an older line of a key may count again."""
        self._end, self.unreadable, self._outdated = 0, 0, False
        self._runs.clear()
        self._places.clear()
        self._judges.clear()
        self._replies.clear()


def _close_to_others(path: Path) -> None:
    """Take from others what an earlier version let them read; left alone where that is refused."""
    with contextlib.suppress(OSError):
        if stat.S_IMODE(path.stat().st_mode) == FORMERLY:
            path.chmod(PRIVATE)


def _name(judge: Mapping[str, Any]) -> str:
    return orjson.dumps(judge, option=orjson.OPT_SORT_KEYS).decode()

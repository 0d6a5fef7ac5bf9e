"""One writing session a set: a lock on a file beside it, with the name of who holds it.

The lock is on ``eval_set.jsonl.lock`` and not on the set, since replacing a file gives it a new
inode. The system lets go of it when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

if sys.platform == "win32":  # pragma: no cover - not run here
    import msvcrt
else:
    import fcntl

_FAR = 1 << 30
"""Where the locked byte lies on Windows: beyond the text, so that others can read it."""


class SetLock:
    """The lock of one file. `holder` says who has it when `take` was refused."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        self.holder = ""
        self._file: int | None = None

    def take(self, who: str, since: str) -> bool:
        """Try to take the lock, without waiting. Raises OSError when its file cannot be made."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(file)
        except OSError:
            self.holder = _described(os.read(file, 4096))
            os.close(file)
            return False
        self._file = file
        import socket  # slow to load, and needed by one session alone

        note = {"annotator": who, "host": socket.gethostname(), "pid": os.getpid(), "since": since}
        with contextlib.suppress(OSError):  # a full disk: the lock holds without its note
            os.ftruncate(file, 0)
            os.write(file, json.dumps(note).encode())
        return True

    def release(self) -> None:
        """Let go. The file stays: to remove it would race with the next session."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _lock(file: int) -> None:
    if sys.platform == "win32":  # pragma: no cover - not run here
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _described(note: bytes) -> str:
    """Who holds the lock, from its note; the note may be empty or torn."""
    try:
        known: dict[str, Any] = json.loads(note)
        where = f"on {known['host']}, process {known['pid']}"
        return f"{known['annotator']} {where}, since {known['since']}"
    except (ValueError, KeyError, TypeError):
        return "another session"

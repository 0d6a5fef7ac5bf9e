"""Getting files onto the disk: lines soon after they were written, names before others go.

A kill loses nothing that was written; a power cut loses what the system has not yet put on the
disk, up to half a minute of it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from pathlib import Path
from typing import ClassVar

WAIT_S = 4.0
"""Seconds from a line to its fsync. A power cut costs at most five: one is left for the disk."""


class DelayedSync:
    """Forces the lines of one file onto the disk within five seconds, without making anyone wait.

    One thread serves all files of the process; it ends when nothing is left to force. What it has
    not come to is forced when the process ends, after Ctrl+C too.
    """

    _waiting: ClassVar[dict[DelayedSync, int]] = {}
    """Files with new lines, each with a descriptor that stays open when the writer closes its."""
    _lock: ClassVar[threading.Lock] = threading.Lock()
    _thread: ClassVar[threading.Thread | None] = None

    def __init__(self, file: int) -> None:
        self._file = file
        self._syncing = threading.Lock()
        self._error: OSError | None = None

    def written(self) -> None:
        """Note that lines were written. Raises the OSError that an earlier sync ended with."""
        if self._error is not None:
            raise self._error
        with self._lock:
            if self not in self._waiting:
                self._waiting[self] = os.dup(self._file)
                self._start()

    def now(self) -> None:
        """Force the lines written so far. Raises OSError when the disk refuses, now or before."""
        with self._syncing:
            with self._lock:
                file = self._waiting.pop(self, None)
            if file is not None:
                try:
                    os.fsync(file)
                except OSError as error:  # told once by the system, and then to nobody else
                    self._error = error
                finally:
                    os.close(file)
        if self._error is not None:
            raise self._error

    @classmethod
    def _start(cls) -> None:
        if cls._thread is None or not cls._thread.is_alive():  # not alive: in a forked process
            cls._thread = threading.Thread(target=cls._run, name="sync", daemon=True)
            cls._thread.start()

    @classmethod
    def _run(cls) -> None:
        while True:
            time.sleep(WAIT_S)
            cls.all_now()
            with cls._lock:
                if not cls._waiting:
                    cls._thread = None
                    return

    @classmethod
    def all_now(cls) -> None:
        """Force the new lines of all files. An error is kept for the file's writer."""
        with cls._lock:
            waiting = list(cls._waiting)
        for file in waiting:
            with contextlib.suppress(OSError):
                file.now()


atexit.register(DelayedSync.all_now)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder onto the disk, where the system can open folders."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, so that a power cut keeps their names.

    Raises OSError.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:  # a drive that is not there
        make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def move_into_place(source: Path | str, target: Path) -> None:
    """Rename in one step; afterwards the sources of ``target`` can be deleted. Raises OSError."""
    os.replace(source, target)
    sync_folder(target.parent)

"""The append-only journal beside the set: each decision is on disk before it is shown as made.

A line is one event, with its ``action``. The action ``saved`` says that the set holds all that
stands before it. Nothing is ever taken out; a last line that a kill cut short is dropped on
opening.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

import orjson

from records.editing import decode
from records.file_access import open_plain
from records.files import cut_torn_tail
from records.syncing import make_folder, sync_folder

Event = dict[str, Any]

TAIL = 4 * 1024 * 1024
"""Bytes of the journal that are read for undo after a restart; unsaved events are always read."""

_SAVED = b'"action":"saved"'


class Journal:
    """One annotator's journal of one set."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def open(self) -> int:
        """Open for appending; returns the bytes of a torn last line that were cut off.

        Raises OSError when the file cannot be written.
        """
        make_folder(self.path.parent)
        new = not self.path.exists()
        cut = cut_torn_tail(self.path)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        if new:
            sync_folder(self.path.parent)
        return cut

    def append(self, event: Event) -> None:
        """Write one event and force it onto the disk. Raises OSError; a torn line is taken back."""
        if self._file is None:
            self.open()
        assert self._file is not None
        line = _line(event)
        size = os.fstat(self._file).st_size
        try:
            done = 0
            while done < len(line):
                done += os.write(self._file, line[done:])
            os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            raise

    def read(self) -> tuple[list[Event], list[Event], int]:
        """Events that are in the set (the newest of them), events that are not, bad lines."""
        try:
            with open_plain(self.path) as file:
                size = file.seek(0, os.SEEK_END)
                start = max(0, size - TAIL)
                data = _from(file, start, size)
                if start and _SAVED not in data:
                    data = _from(file, 0, size)
        except FileNotFoundError:
            return [], [], 0
        lines = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]
        if start and len(data) < size:
            lines = lines[1:]  # the window begins in the middle of a line
        saved: list[Event] = []
        unsaved: list[Event] = []
        bad = 0
        for line in lines:
            event = _event(line)
            if event is None:
                bad += bool(line.strip())
            elif event["action"] == "saved":
                saved += unsaved
                unsaved = []
            else:
                unsaved.append(event)
        return saved, unsaved, bad

    def close(self) -> None:
        """Close the file; every event is on disk already."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _line(event: Event) -> bytes:
    try:
        return orjson.dumps(event) + b"\n"
    except TypeError:  # a lone surrogate, or a number over 64 bits
        return json.dumps(event, separators=(",", ":")).encode("ascii") + b"\n"


def _from(file: Any, start: int, end: int) -> bytes:
    file.seek(start)
    data: bytes = file.read(end - start)
    return data


def _event(line: bytes) -> Event | None:
    """The event of a line, or None when it is none that a session could have written."""
    try:
        event = decode(line)
    except ValueError:
        return None
    if not isinstance(event.get("action"), str):
        return None
    if event["action"] in ("saved", "opened"):
        return event
    entries = (event.get("before"), event.get("after"))
    fine = (
        isinstance(event.get("n"), int)
        and isinstance(event.get("case"), str)
        and all(entry is None or _is_entry(entry) for entry in entries)
    )
    return event if fine else None


def _is_entry(value: object) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"case", "judgement", "needs"}
        and isinstance(value["case"], dict)
        and isinstance(value["judgement"], dict)
        and _is_open_need(value["needs"])
    )


def _is_open_need(needs: object) -> bool:
    """Whether a value says which need marks join."""
    return needs is None or (
        isinstance(needs, dict)
        and isinstance(needs.get("ways"), bool)
        and isinstance(needs.get("open"), int)
        and isinstance(needs.get("parts"), list)
        and all(
            isinstance(part, list) and all(isinstance(index, int) for index in part)
            for part in needs["parts"]
        )
    )


ANNOTATOR_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Form of an annotator's name, which is also the name of a file."""

"""Dated copies of a set, made before a session first writes it; and clearing up after a kill."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from records.files import replace_bytes

KEPT: Final = 10


def back_up(path: Path, data: bytes, at: str) -> Path:
    """Write `data` beside `path` as ``<name>.<date>-<time>.bak``; keep the newest `KEPT`.

    Raises StorageError when it cannot be written.
    """
    stamp = re.sub(r"[^0-9T]", "", at.partition(".")[0]).replace("T", "-")
    copy = path.with_name(f"{path.name}.{stamp}.bak")
    replace_bytes(copy, data)
    pattern = re.compile(re.escape(path.name) + r"\.\d{8}-\d{6}\.bak")
    copies = sorted(p for p in path.parent.iterdir() if pattern.fullmatch(p.name))
    for old in copies[:-KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()
    return copy


def clear_leftovers(path: Path) -> None:
    """Remove half-written copies of `path` that killed sessions left. Only under its lock."""
    folder = Path(os.path.realpath(path)).parent
    pattern = re.compile(re.escape(f".{path.name}.") + r"[a-z0-9_]{8}")
    for left in folder.iterdir():
        if pattern.fullmatch(left.name):
            with contextlib.suppress(OSError):
                left.unlink()

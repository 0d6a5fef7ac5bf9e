"""Dated copies of a set, made before a session first writes it."""

from __future__ import annotations

import contextlib
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

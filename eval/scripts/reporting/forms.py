"""The forms of a report, and writing them: each file in one step, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import storage


def write(report: Mapping[str, Any], formats: Sequence[str], stem: Path) -> list[Path]:
    """Write STEM.md, STEM.json, STEM.html as asked; their paths.

    All are drawn before the first is written. Raises StorageError when a folder cannot be written.
    """
    drawn = {stem.with_name(f"{stem.name}.{one}"): draw(report, one) for one in formats}
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage.StorageError(f"{stem.parent}: cannot be made ({error.strerror}).") from None
    for path, content in drawn.items():
        storage.replace_bytes(path, content)
    return list(drawn)


def draw(report: Mapping[str, Any], form: str) -> bytes:
    """The report in one form: ``md``, ``json`` or ``html``."""
    if form == "json":
        return storage.json_bytes(report)
    if form == "md":
        from reporting.markdown import markdown

        return markdown(report).encode()
    from reporting.page import page

    return page(report).encode()

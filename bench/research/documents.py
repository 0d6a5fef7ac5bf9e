"""A generated block of a document, between the lines that mark it."""

from __future__ import annotations

from pathlib import Path

from records.errors import StorageError
from records.files import replace_bytes

END = "<!-- end -->"


def start(name: str) -> str:
    """The line above the block of this name."""
    return f"<!-- generated: {name} -->"


def replace_block(document: str, name: str, block: str) -> str | None:
    """The document with what stands between the markers replaced; None when it lacks them."""
    head, opened, rest = document.partition(f"{start(name)}\n")
    _, closed, tail = rest.partition(END)
    if not opened or not closed:
        return None
    return f"{head}{opened}{block}{closed}{tail}"


def write_block(target: Path, name: str, block: str, *, must_exist: bool) -> None:
    """Put the block between the markers of a document, or make a new file of it.

    Raises:
        StorageError: the document is not there, cannot be read, or lacks the markers.
    """
    try:
        document = target.read_text(encoding="utf-8")
    except FileNotFoundError:
        if must_exist:
            raise StorageError(f"{target}: is not there; use --output FILE instead.") from None
        document = f"{start(name)}\n{END}\n"
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{target}: cannot be read: {error}") from error
    changed = replace_block(document, name, block)
    if changed is None:
        raise StorageError(
            f"{target}: has no lines {start(name)} and {END}; add them where the table belongs."
        )
    replace_bytes(target, changed.encode("utf-8"))

"""Files that people take out of a run: a table, lines of JSON, a new set. None is overwritten."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import stat
import string
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from records.cases import Labels, canonical
from records.errors import StorageError
from records.jsonl import read_rows
from records.syncing import move_into_place

_FORMULA = tuple("=+-@＝＋－＠")
"""A cell that begins with one of these is a formula to some spreadsheet."""


def harmless_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula: such a one gets an apostrophe in front."""
    text = text.replace("\x00", "")
    visible = text.lstrip(f"{string.whitespace}\u00a0\ufeff").lstrip()
    if visible.startswith(_FORMULA) or text.startswith(("\t", "\r")):
        return f"'{text}"
    return text


def csv_table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """A table for spreadsheets, row by row: UTF-8 with a byte order mark; lists parted by ``; ``.

    No text of it acts as a formula. What a row does not have is an empty cell.
    """
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(map(harmless_cell, columns))
    yield b"\xef\xbb\xbf" + text.getvalue().encode("utf-8", "replace")
    for row in rows:
        text.seek(0)
        text.truncate()
        table.writerow([_cell(row.get(name)) for name in columns])
        yield text.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        value = "; ".join(map(str, value))
    return harmless_cell(value) if isinstance(value, str) else value


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """A JSON object a line."""
    for row in rows:
        yield orjson.dumps(row) + b"\n"


def set_lines(eval_set: Path, labels: Labels, case_ids: Iterable[str]) -> Iterator[bytes]:
    """Lines of a new set: cases with the labels that label files have of them.

    Raises StorageError for a case that the set does not have.
    """
    rows = (canonical(row) for _, row in read_rows(eval_set)) if eval_set.exists() else ()
    cases = {row.get("id"): row for row in rows}
    for case_id in case_ids:
        if case_id not in cases:
            raise StorageError(
                f"{case_id}: {eval_set} does not hold this case; filter it away, or name the set "
                "with --eval-set."
            )
        yield orjson.dumps(cases[case_id] | labels.get(case_id, {})) + b"\n"


def write_new(path: Path, pieces: Iterable[bytes]) -> int:
    """Write a file that is not there yet, whole or not at all. Returns the number of pieces.

    Raises StorageError when there is one already, or it cannot be written.
    """
    temporary = ""
    count = 0
    try:
        with open(path, "xb"):
            pass  # the name is ours now, whoever else writes
    except FileExistsError:
        raise StorageError(f"{path}: exists already; choose another name.") from None
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
                count += 1
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        move_into_place(temporary, path)
    except BaseException as error:
        for left in (temporary, str(path)):
            with contextlib.suppress(OSError):
                os.unlink(left)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from error
        raise
    return count


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: cannot be written ({error.strerror}).")

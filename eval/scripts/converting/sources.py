"""Reading other tools' files as a stream of rows, each with the place it came from.

A byte order mark and CRLF line ends are taken as they are common there; what cannot be read is a
problem with file and line.
"""

from __future__ import annotations

import ast
import csv
import gzip
import hashlib
import io
import math
import os
import re
import shutil
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from converting.notes import Notes
from converting.yaml_file import read_yaml
from storage import StorageError

READ_APART = ("defaultTest",)
"""What a format reads by itself of an object that holds a list of rows."""
BOM = b"\xef\xbb\xbf"


class Row(NamedTuple):
    """An object of a source: the file, the line if it has one, ``[3]`` in a list, the fields."""

    path: Path
    line: int | None
    place: str
    fields: dict[str, Any]


def unpacked(path: Path, scratch: Path) -> Path:
    """The file itself, or what a ``.gz`` file holds, unpacked into the scratch folder.

    Raises StorageError when the file cannot be read.
    """
    if path.suffix != ".gz":
        if not path.is_file():
            what = "is no plain file; name one" if path.exists() else "no such file"
            raise StorageError(f"{path}: {what}.")
        return path
    target = place_of(path, scratch)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path) as packed, open(target, "wb") as plain:
            shutil.copyfileobj(packed, plain)
    except (OSError, EOFError) as error:
        raise StorageError(f"{path}: cannot be unpacked ({error}).") from None
    return target


def place_of(path: Path, scratch: Path) -> Path:
    """Where a packed file is unpacked to; files of one name in several folders stay apart."""
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]
    return scratch / digest / path.stem


Linked = Callable[[Path, str, str], Iterator[Row]]
"""Reads what a text in the place of rows names: the file it stands in, the place, the text."""


def iter_rows(
    path: Path, notes: Notes, lists: Iterable[str] = (), linked: Linked | None = None
) -> Iterator[Row]:
    """The objects of a JSON, JSONL, CSV or YAML file; the ending of its name tells which.

    ``lists``: keys under which a JSON or YAML object may hold its list of rows. JSONL and CSV are
    read line by line, JSON and YAML at once. Without ``linked`` a text where rows belong is a
    problem, and an object may hold columns, as pandas and datasets write them.
    """
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        yield from csv_rows(path, notes, "\t" if kind == ".tsv" else ",")
    elif kind in (".yaml", ".yml"):
        yield from _listed(path, read_yaml(path), lists, notes, linked)
    elif kind in (".jsonl", ".ndjson"):
        yield from jsonl_rows(path, notes)
    else:
        yield from json_rows(path, lists, notes, linked)


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, without line end and byte order mark, with their numbers."""
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the with below
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    with file:
        for number, line in enumerate(file, 1):
            text = (line.removeprefix(BOM) if number == 1 else line).rstrip(b"\r\n")
            if text and not text.isspace():
                yield number, text


def jsonl_rows(path: Path, notes: Notes) -> Iterator[Row]:
    """The objects of a file with one JSON object a line."""
    for number, line in lines_of(path):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            notes.problem(path, number, "", _not_json(line, error))
            continue
        if isinstance(value, dict):
            yield Row(path, number, "", value)
        else:
            notes.problem(path, number, "", "is no JSON object; a line is one row in {…}")


def json_rows(
    path: Path, lists: Iterable[str], notes: Notes, linked: Linked | None = None
) -> Iterator[Row]:
    """The objects of a JSON list; a file of JSON lines under the name .json is read as such."""
    data = _bytes_of(path)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if data.lstrip().startswith(b"{") and _is_object(data.lstrip().partition(b"\n")[0]):
            yield from jsonl_rows(path, notes)
        else:
            notes.problem(path, error.lineno, "", _not_json(data, error))
        return
    yield from _listed(path, value, lists, notes, linked)


def _listed(
    path: Path, value: Any, lists: Iterable[str], notes: Notes, linked: Linked | None
) -> Iterator[Row]:
    found = value
    if isinstance(value, dict):
        sorts = (list, str) if linked else (list,)
        name = next((name for name in lists if isinstance(value.get(name), sorts)), None)
        found = value.get(name) if name else None if linked else _turned(value)
        others = value.keys() - {name, *READ_APART}
        notes.left_out.update(f"{other} of the whole file" for other in others if name)
    if linked and isinstance(found, str):
        found = [found]
    if not isinstance(found, list):
        known = "".join(f" or an object with {name!r}" for name in lists)
        notes.problem(path, None, "", f"holds no list of rows; write a list{known}")
        return
    for place, item in enumerate(found):
        if isinstance(item, dict):
            yield Row(path, None, f"[{place}]", item)
        elif linked and isinstance(item, str):
            yield from linked(path, f"[{place}]", item)
        else:
            notes.problem(path, None, f"[{place}]", "is no object; a row is written in {…}")


def _turned(columns: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Rows from columns: lists of one length, or objects with the same keys (pandas' to_json)."""
    values = list(columns.values())
    if values and all(isinstance(one, dict) and one.keys() == values[0].keys() for one in values):
        values = [list(one.values()) for one in values]
    if not values or not all(
        isinstance(one, list) and len(one) == len(values[0]) for one in values
    ):
        return None
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*values, strict=True)]


def csv_rows(path: Path, notes: Notes, delimiter: str = ",") -> Iterator[Row]:
    """The rows of a table by its head line; an empty cell is None.

    A column without a name, such as the row numbers of pandas, is called by its place.
    """
    csv.field_size_limit(sys.maxsize)
    try:
        file = open(path, encoding="utf-8-sig", newline="")  # noqa: SIM115 - closed by the with
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    with file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            head = [name or f"column {place}" for place, name in enumerate(next(reader, []), 1)]
            for name in {name for name in head if head.count(name) > 1}:
                notes.problem(path, 1, name, "is the head of two columns; rename one")
            start = reader.line_num + 1
            for cells in reader:
                if len(cells) > len(head):
                    message = f"has {len(cells)} cells, the head line {len(head)}"
                    notes.problem(path, start, "", message)
                elif cells:
                    padded = cells + [""] * (len(head) - len(cells))
                    fields = {name: cell or None for name, cell in zip(head, padded, strict=True)}
                    yield Row(path, start, "", fields)
                start = reader.line_num + 1
        except (csv.Error, UnicodeDecodeError) as error:
            notes.problem(path, reader.line_num + 1, "", f"cannot be read as UTF-8 CSV ({error})")


def parsed(text: str) -> Any:
    """A list or object written as JSON or, as pandas and ragas write it into CSV, as Python.

    None for any other text.
    """
    text = text.strip()
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            found = _numpy_texts(text)
            return orjson.loads(orjson.dumps(ast.literal_eval(text))) if found is None else found
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None


def _numpy_texts(text: str) -> list[str] | None:
    """The texts of a numpy array as it prints itself, without commas; None for anything else.

    Python would join them into one text. Raises SyntaxError for what is no Python.
    """
    if not re.search(r"[\'\"]\s+[\'\"]", text):
        return None
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except tokenize.TokenError as error:
        raise SyntaxError(str(error)) from None
    words = [one for one in tokens if one.string.strip()]
    inner = words[1:-1]
    if len(inner) < 2 or any(one.type != tokenize.STRING for one in inner):
        return None
    return [str(ast.literal_eval(one.string)) for one in inner]


def parsed_list(text: str) -> list[Any] | None:
    """The same for a list alone."""
    value = parsed(text)
    return value if isinstance(value, list) else None


def finite(text: str) -> float | None:
    """The number that a text is; None when it is none, infinite or not a number."""
    try:
        number = float(text)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes().removeprefix(BOM)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _not_json(data: bytes, error: orjson.JSONDecodeError) -> str:
    near = data.split(b"\n")[error.lineno - 1] if error.lineno else data
    hint = "; NaN and Infinity are no JSON, write null" if re.search(rb"NaN|Infinity", near) else ""
    return f"column {error.colno}: not JSON ({error.msg}){hint}"

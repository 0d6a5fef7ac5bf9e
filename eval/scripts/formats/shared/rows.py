"""Reading other tools' files as a stream of rows, each with the place it came from.

A byte order mark and CRLF line ends are taken as they are common there; what cannot be read is a
problem with file and line.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import orjson

from formats.shared.field_map import ROWS, FieldMap
from formats.shared.item import Notes
from formats.shared.parquet import SUFFIX as PARQUET
from formats.shared.parquet import parquet_rows
from formats.shared.texts import parsed
from records.errors import StorageError
from records.file_access import MAX_SETTINGS, open_plain, open_unpacked, read_whole
from records.lines import BOM, nests_deeper, parse_json

READ_APART = ("defaultTest",)
"""Fields beside a list of rows that a format reads by itself."""


class SourceRow(NamedTuple):
    """An object of a source: the file, the line if it has one, ``[3]`` in a list, the fields."""

    path: Path
    line: int | None
    where: str
    fields: dict[str, Any]


def unpacked(path: Path, scratch: Path) -> Path:
    """The file itself, or the content of a ``.gz`` file, unpacked into the scratch folder.

    Raises StorageError when the file cannot be read.
    """
    if path.suffix != ".gz":
        if not path.is_file():
            fault = "is not a plain file; name one" if path.exists() else "no such file"
            raise StorageError(f"{path}: {fault}.")
        return path
    target = place_of(path, scratch)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_unpacked(path) as content, open(target, "wb") as plain:
            shutil.copyfileobj(content, plain)
    except (OSError, EOFError) as error:
        raise StorageError(f"{path}: cannot be unpacked ({error}).") from None
    return target


JSON_ENDINGS = frozenset((".json", ".jsonl", ".ndjson"))


def files_below(folder: Path, endings: Set[str]) -> tuple[list[Path], int]:
    """The files below a folder with one of the endings, packed ones too, in order of their names.
    Also the number of other files. Hidden ones are left out."""
    paths, others = [], 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            path = Path(parent) / name
            if endings & {suffix.lower() for suffix in path.suffixes} and path.is_file():
                paths.append(path)
            else:
                others += 1
    return paths, others


def source_files(
    sources: Sequence[Path], endings: Set[str], scratch: Path, notes: Notes
) -> Iterator[tuple[Path, Path]]:
    """Each file to read, unpacked, and the name of its run: the file, or the folder that was named.
    Raises StorageError for a folder without such files."""
    for source in sources:
        if not source.is_dir():
            path = unpacked(source, scratch)
            yield path, path
            continue
        paths, others = files_below(source, endings)
        notes.left_out["files with other endings"] += others
        if not paths:
            raise StorageError(
                f"{source}: has no file that ends in {', '.join(sorted(endings))} (or these with "
                f".gz); other files: {others}. Name the folder with the traces."
            )
        yield from ((unpacked(path, scratch), source) for path in paths)


def place_of(path: Path, scratch: Path) -> Path:
    """Where a packed file is unpacked to; files of one name in several folders stay apart."""
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]
    return scratch / digest / path.stem


Linked = Callable[[Path, str, str], Iterator[SourceRow]]
"""Reads the rows that a text names: the file it stands in, the place, the text."""


def iter_rows(
    path: Path,
    notes: Notes,
    lists: Iterable[str] = (),
    linked: Linked | None = None,
    unwrap: Callable[[Any], Any] | None = None,
) -> Iterator[SourceRow]:
    """The objects of a JSON, JSONL, CSV, YAML or Parquet file; the ending of its name decides.

    ``lists``: keys under which a JSON or YAML object may hold its list of rows. JSONL, CSV and
    Parquet are read in pieces, JSON and YAML at once. Without ``linked`` a text where rows belong
    is a problem, and an object may hold columns, as pandas and datasets write them. ``unwrap``
    takes the object of a JSON document out of what is around it.
    """
    kind = path.suffix.lower()
    if kind == PARQUET:
        for number, fields in enumerate(parquet_rows(path)):
            yield SourceRow(path, None, f"[{number}]", fields)
    elif kind in (".csv", ".tsv"):
        yield from _csv_rows(path, notes, "\t" if kind == ".tsv" else ",")
    elif kind in (".yaml", ".yml"):
        yield from _listed(path, read_yaml(path), lists, notes, linked)
    elif kind in (".jsonl", ".ndjson"):
        yield from jsonl_rows(path, notes)
    else:
        yield from _json_rows(path, lists, notes, linked, unwrap)


def mapped_rows(
    path: Path, notes: Notes, fields: FieldMap, lists: Iterable[str]
) -> Iterator[SourceRow]:
    """The rows that the user's ``rows`` expression finds in a JSON document; else ``iter_rows``."""
    if ROWS not in fields.getters:
        yield from iter_rows(path, notes, lists)
        return
    if path.suffix.lower() in (".csv", ".tsv", ".jsonl", ".ndjson", PARQUET):
        raise StorageError(f"--map {ROWS}: {path} has a row a line already; leave it out.")
    data = _bytes_of(path)
    try:
        document = parse_json(data)
    except orjson.JSONDecodeError as error:
        notes.problem(path, error.lineno, "", _not_json(data, error))
        return
    found = fields.rows(document)
    yield from _listed(path, found if isinstance(found, list) else None, (), notes, None)


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, without line end and byte order mark, with their numbers."""
    try:
        file = open_plain(path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    with file:
        for number, line in enumerate(file, 1):
            text = (line.removeprefix(BOM) if number == 1 else line).rstrip(b"\r\n")
            if text and not text.isspace():
                yield number, text


def jsonl_rows(path: Path, notes: Notes) -> Iterator[SourceRow]:
    """The objects of a file with one JSON object a line."""
    for number, line in lines_of(path):
        try:
            value = parse_json(line)
        except orjson.JSONDecodeError as error:
            notes.problem(path, number, "", _not_json(line, error))
            continue
        if isinstance(value, dict):
            yield SourceRow(path, number, "", value)
        else:
            notes.problem(path, number, "", "is not a JSON object; a line is one row in {…}")


def _json_rows(
    path: Path,
    lists: Iterable[str],
    notes: Notes,
    linked: Linked | None,
    unwrap: Callable[[Any], Any] | None,
) -> Iterator[SourceRow]:
    """The objects of a JSON list; a file of JSON lines under the name .json is read as such."""
    data = _bytes_of(path)
    try:
        value = parse_json(data)
    except orjson.JSONDecodeError as error:
        if data.lstrip().startswith(b"{") and _is_object(data.lstrip().partition(b"\n")[0]):
            yield from jsonl_rows(path, notes)
        else:
            notes.problem(path, error.lineno, "", _not_json(data, error))
        return
    yield from _listed(path, unwrap(value) if unwrap else value, lists, notes, linked)


def _listed(
    path: Path, value: Any, lists: Iterable[str], notes: Notes, linked: Linked | None
) -> Iterator[SourceRow]:
    rows = value
    if isinstance(value, dict):
        sorts = (list, str) if linked else (list,)
        name = next((name for name in lists if isinstance(value.get(name), sorts)), None)
        rows = value.get(name) if name else None if linked else _turned(value)
        others = [key for key in value if key not in {name, *READ_APART}]
        told = [other for other in others if value[other] not in (None, "", [], {})]
        notes.left_out.update(f"{other} of the whole file" for other in told if name)
    if linked and isinstance(rows, str):
        rows = [rows]
    if not isinstance(rows, list):
        alternatives = "".join(f" or an object with {name!r}" for name in lists)
        notes.problem(path, None, "", f"has no list of rows; write a list{alternatives}")
        return
    for index, item in enumerate(rows):
        if isinstance(item, dict):
            yield SourceRow(path, None, f"[{index}]", item)
        elif linked and isinstance(item, str):
            yield from linked(path, f"[{index}]", item)
        else:
            notes.problem(path, None, f"[{index}]", "is not an object; a row is written in {…}")


def _turned(columns: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Rows from columns: lists of one length, or objects with the same keys (pandas' to_json)."""
    values = list(columns.values())
    if values and all(isinstance(row, dict) and row.keys() == values[0].keys() for row in values):
        values = [list(row.values()) for row in values]
    if not values or not all(
        isinstance(row, list) and len(row) == len(values[0]) for row in values
    ):
        return None
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*values, strict=True)]


def _csv_rows(path: Path, notes: Notes, delimiter: str = ",") -> Iterator[SourceRow]:
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
            head = [name or f"column {number}" for number, name in enumerate(next(reader, []), 1)]
            for name in dict.fromkeys(name for name in head if head.count(name) > 1):
                notes.problem(path, 1, name, "is the name of two columns; rename one")
            start = reader.line_num + 1
            for cells in reader:
                if len(cells) > len(head):
                    message = f"has {len(cells)} cells, the head line {len(head)}"
                    notes.problem(path, start, "", message)
                elif cells:
                    padded = cells + [""] * (len(head) - len(cells))
                    fields = {name: cell or None for name, cell in zip(head, padded, strict=True)}
                    yield SourceRow(path, start, "", fields)
                start = reader.line_num + 1
        except (csv.Error, UnicodeDecodeError) as error:
            notes.problem(path, reader.line_num + 1, "", f"cannot be read as UTF-8 CSV ({error})")


def _parsed_list(text: str) -> list[Any] | None:
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
        return read_whole(path).removeprefix(BOM)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(parse_json(line), dict)
    except orjson.JSONDecodeError:
        return False


def _not_json(data: bytes, error: orjson.JSONDecodeError) -> str:
    near = data.split(b"\n")[error.lineno - 1] if error.lineno else data
    hint = "; NaN and Infinity are no JSON, write null" if re.search(rb"NaN|Infinity", near) else ""
    return f"column {error.colno}: not JSON ({error.msg}){hint}"


class Fields:
    """The fields of one row. Every reader takes the first name that has a value.

    Wrong types become problems with file, line and field; the reader then gives None.
    """

    def __init__(self, row: SourceRow, notes: Notes) -> None:
        self.row = row
        self._notes = notes
        self._left = {name: value for name, value in row.fields.items() if value is not None}

    def take(self, *names: str) -> Any:
        """The value of the first name there is, removed from the rest; None when there is none."""
        self.name = next((name for name in names if name in self._left), names[0])
        return self._left.pop(self.name, None)

    def text(self, *names: str) -> str | None:
        """A string."""
        value = self.take(*names)
        if value is None or isinstance(value, str):
            return value
        self.wrong("is not a text; write a string")
        return None

    def question(self, *names: str) -> str | None:
        """A string that is not blank; its absence is a problem."""
        value = self.text(*names)
        if value is None and self.name not in self.row.fields:
            self.wrong(f"is missing; write the user's question ({', '.join(names)})")
        elif value is not None and not value.strip():
            self.wrong("is empty; write the user's question")
            return None
        return value

    def texts(self, *names: str, delimiter: str | None = None) -> list[str] | None:
        """A list of strings. In a text: a JSON or Python list, else parted at ``delimiter``."""
        value = self.take(*names)
        if isinstance(value, str):
            parsed_texts = _parsed_list(value)
            if parsed_texts is None:
                parsed_texts = value.split(delimiter) if delimiter else [value]
            value = parsed_texts
        if value is None:
            return None
        if not isinstance(value, list):
            self.wrong("is not a list of texts; write the passages as strings")
            return None
        wrong = [index for index, item in enumerate(value) if not isinstance(item, str)]
        for index in wrong:
            self.wrong("is not a text; write a string", f"[{index}]")
        return None if wrong else value

    def names(self, *names: str) -> list[str] | None:
        """A list of ids: strings or whole numbers, which become strings."""
        value = self.take(*names)
        if isinstance(value, str):
            value = _parsed_list(value) or [value]
        if value is None:
            return None
        sound = isinstance(value, list) and all(
            isinstance(item, str | int) and not isinstance(item, bool) for item in value
        )
        if not sound:
            self.wrong("is not a list of ids; write strings")
            return None
        if not all(isinstance(item, str) for item in value):
            self._notes.changed[f"{self.name}: numbers, written as texts"] += 1
        return [str(item) for item in value]

    def number(self, *names: str) -> float | None:
        """A finite number; in a CSV cell it is a text."""
        value = self.take(*names)
        if value is None:
            return None
        if isinstance(value, str):
            value = finite(value)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            self.wrong("is not a finite number")
            return None
        return float(value)

    def replace(self, name: str, value: Any) -> None:
        """Another value for a field that is still free."""
        if name in self._left:
            self._left[name] = value

    def rest(self) -> dict[str, Any]:
        """The unused fields that have a value; counted as kept under metadata."""
        remaining = {name: value for name, value in self._left.items() if value not in ([], {}, "")}
        self._left = {}
        self._notes.carried.update(str(name) for name in remaining)
        return {str(name): value for name, value in remaining.items()}

    def left_out(self, *names: str) -> None:
        """Count fields that have a value and no place on our side."""
        for name in names:
            if self._left.pop(name, None) not in (None, [], {}, ""):
                self._notes.left_out[name] += 1

    def wrong(self, message: str, where: str = "") -> None:
        """A problem of the field that was taken last."""
        field = f"{self.row.where}.{self.name}" if self.row.where else self.name
        self._notes.problem(self.row.path, self.row.line, field + where, message)


def case_id(fields: Fields, notes: Notes, names: Sequence[str] = ("id",)) -> str | None:
    """A row's own id, a number as text; None when it has none."""
    value = fields.take(*names)
    if isinstance(value, int) and not isinstance(value, bool):
        notes.changed["id: a number, written as text"] += 1
        return str(value)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        fields.wrong("is not an id; write a text, or leave it out")
        return None
    return value


def with_rest(case: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """The case without empty fields, with the unread fields under ``metadata``."""
    filled = {name: value for name, value in case.items() if value not in (None, [], {})}
    own = rest.pop("metadata", None)
    extra = own | rest if isinstance(own, dict) else rest | ({"metadata": own} if own else {})
    return filled | ({"metadata": extra} if extra else {})


MOST_NODES = 1_000_000
"""Values in one YAML document after its aliases are followed; more is an attack or no test file."""

_YAML_TYPES = {
    "bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    "int": (r"^[-+]?[0-9]+$", "-+0123456789"),
    "float": (r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+0123456789."),
    "null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "merge": (r"^(?:<<)$", "<"),
}
"""The types of plain words in YAML 1.2: ``yes``, ``12:30`` and dates stay texts."""

_BLANK = "\0 \t\r\n\x85\u2028\u2029"
"""What PyYAML takes as the end of a word: blanks, line ends, and the end of the text."""


def read_yaml(path: Path) -> Any:
    """A YAML document of plain values. Raises StorageError for what is none, or grows without end.

    Only strings, numbers, true, false and null, lists and maps: no tag builds an object.
    """
    import yaml  # type: ignore[import-untyped]

    try:
        value = yaml.load(read_whole(path, MAX_SETTINGS * 16), _loader())
        _check_nodes(value)
        if nests_deeper(value):
            raise RecursionError
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}).") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        fault = getattr(error, "problem", None) or "not YAML"
        raise StorageError(f"{path}{line}: {fault}.") from None
    except (RecursionError, ValueError) as error:
        fault = str(error) if isinstance(error, ValueError) else "is nested too deeply"
        raise StorageError(f"{path}: {fault}.") from None
    return value


_HALF = re.compile("[\ud800-\udfff]")


def _loader() -> Any:
    """PyYAML's safe loader with YAML 1.2's types, and its question mark in ``[…]`` and ``{…}``.

    PyYAML ends a plain text there at any ``?``, as YAML 1.1 had it; since 1.2 it is a mark of a key
    only before a space, and otherwise a letter like others: ``[Who wrote A?, Who wrote B?]``.
    """
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

        def check_key(self) -> bool:
            return self.peek(1) in _BLANK

        def check_plain(self) -> bool:
            begins = self.flow_level and self.peek() == "?"
            return self.peek(1) not in _BLANK + ",[]{}" if begins else super().check_plain()

        def scan_plain(self) -> Any:
            if not self.flow_level:
                return super().scan_plain()
            peek = self.peek
            # The scanner looks ahead with peek, and takes the text itself with prefix.
            self.__dict__["peek"] = lambda index=0: peek(index).replace("?", "x")
            try:
                return super().scan_plain()
            finally:
                del self.__dict__["peek"]

        def construct_scalar(self, node: Any) -> Any:
            value = super().construct_scalar(node)
            if _HALF.search(value):
                message = "contains half of a character (\\ud800 to \\udfff); write it whole"
                raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
            return value

    for name, (pattern, first) in _YAML_TYPES.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(pattern), list(first))
    return Loader


def _check_nodes(value: Any) -> None:
    """Raise ValueError for values that JSON cannot hold, and for too many after aliases."""
    waiting, seen = [value], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        if seen + len(waiting) > MOST_NODES:
            raise ValueError(f"its aliases expand to more than {MOST_NODES} values")
        if isinstance(node, dict):
            waiting.extend(node)
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, int | float):
            if not -(2.0**63) <= node < 2.0**63:
                raise ValueError(f"holds the number {str(node)[:20]}, which JSON does not carry")
        elif not isinstance(node, str | None):
            raise ValueError(f"holds a {type(node).__name__}; write plain values only")

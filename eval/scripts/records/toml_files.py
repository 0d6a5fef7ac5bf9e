"""One reader of all TOML files: tables as types, and every fault with its line; and its writer.

    class Decide(msgspec.Struct):
        matters: Annotated[float, Meta(gt=0, lt=1, description="write a share")] | None = None

    read_file(path, Decide)
    # targets.toml:1: matters: must be a number above 0, below 1; write a share

Ranges are marked by ``msgspec.Meta``; its description is the remedy. ``Parsed`` marks what a
function makes of the file's value, ``OneOf`` names. A method ``faults`` of a table yields what is
wrong between its keys, as key path and clause; nothing more is said of what is faulty already.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from records.errors import Problem, StorageError
from records.file_access import MAX_SETTINGS, read_whole
from records.files import read_toml

KeyPath = tuple[str, ...]


@dataclass(frozen=True)
class Parsed:
    """Marks a type that a function reads from the value in the file.

    The function raises ValueError with the clause that is said of what it cannot use.
    """

    make: Callable[[Any], Any]


@dataclass(frozen=True)
class OneOf:
    """Marks a text that must be one of some names, or a table whose keys must be."""

    names: Sequence[str]


def _one_line(value: Any) -> str:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value
    raise ValueError("must be one line of text")


Line = Annotated[str, Parsed(_one_line)]
"""One line of text, not blank."""


T = TypeVar("T")


def read_file(path: Path, form: type[T], remedy: str = "") -> T:
    """The content of a file as a value of ``form``. Raises StorageError with every fault.

    ``remedy``: said of a file that is not there.
    """
    raw, reader = open_file(path, remedy)
    value: T = reader.read(raw, form)
    reader.end()
    return value


def open_file(path: Path, remedy: str = "") -> tuple[dict[str, Any], TomlReader]:
    """The parsed file, and a reader for its tables. Raises StorageError."""
    try:
        return read_toml(path), TomlReader(str(path), path)
    except FileNotFoundError:
        end = f"; {remedy}" if remedy else ""
        raise StorageError(f"{path}: no such file{end}.") from None


class TomlReader:
    """Turns parsed TOML into typed values and gathers its faults."""

    def __init__(self, source: str, path: Path | None = None) -> None:
        self._source, self._path = source, path
        self.problems: list[Problem] = []
        self._faulty: list[KeyPath] = []

    @cached_property
    def lines(self) -> dict[KeyPath, int]:
        """The line number of each key of the file; empty without a file."""
        path = self._path
        return {} if path is None else key_lines(read_whole(path, MAX_SETTINGS).decode())

    def wrong(self, key: KeyPath, clause: str) -> None:
        """Note one fault, at the line of the key, or of the table that lacks it."""
        ends = [key[:size] for size in range(len(key), 0, -1)]
        paths = (path for end in ends for path in (end, (*end[:-1], end[-1].partition("[")[0])))
        line = next((self.lines[path] for path in paths if path in self.lines), None)
        self.problems.append(Problem(self._source, line, shown_key(key), clause))
        self._faulty.append(key)

    def end(self) -> None:
        """Raises StorageError with everything that was wrong."""
        if self.problems:
            problems = sorted(self.problems, key=lambda problem: problem.line or 0)
            raise StorageError.from_problems(problems)

    def read(self, raw: Any, form: Any, key: KeyPath = ()) -> Any:
        """Returns the value as its type, or None with a fault noted.

        ``form``: the type. ``key``: where the value stands in the file.
        """
        base, marks = _bare(form)
        kind, parts = get_origin(base) or base, get_args(base)
        if parsed := _mark(marks, Parsed):
            try:
                return parsed.make(raw)
            except (ValueError, StorageError) as error:
                return self.wrong(key, str(error).rstrip("."))
        if isinstance(raw, dict) and _is_table(base):
            return self._table(raw, base, key)
        choice = _mark(marks, OneOf)
        if isinstance(raw, str) and kind is str and choice and raw not in choice.names:
            return self.wrong(key, f"must be {_one_of(choice.names)}")
        if isinstance(raw, dict) and kind is dict and parts:
            values = {}
            for name, value in raw.items():
                if choice and name not in choice.names:
                    self.wrong((*key, name), unknown(name, choice.names))
                elif parts[0] is str or self.read(name, parts[0], (*key, name)) is not None:
                    values[name] = self.read(value, parts[1], (*key, name))
            return values
        if isinstance(raw, list) and kind in (list, tuple) and _is_walked(parts[0], raw):
            ends = [f"{key[-1]}[{number}]" for number in range(1, len(raw) + 1)]
            items = zip(raw, ends, strict=True)
            return kind([self.read(item, parts[0], (*key[:-1], end)) for item, end in items])
        try:
            return msgspec.convert(raw, form)
        except msgspec.ValidationError:
            return self.wrong(key, _clause(form, key))

    def _is_faulty(self, key: KeyPath) -> bool:
        """Whether a fault of a key, of its table or of what it holds was noted."""
        pairs = ((noted, min(len(noted), len(key))) for noted in self._faulty if noted)
        return any(noted[:size] == key[:size] for noted, size in pairs)

    def _table(self, raw: Mapping[str, Any], form: Any, key: KeyPath) -> Any:
        """A table as its type; what is faulty counts as absent. None where such a key is needed."""
        fields, types = msgspec.structs.fields(form), _types(form)
        names = [field.encode_name for field in fields]
        for name in (name for name in raw if name not in names):
            self.wrong((*key, name), unknown(name, names))
        values: dict[str, Any] = {}
        for field, name in zip(fields, names, strict=True):
            if name in raw:
                values[field.name] = self.read(raw[name], types[field.name], (*key, name))
            elif field.required:
                self.wrong((*key, name), f"is missing{_remedy(_bare(types[field.name])[1])}")
        values = {name: value for name, value in values.items() if value is not None}
        if any(field.required and field.name not in values for field in fields):
            return None
        table = form(**values)
        for path, clause in table.faults() if hasattr(table, "faults") else ():
            if not self._is_faulty(whole := (*key, *path)):
                self.wrong(whole, clause)
        return table


@cache
def _types(form: type[Any]) -> dict[str, Any]:
    return get_type_hints(form, include_extras=True)


def _bare(form: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its marks and without None, which TOML has not; and the marks."""
    marks: tuple[Any, ...] = ()
    while True:
        kind, parts = get_origin(form), get_args(form)
        if kind is Annotated:
            form, marks = parts[0], marks + parts[1:]
        elif (
            kind in (Union, UnionType) and len(own := [p for p in parts if p is not NoneType]) == 1
        ):
            form = own[0]
        else:
            return form, marks


def _is_table(form: Any) -> bool:
    return isinstance(form, type) and issubclass(form, msgspec.Struct)


def _is_walked(form: Any, items: list[Any]) -> bool:
    """Whether the items of a list are read one by one: tables, and what a function makes."""
    base, marks = _bare(form)
    if _is_table(base):
        return all(isinstance(item, dict) for item in items)
    return _mark(marks, Parsed) is not None


def _mark(marks: Iterable[Any], kind: type[T]) -> T | None:
    return next((mark for mark in marks if isinstance(mark, kind)), None)


def _remedy(marks: Iterable[Any]) -> str:
    meta = _mark(marks, Meta)
    return f"; {meta.description}" if meta and meta.description else ""


def _clause(form: Any, key: KeyPath) -> str:
    """What is said of a value that is none of a type. It never shows the value, which may be a
    secret in the wrong place."""
    marks, words = _bare(form)[1], _words(form)
    remedy, meta = _remedy(marks), _mark(marks, Meta)
    if remedy and meta and meta.pattern:
        return remedy.removeprefix("; ")
    table = f"[{shown_key(key)}]"
    heads = {
        "a table": f"; write {table} and its keys below",
        "a list of tables": f"; write [{table}]",
    }
    return f"must be {words}{remedy or heads.get(words, '')}"


def _words(form: Any) -> str:
    """A type in words."""
    base, marks = _bare(form)
    kind, parts = get_origin(base) or base, get_args(base)
    if kind is Literal:
        return _one_of(parts)
    if kind is bool:
        return "true or false"
    if kind in (int, float):
        meta = _mark(marks, Meta) or Meta()
        noun = "a whole number" if kind is int else "a number"
        low = f" above {meta.gt:g}," if meta.gt is not None else ""
        low = f" from {meta.ge:g}" if meta.ge is not None else low
        high = f" below {meta.lt:g}" if meta.lt is not None else " up" * (meta.ge is not None)
        high = f" up to {meta.le:.12g}" if meta.le is not None else high
        return (noun + low + high).rstrip(",")
    if kind in (list, tuple):
        return f"a list of {_words(parts[0]).removeprefix('a ')}s"
    if kind is dict or _is_table(base):
        return "a table"
    return "a value" if kind is Any else "a text"


def _one_of(values: Iterable[Any]) -> str:
    texts = [str(value) for value in values]
    return texts[0] if len(texts) == 1 else f"one of {', '.join(texts)}"


def unknown(key: str, names: Iterable[str]) -> str:
    """The clause about an unknown key, with the nearest known one."""
    import difflib  # slow to load

    names = list(names)
    near = difflib.get_close_matches(key, names, 1)
    return f"is unknown; write {near[0]}" if near else f"is unknown; known here: {', '.join(names)}"


def shown_key(key: KeyPath) -> str:
    """A path of keys as TOML writes it, such as ``baseline."retrieval.*"``, ``examples[2].ask``."""
    bare = re.compile(r"[A-Za-z0-9_-]+(\[\d+\])?")
    return ".".join(name if bare.fullmatch(name) else toml_key(name) for name in key)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of each table and each ``key = value``, by its path of names.

    Tables of an array are ``name[1]``, ``name[2]``; the first is ``name``, too. What a parser of
    lines cannot see (a key inside an inline table) is left out.
    """
    lines: dict[KeyPath, int] = {}
    counts: Counter[KeyPath] = Counter()
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            path = _path(stripped.partition("#")[0] + "\n")
            if path and stripped.startswith("[["):
                lines.setdefault(path, number)
                counts[path] += 1
                path = (*path[:-1], f"{path[-1]}[{counts[path]}]")
            if path:
                table = path
                lines.setdefault(table, number)
        elif "=" in stripped and not stripped.startswith("#"):
            for position, char in enumerate(stripped):
                path = _path(f"{stripped[:position]} = 0\n") if char == "=" else None
                if path:
                    lines.setdefault(table + path, number)
                    break
    return lines


def _path(text: str) -> KeyPath | None:
    """The only path of names that a piece of TOML makes; None when it is no TOML."""
    try:
        node: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    while True:
        if isinstance(node, list):
            node = node[0] if node else None
        if not isinstance(node, dict) or not node:
            return tuple(path) or None
        name, node = next(iter(node.items()))
        path.append(name)


def toml_key(name: str) -> str:
    """A key as TOML writes it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_table(name: str, values: Mapping[str, Any]) -> list[str]:
    """The lines of a table below an empty line; none for an empty table."""
    lines = [f"{toml_key(k)} = {toml_value(v)}" for k, v in values.items() if v is not None]
    return ["", f"[{name}]", *lines] if values else []


def toml_value(value: Any) -> str:
    """A value in TOML, on one line; values without a form in TOML (null) are left out."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(pairs) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value if item is not None) + "]"
    return json.dumps(value)

"""Decoding lines of JSONL into records: whole ones, or without the fields that no line has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin

import msgspec
import orjson

from records.errors import Problem, StorageError
from records.file_access import open_plain, open_unpacked
from records.lines import lines_from, parse_json

Record = TypeVar("Record", bound=msgspec.Struct)

Decode = Callable[[Sequence[bytes]], list[Record]]
"""A record for each line. Raises what msgspec's decoder raises."""

MOST_CHANGES = 8
"""New keys that are answered with a new struct; a file with still others is decoded as a whole."""

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
"""What JSON writes as an escape. msgspec takes no such key as the name of a struct's field."""


def whole(full: type[Record]) -> Decode[Record]:
    """Decodes lines into records of the class itself."""
    decode = msgspec.json.Decoder(full).decode
    return lambda lines: list(map(decode, lines))


class Lean(Generic[Record]):
    """Decodes lines of one file; its records read like ``full``, but are not of that class.

    A case has thirty fields and the sets of large runs use six: to build thirty takes twice as
    long. A record here has the fields that the lines so far had; the others stand in its class,
    with their defaults, and must not be changed.
    """

    def __init__(self, full: type[Record]) -> None:
        self._full = full
        self._whole = msgspec.json.Decoder(full)
        self._decoder = self._whole
        self._keys: set[str] = set()
        self._changes = 0

    def __call__(self, lines: Sequence[bytes]) -> list[Record]:
        if self._decoder is not self._whole:
            try:
                return list(map(self._decoder.decode, lines))
            except msgspec.ValidationError:
                pass  # a key that no line had before, or a fault, which is told below
        records = list(map(self._whole.decode, lines))
        if self._changes < MOST_CHANGES:
            self._look_at(lines)
        else:
            self._decoder = self._whole
        return records

    def _look_at(self, lines: Sequence[bytes]) -> None:
        keys = set().union(*map(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode, lines))
        if any(map(_ESCAPED.search, keys)):
            self._changes = MOST_CHANGES  # the file is decoded as a whole from here on
        elif not keys <= self._keys:
            self._keys |= keys
            self._changes += 1
            self._decoder = msgspec.json.Decoder(_lean(self._full, self._keys))


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is msgspec.NODEFAULT:
        return field.default
    return msgspec.field(default_factory=field.default_factory)


def _lean(full: type[Record], keys: set[str]) -> type[Record]:
    """A struct with the fields of ``full`` among ``keys``; other keys are passed over."""
    fields: list[Any] = []
    absent: dict[str, Any] = {}
    for field in msgspec.structs.fields(full):
        if field.required:
            fields.append((field.name, field.type))
        elif field.name in keys:
            fields.append((field.name, field.type, _default_of(field)))
        elif field.default_factory is msgspec.NODEFAULT:
            absent[field.name] = field.default
        else:
            absent[field.name] = field.default_factory()
    unknown = sorted(keys - {field.name for field in msgspec.structs.fields(full)})
    names = {f"unknown_{number}": key for number, key in enumerate(unknown)}
    fields += [(name, msgspec.Raw, msgspec.Raw()) for name in names]
    methods = {name: value for name, value in vars(full).items() if callable(value)}
    struct = msgspec.defstruct(
        f"Lean{full.__name__}",
        fields,
        namespace=absent | methods,
        rename=names,
        forbid_unknown_fields=True,
        gc=False,
    )
    return cast(type[Record], struct)


@lru_cache(maxsize=256)
def project(full: type[Record], fields: tuple[str, ...]) -> type[Record]:
    """A record with some fields of ``full`` alone: the others are neither checked nor decoded.

    ``evidence.claims.text`` names a field of the records within a field; all of them where only
    the field is named. What it gives reads like ``full``, but is not of that class. Raises
    KeyError for a field that is none.
    """
    inner: dict[str, list[str]] = {}
    for name, _, rest in (field.partition(".") for field in fields):
        inner.setdefault(name, []).extend([rest] if rest else [])
    infos = {info.name: info for info in msgspec.structs.fields(full)}
    projected: list[Any] = []
    for name, rests in inner.items():
        info = infos[name]
        kind = _within(info.type, tuple(rests)) if rests else info.type
        if info.required:
            projected.append((name, kind))
        elif rests and info.default_factory is not msgspec.NODEFAULT:
            factory = kind if isinstance(kind, type) else info.default_factory
            projected.append((name, kind, msgspec.field(default_factory=factory)))
        else:
            projected.append((name, kind, _default_of(info)))
    projected.sort(key=len)  # those without a default come first
    struct = msgspec.defstruct(
        full.__name__,
        projected,
        rename={name: infos[name].encode_name for name in inner},
        omit_defaults=full.__struct_config__.omit_defaults,
        gc=False,
    )
    return cast(type[Record], struct)


def _within(kind: Any, fields: tuple[str, ...]) -> Any:
    """A type with each record in it projected: ``list[Claim]``, ``Claim | None``, …"""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return project(kind, fields)
    arguments = get_args(kind)
    if not arguments:
        return kind
    narrowed = tuple(_within(argument, fields) for argument in arguments)
    if get_origin(kind) in (Union, UnionType):
        return Union[narrowed]  # noqa: UP007 - made of a tuple
    return get_origin(kind)[narrowed]


T = TypeVar("T")


def read(
    path: Path,
    kind: type[T],
    noun: str = "score line",
    remedy: str = "score the run again",
    report: Callable[[Problem], None] | None = None,
    at: Iterable[int] | None = None,
    damaged: str = "",
) -> Iterator[tuple[int, int, T]]:
    """Number (from 1), byte offset and record of each line. With ``at`` only the lines that begin
    at these offsets, with number 0, since the lines before them are not counted.

    Only what ``kind`` names is decoded and checked; a reader that asks for all that it uses can
    trust it. A line that is no ``what`` is passed to ``report``, with ``remedy``; without it, the
    first one raises StorageError. So does a file that cannot be read. ``damaged``: the remedy where
    a line is no JSON at all, if that is another one.
    """
    return read_with(path, msgspec.json.Decoder(kind).decode, noun, remedy, report, at, damaged)


def read_with(
    path: Path,
    decode: Callable[[bytes], T],
    noun: str = "score line",
    remedy: str = "score the run again",
    report: Callable[[Problem], None] | None = None,
    at: Iterable[int] | None = None,
    damaged: str = "",
) -> Iterator[tuple[int, int, T]]:
    """The same with the caller's own decoder, which raises the errors of msgspec."""
    try:
        for number, offset, line in _numbered(path) if at is None else _picked(path, at):
            try:
                record = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                parsed = isinstance(error, msgspec.ValidationError | RecursionError)
                helps = remedy if parsed else damaged or remedy
                message = f"is not a {noun} ({error}); {helps}"
                problem = Problem(str(path), number or None, "", message)
                if report is None:
                    raise StorageError.from_problems([problem]) from None
                report(problem)
            else:
                yield number, offset, record
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror}); {remedy}.") from None


def _numbered(path: Path) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    with open_plain(path) as file:
        for number, line in enumerate(file, 1):
            yield number, offset, line
            offset += len(line)


def _picked(path: Path, at: Iterable[int]) -> Iterator[tuple[int, int, bytes]]:
    for offset, line in lines_from(path, at):
        yield 0, offset, line


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of each non-empty line of a JSONL file, gzipped when it ends with .gz.

    Raises:
        StorageError: the file cannot be read or a line is not a JSON object."""
    try:
        with open_unpacked(path) as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, _parsed(path, number, line)
    except (OSError, EOFError) as error:
        raise StorageError(f"{path}: cannot be read: {error}") from error


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = parse_json(line)
    except orjson.JSONDecodeError as error:
        message = f"is not JSON ({error}); write one object a line"
        raise StorageError.from_problems([Problem(str(path), number, "", message)]) from error
    if not isinstance(row, dict):
        message = f"expected an object, found {type(row).__name__}"
        raise StorageError.from_problems([Problem(str(path), number, "", message)])
    return row

"""metrics.json of a run, checked once, so that all who draw from it can trust its parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import storage

REMEDY = "score the run again, or take the file from git"
Numbers = dict[str, float | None]
Counts = dict[str, int]


class Slice(msgspec.Struct):
    """A section's means for one value of a dimension."""

    n: int
    mean: Numbers
    n_of: Counts = {}


class Judge(msgspec.Struct):
    """Who judged, as a section's options tell it."""

    identity: dict[str, Any] | None = None
    prompts: dict[str, Any] | None = None
    answered_as: list[str] | None = None
    fingerprints: list[str] | None = None


class Options(msgspec.Struct):
    """How a section was scored, as far as its shape matters to a reader."""

    judge: Judge | None = None


class Section(msgspec.Struct, kw_only=True):
    """What any reader uses of a section, where it is there."""

    mean: Numbers = {}
    n: Counts = {}
    ci95: dict[str, tuple[float, float] | None] = {}
    definitions: dict[str, str] = {}
    not_applicable: Counts = {}
    failed: Counts = {}
    by: dict[str, dict[str, Slice]] = {}
    options: Options = msgspec.field(default_factory=Options)


class _Head(msgspec.Struct):
    run_id: str | None = None
    config_hash: str | None = None
    eval_set_sha256: str | None = None
    labels_sha256: str | None = None
    asked: int | None = None
    cases: int = 0
    missing: int | None = None
    errors: int = 0
    sections: dict[str, dict[str, Any]] = {}


def read_metrics(folder: Path, whole: type[Section] = Section) -> dict[str, Any]:
    """metrics.json of a run folder, see ``read_sections``.

    Raises StorageError where there is no file, or where a part is not of its type.
    """
    path = folder / "metrics.json"
    if not path.exists():
        raise storage.StorageError(
            f"{path}: no such file; score the run first (eval_suite.py --run {folder.name})."
        )
    return read_sections(path, whole)


def read_sections(
    path: Path, whole: type[Section] = Section, remedy: str = REMEDY
) -> dict[str, Any]:
    """metrics.json, or another file with its ``sections``.

    ``whole``: what a section with means must hold; other scripts may keep other sections. Raises
    StorageError, with ``remedy``, that names each part that is not of its type.
    """
    found = storage.read_json(path, storage.SCHEMA)
    faults = list(_faults("", found, _Head))
    for name, section in found.get("sections", {}).items() if not faults else ():
        faults += _faults(f"sections.{name}", section, whole if "mean" in section else Section)
    if faults:
        raise storage.StorageError.from_problems(
            storage.Problem(str(path), None, field, f"{told}; {remedy}") for field, told in faults
        )
    return found


def _faults(where: str, value: Any, kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """Field and fault of each part that is not of its type; of a table, of each of its entries."""
    for field in msgspec.structs.fields(kind):
        place = f"{where}.{field.name}".removeprefix(".")
        if field.name not in value:
            if field.required:
                yield place, "is not there"
            continue
        part = value[field.name]
        table = isinstance(part, dict)
        for key, entry in ((k, {k: v}) for k, v in part.items()) if table else [("", part)]:
            try:
                msgspec.convert(entry, field.type)
            except msgspec.ValidationError as error:
                told = str(error).removesuffix(" - at `$[...]`")
                yield f"{place}.{key}" if table else place, told

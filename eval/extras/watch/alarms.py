"""The findings of the looks at production: the alarms of an index, kept until they are over or
seen.

A file of JSON beside the index, so that an alarm outlives the index and the traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from extras.watch.rise import Rise
from records.errors import StorageError
from records.files import read_json, replace_json
from records.results import SCHEMA


def alarms_file(index: Path) -> Path:
    """Where the alarms of an index are kept."""
    return index.with_name(f"{index.name}.alarms.json")


def read_alarms(path: Path) -> dict[str, list[Rise]]:
    """Empty where there is no file. Raises StorageError for one that cannot be used."""
    if not path.exists():
        return {}
    try:
        return msgspec.convert(read_json(path, SCHEMA).get("figures", {}), dict[str, list[Rise]])
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: {error}; delete it to forget all alarms.") from None


def write_alarms(path: Path, alarms: Mapping[str, Sequence[Rise]]) -> None:
    """Replace the file in one step."""
    figures = {name: list(known) for name, known in sorted(alarms.items()) if known}
    replace_json(path, {"schema": SCHEMA, "figures": msgspec.to_builtins(figures)})

"""The findings of the looks at production: the alarms of an index, kept until they are over or
seen.

A file of JSON beside the index, so that an alarm outlives the index and the traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec

from records.errors import StorageError
from records.files import read_json, replace_json
from records.results import SCHEMA


class KnownAlarm(msgspec.Struct, frozen=True):
    """The days on which a rise began, was found, was over and was seen by a person; None: not."""

    since: date
    sounded: date
    ended: date | None = None
    seen: date | None = None


Alarms = Mapping[str, Sequence[KnownAlarm]]
"""By the name of a figure, oldest first; only the last may last."""


def alarms_file(index: Path) -> Path:
    """Where the alarms of an index are kept."""
    return index.with_name(f"{index.name}.alarms.json")


def read_alarms(path: Path) -> Alarms:
    """Empty where there is no file. Raises StorageError for one that cannot be used."""
    if not path.exists():
        return {}
    try:
        return msgspec.convert(
            read_json(path, SCHEMA).get("figures", {}), dict[str, list[KnownAlarm]]
        )
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: {error}; delete it to forget all alarms.") from None


def write_alarms(path: Path, alarms: Alarms) -> None:
    """Replace the file in one step."""
    figures = {name: list(known) for name, known in sorted(alarms.items()) if known}
    replace_json(path, {"schema": SCHEMA, "figures": msgspec.to_builtins(figures)})

"""metrics.json of a run: one section a scorer, made to be committed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from records.errors import StorageError
from records.files import clear_leftovers, locked, read_json, replace_json
from records.results import SCHEMA

ROUND = 6
OF_RESULTS = frozenset({"cases", "errors", "asked", "missing"})
"""Counts in the head that all sections share: where one changes, results.jsonl has changed."""


def update_metrics(
    folder: Path, section: str, values: dict[str, Any], header: dict[str, Any]
) -> Path:
    """Put one section (and the header's fields) into metrics.json, under its lock.

    Other sections stay as they are, unless the head's counts of results change: they were made of
    other results, which the new head does not describe, and go. Floats are rounded to 6 places,
    keys sorted, no clock time: the same results give the same bytes. Raises StorageError for NaN
    and infinities, which no metric may be.
    """
    path = folder / "metrics.json"
    with locked(path):
        clear_leftovers(path)
        known: dict[str, Any] = {"schema": SCHEMA}
        if path.exists():
            known = read_json(path, SCHEMA)
        if any(
            name in known and known[name] != header[name] for name in OF_RESULTS & header.keys()
        ):
            known = {"schema": SCHEMA}
        sections = known.get("sections", {}) | {section: rounded(values)}
        replace_json(path, known | rounded(header) | {"sections": sections})
    return path


def section_names(folder: Path) -> frozenset[str]:
    """The sections that a run's metrics.json holds; none without the file."""
    path = folder / "metrics.json"
    return frozenset(read_json(path, SCHEMA).get("sections", {}) if path.exists() else ())


def rounded(value: Any) -> Any:
    """The same data with floats of 6 decimal places. Raises StorageError for NaN and infinities."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise StorageError("a metric is not a finite number; this is a bug, please report it.")
        return round(value, ROUND) + 0.0  # + 0.0 turns -0.0 into 0.0
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value

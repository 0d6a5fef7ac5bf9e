"""What the eval set says of the cases that are compared: slices, and clusters that go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

import storage
from ragmetrics.tally import Slices, facets_of, slices_of
from storage import Problem, StorageError

DOCUMENT = "doc"
"""The cluster of a case is the document of its first gold support."""


def slices_of_cases(eval_set: Path, labels_dir: Path | None) -> dict[str, Slices]:
    """The slices of each case: category, difficulty, query type, tags, vaults.

    Raises StorageError with every problem of the set and its labels.
    """
    problems: list[Problem] = []
    labels, _ = storage.read_labels(labels_dir, problems.append)
    found = {
        case.id: slices_of(facets_of(case))
        for case in storage.iter_cases(eval_set, problems.append, labels)
    }
    if problems:
        raise StorageError.from_problems(problems)
    return found


def changed_set(eval_set: Path, run: Path) -> str | None:
    """A remark when the set is not the one that a run was scored with, else None."""
    scored = storage.read_json(run / "metrics.json").get("eval_set_sha256")
    if scored in (None, storage.sha256_file(eval_set)):
        return None
    return (
        f"{eval_set} is not the set that {run.resolve().name} was scored with: slices and clusters "
        "are those of the set as it is now."
    )


def clusters_of_cases(eval_set: Path, key: str) -> dict[str, int]:
    """The number of each case's cluster: cases with the same value of ``key`` go together.

    ``key`` is any key of the set's lines (of a list, the first item counts), or ``doc``: the
    document of the first gold support. Cases without a value are left out. Raises StorageError when
    no case has one.
    """
    numbers: dict[str, int] = {}
    found: dict[str, int] = {}
    problems: list[Problem] = []
    for number, line in storage.iter_lines(eval_set, problems.append):
        try:
            raw = storage.canonical(orjson.loads(line))
            value = _document(raw) if key == DOCUMENT else _first(raw.get(key))
            if value is not None:
                found[str(raw["id"])] = numbers.setdefault(str(value), len(numbers))
        except (orjson.JSONDecodeError, AttributeError, KeyError):
            problems.append(Problem(str(eval_set), number, "", "is no case; correct the line"))
    if problems:
        raise StorageError.from_problems(problems)
    if not found:
        raise StorageError(
            f"--cluster {key}: no case of {eval_set} has that key; name a key of its lines, or doc."
        )
    return found


def _document(raw: dict[str, Any]) -> Any:
    supports = raw.get("gold_supports")
    if isinstance(supports, list) and supports and isinstance(supports[0], dict):
        return supports[0].get("rel_path")
    return _first(raw.get("relevant_docs"))


def _first(value: Any) -> Any:
    return (value[0] if value else None) if isinstance(value, list) else value

"""metrics.json as the report reads it: checked once, so that all who draw from it can trust it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

import storage

Numbers = dict[str, float | None]
Counts = dict[str, int]


class _Slice(msgspec.Struct):
    n: int
    mean: Numbers
    n_of: Counts = {}


class _Point(msgspec.Struct):
    estimable: bool
    note: str | None


class _Stage(msgspec.Struct):
    n: int
    p50: float
    p95: float
    p99: float
    max: float


class _Budget(msgspec.Struct):
    percentile: str
    budget_ms: float
    ms: float
    n: int
    kept: bool


class _Judge(msgspec.Struct):
    identity: dict[str, Any] | None = None


class _Options(msgspec.Struct):
    judge: _Judge | None = None


class _Section(msgspec.Struct):
    mean: Numbers
    n: Counts
    ci95: dict[str, tuple[float, float] | None]
    definitions: dict[str, str]
    not_applicable: Counts
    failed: Counts
    by: dict[str, dict[str, _Slice]] = {}
    options: _Options = msgspec.field(default_factory=_Options)
    guardrails: dict[str, str] = {}
    operating_points: dict[str, _Point | None] = {}
    latency_ms: dict[str, _Stage] = {}
    run_budgets: list[_Budget] = []
    usage: Counts = {}
    cost_usd: float | None = None
    outcomes: dict[str, Counts] = {}


class _Head(msgspec.Struct):
    run_id: str | None = None
    config_hash: str | None = None
    eval_set_sha256: str | None = None
    cases: int = 0
    errors: int = 0
    sections: dict[str, Any] = {}


def read_metrics(folder: Path) -> dict[str, Any]:
    """metrics.json of a run, the parts that a report draws checked.

    Sections without means (other scripts may keep anything there) are passed over. Raises
    StorageError where there is no file, or where a part is not of its type.
    """
    path = folder / "metrics.json"
    if not path.exists():
        raise storage.StorageError(
            f"{path}: no such file; score the run first (eval_suite.py --run {folder.name})."
        )
    found = storage.read_json(path, storage.SCHEMA)
    _check(path, "", found, _Head)
    for name, section in found.get("sections", {}).items():
        if isinstance(section, dict) and "mean" in section:
            _check(path, f"sections.{name}: ", section, _Section)
    return found


def _check(path: Path, where: str, value: Any, kind: type[msgspec.Struct]) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        told = f"{path}: {where}{error}; score the run again, or take the file from git."
        raise storage.StorageError(told) from None

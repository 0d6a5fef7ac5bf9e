"""sweep.json: several settings of a bot that were asked as one experiment, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from records.errors import StorageError
from records.files import read_json, replace_json
from records.results import SCHEMA
from records.runs import check_run_id

_SUFFIX = ".sweep.json"


class SettingOutcome(msgspec.Struct, kw_only=True):
    """One setting. ``run``: the id of its run. ``state``: racing, best, left (not proven worse),
    worse, or broken (a limit); ``reason`` says why in words. ``difference``, ``interval``: quality
    less that of the best, and an interval that holds at all looks and for all pairs. ``failing``:
    cases that fail, by what all settings were measured for. Less of ``latency_ms`` (total, median
    and 95th percentile) and ``cost_usd`` (mean) is better."""

    name: str
    run: str
    values: dict[str, Any] = msgspec.field(default_factory=dict)
    state: str = "racing"
    reason: str = ""
    baseline: bool = False
    cases: int = 0
    calls: int = 0
    failed: int = 0
    failing: int | None = None
    quality: float | None = None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    cost_usd: float | None = None
    pareto: bool = False


class Sweep(msgspec.Struct, kw_only=True):
    """``plan``: what must be the same for a sweep to go on. ``ended``: decided, futile, budget,
    all asked, no setting or "" while it goes on; ``reason``: in words. ``calls``: asked, of
    ``planned`` that asking every setting every case would take. ``compare``: commands for what is
    left. ``confirmed``: the winner and the baseline on cases set aside for that, or asked again."""

    sweep_id: str
    schema: int = SCHEMA
    plan: dict[str, Any] = msgspec.field(default_factory=dict)
    settings: list[SettingOutcome] = msgspec.field(default_factory=list)
    quality: dict[str, float] = msgspec.field(default_factory=dict)
    limits: list[str] = msgspec.field(default_factory=list)
    looks: int = 0
    ended: str = ""
    reason: str = ""
    calls: int = 0
    planned: int = 0
    best: str | None = None
    compare: list[str] = msgspec.field(default_factory=list)
    confirmed: dict[str, Any] | None = None


def sweep_file(results_dir: Path, sweep_id: str) -> Path:
    """Where a sweep is recorded: beside the folders of its runs."""
    return results_dir / f"{check_run_id(sweep_id)}{_SUFFIX}"


def read_sweep(path: Path) -> Sweep:
    """Raises StorageError for a file that is absent, damaged or of another schema."""
    try:
        return msgspec.convert(read_json(path, SCHEMA), Sweep)
    except msgspec.ValidationError as error:
        raise StorageError(f"{path}: {error}; delete it to begin again.") from None


def write_sweep(path: Path, sweep: Sweep) -> None:
    """Replace sweep.json in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_json(path, msgspec.to_builtins(sweep))

"""The sweep that a run was asked in: its table, and the settings that no other one beats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from decisions.sweep_words import COLUMNS, ranked, sentences
from records.runs import CONFIG, read_config
from records.sweeps import read_sweep, sweep_file


def sweep_part(folder: Path) -> dict[str, Any]:
    """Under ``sweep``: the table of a run's sweep, with the run marked; nothing for other runs.

    Raises StorageError for a damaged file.
    """
    if not (folder / CONFIG).exists():
        return {}
    pace = read_config(folder).run.get("pace")
    sweep_id = pace.get("sweep") if isinstance(pace, Mapping) else None
    if not isinstance(sweep_id, str):
        return {}
    path = sweep_file(folder.parent, sweep_id)
    if not path.exists():
        return {}
    sweep = read_sweep(path)
    rows = [
        {
            "cells": [column.cell(outcome) for column in COLUMNS],
            "run": outcome.run,
            "this": outcome.run == folder.name,
            "pareto": outcome.pareto,
            "quality": outcome.quality,
            "latency_ms": outcome.latency_p50_ms,
        }
        for outcome in ranked(sweep)
    ]
    part = {
        "sweep_id": sweep_id,
        "columns": [column.name for column in COLUMNS],
        "rows": rows,
        "says": list(sentences(sweep)),
    }
    return {"sweep": part}

"""metrics.json and slices.json of made-up runs, in the form that the product writes.

A test says what readers see of a section (a table for each number, by metric); how that stands in
the files is known to ``records.metric_lines`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from records import metric_lines
from records.runs import SLICES


def metrics_text(metrics: Mapping[str, Any]) -> str:
    """A metrics.json with these members; sections as readers see them, without their slices."""
    whole: dict[str, Any] = {"schema": metric_lines.SCHEMA, **metrics}
    if "sections" in whole:
        whole["sections"] = {
            name: metric_lines.written_section(section)
            for name, section in whole["sections"].items()
        }
    return metric_lines.metrics_bytes(whole).decode()


def write_metrics(path: Path, metrics: Mapping[str, Any]) -> Path:
    """Write a metrics.json with the slices of its sections beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(metrics_text(metrics))
    slices = {
        name: {
            "of": metric_lines.mark_of(metric_lines.written_section(section)),
            **metric_lines.slices_of_section(section),
        }
        for name, section in metrics.get("sections", {}).items()
    }
    path.with_name(SLICES).write_bytes(orjson.dumps({"schema": 1, "sections": slices}))
    return path

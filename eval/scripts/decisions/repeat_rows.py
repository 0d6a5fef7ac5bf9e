"""The stability of a section as lines and rows of text, for the terminal and the report alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragmetrics.stats.repeats import LEVELS
from terminal.page import number

SOURCES = (*LEVELS[:3], "judge", LEVELS[3])

STABILITY_HEAD = ("metric", "cases", "worst of n", "flips", *(f"by {name}" for name in SOURCES))

EXPLAINED = (
    "Shares of the variance: between cases; where the repeats of a case retrieved something else; "
    "where they answered otherwise from the same passages; between opinions of the judge on the "
    "same answer; the rest. A dash: cannot be told from what stands before it, which holds it."
)


def pass_lines(stability: Mapping[str, Any]) -> list[str]:
    """pass@k and pass^k, a line each; nothing for sections without them."""
    lines = []
    for member, title in (
        ("pass_at", "At least one of k passes (pass@k)"),
        ("pass_all", "All k pass (pass^k)"),
    ):
        values = {k: value for k, value in stability.get(member, {}).items() if value is not None}
        if values:
            lines.append(f"{title}: " + ", ".join(f"k={k} {number(v)}" for k, v in values.items()))
    return lines


def stability_rows(stability: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, ...]]:
    """A row for each metric, see ``STABILITY_HEAD``."""
    rows = []
    for name in names:
        part = stability["metrics"][name]
        parts = part["variance"]
        total = sum(value or 0.0 for value in parts.values())
        shares = (_share(parts.get(source), total) for source in SOURCES)
        flips = _share(part.get("flips"), 1.0)
        rows.append((name, f"{part['n']:,}", number(part["worst"]), flips, *shares))
    return rows


def _share(value: float | None, total: float) -> str:
    return "–" if value is None or not total else f"{100 * value / total:.0f} %"

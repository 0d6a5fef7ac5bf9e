"""Which metrics stand for their perspective, and in which order metrics and sections stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ragmetrics.catalogue import METRICS
from ragmetrics.metric import Metric
from suite.measures import known_metrics
from suite.perspectives import PERSPECTIVES

ORDER = {metric.definition: place for place, metric in enumerate(METRICS)}
_CUT_OFF = re.compile(r"@(\d+)$")
FEW, SLICED = 6, 2
"""Metrics that stand for a section in charts, and in the tables of slices."""


def sections_in_order(sections: Mapping[str, Any]) -> list[str]:
    """The sections with means, in the order of the suite, those of other scripts behind."""
    sound = [
        name
        for name, section in sections.items()
        if isinstance(section, dict) and "mean" in section
    ]
    first = [one.name for one in PERSPECTIVES if one.name in sound]
    return first + sorted(set(sound) - set(first))


def metrics_in_order(section: Mapping[str, Any]) -> list[str]:
    """The metrics of a section as the catalogue has them, cut-offs rising; unknown ones last."""

    def place(name: str) -> tuple[int, int, str]:
        cut_off = _CUT_OFF.search(name)
        at = int(cut_off.group(1)) if cut_off else 0
        return ORDER.get(section["definitions"].get(name, ""), len(ORDER)), at, name

    return sorted(section["mean"], key=place)


def summary_of(section: str, names: Sequence[str]) -> list[str]:
    """The metrics that stand for a section: the suite's choice, else the first few."""
    for one in PERSPECTIVES:
        if one.name == section and one.summary:
            return [name for name in one.summary if name in names] or list(names[:FEW])
    return list(names[:FEW])


def must_of(section: str) -> Sequence[str]:
    """Yes/no metrics whose bad end makes an answer worth a look although they have no target."""
    return next((one.must for one in PERSPECTIVES if one.name == section), ())


def rows_of(section: Mapping[str, Any]) -> dict[str, Metric]:
    """Catalogue rows by the names that a section uses; those of plugins are not known here."""
    rows = known_metrics()
    named = section["definitions"].items()
    return {name: row for name, definition in named if (row := rows.get(definition)) is not None}

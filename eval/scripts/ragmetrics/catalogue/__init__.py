"""One row for every metric and one for every section: reports, comparisons, gates, the browser and
the tables of docs/metrics.md read them, and none has a list of its own.

To add a metric: one function, one row in its family's file, one test. A definition that changes
gets a new version: numbers of different versions are never compared. To add a section: a family
file with its rows, a line below, a module of ``scorers``, a script, a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ragmetrics.catalogue import (
    abstention,
    context,
    conversations,
    embedding,
    groundedness,
    judged,
    pipeline,
    retrieval,
    rubrics,
    safety,
    searches,
    tools,
)
from ragmetrics.catalogue.metric import (
    BY_DOCUMENT,
    Metric,
    MetricSection,
    at_cutoffs,
    nearest_cutoff,
    stem_of,
)
from ragmetrics.defaults import DIMENSIONS, KS

__all__ = [
    "BY_DEFINITION",
    "DIMENSIONS",
    "KS",
    "METRICS",
    "SECTIONS",
    "Metric",
    "Section",
    "at_cutoffs",
    "find",
    "headline",
    "main_names",
    "overview",
    "right_metrics",
]

MAIN_K = 5
"""The cut-off at which a family of metrics is compared."""

CUSTOM = MetricSection("custom", "Custom", (), "eval_suite.py", needs=("plugin",))
"""Metrics of a user's own plugin."""

SECTIONS: Mapping[str, MetricSection] = {
    section.name: section
    for section in (
        retrieval.SECTION,
        searches.SECTION,
        tools.SECTION,
        context.SECTION,
        groundedness.SECTION,
        embedding.SECTION,
        abstention.SECTION,
        safety.SECTION,
        pipeline.SECTION,
        judged.SECTION,
        rubrics.SECTION,
        conversations.SECTION,
        CUSTOM,
    )
}
"""All sections, in the order in which they are scored and shown."""

METRICS: tuple[Metric, ...] = tuple(
    metric for section in SECTIONS.values() for metric in section.metrics
)


BY_DEFINITION: Mapping[str, Metric] = {metric.definition: metric for metric in METRICS} | {
    metric.per_search_definition: metric
    for metric in METRICS
    if metric.family == "retrieval" and metric.name in retrieval.PER_SEARCH
}
"""The row of each definition's id."""


def find(name: str, metrics: Iterable[Metric] = METRICS) -> Metric:
    """The row of a metric by name, with or without ``@k`` and its section before it. Raises
    KeyError for unknown ones; a rubric's is known by its section alone."""
    section, dot, bare = name.partition(".")
    if dot and section == rubrics.SECTION.name:
        return rubrics.row_of(bare)
    stem = stem_of(bare if dot else name)
    for metric in metrics:
        if metric.name == stem:
            return metric
    raise KeyError(f"no metric is named {name!r}; the catalogue lists all names")


def headline(section: str, names: Sequence[str]) -> list[str]:
    """Return those of ``names`` that a section shows first, in order."""
    row = SECTIONS.get(section)
    shown = [*row.headline(), *(name + BY_DOCUMENT for name in row.headline())] if row else []
    return [name for name in shown if name in names]


def labels_of(section: str) -> tuple[str, ...]:
    """The fields of a case that a section reads; none of a section that does not say."""
    return SECTIONS[section].labels if section in SECTIONS else ()


def depends_on_run(section: str, name: str) -> bool:
    """Whether a case's score depends on the other cases of its run, see ``Metric.of_run``."""
    known = SECTIONS[section].metrics if section in SECTIONS else ()
    return any(row.of_run and row.name == stem_of(name) for row in known)


def main_names(section: str, names: Sequence[str]) -> list[str]:
    """Return those of ``names`` that represent their family when two runs are compared. Each is the
    name at the cut-off nearest to 5; metrics without a row are included."""
    known = SECTIONS[section].metrics if section in SECTIONS else ()
    chosen, cutoffs = [], dict[str, list[int]]()
    for name in names:
        stem, _, k = name.removesuffix(BY_DOCUMENT).partition("@")
        if k.isdigit():
            cutoffs.setdefault(stem, []).append(int(k))
    for name in names:
        stem, _, k = name.removesuffix(BY_DOCUMENT).partition("@")
        try:
            row = find(name, known)
        except KeyError:
            chosen.append(name)
            continue
        usual = not k or not k.isdigit() or int(k) == nearest_cutoff(MAIN_K, cutoffs[stem])
        if row.is_main and usual and not (k and stem in names):
            chosen.append(name)
    return chosen


def overview(*, of_cases: bool = False) -> tuple[str, ...]:
    """Return the metrics shown side by side across all sections, most needed first. With
    ``of_cases`` only those that a case of the set can have."""
    ranked = sorted(
        (row.overview, row.shown_as())
        for section in SECTIONS.values()
        for row in section.metrics
        if row.overview and not (of_cases and "labelled texts" in section.needs)
    )
    return tuple(name for _, name in ranked)


def right_metrics() -> list[tuple[str, str]]:
    """Section and name of the metrics that say whether an answer is right, the best one first."""
    rows = [
        (row.tells_right, section.name, row.shown_as())
        for section in SECTIONS.values()
        for row in section.metrics
        if row.tells_right
    ]
    return [(section, name) for _, section, name in sorted(rows)]

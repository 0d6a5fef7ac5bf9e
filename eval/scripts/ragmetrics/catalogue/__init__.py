"""One row for every metric; reports, comparisons, gates and EVAL.md's tables read them.

To add a metric: one function, one row in its family's file, one test. A definition that changes
gets a new version: numbers of different versions are never compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from ragmetrics.catalogue import (
    abstention,
    context,
    embedding,
    groundedness,
    judged,
    pipeline,
    safety,
)
from ragmetrics.catalogue.metric import Metric, at_cutoffs
from ragmetrics.catalogue.retrieval import ROWS as RETRIEVAL

__all__ = ["KS", "METRICS", "RETRIEVAL", "Metric", "at_cutoffs", "find"]

KS = (1, 3, 5, 10)
"""Cut-offs that retrieval metrics are reported at unless the user asks for others."""

METRICS: tuple[Metric, ...] = (
    *RETRIEVAL,
    *context.ROWS,
    *groundedness.ROWS,
    *embedding.ROWS,
    *judged.ROWS,
    *abstention.ROWS,
    *abstention.RUN_ROWS,
    *safety.ROWS,
    *pipeline.ROWS,
    *pipeline.RUN_ROWS,
)


def find(name: str, metrics: Iterable[Metric] = METRICS) -> Metric:
    """The row of a metric by name, with or without ``@k``. Raises KeyError for unknown ones."""
    stem = name.partition("@")[0]
    for metric in metrics:
        if metric.name == stem:
            return metric
    raise KeyError(f"no metric is named {name!r}; the catalogue lists all names")

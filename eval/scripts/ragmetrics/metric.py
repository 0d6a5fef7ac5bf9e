"""The class that a user's plugin describes its metrics with (docs/examples/custom_metric.py)."""

from __future__ import annotations

from ragmetrics.catalogue.metric import Metric

__all__ = ["Metric"]

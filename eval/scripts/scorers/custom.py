"""Custom metrics from a Python file: functions of a case and its result, with catalogue rows.

A plugin is a file with a list ``METRICS`` of ragmetrics.metric.Metric, each with a ``function``
that takes (case, result) and returns a float within the metric's range, or None where it does not
apply. docs/examples/custom_metric.py is one. A plugin is code of yours: it runs with your rights.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from ragmetrics.catalogue import METRICS
from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.tally import FAILED, Value
from records.cases import TestCase
from records.errors import StorageError
from records.results import TestResult
from scorers.contract import NOTHING, CannotRun, Evidence, ScoreRow, ScoringJob, SectionScorer

NAME = "custom"


def read_plugins(paths: Iterable[Path]) -> tuple[Metric, ...]:
    """The metrics of all plugin files. Raises StorageError, naming the file, for unusable ones."""
    metrics: list[Metric] = []
    taken = {metric.name for metric in METRICS}
    for path in paths:
        for metric in _metrics_of(path):
            if metric.name in taken:
                raise StorageError(f"{path}: metric {metric.name!r} exists already; rename it.")
            taken.add(metric.name)
            metrics.append(metric)
    return tuple(metrics)


def _metrics_of(path: Path) -> Sequence[Metric]:
    if not path.is_file():
        raise StorageError(f"--plugin {path}: no such file.")
    spec = importlib.util.spec_from_file_location(f"rag_eval_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise StorageError(f"--plugin {path}: is not a Python file (.py).")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise StorageError(f"{path}: cannot be loaded ({_error_text(error)}).") from error
    metrics = getattr(module, "METRICS", None)
    if not isinstance(metrics, list | tuple) or not metrics:
        raise StorageError(
            f"{path}: has no METRICS; list your ragmetrics.metric.Metric rows there."
        )
    for metric in metrics:
        if not isinstance(metric, Metric) or not callable(metric.function):
            raise StorageError(f"{path}: METRICS must contain Metric rows, each with a function.")
    return metrics


@dataclass(frozen=True)
class _PluginScorer:
    """Scores one result by the functions of the plugins."""

    metrics: tuple[Metric, ...]

    section = NAME

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def score(self, case: TestCase, result: TestResult) -> tuple[ScoreRow, Evidence]:
        """A function that raises, or leaves its range, has failed on this case: no score."""
        values: list[Value] = []
        reasons: list[tuple[str, str]] = []
        for metric in self.metrics:
            value, reason = _value(metric, case, result)
            values.append(value)
            if reason:
                reasons.append((metric.name, reason))
        return ScoreRow(tuple(values), tuple(reasons)), NOTHING


def _value(metric: Metric, case: TestCase, result: TestResult) -> tuple[Value, str]:
    function: Callable[..., Any] = metric.function or (lambda case, result: None)
    try:
        value = function(case, result)
    except (Exception, SystemExit) as error:
        return FAILED, f"the plugin raised {_error_text(error)}"
    if value is None:
        return None, f"needs {metric.needs}"
    if not isinstance(value, int | float) or not isfinite(value):
        return FAILED, f"the plugin returned {type(value).__name__} {str(value)[:40]!r}, no number"
    low, high = metric.low, metric.high
    if (low is not None and value < low) or (high is not None and value > high):
        return FAILED, f"the plugin returned {value:g}, outside its range {low} to {high}"
    return float(value), ""


def _error_text(error: BaseException) -> str:
    first = (str(error).strip() or "no message").splitlines()[0][:200]
    return f"{type(error).__name__}: {first}"


@dataclass(frozen=True)
class CustomOptions:
    """``custom``: the metrics of the user's plugins."""

    custom: tuple[Metric, ...] = ()


def _make_scorer(job: ScoringJob, options: CustomOptions) -> _PluginScorer:
    """The scorer of these metrics. Raises CannotRun when there are none."""
    if not options.custom:
        raise CannotRun("no --plugin was given.")
    return _PluginScorer(options.custom)


SECTION = SectionScorer(options=CustomOptions, scorer=_make_scorer, in_processes=False)

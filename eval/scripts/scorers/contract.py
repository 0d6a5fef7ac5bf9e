"""What a section's module gives: a scorer, its options, and how a bad case is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.tally import (
    Slices,
    Values,
)
from records.cases import TestCase
from records.errors import StorageError
from records.results import TestResult


class CannotRun(StorageError):
    """A perspective lacks what it needs (labels, a model); the message holds the remedy."""


class Scorer(Protocol):
    """One perspective. Must be picklable; ``options`` are recorded beside the numbers."""

    @property
    def section(self) -> str:
        """Name of the section in metrics.json and of the file in scores/."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """The catalogue rows of the scores, in the order of a row's values."""

    @property
    def options(self) -> dict[str, Any]:
        """What the numbers depend on besides case and result."""

    def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        """Scores of a result that is no error (errors never reach a scorer)."""


@runtime_checkable
class Aggregator(Protocol):
    """A scorer that also has numbers of the whole run, such as percentiles or an AUC."""

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[dict[str, Any]], seed: int
    ) -> dict[str, Any]:
        """The section with them added; ``lines`` are the score lines, in order."""


@runtime_checkable
class BlockScorer(Protocol):
    """A scorer that is quicker with many results at once."""

    def score_all(
        self, cases: Sequence[TestCase], results: Sequence[TestResult]
    ) -> list[ScoreOutcome]:
        """What ``score`` says of each result; none of them is an error."""


class ScoreRow(NamedTuple):
    """What a scorer says of one result: a score for each of its metrics, in their order.

    ``reasons``: (metric, why) for metrics without a score, ``*`` for all. ``slices``: slices that
    the result belongs to besides its case's. A scorer may hand out the same row object again for
    an equal outcome; it is then encoded and counted once.
    """

    values: Values
    reasons: Reasons = ()
    slices: Slices = ()


Reasons = tuple[tuple[str, str], ...]

Evidence = Mapping[str, Any] | bytes
"""What the scores of one result rest on, as JSON; bytes are JSON that is encoded already."""

NOTHING: Mapping[str, Any] = {}

ScoreOutcome = tuple[ScoreRow, Evidence]


def add_metric(
    section: dict[str, Any],
    metric: Metric,
    value: float | None,
    interval: tuple[float, float] | None = None,
    *,
    n: int = 0,
    not_applicable: int = 0,
    failed: int = 0,
) -> None:
    """Put a number of the whole run beside the means of a section; ``n`` cases stand behind it."""
    parts = {
        "definitions": metric.definition,
        "n": n,
        "not_applicable": not_applicable,
        "failed": failed,
        "mean": value,
        "ci95": None if interval is None else list(interval),
    }
    for name, part in parts.items():
        section[name][metric.name] = part

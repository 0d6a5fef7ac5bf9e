"""Defines the interface of a section: a scorer, its options, and the display of a bad case."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from ragmetrics.catalogue.metric import Metric
from ragmetrics.stats.intervals import Interval
from ragmetrics.stats.tally import Slices, Values
from records.cases import TestCase
from records.errors import StorageError
from records.results import TestResult
from records.scores import Reasons, ScoreLine

if TYPE_CHECKING:
    from rich.console import Console


class CannotRun(StorageError):
    """Raised when a section lacks a requirement (labels, a model); the message names the remedy."""


class NothingToScore(CannotRun):
    """Raised when a run has no data for a section, as most runs: neither a fault nor a score."""


@dataclass(frozen=True)
class ScoringJob:
    """A run to be scored, with its set and labels.

    ``jobs``: processes that score. ``console``: where a wait is shown. ``case_lines``: write the
    lines of the cases in metrics.json after this section; who scores several sections writes them
    once, after the last.
    """

    folder: Path
    eval_set: Path
    labels_dir: Path
    seed: int = 0
    jobs: int = 1
    console: Console | None = None
    case_lines: bool = True

    def for_section(self, code: SectionScorer) -> ScoringJob:
        """Return the job as a section can run it, which may be in one process."""
        return self if code.in_processes else replace(self, jobs=1)


@dataclass(frozen=True)
class SectionScorer:
    """The code of a section; its data is in the catalogue.

    ``options``: the dataclass of what can be chosen; its fields have the names of the script's
    options. ``scorer``: makes a scorer that has all it needs for a job. ``score``: scores a section
    without one, whose lines are no cases, and ``score_and_show`` prints it, too, from the script's
    options. ``as_run`` writes a plain data set as a run folder into a folder. ``show_more`` prints
    what there is besides means. ``in_processes``: false where each process would have to load again
    what the scorer holds, or an answer is scored with those before it.
    """

    options: type[Any]
    scorer: Callable[[ScoringJob, Any], Scorer] | None = None
    show_more: Callable[[Console, Mapping[str, Any]], None] | None = None
    in_processes: bool = True
    score: Callable[[ScoringJob, Any], dict[str, Any]] | None = None
    score_and_show: Callable[[Mapping[str, Any], ScoreOutput], dict[str, Any]] | None = None
    as_run: Callable[[Path, Path], Path] | None = None

    def options_from(self, values: Mapping[str, Any]) -> Any:
        """Build the options from the values that are given, with defaults for the others."""
        names = {field.name for field in fields(self.options)}
        return self.options(**{name: values[name] for name in names & values.keys()})


class ScoreOutput(Protocol):
    """Outputs of a script: the console for tables, JSON on stdout, talk on stderr."""

    def console(self) -> Console:
        """The console of stdout."""

    def talk(self) -> Console:
        """The console of stderr, silent with --quiet."""

    def json(self, value: dict[str, Any]) -> None:
        """Write rounded JSON to stdout."""

    def note(self, text: str) -> None:
        """Print a remark for the reader on stderr; nothing for "" and with --quiet."""

    def nothing(self, reason: str) -> None:
        """Report that there is no output: null as JSON, and the reason on stderr."""


class Scorer(Protocol):
    """Scores the cases of one section. Must be picklable; ``options`` go with the numbers."""

    @property
    def section(self) -> str:
        """Name of the section in metrics.json and of the file in scores/."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """The catalogue rows of the scores, in the order of a row's values."""

    @property
    def options(self) -> dict[str, Any]:
        """The settings that the numbers depend on besides case and result."""

    def score(self, case: TestCase, result: TestResult) -> ScoreOutcome:
        """Scores of a result that is no error (errors never reach a scorer)."""


@runtime_checkable
class Aggregator(Protocol):
    """A scorer that also has numbers of the whole run, such as percentiles or an AUC."""

    def aggregate(
        self, section: dict[str, Any], lines: Iterator[ScoreLine], seed: int
    ) -> dict[str, Any]:
        """Return the section with these numbers added. ``lines`` are the score lines, in order,
        each with the number of its case's cluster (0: none)."""


Earlier = tuple[TestCase, TestResult]
"""An earlier turn, with its answer in the same repeat."""


@runtime_checkable
class TurnScorer(Protocol):
    """A scorer whose scores of a turn depend on the turns before it."""

    def score_turn(
        self, case: TestCase, result: TestResult, earlier: Sequence[Earlier]
    ) -> ScoreOutcome:
        """Scores of a result that is no error; ``earlier``: the turns before it that have an
        answer, in order."""


@runtime_checkable
class FailureScorer(Protocol):
    """A scorer that also scores failed calls and asked questions without a result. In the other
    sections these have no scores."""

    def score_failed(self, case: TestCase, reason: str) -> ScoreRow:
        """The row of such a call."""


@runtime_checkable
class SparseScorer(Protocol):
    """A scorer with metrics whose data most runs or sets lack, such as judgements. Its score lines
    leave out every metric without a score for the usual reason."""

    @property
    def usual_reasons(self) -> Reasons:
        """These metrics, and why they usually have no score."""


class ScoreRow(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A scorer's result for one answer: a score for each of its metrics, in their order.

    ``reasons``: (metric, why) for metrics without a score, ``name@*`` for one at every cut-off,
    ``*`` for all. ``slices``: slices that the result belongs to besides its case's.
    ``status``: of the score line, where the values do not tell it: the call failed although there
    are scores, or the answer could not be read.
    """

    values: Values
    reasons: Reasons = ()
    slices: Slices = ()
    status: Literal["", "failed", "unreadable"] = ""


Evidence = Mapping[str, Any]
"""The evidence for the scores of one result, as JSON."""

NOTHING: Mapping[str, Any] = {}

ScoreOutcome = tuple[ScoreRow, Evidence]


@runtime_checkable
class ColumnScorer(Protocol):
    """A scorer that scores many answers at once where few things decide, so that many are equal."""

    def key(self, case: TestCase, result: TestResult) -> Hashable | None:
        """The part of an answer that decides its outcome; None when ``score`` needs all of it."""

    def score_columns(self, keys: Sequence[Any]) -> list[ScoreOutcome]:
        """The outcome for each key, equal to that of ``score``."""


def add_metric(
    section: dict[str, Any],
    metric: Metric,
    value: float | None,
    interval: Interval | None = None,
    *,
    n: int = 0,
    not_applicable: int = 0,
    failed: int = 0,
) -> None:
    """Add a number of the whole run to the means of a section; ``n`` cases support it."""
    parts = {
        "definitions": metric.definition,
        "n": n,
        "not_applicable": not_applicable,
        "failed": failed,
        "mean": value,
        "ci95": None if interval is None else interval.ends,
    }
    if interval is not None:
        parts |= {"method": interval.method, "clusters": interval.units}
        parts |= {"marks": interval.mark} if interval.mark else {}
    for name, part in parts.items():
        section[name][metric.name] = part

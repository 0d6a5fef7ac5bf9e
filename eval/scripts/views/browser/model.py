"""The content of the browser as plain values: runs, the trend of a case, and what gives them.

views/library.py fills these; the screens draw them. Nothing of it is
made harmless yet: texts are as they stand in the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from decisions.case_rules import Basis, CaseRules
from decisions.case_verdict import Key
from decisions.committed import ComparedPair
from decisions.slices import Slices
from views.browser.answers import AnswerTable
from views.case import Case
from views.notes import CaseNotes

State = Literal["complete", "running", "stopped", "empty"]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One run folder at a glance.

    ``done`` counts result lines (of ``planned``, None when unknown). ``state``: running when a
    results.partial.jsonl grows, stopped when it stands still. ``sections``: means by section and
    metric, with the number of cases behind each. ``config``: ``label: value`` pairs.
    """

    run_id: str
    state: State
    started: str = ""
    done: int | None = None
    planned: int | None = None
    errors: int | None = None
    missing: str = ""
    """How many of the asked cases have no result, and how many answers could not be read, in words;
    "" for none."""
    sections: Mapping[str, Mapping[str, tuple[float | None, int]]] = field(default_factory=dict)
    config: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    def mean(self, metric: str) -> float | None:
        """The mean of a metric in whatever section has it; None when none has."""
        for means in self.sections.values():
            if metric in means:
                return means[metric][0]
        return None


@dataclass(frozen=True, slots=True)
class MetricTrend:
    """A metric of one case, a value a run (None: no score), the oldest first.

    ``breaks``: before these points the metric's definition became another one.
    """

    section: str
    metric: str
    values: tuple[float | None, ...]
    breaks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Trend:
    """A case over the runs that scored it: their ids and dates, and its metrics."""

    runs: tuple[tuple[str, str], ...] = ()
    metrics: tuple[MetricTrend, ...] = ()
    problems: tuple[str, ...] = ()


class RunReader(Protocol):
    """A run whose files are read again, in a thread of its own, when they change."""

    run_id: str

    @property
    def table(self) -> AnswerTable:
        """The rows. Another object after the files were changed."""

    @property
    def info(self) -> RunInfo: ...

    @property
    def rules(self) -> CaseRules:
        """When a case fails."""

    @property
    def basis(self) -> Basis:
        """The basis of the verdicts on its cases; another object after a change."""

    @property
    def notices(self) -> Sequence[str]:
        """Messages for the user: unreadable lines, a set that is another one by now."""

    def start(self, tell: Callable[[], None]) -> None:
        """Look for changed files. Calls ``tell`` in another thread when they were read again."""

    def read_again(self) -> None:
        """Look now, not at the next turn, whether a file changed."""

    def detail(self, key: Key) -> Case | None:
        """One case in full, read from the files now; None when the run has no such result."""

    def turns(self, key: Key) -> Sequence[Key]:
        """The turns of the conversation that a case belongs to, in order; empty for other cases."""

    @property
    def slices(self) -> Callable[[Mapping[int, bool]], Slices]:
        """The properties that the marked cases share; marks by the hash of a case's id."""

    def export(self, keys: Sequence[Key], reasons: Sequence[str], form: str, path: Path) -> int:
        """Write cases to a new file, as a form of EXPORTS; how many lines or rows it has.

        ``reasons``: why each of them fails, in a word. Raises StorageError, in words.
        """

    def outcome(self, base: RunReader) -> ComparedPair:
        """The comparison with another run; takes a moment."""

    def close(self) -> None: ...


EXPORTS = {
    "csv": "a table for spreadsheets",
    "jsonl": "a JSON object a line, with answer, passages and scores",
    "set": "a new eval set with these cases and their labels",
}
"""Forms of an export."""


class Library(Protocol):
    """The folder with all runs."""

    @property
    def folder(self) -> str: ...

    def refresh(self) -> Sequence[RunInfo]:
        """The runs, newest first; only changed ones are read again."""

    def open(self, run_id: str) -> RunReader:
        """A run, read whole. Raises ValueError, in words, when it cannot be."""

    @property
    def notes(self) -> CaseNotes:
        """People's notes on the cases of the set."""

    def trend(self, key: Key) -> Trend:
        """One case over all runs, read from the files now."""

    def judged_pair(self, base: str, new: str, key: Key) -> Sequence[tuple[str, str, str]]:
        """A judge's verdict on both runs' answers: question asked, verdict, quote."""

    def label_command(self, run_id: str, case_id: str) -> Sequence[str] | str:
        """The command that labels with this run's chunks, or why there is none."""

"""The results folder: its runs, opening one, what a case was in all of them, taking cases out."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from decisions.case_rules import Basis, CaseRules, basis_of, read_case_rules
from decisions.case_verdict import Key
from decisions.committed import ComparedPair, outcome_of
from decisions.same_cases import ScoredBase
from decisions.slices import Embed, Slices, marked_slices
from records import extras
from records.cases import ignore
from records.errors import Problem, StorageError
from records.file_access import check_folder
from records.files import sha256_file
from records.labels import own_labels, read_labels
from records.metrics import read_summary
from records.notes import CaseNote
from records.run import Run
from records.runs import (
    CONFIG,
    METRICS,
    PARTIAL,
    RESULTS,
    VERDICTS,
    results_file,
    scored_sections,
    scores_file,
)
from terminal.tables import counted
from views.browser.answers import PLAIN, WORDS, AnswerTable, read_answers
from views.browser.model import MetricTrend, RunInfo, RunReader, Trend
from views.case import Case
from views.case_files import read_case
from views.notes import CaseNotes
from views.runs import Signature, dataset_hash, run_info, signature
from views.text import visible

ScoreBase = Callable[[Path, Path, Path, Path], AbstractContextManager[ScoredBase]]
"""Of base, the other run, the set and its labels."""


def _as_it_is(
    base: Path, new: Path, eval_set: Path, labels_dir: Path
) -> AbstractContextManager[ScoredBase]:
    return contextlib.nullcontext(ScoredBase(base))


class RunLibrary:
    """A results folder, as `browser.model.Library` says it.

    ``extra``: runs given by path. ``labeller``: the words of a command line that start the
    labeller, which the script knows. ``score_base``: scores the base of a comparison by the labels
    of the other run, which the script can.
    """

    def __init__(
        self,
        results_dir: Path,
        eval_set: Path,
        labels_dir: Path | None,
        *,
        extra: Sequence[Path] = (),
        labeller: Sequence[str] = (),
        rules: CaseRules | None = None,
        embed: Embed | None = None,
        score_base: ScoreBase | None = None,
    ) -> None:
        self._embed = embed
        self._score_base = score_base or _as_it_is
        self._rules = read_case_rules() if rules is None else rules
        self._labeller = labeller
        self._results_dir, self._eval_set, self._labels_dir = results_dir, eval_set, labels_dir
        self._paths = {path.name: path for path in extra if path.parent != results_dir}
        self._cached: dict[Path, tuple[Signature, RunInfo]] = {}
        self.notes = CaseNotes(eval_set, labels_dir)

    @property
    def folder(self) -> str:
        return str(self._results_dir)

    def refresh(self) -> Sequence[RunInfo]:
        """The runs, newest first. Reads those whose files changed, and those in progress."""
        folders = [*self._paths.values()]
        if self._results_dir.is_dir():
            folders += [path for path in self._results_dir.iterdir() if _is_run(path)]
        self._cached = {path: self._look(path) for path in folders}
        runs = [info for _, info in self._cached.values()]
        return sorted(runs, key=lambda info: (info.started, info.run_id), reverse=True)

    def _look(self, path: Path) -> tuple[Signature, RunInfo]:
        now = signature(path)
        cached = self._cached.get(path)
        if cached is not None and cached[0] == now and cached[1].state != "running":
            return cached
        return now, run_info(path)

    def path_of(self, run_id: str) -> Path:
        """The folder of a run that this library lists."""
        return self._paths.get(run_id, self._results_dir / run_id)

    def open(self, run_id: str) -> Opened:
        """Open a run; its first rows are there at once. Raises ValueError, in words."""
        folder = self.path_of(run_id)
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder any more")
        try:
            check_folder(folder)
        except StorageError as error:
            raise ValueError(error.message.rstrip(".")) from None
        where = folder, self._eval_set, self._labels_dir
        return Opened(*where, self.notes, self._rules, self._slices, self._score_base)

    def _slices(self, marks: Mapping[int, bool]) -> Slices:
        """What the marked cases have in common, see ``decisions.slices.marked_slices``."""
        return marked_slices(marks, self._eval_set, self._labels_dir, self._embed)

    def judged_pair(self, base: str, new: str, key: Key) -> Sequence[tuple[str, str, str]]:
        """The verdicts of extras on one case of two runs, such as a judge's on both answers.

        Empty for damaged files.
        """
        with contextlib.suppress(StorageError):
            runs = self.path_of(base), self.path_of(new)
            return [
                row for each in extras.code_of(extras.COMPARED) for row in each.of_case(*runs, key)
            ]
        return ()

    def trend(self, key: Key) -> Trend:
        """One case over all runs, read from the files now."""
        return _case_trend([(self.path_of(info.run_id), info) for info in self.refresh()], key)

    def label_command(self, run_id: str, case_id: str) -> Sequence[str] | str:
        """The labeller on this case, with the chunks of this run; or why it cannot be started."""
        if not self._labeller:
            return "no labeller was given to this view; start label_eval.py yourself"
        folder = self.path_of(run_id)
        if not results_file(folder).exists():
            return "this run is not complete yet: labelling takes its chunks from results.jsonl"
        if not self._eval_set.exists():
            return f"{self._eval_set} is not there; give the set with --eval-set"
        command = [*self._labeller, "--eval-set", str(self._eval_set)]
        if self._labels_dir is not None:
            command += ["--labels-dir", str(self._labels_dir)]
        return [*command, "--from-run", str(folder), "--set", "blind=false", f"--case={case_id}"]


def _basis(folder: Path) -> Basis:
    """What a run's verdicts rest on; of files that cannot be read, that nothing is known."""
    try:
        return basis_of(folder)
    except StorageError:
        return Basis()


def _is_run(path: Path) -> bool:
    names = (CONFIG, RESULTS, PARTIAL)
    return path.is_dir() and any((path / name).exists() for name in names)


POLL_SECONDS = 1.0

_PAUSE_SHARE = 10
"""A pause between two readings is at least so many times as long as the reading."""


@dataclass(frozen=True)
class _Reading:
    """What the files of a run said at one moment."""

    run: Run
    table: AnswerTable
    info: RunInfo
    basis: Basis
    notices: Sequence[str]


class Opened:
    """A run, as `browser.model.RunReader` says it. ``read``: the run of a folder."""

    def __init__(
        self,
        folder: Path,
        eval_set: Path,
        labels_dir: Path | None,
        notes: CaseNotes,
        rules: CaseRules,
        slices: Callable[[Mapping[int, bool]], Slices],
        score_base: ScoreBase,
    ) -> None:
        self._score_base = score_base
        self.rules, self.slices = rules, slices
        self.run_id = folder.name
        self._notes = notes
        self._folder, self._eval_set, self._labels_dir = folder, eval_set, labels_dir
        self._wake = threading.Event()
        self._closed = False
        self._failure = ""
        self._files: Signature = ()
        unread = Run(folder, tolerant=True)
        self._reading = _Reading(unread, AnswerTable(), run_info(folder), Basis(), ())
        self._refresh(lambda: None)

    @property
    def table(self) -> AnswerTable:
        return self._reading.table

    @property
    def info(self) -> RunInfo:
        return self._reading.info

    @property
    def basis(self) -> Basis:
        return self._reading.basis

    @property
    def notices(self) -> Sequence[str]:
        failure = [f"{self.run_id}: {self._failure}"] if self._failure else []
        return [*failure, *self._reading.notices, *self._notes.problems]

    def start(self, tell: Callable[[], None]) -> None:
        """Look for changed files from now on. ``tell`` is called in the thread that does so."""

        def work() -> None:
            while not self._closed:
                began = time.monotonic()
                self._refresh(tell)
                # the files of a run in progress change all the time, and are not read all the time
                self._wake.wait(max(POLL_SECONDS, _PAUSE_SHARE * (time.monotonic() - began)))
                self._wake.clear()

        threading.Thread(target=work, name="browse", daemon=True).start()

    def read_again(self) -> None:
        """Look now, not at the next turn, whether a file changed."""
        self._wake.set()

    def close(self) -> None:
        """Look no more."""
        self._closed = True
        self._wake.set()

    def _refresh(self, tell: Callable[[], None]) -> None:
        """Read the run, and whole again after a change; the notes by themselves."""
        try:
            scores = [scores_file(self._folder, name) for name in scored_sections(self._folder)]
            more = (self._eval_set, self._folder / VERDICTS, *scores)
            files = signature(self._folder, more)
            if files != self._files or self._failure:
                self._files, self._reading, self._failure = files, self._read(), ""
                tell()
            if self._notes.refresh():
                self.table.changed()
                tell()
        except StorageError as error:
            self._failure = error.message
            tell()
        except OSError as error:
            self._failure = f"cannot be read ({error.strerror})"
            tell()
        except Exception as error:
            # A fault of ours: it must not end in silence with old cases in view.
            self._failure = f"stopped: {type(error).__name__}"
            tell()
            raise

    def _read(self) -> _Reading:
        run = Run(self._folder, self._eval_set, self._labels_dir, tolerant=True)
        table = read_answers(run, self._notes.by_case)
        info = run_info(self._folder, done=table.count)
        own = (run.results_path, self._eval_set, *self._folder.glob("**/*.jsonl"))
        problems = [problem for problem in run.problems if Path(problem.path) in own]
        faults = [*([info.missing] if info.missing else []), *_faults(problems)]
        asked = dataset_hash(self._folder)
        if asked and self._eval_set.exists() and sha256_file(self._eval_set) != asked:
            name = self._eval_set.name
            faults.append(f"{name} is not the set this run was asked with, or was changed")
        return _Reading(run, table, info, _basis(self._folder), faults)

    def outcome(self, base: RunReader) -> ComparedPair:
        """The comparison with another run, or the reason why it is refused."""
        assert isinstance(base, Opened)
        labels = self._labels_dir or own_labels(self._eval_set)
        places = base._folder, self._folder, self._eval_set, labels
        try:
            with self._score_base(*places) as scored:
                return outcome_of(scored.folder, self._folder, self.rules, scored.cases)
        except (StorageError, OSError) as error:
            return ComparedPair([f"not compared: {error}"])

    def detail(self, key: Key) -> Case | None:
        """One case, read now; None when it is not known (any more)."""
        reading = self._reading
        row = reading.table.row_of(*key)
        return None if row is None else read_case(reading.run, reading.table.offsets[row], key)

    def turns(self, key: Key) -> Sequence[Key]:
        """The turns of the case's conversation in the set's order, asked in the same repeat."""
        reading, (case_id, repeat) = self._reading, key
        cases = reading.run.cases
        name = cases[case_id].conversation if case_id in cases else None
        turns = [(case.id, repeat) for case in cases.values() if name and case.conversation == name]
        return [turn for turn in turns if reading.table.row_of(*turn) is not None]

    # -- taking cases out -----------------------------------------------------------------------

    def export(self, keys: Sequence[Key], reasons: Sequence[str], form: str, path: Path) -> int:
        """Write cases to a new file, as a form of EXPORTS; how many lines or rows it has.

        ``reasons``: why each of them fails, in a word. Raises StorageError, in words.
        """
        from records.exports import csv_table, json_lines, set_lines, write_new

        if form == "set":
            labels, _ = read_labels(self._labels_dir, ignore, self._eval_set)
            case_ids = dict.fromkeys(case_id for case_id, _ in keys)
            return write_new(path, set_lines(self._eval_set, labels, case_ids))
        table = self.table
        cases = zip(keys, reasons, strict=True)
        if form == "jsonl":
            return write_new(path, json_lines(self._exported(table, cases, _record)))
        columns = _columns(list(table.metrics))
        rows = self._exported(table, cases, _flat_row)
        return write_new(path, csv_table(columns, rows)) - 1

    def _exported(
        self,
        table: AnswerTable,
        cases: Iterable[tuple[Key, str]],
        form: Callable[..., dict[str, Any]],
    ) -> Iterator[dict[str, Any]]:
        for key, reason in cases:
            row, detail = table.row_of(*key), self.detail(key)
            if row is None or detail is None:
                raise StorageError(f"{key[0]}: not in the files any more; try again.")
            yield form(self.run_id, table, row, detail, reason, self._notes.of(key[0]))


def _faults(problems: Iterable[Problem]) -> Iterator[str]:
    """A sentence on the faults of each file, which names the first one."""
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(Path(problem.path).name, []).append(problem)
    for name, (first, *others) in by_file.items():
        lines = counted(1 + len(others), "line")
        line = f"line {first.line} {first.message}"
        first_of = ", the first" if others else ""
        says = f"{lines} cannot be read{first_of}: {line}" if first.line else first.message
        yield f"{name}: {says}"


@dataclass
class _TrendPoint:
    """What one run says of the case: values and definitions by section and metric."""

    run_id: str
    started: str
    values: dict[tuple[str, str], float | None] = field(default_factory=dict)
    definitions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _case_trend(runs: Sequence[tuple[Path, RunInfo]], key: Key) -> Trend:
    """The scores of a case in all runs that scored it. ``runs``: from the newest to the oldest.

    What cannot be read is left out, and named in ``problems``.
    """
    problems: list[str] = []
    points = [
        point
        for folder, info in reversed(runs)
        if (point := _trend_point(folder, info, key, problems))
    ]
    names = dict.fromkeys(name for point in points for name in point.values)
    return Trend(
        tuple((point.run_id, point.started) for point in points),
        tuple(_metric_trend(name, points) for name in sorted(names, key=lambda name: name[0])),
        tuple(problems),
    )


def _trend_point(folder: Path, info: RunInfo, key: Key, problems: list[str]) -> _TrendPoint | None:
    point = _TrendPoint(info.run_id, info.started)
    try:
        lines = Run(folder).find_scores(*key)
    except StorageError as error:
        problems.append(f"{info.run_id}: {error.message}")
        return None
    if not lines:
        return None
    for section, line in lines.items():
        point.values |= {(section, name): value for name, value in line.scores.items()}
    point.definitions = _definitions(folder)
    return point


def _definitions(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """What each metric of a run was, by section; empty where metrics.json does not say it."""
    try:
        metrics = read_summary(folder / METRICS)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return {name: section.definitions for name, section in metrics.sections.items()}


def _metric_trend(name: tuple[str, str], points: Sequence[_TrendPoint]) -> MetricTrend:
    section, metric = name
    values = tuple(point.values.get(name) for point in points)
    breaks = list(_breaks(section, metric, points))
    return MetricTrend(section, metric, values, tuple(breaks))


def _breaks(section: str, metric: str, points: Sequence[_TrendPoint]) -> Iterable[int]:
    """Before which points the metric's definition became another one."""
    stem = metric.partition("@")[0]
    last = ""
    for index, point in enumerate(points):
        of_section = point.definitions.get(section, {})
        definition = of_section.get(metric) or of_section.get(stem) or ""
        if definition and last and definition != last:
            yield index
        last = definition or last


# Cases as people take them out: rows of a table, records.

_PLURALS = {"tag": "tags", "flag": "flags", "document": "documents"}

_OF_CASE = ("run", "case_id", "repeat", "fails", "question", "answer", "error")


def _columns(metrics: Sequence[str]) -> list[str]:
    """The columns of a table of cases, for a run with these metrics."""
    others = [name for name in (*WORDS, *PLAIN) if name not in _OF_CASE]
    return [*_OF_CASE, *others, *_PLURALS.values(), "notes", *metrics]


def _flat_row(
    run_id: str, table: AnswerTable, row: int, detail: Case, reason: str, notes: Sequence[CaseNote]
) -> dict[str, Any]:
    """One case as a row with those columns, no text of which acts on a terminal."""
    row_values = _values(run_id, table, row, detail, reason, notes)
    return {name: _shown(value) for name, value in row_values.items()}


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return visible(value) if isinstance(value, str) else value


def _values(
    run_id: str, table: AnswerTable, row: int, detail: Case, reason: str, notes: Sequence[CaseNote]
) -> dict[str, Any]:
    plain = {name: table.number(name, row) for name in PLAIN}
    return {
        **{name: table.words[name][row] for name in WORDS},
        **plain,
        "run": run_id,
        "case_id": detail.case_id,
        "repeat": detail.repeat,
        "fails": reason,
        "question": detail.question,
        "answer": detail.answer,
        "error": detail.error,
        **{plural: list(table.sets[name][row]) for name, plural in _PLURALS.items()},
        "notes": [note.line() for note in notes],
        **detail.values(),
    }


def _record(
    run_id: str, table: AnswerTable, row: int, detail: Case, reason: str, notes: Sequence[CaseNote]
) -> dict[str, Any]:
    """One case as a record: the row, its scores by section, gold, passages and claims."""
    flat = _values(run_id, table, row, detail, reason, notes)
    for name in detail.values():
        del flat[name]
    return flat | {
        "labels": [{"label": label, "text": text} for label, text in detail.labels],
        "gold": [
            {"location": gold.location, "snippets": list(gold.snippets), "rank": gold.rank}
            for gold in detail.gold
        ],
        "retrieved": [
            {
                "rank": passage.rank,
                "chunk_id": passage.chunk_id,
                "location": passage.location,
                "gold": passage.gold,
                "text": passage.text,
            }
            for passage in detail.passages
        ],
        "claims": [
            {"text": claim.text, "verdict": claim.verdict, "note": claim.note}
            for claim in detail.claims
        ],
        "metrics": {section: dict(line.scores) for section, line in detail.lines.items()},
    }

"""The results folder: its runs, opening one, what a case was in all of them, taking cases out."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
from records.notes import CaseNote, NotesByCase, note_files, own_note, read_notes, write_note
from records.run import Run
from records.runs import (
    CONFIG,
    PARTIAL,
    RESULTS,
    VERDICTS,
    results_file,
    scored_sections,
    scores_file,
)
from terminal.tables import counted
from views.browser.answers import PLAIN, WORDS, AnswerTable, read_answers
from views.case import Case
from views.case_files import read_case
from views.runs import (
    RunInfo,
    Signature,
    Trend,
    case_trend,
    dataset_hash,
    file_states,
    run_info,
    signature,
)
from views.text import visible

EXPORTS = {
    "csv": "a table for spreadsheets",
    "jsonl": "a JSON object a line, with answer, passages and scores",
    "set": "a new eval set with these cases and their labels",
}
"""Forms of an export."""

ScoreBase = Callable[[Path, Path, Path, Path], AbstractContextManager[ScoredBase]]
"""Of base, the other run, the set and its labels."""


class RunLibrary:
    """A results folder with all its runs, and people's notes on the cases of the set.

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
        self.embed = embed
        self.score_base = score_base
        self.rules = read_case_rules() if rules is None else rules
        self._labeller = labeller
        self.folder = str(results_dir)
        self._results_dir, self.eval_set, self.labels_dir = results_dir, eval_set, labels_dir
        self._paths = {path.name: path for path in extra if path.parent != results_dir}
        self._cached: dict[Path, tuple[Signature, RunInfo]] = {}
        self.notes = CaseNotes(eval_set, labels_dir)

    def refresh(self) -> Sequence[RunInfo]:
        """The runs, newest first. Reads those whose files changed, and those in progress."""
        folders = [*self._paths.values()]
        if self._results_dir.is_dir():
            inside = (CONFIG, RESULTS, PARTIAL)
            paths = filter(Path.is_dir, self._results_dir.iterdir())
            folders += [path for path in paths if any((path / name).exists() for name in inside)]
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

    def open(self, run_id: str) -> RunReader:
        """Open a run; its first rows are there at once. Raises ValueError, in words."""
        folder = self.path_of(run_id)
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder any more")
        try:
            check_folder(folder)
        except StorageError as error:
            raise ValueError(error.message.rstrip(".")) from None
        return RunReader(folder, self)

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
        return case_trend([(self.path_of(info.run_id), info) for info in self.refresh()], key)

    def label_command(self, run_id: str, case_id: str) -> Sequence[str] | str:
        """The labeller on this case, with the chunks of this run; or why it cannot be started."""
        if not self._labeller:
            return "no labeller was given to this view; start label_eval.py yourself"
        folder = self.path_of(run_id)
        if not results_file(folder).exists():
            return "this run is not complete yet: labelling takes its chunks from results.jsonl"
        if not self.eval_set.exists():
            return f"{self.eval_set} is not there; give the set with --eval-set"
        command = [*self._labeller, "--eval-set", str(self.eval_set)]
        if self.labels_dir is not None:
            command += ["--labels-dir", str(self.labels_dir)]
        return [*command, "--from-run", str(folder), "--set", "blind=false", f"--case={case_id}"]


class CaseNotes:
    """Notes by case id: the browser's own, which can be changed, and annotators'."""

    def __init__(self, eval_set: Path, labels_dir: Path | None) -> None:
        self._eval_set, self._labels_dir = eval_set, labels_dir
        self._files: object = None
        self.by_case: NotesByCase = {}
        """All notes; the same object for as long as this one lives."""
        self.problems: list[str] = []
        """Lines that cannot be read, and files, a sentence each."""

    def refresh(self) -> bool:
        """Read the files if they changed; whether they did."""
        try:
            paths = note_files(self._eval_set, self._labels_dir)
            files = paths, file_states(paths)
            if files == self._files:
                return False
            problems: list[str] = []
            notes = read_notes(self._eval_set, self._labels_dir, problems.append)
        except (StorageError, OSError) as error:
            self.problems = [str(error)]
            return False
        self._files, self.problems = files, problems
        for case_id in self.by_case.keys() - notes.keys():
            del self.by_case[case_id]
        self.by_case.update(notes)
        return True

    def of(self, case_id: str) -> Sequence[CaseNote]:
        """The notes on a case, the browser's first."""
        return self.by_case.get(case_id, ())

    def own(self, case_id: str) -> CaseNote:
        """The browser's note on a case; an empty one when there is none."""
        return own_note(self.of(case_id))

    def put(self, case_id: str, note: CaseNote) -> None:
        """Replace the browser's note on a case; an empty one is taken away.

        Raises StorageError when it cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        write_note(self._eval_set, self._labels_dir, case_id, note, now)
        self.refresh()


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


class RunReader:
    """A run that is read whole, and again, in a thread of its own, when its files change."""

    def __init__(self, folder: Path, library: RunLibrary) -> None:
        self._library, self._folder = library, folder
        self.rules, self.run_id = library.rules, folder.name
        self._notes = library.notes
        self._wake = threading.Event()
        self._closed = False
        self._failure = ""
        self._files: Signature = ()
        unread = Run(folder, tolerant=True)
        self._reading = _Reading(unread, AnswerTable(), run_info(folder), Basis(), ())
        self._refresh(lambda: None)

    @property
    def table(self) -> AnswerTable:
        """The rows; another object after the files were changed."""
        return self._reading.table

    @property
    def info(self) -> RunInfo:
        return self._reading.info

    @property
    def basis(self) -> Basis:
        """The basis of the verdicts on its cases; another object after a change."""
        return self._reading.basis

    @property
    def notices(self) -> Sequence[str]:
        """Messages for the user: unreadable lines, a set that is another one by now."""
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
            more = (self._library.eval_set, self._folder / VERDICTS, *scores)
            files = signature(self._folder, more)
            if files != self._files or self._failure:
                self._files, self._reading, self._failure = files, self._read(), ""
                tell()
            if self._notes.refresh():
                self.table.changed()
                tell()
        except Exception as error:
            words = f"stopped: {type(error).__name__}"
            if isinstance(error, OSError):
                words = f"cannot be read ({error.strerror})"
            self._failure = error.message if isinstance(error, StorageError) else words
            tell()
            if not isinstance(error, StorageError | OSError):
                raise  # a fault of ours: it must not end in silence with old cases in view

    def _read(self) -> _Reading:
        eval_set = self._library.eval_set
        run = Run(self._folder, eval_set, self._library.labels_dir, tolerant=True)
        table = read_answers(run, self._notes.by_case)
        info = run_info(self._folder, done=table.count)
        own = (run.results_path, eval_set, *self._folder.glob("**/*.jsonl"))
        problems = [problem for problem in run.problems if Path(problem.path) in own]
        faults = [*([info.missing] if info.missing else []), *_faults(problems)]
        asked = dataset_hash(self._folder)
        if asked and eval_set.exists() and sha256_file(eval_set) != asked:
            faults.append(f"{eval_set.name} is not the set this run was asked with, or was changed")
        basis = Basis()
        with contextlib.suppress(StorageError):
            basis = basis_of(self._folder)
        return _Reading(run, table, info, basis, faults)

    def outcome(self, base: RunReader) -> ComparedPair:
        """The comparison with another run, or the reason why it is refused; takes a moment."""
        source, folder = self._library, base._folder
        places = folder, self._folder, source.eval_set
        labels = source.labels_dir or own_labels(source.eval_set)
        scoring = source.score_base and source.score_base(*places, labels)
        try:
            with scoring or contextlib.nullcontext(ScoredBase(folder)) as scored:
                return outcome_of(scored.folder, self._folder, self.rules, scored.cases)
        except (StorageError, OSError) as error:
            return ComparedPair([f"not compared: {error}"])

    def slices(self, marks: Mapping[int, bool]) -> Slices:
        """The properties that the marked cases share, see ``decisions.slices.marked_slices``."""
        source = self._library
        return marked_slices(marks, source.eval_set, source.labels_dir, source.embed)

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
            eval_set = self._library.eval_set
            labels, _ = read_labels(self._library.labels_dir, ignore, eval_set)
            case_ids = dict.fromkeys(case_id for case_id, _ in keys)
            return write_new(path, set_lines(eval_set, labels, case_ids))
        cases = self._exported(keys, reasons)
        if form == "jsonl":
            return write_new(path, json_lines(_record(row, case) for row, case in cases))
        rows = (
            {name: _shown(value) for name, value in (row | case.values()).items()}
            for row, case in cases
        )
        return write_new(path, csv_table(_columns(list(self.table.metrics)), rows)) - 1

    def _exported(
        self, keys: Sequence[Key], reasons: Sequence[str]
    ) -> Iterator[tuple[dict[str, Any], Case]]:
        """Each case as a row of a table, and everything known of it."""
        table = self.table
        for key, reason in zip(keys, reasons, strict=True):
            row, case = table.row_of(*key), self.detail(key)
            if row is None or case is None:
                raise StorageError(f"{key[0]}: not in the files any more; try again.")
            yield (
                {
                    **{name: table.words[name][row] for name in WORDS},
                    **{name: table.number(name, row) for name in PLAIN},
                    "run": self.run_id,
                    "case_id": case.case_id,
                    "repeat": case.repeat,
                    "fails": reason,
                    "question": case.question,
                    "answer": case.answer,
                    "error": case.error,
                    **{plural: list(table.sets[name][row]) for name, plural in _PLURALS.items()},
                    "notes": [note.line() for note in self._notes.of(key[0])],
                },
                case,
            )


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


# Cases as people take them out: rows of a table, records.

_PLURALS = {"tag": "tags", "flag": "flags", "document": "documents"}

_OF_CASE = ("run", "case_id", "repeat", "fails", "question", "answer", "error")


def _columns(metrics: Sequence[str]) -> list[str]:
    """The columns of a table of cases, for a run with these metrics."""
    others = [name for name in (*WORDS, *PLAIN) if name not in _OF_CASE]
    return [*_OF_CASE, *others, *_PLURALS.values(), "notes", *metrics]


def _shown(value: Any) -> Any:
    """A value no text of which acts on a terminal."""
    if isinstance(value, list):
        return [_shown(item) for item in value]
    return visible(value) if isinstance(value, str) else value


def _record(row: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """A row with the case's scores by section, gold, passages and claims."""
    return {
        **row,
        "labels": [{"label": label, "text": text} for label, text in case.labels],
        "gold": [_fields(gold, "location", "snippets", "rank") for gold in case.gold],
        "retrieved": [
            _fields(passage, "rank", "chunk_id", "location", "gold", "text")
            for passage in case.passages
        ],
        "claims": [_fields(claim, "text", "verdict", "note") for claim in case.claims],
        "metrics": {section: dict(line.scores) for section, line in case.lines.items()},
    }


def _fields(item: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(item, name) for name in names}

"""The results folder: its runs, opening one, what a case was in all of them, taking cases out."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from decisions.case_rules import Basis, CaseRules, basis_of, read_case_rules
from decisions.case_verdict import Key
from decisions.slices import Embed, Slices, marked_slices
from records import extras
from records.answer_table import PLAIN, UNKNOWN, WORDS, AnswerTable
from records.blocks import line_at
from records.cases import Labels
from records.errors import StorageError
from records.file_access import check_folder
from records.judgements import Verdicts, read_verdicts
from records.labels import read_labels
from records.metrics import read_summary
from records.notes import CaseNote
from records.profiles import read_maps_passages
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
from records.scores import find_score_line
from records.verdicts import judge_of
from views.browser.model import MetricTrend, OpenRun, RunInfo, Trend
from views.case import Case
from views.case_files import read_case
from views.notes import CaseNotes
from views.runs import Signature, run_info, signature
from views.snapshot import Snapshot
from views.text import visible


class RunLibrary:
    """A results folder, as `browser.model.Library` says it.

    ``extra``: runs given by path. ``labeller``: the words of a command line that start the
    labeller, which the script knows.
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
    ) -> None:
        self._embed = embed
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
        labels = lambda: self._labels  # noqa: E731
        return Opened(folder, self._eval_set, labels, self.notes, self._rules, self._slices)

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

    @cached_property
    def _labels(self) -> Labels:
        """Label files of the set; what is wrong in them label_eval.py --validate tells."""
        try:
            return read_labels(self._labels_dir, lambda problem: None, self._eval_set)[0]
        except StorageError:
            return {}

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
        return [*command, "--from-run", str(folder), "--no-blind", f"--case={case_id}"]


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

TELL_SECONDS, MANY_ROWS = 0.5, 50_000
"""A screen is drawn anew after so long, and later the more rows there are to count."""

PAUSE_SECONDS = 0.001
"""Between two blocks, so that a key press need not wait for its turn."""

_PAUSE_SHARE = 10
"""A pause between two readings is at least so many times as long as the reading."""


class _ConversationOf(msgspec.Struct):
    conversation: str | None = None


class Opened:
    """A run, as `browser.model.OpenRun` says it."""

    def __init__(
        self,
        folder: Path,
        eval_set: Path,
        labels: Callable[[], Labels],
        notes: CaseNotes,
        rules: CaseRules,
        slices: Callable[[Mapping[int, bool]], Slices],
    ) -> None:
        self.rules, self.slices = rules, slices
        self.run_id = folder.name
        self._notes = notes
        self._folder, self._eval_set, self._labels = folder, eval_set, labels
        self._tell: Callable[[], None] = lambda: None
        self._wake = threading.Event()
        self._closed = False
        self.reading = "the first lines"
        self.failure = ""
        self._snapshot = self._new_snapshot()
        self._files: Signature = ()
        with contextlib.suppress(OSError, StorageError):
            self._files = self._signature()
            self._snapshot.first_look()
        # To count the results takes as long as the first frame: the reading thread does it.
        self.info: RunInfo = run_info(folder, count=False)
        self.basis = _basis(folder)

    def _new_snapshot(self) -> Snapshot:
        snapshot = Snapshot(self._folder, self._eval_set, self._labels)
        snapshot.table.notes = self._notes.by_case
        return snapshot

    @property
    def table(self) -> AnswerTable:
        return self._snapshot.table

    @property
    def notices(self) -> Sequence[str]:
        failure = [f"{self.run_id}: {self.failure}"] if self.failure else []
        missing = [self.info.missing] if self.info.missing else []
        return [*failure, *missing, *self._snapshot.notices(), *self._notes.problems]

    def start(self, tell: Callable[[], None]) -> None:
        """Begin to read. ``tell`` is called in the reading thread, a few times a second."""
        self._tell = tell
        threading.Thread(target=self._work, name="browse", daemon=True).start()

    def read_again(self) -> None:
        """Look now, not at the next turn, whether a file changed."""
        self._wake.set()

    def first_lines(self, base: OpenRun) -> Sequence[str]:
        """The first lines of the comparison with another run, or the reason why it is refused."""
        from decisions.committed import first_lines

        assert isinstance(base, Opened)
        try:
            return first_lines(base._folder, self._folder)
        except (StorageError, OSError) as error:
            return [f"not compared: {error}"]

    def close(self) -> None:
        """Stop reading."""
        self._closed = True
        self._wake.set()

    # -- the reading thread ---------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closed:
            began = time.monotonic()
            try:
                self._read_again_if_changed()
            except OSError as error:
                self._fail(f"cannot be read ({error.strerror})")
            except StorageError as error:
                self._fail(error.message)
            except Exception as error:
                # A fault of ours: it must not end in silence with half of the cases in view.
                self._fail(f"stopped: {type(error).__name__}")
                raise
            # the files of a run in progress change all the time, and are not read all the time
            self._wake.wait(max(POLL_SECONDS, _PAUSE_SHARE * (time.monotonic() - began)))
            self._wake.clear()

    def _fail(self, text: str) -> None:
        self.failure = text
        self._tell()

    def _signature(self) -> Signature:
        scores = [scores_file(self._folder, name) for name in scored_sections(self._folder)]
        return signature(self._folder, (self._eval_set, self._folder / VERDICTS, *scores))

    def _read_again_if_changed(self) -> None:
        """Read the first time, and whole again after a change: beside the rows that are shown."""
        now = self._signature()
        if now != self._files or self.failure:
            self._files, fresh = now, self._new_snapshot()
            self._read(fresh)
        elif self.reading:
            self._read(self._snapshot)
        elif self._notes.refresh():
            self.table.changed()
            self._tell()

    def _read(self, snapshot: Snapshot) -> None:
        """Read a snapshot to its end, then show it."""
        last_call = time.monotonic()
        while not self._closed and (name := snapshot.step()):
            if snapshot is self._snapshot:
                self.reading = name
                pause = TELL_SECONDS * (1 + snapshot.table.count / MANY_ROWS)
                if time.monotonic() - last_call > pause:
                    self._tell()
                    last_call = time.monotonic()
            time.sleep(PAUSE_SECONDS)
        if not self._closed:
            self.info, self.basis = run_info(self._folder), _basis(self._folder)
            self._snapshot, self.reading, self.failure = snapshot, "", ""
            self._tell()

    # -- one case -------------------------------------------------------------------------------

    def detail(self, key: Key) -> Case | None:
        """One case, read now; None when it is not known (any more)."""
        snapshot = self._snapshot
        table, folder = snapshot.table, self._folder
        row = table.row_of(*key)
        if row is None:
            return None
        offset = table.case_offsets[row]
        score_lines = {
            section: line
            for section, lines in sorted(table.lines.items())
            if lines[row] != UNKNOWN and (line := table.sections[section].text(lines[row]))
        }
        return read_case(
            line_at(snapshot.path, table.offsets[row]),
            b"" if offset == UNKNOWN else line_at(self._eval_set, offset),
            self._labels() if offset != UNKNOWN else {},
            score_lines,
            lambda: self._verdicts(snapshot.verdicts.of(*key)),
            key,
            {section: table.sections[section].head for section in score_lines},
            maps_passages=read_maps_passages(folder),
        )

    def turns(self, key: Key) -> Sequence[Key]:
        """The turns of the case's conversation in the order of the set, asked in the same repeat.

        Turns stand beside each other in the set, so its lines around the case's are read.
        """
        table = self._snapshot.table
        row = table.row_of(*key)
        if row is None or not (name := self._conversation(table, row)):
            return ()
        repeats = table.numbers["repeat"]
        rows = [
            other
            for other in range(table.count)
            if repeats[other] == repeats[row] and table.case_offsets[other] != UNKNOWN
        ]
        rows.sort(key=table.case_offsets.__getitem__)
        first = last = rows.index(row)
        while first and self._conversation(table, rows[first - 1]) == name:
            first -= 1
        while last + 1 < len(rows) and self._conversation(table, rows[last + 1]) == name:
            last += 1
        return [(table.ids[other], key[1]) for other in rows[first : last + 1]]

    def _conversation(self, table: AnswerTable, row: int) -> str | None:
        """The conversation of a row's case, read from its line in the set."""
        if table.case_offsets[row] == UNKNOWN:
            return None
        line = line_at(self._eval_set, table.case_offsets[row])
        try:
            return msgspec.json.decode(line, type=_ConversationOf).conversation
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    # -- taking cases out -----------------------------------------------------------------------

    def export(self, keys: Sequence[Key], reasons: Sequence[str], form: str, path: Path) -> int:
        """Write cases to a new file, as a form of EXPORTS; how many lines or rows it has.

        ``reasons``: why each of them fails, in a word. Raises StorageError, in words.
        """
        from records.exports import csv_table, json_lines, write_new

        if form == "set":
            return write_new(path, self._set_lines({key[0]: key for key in keys}))
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

    def _set_lines(self, keys: Mapping[str, Key]) -> Iterator[bytes]:
        from records.exports import set_line

        table, labels = self.table, self._labels()
        for case_id, key in keys.items():
            row = table.row_of(*key)
            offset = UNKNOWN if row is None else table.case_offsets[row]
            if offset == UNKNOWN:
                raise StorageError(
                    f"{case_id}: {self._eval_set} does not hold this case; filter it away, or name "
                    "the set with --eval-set."
                )
            line = line_at(self._eval_set, offset)
            try:
                yield set_line(line, labels.get(case_id, {}))
            except ValueError:
                raise StorageError(f"{case_id}: {self._eval_set} was changed; try again.") from None

    def _verdicts(self, offsets: Sequence[int]) -> Verdicts:
        """The verdicts of the run's judge among some lines; none when the file is gone."""
        if not offsets or not (self._folder / VERDICTS).exists():
            return Verdicts({})
        return read_verdicts(self._folder, judge_of(self._folder), at=offsets)


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
    is_scored = False
    for section in scored_sections(folder):
        try:
            line = find_score_line(folder, section, *key)
        except OSError as error:
            problems.append(f"{info.run_id}: {section} cannot be read ({error.strerror})")
            continue
        if line is not None:
            is_scored = True
            point.values |= {(section, name): value for name, value in line.scores.items()}
    if not is_scored:
        return None
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

"""One reading of a run's files from their start, kept up to date while they only grow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ragmetrics.catalogue.cases import UNCERTAIN
from records.cases import Labels, canonical
from records.files import sha256_file
from records.results import TestResult, result_type
from records.runs import PARTIAL, SCORES, VERDICTS, scored_sections, scores_file
from records.scores import MetricColumns, metric_names
from records.shards import open_lines, size_of
from records.verdicts import VerdictPlace
from views.browser.table import NAN, Meta, Table
from views.runs import dataset_hash, results_path

FIRST_ROWS = 100


class Snapshot:
    """A table, and the readers that fill it. Used by one thread at a time.

    ``check`` raises Replaced when what was read does not count any more; a new Snapshot is then
    needed.
    """

    def __init__(self, folder: Path, eval_set: Path, labels: Callable[[], Labels]) -> None:
        self.path = results_path(folder)
        self.table = Table()
        self._folder, self._eval_set = folder, eval_set
        self._faults = _Faults()
        self._set_notice = ""
        live = self.path.name == PARTIAL
        self._has_results, self._has_set = self.path.exists(), eval_set.exists()
        feed = Feed(self.path, final=not live)
        self._results = _ResultReader(feed, self.table, self._faults)
        self._cases = _CaseReader(Feed(eval_set), self.table, labels, self._faults)
        self.verdicts = _VerdictIndex(Feed(folder / VERDICTS, final=False), self._faults)
        self._scores: list[ScoreReader] = []
        self._signatures: dict[str, tuple[int, int, int]] = {}

    def first_look(self, metrics: Sequence[str]) -> None:
        """Read enough for a first screen: a hundred rows with the wanted scores."""
        self.check()
        self.want(metrics)
        while self._has_results and self.table.count < FIRST_ROWS and self._results.step():
            pass
        for reader in self._scores:
            if reader.metrics:
                self._score_step(reader)

    def check(self) -> None:
        """Find new score files. Raises Replaced when a file was written anew or taken away."""
        if results_path(self._folder) != self.path or self.path.exists() != self._has_results:
            raise Replaced
        if self.verdicts.feed.offset and not self.verdicts.feed.path.exists():
            raise Replaced
        scored = [scores_file(self._folder, name) for name in scored_sections(self._folder)]
        if not self._signatures.keys() <= {path.stem for path in scored}:
            raise Replaced
        for path in scored:
            current = _signature(path)
            earlier = self._signatures.get(path.stem)
            if earlier is not None and earlier != current:
                raise Replaced
            if current is not None and earlier is None:
                self._signatures[path.stem] = current
                for name in metric_names(path):
                    self.table.metrics.setdefault(name, path.stem)
                self._read_section(path.stem, ())

    def want(self, metrics_to_read: Sequence[str]) -> None:
        """Give a reader to each section with metrics that are wanted and have no column yet."""
        missing = self.table.missing(metrics_to_read)
        for section in dict.fromkeys(self.table.metrics[name] for name in missing):
            metrics = [name for name in missing if self.table.metrics[name] == section]
            waiting = [
                reader for reader in self._scores if reader.section == section and not reader.begun
            ]
            for reader in waiting:
                self._scores.remove(reader)
                metrics += reader.metrics
            self._read_section(section, metrics)

    def _read_section(self, section: str, metrics: Sequence[str]) -> None:
        feed = Feed(scores_file(self._folder, section))
        self._scores.append(ScoreReader(feed, section, metrics, self.table, self._faults))

    def step(self) -> str:
        """Read one block of what is needed most; its name, empty when all is read for now."""
        for name, read in self._readers():
            if read():
                return name
        return ""

    def _readers(self) -> Iterator[tuple[str, Callable[[], bool]]]:
        if self._has_results:
            yield self.path.name, self._results.step
        self._scores.sort(key=lambda reader: not reader.metrics)
        for reader in list(self._scores):
            if self._score_step(reader):
                yield f"{SCORES}/{reader.section}.jsonl", lambda: True
            self._scores.remove(reader)
        if self._has_set:
            yield self._eval_set.name, self._cases.step
            self._compare_set()
        if self.verdicts.feed.path.exists():
            yield VERDICTS, self.verdicts.step

    def _score_step(self, reader: ScoreReader) -> bool:
        return reader.step(complete=self._results.feed.ended or not self._has_results)

    def _compare_set(self) -> None:
        """Once: is the set the one that the run was asked with?"""
        if not self._set_notice:
            asked = dataset_hash(self._folder)
            same = not asked or sha256_file(self._eval_set) == asked
            text = f"{self._eval_set.name} is not the set this run was asked with, or was changed"
            self._set_notice = " " if same else text

    def notices(self) -> list[str]:
        """Unreadable lines, and a set that is another one by now; a sentence each."""
        sentences = self._faults.say()
        return [*sentences, self._set_notice] if self._set_notice.strip() else sentences


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


T = TypeVar("T")

QUESTION_LIMIT = 4096
"""Characters of a question that are kept for the list and its filter."""

ANSWERABLE = {True: "yes", False: "no", None: ""}


SHOWN_OF_RESULT = (
    "test_case_id",
    "question",
    "status",
    "repeat",
    "error.kind",
    "abstained",
    "confidence",
    "cost_usd",
    "latency_ms",
    "policy_flags",
)


class _Faults:
    """Lines that could not be read, by file."""

    def __init__(self) -> None:
        self._faults: dict[str, tuple[int, int, str]] = {}

    def add(self, path: Path, offset: int, why: str) -> None:
        count, first, reason = self._faults.get(path.name, (0, offset, why))
        self._faults[path.name] = (count + 1, first, reason)

    def sound(
        self, path: Path, lines: Iterable[Line], decode: Callable[[bytes], T]
    ) -> Iterator[tuple[int, T]]:
        """Offset and record of the lines that can be read; the others are added."""
        for offset, line in lines:
            try:
                record = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                if not line.isspace():
                    self.add(path, offset, str(error))
            else:
                yield offset, record

    def say(self) -> list[str]:
        """A sentence a file."""
        return [
            f"{name}: {count} line{'s' * (count > 1)} cannot be read, the first at byte {first} "
            f"({why})"
            for name, (count, first, why) in self._faults.items()
        ]


class _ResultReader:
    """Puts results into the table."""

    def __init__(self, feed: Feed, table: Table, faults: _Faults) -> None:
        self.feed = feed
        self._table = table
        self._faults = faults
        self._decode = msgspec.json.Decoder(result_type(*SHOWN_OF_RESULT)).decode
        self._same: dict[str, str] = {}

    def step(self) -> bool:
        lines = self.feed.read()
        for offset, result in self._faults.sound(self.feed.path, lines, self._decode):
            self._put(offset, result)
        return bool(lines)

    def _put(self, offset: int, result: TestResult) -> None:
        error = result.error.kind if result.error is not None else ""
        same = self._same
        words = {
            "status": same.setdefault(result.status, result.status),
            "error": same.setdefault(error, error),
            "abstained": ANSWERABLE[result.abstained],
        }
        numbers = {
            "latency": result.latency_ms.get("total"),
            "confidence": result.confidence,
            "cost": result.cost_usd,
        }
        self._table.put(
            result.test_case_id,
            result.repeat,
            offset,
            result.question[:QUESTION_LIMIT],
            words,
            tuple(result.policy_flags),
            numbers,
        )


class _Support(msgspec.Struct):
    rel_path: str | None = None


class _Case(msgspec.Struct):
    id: str
    category: str | None = None
    difficulty: str | None = None
    query_type: str | None = None
    answerable: bool | None = None
    tags: list[str] | None = None
    gold_supports: list[_Support] | None = None
    relevant_docs: list[str] | None = None


class _CaseReader:
    """Tells the table what the set and its label files say of each case."""

    def __init__(
        self, feed: Feed, table: Table, labels: Callable[[], Labels], faults: _Faults
    ) -> None:
        self.feed = feed
        self._table = table
        self._labels = labels
        self._faults = faults
        self._plain = msgspec.json.Decoder(_Case).decode
        self._same: dict[str, str] = {}

    def step(self) -> bool:
        lines = self.feed.read()
        for offset, case in self._faults.sound(self.feed.path, lines, self._decode):
            self._table.describe(case.id, self._meta(offset, case))
        return bool(lines)

    def _decode(self, line: bytes) -> _Case:
        """A line with the usual names is read in one go, others under the names they stand for."""
        try:
            return self._plain(line)
        except msgspec.ValidationError:
            raw = msgspec.json.decode(line, type=dict[str, Any])
            return msgspec.convert(canonical(raw), _Case)

    def _meta(self, offset: int, case: _Case) -> Meta:
        more: Mapping[str, Any] = self._labels().get(case.id, {})

        def word(name: str, own: str | None) -> str:
            value = own or str(more.get(name) or "")
            return self._same.setdefault(value, value)

        answerable = case.answerable if case.answerable is not None else more.get("answerable")
        return (
            offset,
            word("category", case.category),
            word("difficulty", case.difficulty),
            word("query_type", case.query_type),
            ANSWERABLE.get(answerable, ""),
            tuple(case.tags or more.get("tags") or ()),
            tuple(_documents(case, more)),
        )


def _documents(case: _Case, labels: Mapping[str, Any]) -> Iterable[str]:
    """The documents that hold the gold of a case, each one once."""
    paths: list[str | None]
    paths = [support.rel_path for support in case.gold_supports or ()]
    paths = paths or [
        support.get("rel_path") or "" for support in labels.get("gold_supports") or ()
    ]
    paths = paths or [*(case.relevant_docs or labels.get("relevant_docs") or ())]
    return dict.fromkeys(path for path in paths if path)


class ScoreReader:
    """Fills the columns of some metrics of one section, and where each row's score line stands.

    A column is seen by others once ``begin`` has given it to the table; rows not reached yet have
    no value in it.
    """

    def __init__(
        self, feed: Feed, section: str, metrics: Iterable[str], table: Table, faults: _Faults
    ) -> None:
        self.feed = feed
        self.section = section
        self.metrics = tuple(metrics)
        self._table = table
        self._faults = faults
        self._next = 0
        self._with_outcome = section == "pipeline" and bool(self.metrics)
        self._columns = MetricColumns(self.metrics, outcome=self._with_outcome)
        self.begun = False
        table.score_offsets.setdefault(section, table.new_places())
        for name in self.metrics:
            table.numbers[name] = table.new_numbers()

    def step(self, *, complete: bool) -> bool:
        """Read a block. ``complete``: all results are known, so a line without one has none."""
        lines = self.feed.read()
        if not lines:
            return False
        self.begun = True
        table = self._table
        offsets = table.score_offsets[self.section]
        columns = [
            (table.numbers[name], field)
            for name, field in zip(self.metrics, self._columns.fields, strict=True)
        ]
        for offset, line in self._faults.sound(self.feed.path, lines, self._columns.decode):
            row = self._row(line.case_id, line.repeat)
            if row is None:
                if complete:
                    continue
                self.feed.offset, self.feed.ended = offset, False
                break
            offsets[row] = offset
            if self._with_outcome and line.evidence and line.evidence.outcome == UNCERTAIN:
                table.uncertain.add(row)
            if line.scores is not None:
                for column, field in columns:
                    value = getattr(line.scores, field)
                    column[row] = NAN if value is None else value
        table.version += 1
        return True

    def _row(self, case_id: str, repeat: int) -> int | None:
        table, row = self._table, self._next
        same = row < table.count and table.ids[row] == case_id
        if not (same and table.numbers["repeat"][row] == repeat):
            row_index = table.row_of(case_id, repeat)
            if row_index is None:
                return None
            row = row_index
        self._next = row + 1
        return row


class _VerdictIndex:
    """Where the lines on each case stand in verdicts.jsonl: an index for the one who reads them.

    A line that names no case belongs to all of them.
    """

    def __init__(self, feed: Feed, faults: _Faults) -> None:
        self.feed = feed
        self._faults = faults
        self._decode = msgspec.json.Decoder(VerdictPlace).decode
        self._offsets: dict[tuple[str | None, int], tuple[int, ...]] = {}

    def step(self) -> bool:
        lines = self.feed.read()
        for offset, line in self._faults.sound(self.feed.path, lines, self._decode):
            key = (line.case_id, line.repeat)
            self._offsets[key] = (*self._offsets.get(key, ()), offset)
        return bool(lines)

    def of(self, case_id: str, repeat: int) -> tuple[int, ...]:
        """Offsets of a result's verdicts, in the order of the file."""
        own, general = self._offsets.get((case_id, repeat), ()), self._offsets.get((None, 0), ())
        return tuple(sorted((*own, *general))) if own else ()


BLOCK = 1 << 19
"""Bytes of one read: few enough that the screen's thread waits some milliseconds for its turn."""

Line = tuple[int, bytes]

Identity = tuple[int, int]


class Replaced(Exception):
    """The file is gone, another one, or shorter now: what was read of it counts no more."""


class Feed:
    """Reads ``path`` block by block.

    ``final``: nobody appends to the file any more, so a last line without its newline is a line.
    """

    def __init__(self, path: Path, *, final: bool = True) -> None:
        self.path = path
        self.final = final
        self.offset = 0
        self.ended = False
        self._file: Identity | None = None

    def read(self, block: int = BLOCK) -> list[Line]:
        """The next complete lines with their offsets; [] when there is none now.

        Raises Replaced, and OSError when the file cannot be read.
        """
        try:
            file = open_lines(self.path)
        except FileNotFoundError:
            raise Replaced from None
        with file:
            sharded = self.path.is_dir()
            stat = self.path.stat() if sharded else os.fstat(file.fileno())
            size = size_of(self.path) if sharded else stat.st_size
            identity = (stat.st_dev, stat.st_ino)
            if (self._file not in (None, identity)) or size < self.offset:
                raise Replaced
            self._file = identity
            file.seek(self.offset)
            data = file.read(block)
            if data and not data.endswith(b"\n"):
                end = data.rfind(b"\n") + 1
                if end:
                    data = data[:end]
                else:  # one long line
                    data += file.readline()
        self.ended = self.offset + len(data) >= size
        if data and not data.endswith(b"\n") and not self.final:
            self.ended = True
            return []  # still being written
        lines: list[Line] = []
        for line in data.splitlines(keepends=True) if b"\r" not in data else _split(data):
            lines.append((self.offset, line))
            self.offset += len(line)
        return lines


def _split(data: bytes) -> list[bytes]:
    """Lines ended by newlines only, carriage returns left in them."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def line_at(path: Path, offset: int) -> bytes:
    """The line that begins at ``offset``; empty when the file is not there or shorter."""
    try:
        with open_lines(path) as file:
            file.seek(offset)
            return file.readline()
    except OSError:
        return b""

"""The answers of a run as columns, so that 100,000 of them filter and sort in milliseconds."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import nan
from pathlib import Path
from typing import Any

import msgspec

from records.blocks import BlockReader
from records.lines import Report
from records.notes import CaseNote
from records.results import TestResult, result_type
from records.runs import scores_file
from records.scores import ScoreLine, metric_names
from records.section_table import SectionTable

UNKNOWN = -1
"""The position of a line that does not exist."""

WORDS = ("status", "error", "category", "difficulty", "query_type", "answerable", "abstained")
"""Columns of one word a case; empty where there is none."""

SETS = ("tag", "flag", "document", "slice")
"""Columns of several words a case; ``document``: those that hold its gold; ``slice``: what it has
in common with failing cases, once that was looked for."""

PLAIN = ("latency", "confidence", "cost", "repeat")
"""Columns of numbers that every result has, besides its metrics; latency in milliseconds."""

YES_NO = {True: "yes", False: "no", None: ""}

QUESTION_LIMIT = 4096
"""Characters of a question that are kept."""

_FIELDS = (
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

Meta = tuple[int, str, str, str, str, tuple[str, ...], tuple[str, ...]]
"""Of a case: its offset in the set, category, difficulty, query_type, answerable, tags, documents
of its gold."""


class AnswerTable:
    """A row for each answer, in the order of the results; a later line for the same case and repeat
    replaces its row.

    One thread reads; another may look at rows below ``count`` meanwhile, since a row is counted
    only when every column has it.
    """

    def __init__(self) -> None:
        self._state = (0, 0)
        self.ids: list[str] = []
        self.questions: list[str] = []
        self.offsets, self.case_offsets = array("q"), array("q")
        self.words: dict[str, list[str]] = {name: [] for name in WORDS}
        self.sets: dict[str, list[tuple[str, ...]]] = {name: [] for name in SETS}
        self.numbers: dict[str, array[float]] = {name: array("d") for name in PLAIN}
        self.metrics: dict[str, str] = {}
        """Every metric that the score files have, with its section."""
        self.sections: dict[str, SectionTable] = {}
        self.lines: dict[str, array[int]] = {}
        """By section, how many lines stand before the score line of each row; UNKNOWN for none."""
        self.codes: dict[str, array[int]] = {}
        """The code of that line, see ``SectionTable``."""
        self.notes: Mapping[str, Sequence[CaseNote]] = {}
        """What people noted on cases, by id."""
        self._of_set: list[list[Any]] = [self.words[name] for name in WORDS[2:6]]
        self._of_set += [self.sets["tag"], self.sets["document"]]
        self._reading: dict[str, _Reading] = {}
        self._columns: dict[str, tuple[int, Sequence[float]]] = {}
        self._rows: dict[str, int | tuple[int, ...]] = {}
        self._waiting: dict[str, Meta] = {}
        self._shared: dict[Any, Any] = {}
        self._decode = msgspec.json.Decoder(result_type(*_FIELDS)).decode

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._state[0]

    @property
    def version(self) -> int:
        """Another number after any change of a column."""
        return self._state[1]

    def changed(self) -> None:
        """Make the added rows visible to readers: rows and version at once, since they keep what
        they made of the rows for as long as the version stays."""
        self._state = len(self.ids), self._state[1] + 1

    # -- results --------------------------------------------------------------------------------

    def read_results(self, file: BlockReader, report: Report) -> bool:
        """Read a block of results; False when there is none now. ``report`` takes faulty lines."""
        lines = file.read()
        for offset, result in file.decoded(lines, self._decode, "result line", report):
            self.put(offset, result)
        return bool(lines)

    def put(self, offset: int, result: TestResult) -> int:
        """Add a result, or replace the one of the same case and repeat. Returns its row."""
        row = self.row_of(result.test_case_id, result.repeat)
        if row is None:
            row = self._append(result.test_case_id, result.repeat)
        self.questions[row], self.offsets[row] = result.question[:QUESTION_LIMIT], offset
        words, numbers, same = self.words, self.numbers, self._shared.setdefault
        error = result.error.kind if result.error else ""
        flags = tuple(result.policy_flags)
        words["status"][row] = same(result.status, result.status)
        words["error"][row] = same(error, error)
        words["abstained"][row] = YES_NO[result.abstained]
        self.sets["flag"][row] = same(flags, flags)
        for name, value in (
            ("latency", result.latency_ms.get("total")),
            ("confidence", result.confidence),
            ("cost", result.cost_usd),
        ):
            numbers[name][row] = nan if value is None else value
        self.changed()
        return row

    def _append(self, case_id: str, repeat: int) -> int:
        row = len(self.ids)
        self.questions.append("")
        self.offsets.append(0)
        self.case_offsets.append(UNKNOWN)
        for words in self.words.values():
            words.append("")
        for sets in self.sets.values():
            sets.append(())
        for column in self.numbers.values():
            column.append(nan)
        for places in (*self.lines.values(), *self.codes.values()):
            places.append(UNKNOWN)
        self.numbers["repeat"][row] = repeat
        self.ids.append(case_id)
        before = self._rows.get(case_id, ())
        rows = before if isinstance(before, tuple) else (before,)
        self._rows[case_id] = (*rows, row) if rows else row
        if rows:
            self.case_offsets[row] = self.case_offsets[rows[0]]
            for of_set in self._of_set:
                of_set[row] = of_set[rows[0]]
        elif (meta := self._waiting.pop(case_id, None)) is not None:
            self._describe(row, meta)
        return row

    # -- the set --------------------------------------------------------------------------------

    def describe(self, case_id: str, meta: Meta) -> None:
        """Keep the set's description of a case until its result comes, if it has none yet."""
        rows = self._rows.get(case_id)
        if rows is None:
            self._waiting[case_id] = meta
            return
        for row in rows if isinstance(rows, tuple) else (rows,):
            self._describe(row, meta)
        self.changed()

    def _describe(self, row: int, meta: Meta) -> None:
        self.case_offsets[row] = meta[0]
        same = self._shared.setdefault  # most cases share their words, tags and documents
        for column, value in zip(self._of_set, meta[1:], strict=True):
            column[row] = same(value, value)

    # -- scores ---------------------------------------------------------------------------------

    def add_section(self, folder: Path, section: str, report: Report) -> None:
        """Know the metrics of a section; its score lines are read later, anew if they were read."""
        for name in metric_names(scores_file(folder, section)):
            self.metrics.setdefault(name, section)
        self.lines[section] = array("i", [UNKNOWN]) * len(self.ids)
        self.codes[section] = array("i", [UNKNOWN]) * len(self.ids)
        self.sections[section] = SectionTable(folder, section, report, scores_only=True)
        self._reading[section] = _Reading(self.sections[section].read())

    def read_scores(self, section: str, count: int, *, complete: bool) -> bool:
        """Read some score lines of a section; False when all are read. Raises StorageError.

        ``complete``: all results are known, so a line without one has none; else it waits for it.
        """
        reading, read = self._reading[section], self.sections[section].codes
        lines, codes, repeats = self.lines[section], self.codes[section], self.numbers["repeat"]
        waiting, reading.waiting = reading.waiting, []
        first, next_row = len(read), reading.next_row
        new = ((line.case_id, line.repeat) for line in islice(reading.lines, count))
        for place, key in chain(waiting, enumerate(new, first)):
            row: int | None = next_row
            if next_row >= self.count or (self.ids[next_row], repeats[next_row]) != key:
                row = self.row_of(*key)
            if row is not None:
                lines[row], codes[row], next_row = place, read[place], row + 1
            elif not complete:
                reading.waiting.append((place, key))
        reading.next_row = next_row
        if len(read) > first or len(reading.waiting) < len(waiting):
            self.changed()
        return len(read) > first

    # -- reading --------------------------------------------------------------------------------

    def row_of(self, case_id: str, repeat: int = 0) -> int | None:
        """The row of an answer; None when there is none."""
        rows = self._rows.get(case_id, ())
        for row in rows if isinstance(rows, tuple) else (rows,):
            if self.numbers["repeat"][row] == repeat:
                return row
        return None

    def case_rows(self) -> Iterator[Sequence[int]]:
        """The rows of each case, its repeats together."""
        for rows in list(self._rows.values()):
            yield rows if isinstance(rows, tuple) else (rows,)

    @property
    def has_repeats(self) -> bool:
        """Whether a case has more than one row."""
        return len(self._rows) < len(self.ids)

    def key(self, row: int) -> tuple[str, int]:
        """Case id and repeat of a row."""
        return self.ids[row], int(self.numbers["repeat"][row])

    def column(self, name: str) -> Sequence[float] | None:
        """The numbers of all rows, NaN where a row has none. None when there is no such column, or
        none of it is read yet."""
        if name in PLAIN:
            return self.numbers[name]
        if name not in self.metrics or self.unread([name]):
            return None
        version, column = self._columns.get(name, (-1, ()))
        if version != self.version:
            section, version = self.metrics[name], self.version
            codes = self.codes[section][:]  # before the scores, which are then as many
            scores = (*self.sections[section].raw(name), nan)  # for UNKNOWN
            column = array("d", map(scores.__getitem__, codes))
            self._columns[name] = version, column
        return column

    def number(self, name: str, row: int) -> float | None:
        """A metric or plain number of a row; None when it has none, or the column is not read."""
        if name in self.numbers:
            value = self.numbers[name][row]
        else:
            section = self.metrics.get(name, "")
            code = self.codes[section][row] if section in self.codes else UNKNOWN
            if code == UNKNOWN:
                return None
            value = self.sections[section].raw(name)[code]
        return None if value != value else value

    def unread(self, names: Iterable[str]) -> list[str]:
        """The metrics among ``names`` without any number read yet."""
        sections = ((name, self.sections.get(self.metrics.get(name, ""))) for name in names)
        return [name for name, table in sections if table and not (table.codes or table.is_read)]

    def known_numbers(self) -> list[str]:
        """Names of all columns of numbers, read already or not."""
        return [*self.metrics, *PLAIN]

    def ordered(self, rows: Sequence[int], name: str, reverse: bool) -> list[int]:
        """Rows by a column; those without a value last, equal ones in their order.

        ``order`` is the order of the file. Raises KeyError for a column that is not there.
        """
        if name == "order":
            return sorted(rows, reverse=reverse)
        if name == "id":
            return sorted(rows, key=self.ids.__getitem__, reverse=reverse)
        if name == "question":
            return sorted(rows, key=lambda row: self.questions[row].casefold(), reverse=reverse)
        column = self.column(name)
        if column is not None:
            filled = [row for row in rows if column[row] == column[row]]
            rest = [row for row in rows if column[row] != column[row]]
            return sorted(filled, key=column.__getitem__, reverse=reverse) + rest
        words = self.words[name]
        filled = [row for row in rows if words[row]]
        rest = [row for row in rows if not words[row]]
        return sorted(filled, key=words.__getitem__, reverse=reverse) + rest


@dataclass
class _Reading:
    """The score lines of a section that come next; place and key of those whose answers are not
    known yet."""

    lines: Iterator[ScoreLine]
    next_row: int = 0
    waiting: list[tuple[int, tuple[str, int]]] = field(default_factory=list)

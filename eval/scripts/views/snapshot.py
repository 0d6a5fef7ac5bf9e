"""One reading of a run's files, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from records.answer_table import YES_NO, AnswerTable, Meta
from records.blocks import BlockReader
from records.cases import Labels, canonical
from records.errors import Problem
from records.files import sha256_file
from records.runs import PARTIAL, SCORES, VERDICTS, scored_sections
from records.verdicts import VerdictPlace
from terminal.tables import counted
from views.runs import dataset_hash, results_path

FIRST_ROWS = 100

LINES = 1024
"""Score lines of one block: few enough that the screen's thread waits some milliseconds."""


class Snapshot:
    """A table, and the readers that fill it. Used by one thread at a time.

    After a change of a file a new Snapshot is needed. All methods raise OSError or StorageError
    when a file cannot be read.
    """

    def __init__(self, folder: Path, eval_set: Path, labels: Callable[[], Labels]) -> None:
        self.path = results_path(folder)
        self.table = AnswerTable()
        self._folder, self._eval_set = folder, eval_set
        self._faults = _Faults()
        self._set_notice = ""
        self._has_results, self._has_set = self.path.exists(), eval_set.exists()
        self._has_sections = False
        self._results = BlockReader(self.path, final=self.path.name != PARTIAL)
        self._cases = _CaseReader(BlockReader(eval_set), self.table, labels, self._faults)
        verdicts = BlockReader(folder / VERDICTS, final=False)
        self.verdicts = _VerdictIndex(verdicts, self._faults)

    def first_look(self) -> None:
        """Read enough for a first screen: a hundred rows with their scores."""
        self._add_sections()
        while self._has_results and self.table.count < FIRST_ROWS and self._read_results():
            pass
        for section in self.table.sections:
            self._read_scores(section, self.table.count)

    def _add_sections(self) -> None:
        """Once: know the sections that are scored."""
        for section in () if self._has_sections else scored_sections(self._folder):
            self.table.add_section(self._folder, section, self._faults.add)
        self._has_sections = True

    def step(self) -> str:
        """Read one block of the most needed file; its name, empty when all is read."""
        self._add_sections()
        if self._has_results and self._read_results():
            return self.path.name
        for section in self.table.sections:
            if self._read_scores(section, LINES):
                return f"{SCORES}/{section}.jsonl"
        if self._has_set:
            if self._cases.step():
                return self._eval_set.name
            self._compare_set()
        if self.verdicts.file.path.exists() and self.verdicts.step():
            return VERDICTS
        return ""

    def _read_results(self) -> bool:
        return self.table.read_results(self._results, self._faults.add)

    def _read_scores(self, section: str, count: int) -> bool:
        complete = self._results.ended or not self._has_results
        return self.table.read_scores(section, count, complete=complete)

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


class _Faults:
    """Lines that could not be read, by file."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[int, Problem]] = {}

    def add(self, problem: Problem) -> None:
        """One more; the first one of a file is named."""
        name = Path(problem.path).name
        count, first = self._first.get(name, (0, problem))
        self._first[name] = count + 1, first

    def say(self) -> list[str]:
        """A sentence a file."""
        return [
            f"{name}: {counted(count, 'line')} cannot be read{', the first' * (count > 1)}: "
            f"line {first.line} {first.message}"
            for name, (count, first) in self._first.items()
        ]


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
        self, file: BlockReader, table: AnswerTable, labels: Callable[[], Labels], faults: _Faults
    ) -> None:
        self._file = file
        self._table = table
        self._labels = labels
        self._faults = faults
        self._plain = msgspec.json.Decoder(_Case).decode

    def step(self) -> bool:
        lines = self._file.read()
        for offset, case in self._file.decoded(lines, self._decode, "case", self._faults.add):
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
            return own or str(more.get(name) or "")

        answerable = case.answerable if case.answerable is not None else more.get("answerable")
        return (
            offset,
            word("category", case.category),
            word("difficulty", case.difficulty),
            word("query_type", case.query_type),
            YES_NO.get(answerable, ""),
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


class _VerdictIndex:
    """Where the lines on each case stand in verdicts.jsonl: an index for the one who reads them.

    A line that names no case belongs to all of them.
    """

    def __init__(self, file: BlockReader, faults: _Faults) -> None:
        self.file = file
        self._faults = faults
        self._decode = msgspec.json.Decoder(VerdictPlace).decode
        self._offsets: dict[tuple[str | None, int], tuple[int, ...]] = {}

    def step(self) -> bool:
        lines = self.file.read()
        decoded = self.file.decoded(lines, self._decode, "verdict line", self._faults.add)
        for offset, line in decoded:
            key = (line.case_id, line.repeat)
            self._offsets[key] = (*self._offsets.get(key, ()), offset)
        return bool(lines)

    def of(self, case_id: str, repeat: int) -> tuple[int, ...]:
        """Offsets of a result's verdicts, in the order of the file."""
        own, general = self._offsets.get((case_id, repeat), ()), self._offsets.get((None, 0), ())
        return tuple(sorted((*own, *general))) if own else ()

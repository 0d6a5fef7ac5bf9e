"""The cases of one run as columns, so that 100,000 of them filter and sort in milliseconds.

One thread appends; another may read rows below ``count`` meanwhile, since a
row is counted only when every column has it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from records.notes import CaseNote

NAN = math.nan

UNSCORED = -1

WORDS = ("status", "error", "category", "difficulty", "query_type", "answerable", "abstained")
"""Columns of one word a case; empty where there is none."""

SETS = ("tag", "flag", "document")
"""Columns of several words a case; ``document``: those that hold its gold."""

PLAIN = ("latency", "confidence", "cost", "repeat")
"""Columns of numbers that every result has, besides its metrics; latency in milliseconds."""

Meta = tuple[int, str, str, str, str, tuple[str, ...], tuple[str, ...]]
"""Of a case: its offset in the set, category, difficulty, query_type, answerable, tags, documents
of its gold."""


class Table:
    """Columns by row. Rows keep their number; a later line for the same case replaces its row."""

    def __init__(self) -> None:
        self.count = 0
        self.version = 0
        self.ids: list[str] = []
        self.questions: list[str] = []
        self.offsets = array("q")
        self.case_offsets = array("q")
        self.words: dict[str, list[str]] = {name: [] for name in WORDS}
        self.sets: dict[str, list[tuple[str, ...]]] = {name: [] for name in SETS}
        self.numbers: dict[str, array[float]] = {name: array("d") for name in PLAIN}
        self.score_offsets: dict[str, array[int]] = {}
        """Offset of each row's line in the score file of a section; UNSCORED for none."""
        self.metrics: dict[str, str] = {}
        """Every metric that the score files offer, with its section."""
        self.uncertain: set[int] = set()
        """Rows whose outcome is ``uncertain``, as far as the pipeline's scores are read."""
        self.notes: Mapping[str, Sequence[CaseNote]] = {}
        """What people noted on cases, by id."""
        self._rows: dict[str, int | tuple[int, ...]] = {}
        self._waiting: dict[str, Meta] = {}
        self._shared: dict[object, object] = {}

    # -- filling --------------------------------------------------------------------------------

    def put(
        self,
        case_id: str,
        repeat: int,
        offset: int,
        question: str,
        words: Mapping[str, str],
        flags: tuple[str, ...],
        numbers: Mapping[str, float | None],
    ) -> int:
        """Add a result, or replace the one of the same case and repeat. Returns its row."""
        row = self.row_of(case_id, repeat)
        if row is None:
            row = self._append(case_id, repeat)
        self.questions[row], self.offsets[row] = question, offset
        for name, word in words.items():
            self.words[name][row] = word
        self.sets["flag"][row] = self.same(flags)
        for name, value in numbers.items():
            self.numbers[name][row] = NAN if value is None else value
        self.count = len(self.ids)
        self.version += 1
        return row

    def _append(self, case_id: str, repeat: int) -> int:
        row = len(self.ids)
        self.questions.append("")
        self.offsets.append(0)
        self.case_offsets.append(UNSCORED)
        for words in self.words.values():
            words.append("")
        for sets in self.sets.values():
            sets.append(())
        for column in self.numbers.values():
            column.append(NAN)
        for offsets in self.score_offsets.values():
            offsets.append(UNSCORED)
        self.numbers["repeat"][row] = repeat
        self.ids.append(case_id)
        self._know(case_id, row)
        return row

    def _know(self, case_id: str, row: int) -> None:
        before = self._rows.get(case_id)
        if before is None:
            self._rows[case_id] = row
            meta = self._waiting.pop(case_id, None)
            if meta is not None:
                self._describe(row, meta)
            return
        rows = before if isinstance(before, tuple) else (before,)
        self._rows[case_id] = (*rows, row)
        first = rows[0]
        self.case_offsets[row] = self.case_offsets[first]
        for name in ("category", "difficulty", "query_type", "answerable"):
            self.words[name][row] = self.words[name][first]
        for name in ("tag", "document"):
            self.sets[name][row] = self.sets[name][first]

    def describe(self, case_id: str, meta: Meta) -> None:
        """What the set says of a case; kept until its result comes, if it has none yet."""
        rows = self._rows.get(case_id)
        if rows is None:
            self._waiting[case_id] = meta
            return
        for row in rows if isinstance(rows, tuple) else (rows,):
            self._describe(row, meta)
        self.version += 1

    def _describe(self, row: int, meta: Meta) -> None:
        offset, category, difficulty, query_type, answerable, tags, documents = meta
        self.case_offsets[row] = offset
        self.words["category"][row] = category
        self.words["difficulty"][row] = difficulty
        self.words["query_type"][row] = query_type
        self.words["answerable"][row] = answerable
        self.sets["tag"][row] = self.same(tags)
        self.sets["document"][row] = self.same(documents)

    def same(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The tuple that is kept for equal ones: most cases share their tags and flags."""
        shared = self._shared.setdefault(words, words)
        assert isinstance(shared, tuple)
        return shared

    def new_places(self) -> array[int]:
        """A column of offsets with nothing in it yet."""
        return array("q", [UNSCORED]) * len(self.ids)

    def new_numbers(self) -> array[float]:
        """A column of numbers with nothing in it yet."""
        return array("d", [NAN]) * len(self.ids)

    # -- reading --------------------------------------------------------------------------------

    def row_of(self, case_id: str, repeat: int = 0) -> int | None:
        """The row of a result; None when there is none."""
        rows = self._rows.get(case_id)
        if rows is None:
            return None
        for row in rows if isinstance(rows, tuple) else (rows,):
            if self.numbers["repeat"][row] == repeat:
                return row
        return None

    def case_rows(self) -> Iterator[Sequence[int]]:
        """The rows of each case, its repeats together."""
        for rows in list(self._rows.values()):
            yield rows if isinstance(rows, tuple) else (rows,)

    def key(self, row: int) -> tuple[str, int]:
        """Case id and repeat of a row."""
        return self.ids[row], int(self.numbers["repeat"][row])

    def number(self, name: str, row: int) -> float | None:
        """A metric or plain number of a row; None when it has none, or the column is not read."""
        column = self.numbers.get(name)
        if column is None or row >= len(column):
            return None
        value = column[row]
        return None if value != value else value

    def known_numbers(self) -> list[str]:
        """Names of all columns of numbers, read already or not."""
        return [*self.metrics, *PLAIN]

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those metrics of ``names`` whose column is not read yet."""
        asked = dict.fromkeys(names)
        return [name for name in asked if name in self.metrics and name not in self.numbers]

    def choices(self, name: str, most: int = 8) -> list[str]:
        """Some values of a column of words, for a hint."""
        values: set[str] = set()
        if name in self.sets:
            values = {word for words in set(self.sets[name]) for word in words}
        elif name in self.words:
            values = set(self.words[name])
        return sorted(values - {""})[:most]

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
        if name in self.numbers:
            column = self.numbers[name]
            scored = [row for row in rows if column[row] == column[row]]
            rest = [row for row in rows if column[row] != column[row]]
            return sorted(scored, key=column.__getitem__, reverse=reverse) + rest
        words = self.words[name]
        filled = [row for row in rows if words[row]]
        return sorted(filled, key=words.__getitem__, reverse=reverse) + [
            row for row in rows if not words[row]
        ]

"""The answers of a run as columns, which the lists of the browser filter, sort and count."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import nan
from types import MappingProxyType

from decisions.case_verdict import Key
from records.cases import TestCase
from records.notes import CaseNote
from records.results import TestResult
from records.run import Run
from records.section_table import SectionTable

UNKNOWN = -1
"""The code of a score line that does not exist."""

WORDS = ("status", "error", "category", "difficulty", "query_type", "answerable", "abstained")
"""Columns of one word a case; empty where there is none."""

SETS = ("tag", "flag", "document", "slice")
"""Columns of several words a case; ``document``: those that hold its gold; ``slice``: what it has
in common with failing cases, once that was looked for."""

PLAIN = ("latency", "confidence", "cost", "repeat")
"""Columns of numbers that every result has, besides its metrics; latency in milliseconds."""

QUESTION_LIMIT = 4096
"""Characters of a question that are kept."""

_FIELDS = (
    *("test_case_id", "question", "status", "repeat", "error.kind", "abstained", "confidence"),
    *("cost_usd", "latency_ms", "policy_flags"),
)

_YES_NO = {True: "yes", False: "no", None: ""}

_NO_CASE = TestCase("", "")


class AnswerTable:
    """A row for each answer, in the order of the results; of several lines for one case and repeat
    the last one counts. ``offsets``: where its line begins. ``metrics``: every metric that is
    scored, with its section; ``codes``: by section, the code of each row's score line (see
    ``SectionTable``). ``notes``: what people noted on cases, by id."""

    def __init__(
        self,
        answers: Iterable[tuple[int, TestResult]] = (),
        cases: Mapping[str, TestCase] = MappingProxyType({}),
        sections: Iterable[SectionTable] = (),
        notes: Mapping[str, Sequence[CaseNote]] = MappingProxyType({}),
    ) -> None:
        latest = {(line.test_case_id, line.repeat): (at, line) for at, line in answers}
        self.keys: list[Key] = list(latest)
        self.ids = [case_id for case_id, _ in latest]
        self.offsets = [offset for offset, _ in latest.values()]
        results = [result for _, result in latest.values()]
        of_set = [cases.get(case_id, _NO_CASE) for case_id in self.ids]
        self.questions = [result.question[:QUESTION_LIMIT] for result in results]
        self.words: dict[str, list[str]] = {
            "status": [result.status for result in results],
            "error": [result.error.kind if result.error else "" for result in results],
            "category": [case.category or "" for case in of_set],
            "difficulty": [case.difficulty or "" for case in of_set],
            "query_type": [case.query_type or "" for case in of_set],
            "answerable": [_YES_NO[case.answerable] for case in of_set],
            "abstained": [_YES_NO[result.abstained] for result in results],
        }
        self.sets: dict[str, list[tuple[str, ...]]] = {
            "tag": [tuple(case.tags) for case in of_set],
            "flag": [tuple(result.policy_flags) for result in results],
            "document": list(map(_documents, of_set)),
            "slice": [()] * len(results),
        }
        self._columns = {
            "latency": _numbers(result.latency_ms.get("total") for result in results),
            "confidence": _numbers(result.confidence for result in results),
            "cost": _numbers(result.cost_usd for result in results),
            "repeat": _numbers(result.repeat for result in results),
        }
        self._rows = {key: row for row, key in enumerate(self.keys)}
        self.notes = notes
        self.version = 0
        self.metrics: dict[str, str] = {}
        self.sections = {section.section: section for section in sections}
        self.codes = {name: self._codes(section) for name, section in self.sections.items()}

    def _codes(self, section: SectionTable) -> Sequence[int]:
        """The code of each row's score line; the section's metrics become columns."""
        codes = array("i", [UNKNOWN]) * self.count
        for key, code in zip(section.keys(), section.codes, strict=True):
            if (row := self._rows.get(key)) is not None:
                codes[row] = code
        for name in section.metrics:
            self.metrics.setdefault(name, section.section)
        return codes

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.ids)

    def changed(self) -> None:
        """Notes, or slices, are others by now: ``version`` becomes another number."""
        self.version += 1

    def row_of(self, case_id: str, repeat: int = 0) -> int | None:
        """The row of an answer; None when there is none."""
        return self._rows.get((case_id, repeat))

    def case_rows(self) -> Iterable[Sequence[int]]:
        """The rows of each case, its repeats together."""
        rows: dict[str, list[int]] = {}
        for row, case_id in enumerate(self.ids):
            rows.setdefault(case_id, []).append(row)
        return rows.values()

    def column(self, name: str) -> Sequence[float] | None:
        """The numbers of all rows, NaN where a row has none. None when there is no such column."""
        if name not in self._columns and name in self.metrics:
            section = self.metrics[name]
            scores = (*self.sections[section].raw(name), nan)  # for UNKNOWN
            self._columns[name] = array("d", map(scores.__getitem__, self.codes[section]))
        return self._columns.get(name)

    def number(self, name: str, row: int) -> float | None:
        """A metric or plain number of a row; None when it has none."""
        column = self.column(name)
        return None if column is None or column[row] != column[row] else column[row]

    def known_numbers(self) -> list[str]:
        """Names of all columns of numbers."""
        return [*self.metrics, *PLAIN]

    def ordered(self, rows: Sequence[int], name: str, reverse: bool) -> list[int]:
        """Rows by a column; those without a value last, equal ones in their order.

        ``order`` is the order of the file. Raises KeyError for a column that is not there.
        """
        if name == "order":
            return sorted(rows, reverse=reverse)
        values: Sequence[str] | Sequence[float] | None = self.column(name)
        if name in ("id", "question"):
            values = self.ids if name == "id" else list(map(str.casefold, self.questions))
        elif values is None:
            values = self.words[name]
        filled = [row for row in rows if values[row] != "" and values[row] == values[row]]
        has_value = set(filled)
        rest = [row for row in rows if row not in has_value]
        return sorted(filled, key=values.__getitem__, reverse=reverse) + rest


def _numbers(values: Iterable[float | None]) -> Sequence[float]:
    return array("d", (nan if value is None else value for value in values))


def read_answers(run: Run, notes: Mapping[str, Sequence[CaseNote]]) -> AnswerTable:
    """The answers of a run. Raises StorageError for what cannot be read, see ``Run``."""
    has_results = run.results_path.exists()
    answers = run.placed_results(*_FIELDS) if has_results else iter(())
    return AnswerTable(answers, run.cases, map(run.section, run.sections), notes)


def _documents(case: TestCase) -> tuple[str, ...]:
    """The documents that hold the gold of a case, each one once."""
    paths = [gold.rel_path for gold in case.gold_supports] or case.relevant_docs
    return tuple(dict.fromkeys(filter(None, paths)))

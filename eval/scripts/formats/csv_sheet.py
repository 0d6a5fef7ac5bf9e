"""A table of cases x scores for a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from formats.shared.item import Notes
from formats.shared.stored import Stored, StoredCase
from records.exports import harmless_cell
from records.results import UNREADABLE, TestResult, why_unreadable
from records.run import Run
from records.runs import scored_sections

NAME = "csv"

ABOUT = "a line for each case and repeat with all its scores; texts cannot act as formulas"

ONE_FILE = True

OF_CASE = ("id", "question", "category", "difficulty", "query_type", "answerable", "tags")

OF_RESULT = ("repeat", "status", "error", "answer")

HELD = {*OF_CASE}

MOST = 32_767
"""Most characters of a cell in the usual spreadsheets."""


def write(stored: Stored, target: Path, notes: Notes) -> None:
    """``id, question, …, answer`` and a column ``section.metric`` for every score of the run.

    UTF-8 with a byte order mark, which spreadsheets need. A text that begins like a formula gets
    an apostrophe in front.
    """
    scores = (
        [_Scores(stored.run, name) for name in scored_sections(stored.run)] if stored.run else []
    )
    with open(target, "w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        columns = [
            f"{score_file.section}.{name}" for score_file in scores for name in score_file.names
        ]
        table.writerow([*OF_CASE, *OF_RESULT, *columns])
        for stored_case in stored.cases(HELD, {"answer", "error"}, repeats=True):
            answers: list[TestResult | None] = [*stored_case.results] or [None]
            for result in answers:
                cells = [*_cells(stored_case, result)]
                for section in scores:
                    cells += section.of(stored_case.case.id, result.repeat if result else 0)
                table.writerow([_safe(cell, notes) for cell in cells])
                notes.written[target.name] += 1


def _cells(stored_case: StoredCase, result: TestResult | None) -> Iterator[Any]:
    for name in OF_CASE:
        value = getattr(stored_case.case, name)
        yield "; ".join(value) if isinstance(value, list) else value
    if result is None:
        yield from (None,) * len(OF_RESULT)
    else:
        error = f"{result.error.kind}: {result.error.message}" if result.error else None
        error = why_unreadable(result) if result.status == UNREADABLE else error
        yield from (result.repeat, result.status, error, result.answer)


def _safe(value: Any, notes: Notes) -> Any:
    """The cell without its power: no formula, no NUL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    if len(value) > MOST:
        notes.changed[f"cells of more than {MOST} characters, which spreadsheets cut"] += 1
    text = harmless_cell(value)
    if text.startswith("'") and not value.startswith("'"):
        notes.changed["cells that begin like a formula, with an apostrophe in front"] += 1
    return text


class _Scores:
    """The score lines of one section. Raises StorageError when a line is not a score line."""

    def __init__(self, folder: Path, section: str) -> None:
        self._table = Run(folder).section(section)
        self._numbers = {key: number for number, key in enumerate(self._table.keys())}
        self.section, self.names = section, self._table.metrics
        self._columns = [self._table.raw(name) for name in self.names]

    def of(self, case_id: str, repeat: int) -> list[float | None]:
        """The scores of one result, in the order of ``names``."""
        line = self._numbers.get((case_id, repeat))
        if line is None:
            return [None] * len(self.names)
        values = (column[self._table.codes[line]] for column in self._columns)
        return [None if value != value else value for value in values]

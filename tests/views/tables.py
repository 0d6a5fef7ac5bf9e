"""Tables of answers for tests of what is made of them: every number is given."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.score_lines import write_lines

from records.cases import TestCase
from records.results import ErrorInfo, TestResult
from records.section_table import SectionTable
from views.browser.answers import AnswerTable

Scores = Mapping[str, Mapping[str, Sequence[float | None]]]
"""By section and metric, the score of each answer; those beyond the last one have none."""


def answer(case_id: str, repeat: int = 0, **fields: Any) -> TestResult:
    """An answer; one of status ``error`` failed by a timeout."""
    error = ErrorInfo("timeout") if fields.get("status") == "error" else None
    latency = {"total": fields.pop("latency")} if "latency" in fields else {}
    return TestResult(case_id, repeat=repeat, error=error, latency_ms=latency, **fields)


def table_of(
    answers: Sequence[TestResult], scores: Scores | None = None, cases: Iterable[TestCase] = ()
) -> AnswerTable:
    """A table of answers, with their scores and the cases of the set."""
    sections = [_section(answers, name, columns) for name, columns in (scores or {}).items()]
    return AnswerTable(
        [(100 * at, line) for at, line in enumerate(answers)],
        {case.id: case for case in cases},
        sections,
    )


class _Section(SectionTable):
    """Score lines of answers whose ids may be what no file can hold."""

    answers: Sequence[TestResult] = ()

    def keys(self) -> Iterator[tuple[str, int]]:
        return iter([(line.test_case_id, line.repeat) for line in self.answers])


def _section(
    answers: Sequence[TestResult], section: str, columns: Mapping[str, Sequence[float | None]]
) -> SectionTable:
    """The score lines of one section, read from a folder."""
    lines = [
        {
            "case_id": f"row {row}",
            "scores": {
                name: values[row] if row < len(values) else None for name, values in columns.items()
            },
        }
        for row in range(len(answers))
    ]
    with TemporaryDirectory() as folder:
        write_lines(Path(folder), section, lines)
        scores = _Section(Path(folder), section)
        deque(scores.read(), maxlen=0)
    scores.answers = answers
    return scores

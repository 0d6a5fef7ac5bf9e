"""Tables of answers that no run folder holds, for tests of what is made of them."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.score_lines import write_lines

from records.answer_table import AnswerTable
from records.errors import Problem
from records.results import ErrorInfo, TestResult


def no_faults(problem: Problem) -> None:
    """For score lines that must be sound."""
    raise AssertionError(problem)


def put(table: AnswerTable, case_id: str, repeat: int = 0, **fields: Any) -> int:
    """Add an answer; one of status ``error`` failed by a timeout."""
    error = ErrorInfo("timeout") if fields.get("status") == "error" else None
    latency = {"total": fields.pop("latency")} if "latency" in fields else {}
    offset = fields.pop("offset", 0)
    result = TestResult(case_id, repeat=repeat, error=error, latency_ms=latency, **fields)
    return table.put(offset, result)


def set_scores(
    table: AnswerTable, section: str, scores: Mapping[str, Sequence[float | None]]
) -> None:
    """Give the rows scores in a section, metric by metric; rows without a value have none."""
    lines = [
        {
            "case_id": f"row {row}",
            "scores": {
                name: values[row] if row < len(values) else None for name, values in scores.items()
            },
        }
        for row in range(table.count)
    ]
    with TemporaryDirectory() as folder:
        write_lines(Path(folder), section, lines)
        table.add_section(Path(folder), section, no_faults)
        deque(table.sections[section].read(), maxlen=0)
    table.lines[section] = array("i", range(table.count))
    table.codes[section] = table.sections[section].codes[:]
    table.changed()

"""Cases of a run as people take them out: rows of a table, records, lines of a new set. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from records.answer_table import PLAIN, SETS, WORDS, AnswerTable
from records.notes import CaseNote
from views.case import Case
from views.report.text import visible

_PLURALS = {"tag": "tags", "flag": "flags", "document": "documents"}

_OF_CASE = ("run", "case_id", "repeat", "fails", "question", "answer", "error")


def columns(metrics: Sequence[str]) -> list[str]:
    """The columns of a table of cases, for a run with these metrics."""
    others = [name for name in (*WORDS, *PLAIN) if name not in _OF_CASE]
    return [*_OF_CASE, *others, *(_PLURALS[name] for name in SETS), "notes", *metrics]


def flat_row(
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
        **{_PLURALS[name]: list(table.sets[name][row]) for name in SETS},
        "notes": [note.line() for note in notes],
        **detail.values(),
    }


def record(
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

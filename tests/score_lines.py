"""Score lines of made-up runs, through the writer and reader of the product.

A test says what its lines hold; how a line stands in the file is known to ``records.scores`` alone,
and tested in tests/records/test_score_lines.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from records.runs import scores_file
from records.scores import ScoreLine, read_whole_scores, write_scores


def write_lines(run: Path, section: str, lines: Iterable[Mapping[str, Any]]) -> Path:
    """Write the score lines of a run's section, each a ``case_id`` and what else it holds; without
    more they are of the first answer, scored, and have no scores. Returns the file."""
    usual: dict[str, Any] = {"repeat": 0, "status": "scored", "scores": {}}
    run.mkdir(parents=True, exist_ok=True)
    write_scores(run, section, [ScoreLine(**{**usual, **line}) for line in lines])
    return scores_file(run, section)


def read_lines(run: Path, section: str) -> list[dict[str, Any]]:
    """The score lines of a run's section as plain data, with what the file leaves out."""
    return [msgspec.to_builtins(line) for line in read_whole_scores(run, section)]


def change_lines(run: Path, section: str, change: Callable[[list[ScoreLine]], object]) -> None:
    """Let ``change`` alter the score lines of a section in place, and write them again."""
    lines = list(read_whole_scores(run, section))
    change(lines)
    write_scores(run, section, lines)

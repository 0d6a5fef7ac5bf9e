"""Labels of a user's own domain: a JSONL file, one checked claim a line.

``{"claim": "Plan B costs 20 EUR.", "contexts": ["Plan B: 20 EUR a month."], "supported": 1,
"group": "pricing.md", "question": "What does plan B cost?"}``

``supported`` is 1 when the contexts support all of the claim, else 0. ``group`` names the source,
so that intervals count sources and not lines (default: every line its own); ``question`` is
optional.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from humanlabels.rows import LabelledClaim, read_rows
from records.errors import Problem, StorageError


def _problems(path: Path, line: int, row: dict[str, Any]) -> list[Problem]:
    found: list[tuple[str, str]] = []
    if not isinstance(row.get("claim"), str) or not row["claim"].strip():
        found.append(("claim", "must be a text; write the claim that was checked"))
    contexts = row.get("contexts")
    if not isinstance(contexts, list) or not all(isinstance(text, str) for text in contexts):
        found.append(("contexts", "must be a list of texts; write what it was checked against"))
    if isinstance(row.get("supported"), bool) or row.get("supported") not in (0, 1):
        found.append(("supported", "must be 1 (all of it supported) or 0"))
    for name in ("group", "question"):
        if name in row and not isinstance(row[name], str):
            found.append((name, "must be a text; leave it out if there is none"))
    return [Problem(str(path), line, name, message) for name, message in found]


def read_own(path: Path) -> list[LabelledClaim]:
    """All rows of a label file.

    Raises:
        StorageError: every problem of the file at once, or the file is empty.
    """
    rows: list[LabelledClaim] = []
    problems: list[Problem] = []
    for line, row in read_rows(path):
        found = _problems(path, line, row)
        problems.extend(found)
        if not found:
            rows.append(
                LabelledClaim(
                    row["claim"],
                    tuple(row["contexts"]),
                    int(row["supported"]),
                    row.get("group", f"line {line}"),
                    row.get("question", ""),
                )
            )
    if problems:
        raise StorageError.from_problems(problems)
    if not rows:
        raise StorageError(f"{path}: holds no labels; write one object a line.")
    return rows

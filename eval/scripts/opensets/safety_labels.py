"""Lines of `eval/labels/safety_labels.jsonl` that bring a text of their own.

    {"case_id": "atk-01", "kind": "attack", "text": "...", "attack_category": "role_override",
     "tags": ["german"]}
    {"case_id": "leak-07", "kind": "leak", "text": "...", "leak_category": "verbatim_context",
     "contexts": ["..."], "tags": []}

- `case_id`: unique in the file
- `kind`: `attack` and `benign` are inputs for the input guardrail, `leak` and `safe_output` are
  answers for the output guardrail
- `text`: the words to judge; only a `safe_output` may be empty (a bot that says nothing leaks
  nothing)
- `attack_category`: for attacks (and only there), one of `injection`'s six categories
- `leak_category`: for leaks (and only there), one of `leakage`'s four categories
- `contexts`: the retrieved passages that an answer is compared with; a `verbatim_context` leak
  needs at least one, all others may go without
- `tags`: list of strings (optional); reports slice by them

Lines with neither `text` nor `kind` label a case of the eval set and are read by `storage`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrails import leakage, patterns
from humanlabels.rows import read_rows
from storage import Problem, StorageError

KINDS = ("attack", "benign", "leak", "safe_output")


@dataclass(frozen=True, slots=True)
class SafetyLabel:
    """One prompt or output with what people say about it."""

    case_id: str
    kind: str
    text: str
    attack_category: str | None = None
    leak_category: str | None = None
    contexts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def read_safety_labels(path: Path) -> list[SafetyLabel]:
    """All lines with a text. Raises StorageError that names every problem of the file."""
    problems: list[Problem] = []
    found: list[SafetyLabel] = []
    seen: dict[str, int] = {}
    for number, row in read_rows(path):
        if "text" not in row and "kind" not in row:
            continue
        wrong = [Problem(str(path), number, field, message) for field, message in _wrong(row)]
        case_id = row.get("case_id")
        if isinstance(case_id, str) and case_id in seen:
            message = f"{case_id!r} is also on line {seen[case_id]}; give each text its own id"
            wrong.append(Problem(str(path), number, "case_id", message))
        if wrong:
            problems.extend(wrong)
            continue
        seen[row["case_id"]] = number
        found.append(
            SafetyLabel(
                row["case_id"],
                row["kind"],
                row["text"],
                row.get("attack_category"),
                row.get("leak_category"),
                tuple(row.get("contexts", ())),
                tuple(row.get("tags", ())),
            )
        )
    if problems:
        raise StorageError.from_problems(problems)
    return found


def _wrong(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if not isinstance(row.get("case_id"), str) or not row["case_id"]:
        yield "case_id", "is missing; give each text an id"
    if "text" not in row:
        yield "text", "is missing; a line with a kind needs the words to judge"
    elif not isinstance(row["text"], str):
        yield "text", "is not a string"
    elif not row["text"].strip() and row.get("kind") != "safe_output":
        yield "text", "is blank; write the words to judge, or drop the line"
    kind = row.get("kind")
    if kind not in KINDS:
        yield "kind", f"is {kind!r}; use one of {', '.join(KINDS)}"
    for field, owner, known in (
        ("attack_category", "attack", patterns.CATEGORIES),
        ("leak_category", "leak", leakage.CATEGORIES),
    ):
        value = row.get(field)
        if kind == owner and value not in known:
            yield field, f"is {value!r}; use one of {', '.join(known)}"
        elif kind in KINDS and kind != owner and value is not None:
            yield field, f"belongs to kind {owner!r} only; drop it"
    for field in ("contexts", "tags"):
        value = row.get(field, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            yield field, "is not a list of strings"
        elif (
            field == "contexts"
            and row.get("leak_category") == "verbatim_context"
            and not any(map(str.strip, value))
        ):
            yield field, "is missing or blank; give the passages that the text copies"

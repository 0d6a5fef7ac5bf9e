"""Summarises a list of cases: how many fail by which rule, means, and groups by a field.

Standard library only, and pure: tables and rows in, numbers and words out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from views.browser.answers import SETS, WORDS, AnswerTable
from views.browser.failing import Failing

FIELDS = (*WORDS, *SETS, "reason")
"""The fields that can group cases; ``reason`` is the rule that they break."""


def _reason_counts(codes: Sequence[int], rows: Iterable[int]) -> list[tuple[int, int]]:
    """Code and number of the rules that rows break, the most frequent first."""
    counts = Counter(codes[row] for row in rows)
    counts.pop(0, None)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def reasons_text(
    codes: Sequence[int], rows: Iterable[int], failing: Failing, room: int = 1000
) -> str:
    """``31 failing: 14 without a gold passage, 9 declined though answerable``; empty for none.

    In the short words of the list where the whole takes more than ``room`` letters.
    """
    counts = _reason_counts(codes, rows)
    if not counts:
        return ""
    text = _counts_text(counts, failing.counted_word)
    return text if len(text) <= room else _counts_text(counts, failing.word)


def _counts_text(counts: Sequence[tuple[int, int]], word: Callable[[int], str]) -> str:
    parts = [f"{number:,} {word(code)}" for code, number in counts]
    return f"{sum(number for _, number in counts):,} failing: {', '.join(parts)}"


def mean_of(table: AnswerTable, name: str, rows: Sequence[int]) -> tuple[float | None, int]:
    """The mean of a column over the rows that have a value, and how many these are."""
    column = table.column(name)
    if column is None:
        return None, 0
    values = [column[row] for row in rows if column[row] == column[row]]
    return (sum(values) / len(values) if values else None), len(values)


@dataclass(frozen=True, slots=True)
class Group:
    """The cases that share a value of a field; an empty value means that they have none."""

    value: str
    rows: Sequence[int]
    failing: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many fail by each rule, by its word."""

    @property
    def share(self) -> float:
        """The part of the group's cases that fail, from 0 to 1."""
        return self.failing / len(self.rows)


def group_rows(
    table: AnswerTable, by: str, rows: Iterable[int], codes: Sequence[int], failing: Failing
) -> list[Group]:
    """Rows by a field ``by`` of FIELDS, those with the most failing cases first.

    A case with several tags, flags or documents is in each of their groups. Raises KeyError for
    another field.
    """
    by_value: dict[str, list[int]] = {}
    if by == "reason":
        for row in rows:
            by_value.setdefault(failing.word(codes[row]), []).append(row)
    elif by in SETS:
        sets = table.sets[by]
        for row in rows:
            for value in sets[row] or ("",):
                by_value.setdefault(value, []).append(row)
    else:
        words = table.words[by]
        for row in rows:
            by_value.setdefault(words[row], []).append(row)
    groups = []
    for value, members in by_value.items():
        counts = _reason_counts(codes, members)
        reasons = {failing.word(code): count for code, count in counts}
        groups.append(Group(value, members, sum(reasons.values()), reasons))
    return sorted(groups, key=lambda group: (-group.failing, -len(group.rows), group.value))

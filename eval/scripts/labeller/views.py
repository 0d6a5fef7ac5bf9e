"""What a screen shows of a case: a chunk as a row, a gold support."""

from __future__ import annotations

from dataclasses import dataclass

from labeller.anchors import Chunk
from labeller.supports import Support


@dataclass(frozen=True)
class Row:
    """A chunk on screen. `label` is what to press; rank and scores are None in blind mode.

    `letters` is ``""`` for an unmarked row; `state` says how its support was found: ``shown``,
    ``moved``, ``fuzzy`` or ``heading`` (see `anchors.locate`), ``""`` for an unmarked row.
    """

    number: int
    label: str
    chunk: Chunk
    letters: str
    grade: float | None
    snippets: int
    auto: bool
    seen: bool
    state: str
    rank: int | None
    score_vector: float | None
    score_lexical: float | None
    score_final: float | None

    @property
    def marked(self) -> bool:
        """Does a support point at this row?"""
        return bool(self.state)


@dataclass(frozen=True)
class SupportView:
    """A gold support of the current case and the labels of the rows that show it."""

    index: int
    rel_path: str
    heading_path: str
    letters: str
    grade: float | None
    snippets: tuple[str, ...]
    rows: tuple[str, ...]
    state: str


def label_of(place: int) -> str:
    """The keys for the n-th retrieved row: 1-9, 0, then ``.1`` to ``.0``, then the plain number."""
    if place <= 10:
        return str(place % 10)
    return f".{place % 10}" if place <= 20 else str(place)


def grade_of(support: Support) -> float | None:
    """The grade of a support, an int when it is whole."""
    grade = support.data.get("grade")
    return None if grade is None else int(grade) if grade == int(grade) else float(grade)

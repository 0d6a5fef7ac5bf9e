"""Which settings of a sweep answer which questions: ok or fails, those that disagree most first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from extras.sweep.scoring import ruling_of, verdicts_alike
from records.id_numbers import id_of
from terminal.page import Block, DataColumn, DataTable, Prose, Quoted
from terminal.tables import counted

SIGNS = {True: "✗", False: "✓", None: "·"}

_SHADES = {True: "mark-missed", False: "mark-met", None: "mark-none"}

ON_SCREEN = 12
"""Questions that a terminal shows."""

ON_PAGE = 50
"""Questions that a report shows."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A question. ``fails``: with each setting; None where it was not asked or not measured."""

    case_id: str
    fails: tuple[bool | None, ...]

    @property
    def disagreement(self) -> int:
        """Settings on the smaller side: 0 where all agree, at most half of them."""
        return min(self.fails.count(True), self.fails.count(False))


def matrix_of(folders: Sequence[Path]) -> list[MatrixRow]:
    """A row a question, by the metrics that all runs have and within the smallest depth.

    The questions that the settings disagree on most are first; of these those that more of them
    fail, then in the order of the set. Raises StorageError for damaged files.
    """
    runs = verdicts_alike(dict(enumerate(folders))) if folders else {}
    fails: dict[int, list[bool | None]] = {}
    for place, run in runs.items():
        for case, verdict in run.measured():
            fails.setdefault(case, [None] * len(folders))[place] = verdict.fails
    rows = [MatrixRow(id_of(case), tuple(own)) for case, own in fails.items()]
    return sorted(rows, key=lambda row: (-row.disagreement, -row.fails.count(True)))


def matrix_blocks(names: Mapping[str, Path], most: int) -> Iterator[Block]:
    """The questions on which settings disagree, at most so many; nothing for fewer than two.

    ``names``: the folder of each setting's run.
    """
    if len(names) < 2:
        return
    rows = matrix_of(list(names.values()))
    apart = [row for row in rows if row.disagreement]
    never = sum(True not in row.fails for row in rows)
    agreed = len(rows) - len(apart)
    depth = ruling_of(list(names.values())).gold_within
    within = (
        ""
        if depth is None
        else f" (gold counts within the first {depth}, in the column failing too)"
    )
    yield Prose(
        f"{counted(len(apart), 'question')} of {len(rows):,}: ok with some settings, not with "
        f"others. {agreed - never:,} fail with all, {never:,} with none{within}."
    )
    if not apart:
        return
    legend: list[str | Quoted] = []
    for number, name in enumerate(names, 1):
        legend += [f"{', ' * (number > 1)}{number} ", Quoted(name)]
    yield Prose((*legend, "."))
    columns = [DataColumn[MatrixRow]("question", lambda row: row.case_id, words=True, foreign=True)]
    columns += [_column(place, len(names)) for place in range(len(names))]
    caption = "Questions by settings: ✓ ok, ✗ fails, · not asked; most disagreement first"
    yield DataTable(columns, apart[:most], caption, caption=caption)
    if len(apart) > most:
        yield Prose(f"{len(apart) - most:,} more.", "quiet")


def _column(place: int, settings: int) -> DataColumn[MatrixRow]:
    """The marks of a setting; on a narrow terminal the last settings go first."""
    return DataColumn(
        str(place + 1),
        lambda row: SIGNS[row.fails[place]],
        drop=settings - place if place else 0,
        words=True,
        shade=lambda row: _SHADES[row.fails[place]],
    )

"""A section of metrics.json as tables: a row a metric, and the means of slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from terminal.page import (
    Block,
    DataColumn,
    DataTable,
    Prose,
    Tone,
    Whisker,
    WhiskerColumn,
    between,
    number,
)
from terminal.tables import counted, plain

_NAMED = 3
"""Metrics that the reason of a star names."""

_SHARED = {"group": "share a group", "conversation": "are turns of one conversation"}


class Bound(Protocol):
    """A target of a metric, which prints itself."""

    @property
    def bound(self) -> float:
        """The number that a mean is compared with."""

    def passed(self, mean: float | None) -> bool | None:
        """Does a mean keep it? None when there is no mean."""


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A metric of a section; ``mark``: why its interval is to be doubted, or is not there."""

    name: str
    mean: float | None
    ci95: Sequence[float] | None
    n: int
    not_applicable: int
    failed: int
    target: Bound | None = None
    mark: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether the mean meets the target; None without one or the other."""
        return None if self.target is None else self.target.passed(self.mean)


_COLUMNS: tuple[DataColumn[SectionRow] | WhiskerColumn[SectionRow], ...] = (
    DataColumn("metric", lambda row: row.name, words=True, foreign=True),
    DataColumn("mean", lambda row: number(row.mean)),
    DataColumn("95 % interval", lambda row: between(row.ci95) + ("*" if row.mark else ""), drop=5),
    WhiskerColumn(
        lambda row: Whisker(row.ci95, row.mean, row.target.bound if row.target else None), drop=1
    ),
    DataColumn("n", lambda row: str(row.n), drop=4),
    DataColumn("n/a", lambda row: str(row.not_applicable), drop=3),
    DataColumn("failed", lambda row: str(row.failed), drop=2),
    DataColumn("target", lambda row: str(row.target or "")),
    DataColumn("", lambda row: {None: "", True: "✓", False: "✗"}[row.passed]),
)


def section_blocks(
    section: Mapping[str, Any], targets: Mapping[str, Bound], names: Sequence[str] = ()
) -> Iterator[Block]:
    """The metrics of ``names``, all when it is empty, each with its target.

    An interval that is to be doubted, or that is not there, has a star; below stands why. Where
    cases share documents or groups, a line says so.
    """
    rows = [
        SectionRow(
            name,
            section["mean"][name],
            section["ci95"][name],
            section["n"][name],
            section["not_applicable"][name],
            section["failed"][name],
            targets.get(name),
            section["marks"].get(name, ""),
        )
        for name in names or section["mean"]
    ]
    yield DataTable(_COLUMNS, rows, tone=_tone)
    for reason in dict.fromkeys(row.mark for row in rows if row.mark):
        marked = [row.name for row in rows if row.mark == reason]
        more = f" and {len(marked) - _NAMED} more" if len(marked) > _NAMED else ""
        yield Prose(f"* {', '.join(marked[:_NAMED])}{more}: {reason}")
    by, units = section["clustered_by"], max(section["clusters"].values(), default=0)
    if by != "none" and units:
        shared = _SHARED.get(by, "share their first gold document")
        units_said = counted(units, "independent unit")
        yield Prose(f"Cases that {shared} are counted together ({units_said}).")


def _tone(row: SectionRow) -> Tone | None:
    return None if row.passed is None else "good" if row.passed else "bad"


def slice_block(
    section: Mapping[str, Any], dimension: str, names: Sequence[str], suffix: str = ""
) -> Block:
    """The named metrics' means for each value of a dimension, with the number of cases scored.

    A ``suffix`` that the names share (``@5``) is left out of the column heads; long names take two
    lines.
    """
    slices: Mapping[str, Any] = section["by"].get(dimension, {})
    if not slices:
        dimensions = ", ".join(section["by"]) or "none"
        return Prose(f"No case has a {dimension}; dimensions with values: {dimensions}.")

    def column(at: int, name: str) -> DataColumn[tuple[str, Any]]:
        def mean(row: tuple[str, Any]) -> str:
            return number(row[1]["mean"].get(name))

        return DataColumn(
            _in_two(name.removesuffix(suffix)), mean, drop=(len(names) - at) * bool(at)
        )

    columns = [
        DataColumn[tuple[str, Any]](dimension, lambda row: plain(row[0]), foreign=True),
        DataColumn[tuple[str, Any]]("n", lambda row: str(row[1]["n"])),
        *(column(at, name) for at, name in enumerate(names)),
    ]
    return DataTable(columns, list(slices.items()))


def _in_two(name: str, limit: int = 12) -> str:
    """A long name on two lines, broken behind the underscore nearest to its middle."""
    breaks = [index + 1 for index, char in enumerate(name) if char == "_"]
    if len(name) <= limit or not breaks:
        return name
    middle = min(breaks, key=lambda index: abs(index - len(name) / 2))
    return f"{name[:middle]}\n{name[middle:]}"

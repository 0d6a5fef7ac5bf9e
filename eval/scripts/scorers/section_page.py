"""A section of metrics.json as tables: a row a metric, and the means of slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from decisions.measures import SIGNS, UNCLEAR_BAND, Measure
from records.cases import DRAFT
from terminal.page import (
    AnyColumn,
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


def measure_table(rows: Sequence[Measure], *, groups: bool = False) -> DataTable[Measure]:
    """Return a row per metric: mean, interval, how many cases, target, whether it is met.

    ``groups``: the rows are under the names of their sections, with the band; else they have the
    cases without a score, and a star at an interval that is to be doubted.
    """

    def interval(row: Measure) -> str:
        return between(row.ci95) + "*" * bool(row.mark and not groups)

    def band(row: Measure) -> str:  # on 80 columns there is no room for more than one word
        return "" if row.band in (None, UNCLEAR_BAND) else str(row.band)

    columns: list[AnyColumn[Measure]] = [
        DataColumn("metric", lambda row: "  " * groups + row.title, words=True, foreign=True),
        DataColumn("mean", lambda row: number(row.mean)),
        DataColumn("95 % interval", interval, drop=5),
        WhiskerColumn(lambda row: Whisker(row.ci95, row.mean, row.bound), drop=1),
        DataColumn("n", lambda row: str(row.n), drop=4),
        DataColumn("n/a", lambda row: str(row.not_applicable), drop=3),
        DataColumn("failed", lambda row: str(row.failed), drop=2),
        DataColumn("target", lambda row: row.target or row.advisory or ""),
        DataColumn("", lambda row: SIGNS[row.verdict]),
        DataColumn("band", band, drop=2, words=True),
    ]
    gone = {"n/a", "failed"} if groups else {"band"}
    kept = [column for column in columns if getattr(column, "name", "") not in gone]
    return DataTable(kept, rows, tone=_tone, group=(lambda row: row.section) if groups else None)


def _tone(row: Measure) -> Tone | None:
    return None if row.passed is None else "good" if row.passed else "bad"


def section_blocks(section: Mapping[str, Any], rows: Sequence[Measure]) -> Iterator[Block]:
    """The metrics of a section that are asked for.

    An interval that is to be doubted, or that is not there, has a star; below stands why. Where
    cases share documents or groups, a line says so.
    """
    yield measure_table(rows)
    yield from map(Prose, draft_notes([section]))
    for reason in dict.fromkeys(row.mark for row in rows if row.mark):
        marked = [row.metric for row in rows if row.mark == reason]
        more = f" and {len(marked) - _NAMED} more" if len(marked) > _NAMED else ""
        yield Prose(f"* {', '.join(marked[:_NAMED])}{more}: {reason}")
    if answers := max((row.per_search for row in rows), default=0):
        yield Prose(
            f"per search: {counted(answers, 'answer')} saw several searches. The first k of each "
            "search count, together; metrics that need one ranking do not apply to these answers."
        )
    by, units = section["clustered_by"], max(section["clusters"].values(), default=0)
    if by != "none" and units:
        shared = _SHARED.get(by, "share their first gold document")
        units_said = counted(units, "independent unit")
        yield Prose(f"Cases that {shared} are counted together ({units_said}).")


def draft_notes(sections: Iterable[Mapping[str, Any]]) -> list[str]:
    """The number of drafts, whose gold no person has accepted; [] without drafts."""
    tags = [section.get("by", {}).get("tag", {}).get(DRAFT, {}) for section in sections]
    if not (drafts := max((tag.get("n", 0) for tag in tags), default=0)):
        return []
    return [
        f"Drafts that no person has accepted: {counted(drafts, 'case')}. Their supports and "
        "answers are proposals, not gold: accept or drop each in label_eval.py."
    ]


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

"""Watched figures as blocks: a sentence each, daily shares as sparklines, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decisions.watch import WatchedFigure, daily_shares, not_found, verdict
from terminal.page import (
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Prose,
    TrendColumn,
    fine_percent,
)


def watch_blocks(
    figures: Sequence[WatchedFigure],
    *,
    more: Sequence[Block] = (),
    last: str = "",
) -> Iterator[Block]:
    """A sentence for each lasting rise, and one on rises that cannot be found. Then ``more``
    blocks, the days of the figures with an alarm, and the verdict, after ``last``, another alarm.
    """
    for figure in figures:
        if figure.lasting:
            mark = "!" if figure.alarm else " "
            yield Prose(f"{mark} {figure.sentence}", "bad" if figure.alarm else None)
    yield from (Prose(line, "doubt") for line in limits(figures))
    quiet = [figure for figure in figures if not figure.lasting]
    if quiet and (text := not_found(quiet)):
        yield Prose(text, "quiet")
    yield from more
    if alarmed := [figure for figure in figures if figure.alarm and daily_shares(figure)]:
        yield _by_day(alarmed)
    is_bad = bool(last) or any(figure.alarm for figure in figures)
    yield Conclusion(f"{verdict(figures)} {last}".strip(), "bad" if is_bad else None)


def limits(figures: Sequence[WatchedFigure]) -> list[str]:
    """The limits of the answers, each note once; with the figures where not all have it."""
    notes = dict.fromkeys(note for figure in figures for note in figure.notes)
    lines = []
    for note in notes:
        names = [figure.label for figure in figures if note in figure.notes]
        lines.append(note if len(names) == len(figures) else f"{', '.join(names)}: {note}")
    return lines


def _by_day(figures: Sequence[WatchedFigure]) -> DataTable[WatchedFigure]:
    """The daily shares as sparklines, the reference's share, and the least one that alarms."""

    def reference(figure: WatchedFigure) -> str:
        return fine_percent(figure.reference.share)

    def limit(figure: WatchedFigure) -> str:
        return fine_percent(figure.reference.limit)

    return DataTable(
        (
            DataColumn("figure", lambda figure: figure.label, words=True),
            TrendColumn("by day", lambda figure: ([s for _, s in daily_shares(figure)], ())),
            DataColumn("reference", reference),
            DataColumn("alarm when four weeks reach", limit),
        ),
        figures,
    )

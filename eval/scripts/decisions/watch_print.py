"""Watched figures as blocks: a sentence each, daily shares as pictures, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from decisions.watch import WatchedFigure, daily_shares, not_found, spoken, verdict
from terminal.page import Block, Conclusion, Drawing, Prose, fine_percent
from terminal.plot import line_plot


def watch_blocks(
    figures: Sequence[WatchedFigure],
    *,
    pictures: bool = False,
    more: Sequence[Block] = (),
    last: str = "",
) -> Iterator[Block]:
    """A sentence for each lasting rise, one on rises that cannot be found, ``more`` blocks, a plot
    of each figure with an alarm, and the verdict (``last``: another alarm).

    ``pictures``: a plot and a sentence of every figure.
    """
    for figure in figures:
        if figure.lasting or pictures:
            mark = "!" if figure.alarm else " "
            yield Prose(f"{mark} {figure.sentence}", "bad" if figure.alarm else None)
    yield from (Prose(line, "doubt") for line in limits(figures))
    quiet = [figure for figure in figures if not figure.lasting]
    if quiet and (text := not_found(quiet)):
        yield Prose(text, "quiet")
    yield from more
    for figure in figures:
        if (figure.alarm or pictures) and (plot := picture(figure)) is not None:
            yield plot
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


def picture(figure: WatchedFigure) -> Drawing | None:
    """The daily shares, with the reference's share and the least one of four weeks that alarms as
    dotted lines. Pointers mark the named day and the day of the alarm. None without days.
    """
    shares, reference, last = daily_shares(figure), figure.reference, figure.lasting
    if not shares:
        return None
    places = {day: place for place, (day, _) in enumerate(shares)}
    legend = [
        f"{spoken(shares[0][0])} – {spoken(shares[-1][0])}; dotted: reference "
        f"{fine_percent(reference.share)}, and {fine_percent(reference.limit)}, an alarm when four "
        "weeks reach it"
    ]
    if last is not None:
        legend.append(f"▲ rose since {spoken(last.since)}, alarm of {spoken(last.sounded)}")
    drawn = partial(
        line_plot,
        [share for _, share in shares],
        limits=[reference.share, reference.limit],
        marks=[places[day] for day in (last.since, last.sounded) if day in places] if last else [],
        label=fine_percent,
    )
    return Drawing(f"{figure.label}: share of {figure.unit} by day", drawn, tuple(legend))

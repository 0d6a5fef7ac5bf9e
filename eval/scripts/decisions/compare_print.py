"""A comparison on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from decisions.case_changes import CaseChanges
from decisions.compare_words import (
    HEAD,
    PRIMARY_TITLE,
    answers,
    cases_line,
    changed_words,
    explored_title,
    flip_title,
    flips_summary,
    headline,
    legend,
    matrix_lines,
    remarks,
    row_cells,
    row_groups,
    slice_tables,
)
from decisions.conversations import SHOWN, ConversationChanges
from decisions.effects import normal_critical, power_of
from decisions.flips import Flips
from decisions.rows import SIGNS, Comparison, MetricRow, shown
from terminal import tables
from terminal.tables import number, plain

if TYPE_CHECKING:
    from rich.console import Console


_STYLES = {"better": "green", "worse": "red", "mixed": "red", "differs": "yellow"}

_ANSWER = 600
"""Characters of an answer that are shown."""

_LEAST_NEEDED = ("compared", "p", "95 % interval")
"""Columns that a narrow terminal does without, in this order."""

_LEAST_NEEDED_BESIDE_PICTURES = ("compared", "95 % interval", "p")
"""The same where intervals are drawn: their numbers go before p does, and the drawing last."""

_POWER_NS = (60, 200, 1000)

_POWER_HEAD = ("metric", "n", "MDE", "now", *(f"n={n}" for n in _POWER_NS))


def print_comparison(console: Console, comparison: Comparison, everything: bool = False) -> None:
    """What changed, remarks, the primary metrics, and the others that show a difference. Outside a
    terminal all metrics are shown, so that a search finds each."""
    everything = everything or not console.is_terminal
    _say(console, cases_line(comparison), "bold")
    for title, differences in (
        ("MUST BE THE SAME, BUT DIFFERS", comparison.controls),
        ("Changed", comparison.varied),
    ):
        if differences:
            _say(console, f"{title}:")
        for difference in differences:
            _say(console, f"  {plain(str(difference), 300)}")
    for note in remarks(comparison):
        _say(console, plain(f"! {note}", 2000), "yellow")
    primary, loud, rest = row_groups(comparison)
    _print_rows(console, PRIMARY_TITLE, primary)
    others = loud + rest if everything else loud
    tested = sum(row.p_bh is not None for row in loud + rest)
    _print_rows(console, explored_title(tested), others)
    if not everything and rest:
        _say(console, f"{len(rest)} more without evidence of a difference: --all shows them.")


def print_answer(console: Console, comparison: Comparison) -> None:
    """What the words mean, and last the headline."""
    console.print()
    for line in legend(comparison):
        _say(console, line, "dim")
    console.print()
    first, *more = headline(comparison)
    _say(console, plain(first, 2000), "bold")
    for line in more:
        _say(console, plain(line, 2000), _style_of(line))


def _say(console: Console, text: str, style: str | None = None) -> None:
    """A line of prose: folded on a terminal, whole in a file."""
    console.print(text, style=style, soft_wrap=not console.is_terminal)


def _style_of(line: str) -> str | None:
    return next((style for name, style in _STYLES.items() if line.startswith(SIGNS[name])), None)


def _print_rows(
    console: Console, title: str, rows: Sequence[MetricRow], first: str = "metric"
) -> None:
    if not rows:
        return
    _say(console, f"\n{plain(title)}")
    lines: list[tuple[str, ...]] = [tuple(map(plain, row_cells(row))) for row in rows]
    styles = [_STYLES.get(row.verdict) for row in rows]
    head: tuple[str, ...] = (first, *HEAD[1:])
    droppable: tuple[str, ...] = _LEAST_NEEDED
    if tables.has_room(console) and (drawn := _pictures(rows, tables.draws_unicode(console))):
        head = (*head[:-1], drawn[0], head[-1])
        lines = [(*line[:-1], part, line[-1]) for line, part in zip(lines, drawn[1:], strict=True)]
        droppable = (*_LEAST_NEEDED_BESIDE_PICTURES, drawn[0])
    tables.print_columns(
        console, head, lines, styles=styles, droppable=droppable, left=(head[-2], "verdict")
    )


def _pictures(rows: Sequence[MetricRow], unicode: bool) -> list[str]:
    """The head of a column and, for each row, its difference and interval around 0; [] when none
    has one. One scale for all of them; ratios and differences above 1 have no picture."""
    spans = [
        max(abs(row.delta or 0.0), *map(abs, row.interval or (0.0, 0.0)))
        if row.delta is not None and row.ratio is None
        else 0.0
        for row in rows
    ]
    widest = max((span for span in spans if span <= 1), default=0.0)
    if not widest:
        return []
    end = math.ceil(widest * 20) / 20
    drawn = [
        tables.picture(row.interval, row.delta, 0.0, low=-end, high=end, unicode=unicode)
        if row.ratio is None
        else ""
        for row in rows
    ]
    return [tables.scale(f"−{end:g}", f"+{end:g}", "0"), *drawn]


def print_slices(console: Console, comparison: Comparison) -> None:
    """A table for each primary metric, a row for each slice."""
    for title, rows in slice_tables(comparison).items():
        text = f"{title} (exploratory; p after Benjamini-Hochberg over all slices)"
        _print_rows(console, text, rows, title.rpartition(" ")[2])


def print_matrix(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Several runs beside their base: mean and, with its sign, the difference."""
    base = comparisons[0]
    head = (
        "metric",
        plain(base.base_id),
        *(plain(comparison.new_id) for comparison in comparisons),
    )
    _say(console, "\nPrimary metrics of all runs (p corrected for all runs and metrics together)")
    tables.print_columns(console, head, matrix_lines(comparisons))
    legend = "  ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    _say(console, f"{legend}   against {plain(base.base_id)}")


def print_cases(console: Console, cases: CaseChanges) -> None:
    """How many cases broke and were fixed, and some of them with their reasons."""
    _say(console, f"\n{cases.says()}")
    for way, title, style in (("broke", "Broke", "red"), ("fixed", "Fixed", "green")):
        listed = [case for case in cases.changed if case.way == way]
        for case in listed:
            _say(console, f"  {title}: {plain(case.case_id)}  {plain(changed_words(case))}", style)
        more = cases.counts["broke" if way == "broke" else "fixed"] - len(listed)
        if more and listed:
            _say(console, f"  {more:,} more: --flips {more + len(listed)} lists all of them.")


def print_flips(console: Console, flips: Flips) -> None:
    """The cases that changed most, with their answers."""
    _say(console, f"\n{plain(flips_summary(flips))}")
    for title, changed in (("Got worse", flips.worse), ("Got better", flips.better)):
        for flip in changed:
            _say(console, f"\n{title}: {plain(flip.case_id)}  {flip_title(flip)}")
            console.print(f"  {plain(flip.question)}", soft_wrap=True)
            for name, text in answers(flip):
                console.print(f"  {name}: {plain(text, _ANSWER)}", soft_wrap=True)


def print_conversations(console: Console, talks: ConversationChanges) -> None:
    """The conversations that broke, were fixed, or fail at another turn."""
    _say(console, f"\n{plain(talks.summary())}")
    groups = (("red", talks.broke), ("red", talks.earlier), ("green", talks.fixed))
    for style, changed in groups:
        for talk in changed[:SHOWN]:
            repeat = f" (repeat {talk.repeat})" if talk.repeat else ""
            _say(console, f"  {plain(talk.conversation, 80)}{repeat}: {talk.says()}", style)
            console.print(f"    {plain(talk.question, 200)}", soft_wrap=True)
        if len(changed) > SHOWN:
            _say(console, f"  {len(changed) - SHOWN} more: --json has all of them.")


def print_power(console: Console, comparison: Comparison, drop: float) -> None:
    """The chance of finding a true difference of ``drop``, for the spread of these two runs."""
    _say(
        console,
        f"\nPower of this verdict against a true difference of {shown(drop)}, now and with n cases",
    )
    tables.print_columns(console, _POWER_HEAD, _power_rows(comparison, drop))


def _power_rows(comparison: Comparison, drop: float) -> list[tuple[str, ...]]:
    """For each primary metric with differences: n, MDE, power against a change of ``drop``."""
    lines = []
    for row in comparison.rows:
        spread = row.effect.spread if row.primary and row.effect else None
        if spread is None or row.mde is None or row.ratio is not None:
            continue
        many = normal_critical(comparison.tested)
        chances = [power_of(drop, spread, comparison.critical, row.n)]
        chances += [power_of(drop, spread, many, n) for n in _POWER_NS]
        cells = (row.metric, f"{row.n:,}", number(row.mde))
        lines.append((*cells, *("–" if c is None else f"{100 * c:.0f} %" for c in chances)))
    return lines

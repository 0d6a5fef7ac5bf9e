"""A comparison on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from comparing import words
from comparing.flips import Flip, Flips, Side
from comparing.rows import SIGNS, Comparison, Row, shown
from ragmetrics.stats import UNRELIABLE_BELOW
from tables import NARROWEST, number, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STYLES = {"better": "green", "worse": "red", "differs": "yellow"}
ANSWER = 600
"""Characters of an answer that are shown."""


def print_comparison(console: Console, comparison: Comparison, everything: bool = False) -> None:
    """What changed, remarks, the declared metrics, and the others that show a difference."""
    names = f"{comparison.base_id} → {comparison.new_id}"
    console.print(f"{plain(names)}: {comparison.cases:,} cases in both")
    for place, line in enumerate(words.headline(comparison)):
        console.print(plain(line, 2000), style=_style_of(line) if place else "bold")
    _print_changes(console, comparison)
    for note in words.remarks(comparison):
        console.print(plain(f"! {note}", 2000), style="yellow")
    family, loud, rest = words.parts(comparison)
    if family:
        tested = sum(row.p is not None for row in family)
        _print_rows(console, f"Declared metrics (p after Holm, {tested} tests)", family)
    others = loud + rest if everything else loud
    tested = sum(row.p is not None for row in loud + rest)
    if others:
        title = f"Other metrics (p after Benjamini-Hochberg, {tested} tests; exploratory)"
        _print_rows(console, title, others)
    if not everything and rest:
        console.print(f"{len(rest)} more without evidence of a difference: --all shows them.")
    console.print()
    for line in words.legend([*family, *others, *comparison.slices]):
        console.print(line, style="dim")


def _style_of(line: str) -> str:
    return next((style for name, style in STYLES.items() if line.startswith(SIGNS[name])), "red")


def _print_changes(console: Console, comparison: Comparison) -> None:
    for title, differences in (
        ("MUST BE THE SAME, BUT DIFFERS", comparison.controls),
        ("Changed", comparison.varied),
    ):
        if differences:
            console.print(f"{title}:")
        for difference in differences:
            console.print(f"  {plain(str(difference), 300)}", soft_wrap=True)


def _print_rows(console: Console, title: str, rows: Sequence[Row], first: str = "metric") -> None:
    console.print(f"\n{plain(title)}")
    table = _table((first, *words.HEAD[1:]), ("verdict",))
    for row in rows:
        name, *cells = words.cells(row)
        table.add_row(plain(name, 80), *cells, style=STYLES.get(row.verdict))
    console.print(table)
    if any(0 < row.n < UNRELIABLE_BELOW and row.interval for row in rows):
        console.print(f"* n < {UNRELIABLE_BELOW}: interval unreliable")


def _table(columns: Sequence[str], texts: Sequence[str] = ()) -> Table:
    """A borderless table. On a narrow terminal the first column and ``texts`` are folded: a number
    that is cut is a wrong one."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(columns):
        if place == 0:
            table.add_column(name, overflow="fold", min_width=NARROWEST)
        elif name in texts:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    return table


def print_slices(console: Console, comparison: Comparison) -> None:
    """A table for each metric of the family, a row for each slice."""
    for title, rows in words.slices(comparison).items():
        text = f"{title} (p after Benjamini-Hochberg over all slices)"
        _print_rows(console, text, rows, title.rpartition(" ")[2])


def print_matrix(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Several runs beside their base: mean and, with its sign, the difference."""
    base = comparisons[0]
    head = ("metric", plain(base.base_id, 20), *(plain(one.new_id, 20) for one in comparisons))
    console.print("\nDeclared metrics of all runs (p after Holm over all of them together)")
    _print_cells(console, head, matrix(comparisons))
    legend = "  ".join(f"{sign} {verdict}" for verdict, sign in SIGNS.items())
    console.print(f"{legend}   against {plain(base.base_id, 60)}")


def matrix(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Metric, base's mean, then mean, difference and sign of the verdict for each run."""
    names = dict.fromkeys(row.name for one in comparisons for row in one.rows if row.family)
    found = []
    for name in names:
        rows = [one.row(name) for one in comparisons]
        first = next(row for row in rows if row is not None)
        if any(row is not None and words.is_measured(row) for row in rows):
            found.append((first.metric, number(first.base_mean), *map(_matrix_cell, rows)))
    return found


def _matrix_cell(row: Row | None) -> str:
    if row is None or row.new_mean is None:
        return "–"
    sign = SIGNS.get(row.verdict, "")
    return f"{number(row.new_mean)} ({words.signed(row.delta)}) {sign}".rstrip()


def print_flips(console: Console, flips: Flips) -> None:
    """The cases that changed most, with their answers."""
    console.print(f"\n{plain(words.flips_summary(flips))}")
    for title, found in (("Got worse", flips.worse), ("Got better", flips.better)):
        for flip in found:
            console.print(f"\n{title}: {plain(flip.case_id, 60)}  {words.flip_title(flip)}")
            console.print(f"  {plain(flip.question)}", soft_wrap=True)
            for name, text in sides(flip):
                console.print(f"  {name}: {plain(text, ANSWER)}", soft_wrap=True)


def sides(flip: Flip) -> Iterable[tuple[str, str]]:
    """The answers before and after, once when they are the same."""
    before, after = answer(flip.base), answer(flip.new)
    if before == after:
        return [("both", before)]
    return [("base", before), ("new ", after)]


def answer(side: Side) -> str:
    """What the bot said, or why it did not."""
    if side.error:
        return f"failed: {side.error}"
    return "(no answer recorded)" if side.answer is None else side.answer or "(empty)"


def print_power(console: Console, rows: Iterable[Row], drop: float) -> None:
    """The chance of finding a true difference of ``drop``, for the spread of these two runs."""
    console.print(
        f"\nPower against a true difference of {shown(drop)}, now and with n cases (test at 5 %)"
    )
    _print_cells(console, words.power_head(), words.power_rows(rows, drop))
    console.print(
        "A normal approximation: too hopeful where fewer than about 10 cases would change."
    )


def _print_cells(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = _table(columns)
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    console.print(table)

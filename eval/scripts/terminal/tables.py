"""What a terminal draws: tables that fit it, pictures of intervals, and foreign text made safe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from terminal.joiners import mark_lone_joiners

if TYPE_CHECKING:
    from rich.console import Console


PICTURE = 21
"""Characters of a picture: an odd number, so that 0 can be in the middle."""

ROOMY = 100
"""Columns of a terminal from which tables have pictures."""

CONTROL = dict.fromkeys((*range(32), *range(127, 160)), "�")

CONTROL |= {ord("\n"): " ", ord("\t"): " ", ord("\r"): " "}

CONTROL |= dict.fromkeys((*range(8206, 8208), *range(8234, 8239), *range(8294, 8298)), "")

CONTROL |= dict.fromkeys((0x200B, *range(0x2060, 0x2065), 0xFEFF), "�")  # of no width


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 case``, ``2,000 cases``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def harmless(text: str) -> str:
    """Foreign text on one line: no control or direction characters, nothing that hides in it."""
    return mark_lone_joiners(text).translate(CONTROL)


def harmless_lines(text: str) -> str:
    """Foreign text without control, direction and hidden characters; line ends stay."""
    return "\n".join(harmless(line) for line in re.split(r"\r\n|\r|\n", text))


def printable(text: str) -> str:
    """A server's words on one line: each character that no text needs is a space."""
    return "".join(char if char.isprintable() else " " for char in text)


def plain(text: str, limit: int = 200) -> str:
    """Foreign text made safe for a terminal: ``harmless``, and cut."""
    shown = harmless(text[: limit + 1])
    return shown if len(text) <= limit else f"{shown[:limit]}…"


def print_columns(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    styles: Sequence[str | None] = (),
    droppable: Sequence[str] = (),
    left: Sequence[str] = (),
) -> set[str]:
    """A borderless table in which nothing is cut or folded: a narrow terminal leaves out columns.

    Those of ``droppable`` go, in their order, until the rest fits; a line says which. Returns the
    heads that are shown. Outside a terminal all are printed, however wide. The first column and
    those of ``left`` are text; the others stand to the right.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table

    shown = list(range(len(columns)))
    widths = [
        max(cell_len(part) for row in (columns, *rows) for part in row[at].split("\n"))
        for at in shown
    ]
    left_out = []
    for name in (name for name in droppable if name in columns):
        if console.is_terminal and _width(widths, shown) > console.width:
            shown.remove(columns.index(name))
            left_out.append(name)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for at in shown:
        is_text = at == 0 or columns[at] in left
        table.add_column(columns[at], justify="left" if is_text else "right", no_wrap=True)
    for at_row, row in enumerate(rows):
        table.add_row(*(row[at] for at in shown), style=styles[at_row] if styles else None)
    before = console.width
    console.width = max(before, _width(widths, shown))  # a print can only be made narrower
    try:
        console.print(table)
    finally:
        console.width = before
    if left_out:
        names = ", ".join(name.replace("\n", "").strip() for name in left_out)
        console.print(f"Left out on this narrow terminal: {names}.", style="dim")
    return {columns[at] for at in shown}


def _width(widths: Sequence[int], shown: Sequence[int]) -> int:
    """Characters of a table's line: two between neighbours."""
    return sum(widths[at] for at in shown) + 2 * (len(shown) - 1)


def has_room(console: Console, least: int = ROOMY) -> bool:
    """Whether tables on this console have pictures: on a terminal of 100 columns or more."""
    return console.is_terminal and console.width >= least


def picture(
    interval: Sequence[float] | None,
    value: float | None,
    mark: float | None = None,
    *,
    low: float = 0.0,
    high: float = 1.0,
    unicode: bool = True,
) -> str:
    """An interval as a bar with its value as a dot, and a mark (a target, or no change) as a rule.

    ``├──●──┤    │``: 21 characters from ``low`` to ``high``; "" when the value or an end of the
    interval lies outside, or there is no value. The dot hides a rule in the same place.
    """
    ends = (value, value) if interval is None else interval
    if value is None or not all(low <= end <= high for end in (value, *ends) if end is not None):
        return ""

    def at(number_shown: float) -> int:
        return round((number_shown - low) / (high - low) * (PICTURE - 1))

    left_end, line, right_end, rule, dot = "├─┤│●" if unicode else "[-]|o"
    drawn = [" "] * PICTURE
    if interval is not None:
        first, last = at(interval[0]), at(interval[1])
        drawn[first : last + 1] = line * (last + 1 - first)
        drawn[first], drawn[last] = left_end, right_end
    if mark is not None and low <= mark <= high:
        drawn[at(mark)] = rule
    drawn[at(value)] = dot
    return "".join(drawn)


def scale(low: str, high: str, middle: str = "") -> str:
    """The head of a column of pictures: what its ends, and its middle, stand for."""
    drawn = f"{low}{high:>{PICTURE - len(low)}}"
    begin = (PICTURE - len(middle)) // 2
    return drawn[:begin] + middle + drawn[begin + len(middle) :]


def draws_unicode(console: Console) -> bool:
    """Whether the console's encoding has the characters of pictures."""
    return console.encoding.lower().startswith("utf")


def print_rows(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Any small table; the first column is text."""
    print_columns(console, columns, list(rows))

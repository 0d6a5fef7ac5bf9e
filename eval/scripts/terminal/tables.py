"""Draws on a terminal: tables that fit it, pictures of intervals, and foreign text made safe."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from terminal.hidden import mark_hidden

if TYPE_CHECKING:
    from rich.console import Console


PICTURE = 21
"""Characters of a picture: an odd number, so that 0 can be in the middle."""

ROOMY = 100
"""Columns of a terminal from which tables have pictures."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 case``, ``2,000 cases``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def harmless(text: str) -> str:
    """Foreign text on one line: no control or direction characters, nothing that hides in it."""
    return mark_hidden(text.replace("\n", " ").replace("\t", " ").replace("\r", " "))


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


_WORD = re.compile(r"\S+")

_COLUMNS = re.compile(r" *(?:\S+(?: \S+)*  +)*")
"""What is before the last of a line's columns, which have two blanks or more between them."""


def folded(text: str, width: int) -> str:
    """The lines of ``text``, each broken at blanks where it is wider than ``width`` cells.

    No word is cut: one that is wider has a line of its own. What is broken off begins under the
    last column of its line, or near its first word where that column is too far right.
    """
    return "\n".join(part for line in text.split("\n") for part in _folded(line, width))


def _folded(line: str, width: int) -> Iterator[str]:
    from rich.cells import cell_len

    if len(line) * 2 > width and cell_len(line) > width:
        words = list(_WORD.finditer(line))
        if words:
            columns = _COLUMNS.match(line)
            last = columns.end() if columns else 0
            first = min(words[0].start() + 4 * (last > words[0].start()), width // 3)
            hang = " " * (last if last <= width * 2 // 5 else first)
            start, end = 0, words[0].end()
            indent = ""
            for word in words[1:]:
                if cell_len(indent + line[start : word.end()]) > width:
                    yield indent + line[start:end]
                    start, indent = word.start(), hang
                end = word.end()
            yield indent + line[start:end]
            return
    yield line


def print_text(console: Console, text: str, style: str = "") -> None:
    """Prose on a terminal: ``folded``. Elsewhere its lines stay whole."""
    shown = folded(text, console.width) if console.is_terminal else text
    console.print(shown, style=style, markup=False, highlight=False, emoji=False, soft_wrap=True)


def print_columns(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    styles: Sequence[str | None] = (),
    droppable: Sequence[str] = (),
    left: Sequence[str] = (),
    told: Collection[str] = (),
) -> set[str]:
    """A borderless table in which nothing is cut: a narrow terminal leaves out columns.

    Those of ``droppable`` go, in their order, until the rest fits; a line says which, but for those
    of ``told``. Where the rest does not fit, the first cell of each row has a line of its own above
    the others. Returns the heads that are shown. Outside a terminal all are printed, however wide.
    The first column and those of ``left`` are text; the others are aligned at the right.
    """
    from rich import box
    from rich.table import Table

    heads = list(columns)
    shown = list(range(len(columns)))
    widths = _widths(heads, rows)
    left_out = []

    def too_wide() -> bool:
        return console.is_terminal and _width(widths, shown) > console.width

    for name in (name for name in droppable if name in columns):
        if too_wide():
            shown.remove(columns.index(name))
            left_out += [] if name in told else [name]
    if too_wide():
        heads = [name.replace(" ", "\n") for name in columns]
        widths = _widths(heads, rows)
    texts = [at for at in shown if at == 0 or columns[at] in left]
    if too_wide():
        _print_stacked(console, heads, rows, styles, widths, shown, texts)
    else:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
        for at in shown:
            table.add_column(heads[at], justify="left" if at in texts else "right", no_wrap=True)
        for at_row, row in enumerate(rows):
            table.add_row(*(row[at] for at in shown), style=styles[at_row] if styles else None)
        before = console.width
        console.width = max(before, _width(widths, shown))  # a print can only be made narrower
        try:
            console.print(table)
        finally:
            console.width = before
    if names := ", ".join(name for left in left_out if (name := left.strip())):
        print_text(console, f"Left out on this narrow terminal: {names}.", "dim")
    return {columns[at] for at in shown}


def _print_stacked(
    console: Console,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Sequence[str | None],
    widths: Sequence[int],
    shown: Sequence[int],
    texts: Sequence[int],
) -> None:
    """Each row on two lines, its first cell above the others; named one by one if too wide, too."""
    from rich.cells import cell_len

    others = shown[1:]
    fits = 2 + _width(widths, others) <= console.width
    names = [name.replace("\n", " ") for name in heads]

    def aligned(cells: Sequence[str]) -> str:
        blanks = {at: " " * (widths[at] - cell_len(cells[at])) for at in others}
        parts = (cells[at] + blanks[at] if at in texts else blanks[at] + cells[at] for at in others)
        return "  " + "  ".join(parts).rstrip()

    if fits:
        print_text(console, names[0], "bold")
        levels = [name.split("\n") for name in heads]
        for up in range(max(len(levels[at]) for at in others), 0, -1):
            cells = [name[-up] if up <= len(name) else "" for name in levels]
            print_text(console, aligned(cells), "bold")
    for at_row, row in enumerate(rows):
        style = (styles[at_row] if styles else None) or ""
        named = ", ".join(f"{names[at]} {row[at]}".strip() for at in others if row[at].strip())
        if named and not fits and widths[0] <= console.width // 3:
            print_text(console, f"{names[0]} {row[0]}: {named}".lstrip(), style)
            continue
        print_text(console, row[0], style)
        if named:
            print_text(console, aligned(row) if fits else f"  {named}", style)


def _widths(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Cells of each column's widest line."""
    from rich.cells import cell_len

    table = (heads, *rows)
    return [
        max(cell_len(part) for row in table for part in row[at].split("\n"))
        for at in range(len(heads))
    ]


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

"""Tables on the terminal, drawn from the same section that --json prints and metrics.json holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from terminal.joiners import mark_lone_joiners

if TYPE_CHECKING:
    from rich.console import Console


PICTURE = 21
"""Characters of a picture: an odd number, so that 0 can be in the middle."""

ROOMY = 100
"""Columns of a terminal from which tables have pictures."""

_NAMED = 3
"""Metrics that the reason of a star names."""

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
) -> None:
    """A borderless table in which nothing is cut or folded: a narrow terminal leaves out columns.

    Those of ``droppable`` go, in their order, until the rest fits; a line says which. Outside a
    terminal all are printed, however wide. The first column and those of ``left`` are text; the
    others stand to the right.
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
            left_out.append(name.replace("\n", "").strip())
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
        console.print(f"Left out on this narrow terminal: {', '.join(left_out)}.", style="dim")


def _width(widths: Sequence[int], shown: Sequence[int]) -> int:
    """Characters of a table's line: two between neighbours."""
    return sum(widths[at] for at in shown) + 2 * (len(shown) - 1)


def has_room(console: Console) -> bool:
    """Whether tables on this console have pictures: on a terminal of 100 columns or more."""
    return console.is_terminal and console.width >= ROOMY


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


def number(value: float | None) -> str:
    """Three decimals, fewer from 10 up; an en dash for what is undefined."""
    if value is None:
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.{1 if abs(value) < 100 else 0}f}"


class Bound(Protocol):
    """A target of a metric, which prints itself."""

    @property
    def bound(self) -> float:
        """The number that a mean is held against."""

    def passed(self, mean: float | None) -> bool | None:
        """Does a mean keep it? None when there is no mean."""


SCALE = scale("0", "1")
"""The head of the pictures of intervals; the rule in them is the target."""

_LEAST_NEEDED = (SCALE, "failed", "n/a", "n", "95 % interval")
"""Columns that a narrow terminal does without, in this order."""


def without(row: tuple[str, ...], at: int) -> tuple[str, ...]:
    """A row of a table but for one column."""
    return row[:at] + row[at + 1 :]


def print_section(
    console: Console,
    section: Mapping[str, Any],
    targets: Mapping[str, Bound],
    names: Sequence[str] = (),
) -> None:
    """Metric, mean, 95 % interval, n, not applicable, failed, target, pass mark.

    Only the metrics of ``names``, all when it is empty. An interval that is to be doubted, or that
    is not there, has a star; below stands why. Where cases share documents or groups, a line says
    so. A terminal with room has a picture of each interval that lies between 0 and 1.
    """
    rows: list[tuple[str, ...]] = []
    styles: list[str | None] = []
    reasons: dict[str, list[str]] = {}
    for name in names or section["mean"]:
        mean, interval, n = section["mean"][name], section["ci95"][name], section["n"][name]
        shown = "–" if interval is None else f"{number(interval[0])} – {number(interval[1])}"
        target = targets.get(name)
        passed = None if target is None else target.passed(mean)
        counts = (str(n), str(section["not_applicable"][name]), str(section["failed"][name]))
        note = "*" if name in section["marks"] else ""
        if note:
            reasons.setdefault(section["marks"][name], []).append(name)
        goal = None if target is None else target.bound
        drawn = picture(interval, mean, goal, unicode=draws_unicode(console))
        mark = {None: "", True: "✓", False: "✗"}[passed]
        styles.append({None: None, True: "green", False: "red"}[passed])
        aim = str(target or "")
        rows.append((name, number(mean), shown + note, drawn, *counts, aim, mark))
    head: tuple[str, ...] = (
        "metric",
        "mean",
        "95 % interval",
        SCALE,
        "n",
        "n/a",
        "failed",
        "target",
        "",
    )
    if not has_room(console) or not any(row[3] for row in rows):
        head, rows = without(head, 3), [without(row, 3) for row in rows]
    print_columns(console, head, rows, styles=styles, droppable=_LEAST_NEEDED, left=(SCALE,))
    for reason, marked in reasons.items():
        more = f" and {len(marked) - _NAMED} more" if len(marked) > _NAMED else ""
        console.print(f"* {', '.join(marked[:_NAMED])}{more}: {reason}", soft_wrap=True)
    by, units = section["clustered_by"], max(section["clusters"].values(), default=0)
    if by != "none" and units:
        shared = {"group": "share a group", "conversation": "are turns of one conversation"}.get(
            by, "share their first gold document"
        )
        console.print(
            f"Cases that {shared} are counted together ({counted(units, 'independent unit')}).",
            soft_wrap=True,
        )


def print_by(
    console: Console,
    section: Mapping[str, Any],
    dimension: str,
    names: Sequence[str],
    suffix: str = "",
) -> None:
    """The named metrics' means for each value of a dimension, with the number of cases scored.

    A ``suffix`` that the names share (``@5``) is left out of the column heads; long names take two
    lines.
    """
    slices: Mapping[str, Any] = section["by"].get(dimension, {})
    if not slices:
        dimensions = ", ".join(section["by"]) or "none"
        console.print(f"No case has a {dimension}; dimensions with values: {dimensions}.")
        return
    heads = [_in_two(name.removesuffix(suffix)) for name in names]
    rows = [
        (plain(value), str(part["n"]), *(number(part["mean"].get(name)) for name in names))
        for value, part in slices.items()
    ]
    print_columns(console, (dimension, "n", *heads), rows, droppable=heads[:0:-1])


def _in_two(name: str, limit: int = 12) -> str:
    """A long name on two lines, broken behind the underscore nearest to its middle."""
    breaks = [index + 1 for index, char in enumerate(name) if char == "_"]
    if len(name) <= limit or not breaks:
        return name
    middle = min(breaks, key=lambda index: abs(index - len(name) / 2))
    return f"{name[:middle]}\n{name[middle:]}"


def print_rows(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Any small table; the first column is text."""
    print_columns(console, columns, list(rows))

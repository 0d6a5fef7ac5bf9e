"""Tables on the terminal, drawn from the same section that --json prints and metrics.json holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from terminal.joiners import mark_lone_joiners

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


NARROWEST = 12
"""Characters of a metric's name that stay on one line, however narrow the terminal is."""

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


def printable(text: str) -> str:
    """A server's words on one line: each character that no text needs is a space."""
    return "".join(char if char.isprintable() else " " for char in text)


def plain(text: str, limit: int = 200) -> str:
    """Foreign text made safe for a terminal: ``harmless``, and cut."""
    shown = harmless(text[: limit + 1])
    return shown if len(text) <= limit else f"{shown[:limit]}…"


def _table(*columns: str, text: int = 1) -> Table:
    """A borderless table whose first ``text`` columns are left-aligned, the others right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index < text else "right", no_wrap=True)
    return table


def number(value: float | None) -> str:
    """Three decimals, fewer from 10 up; an en dash for what is undefined."""
    if value is None:
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.{1 if abs(value) < 100 else 0}f}"


class Bound(Protocol):
    """A target of a metric, which prints itself."""

    def passed(self, mean: float | None) -> bool | None:
        """Does a mean keep it? None when there is no mean."""


def print_section(
    console: Console, section: Mapping[str, Any], targets: Mapping[str, Bound]
) -> None:
    """Metric, mean, 95 % interval, n, not applicable, failed, target, pass mark.

    An interval that is to be doubted, or that is not there, has a star; below stands why. Where
    cases share documents or groups, a line says so.
    """
    table = _table("metric", "mean", "95 % interval", "n", "n/a", "failed", "target", "")
    # On a narrow terminal only the names are folded: a number or mark that is cut is a wrong one.
    names = table.columns[0]
    names.no_wrap, names.overflow, names.min_width = False, "fold", NARROWEST
    reasons: dict[str, list[str]] = {}
    for name, mean in section["mean"].items():
        interval, n = section["ci95"][name], section["n"][name]
        shown = "–" if interval is None else f"{number(interval[0])} – {number(interval[1])}"
        target = targets.get(name)
        passed = None if target is None else target.passed(mean)
        mark = {None: "", True: "✓", False: "✗"}[passed]
        style = {None: None, True: "green", False: "red"}[passed]
        counts = (str(n), str(section["not_applicable"][name]), str(section["failed"][name]))
        note = "*" if name in section["marks"] else ""
        if note:
            reasons.setdefault(section["marks"][name], []).append(name)
        table.add_row(
            name, number(mean), shown + note, *counts, str(target or ""), mark, style=style
        )
    console.print(table)
    for reason, marked in reasons.items():
        more = f" and {len(marked) - _NAMED} more" if len(marked) > _NAMED else ""
        console.print(f"* {', '.join(marked[:_NAMED])}{more}: {reason}", soft_wrap=True)
    by, units = section["clustered_by"], max(section["clusters"].values(), default=0)
    if by != "none" and units:
        shared = "share a group" if by == "group" else "share their first gold document"
        console.print(
            f"Cases that {shared} are counted together ({units:,} independent units).",
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
    table = _table(dimension, "n", *(_in_two(name.removesuffix(suffix)) for name in names))
    for value, part in slices.items():
        means = (part["mean"].get(name) for name in names)
        table.add_row(plain(value, 40), str(part["n"]), *map(number, means))
    console.print(table)


def _in_two(name: str, limit: int = 12) -> str:
    """A long name on two lines, broken behind the underscore nearest to its middle."""
    breaks = [index + 1 for index, char in enumerate(name) if char == "_"]
    if len(name) <= limit or not breaks:
        return name
    middle = min(breaks, key=lambda index: abs(index - len(name) / 2))
    return f"{name[:middle]}\n{name[middle:]}"


def print_rows(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Any small table; the first column is text."""
    table = _table(*columns)
    for row in rows:
        table.add_row(*row)
    console.print(table)

"""Prints the blocks of a document on a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from terminal.page import (
    BarColumn,
    Block,
    Conclusion,
    DataColumn,
    DataTable,
    Heading,
    Labelled,
    Page,
    PassageBlock,
    Prose,
    Quotation,
    Section,
    Sides,
    Tone,
    TrendColumn,
    WhiskerColumn,
    plain_words,
)
from terminal.plot import bar, change_line, shrunk, sparkline
from terminal.tables import (
    PICTURE,
    ROOMY,
    draws_unicode,
    has_room,
    picture,
    plain,
    print_columns,
    print_text,
    scale,
)

if TYPE_CHECKING:
    from rich.console import Console

Row = TypeVar("Row")

_STYLES: dict[Tone | None, str] = {
    "good": "green",
    "bad": "red",
    "doubt": "yellow",
    "quiet": "dim",
    "strong": "bold",
    None: "",
}

_ASCII = str.maketrans(
    {"–": "-", "−": "-", "…": ".", "▼": "v", "▲": "^", "→": ">", "•": "*", "·": ".", "×": "x"}
    | dict(zip("░▒▓█▏▎▍▌▋▊▉", ".:%#" + " " * 3 + "=" * 4, strict=True))
)

_MOST = 2000
"""Characters of one text on a terminal."""

_BAR = 16
"""Columns of the longest bar."""

_NARROWEST = 8
"""Columns that a picture keeps on the narrowest terminal."""


def print_page(console: Console, page: Page, *, every: bool = False) -> None:
    """The blocks in order, the verdict last. ``every``: folded tables too.

    Nothing foreign is obeyed: control and direction characters are replaced. Outside UTF-8 only
    ASCII is printed.
    """
    print_blocks(console, page.ordered(verdict_first=False), every=every)


def print_blocks(
    console: Console, blocks: Iterable[Block], *, every: bool = False, told: set[str] | None = None
) -> None:
    """Some blocks in the order in which they are given.

    ``told``: columns that are known to be left out on this terminal; it grows.
    """
    told = set() if told is None else told
    for block in blocks:
        _print_block(console, block, every, told)


def _print_block(console: Console, block: Block, every: bool, told: set[str]) -> None:
    if isinstance(block, Heading):
        _say(console, "")
        words = "  ".join(filter(None, (plain_words(block.words), block.note)))
        _say(console, words, block.tone, bold=block.tone is not None)
    elif isinstance(block, Prose):
        _say(console, plain_words(block.words), block.tone, indent=block.item)
    elif isinstance(block, Labelled):
        label = f"{block.label}: " if block.label else "  "
        _say(console, label + plain_words(block.words), block.tone, indent=1)
    elif isinstance(block, Conclusion):
        _say(console, "")
        _say(console, plain_words(block.words), block.tone, bold=True)
        for line in block.more:
            _say(console, plain_words(line.words), line.tone)
    elif isinstance(block, Quotation):
        _say(console, ": ".join(filter(None, (block.name, block.text))), indent=1)
    elif isinstance(block, PassageBlock):
        _print_passage(console, block)
    elif isinstance(block, Sides):
        for name, side in zip(block.names, zip(*block.rows, strict=True), strict=True):
            _say(console, name, "strong")
            own = [block for blocks in side for block in blocks]
            print_blocks(console, own, every=every, told=told)
    elif isinstance(block, Section) and not block.page_only:
        _print_block(console, Heading(block.title, block.level, "strong"), every, told)
        print_blocks(console, block.blocks, every=every, told=told)
    elif isinstance(block, DataTable) and block.rows:
        _print_table(console, block, every, told)


def _print_passage(console: Console, passage: PassageBlock) -> None:
    """The place of a passage with its marks."""
    marks = ", ".join(tag.text for tag in passage.tags)
    head = f"{passage.rank:>3}. {plain(passage.place)}"
    _say(console, f"{head} ({marks})" if marks else head, "good" if passage.gold else None)


def _say(
    console: Console, text: str, tone: Tone | None = None, *, bold: bool = False, indent: int = 0
) -> None:
    """A line of prose: folded on a terminal, whole in a file."""
    style = f"bold {_STYLES[tone]}" if bold else _STYLES[tone]
    print_text(console, "  " * indent + _safe(console, text), style.strip())


def _safe(console: Console, text: str) -> str:
    shown = plain(text, _MOST)
    if draws_unicode(console):
        return shown
    return shown.translate(_ASCII).encode("ascii", "replace").decode("ascii")


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A column with its cells; ``left``: of text or pictures."""

    head: str
    cells: list[str]
    left: bool = False
    drop: int = 0
    legend: str = ""
    picture: bool = False


def _print_table(console: Console, table: DataTable[Row], every: bool, told: set[str]) -> None:
    if table.folded and not every:
        if table.hint:
            _say(console, table.hint)
        return
    if title := table.folded or table.title:
        _print_block(console, Heading(title), every, told)
    columns = _drawn_columns(console, table)
    tones = [table.tone(row) if table.tone else None for row in table.rows]
    styles: list[str | None] = [_STYLES[tone] or None for tone in tones]
    rows = list(zip(*(column.cells for column in columns), strict=True))
    if table.group:
        rows, styles = _grouped(table.rows, table.group, rows, styles)
    droppable = sorted((column for column in columns if column.drop), key=lambda c: c.drop)
    shown = print_columns(
        console,
        [column.head for column in columns],
        rows,
        styles=styles,
        droppable=[column.head for column in droppable],
        left=[column.head for column in columns if column.left],
        told={*told, *(column.head for column in columns if column.picture)},
    )
    told |= {column.head for column in columns} - shown
    for column in columns:
        if column.legend and column.head in shown:
            _say(console, column.legend, "quiet")


def _drawn_columns(console: Console, table: DataTable[Row]) -> list[_Drawn]:
    """The columns as text; pictures where there is room, sparklines in what the others leave.

    On a narrow terminal pictures replace the columns whose numbers they show."""
    whiskers = {}
    pictured: set[str] = set()
    for index, column in enumerate(table.columns):
        if isinstance(column, WhiskerColumn):
            pictures = _pictures(console, column, table.rows)
            if pictures is not None:
                whiskers[index] = pictures
                pictured |= {column.draws} if column.draws and console.width < ROOMY else set()
    drawn: list[_Drawn | TrendColumn[Row]] = []
    for index, column in enumerate(table.columns):
        if isinstance(column, TrendColumn):
            drawn.append(column)
        elif isinstance(column, BarColumn):
            bars = [_safe(console, bar(column.share(row), _BAR)) for row in table.rows]
            drawn.append(_Drawn(" " * index, bars, True, column.drop))
        elif isinstance(column, DataColumn) and column.name not in pictured:
            cells = [_safe(console, column.cell(row)) for row in table.rows]
            drawn.append(_Drawn(column.name, cells, column.words, column.drop))
        elif index in whiskers:
            drawn.append(whiskers[index])
    headings = [table.group(row) for row in table.rows] if table.group else []
    taken = sum(
        2 + max(map(len, (column.head, *column.cells, *(() if at else headings))))
        for at, column in enumerate(drawn)
        if isinstance(column, _Drawn)
    )
    room = max(console.width - taken, _NARROWEST)
    return [
        column if isinstance(column, _Drawn) else _sparks(console, column, table.rows, room)
        for column in drawn
    ]


def _grouped(
    data: Sequence[Row],
    group: Callable[[Row], str],
    rows: Sequence[tuple[str, ...]],
    styles: Sequence[str | None],
) -> tuple[list[tuple[str, ...]], list[str | None]]:
    """The rows with a heading before the first one of each group."""
    shown: list[tuple[str, ...]] = []
    toned: list[str | None] = []
    before = None
    for item, cells, style in zip(data, rows, styles, strict=True):
        if (heading := group(item)) != before:
            before = heading
            shown.append((plain(heading), *[""] * (len(cells) - 1)))
            toned.append(_STYLES["strong"])
        shown.append(cells)
        toned.append(style)
    return shown, toned


def _pictures(console: Console, column: WhiskerColumn[Row], rows: Iterable[Row]) -> _Drawn | None:
    """A column of pictures under its scale; None where there is no room or no row has one."""
    whiskers = [column.whisker(row) for row in rows] if has_room(console, column.least) else []
    low, high, head = 0.0, 1.0, scale("0", "1")
    if column.around_zero:
        sizes = (whisker.size for whisker in whiskers if whisker is not None)
        high = math.ceil(max((size for size in sizes if size <= 1), default=0.0) * 20) / 20
        low, head = -high, scale(f"−{high:g}", f"+{high:g}", "0")
    unicode = draws_unicode(console)
    drawn = [
        ""
        if whisker is None or low == high
        else change_line(
            whisker.value or 0.0,
            reach=high,
            columns=PICTURE,
            interval=whisker.interval,
            unseen=whisker.unseen,
            target=whisker.mark,
            unicode=unicode,
        )
        if column.changes
        else picture(
            whisker.interval, whisker.value, whisker.mark, low=low, high=high, unicode=unicode
        )
        for whisker in whiskers
    ]
    legend = column.legend[not unicode]
    return _Drawn(head, drawn, True, column.drop, legend, True) if any(drawn) else None


def _sparks(console: Console, column: TrendColumn[Row], rows: Iterable[Row], room: int) -> _Drawn:
    drawn = []
    for row in rows:
        values, breaks = column.values(row)
        shown, places = shrunk(values, breaks, room - len(breaks))
        drawn.append(sparkline(shown, places, unicode=draws_unicode(console)))
    return _Drawn(column.name, drawn, left=True)

"""A document as a list of typed blocks, how its numbers are worded, and how a terminal prints it.

A room makes the blocks from its own typed rows: what ``--json`` prints, a table of a terminal and
one of a document hold the same rows. ``views/page.py`` writes the blocks as Markdown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from terminal.plot import change_line, shrunk, sparkline
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

Tone = Literal["good", "bad", "doubt", "quiet", "strong"]

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

_NARROWEST = 8
"""Columns that a picture keeps on the narrowest terminal."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """Foreign text among a document's own words: an id, a name, what a bot wrote."""

    text: str


@dataclass(frozen=True, slots=True)
class CaseRef:
    """A case by its id and repeat: a link where the document shows it in full."""

    text: str
    repeat: int = 0


Words = str | Quoted | CaseRef | tuple[str | Quoted | CaseRef, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the document's own."""

    words: Words
    level: int = 2
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Prose:
    """A sentence or a short line. ``item``: how deep in a list it is, 0 outside one."""

    words: Words
    tone: Tone | None = None
    item: int = 0


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict of a document: last on a terminal, where it stays in sight, else first."""

    words: Words
    tone: Tone | None = None
    more: tuple[Prose, ...] = ()


@dataclass(frozen=True, slots=True)
class Quotation:
    """A foreign text under its name: a question, an answer, a passage."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture that only a page has room for: its ``kind`` names who draws the data."""

    kind: str
    data: Any
    caption: Words = ""


@dataclass(frozen=True, slots=True)
class Whisker:
    """A value within its interval, and a mark beside it (a target, or no change).

    ``low``, ``high``: ends of the scale on a page, None where it has none. ``before``: the value
    that an arrow comes from; ``tone``: of that arrow. ``unseen``: the smallest difference that can
    be detected.
    """

    interval: Sequence[float] | None
    value: float | None
    mark: float | None = None
    low: float | None = 0.0
    high: float | None = 1.0
    before: float | None = None
    tone: Tone | None = None
    unseen: float | None = None

    @property
    def size(self) -> float:
        """The largest distance from 0 of the value or of an end."""
        return max(map(abs, (self.value or 0.0, *(self.interval or ()))))


@dataclass(frozen=True, slots=True)
class Term:
    """A metric by its name; a page shows it in plain words, too, and explains it."""

    name: str
    words: str = ""
    meaning: str = ""
    note: str = ""


@dataclass(frozen=True)
class DataColumn(Generic[Row]):
    """A column of a table: its head and the cell of each row.

    ``drop``: where a terminal is narrow, columns go by rising numbers; those of 0 stay. ``words``:
    the cell is text, to the left. ``foreign``: that no one here wrote. ``mark``: a sign, for which
    a document shows the row's tone. ``small``: what a document adds to the cell. ``shade``: how a
    page colours it, a class of its style. ``term``: the metric that a page explains.
    """

    name: str
    cell: Callable[[Row], str]
    drop: int = 0
    words: bool = False
    foreign: bool = False
    mark: bool = False
    small: Callable[[Row], str] | None = None
    shade: Callable[[Row], str] | None = None
    term: Callable[[Row], Term] | None = None


@dataclass(frozen=True)
class WhiskerColumn(Generic[Row]):
    """A column of pictures of intervals, on a terminal that has room for them.

    ``around_zero``: one scale around 0 for all rows, whose values are at most 1; else from 0 to 1.
    ``draws``: the column whose numbers the pictures show; it goes early where these are drawn.
    ``spares``: the column that may go, after the others, where these are drawn.
    ``changes``: pictures of a difference with the value before at 0. ``least``: columns of a
    terminal that has them. ``legend``: what the signs mean, in UTF-8 and in ASCII.
    """

    whisker: Callable[[Row], Whisker | None]
    drop: int = 0
    around_zero: bool = False
    draws: str = ""
    changes: bool = False
    spares: str = ""
    least: int = ROOMY
    legend: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class TrendColumn(Generic[Row]):
    """A column of sparklines, as wide as the others leave: the values, and the places of breaks."""

    name: str
    values: Callable[[Row], tuple[Sequence[float | None], Sequence[int]]]


@dataclass(frozen=True)
class CasesColumn(Generic[Row]):
    """A column of a page's links to cases, which the page draws; None for a row without any."""

    name: str
    cases: Callable[[Row], Any]


AnyColumn = DataColumn[Row] | WhiskerColumn[Row] | TrendColumn[Row] | CasesColumn[Row]


@dataclass(frozen=True)
class DataTable(Generic[Row]):
    """Typed rows, and the columns to show.

    ``tone``: of a row. ``group``: the heading that a row stands under, among the rows. ``folded``:
    the words under which a document folds the table; a terminal prints ``hint`` in its place.
    ``caption``: what a page says above the rows; ``look``: a class of its style.
    """

    columns: Sequence[AnyColumn[Row]]
    rows: Sequence[Row]
    title: str = ""
    tone: Callable[[Row], Tone | None] | None = None
    group: Callable[[Row], str] | None = None
    folded: str = ""
    hint: str = ""
    caption: str = ""
    look: str = ""


Block = Heading | Prose | Conclusion | Quotation | Chart | DataTable[Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A document: its title, which a terminal does without, and its blocks in order."""

    title: Words
    blocks: Sequence[Block] = field(default_factory=tuple)

    def ordered(self, *, verdict_first: bool) -> list[Block]:
        """The blocks with the verdicts where a document, or a terminal, has them."""
        return sorted(self.blocks, key=lambda b: isinstance(b, Conclusion) is not verdict_first)


# How numbers are worded


def number(value: float | None) -> str:
    """Three decimals, fewer from 10 up, and a true minus; an en dash for an undefined value."""
    if value is None:
        return "–"
    size = abs(value)
    shown = f"{size:.3f}" if size < 10 else f"{size:,.{1 if size < 100 else 0}f}"
    return f"−{shown}" if value < 0 and float(shown.replace(",", "")) else shown


def signed(value: float | None) -> str:
    """A difference: its sign (a true minus) and three decimals, more where it is smaller."""
    if value is None:
        return "–"
    size = apart(abs(value), 0.0)[0]
    return ("+" if value > 0 else "−" if value < 0 else "") + size


def apart(*values: float | None) -> tuple[str, ...]:
    """Numbers of one measure in as many digits as show that they differ, at most six."""
    shown = tuple(map(number, values))
    different = len({value for value in values if value is not None})
    digits = 3
    while len({*shown} - {"–"}) < different and digits < 6:
        digits += 1
        shown = tuple(
            "–" if value is None else f"{value:.{digits}f}".replace("-", "−") for value in values
        )
    return shown if len({*shown} - {"–"}) == different else tuple(map(number, values))


def from_to(before: float | None, after: float | None) -> str:
    """``0.668 → 0.630``, in as many digits as show that they differ."""
    return " → ".join(apart(before, after))


def p_value(p: float | None) -> str:
    """Three decimals without the 0 before the point; below them ``< .001``."""
    if p is None:
        return "–"
    if p < 0.001:
        return "< .001"
    return f"{p:.3f}".removeprefix("0")


def p_words(p: float) -> str:
    """The same in a sentence: ``p = .034``, ``p < .001``."""
    return f"p {'' if p < 0.001 else '= '}{p_value(p)}"


def between(ends: Sequence[float] | None) -> str:
    """Both ends of an interval: ``0.512 – 0.740``."""
    return "–" if ends is None else f"{number(ends[0])} – {number(ends[1])}"


def signed_between(ends: Sequence[float] | None) -> str:
    """Both ends of a difference's interval: ``−0.072 to +0.005``."""
    return "–" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"


def percent(share: float | None) -> str:
    """A share in whole percents, never rounded up to 100 or down to 0; an en dash for None."""
    if share is None:
        return "–"
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{100 * share:.0f} %"


def fine_percent(share: float) -> str:
    """A share with one digit after the point, two below 1 %."""
    return f"{100 * share:.1f} %" if share >= 0.01 or not share else f"{100 * share:.2f} %"


def times(ratio: float | None) -> str:
    """A ratio in two decimals, or three significant digits if it is small."""
    if ratio is None:
        return "–"
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3g}"


# On a terminal


def print_page(console: Console, page: Page, *, every: bool = False) -> None:
    """The blocks in order, the verdict last. ``every``: folded tables too.

    Nothing foreign is obeyed: control and direction characters are replaced. Outside UTF-8 only
    ASCII is printed.
    """
    print_blocks(console, page.ordered(verdict_first=False), every=every)


def print_blocks(console: Console, blocks: Iterable[Block], *, every: bool = False) -> None:
    """Some blocks in the order in which they are given."""
    for block in blocks:
        _print_block(console, block, every)


def _print_block(console: Console, block: Block, every: bool) -> None:
    if isinstance(block, Heading):
        _say(console, "")
        _say(console, plain_words(block.words), block.tone, bold=block.tone is not None)
    elif isinstance(block, Prose):
        _say(console, plain_words(block.words), block.tone, indent=block.item)
    elif isinstance(block, Conclusion):
        _say(console, "")
        _say(console, plain_words(block.words), block.tone, bold=True)
        for line in block.more:
            _say(console, plain_words(line.words), line.tone)
    elif isinstance(block, Quotation):
        _say(console, f"{block.name}: {block.text}", indent=1)
    elif isinstance(block, DataTable) and block.rows:
        _print_table(console, block, every)


def plain_words(words: Words) -> str:
    """Words as text; a case is its id."""
    parts = words if isinstance(words, tuple) else (words,)
    return "".join(part if isinstance(part, str) else part.text for part in parts)


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


def _print_table(console: Console, table: DataTable[Row], every: bool) -> None:
    if table.folded and not every:
        if table.hint:
            _say(console, table.hint)
        return
    if title := table.folded or table.title:
        _print_block(console, Heading(title), every)
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
    )
    for column in columns:
        if column.legend and column.head in shown:
            _say(console, column.legend, "quiet")


def _drawn_columns(console: Console, table: DataTable[Row]) -> list[_Drawn]:
    """The columns as text; pictures where there is room, sparklines in what the others leave."""
    whiskers = {}
    pictured: dict[str, int] = {}
    for index, column in enumerate(table.columns):
        if isinstance(column, WhiskerColumn):
            pictures = _pictures(console, column, table.rows)
            if pictures is not None:
                whiskers[index] = pictures
                pictured |= {column.draws: 1, column.spares: 3}
    drawn: list[_Drawn | TrendColumn[Row]] = []
    for index, column in enumerate(table.columns):
        if isinstance(column, TrendColumn):
            drawn.append(column)
        elif isinstance(column, DataColumn):
            cells = [_safe(console, column.cell(row)) for row in table.rows]
            drop = pictured.get(column.name, column.drop)
            drawn.append(_Drawn(column.name, cells, column.words, drop))
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
    fits = has_room(console, column.least)
    whiskers = [column.whisker(row) for row in rows] if fits else []
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
    return _Drawn(head, drawn, True, column.drop, legend) if any(drawn) else None


def _sparks(console: Console, column: TrendColumn[Row], rows: Iterable[Row], room: int) -> _Drawn:
    drawn = []
    for row in rows:
        values, breaks = column.values(row)
        shown, places = shrunk(values, breaks, room - len(breaks))
        drawn.append(sparkline(shown, places, unicode=draws_unicode(console)))
    return _Drawn(column.name, drawn, left=True)


def term_column(name: str, term: Callable[[Row], Term]) -> DataColumn[Row]:
    """A column of metrics, by their names where there is no room for their words."""

    def cell(row: Row) -> str:
        return " ".join(filter(None, (term(row).name, term(row).note)))

    return DataColumn(name, cell, words=True, term=term)


def items(texts: Iterable[Words], tone: Tone | None = None) -> Iterator[Prose]:
    """A list, an item each."""
    return (Prose(text, tone, item=1) for text in texts)


def plain_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str = "",
    *,
    words: int = 1,
    foreign: bool = False,
    caption: str = "",
    folded: str = "",
) -> DataTable[Sequence[str]]:
    """A table of cells that are text already; the first ``words`` columns are to the left.

    ``foreign``: no one here wrote the names in the first column. ``caption``, ``folded``: see
    DataTable.
    """

    def column(at: int, name: str) -> DataColumn[Sequence[str]]:
        return DataColumn(name, lambda row: row[at], words=at < words, foreign=foreign and not at)

    columns = [column(at, name) for at, name in enumerate(head)]
    return DataTable(columns, list(rows), title, caption=caption, folded=folded)
